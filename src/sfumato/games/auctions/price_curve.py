"""The exponential mechanism over prices, where revenue is a piecewise linear function of the price.

Prices are 2^36 steps. Between two neighboring bids revenue is a line, so weights there are a geometric
series: sums and means over all prices are closed forms, and a draw takes a line first and then a price on it.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Final, final

import numpy as np
from numpy.typing import NDArray

from sfumato import _check
from sfumato.mechanisms.base.additive import as_number
from sfumato.mechanisms.base.rational import Number
from sfumato.mechanisms.statistics.quantile.rank_sampling import uniform_below_each
from sfumato.numerics.randomness.source import RandomSource
from sfumato.numerics.sampling.choice import choose, flip

__all__ = ["MOST_BIDS", "STEPS", "PriceCurve", "as_upper", "bid_steps"]

_Ints = NDArray[np.int64]
_Floats = NDArray[np.float64]

STEPS: Final = 1 << 36
"""How many prices there are, up to the highest."""
MOST_BIDS: Final = 1 << 25
"""Revenues are then below 2^61 steps."""

_FAR: Final = 45.0 + 25.0  # exp(-45) over all 2^36 prices
_SERIES: Final = 0.1
_SMALLEST: Final = Fraction(1, 1 << 900)


def as_upper(value: object) -> Number:
    """Return the highest price, or refuse it where prices and steps would be no floats."""
    upper = as_number("upper", value, "pass the highest price")
    if not _SMALLEST <= Fraction(upper) <= 1 / _SMALLEST:
        _check.refuse("upper", "be from 2**-900 to 2**900", value, "state prices in another unit")
    return upper


def bid_steps(name: str, bids: Any, upper: float) -> _Ints:
    """Return bids as whole steps of the highest price, rounded down; NaN is 0, others are clamped."""
    array = np.asarray(bids)
    if array.ndim != 1 or array.dtype.kind not in "iuf":
        _check.refuse_type(name, "be a one-dimensional array of numbers", bids, "pass a list of bids")
    if array.size > MOST_BIDS:
        _check.refuse_state(name, f"be at most {MOST_BIDS:,}", "there are more", "sell in several markets")
    with np.errstate(over="ignore"):
        scaled = array.astype(np.float64) * (STEPS / upper)
    scaled = np.nan_to_num(scaled, nan=0.0, posinf=STEPS, neginf=0.0)
    return np.clip(np.floor(scaled), 0, STEPS).astype(np.int64)


@final
@dataclass(frozen=True, slots=True, eq=False)
class PriceCurve:
    """Revenue at the prices 1 to `STEPS`: a line on each piece, whose slope is not negative.

    Parameters
    ----------
    starts, ends : int64 array
        A piece has the prices after its start up to its end.
    intercepts, slopes : int64 array
        Revenue at a price is the intercept plus the slope times the price, in steps.
    rate : Fraction
        By how much one step of revenue raises the logarithm of a price's weight.
    """

    starts: _Ints
    ends: _Ints
    intercepts: _Ints
    slopes: _Ints
    rate: Fraction

    @classmethod
    def of_pieces(cls, ends: _Ints, intercepts: _Ints, slopes: _Ints, rate: Fraction) -> PriceCurve:
        """Return the curve of pieces that follow one another from 0; empty ones are left out."""
        starts = np.append(0, ends[:-1])
        full = starts < ends
        return cls(starts[full], ends[full], intercepts[full], slopes[full], rate)

    @classmethod
    def of_bids(cls, steps: _Ints, rate: Fraction, supply: int | None = None) -> PriceCurve:
        """Return the revenue of one price: the price times how many bid as much, or the supply."""
        values, counts = np.unique(steps, return_counts=True)
        left = steps.size - np.append(0, counts.cumsum())
        slopes = left if supply is None else np.minimum(left, supply)
        return cls.of_pieces(np.append(values, STEPS), np.zeros_like(slopes), slopes, rate)

    @property
    def tops(self) -> _Ints:
        """The revenue at the end of each piece, which is the largest on it."""
        return np.asarray(self.intercepts + self.slopes * self.ends)

    def best(self) -> tuple[int, int]:
        """Return the lowest price of the largest revenue among the pieces' ends, and that revenue."""
        tops = self.tops
        at = int(tops.argmax())
        return int(self.ends[at]), int(tops[at])

    def log_weights(self) -> tuple[_Floats, float]:
        """Return the log of each piece's whole weight less the second value, the largest weight's log."""
        tops, rate = self.tops, float(self.rate)
        slope, length = self._shape()
        with np.errstate(divide="ignore", invalid="ignore"):
            inside = np.expm1(-slope * length) / np.expm1(-slope)
        inside = np.where(slope > 0, inside, length)
        return (tops - tops.max()) * rate + np.log(inside), float(self.rate * int(tops.max()))

    def log_total(self) -> float:
        """Return the log of the weight of all prices."""
        logs, largest = self.log_weights()
        top = float(logs.max())
        return largest + top + float(np.log(np.exp(logs - top).sum()))

    def shares(self) -> _Floats:
        """Return the probability of each piece."""
        logs, _ = self.log_weights()
        weights = np.exp(logs - logs.max())
        return np.asarray(weights / weights.sum())

    def means(self) -> _Floats:
        r"""Return the mean price on each piece.

        On a piece of m prices the distance j from its end weighs :math:`e^{-\theta j}`, so its mean is
        :math:`1/(e^\theta - 1) - m/(e^{m\theta} - 1)`; where that cancels, by the series of :math:`1/(e^x -
        1) - 1/x + 1/2 = x/12 - x^3/720 + x^5/30240 - \dots`.
        """
        slope, length = self._shape()
        long = slope * length
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            direct = 1 / np.expm1(slope) - length / np.expm1(long)
        series = (length - 1) / 2 + _rest(slope) - length * _rest(long)
        return np.asarray(self.ends - np.where(long > _SERIES, direct, series))

    def expected_revenue(self) -> float:
        """Return the expected revenue, in steps."""
        return float(self.shares() @ (self.intercepts + self.slopes * self.means()))

    def draw(self, size: int, source: RandomSource) -> _Ints:
        """Draw independent prices, each with probability proportional to ``exp(rate * revenue)``, exactly.

        Pieces are cut where weights fall by more than a factor e, but for what lies so low that it is hardly
        ever drawn. A cut piece is chosen as if all its prices weighed as much as its end; then a price on it
        evenly, which is accepted with what it is less likely than that, or else all is drawn anew.
        """
        starts, ends, slopes, tops = self._cut()
        found, left = np.empty(size, np.int64), np.arange(size)
        lengths = ends - starts
        while left.size:
            at = choose(-tops, self.rate, multiplicity=lengths, size=left.size, rng=source)
            drops = uniform_below_each(lengths[at], source)
            taken = flip(slopes[at] * drops, self.rate, source)
            found[left[taken]] = (ends[at] - drops)[taken]
            left = left[~taken]
        return found

    def _cut(self) -> tuple[_Ints, _Ints, _Ints, _Ints]:
        """Return starts, ends, slopes and tops of pieces on which weights fall by a factor e at most."""
        tops, lengths = self.tops, self.ends - self.starts
        rate = float(self.rate)
        # How many prices of a piece, from its end, are not far below the best one, and in parts of how many.
        above = np.maximum(0.0, _FAR - (tops.max() - tops) * rate)
        steep = np.maximum(self.slopes * rate, 2.0**-60)
        near = np.minimum(lengths, np.ceil(np.minimum(above / steep, 2.0**60)).astype(np.int64))
        part = np.maximum(1, np.floor(np.minimum(1 / steep, 2.0**60))).astype(np.int64)
        counts = np.where(near > 0, -(-near // part), 0)
        rest = lengths - near > 0
        owner = np.repeat(np.arange(len(tops)), counts)
        order = np.arange(owner.size) - np.repeat(counts.cumsum() - counts, counts)
        ends = self.ends[owner] - order * part[owner]
        starts = np.maximum(self.ends[owner] - near[owner], ends - part[owner])
        starts = np.concatenate([starts, self.starts[rest]])
        ends = np.concatenate([ends, (self.ends - near)[rest]])
        owner = np.concatenate([owner, np.flatnonzero(rest)])
        return starts, ends, self.slopes[owner], self.intercepts[owner] + self.slopes[owner] * ends

    def _shape(self) -> tuple[_Floats, _Floats]:
        """Return by how much the log weight falls per step on each piece, and how many prices it has."""
        return np.asarray(self.slopes * float(self.rate), np.float64), (self.ends - self.starts).astype(
            np.float64
        )


def _rest(x: _Floats) -> _Floats:
    """Return ``1/(exp(x) - 1) - 1/x + 1/2`` for small x, to 1e-16."""
    square = np.minimum(x, _SERIES) ** 2
    return np.asarray(x * (1 / 12 - square * (1 / 720 - square * (1 / 30240 - square / 1209600))))
