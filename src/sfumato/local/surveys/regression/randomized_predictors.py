"""Regression on traits that were asked with randomized response, known only by their answers."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, final

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from sfumato import _check
from sfumato.local.surveys.designs.binary import BinaryDesign
from sfumato.local.surveys.estimates.answer_counts import indices
from sfumato.local.surveys.inference.hypothesis_tests import Finding
from sfumato.local.surveys.regression.chain import chain_of, covariates, numbers, randomized_traits
from sfumato.local.surveys.regression.fitted import INTERCEPT, Fitted
from sfumato.local.surveys.regression.fitting import best_maximum, reported
from sfumato.local.surveys.regression.likelihood import Array
from sfumato.local.surveys.regression.predictors import predictor_matrix
from sfumato.numerics.interval import Interval

__all__ = ["PredictorModel", "RandomizedPredictorFit", "randomized_predictor_regression"]


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PredictorModel:
    """The fitted chance of a randomized predictor, given the others.

    Parameters
    ----------
    predictor : str
        Of which trait.
    names : tuple of str
        The intercept, the covariates, and the randomized predictors that were listed before it.
    coefficients : array
        Changes of its log odds.
    covariance : array

    Examples
    --------
    >>> import numpy as np
    >>> from sfumato.local.surveys import TwoCoins, randomized_predictor_regression
    >>> rng = np.random.default_rng(0)
    >>> true = rng.random(2000) < 0.3
    >>> outcome, said = rng.normal(size=2000) + 2 * true, TwoCoins().respond(true, rng=rng)
    >>> fit = randomized_predictor_regression(outcome, None, {"trait": (TwoCoins(), said)}, family="linear")
    >>> model: PredictorModel = fit.predictor_models[0]
    >>> model.predictor, model.names, bool(abs(model.coefficients[0] - np.log(0.3 / 0.7)) < 0.3)
    ('trait', ('intercept',), True)
    """

    predictor: str
    names: tuple[str, ...]
    coefficients: NDArray[np.float64]
    covariance: NDArray[np.float64]


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class RandomizedPredictorFit:
    """A regression some of whose predictors are known only through randomized answers.

    Parameters
    ----------
    family : {"logistic", "linear"}
    names : tuple of str
        Of the coefficients: the intercept, the covariates, then the randomized predictors.
    coefficients : array
        Those of the maximum likelihood; infinite for those in `unbounded`.
    covariance : array
        By the observed information, of all models together.
    predictor_models : tuple of PredictorModel
        The randomized predictors given the covariates.
    residual_stddev : float, optional
        Of a linear regression.
    log_likelihood : float
    respondents : int
    unbounded : tuple of str
        The coefficients without a finite estimate.
    converged : bool

    Examples
    --------
    >>> import numpy as np
    >>> from sfumato.local.surveys import TwoCoins, randomized_predictor_regression
    >>> coins, rng = TwoCoins(), np.random.default_rng(1)
    >>> age, true = rng.normal(size=4000), rng.random(4000) < 0.4
    >>> income = 2 + 0.5 * age - true + rng.normal(size=4000)
    >>> fit: RandomizedPredictorFit = randomized_predictor_regression(
    ...     income, {"age": age}, {"trait": (coins, coins.respond(true, rng=rng))}, family="linear"
    ... )
    >>> lower, upper, _ = fit.interval("trait")
    >>> fit.names, bool(lower < -1 < upper)
    (('intercept', 'age', 'trait'), True)
    """

    family: Literal["logistic", "linear"]
    names: tuple[str, ...]
    coefficients: NDArray[np.float64]
    covariance: NDArray[np.float64]
    predictor_models: tuple[PredictorModel, ...]
    residual_stddev: float | None
    log_likelihood: float
    respondents: int
    unbounded: tuple[str, ...]
    converged: bool
    _fitted: Fitted = field(repr=False)

    @property
    def stddev(self) -> NDArray[np.float64]:
        """The standard errors of the coefficients."""
        return np.asarray(np.sqrt(np.diag(self.covariance)))

    def interval(
        self, name: str, level: float = 0.95, method: Literal["profile", "wald"] = "profile"
    ) -> Interval:
        """Return an interval for a coefficient of the outcome's model.

        Parameters
        ----------
        name : str
            One of `names`.
        level : float
            Wanted coverage, strictly between 0 and 1; both methods have it in the limit.
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

    def likelihood_ratio_test(self, *names: str) -> Finding:
        """Test whether some slopes are all 0.

        Parameters
        ----------
        *names : str
            Among `names`, not the intercept; without any, all slopes.

        Returns
        -------
        Finding
            Its statistic is a chi-square in the limit.
        """
        return self._fitted.slopes_test(names)

    def predict(self, predictors: Any) -> NDArray[np.float64]:
        """Return the estimated mean of the outcome for people whose predictors are all known.

        Parameters
        ----------
        predictors : mapping of columns, table or 2-dimensional array
            A column for each name but the intercept; what was randomized is given as 0 and 1.

        Returns
        -------
        array of float64
            One for each row; chances where the family is logistic.
        """
        given = predictor_matrix(predictors, self.names[1:])[1]
        eta = np.column_stack([np.ones(len(given)), given]) @ self._fitted.coefficients
        return np.asarray(expit(eta) if self.family == "logistic" else eta)


