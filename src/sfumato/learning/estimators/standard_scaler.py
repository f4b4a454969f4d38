"""Scaling to mean 0 and variance 1, with bounds that are found privately."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Final, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import OneToOneFeatureMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from sfumato.learning.estimators.moments import mean_and_variance_part, noisy_mean_and_variance
from sfumato.learning.estimators.private_estimator import PrivateEstimator, box, scaled
from sfumato.learning.estimators.vector_sums import SumSpecification, VectorSum
from sfumato.numerics.randomness.source import RandomSource

__all__ = ["StandardScaler"]

_Array = NDArray[np.float64]

_EXPONENTS: Final = np.arange(-32, 65)
_BINS: Final = 2 * len(_EXPONENTS) + 1
_CHUNK: Final = 1 << 10


@dataclass(eq=False, repr=False, kw_only=True)
class StandardScaler(OneToOneFeatureMixin, TransformerMixin, PrivateEstimator):
    r"""Features with their noisy mean taken off, divided by their noisy standard deviation.

    Parameters
    ----------
    epsilon, delta : float
        The guarantee of one fit; delta must be positive.
    bounds : pair of float or of arrays, optional
        Lower and upper bounds of the features, public. Unless given they are found privately, for half of
        the budget (in squared mu): powers of two between which there are rows.
    with_mean, with_std : bool
        Whether to take off the mean, and to divide by the standard deviation.
    ledger : Ledger, optional
        Charged before the data is read.
    random_state : int, RandomState or None
        None draws from the operating system's entropy; anything else only simulates.

    Attributes
    ----------
    mean_, var_, scale_ : array of shape (n_features,)
    bounds_ : tuple of two arrays
        Those given, or those found.
    privacy_loss_, receipt_, simulated_
        See `PrivateEstimator`.

    Notes
    -----
    Guarantee: (epsilon, delta)-DP under add/remove of one row: one release of the sums of the features'
    positions in their bounds and of their squares, and, where bounds are found, one of the number of rows in
    bins that end at signed powers of two from 2^-32 to 2^64, one bin a feature (`VectorSum`). Bounds are the
    outermost bins whose count passes six standard deviations of the noise: a few outliers are left outside.

    References
    ----------
    Wilson, Zhang, Lam, Desfontaines, Simmons-Marengo, Gipson, "Differentially private SQL with bounded user
    contribution" (PoPETs 2020), approximate bounds.

    Examples
    --------
    >>> X = np.random.default_rng(0).normal(50, 10, size=(20000, 2))
    >>> scaler = StandardScaler(random_state=1).fit(X)
    >>> scaler.mean_.round().tolist(), scaler.scale_.round().tolist()
    ([50.0, 50.0], [10.0, 10.0])
    """

    with_mean: bool = True
    with_std: bool = True

    _charged_as: ClassVar[str] = "StandardScaler"

    def fit(self, X: Any, y: Any = None) -> Self:
        """Find mean and variance.

        Parameters
        ----------
        X : array of shape (n, n_features)
        y
            Not used.

        Returns
        -------
        StandardScaler
        """
        X = self._table(X, reset=True)
        size = X.shape[1]
        given = None if self.bounds is None else box("bounds", self.bounds, size)
        parts = [mean_and_variance_part(size)]
        if given is None:
            parts.append(SumSpecification(norm=float(np.sqrt(size)), entries=_BINS * size))
        (total, *counts), source = self._pay(parts)
        self.bounds_ = _found(X, counts[0], source) if given is None else given
        moments = noisy_mean_and_variance(total, scaled(X, self.bounds_), source)
        lower, upper = self.bounds_
        self.mean_ = (lower + upper) / 2 + moments.mean[0] * (upper - lower) / 2
        self.var_ = moments.variance[0] * ((upper - lower) / 2) ** 2
        self.scale_ = np.where(self.var_ > 0, np.sqrt(self.var_), 1.0) if self.with_std else np.ones(size)
        return self

    def transform(self, X: Any) -> _Array:
        """Return the scaled rows.

        Parameters
        ----------
        X : array of shape (n, n_features)

        Returns
        -------
        array of shape (n, n_features)
        """
        check_is_fitted(self)
        X = self._table(X, reset=False)
        return np.asarray((X - self.mean_ if self.with_mean else X) / self.scale_)

    def inverse_transform(self, X: Any) -> _Array:
        """Return rows in their own unit.

        Parameters
        ----------
        X : array of shape (n, n_features)

        Returns
        -------
        array of shape (n, n_features)
        """
        check_is_fitted(self)
        X = np.asarray(X) * self.scale_
        return np.asarray(X + self.mean_ if self.with_mean else X)


def _found(X: _Array, counts: VectorSum, source: RandomSource) -> tuple[_Array, _Array]:
    """Release the bounds of each column; see the notes of `StandardScaler`."""
    real = np.nan_to_num(X, nan=0.0)
    exponent = np.clip(np.frexp(real)[1] - 1, _EXPONENTS[0] - 1, _EXPONENTS[-1]) - _EXPONENTS[0] + 1
    exponent = np.where(np.isinf(real), len(_EXPONENTS), np.where(real == 0, 0, exponent))
    bins = np.where(real < 0, -exponent, exponent) + len(_EXPONENTS)
    size = X.shape[1]
    total = np.zeros((1, _BINS * size), np.int64)
    for start in range(0, len(X), _CHUNK):
        part = bins[start : start + _CHUNK]
        rows = np.zeros((len(part), size, _BINS))
        np.put_along_axis(rows, part[:, :, None], 1.0, axis=2)
        total += counts.total(rows.reshape(len(part), -1))
    noisy = counts.noisy(total, source).reshape(size, _BINS)
    borders = np.ldexp(1.0, _EXPONENTS)
    lower = np.concatenate([-2 * borders[::-1], [-borders[0]], borders])
    upper = np.concatenate([-borders[::-1], [borders[0]], 2 * borders])
    full = noisy >= min(6 * counts.deviation(), noisy.max(initial=0.0))
    full |= (noisy == noisy.max(axis=1, keepdims=True)) & ~full.any(axis=1, keepdims=True)
    return lower[full.argmax(axis=1)], upper[_BINS - 1 - full[:, ::-1].argmax(axis=1)]
