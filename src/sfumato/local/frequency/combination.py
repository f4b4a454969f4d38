"""Sums and differences of estimates that were made apart: versions of a question, weeks, groups."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, final

import numpy as np
from scipy.special import ndtr, ndtri

from sfumato import _check
from sfumato._display import named
from sfumato.local.device.domains.categories import Domain
from sfumato.local.frequency.estimate import Estimate
from sfumato.local.frequency.variance import Array
from sfumato.mechanisms.base.release_table import Rows, drawn
from sfumato.numerics.interval import Interval

__all__ = ["CombinedShares", "PooledShares", "ShareDifference", "difference", "pool"]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class CombinedShares(ABC):
    r"""A weighted sum of the shares that several estimates are of.

    Parameters
    ----------
    parts : tuple of Estimate
        Of independent reports, each with at least one.

    Notes
    -----
    *Interval.* With estimates :math:`x_i`, their score intervals :math:`[l_i, u_i]` and weights
    :math:`w_i > 0` the ends are :math:`\sum w_i x_i \pm \sqrt{\sum w_i^2 e_i^2}`, where :math:`e_i` is
    :math:`u_i - x_i` or :math:`x_i - l_i`, whichever the end depends on: the square-and-add rule of Newcombe,
    called MOVER. It holds for many reports, like the score intervals that it is made of.

    *Whose shares.* Without more, those of the respondents: only the randomization is in the error. With
    ``population=True`` those of a population from which the respondents were drawn independently:
    :math:`f_i (1 - f_i) / n_i` is added to each variance.

    Each device's loss is that of the reports it sent; one that sent several has paid for each.

    References
    ----------
    Newcombe (1998), "Interval estimation for the difference between independent proportions"; Zou, Donner
    (2008), "Construction of confidence limits about effect measures: a general approach".
    """

    parts: tuple[Estimate, ...]

    @property
    @abstractmethod
    def weights(self) -> tuple[float, ...]:
        """What each part is multiplied by."""

    @property
    def domain(self) -> Domain:
        """The categories, in the order of the first part."""
        return self.parts[0].domain

    @property
    def simulated(self) -> bool:
        """Whether the randomness of a report followed from a seed."""
        return any(part.simulated for part in self.parts)

    @property
    def frequencies(self) -> Array:
        """The weighted sum of the raw estimates, which is unbiased."""
        found: Array = sum(w * x for w, x in zip(self.weights, self._raw(), strict=True))  # type: ignore[assignment]
        return found

    @property
    def stddev(self) -> Array:
        """Estimated standard deviations, by randomization alone."""
        return np.sqrt(sum(w * w * self._variances(i) for i, w in enumerate(self.weights)))

    def interval(self, level: float = 0.95, *, population: bool = False) -> Interval[Array]:
        """Return an interval for each category, which holds with about the stated probability.

        Parameters
        ----------
        level : float
            Wanted coverage of each, strictly between 0 and 1.
        population : bool
            Whether the shares are those of a population from which the respondents were drawn.

        Returns
        -------
        Interval
            Arrays over the categories.
        """
        return self._ends(1 - _check.unit_interval("level", level), population=population)

    def bands(self, level: float = 0.95, *, population: bool = False) -> Interval[Array]:
        """Return intervals that hold for all categories at once (Bonferroni).

        Parameters
        ----------
        level, population
            See `interval`.

        Returns
        -------
        Interval
            Arrays over the categories.
        """
        risk = (1 - _check.unit_interval("level", level)) / len(self.domain)
        return self._ends(risk, population=population)

    def to_dict(self, level: float = 0.95, *, population: bool = False) -> dict[str, Any]:
        """Return columns for a table: category, value, lower and upper end, standard deviation.

        Parameters
        ----------
        level, population
            See `interval`.

        Returns
        -------
        dict of list or array
            As frames take them.
        """
        lower, upper, _ = self.interval(level, population=population)
        return {
            "category": list(self.domain.values),
            "value": self.frequencies,
            "lower": lower,
            "upper": upper,
            "stddev": self.stddev,
        }

    def plot(self, ax: Any = None, *, level: float = 0.95, population: bool = False) -> Any:
        """Draw each category with its interval; return the axes, and show nothing.

        Parameters
        ----------
        ax : matplotlib.axes.Axes, optional
            New ones if left out.
        level, population
            See `interval`.

        Returns
        -------
        matplotlib.axes.Axes

        Raises
        ------
        MissingExtra
            If matplotlib is absent and no axes are given.
        """
        labels = {"category": list(map(named, self.domain.values))}
        return drawn(Rows(labels, self.frequencies, self.interval(level, population=population)), ax)

    def _order(self, index: int) -> Any:
        """Return where the categories of the first part stand in another."""
        return self.parts[index].domain.codes(list(self.domain.values))

    def _raw(self) -> list[Array]:
        return [part.raw[self._order(i)] for i, part in enumerate(self.parts)]

    def _variances(self, index: int) -> Array:
        found: Array = self.parts[index].variances[self._order(index)]
        return found

    def _ends(self, risk: float, *, population: bool) -> Interval[Array]:
        if not isinstance(population, bool):
            _check.refuse("population", "be True or False", population, "say whose shares are meant")
        z = -float(ndtri(risk / 2))
        below, above = np.zeros(len(self.domain)), np.zeros(len(self.domain))
        for index, (weight, raw) in enumerate(zip(self.weights, self._raw(), strict=True)):
            part = self.parts[index]
            ends = part.error_model.score(part.raw, part.reports, z)
            sides = [raw - ends.lower[self._order(index)], ends.upper[self._order(index)] - raw]
            share = np.clip(raw, 0.0, 1.0)
            drawn_too = z * z * share * (1 - share) / part.reports if population else 0.0
            lower, upper = (weight**2 * (side**2 + drawn_too) for side in sides)
            below += lower if weight > 0 else upper
            above += upper if weight > 0 else lower
        middle = self.frequencies
        least = -float(any(weight < 0 for weight in self.weights))
        return Interval(
            np.clip(middle - np.sqrt(below), least, 1.0), np.clip(middle + np.sqrt(above), least, 1.0)
        )


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ShareDifference(CombinedShares):
    """By how much the shares of a first estimate exceed those of a second; `difference` makes it.

    Parameters
    ----------
    parts : tuple of two Estimates

    Examples
    --------
    >>> from sfumato import local
    >>> oracle = local.RandomizedResponse(epsilon=2.0, domain=local.Domain(["on", "off"]))
    >>> week, before = oracle.simulate([6000, 4000], rng=1), oracle.simulate([5000, 5000], rng=2)
    >>> change = local.difference(week, before)
    >>> lower, upper, _ = change.interval(0.95)
    >>> bool(lower[0] <= 0.1 <= upper[0]), bool(change.p_values()[0] < 1e-6)
    (True, True)
    """

    @property
    def weights(self) -> tuple[float, ...]:
        """The first less the second."""
        return (1.0, -1.0)

    def p_values(self, *, population: bool = False) -> Array:
        """Return two-sided p-values of each category's having the same share in both.

        Parameters
        ----------
        population : bool
            Whether the shares are those of populations from which the respondents were drawn.

        Returns
        -------
        array of float
            One for each category, for many reports; those of several categories need a correction.

        Notes
        -----
        The difference over its standard deviation is nearly normal; the latter is taken at the share of all
        respondents together, as is right where both are the same.
        """
        first, second = self.parts
        raw = self._raw()
        share = np.clip(np.average(raw, axis=0, weights=[first.reports, second.reports]), 0.0, 1.0)
        variance = np.zeros(len(share))
        for index, part in enumerate(self.parts):
            at = np.empty(len(share))
            at[self._order(index)] = share
            each = part.error_model.variance(at)[self._order(index)]
            variance += (each + (share * (1 - share) if population else 0.0)) / part.reports
        with np.errstate(divide="ignore", invalid="ignore"):
            z = np.where(variance > 0, (raw[0] - raw[1]) / np.sqrt(variance), np.inf)
        return np.where(raw[0] == raw[1], 1.0, 2 * ndtr(-np.abs(z)))


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PooledShares(CombinedShares):
    """The shares among the respondents of several estimates together; `pool` makes it.

    Parameters
    ----------
    parts : tuple of Estimates

    Examples
    --------
    >>> from sfumato import local
    >>> domain = local.Domain(["on", "off"])
    >>> old = local.RandomizedResponse(epsilon=1.0, domain=domain).simulate([6000, 4000], rng=1)
    >>> new = local.RandomizedResponse(epsilon=2.0, domain=domain).simulate([2000, 8000], rng=2)
    >>> pooled = local.pool(old, new)
    >>> lower, upper, _ = pooled.interval(0.95)
    >>> bool(lower[0] <= 0.4 <= upper[0]), pooled.reports
    (True, 20000)
    """

    @property
    def reports(self) -> int:
        """How many there are together."""
        return sum(part.reports for part in self.parts)

    @property
    def weights(self) -> tuple[float, ...]:
        """Each part's share of the reports."""
        return tuple(part.reports / self.reports for part in self.parts)


