r"""Sums of finite loss distributions, with every rounding and merging of points on the safe side.

A distribution from above stays one if losses or masses are moved up, or if a loss is split between two others
with the mean of :math:`e^{-l}` preserved; one from below, if they are moved down, or if losses are merged
into that mean (``docs/proofs/accountant.md``, Lemma 1). So no error of one step has to be known at the next.
"""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from sfumato.privacy._outward import UNIT

__all__ = ["LossDistribution", "Sums"]

_Array = NDArray[np.float64]

_NOWHERE: Final = -1e6
_SAME: Final = 2.0**-44
"""Losses closer than this, relative to the largest, are taken for one."""
_SOME: Final = 96
"""Losses of which two are added up to see how many sums there are."""


class LossDistribution(NamedTuple):
    """Losses, rising, and the logs of their masses; both are safe as they stand."""

    loss: _Array
    log_mass: _Array


class Sums(NamedTuple):
    """How distributions are added up.

    Parameters
    ----------
    side : float
        1 for distributions from above, -1 for distributions from below.
    limit : int
        Sums in one step.
    tilt : float, optional
        Where the moment generating function matters. If it is given, distributions of too many losses lose
        detail.
    """

    side: float
    limit: int
    tilt: float | None = None

    def distribution(self, loss: _Array, log_mass: _Array) -> LossDistribution:
        """Return a distribution of losses in any order."""
        order = np.argsort(loss)
        loss, log_mass = loss[order], log_mass[order]
        width = _SAME * max(abs(float(loss[0])), abs(float(loss[-1])))
        starts = np.concatenate([[0], np.flatnonzero(np.diff(loss) > width) + 1])
        ends = np.append(starts[1:], len(loss)) - 1
        return LossDistribution(loss[ends if self.side > 0 else starts], self._added(log_mass, starts))

    def plus(self, one: LossDistribution, other: LossDistribution) -> LossDistribution | None:
        """Return the distribution of the sum of two losses, or None if it has too many points."""
        if self.tilt is not None:
            each = int(self.limit**0.5)
            one, other = self._condensed(one, self.tilt, each), self._condensed(other, self.tilt, each)
        if len(one.loss) * len(other.loss) > self.limit:
            return None
        slack = self.side * 2 * UNIT
        loss = np.add.outer(one.loss, other.loss)
        loss += slack * np.add.outer(np.abs(one.loss), np.abs(other.loss))
        log_mass = np.add.outer(one.log_mass, other.log_mass)
        log_mass += slack * np.add.outer(np.abs(one.log_mass), np.abs(other.log_mass))
        return self.distribution(loss.ravel(), log_mass.ravel())

    def times(self, distribution: LossDistribution, count: int) -> LossDistribution | None:
        """Return the distribution of the sum of so many losses, or None as for `plus`."""
        if count > 2 and self._too_many(distribution.loss):
            return None
        total: LossDistribution | None = None
        power: LossDistribution | None = distribution
        while power is not None:
            if count & 1:
                total = power if total is None else self.plus(total, power)
                if total is None:
                    return None
            count >>= 1
            if not count:
                return total
            power = self.plus(power, power)
        return None

    def _too_many(self, loss: _Array) -> bool:
        """Whether a third loss has too many sums with those of two; some of them show it, in no time."""
        if self.tilt is not None:
            return False
        some = loss[:: max(1, len(loss) // _SOME)]
        gaps = np.diff(np.sort(np.add.outer(some, some), axis=None))
        apart = gaps > 4 * _SAME * max(abs(float(loss[0])), abs(float(loss[-1])))
        return bool((1 + np.count_nonzero(apart)) * len(loss) > self.limit)

    def _added(self, log_mass: _Array, starts: NDArray[np.intp]) -> _Array:
        """Add up the masses of groups of neighbors."""
        sizes = np.diff(np.append(starts, len(log_mass)))
        top = np.maximum.reduceat(log_mass, starts)
        total = np.log(np.add.reduceat(np.exp(log_mass - np.repeat(top, sizes)), starts))
        # A term that is at most 1 loses less than 800 roundings: of its exponent, or all of it.
        return np.asarray(total + top + self.side * UNIT * (4 * np.abs(top) + 4 * total + sizes + 1024))

    def _condensed(self, distribution: LossDistribution, tilt: float, limit: int) -> LossDistribution:
        """Return a distribution of no more than so many losses."""
        if len(distribution.loss) <= limit:
            return distribution
        starts = _knots(distribution, tilt, limit)
        return self._split(distribution, starts) if self.side > 0 else self._merged(distribution, starts)

    def _merged(self, distribution: LossDistribution, starts: NDArray[np.intp]) -> LossDistribution:
        """Move each group to the mean of its ``exp(-loss)``."""
        sizes = np.diff(np.append(starts, len(distribution.loss)))
        low = distribution.loss[starts]
        weights = np.exp(
            distribution.log_mass - np.repeat(np.maximum.reduceat(distribution.log_mass, starts), sizes)
        )
        falls = -np.expm1(np.repeat(low, sizes) - distribution.loss)
        fall = np.add.reduceat(weights * falls, starts) / np.add.reduceat(weights, starts)
        rise = -np.log1p(-np.minimum(fall, 1 - 2.0**-20))
        rise -= UNIT * (2 * sizes + 2048) * np.expm1(rise)
        loss = low + rise
        return LossDistribution(
            loss - 4 * UNIT * (np.abs(low) + np.abs(loss)), self._added(distribution.log_mass, starts)
        )

    def _split(self, distribution: LossDistribution, starts: NDArray[np.intp]) -> LossDistribution:
        """Split each loss between the first of its group and the first of the next."""
        knots = np.append(starts, len(distribution.loss) - 1)
        sizes = np.diff(np.append(starts, len(distribution.loss)))
        low, high = (
            np.repeat(distribution.loss[starts], sizes),
            np.repeat(distribution.loss[knots[1:]], sizes),
        )
        alone = high <= low
        high = np.where(alone, low + 1.0, high)
        with np.errstate(divide="ignore"):
            whole = np.log(-np.expm1(low - high))
            # What goes nowhere is given less than any float; nothing leaves a group of one loss.
            up = np.maximum(np.log(-np.expm1(low - distribution.loss)) - whole, _NOWHERE)
            down = np.maximum(
                low - distribution.loss + np.log(-np.expm1(distribution.loss - high)) - whole, _NOWHERE
            )
        down = np.where(alone, 0.0, down)
        slack = UNIT * (
            64 + 8 * (np.abs(low - distribution.loss) + np.abs(whole) + np.abs(distribution.log_mass))
        )
        at_low, at_high = (
            self._added(distribution.log_mass + part + slack + 8 * UNIT * np.abs(part), starts)
            for part in (down, up)
        )
        log_mass = np.logaddexp(np.append(at_low, _NOWHERE), np.append(_NOWHERE, at_high))
        return LossDistribution(distribution.loss[knots], log_mass + 8 * UNIT * (1 + np.abs(log_mass)))


def _knots(distribution: LossDistribution, tilt: float, limit: int) -> NDArray[np.intp]:
    """Return where groups begin; some for every so many losses, for each mass, tilted or not, and for width.

    Of the tilted mass times the square of its width the two bounds differ.
    """
    gaps = np.diff(distribution.loss)
    tilted = tilt * distribution.loss + distribution.log_mass
    masses = [np.exp(log - log.max()) for log in (distribution.log_mass, tilted)]
    plain, weight = (mass[:-1] + mass[1:] for mass in masses)
    criteria = [np.ones(len(gaps)), plain, weight, np.cbrt(weight * gaps**2)]
    level = np.concatenate(
        [[0.0], np.cumsum(sum(criterion / max(criterion.sum(), 1e-300) for criterion in criteria))]
    )
    cells = np.floor(level * ((limit - 2) / level[-1]))
    return np.flatnonzero(np.diff(cells, prepend=-1.0) > 0)
