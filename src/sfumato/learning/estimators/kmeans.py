"""Lloyd's algorithm with noise, from centres that are drawn around a noisy mean."""

from __future__ import annotations

import math
from typing import Any, ClassVar, Final, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import ClusterMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from sfumato import _check
from sfumato.learning.estimators.moments import mean_and_variance_part, noisy_mean_and_variance
from sfumato.learning.estimators.private_estimator import PrivateEstimator, box, plain_draws, scaled
from sfumato.learning.estimators.vector_sums import SumSpecification, VectorSum, products
from sfumato.numerics.randomness.source import RandomSource

__all__ = ["KMeans"]

_Array = NDArray[np.float64]

_START_WEIGHT: Final = 2.0
_TRIES: Final = 64


class KMeans(ClusterMixin, TransformerMixin, PrivateEstimator):
    r"""Clusters around centres, by a fixed number of noisy steps of Lloyd's algorithm.

    Parameters
    ----------
    n_clusters : int
    epsilon, delta : float
        The guarantee of one fit; delta must be positive.
    bounds : pair of float or of arrays
        Lower and upper bounds of the features, public; what lies beyond is clamped.
    steps : int
        Of Lloyd's algorithm.
    ledger : Ledger, optional
        Charged before the data is read.
    random_state : int, RandomState or None
        None draws from the operating system's entropy; anything else only simulates.

    Attributes
    ----------
    cluster_centers_ : array of shape (n_clusters, n_features)
    labels_ : array of shape (n,)
        Of the rows that were learned from: not private, unlike the centres.
    n_iter_ : int
    privacy_loss_, receipt_, simulated_
        See `PrivateEstimator`.

    Notes
    -----
    Guarantee: (epsilon, delta)-DP of the centres under add/remove of one row: one release of mean and
    variance, around which the first centres are spread, and in each step one of the number and the sum of the
    rows nearest to each centre (`VectorSum`); a row adds to one cluster only. A cluster whose noisy number is
    within the noise is started anew. ``labels_`` are the data's own and must not be published.

    References
    ----------
    Blum, Dwork, McSherry, Nissim (PODS 2005), private k-means; Su, Cao, Li, Bertino, Jin, "Differentially
    private k-means clustering" (CODASPY 2016), the choice of first centres far apart.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(6000, 2)) + 8 * rng.integers(0, 2, (6000, 1))
    >>> centres = KMeans(2, bounds=(-5, 15), random_state=1).fit(X).cluster_centers_
    >>> sorted(abs(centres[:, 0]).round().tolist())
    [0.0, 8.0]
    """

    _charged_as: ClassVar[str] = "KMeans"

    def __init__(
        self,
        n_clusters: int = 8,
        epsilon: float = 1.0,
        delta: float = 1e-6,
        *,
        bounds: Any = None,
        steps: int = 7,
        ledger: Any = None,
        random_state: Any = None,
    ) -> None:
        self.n_clusters = n_clusters
        super().__init__(epsilon, delta, bounds=bounds, ledger=ledger, random_state=random_state)
        self.steps = steps

    def fit(self, X: Any, y: Any = None) -> Self:
        """Find the centres.

        Parameters
        ----------
        X : array of shape (n, n_features)
        y
            Not used.

        Returns
        -------
        KMeans
        """
        X = self._table(X, reset=True)
        size = X.shape[1]
        clusters = _check.integer("n_clusters", self.n_clusters, minimum=1)
        steps = _check.integer("steps", self.steps, minimum=1)
        self._bounds = box("bounds", self.bounds, size)
        parts = [
            mean_and_variance_part(size, weight=_START_WEIGHT),
            SumSpecification(norm=math.sqrt(2.0), entries=size + 1, times=steps),
        ]
        (start, sums), source = self._pay(parts)
        positions = scaled(X, self._bounds)
        mean, variance = (part[0] for part in noisy_mean_and_variance(start, positions, source)[1:])
        draws = plain_draws(source)
        centres = _apart(mean, variance, clusters, draws)
        rows = np.concatenate([np.ones((len(X), 1)), positions / math.sqrt(size)], axis=1)
        for _ in range(steps):
            centres = _moved(centres, rows, _nearest(positions, centres), sums, source)
            empty = np.isnan(centres[:, 0])
            centres[empty] = _apart(mean, variance, clusters, draws)[empty]
        lower, upper = self._bounds
        self._positions = centres
        self.cluster_centers_ = (lower + upper) / 2 + centres * (upper - lower) / 2
        self.labels_ = _nearest(positions, centres).astype(np.int32)
        self.n_iter_ = steps
        return self

    def predict(self, X: Any) -> NDArray[np.int32]:
        """Return the nearest centre of each row, with each feature measured in its bounds.

        Parameters
        ----------
        X : array of shape (n, n_features)

        Returns
        -------
        array of shape (n,)
        """
        check_is_fitted(self)
        return _nearest(scaled(self._table(X, reset=False), self._bounds), self._positions).astype(np.int32)

    def transform(self, X: Any) -> _Array:
        """Return the distance of each row from each centre.

        Parameters
        ----------
        X : array of shape (n, n_features)

        Returns
        -------
        array of shape (n, n_clusters)
        """
        check_is_fitted(self)
        X = np.nan_to_num(self._table(X, reset=False))
        return np.asarray(np.sqrt(((X[:, None] - self.cluster_centers_[None]) ** 2).sum(axis=2)))

    def get_feature_names_out(self, input_features: Any = None) -> NDArray[Any]:
        """Return a name for each distance.

        Parameters
        ----------
        input_features
            Not used.

        Returns
        -------
        array of str
        """
        check_is_fitted(self)
        return np.array([f"kmeans{k}" for k in range(len(self.cluster_centers_))], dtype=object)


def _nearest(positions: _Array, centres: _Array) -> NDArray[np.int64]:
    distance = (centres**2).sum(axis=1)[None, :] - 2 * products(positions, centres)
    return np.asarray(distance.argmin(axis=1), np.int64)


def _moved(
    centres: _Array, rows: _Array, labels: NDArray[np.int64], sums: VectorSum, source: RandomSource
) -> _Array:
    """Return the noisy means of the clusters; NaN where there is nothing but noise."""
    found = sums.release(rows, source, labels, len(centres))
    number = found[:, :1]
    some = number > 3 * sums.deviation()
    means = found[:, 1:] * math.sqrt(centres.shape[1]) / np.where(some, number, 1.0)
    return np.where(some, np.clip(means, -1.0, 1.0), np.nan)


def _apart(mean: _Array, variance: _Array, clusters: int, draws: np.random.Generator) -> _Array:
    """Return of many normal draws with that mean and variance those that are far from one another."""
    cloud = mean + draws.normal(size=(_TRIES * clusters, len(mean))) * np.sqrt(variance) * 1.2
    chosen = [0]
    for _ in range(clusters - 1):
        distance = ((cloud[:, None] - cloud[None, chosen]) ** 2).sum(axis=2).min(axis=1)
        chosen.append(int(np.argsort(distance)[int(0.9 * len(cloud))]))
    return np.clip(cloud[chosen], -1.0, 1.0)