def difference(first: Estimate, second: Estimate) -> ShareDifference:
    """Return by how much the shares of one collection exceed those of another, with intervals and p-values.

    Parameters
    ----------
    first, second : Estimate
        Of independent reports about the same categories, such as of two weeks, or of groups A and B; the
        protocols and epsilons may differ.

    Returns
    -------
    ShareDifference

    Raises
    ------
    ParameterError
        If an estimate has no reports, or the categories are not the same.

    Notes
    -----
    Where devices repeat memoized answers, the noise of two weeks is the same for those who did not change,
    and cancels: the intervals are wider than they need to be.
    """
    return ShareDifference(parts=_alike(("first", first), ("second", second)))


def pool(first: Estimate, *others: Estimate) -> PooledShares:
    """Return the shares among the respondents of several collections, such as two versions of a question.

    Parameters
    ----------
    first, *others : Estimate
        Of independent reports about the same categories; the protocols and epsilons may differ.

    Returns
    -------
    PooledShares
        Each collection counts by its number of reports.

    Raises
    ------
    ParameterError
        If an estimate has no reports, or the categories are not the same.
    """
    return PooledShares(parts=_alike(("first", first), *(("others", other) for other in others)))


def _alike(*named: tuple[str, Estimate]) -> tuple[Estimate, ...]:
    categories = None
    for name, given in named:
        if not isinstance(given, Estimate):
            _check.refuse_type(name, "be an Estimate", given, "pass what estimate() of an aggregator returns")
        if not given.reports or not np.isfinite(given.raw).all():
            _check.refuse(name, "have enough reports for an estimate", given.reports, "collect some first")
        if categories is None:
            categories = set(given.domain.values)
        elif set(given.domain.values) != categories:
            rule = "be about the categories of the first"
            remedy = "ask about the same ones, or map both to common ones on the devices"
            _check.refuse_state(name, rule, f"{len(given.domain)} others", remedy)
    return tuple(given for _, given in named)
