"""Gradient-boosted trees whose splits are drawn without the data; only their leaves are learned."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar, Final, Self, final

import numpy as np
from numpy.typing import NDArray
from scipy.special import softmax
from sklearn.base import RegressorMixin
from sklearn.utils.validation import check_is_fitted

from sfumato import _check
from sfumato.learning.estimators.private_estimator import (
    PrivateClassifier,
    PrivateEstimator,
    box,
    encoded,
    plain_draws,
    scaled,
)
from sfumato.learning.estimators.vector_sums import SumSpecification, VectorSum
from sfumato.numerics.randomness.source import RandomSource

__all__ = ["GradientBoostingClassifier", "GradientBoostingRegressor"]

_Array = NDArray[np.float64]

_DEEPEST: Final = 12


@final
@dataclass(frozen=True, slots=True)
class _Tree:
    """Splits of each level, the same for all nodes of it, and a value for each leaf."""

    features: NDArray[np.int64]
    thresholds: _Array
    values: _Array

    @staticmethod
    def leaves(positions: _Array, features: NDArray[np.int64], thresholds: _Array) -> NDArray[np.int64]:
        """Return the leaf of each row."""
        above = positions[:, features] > thresholds
        return np.asarray(above @ (1 << np.arange(len(features))), np.int64)

    def scores(self, positions: _Array) -> _Array:
        """Return what the tree adds to each row's scores."""
        return np.asarray(self.values[self.leaves(positions, self.features, self.thresholds)])


@dataclass(eq=False, repr=False, kw_only=True)
class _Boosting(PrivateEstimator):
    """What both models share: trees that are drawn, and leaves that are summed."""

    n_estimators: int = 150
    depth: int = 5
    learning_rate: float = 0.3

    def _parts(self, scores: int) -> list[SumSpecification]:
        """Return the sums of all trees: gradients, and a curvature that is as large."""
        trees = _check.integer("n_estimators", self.n_estimators, minimum=1)
        depth = _check.integer("depth", self.depth, minimum=1)
        if depth > _DEEPEST:
            _check.refuse("depth", f"be at most {_DEEPEST}", depth, "use more trees instead")
        _check.positive("learning_rate", self.learning_rate)
        return [SumSpecification(norm=math.sqrt(2.0), entries=scores + 1, times=trees)]

    def _boost(
        self, positions: _Array, gradients: Any, scores: int, total: VectorSum, source: RandomSource
    ) -> None:
        """Grow the trees one after another.

        ``gradients`` maps scores to rows of gradients of an L2 norm of at most 1 and a weight of at most 1.
        """
        draws = plain_draws(source)
        current = np.zeros((len(positions), scores))
        self.trees_: list[_Tree] = []
        for _ in range(self.n_estimators):
            features = draws.integers(0, positions.shape[1], self.depth)
            thresholds = draws.uniform(-1, 1, self.depth)
            leaves = _Tree.leaves(positions, features, thresholds)
            found = total.release(gradients(current), source, leaves, 1 << self.depth)
            # Noise of so many deviations stands for as many rows that pull to 0.
            weight = np.maximum(found[:, scores:], 0.0) + 2 * total.deviation() + 1e-3
            tree = _Tree(features, thresholds, -self.learning_rate * found[:, :scores] / weight)
            current += tree.scores(positions)
            self.trees_.append(tree)

    def _scores(self, X: Any) -> _Array:
        check_is_fitted(self)
        positions = scaled(self._table(X, reset=False), self._bounds)
        return np.asarray(sum(tree.scores(positions) for tree in self.trees_))


