"""Sums of centred values and of their products, which variances and covariances are estimated from."""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction
from typing import final

from sfumato import _check
from sfumato.queries.plan.query import Factor, FoundBounds, Measure
from sfumato.queries.pricing.bound_search import BoundSearch
from sfumato.queries.pricing.grid_steps import even_steps
from sfumato.queries.pricing.moment_grids import Bounded, Moment
from sfumato.queries.pricing.requests.measure_request import Found, MeasureRequest

__all__ = ["SumOfProducts"]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class SumOfProducts(MeasureRequest):
    """The sum of one column's centred values, or of the products of two, for variances and covariances.

    Parameters
    ----------
    first : Bounded
    second : Bounded or None
        The other factor, which may be the first once more.
    max_rows : int
        The most rows of one unit in one group.
    """

    first: Bounded
    second: Bounded | None = None
    max_rows: int = 1

    @property
    def found(self) -> bool:
        """Whether the bounds are placeholders."""
        return self.first.found

    @property
    def searches(self) -> tuple[BoundSearch, ...]:
        """A search for each column without bounds."""
        return tuple(dict.fromkeys(BoundSearch(c.expression) for c in self.moment.columns if c.found))

    @property
    def moment(self) -> Moment:
        """The sum, which shares the grids of its columns with others."""
        return Moment((self.first, *((self.second,) if self.second else ())), self.max_rows)

    def moved(self, groups: int) -> Fraction:
        """Return what one unit moves all groups by together, over the sensitivity."""
        # all rows in one group is the most that they can add to all groups
        return Fraction(groups) if self.all_rows is None else Fraction(1)

    def with_bounds(self, measure: Measure, found: Found) -> Measure:
        """Return the sum of the products of values within the found bounds."""
        factors = tuple(_with_bounds(f, found[BoundSearch(f.expression)]) for f in measure.factors)
        return replace(measure, factors=factors, exponent=sum(factor.exponent for factor in factors))

    def _measure(self, noise_multiplier: Fraction, shared: int | None) -> Measure:
        del noise_multiplier, shared
        _check.refuse("measure", "be put on the grid with the sums it is read with", "alone", "use on_grids")


def _with_bounds(factor: Factor, bounds: FoundBounds) -> Factor:
    lower, upper, exponent = even_steps(bounds, factor.upper)
    exponent += factor.exponent
    return replace(factor, exponent=exponent, lower=lower, upper=upper, center=(lower + upper) // 2)
