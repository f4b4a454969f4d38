"""Workloads: noise for a set of queries, chosen and stated before anything is spent.

A plan is made from public parameters and from what was released before, never from the data: the texts, the
schema, and the figures that a target is relative to.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Generic, TypeAlias, TypeVar, final

from sfumato import _check
from sfumato._display import html_table
from sfumato.errors import ParameterError
from sfumato.numerics.decimals import decimal_sum_up
from sfumato.privacy._outward import text_above
from sfumato.privacy.loss import PrivacyLoss, compose
from sfumato.queries.builder.private_query import PrivateQuery
from sfumato.queries.builder.query_session import QuerySession
from sfumato.queries.plan.query import Query
from sfumato.queries.plan.query_key import query_key
from sfumato.queries.planner.budget_split import FINENESS, PlannedQuery, UnpricedQuery, planned, with_epsilon
from sfumato.queries.planner.half_widths import remark_on, unit_of
from sfumato.queries.planner.targets import PlanRequest, Relative, ReleasedTable
from sfumato.queries.pricing.price import PricedQuery, price
from sfumato.queries.sql.parser import named_parameters
from sfumato.queries.sql.query_parameters import Parameters

__all__ = ["Workload", "WorkloadPlan", "plan_workload"]

_UNSTATED = (1e-9, 2e-9)  # below every limit on a query: a text that states its epsilon has it under both

ReleaseT = TypeVar("ReleaseT", bound=ReleasedTable)
"""What the session of a plan answers with."""

Workload: TypeAlias = Sequence["str | PrivateQuery"] | Mapping[str, "str | PrivateQuery"]
"""The queries of a workload, named or not."""


@final
@dataclass(frozen=True)
class WorkloadPlan(Generic[ReleaseT]):
    """A workload with its noise: what each query costs, and the error to expect; made by ``session.plan``.

    Nothing is spent by a plan, but for its pilots.

    Parameters
    ----------
    queries : tuple of PlannedQuery
    level : float
        Coverage of the intervals whose half-widths are the errors.
    pilots : mapping of str to release
        What was asked, and paid for, to learn the magnitudes that were known from nowhere else.
    """

    queries: tuple[PlannedQuery, ...]
    level: float
    pilots: Mapping[str, ReleaseT]
    _session: QuerySession[ReleaseT]

    @property
    def epsilon(self) -> float:
        """The epsilons together, without the pilots'."""
        return decimal_sum_up(each.query.options.epsilon for each in self._charged)

    @property
    def delta(self) -> float:
        """The deltas that are charged together, without the pilots': none for noise that needs none."""
        return decimal_sum_up(each.charged_delta for each in self._charged)

    @cached_property
    def loss(self) -> PrivacyLoss:
        """What all answers together will be charged, without the pilots."""
        return compose([each.loss for each in self._charged])

    @property
    def met(self) -> bool:
        """Whether every target is met."""
        return all(
            query.errors[name] <= bound * FINENESS
            for query in self.queries
            for name, bound in query.targets.items()
        )

    @property
    def fits(self) -> bool:
        """Whether all answers together fit into what is left of the budget now, each at its own delta."""
        return self._session.fits(self._charged)

    @cached_property
    def _charged(self) -> tuple[PricedQuery, ...]:
        """Each different query once: its second answer is the first one again, free of charge."""
        return tuple({query_key(each.priced.query): each.priced for each in self.queries}.values())

    def release(self) -> dict[str, ReleaseT]:
        """Ask every query, each charged on its own, in order.

        Raises
        ------
        BudgetExceeded
            If one does not fit into the budget; the answers before it are committed, and asking the same plan
            again gives them free of charge.
        """
        return {
            query.name: self._session.release(query.priced, f"{query.name}, of a plan")
            for query in self.queries
        }

    def explain(self) -> str:
        """State the cost and the expected errors, a line for each column."""
        return "\n".join(self._lines())

    def __str__(self) -> str:
        return self.explain()

    def _repr_html_(self) -> str:
        rows = []
        for query in self.queries:
            kinds = {aggregate.name: aggregate.kind for aggregate in query.priced.query.aggregates}
            cost = (text_above(query.epsilon), text_above(query.priced.charged_delta))
            for name, error in query.errors.items():
                expected = f"{error:.6g}{unit_of(kinds[name])}{remark_on(kinds[name])}"
                known = "not known beforehand" if math.isnan(error) else expected
                target = f"{query.targets[name]:g}" if name in query.targets else ""
                rows.append((query.name, name, *cost, known, target))
        facts = {
            "together": f"epsilon {text_above(self.epsilon)}, delta {text_above(self.delta)}",
            "fits into what is left": "yes" if self.fits else "no",
            "charged": "nothing, before release()",
        }
        head = ("query", "column", "epsilon", "delta", "expected error", "target")
        caption = f"Plan: expected errors are half-widths of {self.level:g} intervals for the bounded answers"
        return html_table(caption, head, rows, facts=facts)

    def _lines(self) -> Iterator[str]:
        yield f"Expected errors are half-widths of {self.level:g} intervals for the bounded answers."
        for query in self.queries:
            kinds = {aggregate.name: aggregate.kind for aggregate in query.priced.query.aggregates}
            delta = text_above(query.priced.charged_delta)
            yield f"{query.name}: epsilon {text_above(query.epsilon)}, delta {delta}"
            for name, error in query.errors.items():
                bound = f" (target {query.targets[name]:g})" if name in query.targets else ""
                kind = kinds[name]
                shown = f"{error:.6g}{unit_of(kind)}{bound}{remark_on(kind)}"
                yield f"  {name}: {'not known beforehand' if math.isnan(error) else shown}"
        fits = "fit into" if self.fits else "do not fit into"
        together = f"epsilons add up to {text_above(self.epsilon)}, deltas to {text_above(self.delta)}"
        yield f"All together: {together}; they {fits} what is left."
        yield "Nothing is charged before release()."


