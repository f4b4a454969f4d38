"""What a counter promises, and which queries it can answer."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import final

from sfumato import _check
from sfumato.errors import OptionError, UnsupportedSql
from sfumato.mechanisms.factorization.strategies.participation import Participation
from sfumato.mechanisms.factorization.strategies.strategy import Strategy
from sfumato.queries.continual.schedule import Schedule
from sfumato.queries.plan.query import ADDITIVE, Query
from sfumato.queries.pricing.price import PricedQuery

__all__ = ["CounterParameters", "require_countable"]


@final
@dataclass(frozen=True, slots=True)
class CounterParameters:
    """What a counter promises; the fields are the parameters of ``session.counter``."""

    schedule: Schedule
    epsilon: float
    delta: float
    max_periods: int | None
    strategy: Strategy | None
    state: str | os.PathLike[str] | None

    def __post_init__(self) -> None:
        object.__setattr__(
            self, "epsilon", _check.positive("epsilon", self.epsilon, "for all periods together")
        )
        remedy = "noise is Gaussian: write 1e-7, say"
        object.__setattr__(self, "delta", _check.unit_interval("delta", self.delta, remedy))
        if self.max_periods is not None:
            _check.integer(
                "max_periods", self.max_periods, minimum=1, remedy="in how many periods a unit counts"
            )
        if self.strategy is not None:
            remedy = "write sfumato.mechanisms.BinaryTree(steps=...), or leave it out"
            _check.instance("strategy", self.strategy, Strategy, remedy)
            if self.strategy.steps != self.schedule.steps:
                rule = f"have {self.schedule.steps} steps, one for each period"
                _check.refuse("strategy", rule, self.strategy.steps, "make it of so many steps")

    def participation(self, unit: str | None) -> Participation:
        """Return the cap on the periods of one unit; a row is in one."""
        if unit is None:
            if self.max_periods not in (None, 1):
                _check.refuse(
                    "max_periods", "be None where each row is a unit", self.max_periods, "leave it out"
                )
            return Participation()
        if self.max_periods is None:
            _check.refuse(
                "max_periods", "be given", None, "write in how many periods a unit counts, all its life"
            )
        return Participation(max_participations=self.max_periods)


def require_countable(priced: PricedQuery, terms: CounterParameters) -> None:
    """Refuse a query that no counter can answer.

    Raises
    ------
    OptionError
        If an option is not for a counter.
    UnsupportedSql
        If an aggregate is no COUNT or SUM, groups are unknown, or something is to be done with the sums.
    """
    _require_plain(priced.query, terms)
    _require_additive(priced)


def _require_plain(query: Query, terms: CounterParameters) -> None:
    """Refuse what a counter would have to ignore, or what its bound on a unit does not cover."""
    options = query.options
    if (options.epsilon, options.delta) != (terms.epsilon, terms.delta):
        raise OptionError(
            "epsilon and delta of a counter are for all its periods, got others in the query's options; "
            "leave them out there"
        )
    if options.max_rows_contributed is not None:
        raise OptionError(
            "a counter must bound groups, got max_rows_contributed; write max_groups_contributed and, for "
            "sums by row, max_rows_per_group"
        )
    if options.truncation_epsilon is not None:
        raise OptionError(
            f"truncation_epsilon must be left out for a counter, which counts each period anew, got "
            f"{options.truncation_epsilon!r}; ask for the report with session.sql"
        )
    if query.order_by or query.limit is not None or query.having or query.offset or query.computed:
        raise UnsupportedSql(
            "a counter releases sums as they are, got HAVING, ORDER BY, LIMIT or a computed column; do that "
            "on the table it returns"
        )
    if any(aggregate.epsilon is not None for aggregate in query.aggregates):
        raise OptionError("the sums of a counter share its epsilon evenly, got a part; leave epsilon => out")


def _require_additive(priced: PricedQuery) -> None:
    if priced.threshold is not None:
        raise UnsupportedSql(
            "a counter must have public groups, for new ones would pay a threshold in every period; list "
            "them with public_groups=, or count without GROUP BY"
        )
    for estimator, aggregate in zip(priced.estimators, priced.query.aggregates, strict=True):
        if aggregate.unbounded:
            raise OptionError(
                f"a sum of a counter must state its bounds, got none for {estimator.name!r}: they hold for "
                "periods that nobody has seen; pass bounds=(lower, upper)"
            )
        if estimator.kind not in ADDITIVE:
            raise UnsupportedSql(
                f"a counter releases COUNT and SUM, got {estimator.kind.value} for {estimator.name!r}; "
                "ask for sum and count, and divide what is released"
            )
