"""Linear regression of a number, or a trait, that was asked with any randomized design."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final, final

import numpy as np
from numpy.typing import NDArray
from scipy.special import stdtrit

from sfumato import _check
from sfumato.local.surveys.designs.design import Design
from sfumato.local.surveys.estimates.answer_counts import indices
from sfumato.local.surveys.regression.fitted import INTERCEPT
from sfumato.local.surveys.regression.predictors import predictor_matrix
from sfumato.numerics.interval import Interval

__all__ = ["LinearFit", "linear_regression"]

_ALONE: Final = 1e-9
_ROUNDING: Final = 1e-9
_RANK: Final = 1e-10


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class LinearFit:
    """A linear regression whose outcome is known through randomized answers.

    Parameters
    ----------
    names : tuple of str
        Of the coefficients; the first is "intercept".
    coefficients : array
        Least squares on the unbiased estimate of each respondent's outcome.
    covariance : array
        HC3: of sampling and randomization together, whatever the errors' variances; at least what the device
        alone adds. Infinite where the answers follow from the predictors, as where all are alike, and the
        device may add nothing.
    respondents : int

    Examples
    --------
    >>> import numpy as np
    >>> from sfumato.local.surveys import TwoCoins, linear_regression
    >>> rng = np.random.default_rng(0)
    >>> x = rng.uniform(size=3000)
    >>> said = TwoCoins().respond(rng.random(3000) < 0.2 + 0.3 * x, rng=rng)
    >>> fit: LinearFit = linear_regression(TwoCoins(), said, {"x": x})
    >>> lower, upper, _ = fit.interval("x")
    >>> bool(lower < 0.3 < upper)
    True
    """

    names: tuple[str, ...]
    coefficients: NDArray[np.float64]
    covariance: NDArray[np.float64]
    respondents: int

    @property
    def stddev(self) -> NDArray[np.float64]:
        """The standard errors of the coefficients."""
        return np.asarray(np.sqrt(np.diag(self.covariance)))

    def interval(self, name: str, level: float = 0.95) -> Interval:
        """Return an interval for a coefficient.

        Parameters
        ----------
        name : str
            One of `names`.
        level : float
            Wanted coverage, strictly between 0 and 1, which it has in the limit of many respondents.

        Returns
        -------
        Interval
            The estimate and so many standard errors to both sides as Student's t has at the level.
        """
        if name not in self.names:
            _check.refuse("name", f"be one of {', '.join(map(repr, self.names))}", name, "name a coefficient")
        half = self._quantile(level) * float(self.stddev[self.names.index(name)])
        middle = float(self.coefficients[self.names.index(name)])
        return Interval(middle - half, middle + half)

    def predict(self, predictors: Any) -> NDArray[np.float64]:
        """Return the estimated means of the outcome.

        Parameters
        ----------
        predictors : mapping of columns, table or 2-dimensional array
            As in `linear_regression`, of the people in question.

        Returns
        -------
        array of float64
            One for each row; raw: it may lie outside the range of the outcome.
        """
        return np.asarray(self._rows(predictors) @ self.coefficients)

    def prediction_interval(self, predictors: Any, level: float = 0.95) -> Interval[NDArray[np.float64]]:
        """Return intervals for the means that `predict` estimates.

        Parameters
        ----------
        predictors
            As in `predict`.
        level : float
            Wanted coverage of each, strictly between 0 and 1.

        Returns
        -------
        Interval
            Arrays with an entry for each row.
        """
        rows = self._rows(predictors)
        middle, quantile = rows @ self.coefficients, self._quantile(level)
        if not np.isfinite(self.covariance).all():
            return Interval(np.full(len(rows), -np.inf), np.full(len(rows), np.inf))
        half = quantile * np.sqrt(np.einsum("ij,jk,ik->i", rows, self.covariance, rows))
        return Interval(middle - half, middle + half)

    def _rows(self, predictors: Any) -> NDArray[np.float64]:
        given = predictor_matrix(predictors, self.names[1:])[1]
        return np.column_stack([np.ones(len(given)), given])

    def _quantile(self, level: float) -> float:
        wanted = _check.unit_interval("level", level)
        return float(stdtrit(self.respondents - len(self.names), (1 + wanted) / 2))


def linear_regression(design: Design, answers: Any, predictors: Any) -> LinearFit:
    r"""Fit a linear regression of what was asked with randomized response on predictors asked directly.

    Parameters
    ----------
    design : Design
        Whose categories are numbers, or False and True: then the model is of the chance of the trait.
    answers : array, list or column of a frame
        One answer of each respondent, as in `Design.counts`.
    predictors : mapping of columns, table or 2-dimensional array
        As in `logistic_regression`.

    Returns
    -------
    LinearFit

    Raises
    ------
    ParameterError
        If categories are no numbers; if predictors are missing, not finite, or linearly dependent; or if a
        respondent is the only one who determines a coefficient.

    Notes
    -----
    With :math:`T` the design's transition and :math:`c` the categories, each answer has the weight
    :math:`w = T^+ c`, whose expectation given the truth is the truth: :math:`Tw = c`. So the least-squares
    coefficients of the weights are unbiased for those of the truths, whatever their distribution. Their
    variance differs with the truth, and HC3 estimates the covariance all the same, a little too large rather
    than too small. Whatever is true of a respondent, the device gives the weight a variance of at least that
    of one of the categories, :math:`s^2`; so the covariance is at least :math:`s^2(X^TX)^{-1}`, and where HC3
    is less in some direction, as where all answers are alike, it is raised to that.

    Guarantee: none beyond the answers' own: see `randomized_predictor_regression`.

    References
    ----------
    MacKinnon, White (1985), "Some heteroskedasticity-consistent covariance matrix estimators with improved
    finite sample properties".

    Examples
    --------
    >>> import numpy as np
    >>> from sfumato.local.surveys import ForcedCategory
    >>> often, rng = ForcedCategory(names=(0, 1, 2, 3), truth="3/5"), np.random.default_rng(2)
    >>> town = rng.random(4000) < 0.5
    >>> said = often.respond(rng.binomial(3, np.where(town, 0.5, 0.3)), rng=rng)
    >>> fit = linear_regression(often, said, {"town": town})
    >>> lower, upper, _ = fit.interval("town")
    >>> bool(lower < 0.6 < upper)
    True
    """
    _check.instance("design", design, Design, "pass how the outcome was asked")
    weights = _weights(design)
    outcome = weights[indices("answers", answers, design.answers)]
    slopes, matrix = predictor_matrix(predictors)
    if len(matrix) != len(outcome):
        _check.refuse_state("predictors", "have a row for each answer", "they differ", "leave nobody out")
    if INTERCEPT in slopes:
        _check.refuse("predictors", "not be called 'intercept'", slopes, "rename it")
    count, middle = 1 + matrix.shape[1], matrix.mean(axis=0) if len(matrix) else np.zeros(matrix.shape[1])
    width = np.sqrt(((matrix - middle) ** 2).mean(axis=0)) if len(matrix) else middle
    constant = width <= 1e-12 * np.abs(middle)
    scaled = np.column_stack([np.ones(len(matrix)), (matrix - middle) / np.where(constant, 1.0, width)])
    gram = scaled.T @ scaled / max(1, len(matrix))
    if len(matrix) <= count or constant.any() or np.linalg.eigvalsh(gram)[0] < _RANK:
        found = (
            "there are fewer respondents" if len(matrix) <= count else "one is a combination of the others"
        )
        remedy = "leave out what follows from other columns, or is the same for all"
        _check.refuse_state("predictors", "be linearly independent", found, remedy)
    inverse = np.asarray(np.linalg.inv(gram * len(matrix)), dtype=np.float64)
    leverage = np.einsum("ij,jk,ik->i", scaled, inverse, scaled)
    if (leverage > 1 - _ALONE).any():
        remedy = "leave out a column that is special to one respondent"
        _check.refuse_state("predictors", "determine no coefficient by one row", "one does", remedy)
    fitted = inverse @ (scaled.T @ outcome)
    residual = (outcome - scaled @ fitted) / (1 - leverage)
    meat = (scaled * residual[:, None] ** 2).T @ scaled
    back = np.diag(np.concatenate([[1.0], 1 / width]))
    back[0, 1:] = -middle / width
    least = _least_variance(design, weights)
    # Least squares leaves of answers that follow from the predictors what float64 rounds off.
    certain = not least and bool(np.abs(residual).max() <= _ROUNDING * max(1.0, np.abs(weights).max()))
    covariance = (
        np.diag(np.full(len(inverse), np.inf))
        if certain
        else _raised(inverse @ meat @ inverse, inverse, least)
    )
    return LinearFit(
        names=(INTERCEPT, *slopes),
        coefficients=back @ fitted,
        covariance=back @ covariance @ back.T if np.isfinite(covariance).all() else covariance,
        respondents=len(outcome),
    )


def _least_variance(design: Design, weights: NDArray[np.float64]) -> float:
    """Return the least variance that the device gives an answer's weight, over what may be true."""
    matrix = np.array([[float(mass) for mass in row] for row in design.transition])
    apart = weights[None, :] - (matrix @ weights)[:, None]
    return float((matrix * apart**2).sum(axis=1).min())


def _raised(
    estimated: NDArray[np.float64], inverse: NDArray[np.float64], least: float
) -> NDArray[np.float64]:
    """Return an estimated covariance, never below `least` times `inverse`."""
    root = np.linalg.cholesky(inverse)
    inner = np.linalg.solve(root, np.linalg.solve(root, estimated).T)
    values, vectors = np.linalg.eigh((inner + inner.T) / 2)
    outward = root @ vectors
    return np.asarray((outward * np.maximum(values, least)) @ outward.T)


def _weights(design: Design) -> NDArray[np.float64]:
    """Return a weight for each answer whose expectation is the truth."""
    categories = design.categories
    if not all(isinstance(value, bool | int | float) for value in categories):
        remedy = "name its categories by numbers, such as 0, 1, 2"
        _check.refuse_state("design", "have numbers as categories", "they are no numbers", remedy)
    truths = np.array([float(value) for value in categories if isinstance(value, bool | int | float)])
    matrix = np.array([[float(mass) for mass in row] for row in design.transition])
    return np.asarray(np.linalg.pinv(matrix) @ truths)
