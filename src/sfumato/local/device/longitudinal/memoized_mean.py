"""The client half of 1BitMean with memos: numbers are rounded to a grid, with one bit for each grid point."""

from __future__ import annotations

from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, ClassVar, Final, final

import numpy as np
from numpy.typing import NDArray

from sfumato.local.device.base.bernoulli import Coin
from sfumato.local.device.base.record_layout import Records
from sfumato.local.device.longitudinal.memoized_bits import MemoizedBits
from sfumato.local.device.longitudinal.memory import MemoizingRandomizer, checked_memos
from sfumato.local.device.numeric.randomizer import NumericRandomizer
from sfumato.local.device.numeric.window import OneBitMeanRandomizer
from sfumato.numerics.randomness.source import RandomSource
from sfumato.numerics.randomness.uniform import uniform_integers

__all__ = ["MemoizedOneBitMeanRandomizer"]

_UNIFORM_BITS: Final = 53


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class MemoizedOneBitMeanRandomizer(NumericRandomizer, MemoizingRandomizer):
    r"""1BitMean of a rounded number, memoized, with alpha-point rounding.

    Parameters
    ----------
    epsilon, bounds
        See `NumericRandomizer`.
    steps : int
        Of the grid that numbers are rounded to, from 1 to 2^14. With 1, for which memos change the least,
        numbers become one of the two bounds.
    max_memos : int
        Largest number of memos that a device draws; there are ``steps + 1`` grid points to memoize.
    permanent_epsilon : float, optional
        That of a memo, and so of all reports made of it: above epsilon, at most 40. Left out, it is epsilon,
        and memos are reported as they are.

    Attributes
    ----------
    inner : OneBitMeanRandomizer
        The distribution of one report, and its record.
    layers : MemoizedBits
        How bits are memoized and reported.

    Notes
    -----
    A device draws a point :math:`\alpha` from [0, 1) once. A number that is the fraction r of the way from
    one grid point to the next goes to the upper one if :math:`\alpha < r`: on average over devices it stays,
    and small changes of a number mostly change nothing. For each grid point a bit is drawn once by
    `OneBitMeanRandomizer`. A report is that bit, or, with a ``permanent_epsilon``, that bit by randomized
    response (the paper's output perturbation): one report of a device has the distribution of
    `OneBitMeanRandomizer` with epsilon, up to a few times 2^-64 on the private side.

    Guarantee: one report of a device is :math:`\epsilon`-DP, replace-one. All reports of one memo together
    lose at most ``permanent_epsilon``; each further memo costs that again, up to ``memo_limit`` times,
    between histories alike in the changes of their *grid points*, given the point. Theorem and proof are in
    `sfumato.local.device.longitudinal.memory`. Where memos are reported, a change between two that differ is
    seen for certain.

    References
    ----------
    Ding, Kulkarni, Yekhanin (2017), "Collecting telemetry data privately", section 3.

    Examples
    --------
    >>> device = MemoizedOneBitMeanRandomizer(epsilon=1.0, bounds=(0.0, 24.0))
    >>> device.width, device.memo_limit
    (5, 2)
    """

    wire_name: ClassVar[str] = "memoized-one-bit-mean"

    chosen: ClassVar[tuple[str, ...]] = (*NumericRandomizer.chosen, "max_memos", "permanent_epsilon")

    steps: int = 1
    max_memos: int = 4
    permanent_epsilon: float | None = None
    inner: OneBitMeanRandomizer = field(init=False, repr=False, compare=False)
    layers: MemoizedBits = field(init=False, repr=False, compare=False)

    def _choose(self) -> None:
        self._set(max_memos=checked_memos(self.max_memos))
        inner = OneBitMeanRandomizer(epsilon=self.epsilon, bounds=self.bounds)
        layers = MemoizedBits.of(self.epsilon, inner.inside, self.permanent_epsilon, self._coin)
        self._set(inner=inner, layers=layers, permanent_epsilon=layers.epsilon)

    def _coin(self, epsilon: float) -> Coin:
        return OneBitMeanRandomizer(epsilon=epsilon, bounds=self.bounds).inside

    @property
    def max_keys(self) -> int:
        """How many different keys a device can have: one for each grid point."""
        return self.steps + 1

    def _chances(self) -> dict[str, Any]:
        return self.layers.thresholds()

    @property
    def fixed_width(self) -> int:
        """Bytes of what a device draws once for good: the point at which it rounds."""
        return 8

    def fixed(self, size: int, source: RandomSource) -> Records:
        """Draw points.

        Parameters
        ----------
        size : int
            Number of devices.
        source : RandomSource

        Returns
        -------
        uint8 array, shape (size, fixed_width)
            Points at which numbers are rounded.
        """
        return source.words(size).astype("<u8").view(np.uint8).reshape(size, 8)

    def keys(self, values: Any, fixed: Records) -> NDArray[np.int64]:
        """Return the grid points that numbers are rounded to.

        Parameters
        ----------
        values : array or list
            What is true on each device.
        fixed : uint8 array, shape (n, fixed_width)
            What each device drew once for good.

        Returns
        -------
        int64 array, shape (n,)
            The key of each value, at least 0.
        """
        positions = self._positions(values)
        low = np.minimum(positions.astype(np.int64), self.steps - 1)
        above = np.ldexp(positions - low, _UNIFORM_BITS).astype(np.uint64)
        points = np.ascontiguousarray(fixed).view("<u8")[:, 0] >> np.uint64(64 - _UNIFORM_BITS)
        return np.asarray(low + (points < above), np.int64)

    @property
    def _like(self) -> OneBitMeanRandomizer:
        return self.inner

    @property
    def memo_width(self) -> int:
        """Bytes of a memo: one, for a bit."""
        return 1

    def memoize(self, keys: NDArray[np.int64], fixed: Records, source: RandomSource) -> Records:
        """Draw the bits of grid points: rounded to a bound by chance, then randomized.

        Parameters
        ----------
        keys : int64 array, shape (n,)
            Grid points.
        fixed : uint8 array, shape (n, fixed_width)
            What each device drew once for good.
        source : RandomSource

        Returns
        -------
        uint8 array, shape (n, memo_width)
            One memo for each key, drawn independently.
        """
        upper = uniform_integers(self.steps, len(keys), source) < keys
        return self.layers.memoize(upper, source).astype(np.uint8)[:, None]

    def fresh(self, memos: Records, fixed: Records, source: RandomSource) -> Records:
        """Draw one report of each memo.

        Parameters
        ----------
        memos : uint8 array, shape (n, memo_width)
            What `memoize` returned.
        fixed : uint8 array, shape (n, fixed_width)
            What each device drew once for good.
        source : RandomSource

        Returns
        -------
        uint8 array, shape (n, width)
            One stamped report from each memo.
        """
        return self.layout.pack(self.layers.report(memos[:, 0].astype(np.bool_), source).astype(np.uint64))

    def _encode(self, positions: NDArray[np.int64], source: RandomSource) -> Records:
        none = np.empty((len(positions), 0), np.uint8)
        return self.fresh(self.memoize(positions, none, source), none, source)

    def probabilities(self, point: int) -> dict[bytes, Fraction]:
        """Return the probability of each report of a new device, were a grid point true: private.

        Parameters
        ----------
        point : int
            A grid point, from 0 to `steps`.

        Returns
        -------
        dict of bytes to Fraction
            From each possible report to its exact probability; they sum to 1.
        """
        upper, inside = Fraction(point, self.steps), self.layers.chance
        one = upper * inside + (1 - upper) * (1 - inside)
        records = self.layout.pack(np.arange(2, dtype=np.uint64))
        return {records[0].tobytes(): 1 - one, records[1].tobytes(): one}
