"""One measure that a query needs, before its grid is chosen: what every measure states.

A new measure is a class in this folder: what one unit adds to a group, in words that every engine compiles
(`sfumato.queries.plan.measure`), its bounds in the data's units, the power-of-two grid that it is put on, how
far one unit moves it, which bounds are still to be found, what is published for its estimate, and its words.
An aggregate names its measures (`sfumato.queries.pricing.aggregate_measures`), and noise is calibrated for
all of them together.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Mapping, MutableMapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import ClassVar, Final, Self, TypeAlias, TypeVar, final

from sfumato import _check
from sfumato.mechanisms.statistics.quantile.binned_quantiles import BinMechanism
from sfumato.queries.plan.expression_words import in_words
from sfumato.queries.plan.measure import Measure
from sfumato.queries.plan.query import ColumnType, Expression, FoundBounds
from sfumato.queries.pricing.bound_search import BoundSearch

__all__ = [
    "HALF_DISTANCE",
    "PLACEHOLDER_BOUNDS",
    "Bounds",
    "EstimateNoise",
    "ExpectedError",
    "Found",
    "Grids",
    "MeasureRequest",
    "Number",
    "cut",
    "even_steps",
    "on_grids",
    "power",
]

PLACEHOLDER_BOUNDS: Final = (-1.0, 1.0)
"""The bounds that a measure is priced within whose own are to be found: noise is in their units."""

Number = TypeVar("Number", int, float)

Bounds: TypeAlias = tuple[float, float]
Found: TypeAlias = Mapping[BoundSearch, FoundBounds]
Grids: TypeAlias = Mapping[Hashable, int]
"""The exponents of grids that measures share, by what is put on them."""

HALF_DISTANCE: Final = "times half the distance of the bounds"
"""What an error is counted in before the bounds are found."""


@final
@dataclass(frozen=True, slots=True)
class ExpectedError:
    """How far an aggregate will be off the bounded answer.

    Parameters
    ----------
    stddev : float
        The standard deviation of the error, or the most that it can be.
    half_width : float or None
        Of the interval, where the error is the noise of a single measure.
    over : str
        What ``stddev`` is to be divided by: ``"units"`` or ``"rows"`` of the group; empty for nothing.
    unit : str
        What it is counted in: empty for the aggregate's own unit; else ``"ranks"``, or in words how it
        follows from bounds that are not found yet.
    typical : float or None
        The standard deviation where values are even, if ``stddev`` holds for any and is far larger.
    """

    stddev: float
    half_width: float | None = None
    over: str = ""
    unit: str = ""
    typical: float | None = None


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class EstimateNoise:
    """The noise of what an aggregate is estimated from, for its expected error.

    Parameters
    ----------
    measure : Measure
        The first one.
    stddev : float
        Of its noise, in grid steps.
    half_width : callable
        Computes that of its interval, in grid steps.
    pending : bool
        Whether its bounds are not found yet.
    over, count_stddev
        Of the number that the aggregate divides by, where there is one.
    further : tuple of float
        The standard deviations of the further measures.
    quantiles : tuple of float
        The orders that are estimated.
    """

    measure: Measure
    stddev: float
    half_width: Callable[[], float]
    pending: bool
    over: str
    count_stddev: float
    further: tuple[float, ...]
    quantiles: tuple[float, ...]

    @property
    def step(self) -> float:
        """The step of the grid."""
        return 2.0**self.measure.exponent


@dataclass(frozen=True, slots=True, kw_only=True)
class MeasureRequest(ABC):
    """One measure that a query needs, with its bounds in the data's units.

    Parameters
    ----------
    expression : Expression or None
        None where rows or units are counted.
    all_rows : int or None
        The rows that a unit may have in all groups together, where these are bounded instead of its groups.
    """

    noun: ClassVar[str]
    """What is measured, for explanations."""

    counts: ClassVar[str] = "rows"
    """What it is a number of, where it is one."""

    expression: Expression | None = None
    all_rows: int | None = None

    @property
    def found(self) -> bool:
        """Whether its bounds are placeholders for those that a search finds."""
        return False

    @property
    def searches(self) -> tuple[BoundSearch, ...]:
        """What finds the bounds: one search for each column without any, among its values."""
        return (BoundSearch(self.expression),) if self.found and self.expression is not None else ()

    @property
    def search(self) -> BoundSearch | None:
        """The search that this is the measure of, if it is of one."""
        return None

    @property
    def entries(self) -> int:
        """The numbers of a group that one unit moves, each by at most the sensitivity."""
        return 1

    def numbers(self, groups: int) -> int:
        """Return how many numbers of so many groups one unit moves."""
        return groups * self.entries

    def moved(self, groups: int) -> Fraction:
        """Return what one unit moves all entries by together, over the sensitivity.

        That is the number of entries, or less where its rows in all groups together are bounded.
        """
        return Fraction(groups * self.entries)

    @property
    def chooses(self) -> bool:
        """Whether the answer is chosen, and not read off noisy numbers, where noise would be Laplace's."""
        return False

    def with_orders(self, orders: Sequence[float]) -> Self:
        """Return the request with the orders of all quantiles that are estimated from it, rising."""
        del orders
        return self

    def chooser(self, groups: int, unit: Fraction, *, gaussian: bool) -> BinMechanism | None:
        """Return the mechanism that chooses the answer, at the cost of noise; None where noise is added.

        Parameters
        ----------
        groups : int
            The most groups that a unit counts in.
        unit : Fraction
            Of the noise of a single entry, its scale or standard deviation, over the sensitivity.
        gaussian : bool
            Whether the noise would be Gaussian.
        """
        del groups, unit, gaussian
        return None

    def choice_error(
        self, chooser: BinMechanism, measure: Measure, orders: Sequence[float], *, pending: bool
    ) -> ExpectedError:
        """Return the error in ranks of quantiles that are chosen; before bounds are found, the largest."""
        del orders, pending
        _check.refuse("measure", "be chosen from", (chooser, measure), "price it as the bins of a quantile")

    def propose_grids(self, noise_multiplier: Fraction, grids: MutableMapping[Hashable, int]) -> None:  # noqa: B027
        """Add the exponents of grids that other measures of the query may share, or must."""

    def on_grid(self, noise_multiplier: Fraction, grids: Grids | None = None) -> Measure:
        """Choose the power-of-two grid, or take one of the shared ``grids``; bounds are in its steps."""
        measure = self._measure(noise_multiplier, grids or {})
        return measure if self.all_rows is None else self._within(measure, self.all_rows)

    def require_rows_on_grid(self, measure: Measure) -> None:  # noqa: B027 - most measures are of no rows
        """Refuse a grid that would round the single rows away.

        Raises
        ------
        OptionError
            If the bound of a row is too few steps.
        """

    def with_bounds(self, measure: Measure, found: Found) -> Measure:
        """Return the measure with the bounds that were found instead of the placeholders."""
        del found
        return measure

    def published(self, measure: Measure) -> tuple[int, int | None, int | None]:
        """Return what estimates subtract from or add to the noisy number, and the range of a row or bin."""
        return measure.center, None, None

    def noise_exponent(self, measure: Measure) -> int:
        """Return the exponent of the grid that the noise is on."""
        return measure.exponent

    @property
    def title(self) -> str:
        """What noise is added to, in words."""
        return (
            f"the {self.noun} of {in_words(self.expression)}"
            if self.expression
            else f"the number of {self.noun}"
        )

    def meaning(self, function: str, measure: Measure) -> str:
        """Say what an aggregate that is estimated from it is, and within which bounds."""
        low, high = (bound * 2.0**measure.exponent for bound in (measure.lower, measure.upper))
        return f"{function}, one unit adds between {low:g} and {high:g} to a group"

    def expected_error(self, noise: EstimateNoise) -> ExpectedError | None:
        """Return the error of an aggregate that is estimated from it: its own noise, for counts and sums."""
        unit = "times the larger bound" if noise.pending else ""
        return ExpectedError(noise.stddev * noise.step, noise.half_width() * noise.step, unit=unit)

    def typed(self, type_: ColumnType) -> bool:
        """Return whether the expression has that type."""
        return self.expression is not None and self.expression.type is type_

    @abstractmethod
    def _measure(self, noise_multiplier: Fraction, grids: Grids) -> Measure:
        """Return the measure on its grid."""

    def _within(self, measure: Measure, all_rows: int) -> Measure:
        """Bound what a unit of so many rows adds to all groups together."""
        each = self._each(self._row_range(measure), (measure.lower, measure.upper))
        return (
            measure if each is None else replace(measure, l1=all_rows * min(int(each), measure.sensitivity))
        )

    def _row_range(self, measure: Measure) -> tuple[int, int] | None:
        """Return the clamp of one row in grid steps, where bounds of a row are stated."""
        del measure
        return None

    def _each(self, rows: tuple[Number, Number] | None, bounds: tuple[Number, Number]) -> Number | None:
        """Return a number so that n rows add at most n times it to all groups, if there is one."""
        del rows, bounds
        return None


