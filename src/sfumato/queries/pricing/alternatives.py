"""What a query that does not fit could be asked at instead: the same query with a smaller epsilon."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from sfumato.errors import BudgetExceeded
from sfumato.privacy.loss import PrivacyLoss
from sfumato.queries.plan.query import Query
from sfumato.queries.pricing.price import price

__all__ = ["loss_at", "with_parts_named"]

_DOWN = 1 - 2.0**-40  # so that parts which sum to the whole still do where each was rounded


def loss_at(query: Query) -> Callable[[float], PrivacyLoss]:
    """Return the loss of a query as a function of its epsilon; stated parts of it stay in proportion."""

    def loss(epsilon: float) -> PrivacyLoss:
        return price(_smaller(query, epsilon)).loss

    return loss


def with_parts_named(query: Query, refused: BudgetExceeded) -> BudgetExceeded:
    """Return the error with the words that parts of epsilon need, where the query states any."""
    offered = refused.remaining.answerable_epsilon
    if not offered or not _parts(query):
        return refused
    return BudgetExceeded(
        f"{refused}, and for its parts in proportion",
        remaining=refused.remaining,
        requested=refused.requested,
    )


def _parts(query: Query) -> bool:
    stated = any(aggregate.epsilon is not None for aggregate in query.aggregates)
    return stated or query.options.group_selection_epsilon is not None


def _smaller(query: Query, epsilon: float) -> Query:
    ratio = epsilon / query.options.epsilon * _DOWN

    def part(stated: float | None) -> float | None:
        return None if stated is None else stated * ratio

    aggregates = (replace(aggregate, epsilon=part(aggregate.epsilon)) for aggregate in query.aggregates)
    selection = part(query.options.group_selection_epsilon)
    options = replace(query.options, epsilon=epsilon, group_selection_epsilon=selection)
    return replace(query, aggregates=tuple(aggregates), options=options)
