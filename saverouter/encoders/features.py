"""The words of a prompt as features: TF-IDF learnt on training prompts, kept on disk by content."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import scipy.sparse as sp

from ..files import atomic_path, cache_folder, digest_of, keeps, only_one
from ._terms import Texts
from ._tfidf import CharacterTfidf, WordTfidf, side_by_side
from .vector_store import keys_of

WORTH_KEEPING = 500  # prompts from which features are kept on disk


class ResidualFeatures:
    """Word (1-2 grams) and character (3-5 grams inside words) TF-IDF side by side, learnt on training prompts.

    Where the queries bring vectors of their own (MMRBench), those are appended.
    """

    def fit(self, prompts: Sequence[str]) -> ResidualFeatures:
        """Remember the training prompts; their words are counted when features are first asked for."""
        self.prompts_ = prompts
        self._key = self._kinds = None
        return self

    def transform(
        self, prompts: Sequence[str], vectors: np.ndarray | None = None, *, keep: bool = True
    ) -> sp.csr_matrix:
        """(n, terms) rows, with the queries' own ``vectors`` appended where they have some.

        They are kept on disk unless ``keep`` is False, or they are few: those are made faster than they are read.
        """
        words = self._from_disk(prompts) if keep and len(prompts) >= WORTH_KEEPING else self.words(prompts)
        if vectors is None:
            return words
        return sp.hstack([words, sp.csr_matrix(vectors.astype(np.float64))], format="csr")

    def words(self, prompts: Sequence[str]) -> sp.csr_matrix:
        """The features of the words alone, computed now."""
        texts = Texts.read(prompts)
        if self._kinds is None:
            known = texts if prompts is self.prompts_ else Texts.read(self.prompts_)
            self._kinds = [WordTfidf(min_texts=2).fit(known), CharacterTfidf(min_texts=3).fit(known)]
        return side_by_side(self._kinds, texts)

    def _from_disk(self, prompts) -> sp.csr_matrix:
        if self._key is None:
            self._key = digest_of("tfidf-1", *keys_of(self.prompts_))
        path = cache_folder("tfidf") / f"{digest_of(self._key, *keys_of(prompts))}.npz"
        with only_one(path):
            if path.is_file():
                return sp.load_npz(path)
            words = self.words(prompts)
            if not keeps():
                return words
            with atomic_path(path) as temporary:
                sp.save_npz(temporary, words, compressed=False)
        return words
