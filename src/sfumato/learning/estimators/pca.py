"""Principal components of a noisy covariance."""

from __future__ import annotations

from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from sfumato import _check
from sfumato.learning.estimators.moments import moments_part, noisy_moments
from sfumato.learning.estimators.private_estimator import PrivateEstimator, box, scaled

__all__ = ["PCA"]

_Array = NDArray[np.float64]


class PCA(ClassNamePrefixFeaturesOutMixin, TransformerMixin, PrivateEstimator):
    r"""Principal components, from Gaussian noise on the second moments.

    Parameters
    ----------
    n_components : int, optional
        How many; all, unless given.
    epsilon, delta : float
        The guarantee of one fit; delta must be positive.
    bounds : pair of float or of arrays
        Lower and upper bounds of the features, public; what lies beyond is clamped.
    ledger : Ledger, optional
        Charged before the data is read.
    random_state : int, RandomState or None
        None draws from the operating system's entropy; anything else only simulates.

    Attributes
    ----------
    components_ : array of shape (n_components, n_features)
    explained_variance_ : array of shape (n_components,)
    mean_ : array of shape (n_features,)
    privacy_loss_, receipt_, simulated_
        See `PrivateEstimator`.

    Notes
    -----
    Guarantee: (epsilon, delta)-DP under add/remove of one row: one release of all products of two of a one
    and the features' positions in their bounds (`VectorSum`); mean and covariance follow.

    References
    ----------
    Dwork, Talwar, Thakurta, Zhang, "Analyze Gauss: optimal bounds for privacy-preserving principal component
    analysis" (STOC 2014).

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(20000, 1)) * [3.0, 3.0, 0.0] + rng.normal(size=(20000, 3)) * 0.1
    >>> abs(PCA(1, bounds=(-10, 10), random_state=1).fit(X).components_).round(1).tolist()
    [[0.7, 0.7, 0.0]]
    """

    _charged_as: ClassVar[str] = "PCA"

    def __init__(
        self,
        n_components: int | None = None,
        epsilon: float = 1.0,
        delta: float = 1e-6,
        *,
        bounds: Any = None,
        ledger: Any = None,
        random_state: Any = None,
    ) -> None:
        self.n_components = n_components
        super().__init__(epsilon, delta, bounds=bounds, ledger=ledger, random_state=random_state)

    def fit(self, X: Any, y: Any = None) -> Self:
        """Find the components.

        Parameters
        ----------
        X : array of shape (n, n_features)
        y
            Not used.

        Returns
        -------
        PCA
        """
        X = self._table(X, reset=True)
        size = X.shape[1]
        wanted = (
            size
            if self.n_components is None
            else _check.integer("n_components", self.n_components, minimum=1)
        )
        if wanted > size:
            remedy = "ask for fewer components"
            _check.refuse("n_components", f"be at most {size}, the features", wanted, remedy)
        lower, upper = bounds = box("bounds", self.bounds, size)
        (total,), source = self._pay([moments_part(size)])
        moments = noisy_moments(total, scaled(X, bounds), source)
        count = max(1.0, moments[0, 0])
        mean = np.clip(moments[0, 1:] / count, -1, 1)
        half = (upper - lower) / 2
        covariance = (moments[1:, 1:] / count - np.outer(mean, mean)) * np.outer(half, half)
        values, vectors = np.linalg.eigh(covariance)
        components = vectors.T[::-1][:wanted]
        signs = np.sign(components[np.arange(wanted), np.abs(components).argmax(axis=1)])
        self.components_ = components * signs[:, None]
        self.explained_variance_ = np.maximum(values[::-1][:wanted], 0.0)
        self.mean_ = (lower + upper) / 2 + mean * half
        return self

    def transform(self, X: Any) -> _Array:
        """Return the rows in the components.

        Parameters
        ----------
        X : array of shape (n, n_features)

        Returns
        -------
        array of shape (n, n_components)
        """
        check_is_fitted(self)
        X = np.nan_to_num(self._table(X, reset=False))
        return np.asarray((X - self.mean_) @ self.components_.T)

    def inverse_transform(self, X: Any) -> _Array:
        """Return the rows of the given components.

        Parameters
        ----------
        X : array of shape (n, n_components)

        Returns
        -------
        array of shape (n, n_features)
        """
        check_is_fitted(self)
        return np.asarray(np.asarray(X) @ self.components_ + self.mean_)

    @property
    def _n_features_out(self) -> int:
        return len(self.components_)
