"""Splitting epsilon over a workload: how errors fall as it grows, and the parts that suit the targets."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Final, final

from sfumato import _check
from sfumato.errors import OptionError, ParameterError
from sfumato.numerics.decimals import decimal_part, decimal_sub_down, decimal_sum_up
from sfumato.queries.plan.query import Query
from sfumato.queries.planner.half_widths import expected_errors
from sfumato.queries.pricing.price import PricedQuery, price

__all__ = ["FINENESS", "PlannedQuery", "UnpricedQuery", "planned", "with_epsilon"]

FINENESS: Final = 1.01
"""Epsilons are tried on a geometric grid of this ratio."""

_MIN_EPSILON, _MAX_EPSILON = 1e-5, 100.0


@final
@dataclass(frozen=True, slots=True)
class UnpricedQuery:
    """One query of a workload before its noise is chosen.

    Parameters
    ----------
    name : str
    query : Query
        With any epsilon.
    fixed : bool
        Whether the text states its epsilon, which then stands.
    targets : mapping of str to float
        The largest half-width of each aggregate column that has a target, in the column's unit; of quantiles
        in ranks.
    """

    name: str
    query: Query
    fixed: bool
    targets: Mapping[str, float]


@final
@dataclass(frozen=True, slots=True)
class PlannedQuery:
    """One query of a plan, priced.

    Parameters
    ----------
    name : str
    priced : PricedQuery
    errors : mapping of str to float
        The expected half-width of each aggregate column's interval, in the column's unit, of quantiles in
        ranks; NaN where it cannot be known beforehand.
    targets : mapping of str to float
    """

    name: str
    priced: PricedQuery
    errors: Mapping[str, float]
    targets: Mapping[str, float]

    @property
    def epsilon(self) -> float:
        """The epsilon that this query gets."""
        return self.priced.query.options.epsilon


def planned(
    requests: list[UnpricedQuery], *, epsilon: float | None, units: float | None, level: float
) -> tuple[PlannedQuery, ...]:
    """Choose an epsilon for every query: the smallest that meets its targets, or its part of ``epsilon``.

    Raises
    ------
    OptionError
        If a target is out of reach, or the epsilon too small.
    ParameterError
        If no epsilon is left for the queries that state none.
    """
    curves = [_Curve(request, units, level) for request in requests]
    chosen = [curve.smallest(1.0) for curve in curves] if epsilon is None else _split(curves, epsilon)
    return tuple(curve.at(number) for curve, number in zip(curves, chosen, strict=True))


def with_epsilon(query: Query, epsilon: float) -> Query:
    """Return the query with another epsilon."""
    return replace(query, options=replace(query.options, epsilon=epsilon))


def _split(curves: list[_Curve], epsilon: float) -> list[float]:
    stated = decimal_sum_up(curve.stated for curve in curves if curve.request.fixed)
    rest = decimal_sub_down(epsilon, stated) if stated < epsilon else 0.0
    free = [curve for curve in curves if not curve.request.fixed]
    if free and not rest:
        _check.refuse("epsilon", "leave something for queries without one", epsilon, "state a larger one")
    bare = [curve for curve in free if not curve.request.targets]
    part = decimal_part(rest, len(free)) if free else 0.0
    aimed = [curve for curve in free if curve.request.targets]
    left = decimal_sub_down(rest, decimal_sum_up([part] * len(bare)))
    factor = (
        _smallest_factor(lambda f: decimal_sum_up(curve.smallest(f) for curve in aimed) <= left)
        if aimed
        else 1.0
    )
    chosen = {id(curve): curve.smallest(factor) for curve in aimed} | {id(curve): part for curve in bare}
    return [curve.stated if curve.request.fixed else chosen[id(curve)] for curve in curves]


def _smallest_factor(fits: Callable[[float], bool]) -> float:
    """Return the smallest multiple of all targets that fits, to a hundredth."""

    def holds(factor: float) -> bool:
        try:
            return fits(factor)
        except OptionError:
            return False

    high = 1.0
    while not holds(high):
        high *= 4
        if high > 1e12:
            raise OptionError("epsilon must be large enough for the workload; state a larger one")
    low = high / 4
    while holds(low):
        low, high = low / 4, low
        if low < 1e-12:
            return high
    while high / low > FINENESS:
        middle = math.sqrt(low * high)
        low, high = (low, middle) if holds(middle) else (middle, high)
    return high


class _Curve:
    """The errors of a query as its epsilon varies."""

    def __init__(self, request: UnpricedQuery, units: float | None, level: float) -> None:
        self.request = request
        self.stated = request.query.options.epsilon
        self._units, self._level = units, level
        self._known: dict[float, PlannedQuery | None] = {}

    def at(self, epsilon: float) -> PlannedQuery:
        """Price the query at an epsilon."""
        found = self._try(epsilon)
        if found is None:
            raise OptionError(
                f"{self.request.name!r} cannot be answered with epsilon {epsilon:.3g}; give it a larger part"
            )
        return found

    def smallest(self, factor: float) -> float:
        """Return the smallest epsilon of a grid at which errors are within ``factor`` times their targets."""
        if self.request.fixed:
            return self.stated
        low, high = (round(math.log(end) / math.log(FINENESS)) for end in (_MIN_EPSILON, _MAX_EPSILON))
        if not self._meets(high, factor):
            raise OptionError(
                f"a target of {self.request.name!r} cannot be met with any epsilon up to {_MAX_EPSILON:g}; "
                "allow more error"
            )
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (low, middle) if self._meets(middle, factor) else (middle, high)
        return FINENESS**high

    def _meets(self, index: int, factor: float) -> bool:
        found = self._try(FINENESS**index)
        return found is not None and all(
            found.errors[name] <= factor * bound for name, bound in self.request.targets.items()
        )

    def _try(self, epsilon: float) -> PlannedQuery | None:
        if epsilon not in self._known:
            self._known[epsilon] = self._priced(epsilon)
        return self._known[epsilon]

    def _priced(self, epsilon: float) -> PlannedQuery | None:
        try:
            priced = price(with_epsilon(self.request.query, epsilon))
        except (OptionError, ParameterError):
            return None
        errors = expected_errors(priced, units=self._units, level=self._level)
        return PlannedQuery(self.request.name, priced, errors, self.request.targets)
