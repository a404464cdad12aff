"""TF-IDF of words and of characters inside words: scikit-learn's matrices, several times faster.

A text is read once, as numbers of its distinct words between white space. Everything else follows from those: tokens lie
inside such a word, and so do the character n-grams of ``char_wb``. Regular expressions and n-grams are thus worked out
once a distinct word, and a text's counts are the sum over its words. ``TfidfVectorizer`` is the tested reference.
"""

from __future__ import annotations

import re
from array import array
from collections import defaultdict
from dataclasses import dataclass
from functools import cache
from itertools import chain

import numpy as np
import pandas as pd
import scipy.sparse as sp
from numba import njit

REMEMBERED = 200_000  # words, some tens of megabytes
TOKEN = re.compile(r"(?u)\b\w\w+\b")  # scikit-learn's default: runs of two or more word characters

# Position of the only bit set in a word, by the six highest bits of its product with a de Bruijn sequence.
DE_BRUIJN = np.uint64(0x03F79D71B4CB0A89)
LOWEST_BIT = np.zeros(64, dtype=np.int64)
LOWEST_BIT[(np.left_shift(np.uint64(1), np.arange(64, dtype=np.uint64)) * DE_BRUIJN) >> np.uint64(58)] = np.arange(64)


@dataclass(frozen=True)
class Texts:
    """Texts as numbers: those of text i are ``words[starts[i]:starts[i + 1]]``, places in the list ``distinct``."""

    words: np.ndarray
    starts: np.ndarray
    distinct: list[str]

    @classmethod
    def read(cls, texts) -> Texts:
        number = _numbering()
        words, starts = array("i"), array("q", [0])
        for text in texts:
            words.extend(map(number.__getitem__, text.lower().split()))
            starts.append(len(words))
        return cls(np.frombuffer(words, np.int32), np.frombuffer(starts, np.int64), list(number))


@dataclass(frozen=True)
class Terms:
    """Occurrences of terms: text i has the ``items[starts[i]:starts[i + 1]]``, -1 being none, and item j stands for the
    ``terms[first[j]:first[j + 1]]``."""

    items: np.ndarray
    starts: np.ndarray
    first: np.ndarray
    terms: np.ndarray

    def of(self, column: np.ndarray) -> Terms:
        """The same occurrences with each term numbered anew; those numbered -1 are left out."""
        terms = column[self.terms]
        kept = np.concatenate([[0], np.cumsum(terms >= 0)])
        return Terms(self.items, self.starts, kept[self.first], terms[terms >= 0])

    def totals(self, size: int) -> np.ndarray:
        """How often each term occurs in all texts together, as the float64 that scikit-learn sums to."""
        each = np.bincount(self.items[self.items >= 0], minlength=len(self.first) - 1)
        return np.bincount(self.terms, np.repeat(each, np.diff(self.first)), minlength=size)


class Tfidf:
    """Sublinear TF-IDF with unit rows, of the ``max_terms`` commonest terms that ``min_texts`` texts or more have.

    A subclass says what the terms are: ``_all(texts)`` numbers every term, names them, and tells the terms of each distinct
    word once the columns are settled; ``_known(texts)`` finds those of the vocabulary. After ``fit``: ``vocabulary_`` in order of the columns, ``idf_``.
    """

    def __init__(self, min_texts: int, max_terms: int = 30_000):
        self.min_texts, self.max_terms = min_texts, max_terms
        self._memory: dict[str, bytes] = {}

    def __getstate__(self):
        return {**self.__dict__, "_memory": {}}

    def _recalled(self, words: list[str], work_out) -> tuple[np.ndarray, np.ndarray]:
        """The numbers ``work_out(word)`` of every word end to end, and where each word's begin.

        They come from memory where a word was asked for before, as most words of a prompt were; bytes are the form that is
        quickest to make and to join.
        """
        memory = self._memory
        if len(memory) > REMEMBERED:
            memory.clear()
        parts = list(map(memory.get, words))
        if None in parts:
            for place, part in enumerate(parts):
                if part is None:
                    numbers = array("q", work_out(words[place]))
                    parts[place] = memory[words[place]] = numbers.tobytes()
        starts = _starts(map(len, parts), len(parts))
        return np.frombuffer(b"".join(parts), np.int64), starts // 8

    def fit(self, texts: Texts) -> Tfidf:
        found, name, recall = self._all(texts)
        size = int(found.terms.max(initial=-1)) + 1
        totals = found.totals(size)
        # A term of two texts occurs twice, so that rare terms, most of them, are dropped before texts are counted.
        often = np.flatnonzero(totals >= self.min_texts)
        texts_with, _ = _spread(*_arrays(found.of(_places(often, size))), len(often))
        often, texts_with = (kept[texts_with >= self.min_texts] for kept in (often, texts_with))
        names = name(often)
        order = np.array(sorted(range(len(names)), key=names.__getitem__), dtype=np.int64)
        if len(order) > self.max_terms:  # the very expression of scikit-learn: it decides between equals
            order = order[np.sort((-totals[often[order]]).argsort()[: self.max_terms])]
        self.vocabulary_ = [names[place] for place in order]
        self.idf_ = np.log(len(texts.starts) / (texts_with[order] + 1.0)) + 1
        self._index()
        # What words mean is known by now for all that were learnt from.
        numbers, first = recall(_places(often[order], size))
        joined, starts = numbers.tobytes(), (8 * first[: REMEMBERED + 1]).tolist()
        self._memory = {
            word: joined[start:end] for word, start, end in zip(texts.distinct, starts, starts[1:], strict=False)
        }
        return self

    def transform(self, texts: Texts) -> sp.csr_matrix:
        """(n, terms) float64 rows of length 1, or 0 for a text without a known term."""
        return side_by_side([self], texts)


