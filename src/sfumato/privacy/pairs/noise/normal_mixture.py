"""A mixture of normal distributions at several distances against one of them, cut into bins."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray
from scipy.special import log_ndtr

from sfumato.privacy._outward import UNIT
from sfumato.privacy.pairs.bins import Bins, Mass, Points
from sfumato.privacy.pairs.noise.normal import NormalPair
from sfumato.privacy.pairs.pair import Pair

__all__ = ["NormalMixturePair", "log_binomial"]

_Array = NDArray[np.float64]

_COARSE: Final = 160
_PER_UNIT: Final = 5.0
_MIN_REACH: Final = 10.0
"""Far components of little weight make first guesses too great; so tails are followed farther."""
_FARTHEST: Final = 120.0
"""Standard deviations; what is beyond has a loss in the thousands, and counts as a tail."""
_TAIL_SLACK: Final = 1e-9
_ROUGH: Final = 1e-9
"""Outweighs the errors of a difference of two values of the distribution that are not close."""
_MIN_MEAN: Final = 1e-12
_LOG_NEGLIGIBLE: Final = math.log(1e-30)


class NormalMixturePair(Pair):
    r"""N(j mu, 1) drawn with weight :math:`w_j`, j from 0, as P, against N(0, 1) as Q.

    Parameters
    ----------
    mu : float
        Positive and finite.
    log_weights : sequence of float
        Logarithms of positive weights with sum 1.
    error : float
        Bound on their errors.

    Notes
    -----
    The ratio :math:`R(x) = \sum_j w_j e^{L_j(x)}`, :math:`L_j = j\mu x - j^2\mu^2/2`, rises with x. In a
    bin it is the weighted mean of the ratios of `NormalPair`, whose quadrature is exact up to rounding. It is
    written as 1 plus the mean of :math:`e^{L_j} - 1` where that is small. Above some j all terms may be left
    out: their fraction of R rises with x, so that of the last cut bounds it everywhere.
    """

    __slots__ = ("_error", "_last", "_log_weights", "_means")

    def __init__(self, mu: float, log_weights: Sequence[float], error: float) -> None:
        self._log_weights, self._error = np.array(log_weights), error
        self._means = mu * np.arange(len(self._log_weights), dtype=float)
        self._last: tuple[_Array, Bins] | None = None

    symmetric = False
    """Never: the distribution that is mixed is more easily seen."""

    supremum = math.inf
    """Infinity."""

    def cuts(self, reach: float) -> _Array:
        """Return cuts from ``reach`` below the smallest mean to where little of each distribution is left."""
        reach = max(reach, _MIN_REACH)
        left = reach * reach + 2 * self._log_weights
        right = np.where(left > 0, self._means + np.sqrt(np.maximum(left, 0.0)), reach)
        width = reach + min(float(right.max()), max(reach, _FARTHEST))
        return np.linspace(0.0, width, _COARSE + math.ceil(_PER_UNIT * width)) - reach

    def rate(self, cuts: _Array) -> _Array:
        """Return bins per unit for which the quadrature of every retained distribution is exact."""
        return NormalPair(float(self._means[self._followed(cuts)[0]])).rate(cuts)

    def bins(self, cuts: _Array, *, swapped: bool) -> Bins:
        """Integrate all densities between the cuts."""
        if self._last is None or self._last[0] is not cuts:
            self._last = cuts, self._integrated(cuts)
        bins = self._last[1]
        return bins.swapped() if swapped else bins

    def _followed(self, cuts: _Array) -> tuple[int, float]:
        """Return the last component that counts, at least the second, and the fraction of R of the others."""
        logs = self._log_weights + self._means * (cuts[-1] - 0.5 * self._means)
        beyond = np.logaddexp.accumulate(logs[::-1])[::-1] - np.logaddexp.reduce(logs)
        last = max(1, int(np.searchsorted(-beyond, -_LOG_NEGLIGIBLE)) - 1)
        return (last, 2 * math.exp(beyond[last + 1])) if last + 1 < len(logs) else (len(logs) - 1, 0.0)

    def _integrated(self, cuts: _Array) -> Bins:
        last, lost = self._followed(cuts)
        parts = [_single(float(mean), cuts) for mean in self._means[1 : last + 1]]
        loss, error = self._mixed([part[0] for part in parts], [part[1] for part in parts])
        # One of Q's own: with a mean of next to nothing, nothing of the quadrature overflows.
        plain = NormalPair(_MIN_MEAN).bins(cuts, swapped=False).points
        log_q = plain.log_p - plain.loss
        mass_error = plain.mass_error + plain.loss_error + error + lost
        means = self._means[1 : last + 1, None]
        edges, edge_error = self._mixed(
            means * (cuts - 0.5 * means), UNIT * (4 * means * np.abs(cuts) + 4 * means * means)
        )
        log_p = log_q + loss
        return Bins(
            points=Points(log_p, loss, mass_error + UNIT * (np.abs(log_q) + np.abs(log_p)), error + lost),
            edges=edges,
            edge_error=edge_error + lost,
            low=self._beyond(cuts[0] - self._means),
            high=self._beyond(self._means - cuts[-1]),
        )

    def _mixed(
        self, losses: Sequence[_Array] | _Array, errors: Sequence[_Array] | _Array
    ) -> tuple[_Array, _Array]:
        """Return the log of the weighted mean of the ratios, the first of which is 1, and its error."""
        several, error = np.array(losses), np.array(errors)
        log_weights = self._log_weights[: len(several) + 1, None]
        terms = log_weights + np.concatenate([np.zeros((1, several.shape[1])), several])
        direct = np.logaddexp.reduce(terms, axis=0)
        fractions = np.exp(terms - direct)
        weights = np.exp(log_weights[1:])
        # Where a weight is tiny, a ratio beyond the range of floats may still change next to nothing.
        steep = np.exp(np.minimum(terms[1:], 30.0)) - weights
        changes = np.where(several < 30.0, weights * np.expm1(np.minimum(several, 30.0)), steep)
        change = changes.sum(axis=0)
        near = np.abs(change) < 0.5
        moved = (fractions[1:] * error).sum(axis=0)
        rounding = self._error + UNIT * (8 * len(terms) + 64)
        small = 2 * np.abs(changes).sum(axis=0) * (rounding + 4 * UNIT * np.abs(log_weights).max())
        large = rounding + 8 * UNIT * ((fractions * np.abs(terms)).sum(axis=0) + np.abs(direct))
        loss = np.where(near, np.log1p(np.where(near, change, 0.0)), direct)
        return loss, moved * (1 + 1e-9) + np.where(near, small, large)

    def _beyond(self, tails: _Array) -> Mass:
        """Return the masses of a lower tail, given its end relative to each mean."""
        log_p = float(np.logaddexp.reduce(self._log_weights + log_ndtr(tails) * (1 - _TAIL_SLACK)))
        return Mass(log_p + self._error + _TAIL_SLACK, float(log_ndtr(tails[0])) * (1 - _TAIL_SLACK))

    def log_tail(self, tilts: _Array, cuts: _Array, *, swapped: bool) -> _Array:
        r"""Bound the tail by those of the normal distributions.

        Notes
        -----
        With :math:`\alpha = c + 1` it is :math:`E_Q R^\alpha`, and by Minkowski's inequality its root of
        order :math:`\alpha` is at most the weighted mean of those of :math:`E_Q e^{\alpha L_j}`. In the other
        order :math:`E_Q R^{-c}` is at most the weighted mean of :math:`E_Q e^{-cL_j}` (convexity), and, as no
        term of R is negative, at most :math:`w_j^{-c} E_Q e^{-cL_j}` for each j.
        """
        means, weights = self._means[:, None], self._log_weights[:, None]
        moment = 0.5 * tilts * (tilts + 1) * means * means
        shift = tilts * means + (cuts[0] if swapped else means - cuts[-1])
        size = tilts * means + means + abs(float(cuts[0 if swapped else -1]))
        tails = moment * (1 + 8 * UNIT) + log_ndtr(shift) * (1 - _TAIL_SLACK) + 8 * UNIT * size * (size + 1)
        slack = self._error * (tilts + 1) + _TAIL_SLACK
        if not swapped:
            return np.asarray(
                (tilts + 1) * np.logaddexp.reduce(weights + tails / (tilts + 1), axis=0) + slack
            )
        mean = np.logaddexp.reduce(weights + tails, axis=0)
        return np.asarray(np.fmin(mean, np.min(tails - tilts * weights, axis=0)) + slack)


def _single(mean: float, cuts: _Array) -> tuple[_Array, _Array]:
    """Return the losses of the bins of one normal distribution, and bounds on their errors."""
    middle, half = 0.5 * (cuts[1:] + cuts[:-1]), 0.5 * np.diff(cuts)
    with np.errstate(all="ignore"):
        points = NormalPair(mean).bins(cuts, swapped=False).points
    close = half * (np.abs(middle) + mean + 3) <= 3.001
    if close.all():
        return points.loss, points.loss_error
    # Bins that are too wide for the quadrature are so wide that differences of the distribution will do.
    inside, outside = (_log_between(cuts - shift) for shift in (mean, 0.0))
    rough = _ROUGH * (1 + np.abs(inside) + np.abs(outside))
    return np.where(close, points.loss, inside - outside), np.where(close, points.loss_error, rough)


def _log_between(cuts: _Array) -> _Array:
    """Return the logs of the normal distribution's masses between cuts."""
    left, right = cuts[:-1], cuts[1:]
    flipped = left + right > 0
    near = log_ndtr(np.where(flipped, -left, right))
    return np.asarray(near + np.log1p(-np.exp(log_ndtr(np.where(flipped, -right, left)) - near)))


def log_binomial(trials: int, q: float) -> tuple[list[float], float]:
    """Return the logs of binomial probabilities, and a bound on their errors; q strictly between 0 and 1."""
    log_q, log_rest = math.log(q), math.log1p(-q)
    logs, largest, ways = [], 1.0, 1
    for j in range(trials + 1):
        parts = (math.log(ways), j * log_q, (trials - j) * log_rest)
        logs.append(math.fsum(parts))
        largest = max(largest, *map(abs, parts))
        ways = ways * (trials - j) // (j + 1)
    return logs, 16 * UNIT * largest
