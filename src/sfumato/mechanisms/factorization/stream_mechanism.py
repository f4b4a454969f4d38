"""The base class of mechanisms on streams: exact measurements, step by step or at once, and running sums."""

from __future__ import annotations

import math
from abc import abstractmethod
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sfumato import _check
from sfumato.mechanisms.base.additive import as_bound, as_entries
from sfumato.mechanisms.base.grid import Grid
from sfumato.mechanisms.base.lattice import Lattice
from sfumato.mechanisms.base.mechanism import Mechanism
from sfumato.mechanisms.base.rational import Number
from sfumato.mechanisms.factorization.linear_error import LinearError
from sfumato.mechanisms.factorization.linear_release import LinearRelease
from sfumato.mechanisms.factorization.strategies.integer_strategy import Array, Integers, IntegerStrategy
from sfumato.mechanisms.factorization.strategies.participation import Participation
from sfumato.mechanisms.factorization.strategies.strategy import Strategy, check_unfinished
from sfumato.numerics.randomness.source import RandomSource, Rng, random_source
from sfumato.privacy.loss import PrivacyLoss
from sfumato.privacy.neighboring import Neighboring

__all__ = ["StreamMechanism", "SumStream"]

_GRID_BITS = 8  # by so many bits the grid is coarser than that of a single release, for longer sums


class StreamMechanism(Mechanism):
    """Noise on a strategy's whole measurements of a stream, and sums so far computed from them.

    A subclass is a frozen dataclass with the fields below, a noise parameter and a strategy.
    """

    __slots__ = ()

    strategy: Strategy
    sensitivity: Number
    participation: Participation
    l0: int
    grid: Grid
    integral: bool
    neighboring: Neighboring
    _integers: IntegerStrategy

    @abstractmethod
    def _draw(self, size: tuple[int, ...], source: RandomSource) -> NDArray[np.int64]:
        """Draw noise, in its steps."""

    @abstractmethod
    def _error(self, released: int | slice, largest: float) -> LinearError:
        """Return the error of some steps' sums, in the unit of the values."""

    @property
    def limit(self) -> float:
        """The greatest magnitude of a step's value; beyond, it is clamped."""
        return float(self._integers.limit * self.grid.step)

    def release(self, value: Any, rng: Rng = None) -> LinearRelease:
        """Return all sums of a stream that is known as a whole.

        Parameters
        ----------
        value : array of shape (at most steps, ...)
            The values, step by step along the first axis.
        rng : None, int, numpy Generator or RandomSource
            None draws from the operating system's entropy; anything seeded only simulates.

        Returns
        -------
        LinearRelease
            With the sum after each step.

        Raises
        ------
        ParameterError
            If the type or the shape does not fit; never for a value.
        """
        values = self._steps(value)
        if not values.ndim or not 0 < len(values) <= self.strategy.steps:
            rule = f"have from 1 to {self.strategy.steps} steps along its first axis"
            _check.refuse_type("value", rule, values, "send single values to a stream")
        source = random_source(rng)
        strategy = self._integers
        measured = strategy.measure(values)
        noisy = measured + self._draw(measured.shape, source)
        sums = strategy.estimate(noisy, len(values))
        released = slice(0, len(values))
        largest = float(np.abs(noisy).max())
        return self._released(sums, released, largest, self.privacy_loss, simulated=source.simulated)

    def outputs(self, value: Any, size: int, rng: Rng = None) -> Array:
        """Draw all sums of many releases at once; see `Mechanism.outputs`."""
        # Entries of a step's array are released with noise of their own.
        copies = np.repeat(np.asarray(value)[..., None], _check.integer("size", size, minimum=1), axis=-1)
        return np.moveaxis(np.asarray(self.release(copies, rng).value), -1, 0)

    def stream(self, rng: Rng = None) -> SumStream:
        """Return a fresh stream, to which values are sent step by step.

        Parameters
        ----------
        rng : None, int, numpy Generator or RandomSource
            As in ``release``.
        """
        return SumStream(self, rng)

    def _settle(self, noise: Fraction) -> None:
        """Check the shared parameters, and resolve what was left open."""
        _check.instance("participation", self.participation, Participation, "pass Participation(...)")
        _check.instance(
            "neighboring", self.neighboring, Neighboring, "pass Neighboring.ADD_REMOVE or another"
        )
        object.__setattr__(self, "sensitivity", as_bound("sensitivity", self.sensitivity))
        object.__setattr__(self, "l0", as_entries(self.l0))
        Lattice.settle_in(self, noise, share=Fraction(self.sensitivity) * 2**_GRID_BITS)

    def _steps(self, value: Any) -> Integers:
        steps = np.asarray(Lattice(self.grid, integral=self.integral).steps(value), dtype=np.int64)
        limit = self._integers.limit
        return np.clip(steps, -limit, limit)

    def _released(
        self, sums: Array, released: int | slice, largest: float, loss: PrivacyLoss, *, simulated: bool
    ) -> LinearRelease:
        scaled = sums * float(self.grid.step)
        return LinearRelease(
            value=scaled if scaled.ndim else float(scaled),
            error=self._error(released, largest),
            loss=loss,
            neighboring=self.neighboring,
            simulated=simulated,
        )