def side_by_side(kinds: list[Tfidf], texts: Texts) -> sp.csr_matrix:
    """The matrices of several kinds of terms beside each other, written once into their final place."""
    found = [_arrays(kind._known(texts)) for kind in kinds]
    sizes = [_spread(*terms, len(kind.idf_))[1] for kind, terms in zip(kinds, found, strict=True)]
    ends = np.cumsum(np.sum(sizes, axis=0, dtype=np.int64)) if kinds else np.zeros(len(texts.starts) - 1, np.int64)
    starts = np.concatenate([[0], ends])
    values, columns = np.empty(starts[-1]), np.empty(starts[-1], dtype=np.int32)
    place, width = starts[:-1].copy(), 0
    # Logarithms of all counts that can occur: nothing occurs more often in a text than the longest has items.
    for kind, terms in zip(kinds, found, strict=True):
        longest = int(np.diff(terms[1]).max(initial=0)) * int(np.diff(terms[2]).max(initial=0))
        sublinear = _sublinear(longest.bit_length())
        _fill(*terms, sublinear, kind.idf_, place, width, values, columns)
        width += len(kind.idf_)
    if starts[-1] <= np.iinfo(np.int32).max:
        starts = starts.astype(np.int32)
    rows = sp.csr_matrix((values, columns, starts), shape=(len(ends), width))
    rows.has_canonical_format = True
    return rows


class WordTfidf(Tfidf):
    """Single tokens and pairs of neighbours: ``TfidfVectorizer(ngram_range=(1, 2))``."""

    def _all(self, texts):
        number = _numbering()
        found = _flat([[number[token] for token in TOKEN.findall(word)] for word in texts.distinct])
        tokens, starts = _tokens(texts, *found)
        token_names, size = list(number), len(number)
        pair, distinct = pd.factorize(_pairs(tokens, starts, size))
        pair += size
        if len(distinct) and distinct.min() < 0:  # the code of no pair
            nothing = int(np.flatnonzero(distinct < 0)[0]) + size
            pair[pair == nothing] = -1

        def name(terms):
            keys = distinct[terms[terms >= size] - size]
            pairs = (f"{token_names[a]} {token_names[b]}" for a, b in zip(*np.divmod(keys, max(size, 1)), strict=True))
            return [token_names[term] for term in terms[terms < size]] + list(pairs)

        def recall(column):
            numbers = np.fromiter((self._token.get(token, -1) for token in token_names), np.int64, size)
            return numbers[found[0]], found[1]

        return _in_themselves(tokens, pair, starts, np.arange(size + len(distinct) + 1)), name, recall

    def _index(self):
        self._token = _numbering()
        single, pairs = [], []
        for column, term in enumerate(self.vocabulary_):
            parts = [self._token[token] for token in term.split(" ")]
            (single if len(parts) == 1 else pairs).append((*parts, column))
        self._token.default_factory = None
        size = len(self._token)
        self._single = np.full(size + 1, -1)  # the last place serves unknown tokens, numbered -1
        for token, column in single:
            self._single[token] = column
        keys = np.array([a * size + b for a, b, _ in pairs], dtype=np.int64)
        order = np.argsort(keys)
        self._keys = keys[order]
        self._columns = np.array([column for *_, column in pairs], dtype=np.int64)[order]
        self._each = np.arange(len(self.vocabulary_) + 1)

    def _known(self, texts):
        number = self._token
        found = self._recalled(texts.distinct, lambda word: [number.get(token, -1) for token in TOKEN.findall(word)])
        tokens, starts = _tokens(texts, *found)
        pair = np.full(len(tokens), -1)
        if len(self._keys):
            keys = _pairs(tokens, starts, len(self._token))
            asked = np.flatnonzero(keys >= 0)
            place = np.minimum(np.searchsorted(self._keys, keys[asked]), len(self._keys) - 1)
            pair[asked] = np.where(self._keys[place] == keys[asked], self._columns[place], -1)
        return _in_themselves(self._single[tokens], pair, starts, self._each)


