"""Groups of related queries, learnt from inputs alone.

Task labels where a classifier can recognise them from the query's vector, clusters of vectors otherwise,
or one group for all.
"""

from __future__ import annotations

import numpy as np
from sklearn.cluster import MiniBatchKMeans
from sklearn.linear_model import LogisticRegression

from .errors import SaveRouterError

GROUPINGS = ("auto", "labels", "latent", "global")
MAX_LABELS = 128
MIN_TRAIN_ACCURACY = 0.8


class Grouper:
    """Assigns queries to groups 0..G-1.

    ``kind`` is one of "auto", "labels", "latent", "global". "auto" takes labels where there are 2 to 128 of
    them and a logistic classifier recognises at least 80% of the training queries, else clusters.
    After ``fit``: ``train_groups_``, ``n_groups_``, ``kind_`` (what was used), ``accuracy_`` of the classifier.
    """

    def __init__(self, kind: str = "auto", seed: int = 42):
        if kind not in GROUPINGS:
            raise SaveRouterError(f"grouping is {kind!r}; expected one of {', '.join(GROUPINGS)}")
        self.kind = kind
        self.seed = seed

    def fit(self, vectors, tasks, size: int) -> Grouper:
        """Learn groups of ``size`` queries; ``vectors`` is their (size, D) array, or a function that computes it."""
        self.accuracy_ = None
        self._model = None
        if self.kind == "global":
            return self._settle("global", np.zeros(size, int))
        if self.kind in ("auto", "labels") and self._try_labels(vectors, tasks):
            return self
        self._model = self._clusters(_value(vectors))
        return self._settle("latent", self._model.labels_)

    def _settle(self, kind: str, groups) -> Grouper:
        self.kind_ = kind
        self.train_groups_ = np.asarray(groups, dtype=np.int64)
        self.n_groups_ = int(self.train_groups_.max()) + 1
        return self

    def _try_labels(self, vectors, tasks) -> bool:
        if tasks is None:
            if self.kind == "labels":
                raise SaveRouterError("grouping='labels' needs task labels; add a task column or use grouping='latent'")
            return False
        self.labels_, groups = np.unique(np.asarray(tasks, dtype=str), return_inverse=True)
        if len(self.labels_) == 1:  # one task: nothing to recognise
            if self.kind == "auto":
                return False
            self._settle("global", groups)
            return True
        if self.kind == "auto" and len(self.labels_) > MAX_LABELS:
            return False
        features = _value(vectors)
        classifier = LogisticRegression(C=10.0, max_iter=1000, class_weight="balanced", random_state=self.seed)
        classifier.fit(features, groups)
        self.accuracy_ = float((classifier.predict(features) == groups).mean())
        if self.kind == "auto" and self.accuracy_ < MIN_TRAIN_ACCURACY:
            return False
        self._model = classifier
        self._settle("labels", groups)
        return True

    def _clusters(self, vectors) -> MiniBatchKMeans:
        size = int(np.clip(round(np.sqrt(len(vectors)) / 2), 4, 32))
        clusters = MiniBatchKMeans(
            min(size, len(vectors)), n_init=3, batch_size=min(2048, len(vectors)), random_state=self.seed
        )
        return clusters.fit(vectors)

    def predict(self, vectors, size: int) -> np.ndarray:
        """Groups of ``size`` new queries; ``vectors`` as in ``fit``."""
        if self._model is None:
            return np.zeros(size, dtype=np.int64)
        if self.kind_ == "labels":
            return self._recognise(_value(vectors))
        return self._model.predict(_value(vectors)).astype(np.int64)

    def _recognise(self, vectors: np.ndarray) -> np.ndarray:
        """The classifier's ``predict`` without its checks of the input, which cost one query more than the rest."""
        scores = vectors @ self._model.coef_.T + self._model.intercept_
        return (scores[:, 0] > 0).astype(np.int64) if scores.shape[1] == 1 else scores.argmax(axis=1)


def _value(vectors) -> np.ndarray:
    return vectors() if callable(vectors) else vectors
