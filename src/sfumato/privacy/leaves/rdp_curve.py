"""Rényi DP at some orders, as a declared guarantee."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Final, final

import numpy as np
from numpy.typing import NDArray

from sfumato import _check
from sfumato._wire import NUMBER, sequence
from sfumato.numerics.rounding import mul_up
from sfumato.privacy._outward import UNIT
from sfumato.privacy.leaves.leaf import DivergenceLeaf
from sfumato.privacy.neighboring import RELATION, Neighboring, Relation
from sfumato.privacy.serialization import serialized_as

__all__ = ["RDPCurve"]

_MAXIMUM: Final = 10_000


@final
@serialized_as("rdp-curve", orders=sequence(NUMBER), epsilons=sequence(NUMBER), neighboring=RELATION)
@dataclass(frozen=True, slots=True, repr=False)
class RDPCurve(DivergenceLeaf):
    r"""Any mechanism whose Rényi divergences have the given bounds.

    Parameters
    ----------
    orders : sequence of float
        Rising, above 1.
    epsilons : sequence of float
        Bounds on the divergences of those orders, in both directions; non-negative.
    neighboring : Neighboring or Relation
        The relation that the bounds are about.

    Notes
    -----
    Guarantee: between the orders the curve is the largest that the bounds allow. The function
    :math:`(\alpha - 1) D_\alpha` is convex, the log of a moment generating function, and tends to 0 at order
    1 (the divergence of some larger order is finite). So it lies below each chord of the points
    :math:`(1, 0)` and :math:`(\alpha_i, (\alpha_i - 1)\epsilon_i)`, which also says that the divergences rise
    with the order. Beyond the last order nothing is known, so there is neither zCDP nor a dominating pair,
    unless some divergence is 0: then the two distributions are equal.

    References
    ----------
    Mironov (2017), "Rényi differential privacy"; van Erven, Harremoës (2014), "Rényi divergence and
    Kullback-Leibler divergence", convexity and monotonicity in the order.

    Examples
    --------
    >>> curve = RDPCurve([2.0, 8.0, 32.0], [0.1, 0.4, 1.6])
    >>> round(curve.rdp(8.0), 9), round(curve.epsilon(1e-6), 4)
    (0.4, 1.8971)
    """

    _any_relation = True

    orders: Sequence[float]
    epsilons: Sequence[float]
    neighboring: Relation = field(default=Neighboring.ADD_REMOVE, kw_only=True)
    # The vertices of the largest convex curve, by order less 1.
    _gaps: tuple[float, ...] = field(init=False, compare=False)
    _heights: tuple[float, ...] = field(init=False, compare=False)

    def __post_init__(self) -> None:
        self._set_each("orders", self.orders, partial(self._set_rounded, up=False))
        self._set_each("epsilons", self.epsilons, partial(self._set_rounded, up=True))
        if not 0 < len(self.orders) == len(self.epsilons) <= _MAXIMUM:
            remedy = f"pass from 1 to {_MAXIMUM} orders and as many epsilons"
            found = f"there are {len(self.epsilons)}"
            _check.refuse_state("epsilons", "be as many as the orders", found, remedy)
        for before, after in zip((1.0, *self.orders), self.orders, strict=False):
            if after <= before:
                remedy = "pass orders above 1; sort them and leave out repetitions"
                _check.refuse("orders", f"increase after {before!r}", after, remedy)
        self._set_relation(self.neighboring)
        gaps, heights = [0.0], [0.0]
        for order, epsilon in zip(self.orders, self.epsilons, strict=True):
            gap = order - 1.0
            height = _check.finite("epsilons", mul_up(gap, epsilon), "leave out such orders")
            while len(gaps) > 1 and (heights[-1] - heights[-2]) * (gap - gaps[-2]) >= (
                height - heights[-2]
            ) * (gaps[-1] - gaps[-2]):
                gaps.pop()
                heights.pop()
            gaps.append(gap)
            heights.append(height)
        self._set("_gaps", tuple(gaps))
        self._set("_heights", tuple(heights))

    @property
    def _equal(self) -> bool:
        return min(self.epsilons) == 0

    def rdp_curve(self, orders: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the chords of the declared bounds, and infinity beyond the last; 0 if one of them is 0.

        Parameters
        ----------
        orders : ndarray of float, shape (n,)
            Each above 1.

        Returns
        -------
        ndarray of float, shape (n,)
            Upper bounds on the Rényi divergences, one for each order.
        """
        if self._equal:
            return np.zeros_like(orders)
        gap = orders - 1.0
        heights = np.nextafter(np.interp(gap, self._gaps, self._heights, right=np.inf), np.inf)
        return np.asarray(np.nextafter(heights / gap * (1 + 32 * UNIT), np.inf))
