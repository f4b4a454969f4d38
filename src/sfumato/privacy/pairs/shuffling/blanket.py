"""The privacy blanket: the pair of one shuffled report if part of each report ignores its data."""

from __future__ import annotations

import math
from fractions import Fraction
from functools import lru_cache
from typing import Final, NamedTuple, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from sfumato.numerics.rounding import fraction_down
from sfumato.privacy._outward import UNIT
from sfumato.privacy.pairs.pair import Pair, no_loss, two_points
from sfumato.privacy.pairs.shuffling.clones import MAX_EPSILON
from sfumato.privacy.pairs.shuffling.report_counts import (
    TAIL,
    Cells,
    Counts,
    ReportCountsPair,
    binomial,
    steps,
)

__all__ = ["Blanket", "Blanketed", "among", "blanketed"]

_Array = NDArray[np.float64]

_MAX_CLIENTS: Final = 10**10
"""More are counted as so many: further clients only hide more."""
_RATIO: Final = 4e-4
_REPORT_RATIO: Final = 1e-3
"""Numbers of reports that differ by this proportion count as the smallest of them."""
_STEP: Final = 0.01
_CLOSE_STEP: Final = 5e-4
"""Proportions of reports are split between powers of ``exp(-step)``, closer ones in small batches."""
_SMALL: Final = 150
_SLACK: Final = 1e-12
_MINIMUM: Final = 1e-48


class Blanket(NamedTuple):
    r"""A distribution of which every report is the same proportion of a multiple, whatever the datum.

    Attributes
    ----------
    epsilon : float
        Each datum has a set of reports that are :math:`e^\epsilon` times as likely under it, relative to the
        distribution, as all other reports.
    chance : float
        Probability of such a set under the distribution, for each datum; the sets of different data are
        disjoint.
    """

    epsilon: float
    chance: float


@runtime_checkable
class Blanketed(Protocol):
    """A local randomizer that knows what its reports have in common."""

    def blanket(self) -> Blanket:
        """Return the common part of the reports of all data."""


@lru_cache(maxsize=256)
def blanketed(blanket: Blanket, clients: int) -> Pair:
    r"""Return the pair that dominates a shuffled report among those of ``clients`` clients.

    Parameters
    ----------
    blanket : Blanket
    clients : int
        At least 1.

    Notes
    -----
    Let :math:`\omega` be the distribution, :math:`a` the chance of each set, :math:`g = e^\epsilon - 1` and
    :math:`\gamma = 1/(1 + ga)`. A report of datum x has the distribution
    :math:`\gamma(1 + g 1_{S_x})\,\omega`: it is drawn from :math:`\omega` with probability :math:`\gamma`,
    whatever x is, and else by a distribution of its own. Reveal which *other* clients draw by their own
    distribution, and what they report. Left are :math:`M` reports, M - 1 binomial of n - 1 and
    :math:`\gamma`: those drawn from :math:`\omega`, and the changed client's, who has :math:`x^0` or
    :math:`x^1`. As they are shuffled, their likelihood relative to M draws from :math:`\omega` is the mean
    over the reports of :math:`\gamma(1 + g 1_{S_x})`, which is :math:`\gamma(1 + gN_x/M)` if :math:`N_x` of
    them lie in :math:`S_x`. So the two numbers :math:`N_0, N_1` are sufficient. Given :math:`N_0 + N_1 = m`,
    each is a sum of fair coins under :math:`\omega`; the pair is that of
    `sfumato.privacy.pairs.shuffling.report_counts` with :math:`e^{\epsilon'} = 1 + gm/M`.

    It is never above the pair of the clones: those are drawn from a part of :math:`\gamma\omega`. It is met
    where the clients that are distinguished show themselves. What the changed client shows outside of both
    sets must not be thought hidden among clients that report by distributions of their own: pairs that do so
    (a part that is the same for both data, added to every other client) are exceeded by enumeration.

    Steps up: those of `clones`, with fewer draws from the distribution for fewer clones; m is taken for a
    smaller number at the same :math:`m/M`, and :math:`m/M` is split between two values with the same mean, as
    the divergences are convex in it.

    References
    ----------
    Balle, Bell, Gascón, Nissim (2019), "The privacy blanket of the shuffle model"; Su, Cheng, Wang (2025),
    "Decomposition-based optimal bounds for privacy amplification via shuffling".
    """
    others = min(clients, _MAX_CLIENTS) - 1
    odds_against = math.expm1(min(blanket.epsilon, MAX_EPSILON)) * blanket.chance
    return _hidden(blanket, others, 1 / (1 + odds_against), 1 / odds_against if odds_against else 0.0)


