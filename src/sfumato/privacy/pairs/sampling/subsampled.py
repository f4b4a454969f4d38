"""The pair of a mechanism on a Poisson sample."""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence

import numpy as np
from numpy.typing import NDArray

from sfumato.numerics.rounding import expm1_down, log1p_down
from sfumato.privacy._outward import UNIT
from sfumato.privacy.pairs.bins import Bins, Number
from sfumato.privacy.pairs.pair import Pair
from sfumato.privacy.pairs.wrapped import WrappedPair

__all__ = ["SubsampledPair", "mixed_log_tail"]

_Array = NDArray[np.float64]


class SubsampledPair(WrappedPair):
    """Where the base has (P, Q) with the unit against without, this has ((1 - q) Q + q P, Q).

    The other order has (P', (1 - q) P' + q Q') where the base has (P', Q').

    Parameters
    ----------
    base : Pair
    q : float
        Strictly between 0 and 1.

    References
    ----------
    Zhu, Dong, Wang (2022), Theorem 11, for each of the two orders under add/remove.
    """

    __slots__ = ("_q",)

    def __init__(self, base: Pair, q: Number) -> None:
        super().__init__(base)
        self._q = q

    variance = 0.0
    """None: a mixture is not normal."""

    symmetric = False
    """Never: the unit that is there is more easily seen."""

    @property
    def supremum(self) -> float:
        """The greater of log(1 - q + q exp(L)) and, in the other order, minus that of the smallest L."""
        top = self._base.supremum
        if math.isinf(top):
            return top
        there = log1p_down(self._q * expm1_down(top)) if top < 700 else top + log1p_down(self._q - 1)
        return max(0.0, there * (1 - 2.0**-50))

    @property
    def kind(self) -> Hashable:
        """That of the base, sampled."""
        kind = self._base.kind
        return None if kind is None else (SubsampledPair, kind)

    @property
    def parameters(self) -> Sequence[float | _Array]:
        """Those of the base, and the probability."""
        return [*self._base.parameters, self._q]

    def stacked(self, parameters: _Array) -> Pair:
        """Return the bases side by side, sampled."""
        return SubsampledPair(self._base.stacked(parameters[:-1]), parameters[-1])

    def bins(self, cuts: _Array, *, swapped: bool) -> Bins:
        """Mix the masses and the losses of the base's bins."""
        bins = self._base.bins(cuts, swapped=swapped)
        return bins.swapped().mixed(self._q).swapped() if swapped else bins.mixed(self._q)

    def log_tail(self, tilts: _Array, cuts: _Array, *, swapped: bool) -> _Array:
        r"""Bound the tail by that of the base.

        Notes
        -----
        Let :math:`L` be the loss of the base, above :math:`l` in the tail, and :math:`\alpha = c + 1`. In the
        first order the tail is :math:`E_Q (1 - q + qe^L)^\alpha`, at most :math:`E_Q(1 - q + qe^{\alpha L})`
        (convexity), and at most :math:`(q + (1-q)e^{-l})^\alpha E_Q e^{\alpha L}`; here :math:`E_Q e^{\alpha
        L} = E_P e^{cL}`. In the other order it is :math:`E_P (1 - q + qe^{-L})^{-c}`, at most :math:`E_P (1 -
        q + q e^{cL})` (convexity), and at most :math:`(1-q)^{-c} P(L > l)`.
        """
        if not swapped:
            return mixed_log_tail(self._base, self._q, tilts, cuts, swapped=False)
        q, mass = self._q, self._base.bins(cuts[[0, -1]], swapped=True).high.log_p
        tail = self._base.log_tail(tilts, cuts, swapped=True)
        convex = np.logaddexp(math.log1p(-q) + mass, math.log(q) + tail)
        size = np.abs(tail) + (tilts + 1) * abs(math.log(q)) + abs(mass) + tilts + 1
        return _minimum((convex, mass - tilts * math.log1p(-q)), size)


def mixed_log_tail(base: Pair, q: float, tilts: _Array, cuts: _Array, *, swapped: bool) -> _Array:
    """Bound the tail of ((1 - q) Q + q P, Q), where the base has (P, Q) in this order."""
    bins = base.bins(cuts if len(cuts) < 2 else cuts[[0, -1]], swapped=swapped)
    mass, tail = bins.high.log_q, base.log_tail(tilts, cuts, swapped=swapped)
    convex = np.logaddexp(math.log1p(-q) + mass, math.log(q) + tail)
    direct = np.full(len(tilts), np.inf)
    if len(bins.edges):
        smallest = float(bins.edges[-1] - bins.edge_error[-1])
        direct = tail + (tilts + 1) * np.logaddexp(math.log(q), math.log1p(-q) - smallest)
    size = np.abs(tail) + (tilts + 1) * abs(math.log(q)) + abs(mass) + tilts + 1
    return _minimum((convex, direct), size)


def _minimum(bounds: tuple[_Array, _Array], size: _Array) -> _Array:
    """Return the lesser of two bounds, rounded up by the size of what made them."""
    return np.asarray(np.fmin(*bounds) + 16 * UNIT * np.where(np.isfinite(size), size, 0.0))