def plan_workload(
    queries: Workload, session: QuerySession[ReleaseT], aim: PlanRequest
) -> WorkloadPlan[ReleaseT]:
    """Choose an epsilon for every query.

    With targets and no ``epsilon``: the smallest that meets them, to one per cent. With an ``epsilon`` to
    split: errors are the same multiple of their targets everywhere, as small as fits; queries without targets
    get equal parts.

    Raises
    ------
    QueryError
        If a query is refused, a target is out of reach, or the epsilon too small.
    ParameterError
        If a query has neither target nor epsilon, or a magnitude is missing.
    """
    named = dict(queries) if isinstance(queries, Mapping) else {str(i): q for i, q in enumerate(queries, 1)}
    if isinstance(queries, str) or not named:
        _check.refuse("queries", "be several", queries, "pass [text, text] or {name: text}")
    # Everything is read, and every target checked, before a pilot is paid for, if one is needed.
    parameters = _parameters(aim, named.values())
    read = _read(named, session, parameters)
    goals = {name: aim.goals(query) for name, (query, _) in read.items()}
    _require_used(aim, [query for query, _ in read.values()])
    for name, (_, fixed) in read.items():
        if aim.epsilon is None and not fixed and not goals[name]:
            raise ParameterError(f"target must name a column of {name!r}, got none; state one, or an epsilon")
    pilots = {}
    for name, (query, _) in read.items():
        if aim.pilot is not None and any(isinstance(goal, Relative) for goal in goals[name].values()):
            asked = price(with_epsilon(query, aim.pilot))
            pilots[name] = session.release(asked, f"{name}, the pilot of a plan")
    requests = [
        UnpricedQuery(name, query, fixed, aim.bounds(query, pilots.get(name)))
        for name, (query, fixed) in read.items()
    ]
    chosen = planned(requests, epsilon=aim.epsilon, units=aim.units, level=aim.level)
    return WorkloadPlan(chosen, aim.level, pilots, session)


def _parameters(aim: PlanRequest, queries: Iterable[str | PrivateQuery]) -> Parameters:
    """Return the values of the texts' parameters, each of which some text must name."""
    texts = [query for query in queries if isinstance(query, str)]
    parameters = Parameters.of(aim.params)
    parameters.check_used({name for text in texts for name in named_parameters(text)})
    return parameters


def _read(
    named: Mapping[str, str | PrivateQuery], session: QuerySession[ReleaseT], parameters: Parameters
) -> dict[str, tuple[Query, bool]]:
    """Read all queries; those that are several private SELECTs have their numbers behind the name."""
    read: dict[str, tuple[Query, bool]] = {}
    for name, query in named.items():
        several = _all(query, session, parameters)
        for place, each in enumerate(several, 1):
            own = name if len(several) == 1 else f"{name}.{place}"
            if own != name and own in named:
                remedy = f"rename it: {name!r} has it for a part"
                _check.refuse("queries", "have names of their own", own, remedy)
            read[own] = each
    return read


def _all(
    query: str | PrivateQuery, session: QuerySession[ReleaseT], parameters: Parameters
) -> list[tuple[Query, bool]]:
    """Read a query, and all it is written out as; with whether its text states an epsilon, which stands."""
    text, groups = (query.sql, query.public_groups) if isinstance(query, PrivateQuery) else (query, None)
    own = parameters.only(named_parameters(text) if isinstance(query, str) else ())
    both = (session.read_all(text, groups, own, epsilon=number) for number in _UNSTATED)
    return [(one, one.options.epsilon == other.options.epsilon) for one, other in zip(*both, strict=True)]


def _require_used(aim: PlanRequest, queries: list[Query]) -> None:
    """Refuse a target for a column that no query has: a misspelt name would go unnoticed."""
    if not isinstance(aim.target, Mapping):
        return
    known = {aggregate.name for query in queries for aggregate in query.aggregates}
    for name in aim.target:
        if name not in known:
            shown = ", ".join(sorted(known))
            _check.refuse("target", "name columns of the queries", name, f"the columns are {shown}")
