"""Logistic regression by full-batch gradient descent with noise, or with a noisy objective."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar, Final, Self

import numpy as np
from numpy.typing import NDArray
from scipy.special import softmax
from sklearn.utils.validation import check_is_fitted

from sfumato import _check
from sfumato.learning.estimators.logistic_information import LogisticInformation, information_part
from sfumato.learning.estimators.objective_perturbation import ObjectivePerturbation
from sfumato.learning.estimators.private_estimator import PrivateClassifier, box, encoded, scaled
from sfumato.learning.estimators.vector_sums import SumSpecification, planned, products
from sfumato.mechanisms.statistics.least_squares import CoefficientErrors
from sfumato.mechanisms.statistics.null_draws import exceeded_by, null_draws

__all__ = ["LogisticRegression"]

_Array = NDArray[np.float64]

_COUNT_WEIGHT: Final = 5.0
"""The noise of the count relative to a gradient's: a twenty-fifth of one step's price."""


@dataclass(eq=False, repr=False, kw_only=True)
class LogisticRegression(PrivateClassifier):
    r"""Logistic regression, also of several classes, by gradient descent on all rows with Gaussian noise.

    Parameters
    ----------
    epsilon, delta : float
        The guarantee of one fit; delta must be positive.
    bounds : pair of float or of arrays
        Lower and upper bounds of the features, public; what lies beyond is clamped. Features are learned from
        as positions in them, from 0 to 1, so a wide bound makes a small feature.
    classes : sequence, optional
        The labels there are, public. Rows with another one are left out. Unless given they are read off the
        data, with a warning.
    steps : int
        Of gradient descent. The noise of each grows with their square root.
    learning_rate : float
    clip_norm : float
        The most that one row's gradient counts, in the L2 norm; longer ones are shortened.
    alpha : float
        Strength of the ridge: in descent relative to the mean loss of a row, in the objective to their sum.
    solver : {"descent", "objective"}
        Noisy gradient descent, or a noisy objective (`ObjectivePerturbation`): often more accurate for two
        classes, and without rates to choose, but its guarantee is of real numbers (``float_safe_`` is
        False), and several classes share epsilon, one against the rest.
    data_norm : float, optional
        For the objective: rows of positions, and a one, are shortened to this L2 norm. Unless given it is the
        most that their bounds allow, the square root of the number of features and one.
    error_share : float
        For the objective, with two classes: the part of epsilon and delta that a noisy information matrix
        costs, from which `coefficient_errors` follow. Without it there are none.
    ledger : Ledger, optional
        Charged before the data is read.
    random_state : int, RandomState or None
        None draws from the operating system's entropy; anything else only simulates.

    Attributes
    ----------
    classes_ : array of shape (n_classes,)
    coef_ : array of shape (1, n_features) or (n_classes, n_features)
    intercept_ : array of shape (1,) or (n_classes,)
    n_iter_ : int
    privacy_loss_, receipt_, simulated_
        See `PrivateEstimator`.

    Notes
    -----
    Guarantee: (epsilon, delta)-DP under add/remove of one row: each step releases the sum of clipped
    gradients, and one more release the number of rows (`VectorSum`). The noise is discrete on a grid so fine
    that the price is that of Gaussian DP, to a millionth. The weights are the mean of the last half of the
    iterates, which is post-processing. The information matrix at the released weights is a further
    `VectorSum`: a row with positions z from -1 to 1, and a one, adds :math:`p(1-p)zz^T`, of a norm of at most
    a quarter of the number of features and one.

    References
    ----------
    Bassily, Smith, Thakurta (FOCS 2014), noisy gradient descent; Dong, Roth, Su (2022), "Gaussian
    differential privacy", composition.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(0, 10, size=(5000, 2))
    >>> y = X[:, 0] > X[:, 1]
    >>> model = LogisticRegression(bounds=(0, 10), classes=[False, True], random_state=1).fit(X, y)
    >>> bool(model.score(X, y) > 0.95), model.privacy_loss_.epsilon(1e-6) <= 1.0
    (True, True)
    """

    steps: int = 60
    learning_rate: float = 8.0
    clip_norm: float = 1.0
    alpha: float = 0.0
    solver: str = "descent"
    data_norm: float | None = None
    error_share: float = 0.0

    _charged_as: ClassVar[str] = "LogisticRegression"

    def fit(self, X: Any, y: Any) -> Self:
        """Learn the weights.

        Parameters
        ----------
        X : array of shape (n, n_features)
        y : array of shape (n,)

        Returns
        -------
        LogisticRegression
        """
        X, y, finite = self._labelled(X, y, numeric=False)
        if self.solver not in ("descent", "objective"):
            _check.refuse("solver", "be 'descent' or 'objective'", self.solver, "use 'descent' if unsure")
        self._bounds = box("bounds", self.bounds, X.shape[1])
        self.classes_ = self._classes(y[finite])
        share = _check.probability("error_share", self.error_share)
        self._information: LogisticInformation | None = None
        if share and (self.solver != "objective" or len(self.classes_) > 2):
            rule = "be 0 but for two classes and solver='objective'"
            _check.refuse(
                "error_share", rule, share, "pass solver='objective' to have errors of coefficients"
            )
        labels = encoded(y, self.classes_, finite)
        learn = self._descend if self.solver == "descent" else self._solve
        learn(X[labels >= 0], labels[labels >= 0])
        lower, upper = self._bounds
        slopes = self._weights[:, :-1] / (upper - lower)
        self.coef_ = slopes
        self.intercept_ = self._weights[:, -1] - (slopes * lower).sum(axis=1)
        return self

    def _descend(self, X: _Array, labels: NDArray[np.int64]) -> None:
        """Find the weights by noisy gradient descent."""
        steps = _check.integer("steps", self.steps, minimum=1)
        clip = _check.positive("clip_norm", self.clip_norm)
        rate = _check.positive("learning_rate", self.learning_rate)
        alpha = _check.non_negative("alpha", self.alpha)
        shape = (len(self.classes_) if len(self.classes_) > 2 else 1, X.shape[1] + 1)
        parts = [
            SumSpecification(norm=clip, entries=shape[0] * shape[1], times=steps),
            SumSpecification(norm=1.0, entries=1, weight=_COUNT_WEIGHT),
        ]
        (gradient, number), source = self._pay(parts)
        features = self._features(X)
        count = max(1.0, number.release(np.ones((len(features), 1)), source)[0, 0])
        ridge = np.append(np.full(X.shape[1], alpha), 0.0)
        weights, total = np.zeros(shape), np.zeros(shape)
        for step in range(steps):
            found = gradient.release(_gradients(features, labels, weights, clip), source)
            weights = weights - rate * (found.reshape(shape) / count + ridge * weights)
            if step >= steps // 2:
                total += weights
        self._weights = total / (steps - steps // 2)
        self.n_iter_ = steps

    def _solve(self, X: _Array, labels: NDArray[np.int64]) -> None:
        """Find the weights of a noisy objective."""
        norm = math.sqrt(X.shape[1] + 1) if self.data_norm is None else self.data_norm
        count = len(self.classes_) if len(self.classes_) > 2 else 1  # one against the rest
        epsilon, delta = _check.positive("epsilon", self.epsilon), _check.probability("delta", self.delta)
        solver = ObjectivePerturbation.calibrated(
            epsilon=epsilon * (1 - self.error_share) / count,
            delta=delta * (1 - self.error_share) / count,
            data_norm=norm,
            ridge=self.alpha,
        )
        loss, total = solver.privacy_loss * count, None
        if self.error_share:
            parts = [information_part(X.shape[1] + 1)]
            (total,), more = planned(
                parts, epsilon=epsilon * self.error_share, delta=delta * self.error_share
            )
            loss = loss + more
        source = self._charged(loss, float_safe=False)
        features = self._features(X)
        targets = [labels > 0] if count == 1 else [labels == k for k in range(count)]
        self._weights = np.stack([solver.fit(features, target, source) for target in targets])
        if total is not None:
            self._information = LogisticInformation.released(
                self._weights[0],
                solver.shortened(features),
                total,
                source,
                ridge=solver.ridge,
                stddev=solver.stddev,
                blur=solver.blur,
            )
        self.n_iter_ = 1

    def decision_function(self, X: Any) -> _Array:
        """Return the scores: of the second class of two, else of each class.

        Parameters
        ----------
        X : array of shape (n, n_features)

        Returns
        -------
        array of shape (n,) or (n, n_classes)
        """
        scores = self._linear_scores(X)
        return np.asarray(scores[:, 0] if scores.shape[1] == 1 else scores)

    def coefficient_errors(
        self, level: float = 0.95, *, draws: int = 999, rng: int | np.random.Generator | None = None
    ) -> CoefficientErrors:
        r"""Return standard errors and intervals of intercept and slopes, for the population; post-processing.

        Parameters
        ----------
        level : float
            Wanted coverage of each interval, strictly between 0 and 1.
        draws : int
            How many errors are drawn; at least 19.
        rng : None, int or numpy Generator
            For these draws; they need no secrecy.

        Returns
        -------
        CoefficientErrors
            Around the coefficients without the bias of the ridge, which ``coef_`` has; infinite where the
            information cannot be distinguished from its noise: then more rows are needed, or a larger
            ``error_share``.

        Raises
        ------
        ParameterError
            If it was fitted without ``error_share``.

        Notes
        -----
        A parametric bootstrap of the first-order expansion around the released minimum: scores with the
        released information as their variance, noise in the objective, on the weights and in the information.
        So coverage is right in the limit of many rows, if the model holds and no row is shortened.

        References
        ----------
        Ferrando, Wang, Sheldon, "Parametric bootstrap for differentially private confidence intervals"
        (AISTATS 2022); Avella-Medina, Bradshaw, Loh, "Differentially private inference via noisy
        optimization" (Annals of Statistics 2023), noise in the variance of M-estimators.

        Examples
        --------
        >>> rng = np.random.default_rng(0)
        >>> X = rng.uniform(0, 10, size=(20000, 1))
        >>> y = rng.random(20000) < 1 / (1 + np.exp(2 - 0.4 * X[:, 0]))
        >>> model = LogisticRegression(
        ...     bounds=(0, 10), classes=[False, True], solver="objective", error_share=0.2, random_state=1
        ... ).fit(X, y)
        >>> errors = model.coefficient_errors(rng=2)
        >>> bool(errors.lower[1] < 0.4 < errors.upper[1]), errors.standard_errors.round(2).tolist()
        (True, [0.04, 0.01])
        """
        check_is_fitted(self)
        given: LogisticInformation | None = self._information
        if given is None:
            _check.refuse_state("error_share", "be positive", "the fit had none", "pass error_share=0.2, say")
        error, (number, generator) = 1 - _check.unit_interval("level", level), null_draws(draws, rng)
        off = self._in_units(given.errors(number, generator))
        center, reach = self._in_units(given.debiased), exceeded_by(np.abs(off), error)
        errors = off.std(axis=0)
        if not given.informative:
            reach, errors = np.full_like(reach, np.inf), np.full_like(errors, np.inf)
        return CoefficientErrors(errors, center - reach, center + reach)

    def _in_units(self, weights: _Array) -> _Array:
        """Return intercepts, which are first, and slopes in the unit of the data, along the last axis."""
        lower, upper = self._bounds
        slopes = weights[..., :-1] / (upper - lower)
        intercepts = weights[..., -1:] - (slopes * lower).sum(axis=-1, keepdims=True)
        return np.concatenate([intercepts, slopes], axis=-1)

    def _linear_scores(self, X: Any) -> _Array:
        check_is_fitted(self)
        return np.asarray(self._features(self._table(X, reset=False)) @ self._weights.T)

    def _scores(self, X: Any) -> _Array:
        scores = self._linear_scores(X)
        if scores.shape[1] > 1:
            return scores
        return np.concatenate([np.zeros_like(scores), scores], axis=1)[:, -len(self.classes_) :]

    def _features(self, X: _Array) -> _Array:
        """Return the positions in the bounds, from 0 to 1, and a one."""
        return np.concatenate([(scaled(X, self._bounds) + 1) / 2, np.ones((len(X), 1))], axis=1)


def _gradients(features: _Array, labels: NDArray[np.int64], weights: _Array, clip: float) -> _Array:
    """Return each row's gradient, of an L2 norm of at most ``clip``."""
    scores = products(features, weights)
    if len(weights) == 1:
        with np.errstate(over="ignore"):
            misses = 1 / (1 + np.exp(-scores)) - (labels > 0)[:, None]
    else:
        misses = softmax(scores, axis=1)
        misses[np.arange(len(labels)), labels] -= 1
    sizes = np.sqrt((features**2).sum(axis=1) * (misses**2).sum(axis=1))
    misses *= np.minimum(1.0, clip / np.maximum(sizes, 1e-300))[:, None]
    return np.asarray((misses[:, :, None] * features[:, None, :]).reshape(len(features), weights.size))
