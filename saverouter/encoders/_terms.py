"""Texts as word numbers, words as term numbers, and compiled code that counts both."""

from __future__ import annotations

from array import array
from collections import defaultdict
from dataclasses import dataclass
from functools import cache
from itertools import chain

import numpy as np
from numba import njit

# Position of the only bit set in a word, by the six highest bits of its product with a de Bruijn sequence.
DE_BRUIJN = np.uint64(0x03F79D71B4CB0A89)
LOWEST_BIT = np.zeros(64, dtype=np.int64)
LOWEST_BIT[(np.left_shift(np.uint64(1), np.arange(64, dtype=np.uint64)) * DE_BRUIJN) >> np.uint64(58)] = np.arange(64)


@dataclass(frozen=True)
class Texts:
    """Texts as word numbers: text i is ``words[starts[i]:starts[i + 1]]``; a number is a place in the list ``distinct``."""

    words: np.ndarray
    starts: np.ndarray
    distinct: list[str]

    @classmethod
    def read(cls, texts) -> Texts:
        """Texts in lower case, split at white space."""
        number = numbering()
        words, starts = array("i"), array("q", [0])
        for text in texts:
            words.extend(map(number.__getitem__, text.lower().split()))
            starts.append(len(words))
        return cls(np.frombuffer(words, np.int32), np.frombuffer(starts, np.int64), list(number))


@dataclass(frozen=True)
class Terms:
    """Occurrences of terms: text i has ``items[starts[i]:starts[i + 1]]``, and item j stands for
    ``terms[first[j]:first[j + 1]]``. An item of -1 is none."""

    items: np.ndarray
    starts: np.ndarray
    first: np.ndarray
    terms: np.ndarray

    @property
    def arrays(self) -> tuple[np.ndarray, ...]:
        """The four arrays in the order that compiled code takes them."""
        return self.items, self.starts, self.first, self.terms

    def of(self, column: np.ndarray) -> Terms:
        """The same occurrences with each term numbered anew; those numbered -1 are left out."""
        terms = column[self.terms]
        kept = np.concatenate([[0], np.cumsum(terms >= 0)])
        return Terms(self.items, self.starts, kept[self.first], terms[terms >= 0])

    def totals(self, size: int) -> np.ndarray:
        """How often each term occurs in all texts together, in float64 as in scikit-learn."""
        each = np.bincount(self.items[self.items >= 0], minlength=len(self.first) - 1)
        return np.bincount(self.terms, np.repeat(each, np.diff(self.first)), minlength=size)


def numbering() -> defaultdict:
    """Gives 0, 1, 2, ... to keys in the order in which they are first asked for."""
    number = defaultdict()
    number.default_factory = number.__len__
    return number


def starts_of(lengths, size: int) -> np.ndarray:
    """Where each of ``size`` parts begins, and where the last one ends."""
    starts = np.zeros(size + 1, dtype=np.int64)
    np.cumsum(np.fromiter(lengths, np.int64, size), out=starts[1:])
    return starts


def flat(parts: list[list[int]]) -> tuple[np.ndarray, np.ndarray]:
    """Lists end to end, and where each begins."""
    starts = starts_of(map(len, parts), len(parts))
    return np.fromiter(chain.from_iterable(parts), np.int64, starts[-1]), starts


def in_themselves(single: np.ndarray, pair: np.ndarray, starts: np.ndarray, each: np.ndarray) -> Terms:
    """Occurrences where every item is a term itself; ``each`` is 0, 1, 2, ... up to the number of terms."""
    return Terms(np.column_stack([single, pair]).ravel(), 2 * starts, each, each[:-1])


def tokens_of(texts: Texts, tokens: np.ndarray, first: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The tokens of all texts, given those of each distinct word, and where each text begins."""
    begins = first[texts.words]
    lengths = first[1:][texts.words] - begins
    ends = np.zeros(len(lengths) + 1, dtype=np.int64)
    np.cumsum(lengths, out=ends[1:])
    place = np.arange(ends[-1]) + np.repeat(begins - ends[:-1], lengths)
    return tokens[place], ends[texts.starts]


def pairs_of(tokens: np.ndarray, starts: np.ndarray, size: int) -> np.ndarray:
    """A key for each token and its follower in the text; negative where there is no such pair or a token is unknown."""
    keys = np.full(len(tokens), -1)
    left, right = tokens[:-1], tokens[1:]
    keys[:-1] = np.where((left >= 0) & (right >= 0), left * size + right, -1)
    ends = starts[1:][np.diff(starts) > 0]
    keys[ends - 1] = -1
    return keys


@cache
def one_plus_logs(bits: int) -> np.ndarray:
    """1 + log of 1, 2, 3, ... up to 2**bits."""
    return np.log(np.arange(1, 2**bits + 1, dtype=np.float64)) + 1


@njit(cache=True)
def spread(items, starts, first, terms, size):
    """How many texts have each term, and how many different terms each text has."""
    texts, found = np.zeros(size, dtype=np.int64), np.zeros(len(starts) - 1, dtype=np.int64)
    last = np.full(size, -1, dtype=np.int64)
    for text in range(len(found)):
        for place in range(starts[text], starts[text + 1]):
            item = items[place]
            if item >= 0:
                for at in range(first[item], first[item + 1]):
                    term = terms[at]
                    if last[term] != text:
                        last[term] = text
                        texts[term] += 1
                        found[text] += 1
    return texts, found


@njit(cache=True)
def fill(items, starts, first, terms, sublinear, idf, place, offset, values, columns):
    """Write each text's terms, sorted and scaled to length 1, from its ``place`` on; ``place`` moves to where they end."""
    count = np.zeros(len(idf), dtype=np.int64)
    bits = np.zeros(len(idf) // 64 + 1, dtype=np.uint64)  # the terms that the text has; read in order, they are sorted
    one = np.uint64(1)
    for text in range(len(starts) - 1):
        for position in range(starts[text], starts[text + 1]):
            item = items[position]
            if item >= 0:
                for at in range(first[item], first[item + 1]):
                    term = terms[at]
                    count[term] += 1
                    bits[term >> 6] |= one << np.uint64(term & 63)
        begin = end = place[text]
        length = 0.0
        for block in range(len(bits)):
            left = bits[block]
            while left:
                rest = left & (left - one)
                term = 64 * block + LOWEST_BIT[((left ^ rest) * DE_BRUIJN) >> np.uint64(58)]
                left = rest
                value = sublinear[count[term] - 1] * idf[term]
                values[end], columns[end] = value, term + offset
                length += value * value
                count[term] = 0
                end += 1
            bits[block] = 0
        length = np.sqrt(length)
        for at in range(begin, end):
            values[at] /= length
        place[text] = end
