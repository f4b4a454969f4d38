"""The grids of all measures of a query, chosen together."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction

from sfumato.queries.plan.query import Expression, Measure
from sfumato.queries.pricing.moment_grids import moment_grids
from sfumato.queries.pricing.requests.measure_request import MeasureRequest
from sfumato.queries.pricing.requests.sums import SumOfRows

__all__ = ["on_grids", "require_rows_on_grid"]


def on_grids(requests: tuple[MeasureRequest, ...], multipliers: tuple[Fraction, ...]) -> tuple[Measure, ...]:
    """Choose every measure's grid; a mean shares that of a sum of the same rows: they are added up once.

    Parameters
    ----------
    requests : tuple of MeasureRequest
    multipliers : tuple of Fraction
        Of the noise of each: its parameter over the sensitivity.
    """
    pairs = list(zip(requests, multipliers, strict=True))
    sums = {
        request.expression: request.exponent(multiplier)
        for request, multiplier in pairs
        if isinstance(request, SumOfRows) and request.row_bounds is None
        if request.expression is not None and not request.found
    }
    exponents = moment_grids((request.moment, multiplier) for request, multiplier in pairs if request.moment)
    return tuple(
        request.moment.on_grid(exponents, request.all_rows)
        if request.moment
        else request.on_grid(multiplier, shared=_shared(request, sums))
        for request, multiplier in pairs
    )


def _shared(request: MeasureRequest, sums: Mapping[Expression, int]) -> int | None:
    """Return the grid of a sum of the same rows; bounds that are to be found are on no grid yet."""
    return None if request.found or request.expression is None else sums.get(request.expression)


def require_rows_on_grid(requests: tuple[MeasureRequest, ...], measures: tuple[Measure, ...]) -> None:
    """Refuse a sum over so many rows that its grid would round the single rows away.

    Raises
    ------
    OptionError
        See `SumOfRows.require_rows_on_grid`.
    """
    for request, measure in zip(requests, measures, strict=True):
        if isinstance(request, SumOfRows):
            request.require_rows_on_grid(measure)