def on_grids(requests: Sequence[MeasureRequest], multipliers: Sequence[Fraction]) -> tuple[Measure, ...]:
    """Choose every measure's grid; those of the same values share theirs: they are added up once.

    Parameters
    ----------
    requests : sequence of MeasureRequest
    multipliers : sequence of Fraction
        Of the noise of each: its parameter over the sensitivity.
    """
    pairs = list(zip(requests, multipliers, strict=True))
    grids: dict[Hashable, int] = {}
    for request, multiplier in pairs:
        request.propose_grids(multiplier, grids)
    return tuple(request.on_grid(multiplier, grids) for request, multiplier in pairs)


def cut(
    bounds: tuple[Number, Number] | None, attained: tuple[Number, Number] | None
) -> tuple[Number, Number]:
    """Return the bounds without what cannot be attained: clamping to them changes no attained number less.

    Where the two do not meet, every attained number is clamped to the same bound, which is returned twice.
    """
    if bounds is None or attained is None:
        found = attained if bounds is None else bounds
        if found is None:
            _check.refuse("bounds", "limit what a unit adds to a group", None, "give max_rows_per_group")
        return found
    (lower, upper), (minimum, maximum) = bounds, attained
    return min(max(lower, minimum), upper), max(min(upper, maximum), lower)


def even_steps(bounds: FoundBounds, half: int) -> tuple[int, int, int]:
    """Widen found bounds until half their distance is a power of two.

    Parameters
    ----------
    bounds : FoundBounds
    half : int
        The steps that this is to be.

    Returns
    -------
    tuple
        Lower and upper bound in steps, and the power of two.
    """
    lower, upper = Fraction(bounds.lower), Fraction(bounds.upper)
    if lower < 0 < upper:
        upper = max(-lower, upper)
        lower = -upper
    elif lower >= 0 and upper != 2 * lower:
        lower = Fraction(0)
    elif upper <= 0 and lower != 2 * upper:
        upper = Fraction(0)
    distance = (upper - lower) / 2
    return int(lower / distance * half), int(upper / distance * half), power(float(distance))


def power(value: float) -> int:
    """Return the exponent of a power of two.

    Parameters
    ----------
    value : float
        A positive power of two.

    Returns
    -------
    int

    Examples
    --------
    >>> power(0.25), power(1024.0)
    (-2, 10)
    """
    return math.frexp(value)[1] - 1
