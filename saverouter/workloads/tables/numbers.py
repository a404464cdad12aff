"""Numbers as people write them: 0.85, 85%, yes, $0.002, 1,234.5 and 0,85. What could mean two things is refused."""

from __future__ import annotations

import re

import numpy as np
import pandas as pd

from .sheet import distinct, plain_numbers

MISSING = {"", "na", "n/a", "#n/a", "nan", "null", "none", "<na>"}
WORDS = {"true": 1.0, "yes": 1.0, "false": 0.0, "no": 0.0}
SPACED = re.compile(r"(?<=\d)[ \u00a0\u202f](?=\d{3})")  # French thousands
CURRENCY = r"us\$|[$€£¥₹]|usd|eur|gbp|chf|jpy|cny|inr|cad|aud"
MONEY = re.compile(rf"({CURRENCY})?\s*(.*?)\s*({CURRENCY})?", re.IGNORECASE | re.DOTALL)
CODES = {"US$": "USD", "$": "USD", "€": "EUR", "£": "GBP"}
EXPONENT = r"(?:e[-+]?\d+)?"
POINT = re.compile(rf"[-+]?(?:\d+|[1-9]\d{{0,2}}(?:,\d{{3}})+)?(?:\.\d*)?{EXPONENT}", re.IGNORECASE)  # 1,234.5
COMMA = re.compile(rf"[-+]?(?:\d+|[1-9]\d{{0,2}}(?:\.\d{{3}})+)?(?:,\d*)?{EXPONENT}", re.IGNORECASE)  # 1.234,5
EXPECTED = {
    "quality": "a number, true or false, yes or no, a percentage, or nothing",
    "scaled": "a number on the scale, or nothing",
    "cost": "a number, or nothing",
    "tokens": "a whole number, or nothing",
}


class NotANumber(Exception):
    """A cell that cannot be read: its row, its text and what was expected."""

    def __init__(self, row: int, text: str, expected: str):
        super().__init__(row, text, expected)
        self.row, self.text, self.expected = row, text, expected


def as_numbers(values: pd.Series, kind: str) -> tuple[np.ndarray, set[str]]:
    """A column as float64, NaN where nothing stands, and the currencies named in it.

    ``kind`` is "quality", "scaled" (where a scale is given), "cost" or "tokens".
    """
    numbers = plain_numbers(values)
    if numbers is not None:
        return numbers, set()
    codes, texts = distinct(values)
    try:
        if kind == "tokens" and any("." in text for text in texts):  # 1.234 may be more than a thousand
            raise ValueError
        numbers, currencies = np.array([_plain(text) for text in texts], dtype=np.float64), set()
    except ValueError:
        try:
            numbers, currencies = _written(texts, kind)
        except NotANumber as wrong:
            row = int(np.flatnonzero(codes == wrong.row)[0])
            raise NotANumber(row, wrong.text, wrong.expected) from None
    return numbers[codes], currencies


def _plain(text: str) -> float:
    if "_" in text:  # Python's own way to part thousands
        raise ValueError
    return float(text)


def _written(texts: np.ndarray, kind: str) -> tuple[np.ndarray, set[str]]:
    """Distinct texts as numbers; in an error, the row is the place of the text."""
    bare, currencies = [SPACED.sub("", text).strip() for text in texts], set()
    if kind == "cost":
        money = [MONEY.fullmatch(text) for text in bare]
        bare = [found[2] or found[0] for found in money]  # a lone $ is no number
        currencies = {found[1] or found[3] for found in money} - {None}
        currencies = {CODES.get(found.upper(), found.upper()) for found in currencies}
    percent = [kind == "quality" and text.endswith("%") for text in bare]
    bare = [text[:-1].strip() or text if share else text for text, share in zip(bare, percent, strict=True)]
    commas = _commas_are_decimal(bare, texts, kind)
    numbers = np.empty(len(texts))
    for place, text in enumerate(bare):
        number = _number(text, kind, commas)
        if number is None:
            raise NotANumber(place, texts[place], EXPECTED[kind])
        numbers[place] = number / 100 if percent[place] else number
    return numbers, currencies


def _number(text: str, kind: str, commas: bool) -> float | None:
    word = text.lower()
    if word in MISSING:
        return np.nan
    if kind == "quality" and word in WORDS:
        return WORDS[word]
    if commas:
        text = text.replace(".", "").replace(",", ".") if COMMA.fullmatch(text) else "no number"
    elif "," in text:
        text = text.replace(",", "") if POINT.fullmatch(text) else "no number"
    try:
        return _plain(text)
    except ValueError:
        return None


def _commas_are_decimal(bare: list[str], texts: np.ndarray, kind: str) -> bool:
    """Whether 0,85 stands for 0.85 in a column. One in which "1,234" could be either is refused, or "1.234" tokens."""
    unsure = "." if kind == "tokens" else ","
    if not any("," in text or unsure in text for text in bare):
        return False
    decimal = thousands = either = None
    for place, text in enumerate(bare):
        point, comma = POINT.fullmatch(text), COMMA.fullmatch(text)
        if point and not comma:
            thousands = place if thousands is None else thousands
        elif comma and not point:
            decimal = place if decimal is None else decimal
        elif unsure in text and point:
            either = place if either is None else either
    if decimal is not None and thousands is not None:
        clash = f"commas and points used one way, but the column has {texts[thousands]!r} too"
        raise NotANumber(decimal, texts[decimal], clash)
    if either is not None and decimal is None and thousands is None:
        meant = bare[either].replace(unsure, ""), bare[either].replace(",", ".")
        raise NotANumber(either, texts[either], f"{meant[0]} or {meant[1]}, whichever is meant")
    return decimal is not None
