"""Logistic regression with a random intercept for each group, of a trait asked with randomized response."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any, Final, Literal, final

import numpy as np
from numpy.polynomial.hermite import hermgauss
from numpy.typing import NDArray
from scipy.special import chdtrc, chdtri, expit

from sfumato import _check
from sfumato.local.surveys.designs.binary import BinaryDesign
from sfumato.local.surveys.estimates.answer_counts import indices
from sfumato.local.surveys.inference.hypothesis_tests import Finding
from sfumato.local.surveys.regression.fitted import INTERCEPT, Fitted
from sfumato.local.surveys.regression.fitting import best_maximum, reported, scaled_problem, starts
from sfumato.local.surveys.regression.likelihood import Maximum
from sfumato.local.surveys.regression.predictors import predictor_matrix
from sfumato.local.surveys.regression.profile_likelihood import profile_bound
from sfumato.local.surveys.regression.random_intercepts import RandomInterceptProblem
from sfumato.numerics.interval import Interval

__all__ = ["MixedLogisticFit", "mixed_logistic_regression"]

_BEGIN: Final = (0.1, 0.5, 1.5)
"""Deviations of the intercepts that the search begins from."""
_NONE: Final = 1e-3
"""A deviation below which it is called 0: the answers do not tell it from that."""
_WIDEST: Final = 100.0
"""A deviation in log odds beyond which groups are all or nothing, and quadrature says nothing more."""
_REACH: Final = 12.0
_GAIN: Final = 1e-4
_FEWEST: Final = 5
_MOST: Final = 100
_MARGINAL: Final = 61


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class MixedLogisticFit:
    """A logistic regression with random intercepts, whose outcome is known through randomized answers.

    Parameters
    ----------
    names : tuple of str
        Of the coefficients; the first is "intercept".
    coefficients : array
        Those of the maximum likelihood, given the group; infinite for those in `unbounded`.
    covariance : array
        By the observed information.
    group_stddev : float
        The standard deviation of the groups' intercepts, in log odds; 0 where the answers show none, and NaN
        where they say nothing of it: the likelihood is flat there, as where all answers are alike.
    log_likelihood : float
    respondents, groups : int
    unbounded : tuple of str
        The coefficients without a finite estimate.
    converged : bool

    Examples
    --------
    >>> import numpy as np
    >>> from sfumato.local.surveys import TwoCoins, mixed_logistic_regression
    >>> coins, rng = TwoCoins(), np.random.default_rng(2)
    >>> school = np.repeat(np.arange(40), 20)
    >>> age = rng.normal(size=800)
    >>> chance = 1 / (1 + np.exp(0.5 - 0.8 * age - rng.normal(size=40)[school]))
    >>> said = coins.respond(rng.random(800) < chance, rng=rng)
    >>> fit: MixedLogisticFit = mixed_logistic_regression(coins, said, {"age": age}, school)
    >>> lower, upper, _ = fit.interval("age", method="wald")
    >>> bool(lower < 0.8 < upper), 0.3 < fit.group_stddev < 1.8
    (True, True)
    """

    names: tuple[str, ...]
    coefficients: NDArray[np.float64]
    covariance: NDArray[np.float64]
    group_stddev: float
    log_likelihood: float
    respondents: int
    groups: int
    unbounded: tuple[str, ...]
    converged: bool
    _fitted: Fitted = field(repr=False)
    _without: Maximum = field(repr=False)

    @property
    def stddev(self) -> NDArray[np.float64]:
        """The standard errors of the coefficients."""
        return np.asarray(np.sqrt(np.diag(self.covariance)))

    def interval(
        self, name: str, level: float = 0.95, method: Literal["profile", "wald"] = "profile"
    ) -> Interval:
        """Return an interval for a coefficient.

        Parameters
        ----------
        name : str
            One of `names`.
        level : float
            Wanted coverage, strictly between 0 and 1; both methods have it in the limit of many groups.
        method : {"profile", "wald"}
            The values that a likelihood-ratio test does not reject, or the estimate with its standard error.

        Returns
        -------
        Interval
            An end is infinite where the answers do not bound the coefficient.
        """
        index = self._fitted.index(name)
        middle, error = float(self.coefficients[index]), float(self.stddev[index])
        return self._fitted.interval(name, level, method, middle, error)

    def group_stddev_interval(self, level: float = 0.95) -> Interval:
        """Return the interval by profile likelihood for the standard deviation of the groups' intercepts.

        Parameters
        ----------
        level : float
            Wanted coverage, strictly between 0 and 1. Where there is no variation it is more.

        Returns
        -------
        Interval
            Its lower end is 0 where the answers do not exclude that, its upper end infinite beyond 100 in log
            odds: there each group's chances are 0 or 1. All numbers from 0 where the estimate is NaN.
        """
        wanted = _check.unit_interval("level", level)
        if math.isnan(self.group_stddev):
            return Interval(0.0, math.inf)
        best, problem = self._fitted.best, self._fitted.problem
        last = np.eye(len(best.coefficients))[-1]
        upper = math.exp(min(profile_bound(problem, best, last, wanted, _REACH), _REACH))
        upper = math.inf if upper > _WIDEST else upper
        if self.heterogeneity_test().statistic <= float(chdtri(1, 1 - wanted)):
            return Interval(0.0, upper)
        return Interval(math.exp(profile_bound(problem, best, last, wanted, -_REACH)), upper)

    def likelihood_ratio_test(self, *names: str) -> Finding:
        """Test whether some slopes are all 0.

        Parameters
        ----------
        *names : str
            Among `names`, not the intercept; without any, all slopes.

        Returns
        -------
        Finding
            Its statistic is a chi-square in the limit of many groups.
        """
        return self._fitted.slopes_test(names)

    def heterogeneity_test(self) -> Finding:
        """Test whether the groups differ, beyond what their predictors explain.

        Returns
        -------
        Finding
            Of the likelihood ratio. A deviation of 0 is at the end of its range, so that the statistic is, in
            the limit of many groups, 0 or a chi-square with one degree of freedom, each with a chance of 1/2
            (Self, Liang 1987).
        """
        statistic = 2 * max(0.0, self._fitted.best.height - self._without.height)
        return Finding(
            p_value=float(chdtrc(1, statistic)) / 2 if statistic > 0 else 1.0,
            method="likelihood ratio, approximate",
            statistic=statistic,
            degrees=1,
        )

    def predict(self, predictors: Any) -> NDArray[np.float64]:
        """Return the estimated chances of the trait over all groups: the mean over their intercepts.

        Parameters
        ----------
        predictors : mapping of columns, table or 2-dimensional array
            As in `mixed_logistic_regression`, of the people in question.

        Returns
        -------
        array of float64
            One for each row, within [0, 1].
        """
        given = predictor_matrix(predictors, self.names[1:])[1]
        eta = np.column_stack([np.ones(len(given)), given]) @ self._fitted.coefficients
        points, weights = hermgauss(_MARGINAL)
        # Where the deviation is NaN every chance is 0 or 1, whatever it is.
        deviation = 0.0 if math.isnan(self.group_stddev) else self.group_stddev
        moved = eta[:, None] + math.sqrt(2) * deviation * points
        return np.asarray(expit(moved) @ weights / math.sqrt(math.pi))


def mixed_logistic_regression(
    design: BinaryDesign,
    answers: Any,
    predictors: Any,
    groups: Any,
    *,
    nodes: int = 31,
) -> MixedLogisticFit:
    r"""Fit a logistic regression with a random intercept for each group of respondents.

    Parameters
    ----------
    design : BinaryDesign
        How the trait was asked.
    answers : array, list or column of a frame
        One answer of each respondent.
    predictors : mapping of columns, table or 2-dimensional array
        As in `logistic_regression`.
    groups : array, list or column of a frame
        The school, interviewer, town or person of each answer: integers, booleans or texts.
    nodes : int
        Of the quadrature, from 5 to 100.

    Returns
    -------
    MixedLogisticFit

    Raises
    ------
    ParameterError
        If predictors are missing, not finite or linearly dependent, or fewer than two groups have two
        members.

    Notes
    -----
    Given the intercept :math:`\sigma u_j` of the group, with a standard normal u, answers are independent,
    with the chances of `logistic_regression` at :math:`\beta^T x_i + \sigma u_j`. The integral over u is a
    sum at the nodes of Gauss and Hermite, moved to the mode of the integrand and stretched to its curvature
    there (Liu, Pierce 1994). Intervals and tests hold in the limit of many groups.

    Guarantee: none beyond the answers' own: see `randomized_predictor_regression`. Where one person gives
    several answers, their losses add up.

    References
    ----------
    Liu, Pierce (1994), "A note on Gauss-Hermite quadrature"; Pinheiro, Bates (1995), "Approximations to the
    log-likelihood function in the nonlinear mixed-effects model"; Self, Liang (1987), "Asymptotic properties
    of maximum likelihood estimators and likelihood ratio tests under nonstandard conditions".

    Examples
    --------
    >>> import numpy as np
    >>> from sfumato.local.surveys import ForcedResponse
    >>> die, rng = ForcedResponse(yes="1/6", no="1/6"), np.random.default_rng(3)
    >>> town = np.repeat(["a", "b", "c", "d", "e", "f"], 60)
    >>> said = die.respond(rng.random(360) < 0.3, rng=rng)
    >>> fit = mixed_logistic_regression(die, said, {"x": rng.normal(size=360)}, town)
    >>> fit.groups, fit.group_stddev < 1
    (6, True)
    """
    _check.instance("design", design, BinaryDesign, "pass a design with two answers")
    if not _FEWEST <= _check.integer("nodes", nodes) <= _MOST:
        _check.refuse("nodes", f"be from {_FEWEST} to {_MOST}", nodes, "leave it out")
    said = indices("answers", answers, design.answers)
    slopes, matrix = predictor_matrix(predictors)
    which, begins = _groups(groups)
    if not len(matrix) == len(said) == len(which):
        _check.refuse_state("predictors", "have a row for each answer", "they differ", "leave nobody out")
    if INTERCEPT in slopes:
        _check.refuse("predictors", "not be called 'intercept'", slopes, "rename it")
    order = np.argsort(which, kind="stable")
    if_false, if_true = (np.array([float(mass) for mass in row])[said[order]] for row in design.transition)
    scaled = scaled_problem(matrix[order], if_false, if_true, intercept=True, reduced=False)
    fixed = best_maximum(scaled.problem, starts(scaled.problem))
    problem = RandomInterceptProblem(scaled.problem.matrix, if_false, if_true, begins, nodes)
    begin = [np.append(fixed.coefficients, math.log(deviation)) for deviation in _BEGIN]
    best = best_maximum(problem, begin)
    count, names = matrix.shape[1] + 1, (INTERCEPT, *slopes)
    back = np.zeros((count + 1, count + 1))
    back[:count, :count], back[count, count] = scaled.back, 1.0
    coefficients, covariance, endless = reported(back, best, reduced=False)
    fitted = Fitted(problem, best, begin, names, back[:count], np.zeros(count), scaled.reach)
    deviation = math.exp(float(best.coefficients[-1]))
    return MixedLogisticFit(
        names=names,
        coefficients=coefficients[:count],
        covariance=covariance[:count, :count],
        group_stddev=0.0 if deviation < _NONE else math.nan if endless[count] else deviation,
        log_likelihood=max(best.height, fixed.height),
        respondents=len(said),
        groups=len(begins),
        unbounded=tuple(name for name, without in zip(names, endless[:count], strict=True) if without),
        converged=best.converged or _promised(problem, best) < _GAIN,
        _fitted=fitted,
        _without=fixed,
    )


def _promised(problem: RandomInterceptProblem, best: Maximum) -> float:
    """Return what another step promises: no less than the error of the quadrature."""
    gradient, information = problem.derivatives(best.coefficients)
    return abs(float(gradient @ np.linalg.pinv(information, hermitian=True) @ gradient))


def _groups(groups: Any) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the number of each respondent's group, and where each begins when they are sorted."""
    given = np.asarray(groups)
    rule = "have an integer, a boolean or a text for each respondent"
    texts = given.dtype.kind == "O" and all(isinstance(value, str) for value in given.ravel().tolist())
    if given.ndim != 1 or (given.dtype.kind not in "buiU" and not texts):
        _check.refuse_type("groups", rule, groups, "leave out who has no group")
    _, which = np.unique(given.astype(str) if texts else given, return_inverse=True)
    sizes = np.bincount(which.ravel()) if len(which) else np.zeros(0, np.int64)
    if int((sizes > 1).sum()) < 2:
        remedy = "take logistic_regression, which has no intercepts of groups"
        rule = "be two or more with two respondents or more"
        _check.refuse_state("groups", rule, "there are fewer", remedy)
    return which.ravel().astype(np.int64), np.append(0, np.cumsum(sizes)[:-1]).astype(np.int64)
