"""The base class of mechanisms on streams: exact measurements, step by step or at once, and running sums."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Callable
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
from sfumato.mechanisms.factorization.strategies.integer_strategy import Array, IntegerStrategy
from sfumato.mechanisms.factorization.strategies.participation import Participation
from sfumato.mechanisms.factorization.strategies.strategy import Strategy, check_unfinished
from sfumato.numerics.randomness.source import RandomSource, Rng, random_source
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
    def _errors(self) -> Callable[[int | slice, float], LinearError]:
        """Return what gives the error of some steps' sums, in the unit of the values.

        It takes the steps, and the greatest magnitude of a measurement.
        """

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
        _check_steps("value", values, self.strategy.steps, "send single values to a stream")
        source = random_source(rng)
        strategy = self._integers
        measured = strategy.measure(values)
        noisy = measured + self._draw(measured.shape, source)
        sums = strategy.estimate(noisy, len(values))
        return LinearRelease(
            value=sums * float(self.grid.step),
            error=self._errors()(slice(0, len(values)), float(np.abs(noisy).max())),
            loss=self.privacy_loss,
            neighboring=self.neighboring,
            simulated=source.simulated,
        )

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

    def _steps(self, value: Any) -> Any:
        return _clamped(Lattice(self.grid, integral=self.integral).steps(value), self._integers.limit)


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

    Each step is answered at once. Over a million steps one takes 5 to 25 microseconds alone, of which the
    strategy's arithmetic is a few, and 1 to 3 in blocks of a thousand (`send_many`). Toeplitz strategies
    multiply what was sent in blocks: the step at a multiple of a large power of two takes longer, up to a
    quarter of a second in the middle of a million.

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
        self._loss, self._neighboring = mechanism.privacy_loss, mechanism.neighboring
        self._lattice = Lattice(mechanism.grid, integral=mechanism.integral)
        self._step, self._last = float(mechanism.grid.step), mechanism.strategy.steps
        self._limit = mechanism._integers.limit  # noqa: SLF001
        self._error = mechanism._errors()  # noqa: SLF001
        self._source = random_source(rng)
        self._state = mechanism._integers.stream()  # noqa: SLF001
        self._noise: NDArray[np.int64] = np.zeros(0, dtype=np.int64)
        self._numbers: list[int] = []  # noise for single numbers, the next one last
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
        steps = _clamped(self._lattice.steps(value), self._limit)
        check_unfinished(self.sent, self._last)
        shape = () if isinstance(steps, int) else steps.shape
        self._check_shape(shape, steps)
        measured = self._state.measure(steps)
        if shape:
            noise = self._draw((len(measured), *shape))
            noisy = [row + fresh for row, fresh in zip(measured, noise, strict=True)]
            self._largest = max(self._largest, *(float(np.abs(row).max()) for row in noisy))
        else:
            noisy = [row + self._draw_number() for row in measured]
            self._largest = max(self._largest, *map(abs, noisy))
        sums = self._state.estimate(noisy)
        self.sent += 1
        return self._released(sums, self.sent - 1)

    def send_many(self, values: Any) -> LinearRelease:
        """Add the values of some steps that are known together, and return the sum after each of them.

        Parameters
        ----------
        values : array of shape (steps, ...)
            What `send` takes, step by step along the first axis.

        Returns
        -------
        LinearRelease
            Distributed as if they were sent one by one, much faster.

        Raises
        ------
        ParameterError
            As in `send`.

        Examples
        --------
        >>> import numpy as np
        >>> from sfumato.mechanisms import ContinualSum, SquareRoot
        >>> counter = ContinualSum(strategy=SquareRoot(steps=1000), sensitivity=1, stddev=2)
        >>> stream = counter.stream(rng=7)
        >>> release = stream.send_many(np.ones(999, dtype=np.int64))
        >>> release.value.shape, stream.sent, abs(stream.send(1).value - 1000) < 50
        ((999,), 999, True)
        """
        steps = _clamped(self._lattice.steps(values), self._limit)
        check_unfinished(self.sent, self._last)
        _check_steps("values", steps, self._last - self.sent, "use send for a single step")
        self._check_shape(steps.shape[1:], steps)
        measured = self._state.measure_steps(steps)
        noisy = measured + self._draw(measured.shape)
        self._largest = max(self._largest, float(np.abs(noisy).max()))
        sums = self._state.estimate_steps(noisy, len(steps))
        released = slice(self.sent, self.sent + len(steps))
        self.sent += len(steps)
        return self._released(sums, released)

    def _released(self, sums: Any, released: int | slice) -> LinearRelease:
        return LinearRelease(
            value=sums * self._step,
            error=self._error(released, float(self._largest)),
            loss=self._loss,
            neighboring=self._neighboring,
            simulated=self._source.simulated,
        )

    def _check_shape(self, shape: tuple[int, ...], steps: Any) -> None:
        if self._shape is None:
            self._shape = shape
        elif self._shape != shape:
            remedy = "open another stream for arrays of another shape"
            _check.refuse_type("value", f"have the shape {self._shape} of the first", steps, remedy)

    def _draw(self, shape: tuple[int, ...]) -> NDArray[np.int64]:
        count = math.prod(shape)
        if count > len(self._noise):
            fresh = self.mechanism._draw((max(self._AHEAD, count),), self._source)  # noqa: SLF001
            self._noise = np.concatenate([self._noise, fresh])
        taken, self._noise = self._noise[:count], self._noise[count:]
        return taken.reshape(shape)

    def _draw_number(self) -> int:
        if not self._numbers:
            self._numbers = self._draw((self._AHEAD,))[::-1].tolist()
        return self._numbers.pop()


def _clamped(steps: Any, limit: int) -> Any:
    """Return an int or an array of them, clamped to a magnitude."""
    if isinstance(steps, int):
        return max(-limit, min(limit, steps))
    return np.clip(np.asarray(steps, dtype=np.int64), -limit, limit)


def _check_steps(name: str, values: Any, most: int, remedy: str) -> None:
    """Refuse what has no first axis, or more steps along it than there may be."""
    if not np.ndim(values) or not 0 < len(values) <= most:
        rule = f"have from 1 to {most} steps along its first axis"
        _check.refuse_type(name, rule, np.asarray(values), remedy)
