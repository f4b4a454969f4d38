"""The rule for fully synthetic data: one estimate of several synthetic tables'."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final, final

import numpy as np
import scipy.special
from numpy.typing import ArrayLike

from sfumato import _check
from sfumato.numerics.interval import Interval

__all__ = ["CombinedEstimate", "combine"]

_REMEDY: Final = "pass one number, or one vector, for each of at least two synthetic tables"


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class CombinedEstimate:
    """An estimate from several synthetic tables, with its variance.

    Parameters
    ----------
    estimate : float or array
        The mean of the tables' estimates.
    variance : float or array
        Of the estimate, noise and sampling of people included.
    degrees_of_freedom : float or array
        Of the t distribution that intervals and p-values are from.
    adjusted : bool or array
        Whether the rule's variance was not positive, and another one stands for it.

    Examples
    --------
    >>> from sfumato.synthetic import combine
    >>> combine([0.9, 1.3, 1.1, 0.8], [0.01, 0.01, 0.01, 0.01])
    <CombinedEstimate 1.025, standard error 0.227>
    """

    estimate: Any
    variance: Any
    degrees_of_freedom: Any
    adjusted: Any

    def __repr__(self) -> str:
        if np.ndim(self.estimate):
            return f"<CombinedEstimate of {np.size(self.estimate)} quantities>"
        return f"<CombinedEstimate {self.estimate:.4g}, standard error {self.standard_error:.3g}>"

    @property
    def standard_error(self) -> Any:
        """The root of the variance."""
        return _plain(np.sqrt(self.variance))

    def interval(self, level: float = 0.95) -> Interval[Any]:
        """Return an interval for the population's value.

        Parameters
        ----------
        level : float
            Wanted coverage, strictly between 0 and 1.

        Returns
        -------
        Interval
        """
        level = _check.probability("level", level)
        reach = self.standard_error * scipy.special.stdtrit(self.degrees_of_freedom, 0.5 + level / 2)
        return Interval(_plain(self.estimate - reach), _plain(self.estimate + reach))

    def p_value(self, null: float = 0.0) -> Any:
        """Return the two-sided p-value of a population's value.

        Parameters
        ----------
        null : float

        Returns
        -------
        float or array
        """
        ratio = np.abs(self.estimate - _check.finite("null", null)) / self.standard_error
        return _plain(2 * scipy.special.stdtr(self.degrees_of_freedom, -ratio))


def combine(estimates: ArrayLike, variances: ArrayLike, *, row_ratio: float = 1.0) -> CombinedEstimate:
    r"""Return one estimate of several synthetic tables', by the rule for fully synthetic data.

    Parameters
    ----------
    estimates : array of shape (tables,) or (tables, quantities)
        What an analysis gives on each table, as if its rows were people.
    variances : array of the same shape
        The squared standard errors that the same analysis gives.
    row_ratio : float
        How many rows a synthetic table has for each row that was counted; 1 unless other rows were drawn.

    Returns
    -------
    CombinedEstimate

    Raises
    ------
    ParameterError
        If there are fewer than two tables, or what was given is not finite, or a variance is negative.

    Notes
    -----
    Each table must be drawn from parameters of its own, drawn from their posterior: those of
    ``model.posterior()``, never several tables of one model. With m tables, :math:`\bar q` the mean of the
    estimates, b their variance and :math:`\bar v` the mean of the variances, the variance of :math:`\bar q`
    is :math:`T = (1 + 1/m)b - \bar v`, with :math:`(m - 1)(1 - \bar v/((1 + 1/m)b))^2` degrees of freedom
    (Raghunathan, Reiter, Rubin 2003). It is a difference, and may not be positive where tables are few: then
    :math:`\bar v` times ``row_ratio``, what so many rows would give without noise, stands for it (Reiter
    2002), with m - 1 degrees of freedom. More draws, or more rows in each table, make this rare.

    References
    ----------
    Raghunathan, Reiter, Rubin, "Multiple imputation for statistical disclosure limitation" (Journal of
    Official Statistics 2003); Reiter, "Satisfying disclosure restrictions with synthetic data sets" (Journal
    of Official Statistics 2002); Räisä, Jälkö, Kaski, Honkela, "Noise-aware statistical inference with
    differentially private synthetic data" (AISTATS 2023).

    Examples
    --------
    >>> found = combine([0.9, 1.3, 1.1, 0.8], [0.01, 0.01, 0.01, 0.01])
    >>> round(found.variance, 6), round(found.degrees_of_freedom, 3)
    (0.051458, 2.103)
    >>> lower, upper, _ = found.interval(0.9)
    >>> round(lower, 2), round(upper, 2)
    (0.38, 1.67)
    """
    given = np.array(estimates, np.float64)
    errors = np.array(variances, np.float64)
    if given.ndim not in (1, 2) or errors.shape != given.shape:
        _check.refuse_type("estimates", "have one or two axes, as variances", given, _REMEDY)
    tables = len(given)
    if tables < 2:
        _check.refuse_state("estimates", "be of at least two tables", f"it is of {tables}", _REMEDY)
    if not (np.isfinite(given).all() and np.isfinite(errors).all() and (errors >= 0).all()):
        remedy = "leave out an analysis that failed on some table"
        _check.refuse_state("estimates", "be finite, with variances of at least 0", "they are not", remedy)
    ratio = _check.positive("row_ratio", row_ratio)
    between, within = (1 + 1 / tables) * given.var(axis=0, ddof=1), errors.mean(axis=0)
    total = between - within
    adjusted = total <= 0
    part = np.divide(within, between, out=np.zeros_like(within), where=between > 0)
    freedom = np.where(adjusted, tables - 1.0, (tables - 1) * (1 - part) ** 2)
    return CombinedEstimate(
        estimate=_plain(given.mean(axis=0)),
        variance=_plain(np.where(adjusted, ratio * within, total)),
        degrees_of_freedom=_plain(freedom),
        adjusted=_plain(adjusted),
    )


def _plain(found: Any) -> Any:
    """Return a single number as a number of Python."""
    return np.asarray(found)[()].item() if np.ndim(found) == 0 else found
