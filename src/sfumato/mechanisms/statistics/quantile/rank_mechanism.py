"""What one quantile and many share: bounds, a grid of answers, a budget."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Final

from sfumato import _check
from sfumato.mechanisms.base.additive import as_number
from sfumato.mechanisms.base.grid import LIMIT, Grid, as_grid
from sfumato.mechanisms.base.mechanism import Mechanism
from sfumato.mechanisms.base.rational import Number, ceil_log2
from sfumato.mechanisms.query.sums import distinct_bounds
from sfumato.mechanisms.statistics.quantile.rank_sampling import RankSampler, add_remove_sampler
from sfumato.privacy.neighboring import Neighboring

__all__ = ["MINIMUM_RATE", "RankMechanism"]

_BITS: Final = 40
_COARSEST: Final = 960
_WIDEST: Final = 1 << 60
MINIMUM_RATE: Final = Fraction(1, 1 << 36)
"""The smallest rate of a `RankSampler`: with less, an answer reveals nothing of the data."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RankMechanism(Mechanism):
    """What one quantile and many share: bounds, a grid of answers, a budget."""

    bounds: tuple[Number, Number]
    epsilon: Number
    grid: Grid = None  # type: ignore[assignment]  # settled in __post_init__
    neighboring: Neighboring = Neighboring.ADD_REMOVE

    def __post_init__(self) -> None:
        lower, upper = distinct_bounds(self.bounds)
        object.__setattr__(self, "bounds", (lower, upper))
        object.__setattr__(self, "epsilon", as_number("epsilon", self.epsilon))
        given: Grid | None = self.grid
        if given is None:
            magnitude = Fraction(max(abs(lower), abs(upper)))
            whole = isinstance(lower, int) and isinstance(upper, int)
            exponent = 0 if whole else max(ceil_log2(magnitude) - _BITS, -1074)
            if exponent > _COARSEST:
                _check.refuse(
                    "bounds", "be at most 2**1000 in magnitude", self.bounds, "pass values in other units"
                )
            given = Grid(exponent=exponent)
        object.__setattr__(self, "grid", as_grid(given))
        low, high = self._ends()
        if not 1 <= high - low <= _WIDEST or max(abs(low), abs(high)) >= LIMIT:
            rule = f"be from 1 to 2**60 steps of {self.grid} apart, and within 2**62 steps of zero"
            _check.refuse("bounds", rule, self.bounds, "pass another grid, or other bounds")
        _check.instance(
            "neighboring", self.neighboring, Neighboring, "pass Neighboring.ADD_REMOVE or another"
        )
        self._check_rates()

    def _check_rates(self) -> None:
        """Refuse a budget that is too small for what is asked."""
        raise NotImplementedError

    def _draw(self, target: Fraction, epsilon: Fraction, lower: int, upper: int) -> RankSampler:
        """Return the draw of one quantile at a cost of epsilon under the relation."""
        if self.neighboring is Neighboring.ADD_REMOVE:
            return add_remove_sampler(target, epsilon, lower, upper)
        return RankSampler(target, epsilon / (2 * target.denominator), lower, upper)

    def _ends(self) -> tuple[int, int]:
        return self.grid.inside(self.bounds)

    def _value(self, steps: int) -> int | float:
        whole = self.grid.exponent == 0 and all(isinstance(bound, int) for bound in self.bounds)
        return steps if whole else float(steps * self.grid.step)
