"""Continual counting: running sums with correlated Gaussian noise, so that each has a small error."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import final

import numpy as np
from numpy.typing import NDArray

from sfumato import _check
from sfumato.mechanisms.base.additive import as_bound, as_number
from sfumato.mechanisms.base.calibration import PrivacyTarget, minimum_noise
from sfumato.mechanisms.base.grid import Grid
from sfumato.mechanisms.base.rational import Number, floor_log2, plain, power_of_two, sqrt_up
from sfumato.mechanisms.factorization.linear_error import NormalError
from sfumato.mechanisms.factorization.strategies.integer_strategy import Array, IntegerStrategy
from sfumato.mechanisms.factorization.strategies.participation import ONCE, Participation
from sfumato.mechanisms.factorization.strategies.strategy import Strategy
from sfumato.mechanisms.factorization.stream_mechanism import StreamMechanism
from sfumato.numerics.randomness.source import RandomSource
from sfumato.numerics.sampling.integer_noise import discrete_gaussian
from sfumato.privacy.calibration import analytic_gaussian_stddev
from sfumato.privacy.leaves.discrete_gaussian_vector import DiscreteGaussianVector
from sfumato.privacy.loss import PrivacyLoss
from sfumato.privacy.neighboring import Neighboring

__all__ = ["ContinualSum"]

_FINE, _COARSE = 20, 12  # bits of the noise's standard deviation, and of the strategy's entries at least
_WIDEST = 1 << 40


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class ContinualSum(StreamMechanism):
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
    on the integers and added, and all that is released is computed from the noisy integers.

    *Sensitivity.* S is the exact squared L2 norm by which one unit moves the integers: that of the strategy
    in whole entries for its worst pattern (see `ToeplitzStrategy`, `BinaryTree`), times the squared move of
    one step's value in steps of the grid, rounding included; four times that under replace-one, by the
    triangle inequality.

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
    _integers: IntegerStrategy = field(init=False, repr=False, compare=False)
    _squares: int = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        def put(name: str, value: object) -> None:
            object.__setattr__(self, name, value)

        _check.instance("strategy", self.strategy, Strategy, "pass BinaryTree(steps=...) or another")
        put("stddev", as_number("stddev", self.stddev, "pass epsilon= and delta= to ContinualSum.calibrated"))
        self._settle(Fraction(self.stddev))
        chosen: int | None = self.bits
        if chosen is None:
            noise = floor_log2(Fraction(self.stddev) / self.grid.step)
            chosen = max(0, min(max(_COARSE, _FINE - noise), 39 - noise))
        put("bits", _check.integer("bits", chosen))
        if not 1 <= self._noise() <= _WIDEST:
            rule = f"be from 1 to 2**40 steps of 2**-{self.bits} of {self.grid}"
            _check.refuse("stddev", rule, self.stddev, "pass another grid, or values in other units")
        put("_integers", self.strategy.in_integers(self.bits))
        if self._integers.limit < 1:
            _check.refuse("bits", "leave room for values", self.bits, "pass fewer, or a coarser grid")
        put("_squares", self._integers.squared_sensitivity(self.participation))

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
        """Return the mechanism with the smallest noise whose loss meets (epsilon, delta).

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
        request = PrivacyTarget.approximate(epsilon, delta, "pass a small one, as the noise is Gaussian")
        _check.instance("strategy", strategy, Strategy, "pass BinaryTree(steps=...) or another")
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
        noise = minimum_noise(template._price, request, Fraction(start))
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
    def stddevs(self) -> Array:
        """Standard deviation of each sum's noise, shape (steps,), in the unit of the values."""
        return np.sqrt(self._integers.variances) * float(self.stddev)

    def _price(self, noise: Fraction) -> PrivacyLoss:
        return DiscreteGaussianVector(noise, self.l2_squared, neighboring=self.neighboring)

    def _noise(self) -> Fraction:
        """Return the noise's standard deviation in its own steps."""
        return Fraction(self.stddev) / self.grid.step * (1 << self.bits)

    def _draw(self, size: tuple[int, ...], source: RandomSource) -> NDArray[np.int64]:
        return discrete_gaussian(self._noise(), size, source)

    def _errors(self) -> Callable[[int | slice, float], NormalError]:
        code, stddev = self._integers, float(self.stddev)
        unit, missed = float(self.grid.step * power_of_two(-self.bits)), 0.125 / float(self._noise()) ** 2

        def error(released: int | slice, largest: float) -> NormalError:
            errors = (
                np.sqrt(code.variances[released]) * stddev,
                unit * (0.5 * code.magnitudes[released] + code.floats * largest),
                code.draws[released] * missed,
            )
            some = [float(e) for e in errors] if isinstance(released, int) else errors
            return NormalError(stddev=some[0], slack=some[1], missed=some[2])

        return error