def randomized_predictor_regression(
    outcome: Any,
    predictors: Any,
    randomized: Mapping[str, tuple[BinaryDesign, Any]],
    *,
    family: Literal["logistic", "linear"] = "logistic",
    design: BinaryDesign | None = None,
) -> RandomizedPredictorFit:
    r"""Fit a regression on covariates and on traits that were asked with randomized response.

    Parameters
    ----------
    outcome : array, list or column of a frame
        Numbers for a linear regression; booleans, or 0 and 1, for a logistic one; or answers to `design`.
    predictors : mapping of columns, table or 2-dimensional array, or None
        Covariates that were asked directly, as in `logistic_regression`.
    randomized : mapping of str to pairs
        For each randomized predictor, from 1 to 4 of them, its design and the answer of each respondent.
    family : {"logistic", "linear"}
    design : BinaryDesign, optional
        How the outcome of a logistic regression was asked, if it was randomized too.

    Returns
    -------
    RandomizedPredictorFit

    Raises
    ------
    ParameterError
        If columns are missing, not finite, or linearly dependent; no value is shown.

    Notes
    -----
    An answer put in the place of the truth, or its unbiased estimate, pulls a slope towards 0. Here the
    truths are summed over: each randomized predictor has a logistic regression on the covariates and on the
    randomized ones before it, the outcome one on all of them, logistic or with normal errors, and the
    likelihood of outcomes and answers together is maximized, with its observed information (Louis). The
    answers depend on nothing but their own trait. A wrong model of a predictor biases the outcome's.

    Guarantee: none beyond the answers' own. Their epsilon is that of the designs, which add up if one person
    answers several; the fit is post-processing of the answers, but covariates and an outcome that was asked
    directly are not protected.

    References
    ----------
    Louis (1982), "Finding the observed information matrix when using the EM algorithm"; van den Hout, Kooiman
    (2006), "Estimating the linear regression model with categorical covariates subject to randomized
    response".

    Examples
    --------
    >>> import numpy as np
    >>> from sfumato.local.surveys import ForcedResponse
    >>> die, rng = ForcedResponse(yes="1/6", no="1/6"), np.random.default_rng(5)
    >>> bullied = rng.random(4000) < 0.3
    >>> absent = rng.random(4000) < np.where(bullied, 0.4, 0.1)
    >>> said = die.respond(bullied, rng=rng)
    >>> fit = randomized_predictor_regression(absent, None, {"bullied": (die, said)})
    >>> chances = fit.predict({"bullied": [0, 1]})
    >>> bool(abs(chances - [0.1, 0.4]).max() < 0.05)
    True
    """
    traits = randomized_traits(randomized)
    _check_family(family, design)
    linear = family == "linear"
    slopes, matrix = covariates(predictors, len(traits[0][2]))
    names = (INTERCEPT, *slopes, *(name for name, _, _ in traits))
    if len(set(names)) < len(names):
        _check.refuse("randomized", "have names of their own", names, "rename a predictor")
    answered, seen = None, None
    if design is not None:
        answered = ("outcome", design, indices("outcome", outcome, design.answers))
    else:
        seen = numbers("outcome", outcome) if linear else _truths(outcome)
    counted = [*(said for _, _, said in traits), seen if answered is None else answered[2]]
    if any(column is not None and len(column) != len(matrix) for column in counted):
        _check.refuse_state("outcome", "have a row for each respondent", "they differ", "leave nobody out")
    chain = chain_of(matrix, traits, answered, seen, linear=linear)
    best = best_maximum(chain.problem, chain.starts)
    coefficients, covariance, endless = reported(chain.back, best, reduced=False)
    rows = chain.rows
    fitted = Fitted(chain.problem, best, chain.starts, names, chain.back[rows], chain.shift, chain.reach)
    models = [
        PredictorModel(
            predictor=name,
            names=(INTERCEPT, *slopes, *(traits[bit][0] for bit in stage.bits)),
            coefficients=coefficients[stage.slice],
            covariance=covariance[stage.slice, stage.slice],
        )
        for stage, (name, _, _) in zip(chain.problem.stages, traits, strict=False)
    ]
    return RandomizedPredictorFit(
        family=family,
        names=names,
        coefficients=coefficients[rows] + chain.shift,
        covariance=covariance[np.ix_(rows, rows)],
        predictor_models=tuple(models),
        residual_stddev=chain.scale * math.exp(float(best.coefficients[-1])) if linear else None,
        log_likelihood=best.height - (len(matrix) * math.log(chain.scale) if linear else 0.0),
        respondents=len(matrix),
        unbounded=tuple(name for name, row in zip(names, rows, strict=True) if endless[row]),
        converged=best.converged,
        _fitted=fitted,
    )


def _check_family(family: object, design: object) -> None:
    if family not in {"logistic", "linear"}:
        _check.refuse("family", "be 'logistic' or 'linear'", family, "leave it out")
    if design is not None:
        _check.instance("design", design, BinaryDesign, "pass a design with two answers")
        if family == "linear":
            remedy = "pass family='logistic', or linear_regression without randomized predictors"
            _check.refuse("design", "be None for a linear outcome", design, remedy)


def _truths(outcome: Any) -> Array:
    found = numbers("outcome", outcome)
    if not np.isin(found, (0.0, 1.0)).all():
        rule = "be 0 and 1, or booleans, for a logistic regression"
        _check.refuse_type("outcome", rule, outcome, "pass family='linear' for numbers")
    return found
