"""TF-IDF: the same matrix and the same columns as scikit-learn's TfidfVectorizer, whatever the text."""

import pickle

import numpy as np
import pytest
from conftest import make_workload
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.feature_extraction.text import TfidfVectorizer

from saverouter.encoders import _tfidf
from saverouter.encoders._terms import Texts
from saverouter.encoders._tfidf import CharacterTfidf, WordTfidf, side_by_side

KINDS = {
    "words": (WordTfidf, dict(ngram_range=(1, 2))),
    "characters": (CharacterTfidf, dict(analyzer="char_wb", ngram_range=(3, 5))),
}


def same_as_scikit_learn(kind, train, test, min_texts=1, max_terms=30_000):
    ours, options = KINDS[kind]
    fitted = ours(min_texts, max_terms).fit(Texts.read(train))
    found = fitted.transform(Texts.read(test))
    reference = TfidfVectorizer(min_df=min_texts, max_features=max_terms, sublinear_tf=True, **options)
    try:
        expected = reference.fit(train).transform(test)
    except ValueError:  # it refuses an empty vocabulary
        assert fitted.vocabulary_ == [] and found.shape == (len(test), 0)
        return
    assert fitted.vocabulary_ == list(reference.get_feature_names_out())
    expected.sort_indices()
    np.testing.assert_array_equal(found.indptr, expected.indptr)
    np.testing.assert_array_equal(found.indices, expected.indices)
    np.testing.assert_allclose(found.data, expected.data, rtol=1e-15)  # one rounding, where a compiler fuses operations


ALPHABET = st.sampled_from(list("aAbB  \t\n.,-_09éÉßİΣσς中文\u2028\u00a0\x1c\x00\u0307🙂\ud800"))
TEXTS = st.lists(st.text(ALPHABET, max_size=40), min_size=1, max_size=8)


@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=150, deadline=None)
@given(train=TEXTS, test=TEXTS, min_texts=st.integers(1, 3), max_terms=st.sampled_from([3, 10, 30_000]))
def test_any_text(kind, train, test, min_texts, max_terms):
    same_as_scikit_learn(kind, train, test, min_texts, max_terms)


@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=100, deadline=None)
@given(train=st.lists(st.text(max_size=30), min_size=1, max_size=5))
def test_any_character(kind, train):
    same_as_scikit_learn(kind, train, train[::-1])


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("max_terms", [30_000, 200, 50])
def test_a_workload_and_equals_at_the_limit(kind, max_terms):
    """Many terms are equally common, so which of them stay is decided as scikit-learn does."""
    train, test = make_workload(n=400).split(0.5)
    same_as_scikit_learn(kind, train.prompts, test.prompts, 2, max_terms)


SHORT = {"a": [" a "], "ab": [" ab", "ab ", " ab "], "abc": [" ab", "abc", "bc ", " abc", "abc ", " abc "]}


@pytest.mark.parametrize("word, grams", SHORT.items())
def test_short_words_are_taken_whole_once(word, grams):
    assert sorted(CharacterTfidf(1).fit(Texts.read([word])).vocabulary_) == sorted(grams)


def test_kinds_side_by_side_are_their_matrices_beside_each_other():
    texts = Texts.read(make_workload(n=60).prompts)
    kinds = [WordTfidf(2).fit(texts), CharacterTfidf(3).fit(texts)]
    both = side_by_side(kinds, texts)
    np.testing.assert_array_equal(both.toarray(), np.hstack([kind.transform(texts).toarray() for kind in kinds]))
    assert both.has_canonical_format and side_by_side(kinds, Texts.read([])).shape == (0, both.shape[1])


@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=50, deadline=None)
@given(train=TEXTS, test=TEXTS, limit=st.sampled_from([1, 200_000]))
def test_what_is_remembered_is_what_would_be_worked_out(kind, train, test, limit):
    """Words learnt from are remembered from the start; a router read from a file has forgotten them."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(_tfidf, "REMEMBERED", limit)
        fitted = KINDS[kind][0](min_texts=1).fit(Texts.read(train))
        assert len(fitted._memory) == min(len(Texts.read(train).distinct), limit)
        read = pickle.loads(pickle.dumps(fitted))
        assert not read._memory
        for texts in (train, test, train):  # the second time from memory in both
            one, other = fitted.transform(Texts.read(texts)), read.transform(Texts.read(texts))
            np.testing.assert_array_equal(one.toarray(), other.toarray())
