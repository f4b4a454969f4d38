r"""Where the bounds on a composition of few runs come from: estimates, which choose cuts and prove nothing.

The saddle point of few heavy-tailed losses may lie far from the epsilon that is looked for, and cuts that are
best there say little about it. Of few losses the sum itself can be estimated. With :math:`g(x) = E_P(1 - e^{x
- L})_+` a bin of mass m and width w, of one of the losses, moves its two bounds apart by about :math:`m w^2
f(\epsilon - l) / 8`, with f the density of the other losses' sum: only at the kink, where :math:`L =
\epsilon`, is the integrand not linear in the likelihood ratio.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

from sfumato.privacy.accountant.composed_losses import ComposedLosses
from sfumato.privacy.accountant.enumeration import Enumeration
from sfumato.privacy.accountant.loss_distribution import LossDistribution, Sums

__all__ = ["FewRuns"]

_Array = NDArray[np.float64]

_LIMIT: Final = 1 << 15
"""Sums of two losses in one step."""
_NOTHING: Final = LossDistribution(np.zeros(1), np.zeros(1))


class FewRuns:
    """About the sum of a few losses, and of all but one of them.

    Parameters
    ----------
    work : ComposedLosses
        Distributions from below, without a Gaussian part.
    tilt : float
        Where the moment generating function matters.
    """

    def __init__(self, work: ComposedLosses, tilt: float) -> None:
        self._sums = Sums(-1.0, _LIMIT, tilt)
        self._rows = [
            (self._sums.distribution(loss[some], log_mass[some]), int(count))
            for distribution, counts in work.distributions
            for loss, log_mass, count in zip(
                np.atleast_2d(distribution.loss),
                np.atleast_2d(distribution.log_mass),
                np.atleast_1d(counts),
                strict=True,
            )
            for some in [log_mass > -np.inf]
        ]
        self._sum = Enumeration(work, self._without(None), upper=False)

    def epsilon(self, log_delta: float) -> float:
        """Return about the epsilon that belongs to a delta."""
        return self._sum.solve(log_delta)

    def log_delta(self, epsilon: float) -> tuple[float, float]:
        """Return about the log of the delta at an epsilon, and its slope."""
        return self._sum.log_bound(epsilon)

    def weights(self, epsilon: float, rows: Sequence[tuple[_Array, _Array]]) -> list[_Array]:
        """Return by how much the bins of each loss move the bounds apart.

        Parameters
        ----------
        epsilon : float
        rows : sequence of (ndarray, ndarray)
            For each loss the edges of its bins and their masses.
        """
        moved = []
        for row, ((edges, mass), (_, count)) in enumerate(zip(rows, self._rows, strict=True)):
            others = np.maximum(-np.diff(self._others(row, epsilon - edges)), 0.0)
            moved.append(count * mass * others * np.diff(edges) / 8)
        return moved

    def _others(self, row: int, losses: _Array) -> _Array:
        """Return about the probability that the sum of all losses but one is below these values."""
        others = self._without(row)
        middles = np.append(0.5 * (others.loss[1:] + others.loss[:-1]), others.loss[-1])
        return np.asarray(np.interp(losses, middles, np.cumsum(np.exp(others.log_mass)), left=0.0))

    def _without(self, left_out: int | None) -> LossDistribution:
        """Return the sum of all losses, or of all but one; coarser on the way where they are many."""
        total = _NOTHING
        for row, (distribution, count) in enumerate(self._rows):
            times = count - (row == left_out)
            power = self._sums.times(distribution, times) if times else None
            total = total if power is None else self._sums.plus(total, power) or total
        return total