class SumStream:
    """A stream under way: values go in, sums so far come out.

    Parameters
    ----------
    mechanism : StreamMechanism
    rng : None, int, numpy Generator or RandomSource

    Notes
    -----
    It holds the values sent so far and noise drawn ahead: private, like the data. The loss of each release is
    that of the whole stream: charge it once, before the first value.

    Examples
    --------
    >>> from sfumato.mechanisms import ContinualSum, SquareRoot
    >>> counter = ContinualSum(strategy=SquareRoot(steps=8), sensitivity=1, stddev=2)
    >>> stream = counter.stream(rng=7)
    >>> stream.send(3).value > -20, stream.sent
    (True, 1)
    """

    _AHEAD = 1 << 10

    def __init__(self, mechanism: StreamMechanism, rng: Rng = None) -> None:
        self.mechanism = mechanism
        self._loss = mechanism.privacy_loss
        self._source = random_source(rng)
        self._state = mechanism._integers.stream()  # noqa: SLF001
        self._noise: NDArray[np.int64] = np.zeros(0, dtype=np.int64)
        self._shape: tuple[int, ...] | None = None
        self._largest = 0.0
        self.sent = 0

    def send(self, value: Any) -> LinearRelease:
        """Add a step's value and return the sum so far, with noise.

        Parameters
        ----------
        value : int, float or array
            Of the same shape in every step.

        Returns
        -------
        LinearRelease

        Raises
        ------
        ParameterError
            If the type or the shape does not fit, or after the last step; never for a value.
        """
        steps = self.mechanism._steps(value)  # noqa: SLF001
        check_unfinished(self.sent, self.mechanism.strategy.steps)
        if self._shape not in (None, steps.shape):
            remedy = "open another stream for arrays of another shape"
            _check.refuse_type("value", f"have the shape {self._shape} of the first", steps, remedy)
        self._shape = steps.shape
        measured = self._state.measure(steps)
        noisy = measured + self._draw(measured.shape)
        self._largest = max(self._largest, float(np.abs(noisy).max()))
        sums = self._state.estimate(noisy)
        self.sent += 1
        return self.mechanism._released(  # noqa: SLF001
            sums, self.sent - 1, self._largest, self._loss, simulated=self._source.simulated
        )

    def _draw(self, shape: tuple[int, ...]) -> NDArray[np.int64]:
        count = math.prod(shape)
        if count > len(self._noise):
            fresh = self.mechanism._draw((max(self._AHEAD, count),), self._source)  # noqa: SLF001
            self._noise = np.concatenate([self._noise, fresh])
        taken, self._noise = self._noise[:count], self._noise[count:]
        return taken.reshape(shape)
