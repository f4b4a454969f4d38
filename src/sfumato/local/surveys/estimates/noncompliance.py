"""Estimates where some do not follow the instructions: three classes of respondents, from two samples."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Literal, Protocol, TypeAlias, final

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import brentq, minimize_scalar
from scipy.special import chdtri

from sfumato import _check
from sfumato.local.surveys.estimates.likeliest_shares import answer_log_likelihood, likeliest_shares
from sfumato.local.surveys.estimates.notebook_table import estimate_html
from sfumato.numerics.interval import Interval

__all__ = ["CheatingEstimate", "LyingEstimate"]

_Array: TypeAlias = NDArray[np.float64]
_Counts: TypeAlias = tuple[tuple[int, int], tuple[int, int]]


class _ThreeClasses(Protocol):
    """What the estimates need of a design."""

    @property
    def class_transitions(self) -> tuple[tuple[tuple[Fraction, ...], ...], tuple[tuple[Fraction, ...], ...]]:
        """In each sample, the chances of "no" and "yes" of the three classes."""


def _matrices(design: _ThreeClasses) -> list[_Array]:
    return [np.array([[float(mass) for mass in row] for row in rows]) for rows in design.class_transitions]


def _raw(design: _ThreeClasses, counts: _Counts) -> _Array:
    """Return the shares of the three classes that give just the shares of "yes"; NaN for an empty sample."""
    if not all(map(sum, counts)):
        return np.full(3, math.nan)
    rates = np.array([yes / (no + yes) for no, yes in counts])
    system = np.array([rows[:2, 1] for rows in _matrices(design)])
    first, second = np.linalg.solve(system, rates)
    return np.array([first, second, 1 - first - second])


def _covariance(design: _ThreeClasses, counts: _Counts) -> _Array:
    """Return an unbiased estimate of the covariance of the raw shares."""
    if min(map(sum, counts)) < 2:
        return np.full((3, 3), math.nan)
    parts = [yes / (no + yes) * no / (no + yes) / (no + yes - 1) for no, yes in counts]
    inverse = np.linalg.inv(np.array([rows[:2, 1] for rows in _matrices(design)]))
    weights = np.vstack([inverse, -inverse.sum(axis=0)])
    return np.asarray(weights @ np.diag(parts) @ weights.T)


def _profile_interval(
    design: _ThreeClasses, counts: _Counts, value: float, at: Callable[[float, float], _Array], level: float
) -> Interval:
    """Return the values that a likelihood-ratio test does not reject; ``at`` has the shares with a value."""
    target = float(chdtri(1, 1 - _check.unit_interval("level", level)))
    if not all(map(sum, counts)) or math.isnan(value):
        return Interval(0.0, 1.0)
    matrices = _matrices(design)
    top = answer_log_likelihood(counts, matrices, likeliest_shares(counts, matrices))

    def excess(there: float) -> float:
        def low(part: float) -> float:
            return -answer_log_likelihood(counts, matrices, at(there, part))

        inner = minimize_scalar(low, bounds=(0.0, 1.0), method="bounded", options={"xatol": 1e-10})
        return 2 * (top + min(float(inner.fun), low(0.0), low(1.0))) - target

    lower = brentq(excess, 0.0, value, xtol=1e-10) if value > 0 and excess(0.0) > 0 else 0.0
    upper = brentq(excess, value, 1.0, xtol=1e-10) if value < 1 and excess(1.0) > 0 else 1.0
    return Interval(float(lower), float(upper))


def _one_share(index: int) -> Callable[[float, float], _Array]:
    """Return the shares in which one class has a share, and the first of the others a part of the rest."""
    first, second = (other for other in range(3) if other != index)

    def at(share: float, part: float) -> _Array:
        found = np.empty(3)
        found[index], found[first], found[second] = share, (1 - share) * part, (1 - share) * (1 - part)
        return found

    return at


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class CheatingEstimate:
    """The estimated shares of those who follow the instructions and of those who always say "no".

    Parameters
    ----------
    design : CheatingDetection
    counts : pair of pairs of int
        How many said "no" and "yes", in the first and in the second sample.

    Examples
    --------
    >>> from sfumato.local.surveys import CheatingDetection
    >>> design = CheatingDetection(yes=("1/4", "3/4"))
    >>> found: CheatingEstimate = design.estimate({"yes": 325, "no": 675}, {"yes": 575, "no": 425})
    >>> found.maximum_likelihood.round(6).tolist()
    [0.2, 0.5, 0.3]
    >>> lower, upper, _ = found.interval("cheaters")
    >>> 0 < lower < 0.3 < upper
    True
    """

    design: _ThreeClasses
    counts: _Counts

    @property
    def honest_yes(self) -> float:
        """The raw share of those who follow the instructions and have the trait; NaN for an empty sample."""
        return float(_raw(self.design, self.counts)[0])

    @property
    def honest_no(self) -> float:
        """The raw share of those who follow the instructions and have it not."""
        return float(_raw(self.design, self.counts)[1])

    @property
    def cheaters(self) -> float:
        """The raw share of those who say "no" whatever they are to say."""
        return float(_raw(self.design, self.counts)[2])

    @property
    def stddev(self) -> NDArray[np.float64]:
        """The standard deviations of the three raw shares, in this order."""
        return np.sqrt(np.diag(_covariance(self.design, self.counts)))

    @property
    def maximum_likelihood(self) -> NDArray[np.float64]:
        """The likeliest shares in this order, within [0, 1] and with the sum 1."""
        return likeliest_shares(self.counts, _matrices(self.design))

    def _repr_html_(self) -> str:
        names, raw = ("honest yes", "honest no", "cheaters"), (self.honest_yes, self.honest_no, self.cheaters)
        ends = (
            self.interval("honest_yes")[:2],
            self.interval("honest_no")[:2],
            self.interval("cheaters")[:2],
        )
        rows = zip(names, raw, self.maximum_likelihood.tolist(), ends, strict=True)
        asked = sum(map(sum, self.counts))
        return estimate_html("Estimated shares, of three kinds", rows, respondents=asked, design=self.design)

    def interval(
        self, share: Literal["honest_yes", "honest_no", "cheaters"], level: float = 0.95
    ) -> Interval:
        """Return an interval for a share by profile likelihood.

        Parameters
        ----------
        share : {"honest_yes", "honest_no", "cheaters"}
        level : float
            Wanted coverage, strictly between 0 and 1.

        Returns
        -------
        Interval
            Within [0, 1]; it covers with the level in the limit of many respondents, for shares above 0.
        """
        names = ("honest_yes", "honest_no", "cheaters")
        if share not in names:
            _check.refuse("share", f"be one of {', '.join(map(repr, names))}", share, "name a class")
        index = names.index(share)
        value = float(self.maximum_likelihood[index])
        return _profile_interval(self.design, self.counts, value, _one_share(index), level)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class LyingEstimate:
    """The estimated prevalence, and the share of those with the trait who are honest about it.

    Parameters
    ----------
    design : StochasticLieDetector
    counts : pair of pairs of int
        How many said "no" and "yes", in the first and in the second sample.

    Examples
    --------
    >>> from sfumato.local.surveys import StochasticLieDetector
    >>> design = StochasticLieDetector(truth=("1/6", "5/6"))
    >>> found: LyingEstimate = design.estimate({"yes": 860, "no": 140}, {"yes": 380, "no": 620})
    >>> found.maximum_likelihood.round(4).tolist()
    [0.28, 0.9286]
    >>> lower, upper, _ = found.interval("prevalence")
    >>> lower < 0.28 < upper
    True
    """

    design: _ThreeClasses
    counts: _Counts

    @property
    def prevalence(self) -> float:
        """The unbiased estimate of the share with the trait, raw; NaN for an empty sample."""
        return float(1 - _raw(self.design, self.counts)[1])

    @property
    def honesty(self) -> float:
        """The raw share of the honest among those with the trait; it may lie outside [0, 1]."""
        honest = float(_raw(self.design, self.counts)[0])
        return honest / self.prevalence if self.prevalence else math.nan

    @property
    def stddev(self) -> NDArray[np.float64]:
        """The standard deviations of prevalence and honesty; the second one is linearized."""
        covariance, whole = _covariance(self.design, self.counts), self.prevalence
        # Honesty is the first share over 1 minus the second one.
        slope = np.array([1.0, self.honesty]) / whole if whole else np.full(2, math.nan)
        variance = float(slope @ covariance[:2, :2] @ slope)
        return np.asarray(np.sqrt([covariance[1, 1], max(variance, 0.0)]))

    @property
    def maximum_likelihood(self) -> NDArray[np.float64]:
        """The likeliest prevalence and honesty, within [0, 1]; honesty is NaN where the prevalence is 0."""
        honest, without, lying = likeliest_shares(self.counts, _matrices(self.design)).tolist()
        whole = honest + lying
        return np.array([1 - without, honest / whole if whole > 0 else math.nan])

    def _repr_html_(self) -> str:
        names, raw = ("prevalence", "honesty"), (self.prevalence, self.honesty)
        ends = (self.interval("prevalence")[:2], self.interval("honesty")[:2])
        rows = zip(names, raw, self.maximum_likelihood.tolist(), ends, strict=True)
        asked = sum(map(sum, self.counts))
        return estimate_html("Estimated prevalence and honesty", rows, respondents=asked, design=self.design)

    def interval(self, share: Literal["prevalence", "honesty"], level: float = 0.95) -> Interval:
        """Return an interval for the prevalence or the honesty by profile likelihood.

        Parameters
        ----------
        share : {"prevalence", "honesty"}
        level : float
            Wanted coverage, strictly between 0 and 1.

        Returns
        -------
        Interval
            Within [0, 1]; it covers with the level in the limit of many respondents, for shares between 0 and
            1.
        """
        if share == "prevalence":
            at = _one_share(1)
            value = float(1 - self.maximum_likelihood[0])
            lower, upper, _ = _profile_interval(self.design, self.counts, value, at, level)
            return Interval(1 - upper, 1 - lower)
        if share != "honesty":
            _check.refuse("share", "be 'prevalence' or 'honesty'", share, "name one of the two")

        def honest(part: float, without: float) -> _Array:
            return np.array([(1 - without) * part, without, (1 - without) * (1 - part)])

        value = float(self.maximum_likelihood[1])
        return _profile_interval(self.design, self.counts, value, honest, level)
