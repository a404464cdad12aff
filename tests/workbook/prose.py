"""Does a number in prose stand in an output beside it? A reader of numbers, for notebooks and for Markdown files.

A number matches where an output, rounded as the prose writes it, is that number: 47% where 0.4691 is shown, 4,900 where
4.92K is. A sentence may name files that its numbers come from, in a comment after it: ``<!-- source: data/x.csv -->``.
"""

from __future__ import annotations

import html
import re
from dataclasses import dataclass
from pathlib import Path

from saverouter.workbook import notebooks

ROOT = Path(__file__).resolve().parents[2]
WORDS = {
    word: value
    for value, word in enumerate(
        "none one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen "
        "eighteen nineteen twenty".split()
    )
}
UNITS = {"%": 0.01, "K": 1e3, "M": 1e6, " million": 1e6, " thousand": 1e3, " percent": 0.01}
NUMBER = re.compile(
    r"(?<![\w.,])(?P<sign>[-−])?(?P<digits>\d{1,3}(?:,\d{3})+(?:\.\d+)?|\d*\.\d+|\d+)"
    r"(?P<unit>%|[KM]\b| million\b| thousand\b| percent\b)?(?![\w]|,\d{3}|\.\d)"
)
PAIR = re.compile(rf"(?<!name of )\b({'|'.join(WORDS)})\b(?: \w+)? of (?:the )?({'|'.join(WORDS)})\b", re.IGNORECASE)
SOURCE = re.compile(r"<!-- *source: *([^>]*?) *-->")
# What is a name rather than a number: code, addresses, headings, numbered things, symbols with a value, the paper's seed.
NAMES = re.compile(
    r"```.*?```|`[^`]*`|<sub>[^<]*</sub>|\b\d+e-?\d+|\[\d+\]\([^)]*\)|\]\([^)]*\)|\[\d\d_\w+\]|<https?://[^>]*>|arXiv \S+"
    r"|<!--(?! *source)[^>]*-->|<[^>!]+>|^#[^\n]*$|^ *\|[-| :]+\|$|^ *\d+\. |\b[KkM] ?= ?\d+|\bH = \d[\d,]*"
    r"|\bGPT-\d\S*|\bover 1M\b|\bApache-2\.0"
    r"|\b(?:[Ff]igures?|[Tt]ables?|[Pp]ropositions?|[Ss]ections?|[Ss]eeds?|[Aa]ppendix|[Nn]otebooks?|Python) "
    r"[A-Z]?\d[\d.a-c]*(?:(?:,| and| to) \d[\d.]*)*",
    re.MULTILINE | re.DOTALL,
)


@dataclass(frozen=True)
class Number:
    """A number as it is written: its value, and the step of its last digit that counts."""

    text: str
    value: float
    step: float

    def stands_for(self, shown: Number) -> bool:
        """Whether ``shown``, rounded as this one is written, is this one; a share may be shown without a percent sign."""
        scales = (1, 0.01, 100) if "%" in self.text or "percent" in self.text else (1,)
        half = self.step * (0.5 + 1e-6)
        # What is shown is rounded too, but never so coarsely that it would fit by chance.
        return any(
            abs(scale * shown.value - self.value) <= half and scale * shown.step <= 2.01 * self.step for scale in scales
        )


def numbers(text: str) -> list[Number]:
    """Every number of a text, and pairs in words ("nine of twelve")."""
    found = []
    for match in NUMBER.finditer(text):
        digits, unit = match["digits"].replace(",", ""), UNITS.get(match["unit"] or "", 1.0)
        step = 10.0 ** -len(digits.partition(".")[2])
        if "." not in digits and len(digits) > 2 and not match["unit"] or match["unit"] == " thousand":
            zeros = len(digits) - len(digits.rstrip("0"))
            step = 10.0 ** min(zeros, len(digits) - 2)  # 4,900 is a rounded number, 4,917 is not
        sign = -1 if match["sign"] else 1
        found.append(Number(match[0].strip(), sign * float(digits) * unit, step * unit))
    for match in PAIR.finditer(text):
        found += [Number(match[0], float(WORDS[word.lower()]), 1.0) for word in match.groups()]
    return found


def exact(text: str) -> list[Number]:
    """The numbers of a file or of code, which mean what they say: 0.3 is 0.300."""
    return [Number(number.text, number.value, 0.0) for number in numbers(text)]


def plain(cell) -> str:
    """What an executed cell shows, as text: tables without their marks, figures not at all."""
    parts = []
    for output in cell.get("outputs", []):
        data = output.get("data", {})
        parts += [
            output.get("text", ""),
            "".join(data.get("text/plain", "")),
            _text("".join(data.get("text/html", ""))),
        ]
    return "\n".join(parts)


def _text(markup: str) -> str:
    markup = re.sub(r"<style.*?</style>", " ", markup, flags=re.DOTALL)
    return html.unescape(re.sub(r"<[^>]+>", " ", markup))


def sentences(markdown: str) -> list[tuple[str, list[str]]]:
    """Sentences (or lines of a table) and the files that they name as their source in a comment right after them."""
    text = NAMES.sub(" ", markdown)
    pieces = re.split(r"(?<=[.!?])\s+(?=[A-Z*\[(\d])|(?<=-->)|\n\s*\n(?!<!--)|\n(?=[-|*>] ?)", text)
    found = [(SOURCE.sub(" ", piece), [name.strip() for match in SOURCE.finditer(piece) for name in match[1].split(",")])
             for piece in pieces]  # fmt: skip
    return [(words, sources) for words, sources in found if words.strip()]


def unfounded(markdown: str, shown: str, code: str = "") -> list[str]:
    """The numbers of a text that stand neither in what is shown, nor in code, nor in the files that their sentence names."""
    around, missing = numbers(shown) + exact(code), []
    for words, sources in sentences(markdown):
        known = around + [number for name in sources for number in exact(_file(name))]
        for number in numbers(words):
            if not any(number.stands_for(other) for other in known):
                missing.append(f"{number.text!r} in: {' '.join(words.split())[:150]}")
    return missing


def _file(name: str) -> str:
    """A file as text in which every field stands alone."""
    return re.sub(r'[,;|"]', " , ", (ROOT / name).read_text(encoding="utf-8"))


def unfounded_in_notebook(path: Path) -> list[str]:
    """Section by section; the part before the first section and the take-aways may read any output."""
    cells = notebooks.read_notebook(path).cells
    sections = [[]]
    for cell in cells:
        if cell.cell_type == "markdown" and cell.source.startswith("## "):
            sections.append([])
        sections[-1].append(cell)
    missing = []
    for number, section in enumerate(sections):
        prose = "\n\n".join(cell.source for cell in section if cell.cell_type == "markdown")
        anywhere = number == 0 or prose.startswith("## Take-aways")
        code = [cell for cell in (cells if anywhere else section) if cell.cell_type == "code"]
        missing += unfounded(prose, "\n".join(map(plain, code)), "\n".join(cell.source for cell in code))
    return missing