class CharacterTfidf(Tfidf):
    """3 to 5 characters inside a word padded by spaces: ``TfidfVectorizer(analyzer="char_wb", ngram_range=(3, 5))``."""

    def _all(self, texts):
        number = _numbering()
        terms, first = _flat([[number[gram] for gram in _ngrams(word)] for word in texts.distinct])
        names, found = list(number), Terms(texts.words, texts.starts, first, terms)

        def recall(column):
            kept = found.of(column)
            return kept.terms, kept.first

        return found, lambda terms: [names[term] for term in terms], recall

    def _index(self):
        self._column = {term: column for column, term in enumerate(self.vocabulary_)}

    def _known(self, texts):
        column = self._column.get
        terms, first = self._recalled(
            texts.distinct, lambda word: [place for place in map(column, _ngrams(word)) if place is not None]
        )
        return Terms(texts.words, texts.starts, first, terms)


@cache
def _sublinear(bits: int) -> np.ndarray:
    """1 + log of 1, 2, 3, ... up to any number of so many bits."""
    return np.log(np.arange(1, 2**bits + 1, dtype=np.float64)) + 1


def _ngrams(word: str) -> list[str]:
    """A padded word that is no longer than n is taken whole, once, and no longer n is tried."""
    padded = f" {word} "
    grams = [padded[i : i + 3] for i in range(len(padded) - 2)]
    if len(padded) > 3:
        grams += [padded[i : i + 4] for i in range(len(padded) - 3)]
    if len(padded) > 4:
        grams += [padded[i : i + 5] for i in range(len(padded) - 4)]
    return grams


def _numbering() -> defaultdict:
    """Gives 0, 1, 2, ... to keys in the order in which they are first asked for."""
    number = defaultdict()
    number.default_factory = number.__len__
    return number


def _places(kept: np.ndarray, size: int) -> np.ndarray:
    column = np.full(size, -1)
    column[kept] = np.arange(len(kept))
    return column


def _starts(lengths, size: int) -> np.ndarray:
    starts = np.zeros(size + 1, dtype=np.int64)
    np.cumsum(np.fromiter(lengths, np.int64, size), out=starts[1:])
    return starts


def _flat(parts: list[list[int]]) -> tuple[np.ndarray, np.ndarray]:
    """Lists end to end, and where each begins."""
    starts = _starts(map(len, parts), len(parts))
    return np.fromiter(chain.from_iterable(parts), np.int64, starts[-1]), starts


def _in_themselves(single: np.ndarray, pair: np.ndarray, starts: np.ndarray, each: np.ndarray) -> Terms:
    """Occurrences that are terms already; ``each`` counts from 0 to the number of terms."""
    return Terms(np.column_stack([single, pair]).ravel(), 2 * starts, each, each[:-1])


def _tokens(texts: Texts, tokens: np.ndarray, first: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The tokens of all texts, given those of each distinct word, and where each text begins."""
    begins = first[texts.words]
    lengths = first[1:][texts.words] - begins
    ends = np.zeros(len(lengths) + 1, dtype=np.int64)
    np.cumsum(lengths, out=ends[1:])
    place = np.arange(ends[-1]) + np.repeat(begins - ends[:-1], lengths)
    return tokens[place], ends[texts.starts]


def _pairs(tokens: np.ndarray, starts: np.ndarray, size: int) -> np.ndarray:
    """A key for each token and its follower in the text; negative where there is no such pair or a token is unknown."""
    keys = np.full(len(tokens), -1)
    left, right = tokens[:-1], tokens[1:]
    keys[:-1] = np.where((left >= 0) & (right >= 0), left * size + right, -1)
    ends = starts[1:][np.diff(starts) > 0]
    keys[ends - 1] = -1
    return keys


def _arrays(found: Terms) -> tuple[np.ndarray, ...]:
    return found.items, found.starts, found.first, found.terms


@njit(cache=True)
def _spread(items, starts, first, terms, size):
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
def _fill(items, starts, first, terms, sublinear, idf, place, offset, values, columns):
    """Write each text's terms, sorted and weighted to length 1, from ``place`` on, which moves to where they end."""
    count = np.zeros(len(idf), dtype=np.int64)
    bits = np.zeros(len(idf) // 64 + 1, dtype=np.uint64)  # which terms the text has: read in order, that sorts them
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
