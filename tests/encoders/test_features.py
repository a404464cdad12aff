"""Features of the words: the paper's TF-IDF, and nothing else."""

import pickle
from dataclasses import replace

import numpy as np
import scipy.sparse as sp
from conftest import make_workload
from sklearn.feature_extraction.text import TfidfVectorizer

from saverouter.encoders import ResidualFeatures


def test_residual_features_are_the_papers(own_cache):
    work = replace(make_workload(n=80), vectors=None)
    train, test = work.split(0.5)
    common = dict(max_features=30_000, sublinear_tf=True)
    word = TfidfVectorizer(ngram_range=(1, 2), min_df=2, **common).fit(train.prompts)
    char = TfidfVectorizer(analyzer="char_wb", ngram_range=(3, 5), min_df=3, **common).fit(train.prompts)
    for asked in (test.prompts, train.prompts):
        expected = sp.hstack([word.transform(asked), char.transform(asked)]).toarray()
        made = ResidualFeatures().fit(train.prompts).transform(asked)
        np.testing.assert_allclose(made.toarray(), expected, rtol=1e-15)
    np.testing.assert_array_equal(ResidualFeatures().fit_transform(train.prompts).toarray(), made.toarray())


def test_features_leave_nothing_on_disk_and_no_prompt_in_memory(own_cache):
    prompts = [f"{prompt} secret{row}" for row, prompt in enumerate(make_workload(n=700).prompts)]
    features = ResidualFeatures()
    features.fit_transform(prompts)
    assert not [path for path in own_cache.rglob("*") if path.is_file()]
    assert b"secret123" not in pickle.dumps(features) and b"river" in pickle.dumps(features)


def test_own_vectors_take_the_encoders_place_and_join_the_features(work):
    assert work.queries.embed() is work.vectors
    features = ResidualFeatures().fit(work.prompts).transform(work.prompts, work.vectors)
    np.testing.assert_allclose(features[:, -4:].toarray(), work.vectors)
