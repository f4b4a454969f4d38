"""Sums so far, told step after step: noise is correlated so that no sum has much of it."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from sfumato import _check
from sfumato.mechanisms.additive import as_bound, as_entries, as_number
from sfumato.mechanisms.calibrate import Request, least_noise
from sfumato.mechanisms.factorization.code import Array, Code, Integers
from sfumato.mechanisms.factorization.linear_error import NormalError
from sfumato.mechanisms.factorization.linear_release import LinearRelease
from sfumato.mechanisms.factorization.participation import ONCE, Participation
from sfumato.mechanisms.factorization.strategy import Strategy
from sfumato.mechanisms.grid import Grid
from sfumato.mechanisms.lattice import Lattice
from sfumato.mechanisms.mechanism import Mechanism
from sfumato.mechanisms.rational import Number, floor_log2, plain, power_of_two, sqrt_up
from sfumato.numerics.samplers import discrete_gaussian
from sfumato.numerics.source import Rng, random_source
from sfumato.privacy.calibration import analytic_gaussian_stddev
from sfumato.privacy.leaves.discrete_gaussian_vector import DiscreteGaussianVector
from sfumato.privacy.loss import PrivacyLoss
from sfumato.privacy.neighboring import Neighboring

__all__ = ["ContinualSum", "SumStream"]

_FINE, _COARSE = 20, 12  # bits of the noise's standard deviation, and of the strategy's entries at least
_WIDEST = 1 << 40
_GRID_BITS = 8  # by so many bits the grid is coarser than that of a single release, for longer sums
_FLOATS = 2.0**-40


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class ContinualSum(Mechanism):
    r"""The sum of all values so far, after every step of a stream.

    Parameters
    ----------
    strategy : Tree, SquareRoot, BandedToeplitz or BufferedToeplitz
        What is measured; its ``steps`` are the public number of steps.
    sensitivity : int, float or Fraction
        The most that one unit's presence moves a step's value, in the L2 norm where values are arrays. An int
        means whole numbers; else values are rounded to the grid first.
    stddev : int, float or Fraction
        Standard deviation of the noise on each measurement, in the unit of the values.
    participation : Participation
        In how many steps a unit takes part: one (event-level protection) unless given.
    l0 : int, optional
        The most entries of a step's array that one unit moves; 1 unless given.
    grid : Grid, optional
        What values are rounded to; chosen from ``sensitivity`` and ``stddev`` unless given.
    integral : bool, optional
        Whether values are whole numbers. Unless given: whether the sensitivity is an int without a grid.
    neighboring : Neighboring
        Under replace-one a unit's steps may be others in the other dataset: its removal and its addition are
        both paid for.
    bits : int, optional
        The strategy's entries are multiples of ``2**-bits``, and so is the noise, in steps of the grid;
        chosen from public parameters unless given.

    Notes
    -----
    Guarantee: the loss of all steps together is ``DiscreteGaussianVector(stddev, S)``, under ``neighboring``
    for units that take part as ``participation`` says. Values may depend on earlier answers.

    *What is measured.* With a strategy of whole entries (:math:`C`, times :math:`2^{bits}`) and whole values,
    :math:`C x` is a vector of integers, computed exactly; row by row it needs inputs so far. Noise is drawn
    on the integers and added, and all that is told is computed from the noisy integers.

    *Sensitivity.* S is the exact squared L2 norm by which one unit moves the integers: that of the strategy
    in whole entries for its worst pattern (see `ToeplitzStrategy`, `Tree`), times the squared move of one
    step's value in steps of the grid, rounding included; four times that under replace-one, by the triangle
    inequality.

    *Adaptive values.* Fix what the adversary does. In both datasets the steps of the unit are the same and
    the other values are the same function of earlier answers; the unit moves each of its steps' values by at
    most the sensitivity. So on every path the integers' moves are :math:`C u` for some such :math:`u`, and
    their squares add up to at most S: which is the condition of `DiscreteGaussianVector`, where the proof
    stands. For continuous noise this is Denisov et al. 2022, Theorem 2.1.

    The caps that ``participation`` and ``sensitivity`` state are the caller's to keep.

    Clamping: each value counts as at most ``limit`` in magnitude, so that no measurement overflows. NaN and
    infinities follow the rule of `Grid`.

    References
    ----------
    Dwork, Naor, Pitassi, Rothblum (2010), "Differential privacy under continual observation"; Chan, Shi, Song
    (2011), "Private and continual release of statistics"; Denisov, McMahan, Rush, Smith, Thakurta (2022),
    "Improved differential privacy for SGD via optimal private linear operators on adaptive streams".

    Examples
    --------
    >>> from sfumato.mechanisms import SquareRoot
    >>> counter = ContinualSum.calibrated(
    ...     strategy=SquareRoot(steps=365), sensitivity=1, epsilon=1.0, delta=1e-6
    ... )
    >>> stream = counter.stream(rng=7)
    >>> today = stream.send(120)
    >>> tomorrow = stream.send(80)
    >>> tomorrow.stddev < 12, abs(tomorrow.value - 200) < 4 * tomorrow.stddev
    (True, True)
    """

    strategy: Strategy
    sensitivity: Number
    stddev: Number
    participation: Participation = ONCE
    l0: int = None  # type: ignore[assignment]  # settled in __post_init__
    grid: Grid = None  # type: ignore[assignment]  # settled in __post_init__
    integral: bool = field(default=None, repr=False)  # type: ignore[assignment]  # settled in __post_init__
    neighboring: Neighboring = Neighboring.ADD_REMOVE
    bits: int = field(default=None, repr=False)  # type: ignore[assignment]  # settled in __post_init__
    _code: Code = field(init=False, repr=False, compare=False)
    _squares: int = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        def put(name: str, value: object) -> None:
            object.__setattr__(self, name, value)

        _kind("strategy", self.strategy, Strategy, "pass Tree(steps=...) or another")
        _kind("participation", self.participation, Participation, "pass Participation(...)")
        _kind("neighboring", self.neighboring, Neighboring, "pass Neighboring.ADD_REMOVE or another")
        put("sensitivity", as_bound("sensitivity", self.sensitivity))
        put("stddev", as_number("stddev", self.stddev, "pass epsilon= and delta= to ContinualSum.calibrated"))
        put("l0", as_entries(self.l0))
        lattice = Lattice.settle(
            self.sensitivity,
            noise=Fraction(self.stddev),
            grid=self.grid,
            integral=self.integral,
            share=Fraction(self.sensitivity) * 2**_GRID_BITS,
        )
        put("grid", lattice.grid)
        put("integral", lattice.integral)
        chosen: int | None = self.bits
        if chosen is None:
            noise = floor_log2(Fraction(self.stddev) / lattice.grid.step)
            chosen = max(0, min(max(_COARSE, _FINE - noise), 39 - noise))
        put("bits", _check.integer("bits", chosen))
        if not 1 <= self._noise() <= _WIDEST:
            rule = f"be from 1 to 2**40 steps of 2**-{self.bits} of {self.grid}"
            _check.refuse("stddev", rule, self.stddev, "pass another grid, or values in other units")
        put("_code", self.strategy.code(self.bits))
        if self._code.limit < 1:
            _check.refuse("bits", "leave room for values", self.bits, "pass fewer, or a coarser grid")
        put("_squares", self._code.squared_sensitivity(self.participation))

    @classmethod
    def calibrated(
        cls,
        *,
        strategy: Strategy,
        sensitivity: Number,
        epsilon: float,
        delta: float,
        participation: Participation = ONCE,
        l0: int | None = None,
        grid: Grid | None = None,
        integral: bool | None = None,
        neighboring: Neighboring = Neighboring.ADD_REMOVE,
    ) -> ContinualSum:
        """Return the mechanism with the least noise whose loss meets (epsilon, delta).

        Parameters
        ----------
        epsilon, delta : float
            The guarantee for all steps together; delta must be positive.
        strategy, sensitivity, participation, l0, grid, integral, neighboring
            As in the class.

        Returns
        -------
        ContinualSum
        """
        request = Request(epsilon=epsilon, delta=_check.unit_interval("delta", delta, "noise is Gaussian"))
        _kind("strategy", strategy, Strategy, "pass Tree(steps=...) or another")
        norm = float(as_bound("sensitivity", sensitivity)) * strategy.sensitivity(participation).upper
        norm *= 2 if neighboring is Neighboring.REPLACE_ONE else 1
        template = cls(
            strategy=strategy,
            sensitivity=sensitivity,
            stddev=analytic_gaussian_stddev(sensitivity=norm, epsilon=request.epsilon, delta=request.delta),
            participation=participation,
            l0=l0,  # type: ignore[arg-type]
            grid=grid,  # type: ignore[arg-type]
            integral=integral,  # type: ignore[arg-type]
            neighboring=neighboring,
        )
        moved = float(sqrt_up(Fraction(template.l2_squared)))
        start = analytic_gaussian_stddev(sensitivity=moved, epsilon=request.epsilon, delta=request.delta)
        noise = least_noise(template._price, request, Fraction(start))
        return replace(template, stddev=plain(noise * template.grid.step / (1 << template.bits)))

    @property
    def l2_squared(self) -> int:
        """The squared L2 norm by which one unit moves what is measured, in steps of the noise."""
        if self.integral:
            step = max(1, math.floor(Fraction(self.sensitivity) ** 2))
        elif self.l0 == 1:
            step = self.grid.shift(Fraction(self.sensitivity)) ** 2
        else:
            step = self.grid.l2_squared_shift(Fraction(self.sensitivity), self.l0)
        return self._squares * step * (4 if self.neighboring is Neighboring.REPLACE_ONE else 1)

    @property
    def privacy_loss(self) -> PrivacyLoss:
        """The loss of all steps together."""
        return self._price(self._noise())

    @property
    def limit(self) -> float:
        """The greatest magnitude of a step's value; beyond, it is clamped."""
        return float(self._code.limit * self.grid.step)

    @property
    def stddevs(self) -> Array:
        """Standard deviation of each sum's noise, shape (steps,), in the unit of the values."""
        return np.sqrt(self._code.variances) * float(self.stddev)

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
            _check.refuse("value", rule, f"shape {values.shape}", "send single values to a stream")
        source = random_source(rng)
        measured = self._code.measure(values)
        noisy = measured + discrete_gaussian(self._noise(), measured.shape, source)
        sums = self._code.estimate(noisy, len(values))
        told = slice(0, len(values))
        greatest = float(np.abs(noisy).max())
        return self._released(sums, told, greatest, self.privacy_loss, simulated=source.simulated)

    def stream(self, rng: Rng = None) -> SumStream:
        """Return a fresh stream, to which values are sent step by step.

        Parameters
        ----------
        rng : None, int, numpy Generator or RandomSource
            As in ``release``.
        """
        return SumStream(self, rng)

    def _price(self, noise: Fraction) -> PrivacyLoss:
        return DiscreteGaussianVector(noise, self.l2_squared, neighboring=self.neighboring)

    def _noise(self) -> Fraction:
        """Return the noise's standard deviation in its own steps."""
        return Fraction(self.stddev) / self.grid.step * (1 << self.bits)

    def _steps(self, value: Any) -> Integers:
        steps = np.asarray(Lattice(self.grid, integral=self.integral).steps(value), dtype=np.int64)
        return np.clip(steps, -self._code.limit, self._code.limit)

    def _released(
        self, sums: Array, told: int | slice, greatest: float, loss: PrivacyLoss, *, simulated: bool
    ) -> LinearRelease:
        step, unit = float(self.grid.step), float(power_of_two(-self.bits))
        errors = (
            np.sqrt(self._code.variances[told]) * float(self.stddev),
            step * unit * self._code.spreads[told] * (0.5 + _FLOATS * greatest),
            self._code.draws[told] * (0.125 / float(self._noise()) ** 2),
        )
        stddev, slack, missed = (float(e) if isinstance(told, int) else e for e in errors)
        scaled = sums * step
        return LinearRelease(
            value=scaled if scaled.ndim else float(scaled),
            error=NormalError(stddev=stddev, slack=slack, missed=missed),
            loss=loss,
            neighboring=self.neighboring,
            simulated=simulated,
        )


