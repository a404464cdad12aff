"""TF-IDF of words and of characters inside words: scikit-learn's matrices, several times faster.

A text is read once, as numbers of its words between white space. Tokens lie inside such a word, and so do the character
n-grams of ``char_wb``. Regular expressions and n-grams are therefore worked out once per distinct word, and a text's
counts are the sum over its words. ``TfidfVectorizer`` is the tested reference.
"""

from __future__ import annotations

import re
from array import array

import numpy as np
import pandas as pd
import scipy.sparse as sp

from ..errors import SaveRouterError
from ._terms import (
    Terms,
    Texts,
    fill,
    flat,
    in_themselves,
    numbering,
    one_plus_logs,
    pairs_of,
    spread,
    starts_of,
    tokens_of,
)

REMEMBERED = 200_000  # words, some tens of megabytes
TOKEN = re.compile(r"(?u)\b\w\w+\b")  # scikit-learn's default: runs of two or more word characters


class Tfidf:
    """Sublinear TF-IDF with unit rows, of the ``max_terms`` commonest terms that at least ``min_texts`` texts have.

    A subclass says what the terms are. ``_all(texts)`` numbers and names every term, and tells what each distinct word
    stands for once the columns are settled. ``_known(texts)`` finds the terms of the vocabulary. After ``fit``:
    ``vocabulary_`` in order of the columns, ``idf_``.
    """

    def __init__(self, min_texts: int, max_terms: int = 30_000):
        self.min_texts, self.max_terms = min_texts, max_terms
        self._memory: dict[str, bytes] = {}

    def __getstate__(self):
        return {**self.__dict__, "_memory": {}}

    def _recalled(self, words: list[str], work_out) -> tuple[np.ndarray, np.ndarray]:
        """The numbers ``work_out(word)`` of every word end to end, and where each word's begin.

        A word that was asked for before, as most words of a prompt were, comes from memory. It is kept as bytes, which are
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
        starts = starts_of(map(len, parts), len(parts))
        return np.frombuffer(b"".join(parts), np.int64), starts // 8

    def fit(self, texts: Texts) -> Tfidf:
        """Settle the vocabulary and the weight of each term."""
        found, name, recall = self._all(texts)
        size = int(found.terms.max(initial=-1)) + 1
        totals = found.totals(size)
        # A term of two texts occurs at least twice, so most terms, the rare ones, are dropped before texts are counted.
        often = np.flatnonzero(totals >= self.min_texts)
        texts_with, _ = spread(*found.of(_places(often, size)).arrays, len(often))
        often, texts_with = (kept[texts_with >= self.min_texts] for kept in (often, texts_with))
        names = name(often)
        order = np.array(sorted(range(len(names)), key=names.__getitem__), dtype=np.int64)
        if len(order) > self.max_terms:  # scikit-learn's own expression, which decides between equals
            order = order[np.sort((-totals[often[order]]).argsort()[: self.max_terms])]
        self.vocabulary_ = [names[place] for place in order]
        self.idf_ = np.log(len(texts.starts) / (texts_with[order] + 1.0)) + 1
        self._index()
        # The terms of every training word are known by now, and remembered.
        numbers, first = recall(_places(often[order], size))
        joined, starts = numbers.tobytes(), (8 * first[: REMEMBERED + 1]).tolist()
        self._memory = {
            word: joined[start:end] for word, start, end in zip(texts.distinct, starts, starts[1:], strict=False)
        }
        return self

    def restore(self, vocabulary: list[str], idf: np.ndarray) -> Tfidf:
        """As after ``fit``, from what was learnt then."""
        longest = 2 if isinstance(self, WordTfidf) else np.inf
        if any(len(term.split(" ")) > longest for term in vocabulary) or len(set(vocabulary)) < len(vocabulary):
            raise SaveRouterError("a vocabulary repeats a term or has one of more than two words; fit the router again")
        self.vocabulary_, self.idf_ = list(vocabulary), np.array(idf, dtype=np.float64)
        self._index()
        return self

    def transform(self, texts: Texts) -> sp.csr_matrix:
        """(n, terms) float64 rows of length 1, or 0 for a text without a known term."""
        return side_by_side([self], texts)


def side_by_side(kinds: list[Tfidf], texts: Texts) -> sp.csr_matrix:
    """The matrices of several kinds of terms beside each other, written once into their final place."""
    found = [kind._known(texts).arrays for kind in kinds]
    sizes = [spread(*terms, len(kind.idf_))[1] for kind, terms in zip(kinds, found, strict=True)]
    ends = np.cumsum(np.sum(sizes, axis=0, dtype=np.int64)) if kinds else np.zeros(len(texts.starts) - 1, np.int64)
    starts = np.concatenate([[0], ends])
    values, columns = np.empty(starts[-1]), np.empty(starts[-1], dtype=np.int32)
    place, width = starts[:-1].copy(), 0
    # Logarithms of all counts that can occur: at most the items of the longest text times the terms of an item.
    for kind, terms in zip(kinds, found, strict=True):
        longest = int(np.diff(terms[1]).max(initial=0)) * int(np.diff(terms[2]).max(initial=0))
        fill(*terms, one_plus_logs(longest.bit_length()), kind.idf_, place, width, values, columns)
        width += len(kind.idf_)
    if starts[-1] <= np.iinfo(np.int32).max:
        starts = starts.astype(np.int32)
    rows = sp.csr_matrix((values, columns, starts), shape=(len(ends), width))
    rows.has_canonical_format = True
    return rows


class WordTfidf(Tfidf):
    """Single tokens and pairs of neighbours: ``TfidfVectorizer(ngram_range=(1, 2))``."""

    def _all(self, texts):
        number = numbering()
        found = flat([[number[token] for token in TOKEN.findall(word)] for word in texts.distinct])
        tokens, starts = tokens_of(texts, *found)
        token_names, size = list(number), len(number)
        pair, distinct = pd.factorize(pairs_of(tokens, starts, size))
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

        return in_themselves(tokens, pair, starts, np.arange(size + len(distinct) + 1)), name, recall

    def _index(self):
        self._token = numbering()
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
        tokens, starts = tokens_of(texts, *found)
        pair = np.full(len(tokens), -1)
        if len(self._keys):
            keys = pairs_of(tokens, starts, len(self._token))
            asked = np.flatnonzero(keys >= 0)
            place = np.minimum(np.searchsorted(self._keys, keys[asked]), len(self._keys) - 1)
            pair[asked] = np.where(self._keys[place] == keys[asked], self._columns[place], -1)
        return in_themselves(self._single[tokens], pair, starts, self._each)


class CharacterTfidf(Tfidf):
    """3 to 5 characters inside a word padded by spaces: ``TfidfVectorizer(analyzer="char_wb", ngram_range=(3, 5))``."""

    def _all(self, texts):
        number = numbering()
        terms, first = flat([[number[gram] for gram in _ngrams(word)] for word in texts.distinct])
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


def _ngrams(word: str) -> list[str]:
    """3 to 5 characters of the padded word. A word no longer than n is taken whole, once, and no larger n is tried."""
    padded = f" {word} "
    grams = [padded[i : i + 3] for i in range(len(padded) - 2)]
    if len(padded) > 3:
        grams += [padded[i : i + 4] for i in range(len(padded) - 3)]
    if len(padded) > 4:
        grams += [padded[i : i + 5] for i in range(len(padded) - 4)]
    return grams


def _places(kept: np.ndarray, size: int) -> np.ndarray:
    column = np.full(size, -1)
    column[kept] = np.arange(len(kept))
    return column
