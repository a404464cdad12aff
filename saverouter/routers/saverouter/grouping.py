"""Groups of related queries, learnt from inputs alone.

Task labels where a classifier can recognise them from the query's vector, clusters of vectors otherwise,
or one group for all.
"""

from __future__ import annotations

import numpy as np
from sklearn.cluster import MiniBatchKMeans
from sklearn.linear_model import LogisticRegression

from ...errors import SaveRouterError, one_of
from ...workloads import Queries

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
        one_of("grouping", kind, GROUPINGS)
        self.kind = kind
        self.seed = seed

    def fit(self, queries: Queries) -> Grouper:
        """Learn groups of training queries."""
        self.accuracy_ = None
        self._model = None
        if self.kind == "global":
            return self._settle("global", np.zeros(len(queries), int))
        if self.kind in ("auto", "labels") and self._try_labels(queries):
            return self
        self._model = self._clusters(queries.embed())
        return self._settle("latent", self._model.labels_, self._model.n_clusters)  # of few queries, some may be empty

    def _settle(self, kind: str, groups, size: int = 0) -> Grouper:
        self.kind_ = kind
        self.train_groups_ = np.asarray(groups, dtype=np.int64)
        self.n_groups_ = max(size, int(self.train_groups_.max()) + 1)
        return self

    def _try_labels(self, queries: Queries) -> bool:
        if queries.tasks is None:
            if self.kind == "labels":
                raise SaveRouterError("grouping='labels' needs task labels; add a task column or use grouping='latent'")
            return False
        self.labels_, groups = np.unique(np.asarray(queries.tasks, dtype=str), return_inverse=True)
        if len(self.labels_) == 1:  # one task: nothing to recognise
            if self.kind == "auto":
                return False
            self._settle("global", groups)
            return True
        if self.kind == "auto" and len(self.labels_) > MAX_LABELS:
            return False
        vectors = queries.embed()
        classifier = LogisticRegression(C=10.0, max_iter=1000, class_weight="balanced", random_state=self.seed)
        classifier.fit(vectors, groups)
        self.accuracy_ = float((classifier.predict(vectors) == groups).mean())
        if self.kind == "auto" and self.accuracy_ < MIN_TRAIN_ACCURACY:
            return False
        classifier.coef_ = np.ascontiguousarray(classifier.coef_)  # as it is saved: another order may round otherwise
        self._model = classifier
        self._settle("labels", groups)
        return True

    def _clusters(self, vectors) -> MiniBatchKMeans:
        size = int(np.clip(round(np.sqrt(len(vectors)) / 2), 4, 32))
        clusters = MiniBatchKMeans(
            min(size, len(vectors)), n_init=3, batch_size=min(2048, len(vectors)), random_state=self.seed
        )
        return clusters.fit(vectors)

    def state(self) -> dict:
        """What recognising groups needs: no group of a training query."""
        state = {"groups": self.n_groups_, "groups_kind": self.kind_, "groups_accuracy": self.accuracy_}
        state["group_names"] = [self.name(group) for group in range(self.n_groups_)]
        if self._model is not None and self.kind_ == "latent":
            state["group_centres"] = self._model.cluster_centers_
        elif self._model is not None:
            state |= {"group_weights": self._model.coef_, "group_intercepts": self._model.intercept_}
        return state

    def restore(self, state, width: int) -> Grouper:
        """As after ``fit`` on vectors of that ``width``, without the training queries' groups."""
        self.n_groups_ = size = state.whole("groups", least=1)
        self.kind_ = state.word("groups_kind", GROUPINGS[1:])
        self.accuracy_, names, self._model = state.number("groups_accuracy"), state.texts("group_names", size), None
        if self.kind_ == "labels":
            self.labels_, rows = np.array(names), 1 if size == 2 else size
            self._model = LogisticRegression()
            self._model.coef_ = state.array("group_weights", rows, width)
            self._model.intercept_ = state.array("group_intercepts", rows)
        elif self.kind_ == "latent":
            self._model = MiniBatchKMeans(size)
            self._model.cluster_centers_ = state.array("group_centres", size, width)
            self._model._n_threads = 1  # set by scikit-learn's fit; its predict asks for it
        elif size != 1:
            state.refuse(f"has {size} groups of kind 'global'")
        return self

    def name(self, group: int) -> str:
        """What to call a group: its task, where it is one."""
        return (
            str(self.labels_[group]) if self.kind_ == "labels" else "all" if self.n_groups_ == 1 else f"cluster {group}"
        )

    def predict(self, queries: Queries) -> np.ndarray:
        """Groups of new queries; a single group needs no vectors."""
        if self._model is None:
            return np.zeros(len(queries), dtype=np.int64)
        return self.recognise(queries.embed())

    def recognise(self, vectors: np.ndarray) -> np.ndarray:
        """Groups of queries by their vectors; faster than the classifier's own ``predict``, which checks its input."""
        if self._model is None:
            return np.zeros(len(vectors), dtype=np.int64)
        if self.kind_ == "latent":
            return self._model.predict(vectors).astype(np.int64)
        scores = vectors @ self._model.coef_.T + self._model.intercept_
        return (scores[:, 0] > 0).astype(np.int64) if scores.shape[1] == 1 else scores.argmax(axis=1)