def _kind(name: str, value: object, kind: type, remedy: str) -> None:
    if not isinstance(value, kind):
        _check.refuse(name, f"be a {kind.__name__}", value, remedy)


class SumStream:
    """A stream under way: values go in, sums so far come out.

    Parameters
    ----------
    mechanism : ContinualSum
    rng : None, int, numpy Generator or RandomSource

    Notes
    -----
    It holds the values sent so far and noise drawn ahead: private, like the data. The loss of each release is
    that of the whole stream: charge it once, before the first value.
    """

    _AHEAD = 1 << 10

    def __init__(self, mechanism: ContinualSum, rng: Rng = None) -> None:
        self.mechanism = mechanism
        self._loss = mechanism.privacy_loss
        self._source = random_source(rng)
        self._state = mechanism._code.stream()  # noqa: SLF001
        self._noise: NDArray[np.int64] = np.zeros(0, dtype=np.int64)
        self._shape: tuple[int, ...] | None = None
        self._greatest = 0.0
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
        if self.sent == self.mechanism.strategy.steps:
            _check.refuse("steps", "not be exceeded", "one more step", "make a strategy of more steps")
        if self._shape not in (None, steps.shape):
            _check.refuse("value", f"have the shape {self._shape} of the first", steps.shape)
        self._shape = steps.shape
        measured = self._state.measure(steps)
        noisy = measured + self._draw(measured.shape)
        self._greatest = max(self._greatest, float(np.abs(noisy).max()))
        sums = self._state.estimate(noisy)
        self.sent += 1
        return self.mechanism._released(  # noqa: SLF001
            sums, self.sent - 1, self._greatest, self._loss, simulated=self._source.simulated
        )

    def _draw(self, shape: tuple[int, ...]) -> NDArray[np.int64]:
        count = math.prod(shape)
        if count > len(self._noise):
            noise = self.mechanism._noise()  # noqa: SLF001
            fresh = discrete_gaussian(noise, max(self._AHEAD, count), self._source)
            self._noise = np.concatenate([self._noise, fresh])
        taken, self._noise = self._noise[:count], self._noise[count:]
        return taken.reshape(shape)