@dataclass(eq=False, repr=False, kw_only=True)
class GradientBoostingClassifier(_Boosting, PrivateClassifier):
    r"""Gradient-boosted trees for classes, with splits that are drawn without the data.

    Parameters
    ----------
    epsilon, delta : float
        The guarantee of one fit; delta must be positive.
    bounds : pair of float or of arrays
        Lower and upper bounds of the features, public; what lies beyond is clamped. Splits are uniform in
        them, so they should be close.
    classes : sequence, optional
        The labels there are, public. Rows with another one are left out. Unless given they are read off the
        data, with a warning.
    n_estimators : int
        How many trees. The noise of each grows with their square root.
    depth : int
        Of each tree: all nodes of one level have one split.
    learning_rate : float
    ledger : Ledger, optional
        Charged before the data is read.
    random_state : int, RandomState or None
        None draws from the operating system's entropy; anything else only simulates.

    Attributes
    ----------
    classes_ : array of shape (n_classes,)
    privacy_loss_, receipt_, simulated_
        See `PrivateEstimator`.

    Notes
    -----
    Guarantee: (epsilon, delta)-DP under add/remove of one row: each tree releases, for each leaf, the sum of
    its rows' gradients, scaled to a norm of at most 1, and of their weights, also at most 1
    (`VectorSum`); a row is in one leaf of each tree. Splits do not depend on the data.

    References
    ----------
    Bun, Steinke (2016), and Dong, Roth, Su (2022), composition; Nori, Caruana, Bu, Shen, Kulkarni, "Accuracy,
    interpretability, and differential privacy via explainable boosting" (ICML 2021), random splits.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(0, 1, size=(5000, 2))
    >>> y = X[:, 0] > 0.4
    >>> model = GradientBoostingClassifier(bounds=(0, 1), classes=[False, True], random_state=1).fit(X, y)
    >>> bool(model.score(X, y) > 0.9)
    True
    """

    _charged_as: ClassVar[str] = "GradientBoostingClassifier"

    def fit(self, X: Any, y: Any) -> Self:
        """Learn the leaves.

        Parameters
        ----------
        X : array of shape (n, n_features)
        y : array of shape (n,)

        Returns
        -------
        GradientBoostingClassifier
        """
        X, y, finite = self._labelled(X, y, numeric=False)
        self._bounds = box("bounds", self.bounds, X.shape[1])
        self.classes_ = self._classes(y[finite])
        scores = max(1, len(self.classes_))
        (total,), source = self._pay(self._parts(scores))
        labels = encoded(y, self.classes_, finite)
        positions, labels = scaled(X, self._bounds)[labels >= 0], labels[labels >= 0]

        def gradients(current: _Array) -> _Array:
            misses = softmax(current, axis=1)
            weight = (misses * (1 - misses)).max(axis=1, initial=0.0) * 4  # from 0 to 1
            misses[np.arange(len(labels)), labels] -= 1
            return np.concatenate([misses / math.sqrt(2), weight[:, None]], axis=1)

        self._boost(positions, gradients, scores, total, source)
        return self

    def decision_function(self, X: Any) -> _Array:
        """Return the scores: of the second class of two, else of each class.

        Parameters
        ----------
        X : array of shape (n, n_features)

        Returns
        -------
        array of shape (n,) or (n, n_classes)
        """
        raw = self._scores(X)
        return np.asarray(raw[:, 1] - raw[:, 0] if raw.shape[1] == 2 else raw)


@dataclass(eq=False, repr=False, kw_only=True)
class GradientBoostingRegressor(RegressorMixin, _Boosting):
    r"""Gradient-boosted trees for a number, with splits that are drawn without the data.

    Parameters
    ----------
    epsilon, delta : float
        The guarantee of one fit; delta must be positive.
    bounds : pair of float or of arrays
        Lower and upper bounds of the features, public; what lies beyond is clamped. Splits are uniform in
        them, so they should be close.
    y_bounds : pair of float
        Bounds of the response, public.
    n_estimators, depth, learning_rate, ledger, random_state
        As in `GradientBoostingClassifier`.

    Attributes
    ----------
    privacy_loss_, receipt_, simulated_
        See `PrivateEstimator`.

    Notes
    -----
    Guarantee: that of `GradientBoostingClassifier`; the gradient is the residual, in positions of the
    response, clamped to one half width.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(0, 1, size=(20000, 2))
    >>> model = GradientBoostingRegressor(bounds=(0, 1), y_bounds=(0, 1), random_state=1).fit(X, X[:, 0])
    >>> bool(model.score(X, X[:, 0]) > 0.7)
    True
    """

    y_bounds: Any = None

    _charged_as: ClassVar[str] = "GradientBoostingRegressor"

    def fit(self, X: Any, y: Any) -> Self:
        """Learn the leaves.

        Parameters
        ----------
        X : array of shape (n, n_features)
        y : array of shape (n,)

        Returns
        -------
        GradientBoostingRegressor
        """
        X, y, _ = self._labelled(X, y, numeric=True)
        self._bounds = box("bounds", self.bounds, X.shape[1])
        self._y_bounds = box("y_bounds", self.y_bounds, 1)
        (total,), source = self._pay(self._parts(1))
        answer = scaled(np.asarray(y, np.float64)[:, None], self._y_bounds)

        def gradients(current: _Array) -> _Array:
            return np.concatenate([np.clip(current - answer, -1.0, 1.0), np.ones_like(answer)], axis=1)

        self._boost(scaled(X, self._bounds), gradients, 1, total, source)
        return self

    def predict(self, X: Any) -> _Array:
        """Return the response of each row.

        Parameters
        ----------
        X : array of shape (n, n_features)

        Returns
        -------
        array of shape (n,)
        """
        position = np.clip(self._scores(X)[:, 0], -1.0, 1.0)
        lower, upper = (float(end[0]) for end in self._y_bounds)
        return np.asarray((lower + upper) / 2 + position * (upper - lower) / 2)
