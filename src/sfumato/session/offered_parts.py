"""What a refusal offers where a query states parts of its epsilon: smaller parts, or fewer aggregates.

Everything is worked out from the query's text and the budgets, and everything that is offered was priced and
fits as it is typed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Final, TypeAlias

from sfumato.errors import BudgetExceeded, ParameterError, QueryError
from sfumato.ledger.budget.refused_question import round_down
from sfumato.numerics.decimals import decimal_sum_up
from sfumato.privacy.loss import PrivacyLoss
from sfumato.queries.plan.query import Aggregate, Query
from sfumato.queries.pricing.price import price

__all__ = ["with_offered_parts"]

Fits: TypeAlias = Callable[[PrivacyLoss], bool]

_OPTIONS: Final = ("group_selection_epsilon", "truncation_epsilon")
_ARGUMENTS: Final = ("epsilon", "interval_epsilon")
_MANY: Final = 8
"""Of more aggregates it is not looked which fit alone."""


def with_offered_parts(query: Query, refused: BudgetExceeded, fits: Fits) -> BudgetExceeded:
    """Return the error with the parts that fit, where the query states any.

    Parameters
    ----------
    query : Query
        What was asked.
    refused : BudgetExceeded
        Why it was not answered.
    fits : callable
        Whether a loss would be accepted now.

    Returns
    -------
    BudgetExceeded
    """
    if not any(stated for _, stated in _stated(query)):
        return refused
    offers = []
    offered = refused.remaining.answerable_epsilon
    if offered:
        offers.append(f", and for its parts in proportion{_smaller_parts(query, round_down(offered), fits)}")
    fewer = _fewer(query, fits)
    if fewer:
        offers.append(f"; or {fewer}")
    return BudgetExceeded(
        f"{refused}{''.join(offers)}", remaining=refused.remaining, requested=refused.requested
    )


def _stated(query: Query) -> Iterator[tuple[str, float]]:
    """Return every stated part, with the words that state it."""
    for aggregate in query.aggregates:
        for name in _ARGUMENTS:
            part = getattr(aggregate, name)
            if part is not None:
                yield f"{name} => {{}} for {aggregate.name}", part
    for name in _OPTIONS:
        part = getattr(query.options, name)
        if part is not None:
            yield f"{name}={{}}", part


def _smaller_parts(query: Query, epsilon: float, fits: Fits) -> str:
    """Return the parts at a smaller epsilon, in six digits; nothing where the rounding does not fit."""
    ratio = epsilon / query.options.epsilon

    def smaller(part: float | None) -> float | None:
        return None if part is None else round_down(part * ratio * (1 - 2.0**-40))

    def rescaled(aggregate: Aggregate) -> Aggregate:
        return replace(
            aggregate,
            epsilon=smaller(aggregate.epsilon),
            interval_epsilon=smaller(aggregate.interval_epsilon),
        )

    options = replace(
        query.options,
        epsilon=epsilon,
        group_selection_epsilon=smaller(query.options.group_selection_epsilon),
        truncation_epsilon=smaller(query.options.truncation_epsilon),
    )
    asked = replace(query, aggregates=tuple(map(rescaled, query.aggregates)), options=options)
    if not _fits(asked, fits):
        return ""
    return ": " + ", ".join(words.format(repr(part)) for words, part in _stated(asked))


def _fewer(query: Query, fits: Fits) -> str:
    """Return which of the aggregates fit as they were asked, the first ones first; "" if none do."""
    stated = [aggregate for aggregate in query.aggregates if aggregate.epsilon is not None]
    alone = query.computed or query.order_by or len(query.aggregates) > _MANY
    if alone or len(query.aggregates) < 2:
        return ""
    chosen: list[Aggregate] = []
    found = None
    for aggregate in stated:
        asked = _of(query, [*chosen, aggregate])
        if _fits(asked, fits):
            chosen.append(aggregate)
            found = asked
    if found is None:
        return ""
    names = " and ".join(aggregate.name for aggregate in chosen)
    return f"ask for {names} alone, which fits at epsilon {found.options.epsilon!r} with its part as it is"


def _of(query: Query, aggregates: list[Aggregate]) -> Query:
    """Return the query of some aggregates, at the sum of their parts."""
    asked = replace(query, aggregates=tuple(aggregates))
    whole = decimal_sum_up(part for _, part in _stated(asked))
    return replace(asked, options=replace(query.options, epsilon=whole))


def _fits(query: Query, fits: Fits) -> bool:
    try:
        return fits(price(query).loss)
    except (ParameterError, QueryError):
        return False
