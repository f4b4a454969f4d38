r"""Compositions of few losses: all sums, listed.

A law from above stays one if losses or masses are moved up, and one from below if they are moved down
(``docs/proofs/accountant.md``, Lemma 1). So each step rounds to its safe side: sums of losses and of log
masses are moved by more than their rounding, and sums that differ by rounding alone are made one, at the end
of theirs that is safe.
"""

from __future__ import annotations

import math
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from sfumato.privacy._outward import UNIT
from sfumato.privacy.accountant.bound import Bound
from sfumato.privacy.accountant.work import Work

__all__ = ["Enumeration", "enumerated"]

_Array = NDArray[np.float64]

_MOST: Final = 1 << 18
"""Sums in one step where the laws are exact; some ten milliseconds."""
_FEW: Final = 1 << 14
"""Sums in all where the laws are a choice of cuts, for which the line does as well."""
_SAME: Final = 2.0**-44
"""Losses closer than this, as a share of the greatest, are taken for one."""


class _Law(NamedTuple):
    """Losses and the logs of their masses; both are safe as they stand."""

    loss: _Array
    log_mass: _Array

    def plus(self, other: _Law, side: float) -> _Law | None:
        """Return the law of the sum, moved up where ``side`` is 1 and down where it is -1."""
        if len(self.loss) * len(other.loss) > _MOST:
            return None
        loss = np.add.outer(self.loss, other.loss)
        loss += side * 2 * UNIT * np.add.outer(np.abs(self.loss), np.abs(other.loss))
        log_mass = np.add.outer(self.log_mass, other.log_mass)
        log_mass += side * 2 * UNIT * np.add.outer(np.abs(self.log_mass), np.abs(other.log_mass))
        return _merged(loss.ravel(), log_mass.ravel(), side)

    def times(self, count: int, side: float) -> _Law | None:
        """Return the law of so many of them."""
        total: _Law | None = None
        power: _Law | None = self
        while power is not None:
            if count & 1:
                total = power if total is None else total.plus(power, side)
                if total is None:
                    return None
            count >>= 1
            if not count:
                return total
            power = power.plus(power, side)
        return None


def _merged(loss: _Array, log_mass: _Array, side: float) -> _Law:
    order = np.argsort(loss)
    loss, log_mass = loss[order], log_mass[order]
    width = _SAME * max(abs(float(loss[0])), abs(float(loss[-1])))
    starts = np.concatenate([[0], np.flatnonzero(np.diff(loss) > width) + 1])
    sizes = np.diff(np.append(starts, len(loss)))
    top = np.maximum.reduceat(log_mass, starts)
    total = np.log(np.add.reduceat(np.exp(log_mass - np.repeat(top, sizes)), starts))
    # A term that is at most 1 loses less than 800 roundings: of its exponent, or all of it.
    total += top + side * UNIT * (4 * np.abs(top) + 4 * total + sizes + 1024)
    return _Law(loss[starts + sizes - 1 if side > 0 else starts], total)


def enumerated(work: Work, *, upper: bool, exact: bool) -> Enumeration | None:
    """Return a bound from all sums of losses, or None where they are too many.

    Parameters
    ----------
    work : Work
    upper : bool
        Whether the laws of ``work`` are from above, and a bound from above is wanted.
    exact : bool
        Whether the laws are all there is to know of their pairs.
    """
    if work.variance or not work.laws:
        return None
    most = 1.0
    for law, counts in work.laws:
        most *= float(np.prod(1.0 + counts * (law.loss.shape[-1] - 1.0)))
        if most > (_MOST if exact else _FEW):
            return None
    total, side = _Law(np.zeros(1), np.zeros(1)), 1.0 if upper else -1.0
    for law, counts in work.laws:
        rows = np.atleast_2d(law.loss), np.atleast_2d(law.log_mass), np.atleast_1d(counts)
        for loss, log_mass, count in zip(*rows, strict=True):
            kept = log_mass > -np.inf
            if not kept.any():
                return None
            power = _merged(loss[kept], log_mass[kept], side).times(int(count), side)
            found = None if power is None else total.plus(power, side)
            if found is None:
                return None
            total = found
    return Enumeration(work, total, upper=upper)


class Enumeration(Bound):
    """The divergence of one finite law, summed over its losses.

    Parameters
    ----------
    work : Work
        What was composed.
    law : _Law
        Its loss, rising.
    upper : bool
    """

    def __init__(self, work: Work, law: _Law, *, upper: bool) -> None:
        super().__init__(work, upper=upper, scale=1e-12 * max(1e-290, float(np.abs(law.loss).max())))
        self._law = law

    def log_bound(self, x: float) -> tuple[float, float]:
        r"""Return the log of :math:`\sum_{l > x} m_l (1 - e^{x - l})`, moved to the safe side."""
        first = int(np.searchsorted(self._law.loss, x, "right"))
        loss, log_mass = self._law.loss[first:], self._law.log_mass[first:]
        if not len(loss):
            return -math.inf, math.nan
        top = float(log_mass.max())
        weights = np.exp(log_mass - top)
        # The difference of two floats has a rounding relative to itself.
        value = float(-weights @ np.expm1(x - loss))
        if value <= 0:
            return -math.inf, math.nan
        error = UNIT * (len(loss) + 1024 + 4 * abs(top) + 4 * abs(math.log(value)))
        return top + math.log(value) + (error if self._upper else -error), float(
            -weights @ np.exp(x - loss)
        ) / value

    def log_chernoff(self, x: float) -> float:
        """Return 0: no divergence is greater."""
        del x
        return 0.0

    def chernoff_epsilon(self, log_delta: float) -> float:
        """Return the greatest loss."""
        del log_delta
        return float(self._law.loss[-1])
