"""The pair N(mu, 1) against N(0, 1), cut into bins by quadrature with a proven error."""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray
from scipy.special import log_ndtr

from sfumato.privacy._outward import UNIT, above
from sfumato.privacy.pairs.bins import Bins, Mass, Number, Points
from sfumato.privacy.pairs.pair import Pair

__all__ = ["NormalPair"]

_Array = NDArray[np.float64]

_FEW: Final = np.polynomial.legendre.leggauss(10)
_MANY: Final = np.polynomial.legendre.leggauss(20)
_COARSE: Final = 160
_LOG_ROOT_TAU: Final = 0.5 * math.log(2 * math.pi)
_TAIL_SLACK: Final = 1e-9


class NormalPair(Pair):
    r"""N(mu, 1) as P against N(0, 1) as Q; the loss is ``mu * x - mu**2 / 2``.

    Parameters
    ----------
    mu : float
        Positive and finite.

    Notes
    -----
    *Quadrature.* In a bin of middle :math:`m` and half-width :math:`r` the density is a multiple of
    :math:`f(\delta) = e^{-\delta^2/2 - m\delta}`, times :math:`e^{\mu\delta}` for P. On the Bernstein ellipse
    of parameter 24, whose half-axes are below :math:`12.03 r` and :math:`11.98 r`, :math:`|f| \le
    e^{12.03(|m|+\mu)r + 72 r^2}`. Where :math:`r(|m| + \mu + 3) \le 3`, so that :math:`r \le 1`, the exponent
    is at most :math:`36.1 - 36 r + 72 r^2 \le 72.1`. The 20-point Gauss-Legendre rule then errs by less than
    :math:`\frac{64}{15} \frac{24^{-40}}{1 - 24^{-2}} e^{72.1} < 10^{-22}` of the bin's width, while :math:`f
    \ge e^{-3.5}`: rounding alone is left. Where that product is at most 1, so that :math:`r \le 1/3`, the
    exponent is at most :math:`12.03 - 36 r + 72 r^2 \le 12.03`, and with 10 points the error is below
    :math:`\frac{64}{15} \frac{24^{-20}}{1 - 24^{-2}} e^{12.03} < 10^{-21}`.
    """

    __slots__ = ("_last", "_mu")

    def __init__(self, mu: Number) -> None:
        self._mu = mu
        # The bins of the cuts that came last: both orders ask for the same ones.
        self._last: tuple[_Array, Bins] | None = None

    @property
    def variance(self) -> float:
        """The square of mu."""
        return above(self._mu * self._mu)

    @property
    def kind(self) -> Hashable:
        """All normal pairs."""
        return NormalPair

    @property
    def parameters(self) -> Sequence[float | _Array]:
        """The mean."""
        return [self._mu]

    def stacked(self, parameters: _Array) -> Pair:
        """Return normal pairs of these means."""
        return NormalPair(parameters[0])

    supremum = math.inf
    """Infinity."""

    def cuts(self, reach: float) -> _Array:
        """Return cuts from ``reach`` below the lower mean to ``reach`` above the upper one."""
        return np.asarray(-reach + (2 * reach + self._mu) * np.linspace(0.0, 1.0, _COARSE + 1))

    def rate(self, cuts: _Array) -> _Array:
        """Return bins per unit for which the quadrature is exact."""
        far = np.maximum(np.abs(cuts[..., 1:]), np.abs(cuts[..., :-1]))
        return np.asarray((far + self._mu + 3) * 0.2)

    def bins(self, cuts: _Array, *, swapped: bool) -> Bins:
        """Integrate both densities between the cuts."""
        if self._last is None or self._last[0] is not cuts:
            self._last = cuts, self._integrated(cuts)
        bins = self._last[1]
        return bins.swapped() if swapped else bins

    def _integrated(self, cuts: _Array) -> Bins:
        mu, left, right = self._mu, cuts[..., :-1], cuts[..., 1:]
        middle, half = 0.5 * (right + left), 0.5 * (right - left)
        narrow = half * (np.abs(middle) + mu + 3) <= 1
        narrow = narrow.reshape(-1, half.shape[-1]).all(axis=0)
        total, moved = np.empty(half.shape), np.empty(half.shape)
        for columns, (nodes, weights) in ((narrow, _FEW), (~narrow, _MANY)):
            if columns.any():
                at, near = middle[..., columns], half[..., columns]
                total[..., columns], moved[..., columns] = _sums(nodes, weights, mu, at, near)
        tilt = np.log1p(moved / total)
        log_q = np.log(total * half) - 0.5 * middle * middle - _LOG_ROOT_TAU
        loss = (mu * middle - 0.5 * mu * mu) + tilt
        error = UNIT * (4 * mu * np.abs(middle) + 4 * mu * mu + 16 * mu * half)
        points = Points(
            log_p=log_q + loss,
            loss=loss,
            mass_error=error + UNIT * (24 + 4 * middle * middle + 2 * np.abs(log_q) + 2 * np.abs(loss)),
            loss_error=error,
        )
        return Bins(
            points=points,
            edges=mu * cuts - 0.5 * mu * mu,
            edge_error=UNIT * (4 * mu * np.abs(cuts) + 4 * mu * mu),
            low=_beyond(cuts[..., :1] - mu, cuts[..., :1]),
            high=_beyond(mu - cuts[..., -1:], -cuts[..., -1:]),
        )

    def log_tail(self, tilts: _Array, cuts: _Array, *, swapped: bool) -> _Array:
        r"""Return :math:`\log(e^{c(c+1)\mu^2/2} \Phi(\mu + c\mu - t))`: a tilt moves the mean by c mu."""
        mu = self._mu
        shift = tilts * mu + (cuts[0] if swapped else mu - cuts[-1])
        moment = 0.5 * tilts * (tilts + 1) * mu * mu
        size = tilts * mu + mu + abs(float(cuts[0 if swapped else -1]))
        # Of log_ndtr, an error in its argument counts by a slope of at most |argument| + 1.
        beyond: _Array = log_ndtr(shift) * (1 - _TAIL_SLACK)
        return np.asarray(moment * (1 + 8 * UNIT) + beyond + 8 * UNIT * size * (size + 1))


def _sums(nodes: _Array, weights: _Array, mu: Number, middle: _Array, half: _Array) -> tuple[_Array, _Array]:
    """Integrate the density over bins, and what ``exp(mu * x) - 1`` adds to it, both over a common factor."""
    # The rule's points go along a first axis of their own.
    offset = np.multiply.outer(nodes, half)
    density = np.exp(-offset * (0.5 * offset + middle))
    total = np.tensordot(weights, density, 1)
    density *= np.expm1(mu * offset)
    return total, np.tensordot(weights, density, 1)


def _beyond(p: _Array, q: _Array) -> Mass:
    """Return the masses of two lower tails, as scalars where there is one pair."""
    return Mass(*((log_ndtr(end) * (1 - _TAIL_SLACK))[() if end.ndim > 1 else 0] for end in (p, q)))