@lru_cache(maxsize=256)
def among(blanket: Blanket, decoys: int, chance: Fraction) -> Pair:
    r"""Return the pair that dominates one report, shuffled among draws from the distribution of its blanket.

    Parameters
    ----------
    blanket : Blanket
    decoys : int
        At least 0.
    chance : Fraction
        With which each is a draw from the distribution, independently; else it is nothing. Above 0, at most
        1.

    Notes
    -----
    The pair of `blanketed`, with M - 1 binomial of ``decoys`` and ``chance``: there the changed client's
    report is seen among M - 1 draws from the distribution, and nothing else about the draws is used. Chances
    are rounded down: fewer draws reveal more.
    """
    odds = fraction_down(chance / (1 - chance)) if chance < 1 else math.inf
    return _hidden(blanket, min(decoys, _MAX_CLIENTS), fraction_down(chance), odds)


def _hidden(blanket: Blanket, others: int, proportion: float, odds: float) -> Pair:
    """Return the pair of one report among others, each with a probability and its odds."""
    epsilon, chance = blanket
    if epsilon == 0:
        return no_loss()
    if epsilon > MAX_EPSILON:
        return two_points(epsilon, tight=False)
    gain = math.expm1(epsilon)
    draws = _draws(others, proportion, odds)
    cells, dropped = _cells(draws, gain, chance, _CLOSE_STEP if others < _SMALL else _STEP)
    return ReportCountsPair(cells._replace(epsilon=np.minimum(cells.epsilon, epsilon)), epsilon, dropped)


def _draws(others: int, proportion: float, odds: float) -> Counts:
    """Return the distribution of M, in blocks."""
    if others == 0 or proportion == 1:
        return Counts(np.array([others + 1.0]), np.ones(1), 0.0, 0.0)
    number = binomial(others, proportion, odds)
    first = int(number.number[0])
    starts = steps(first, int(number.number[-1]), _RATIO)
    return number._replace(number=starts.astype(float) + 1, mass=np.add.reduceat(number.mass, starts - first))


def _reports(draws: int, chance: float) -> Counts:
    """Return the distribution of m among M draws from the common distribution."""
    if chance == 0.5:
        return Counts(np.array([float(draws)]), np.ones(1), 0.0, 0.0)
    return binomial(draws, 2 * chance, 2 * chance / (1 - 2 * chance))


def _cells(draws: Counts, gain: float, chance: float, step: float) -> tuple[Cells, float]:
    """Return the distribution of m and m / M, and the mass that is left out."""
    distributions = [_reports(int(number), chance) for number in draws.number.tolist()]
    sizes = [len(distribution.number) for distribution in distributions]
    reports = np.concatenate([distribution.number for distribution in distributions])
    mass = np.concatenate([distribution.mass for distribution in distributions]) * np.repeat(
        draws.mass, sizes
    )
    starts = steps(int(reports.min()), int(reports.max()), _REPORT_RATIO)
    row = np.searchsorted(starts, reports, side="right") - 1
    # How many steps m / M is below 1; the mean of the two levels around it is preserved, and rounded up.
    depth = np.log(np.repeat(draws.number, sizes) / np.maximum(reports, 1.0)) / step
    level = np.floor(depth)
    upper = np.clip(np.expm1(step * (level + 1 - depth)) / math.expm1(step) + _SLACK, 0.0, 1.0)
    levels = int(level.max()) + 2
    at = row * levels + level.astype(int)
    table = np.bincount(at, mass * upper, len(starts) * levels)
    table += np.bincount(at + 1, mass * (1 - upper), len(starts) * levels)
    ratio = 1 + gain * np.exp(-step * np.arange(levels))
    table = table.reshape(len(starts), levels) * (0.5 * (1 + ratio) / (1 + gain * chance))
    row, level = np.nonzero(table >= _MINIMUM)
    error = (
        draws.log_error
        + max(distribution.log_error for distribution in distributions)
        + UNIT * 256 * len(distributions)
    )
    cells = Cells(starts[row].astype(float), np.log(ratio[level]), table[row, level], error)
    dropped = draws.fewer + 4 * TAIL + float(table[table < _MINIMUM].sum())
    return cells, dropped
