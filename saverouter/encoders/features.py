"""The words of a prompt as features: TF-IDF learnt on training prompts."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import scipy.sparse as sp

from ._terms import Texts
from ._tfidf import CharacterTfidf, WordTfidf, side_by_side


class ResidualFeatures:
    """Word (1-2 grams) and character (3-5 grams inside words) TF-IDF side by side, learnt on training prompts.

    Where the queries bring vectors of their own (MMRBench), those are appended.

    Features are not kept on disk. They belong to one training split, so that hardly anything asks for them twice, and
    they are large: reading the rows of 12,500 prompts of 150 characters took 21 ms for 216, and 49 MB of disk (of 2,500:
    3 ms for 31, 10 MB). That is a hundred megabytes or more for every half second saved.
    """

    def fit(self, prompts: Sequence[str]) -> ResidualFeatures:
        """Learn the vocabulary: of words in two prompts or more, of characters in three or more."""
        self._learn(Texts.read(prompts))
        return self

    def fit_transform(self, prompts: Sequence[str], vectors: np.ndarray | None = None) -> sp.csr_matrix:
        """Learn the vocabulary and give the features of the same prompts, which are read once."""
        texts = Texts.read(prompts)
        self._learn(texts)
        return _beside(side_by_side(self.kinds_, texts), vectors)

    def transform(self, prompts: Sequence[str], vectors: np.ndarray | None = None) -> sp.csr_matrix:
        """(n, terms) rows, with the queries' own ``vectors`` appended where they have some."""
        return _beside(side_by_side(self.kinds_, Texts.read(prompts)), vectors)

    @property
    def vocabularies(self) -> list[tuple[list[str], np.ndarray]]:
        """The terms in order of the columns and their weights: of words, then of characters. It is all that is learnt."""
        return [(kind.vocabulary_, kind.idf_) for kind in self.kinds_]

    @classmethod
    def of(cls, vocabularies: Sequence[tuple[list[str], np.ndarray]]) -> ResidualFeatures:
        """Features as they were learnt before, from their ``vocabularies``."""
        features = cls()
        features.kinds_ = [kind.restore(*learnt) for kind, learnt in zip(_kinds(), vocabularies, strict=True)]
        return features

    def _learn(self, texts: Texts) -> None:
        self.kinds_ = [kind.fit(texts) for kind in _kinds()]


def _kinds() -> tuple[WordTfidf, CharacterTfidf]:
    return WordTfidf(min_texts=2), CharacterTfidf(min_texts=3)


def _beside(words: sp.csr_matrix, vectors: np.ndarray | None) -> sp.csr_matrix:
    return words if vectors is None else sp.hstack([words, sp.csr_matrix(vectors.astype(np.float64))], format="csr")
