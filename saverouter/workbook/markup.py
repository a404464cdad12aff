"""The HTML that prose and outputs bring along, made safe, and its tables made readable on a narrow screen."""

from __future__ import annotations

import re

from bs4 import BeautifulSoup, Tag

# What could run, fetch, lead away or restyle the whole page. Scripts are forbidden by the page's policy as well.
REFUSED = ("script", "iframe", "object", "embed", "base", "meta", "link", "form", "template")
NUMBER = re.compile(
    r"[-+−±]?[$€]?\d[\d.,_]*\s?(%|[KMB]|x|points?)?(\s*(±|\+/-|\.\.|to|of|–)\s*[-+−]?\$?\d[\d.,]*[%KMB]?)?"
)
NO_NUMBER = {"", "never", "inf", "nan", "none", "n/a", "-", "–", "—", "−"}  # what stands where a number would
LONGEST_NAME = 60  # characters of a first column that stays in sight when the others are scrolled


def cleaned(html: str) -> str:
    """A cell's prose or output without anything active; links to notebooks lead to their pages."""
    soup = BeautifulSoup(html, "html.parser")
    for tag in soup([*REFUSED]):
        tag.decompose()
    for style in soup("style", scoped=True):  # pandas' own, which browsers apply to the whole page
        style.decompose()
    for tag in soup(True):
        for name in [name for name, value in tag.attrs.items() if _active(name, value)]:
            del tag[name]
    for link in soup("a", href=re.compile(r"^\d\d_[\w-]+\.ipynb")):
        link["href"] = link["href"].replace(".ipynb", ".html", 1)
    for table in soup("table"):
        _readable(soup, table)
    return str(soup)


def _active(name: str, value) -> bool:
    """Whether an attribute would run something."""
    return name.startswith("on") or bool(re.match(r"\s*(javascript|vbscript):", str(value), re.IGNORECASE))


def _readable(soup: BeautifulSoup, table: Tag) -> None:
    """Names of the index beside the other headers, numbers to the right, a first column that stays when scrolling."""
    head, rows = (table.thead.find_all("tr") if table.thead else []), table.select("tbody > tr")
    _lift_index_names(head, rows)
    head = table.thead.find_all("tr") if table.thead else []
    _align(head, rows)
    _mark_first_column(head, rows)
    for attribute in ("border", "style"):
        del table[attribute]
    caption = table.caption.get_text(" ", strip=True) if table.caption else "Table"
    table.wrap(soup.new_tag("div", attrs={"class": "table", "tabindex": "0", "role": "region", "aria-label": caption}))


def _lift_index_names(head: list[Tag], rows: list[Tag]) -> None:
    """pandas gives the names of the index a row of their own; they fit into the empty cells above it."""
    if len(head) < 2 or not rows:
        return
    above, names = _cells(head[-2]), _cells(head[-1])
    levels = len(rows[0].find_all("th", recursive=False))
    if any(map(_text, above[:levels])) or any(map(_text, names[levels:])) or min(len(above), len(names)) < levels:
        return
    for empty, name in zip(above[:levels], names[:levels], strict=True):
        empty.replace_with(name.extract())
    head[-1].decompose()


def _align(head: list[Tag], rows: list[Tag]) -> None:
    """Columns of numbers and their headers to the right. Columns are counted from the end, where no cell spans rows."""
    columns: dict[int, list[Tag]] = {}
    for row in rows:
        for place, cell in enumerate(reversed(row.find_all("td", recursive=False))):
            columns.setdefault(place, []).append(cell)
    numeric = {place for place, cells in columns.items() if _are_numbers(list(map(_text, cells)))}
    for place in numeric:
        for cell in columns[place]:
            _add_class(cell, "number")
    for row in head:
        place = 0
        for cell in reversed(_cells(row)):
            span = _span(cell, "colspan")
            if span == 1 and place in numeric:
                _add_class(cell, "number")
            place += span


def _are_numbers(texts: list[str]) -> bool:
    """Whether a column holds numbers, or words that stand for them, and not only empty cells."""
    parts = [part.strip() for text in texts for part in text.split(" / ")]  # several may share a cell
    return any(parts) and all(part.lower() in NO_NUMBER or NUMBER.fullmatch(part) for part in parts)


def _mark_first_column(head: list[Tag], rows: list[Tag]) -> None:
    """The cells at the left edge, unless they are sentences, which would cover a narrow screen if they stayed."""
    edge, covered = [], 0
    for row in rows:
        if not covered and row.find(True):
            edge.append(row.find(True))
            covered = _span(edge[-1], "rowspan")
        covered = max(0, covered - 1)
    texts = list(map(_text, edge))
    kinds = ["number"] if _are_numbers(texts) else []
    kinds += ["first"] if max(map(len, texts), default=0) <= LONGEST_NAME else []
    for cell in edge + [_cells(row)[0] for row in head if _cells(row)]:
        for kind in kinds:
            _add_class(cell, kind)


def _cells(row: Tag) -> list[Tag]:
    return row.find_all(["th", "td"], recursive=False)


def _text(cell: Tag) -> str:
    return cell.get_text(" ", strip=True).replace("\xa0", "")


def _span(cell: Tag, attribute: str) -> int:
    said = cell.get(attribute, "")
    return int(said) if said.isdecimal() else 1


def _add_class(tag: Tag, name: str) -> None:
    known = tag.get_attribute_list("class") if tag.get("class") else []
    tag["class"] = [*known, name] if name not in known else known
