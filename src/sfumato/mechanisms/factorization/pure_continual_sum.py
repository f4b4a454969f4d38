"""Continual counting under pure DP: a binary tree of sums with Laplace noise."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cache
from typing import Any, Final, final

import numpy as np
from numpy.typing import NDArray

from sfumato import _check
from sfumato.mechanisms.base.additive import as_bound, as_number
from sfumato.mechanisms.base.calibration import PrivacyTarget, cheapest_noise
from sfumato.mechanisms.base.grid import Grid
from sfumato.mechanisms.base.rational import Number, plain, power_of_two
from sfumato.mechanisms.factorization.linear_error import LaplaceError
from sfumato.mechanisms.factorization.strategies.binary_tree import BinaryTree
from sfumato.mechanisms.factorization.strategies.block_estimates import block_weights
from sfumato.mechanisms.factorization.strategies.integer_strategy import Array, IntegerStrategy
from sfumato.mechanisms.factorization.strategies.participation import ONCE, Participation
from sfumato.mechanisms.factorization.stream_mechanism import StreamMechanism
from sfumato.numerics.decimals import outward
from sfumato.numerics.randomness.source import RandomSource
from sfumato.numerics.sampling.integer_noise import discrete_laplace
from sfumato.privacy.leaves.declared import PureDP
from sfumato.privacy.leaves.discrete_laplace import DiscreteLaplace
from sfumato.privacy.loss import PrivacyLoss
from sfumato.privacy.neighboring import Neighboring

__all__ = ["PureContinualSum"]

_WIDEST: Final = 1 << 40
_BITS: Final = 10  # noise is so much finer than the values' steps, which costs nothing


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class PureContinualSum(StreamMechanism):
    r"""The sum of all values so far, after every step of a stream, without a delta.

    Parameters
    ----------
    strategy : Tree
        Its ``steps`` are the public number of steps.
    sensitivity : int, float or Fraction
        The most that one unit's presence moves a step's value, in the L1 norm where values are arrays. An int
        means whole numbers; else values are rounded to the grid first.
    scale : int, float or Fraction
        Of the Laplace noise on each block's sum, in the unit of the values.
    participation, l0, grid, integral, neighboring
        As in `ContinualSum`.

    Notes
    -----
    Guarantee: of all steps together, under ``neighboring``, for units that take part as ``participation``
    says; values may depend on earlier answers. A step's value is in one block of each of h heights, so with s
    for the sensitivity in the noise's steps, rounding counted, and k for the most participations, one unit
    moves all blocks' sums by at most ``k h s`` in the L1 norm (twice that under replace-one, where it may
    come back in other steps). The log-ratios of the answers, given the answers before, add up to at most that
    over the scale on every path: the loss is ``PureDP(k h s / scale)``. Where one unit is in one step, of one
    number, at most h sums move, each by at most s: the loss is ``DiscreteLaplace(scale, s) * h``, which also
    knows its profile.

    `ContinualSum` has less noise from a delta on that matters.

    References
    ----------
    Dwork, Naor, Pitassi, Rothblum (2010), "Differential privacy under continual observation"; Chan, Shi, Song
    (2011), "Private and continual release of statistics"; Honaker (2015), the estimate.

    Examples
    --------
    >>> counter = PureContinualSum.calibrated(strategy=BinaryTree(steps=365), sensitivity=1, epsilon=1.0)
    >>> stream = counter.stream(rng=7)
    >>> release = stream.send(120)
    >>> counter.scale, counter.privacy_loss.epsilon(), abs(release.value - 120) < 5 * release.stddev
    (9, 1.0, True)
    """

    strategy: BinaryTree
    sensitivity: Number
    scale: Number
    participation: Participation = ONCE
    l0: int = None  # type: ignore[assignment]  # settled in __post_init__
    grid: Grid = None  # type: ignore[assignment]  # settled in __post_init__
    integral: bool = field(default=None, repr=False)  # type: ignore[assignment]  # settled in __post_init__
    neighboring: Neighboring = Neighboring.ADD_REMOVE
    _integers: IntegerStrategy = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        _check.instance("strategy", self.strategy, BinaryTree, "pass BinaryTree(steps=...)")
        remedy = "pass epsilon= to PureContinualSum.calibrated to have it chosen"
        object.__setattr__(self, "scale", as_number("scale", self.scale, remedy))
        self._settle(Fraction(self.scale))
        if not 1 / Fraction(_WIDEST) <= self._noise() <= _WIDEST:
            rule = f"be from 2**-40 to 2**40 steps of 2**-{_BITS} of {self.grid}"
            _check.refuse("scale", rule, self.scale, "pass another grid, or values in other units")
        object.__setattr__(self, "_integers", self.strategy.in_integers(_BITS))

    @classmethod
    def calibrated(
        cls,
        *,
        strategy: BinaryTree,
        sensitivity: Number,
        epsilon: float,
        delta: float = 0.0,
        participation: Participation = ONCE,
        l0: int | None = None,
        grid: Grid | None = None,
        integral: bool | None = None,
        neighboring: Neighboring = Neighboring.ADD_REMOVE,
    ) -> PureContinualSum:
        """Return the mechanism with the smallest noise whose loss meets (epsilon, delta).

        Parameters
        ----------
        epsilon : float
            The guarantee for all steps together.
        delta : float
            Used only where it buys a smaller scale, by a thousandth or more.
        strategy, sensitivity, participation, l0, grid, integral, neighboring
            As in the class.

        Returns
        -------
        PureContinualSum
        """
        request = PrivacyTarget(epsilon=epsilon, delta=delta)
        _check.instance("strategy", strategy, BinaryTree, "pass BinaryTree(steps=...)")

        blocks = strategy.heights * participation.max_steps(strategy.steps)
        start = Fraction(as_bound("sensitivity", sensitivity)) * blocks / request.exact_epsilon
        template = cls(
            strategy=strategy,
            sensitivity=sensitivity,
            scale=plain(start),
            participation=participation,
            l0=l0,  # type: ignore[arg-type]
            grid=grid,  # type: ignore[arg-type]
            integral=integral,  # type: ignore[arg-type]
            neighboring=neighboring,
        )
        steps = cheapest_noise(template._price, request, template.l1 / request.exact_epsilon)
        return replace(template, scale=plain(steps * template.grid.step / (1 << _BITS)))

    @property
    def l1(self) -> int:
        """The L1 norm by which one unit moves what is measured, in steps of the noise."""
        blocks = self.strategy.heights * self.participation.max_steps(self.strategy.steps)
        return blocks * self._shift() * (2 if self.neighboring is Neighboring.REPLACE_ONE else 1)

    @property
    def privacy_loss(self) -> PrivacyLoss:
        """The loss of all steps together."""
        return self._price(self._noise())

    @property
    def stddevs(self) -> Array:
        """Standard deviation of each sum's noise, shape (steps,), in the unit of the values."""
        return np.sqrt(2 * self._integers.variances) * float(self.scale)

    def _noise(self) -> Fraction:
        """Return the scale in the noise's own steps."""
        return Fraction(self.scale) / self.grid.step * (1 << _BITS)

    def _shift(self) -> int:
        """Return the most that one unit moves a step's value, in steps of the noise."""
        if self.integral:
            steps = max(1, math.floor(Fraction(self.sensitivity)))
        elif self.l0 == 1:
            steps = self.grid.shift(Fraction(self.sensitivity))
        else:
            steps = self.grid.l1_shift(Fraction(self.sensitivity), self.l0)
        return steps << _BITS

    def _price(self, scale: Fraction) -> PrivacyLoss:
        once = self.participation.max_steps(self.strategy.steps) == 1
        if once and self.l0 == 1 and self.neighboring is not Neighboring.REPLACE_ONE:
            return DiscreteLaplace(scale, self._shift(), neighboring=self.neighboring) * self.strategy.heights
        return PureDP(outward(self.l1 / scale), neighboring=self.neighboring)

    def _draw(self, size: tuple[int, ...], source: RandomSource) -> NDArray[np.int64]:
        return discrete_laplace(self._noise(), size, source)

    def _errors(self) -> Callable[[int | slice, float], LaplaceError]:
        code, scale, steps = self._integers, float(self.scale), range(1, self.strategy.steps + 1)
        unit = float(self.grid.step * power_of_two(-_BITS))

        def error(released: int | slice, largest: float) -> LaplaceError:
            floats = unit * code.floats * largest
            if isinstance(released, int):
                lattice, lengths = unit * float(code.magnitudes[released]), steps[released : released + 1]
                return LaplaceError(terms=_PrefixTerms(lengths), scale=scale, lattice=lattice, floats=floats)
            lengths = steps[released]
            lattices = unit * code.magnitudes[released]
            errors = np.full(len(lengths), floats)
            return LaplaceError(terms=_PrefixTerms(lengths), scale=scale, lattice=lattices, floats=errors)

        return error


class _PrefixTerms(Sequence[tuple[Array, Array]]):
    """The weights of each prefix, made when they are asked for: those of its blocks."""

    def __init__(self, lengths: range) -> None:
        self._lengths = lengths

    def __len__(self) -> int:
        return len(self._lengths)

    def __getitem__(self, index: Any) -> Any:
        length = self._lengths[index]
        blocks = _block_arrays(self._lengths[-1].bit_length())
        held = [block for height, block in enumerate(blocks) if length >> height & 1]
        return np.concatenate([sizes for sizes, _ in held]), np.concatenate([counts for _, counts in held])


@cache
def _block_arrays(heights: int) -> list[tuple[Array, Array]]:
    """Return for each height the weights in a block's estimate, and how often each of them occurs."""
    return [
        (np.array([weight for weight, _ in block]), np.array([float(count) for _, count in block]))
        for block in block_weights(heights)
    ]
