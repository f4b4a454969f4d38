"""Naive Bayes with normal features, from noisy moments of each class."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from sfumato import _check
from sfumato.learning.estimators.moments import mean_and_variance_part, noisy_moment_sums
from sfumato.learning.estimators.private_estimator import PrivateClassifier, box, encoded, scaled
from sfumato.learning.estimators.shrinkage import shrunk_moments

__all__ = ["GaussianNB"]

_Array = NDArray[np.float64]


@dataclass(eq=False, repr=False, kw_only=True)
class GaussianNB(PrivateClassifier):
    r"""Naive Bayes: in each class every feature is normal and independent of the others.

    Parameters
    ----------
    epsilon, delta : float
        The guarantee of one fit; delta must be positive.
    bounds : pair of float or of arrays
        Lower and upper bounds of the features, public; what lies beyond is clamped.
    classes : sequence, optional
        The labels there are, public. Rows with another one are left out. Unless given they are read off the
        data, with a warning.
    smoothing : float
        The minimum variance, in units of a feature's squared half width.
    ledger : Ledger, optional
        Charged before the data is read.
    random_state : int, RandomState or None
        None draws from the operating system's entropy; anything else only simulates.

    Attributes
    ----------
    classes_ : array of shape (n_classes,)
    class_prior_ : array of shape (n_classes,)
    theta_, var_ : array of shape (n_classes, n_features)
        Means and variances, both shrunk by the known noise; the variance is that of a new row: what the
        noise left uncertain of the mean is in it.
    privacy_loss_, receipt_, simulated_
        See `PrivateEstimator`.

    Notes
    -----
    Guarantee: (epsilon, delta)-DP under add/remove of one row: one release of the number of rows of each
    class and of their sums of positions and of squared positions. A row adds to one class only (`VectorSum`).
    All that follows, the shrinkage too, reads the released sums and public parameters only.

    *Shrinkage.* The noise of the sums is known, and a variance that noise made small or negative would have
    its feature outvote all others. So each number is the mean of its normal posterior, with the noise as the
    likelihood: a class's mean with that of all classes as prior, a variance with those of the other features
    and classes as prior, on positive values (`shrunk_moments`). As epsilon grows the plain moments are left.

    References
    ----------
    Vaidya, Shafiq, Basu, Hong, "Differentially private naive Bayes classification" (WI 2013), with another
    noise; Efron, Morris, "Data analysis using Stein's estimator and its generalizations" (JASA 1975).

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> y = rng.integers(0, 2, 5000)
    >>> X = rng.normal(size=(5000, 3)) + 2 * y[:, None]
    >>> model = GaussianNB(bounds=(-5, 5), classes=[0, 1], random_state=1).fit(X, y)
    >>> bool(model.score(X, y) > 0.93)
    True
    """

    smoothing: float = 1e-4

    _charged_as: ClassVar[str] = "GaussianNB"

    def fit(self, X: Any, y: Any) -> Self:
        """Learn the classes' moments.

        Parameters
        ----------
        X : array of shape (n, n_features)
        y : array of shape (n,)

        Returns
        -------
        GaussianNB
        """
        X, y, finite = self._labelled(X, y, numeric=False)
        lower, upper = self._bounds = box("bounds", self.bounds, X.shape[1])
        self.classes_ = self._classes(y[finite])
        smoothing = _check.positive("smoothing", self.smoothing)
        (total,), source = self._pay([mean_and_variance_part(X.shape[1])])
        labels = encoded(y, self.classes_, finite)
        known = labels >= 0
        positions = scaled(X, self._bounds)[known]
        count = max(1, len(self.classes_))
        moments = shrunk_moments(noisy_moment_sums(total, positions, source, labels[known], count))
        half = (upper - lower) / 2
        self.class_prior_ = moments.rows / moments.rows.sum()
        self.theta_ = (lower + upper) / 2 + moments.mean * half
        self.var_ = np.maximum(moments.variance, smoothing) * half**2
        return self

    def predict_log_proba(self, X: Any) -> _Array:
        """Return the log of the probability of each class.

        Parameters
        ----------
        X : array of shape (n, n_features)

        Returns
        -------
        array of shape (n, n_classes)
        """
        with np.errstate(divide="ignore"):
            return np.asarray(np.log(self.predict_proba(X)))

    def _scores(self, X: Any) -> _Array:
        check_is_fitted(self)
        lower, upper = self._bounds
        X = np.clip(np.nan_to_num(self._table(X, reset=False), nan=0.0), lower, upper)
        distance = (X[:, None] - self.theta_[None]) ** 2 / self.var_[None]
        width = np.log(2 * math.pi * self.var_).sum(axis=1)
        return np.asarray(np.log(self.class_prior_) - (distance.sum(axis=2) + width) / 2)
