"""Features of the words: the paper's TF-IDF, kept by content."""

from dataclasses import replace

import numpy as np
import scipy.sparse as sp
from conftest import make_workload
from sklearn.feature_extraction.text import TfidfVectorizer

from saverouter.encoders import ResidualFeatures
from saverouter.encoders import features as features_module


def test_residual_features_are_the_papers_and_come_back_from_the_cache(own_cache, monkeypatch):
    work = replace(make_workload(n=80), vectors=None)
    train, test = work.split(0.5)
    common = dict(max_features=30_000, sublinear_tf=True)
    word = TfidfVectorizer(ngram_range=(1, 2), min_df=2, **common).fit(train.prompts)
    char = TfidfVectorizer(analyzer="char_wb", ngram_range=(3, 5), min_df=3, **common).fit(train.prompts)
    expected = sp.hstack([word.transform(test.prompts), char.transform(test.prompts)]).toarray()
    monkeypatch.setattr(features_module, "WORTH_KEEPING", 40)
    first = ResidualFeatures().fit(train.prompts).transform(test.prompts)
    np.testing.assert_allclose(first.toarray(), expected, rtol=1e-15)
    expected = first.toarray()
    monkeypatch.setattr(features_module, "side_by_side", None)  # nothing is computed a second time
    again = ResidualFeatures().fit(train.prompts).transform(test.prompts)
    np.testing.assert_array_equal(again.toarray(), expected)


def test_a_few_prompts_leave_nothing_on_disk(own_cache):
    train, test = replace(make_workload(n=80), vectors=None).split(0.5)
    ResidualFeatures().fit(train.prompts).transform(test.prompts)
    assert not list(own_cache.rglob("*.npz"))


def test_own_vectors_take_the_encoders_place_and_join_the_features(work):
    assert work.queries.embed() is work.vectors
    features = ResidualFeatures().fit(work.prompts).transform(work.prompts, work.vectors)
    np.testing.assert_allclose(features[:, -4:].toarray(), work.vectors)
