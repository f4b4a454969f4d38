"""Linear regression from noisy second moments."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import RegressorMixin
from sklearn.utils.validation import check_is_fitted

from sfumato.learning.estimators.moments import moments_part, noisy_moments
from sfumato.learning.estimators.private_estimator import PrivateEstimator, box, scaled

__all__ = ["LinearRegression"]

_Array = NDArray[np.float64]


@dataclass(eq=False, repr=False, kw_only=True)
class LinearRegression(RegressorMixin, PrivateEstimator):
    r"""Least squares from noisy sufficient statistics: the second moments of features and response.

    Parameters
    ----------
    epsilon, delta : float
        The guarantee of one fit; delta must be positive.
    bounds : pair of float or of arrays
        Lower and upper bounds of the features, public; what lies beyond is clamped.
    y_bounds : pair of float
        Bounds of the response, public.
    ledger : Ledger, optional
        Charged before the data is read.
    random_state : int, RandomState or None
        None draws from the operating system's entropy; anything else only simulates.

    Attributes
    ----------
    coef_ : array of shape (n_features,)
    intercept_ : float
    privacy_loss_, receipt_, simulated_
        See `PrivateEstimator`.

    Notes
    -----
    Guarantee: (epsilon, delta)-DP under add/remove of one row: one release of all products of two of a one,
    the features and the response, each as its place in its bounds (`VectorSum`). The equations are ridged by
    the noise's own size, so that noise alone gives no steep slopes.

    References
    ----------
    Dwork, Talwar, Thakurta, Zhang, "Analyze Gauss" (STOC 2014); Wang, "Revisiting differentially private
    linear regression" (UAI 2018).

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(0, 10, size=(20000, 1))
    >>> y = 3 + 0.5 * X[:, 0] + rng.normal(0, 0.5, 20000)
    >>> line = LinearRegression(bounds=(0, 10), y_bounds=(0, 10), random_state=1).fit(X, y)
    >>> round(line.intercept_, 1), line.coef_.round(2).tolist()
    (3.0, [0.5])
    """

    y_bounds: Any = None

    _charged_as: ClassVar[str] = "LinearRegression"

    def fit(self, X: Any, y: Any) -> Self:
        """Learn the slopes.

        Parameters
        ----------
        X : array of shape (n, n_features)
        y : array of shape (n,)

        Returns
        -------
        LinearRegression
        """
        X, y, _ = self._labelled(X, y, numeric=True)
        lower, upper = box("bounds", self.bounds, X.shape[1])
        low, high = (float(end[0]) for end in box("y_bounds", self.y_bounds, 1))
        (total,), source = self._pay([moments_part(X.shape[1] + 1)])
        answer = scaled(np.asarray(y, np.float64)[:, None], (np.array([low]), np.array([high])))
        positions = np.concatenate([scaled(X, (lower, upper)), answer], axis=1)
        moments = noisy_moments(total, positions, source)
        size = X.shape[1] + 1
        ridge = np.full(size, total.deviation() * math.sqrt(size))
        ridge[0] = 0.0 if moments[0, 0] > ridge[0] else ridge[0]
        found = np.linalg.lstsq(moments[:-1, :-1] + np.diag(ridge), moments[:-1, -1], rcond=None)[0]
        self.coef_ = found[1:] * (high - low) / (upper - lower)
        middle = (low + high) / 2 + found[0] * (high - low) / 2
        self.intercept_ = float(middle - (self.coef_ * (lower + upper) / 2).sum())
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
        check_is_fitted(self)
        X = np.nan_to_num(self._table(X, reset=False))
        return np.asarray(X @ self.coef_ + self.intercept_)
