"""What a session offers for more than one answer: queries built in Python, plans, and counters over time."""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Mapping

from sfumato.mechanisms.factorization.strategies.strategy import Strategy
from sfumato.queries.builder.private_query import PrivateQuery, Table, begin
from sfumato.queries.builder.query_session import QuerySession
from sfumato.queries.continual.counter import Counter, open_counter
from sfumato.queries.continual.parameters import CounterParameters
from sfumato.queries.continual.schedule import Moment, Period, Schedule
from sfumato.queries.planner.targets import PlanRequest, Target
from sfumato.queries.planner.workload import Workload, WorkloadPlan, plan_workload
from sfumato.queries.release.table import TableRelease
from sfumato.queries.sql.query_parameters import QueryValues

__all__ = ["PlanningTools"]


class PlanningTools(ABC):
    """Doors of a session that lead to queries, plans and counters; base of `Session`."""

    __slots__ = ()

    def table(self, name: str | None = None) -> Table:
        """Begin a query in Python: ``session.table().filter(...).group_by(...).agg(...)``.

        Parameters
        ----------
        name : str, optional
            The private table; may be left out where there is one only.

        Returns
        -------
        Table

        Raises
        ------
        SchemaError
            If there is no such private table.
        """
        return begin(self._queried(), name)

    def plan(
        self,
        queries: Workload,
        *,
        target: Target | Mapping[str, Target] | None = None,
        epsilon: float | None = None,
        units: float | None = None,
        level: float = 0.95,
        pilot: float | None = None,
        params: QueryValues | None = None,
    ) -> WorkloadPlan[TableRelease]:
        """Choose noise for a set of queries and state the error to expect, before anything is spent.

        Parameters
        ----------
        queries : sequence or mapping of str to str or PrivateQuery
            Texts, or queries of the builder; unnamed ones are called ``"1"``, ``"2"``, ... An epsilon in
            OPTIONS stands; the others are chosen. One with ROLLUP, CUBE, GROUPING SETS or APPROX_TOP_COUNT is
            planned as the private SELECTs that it is written out as, called ``"1.1"``, ``"1.2"``, ...
        target : float, relative, or mapping of str to these, optional
            How large an error may be, for all COUNT, SUM and AVG columns, or of any by name: the half-width
            of the interval, in the column's unit (of quantiles in ranks), or as :func:`~sfumato.relative`
            says.
        epsilon : float, optional
            What to split over the queries: errors are then one multiple of their targets, or, without
            targets, the parts are equal. Left out, every query gets the smallest that meets its targets.
        units : float, optional
            Units in a group, a public or released figure: the error of an AVG depends on it, and that of
            VAR, STDDEV, COVAR and CORR.
        level : float
            Coverage of the intervals.
        pilot : float, optional
            Ask with this epsilon first, at its full cost, every query with a relative target of no magnitude,
            to learn it.
        params : mapping, optional
            What ``@name`` in the texts stands for, as for `sql`; each name in all texts that name it.

        Returns
        -------
        WorkloadPlan
            To look at, and to ``release()``.

        Raises
        ------
        QueryError, ParameterError
            If a query is refused, or a target is missing or out of reach; nothing is charged.
        BudgetExceeded
            If a pilot does not fit into the budget.
        """
        self._check_usable()
        request = PlanRequest(
            target=target, epsilon=epsilon, units=units, level=level, pilot=pilot, params=params
        )
        return plan_workload(queries, self._queried(), request)

    def counter(
        self,
        query: PrivateQuery,
        *,
        moment: str,
        start: Moment,
        every: Period,
        steps: int,
        epsilon: float,
        delta: float,
        max_periods: int | None = None,
        strategy: Strategy | None = None,
        state: str | os.PathLike[str] | None = None,
    ) -> Counter:
        """Open a counter for a table that grows: sums so far, released after every period, for one charge.

        Parameters
        ----------
        query : PrivateQuery
            Of the builder: COUNT and SUM, of all rows or by public groups. Its
            ``max_groups_contributed`` holds for each period.
        moment : str
            The column that says when a row belongs to: a date, or a timestamp in UTC. Rows without one never
            count.
        start : date or datetime
            When the first period begins.
        every : str
            ``"hour"``, ``"day"``, ``"month"``, ``"quarter"`` or ``"year"``.
        steps : int
            The periods in all, released or not.
        epsilon, delta : float
            The guarantee for all periods together, charged now.
        max_periods : int, optional
            In how many periods a unit counts in all its life: the first ones that it has rows in. Left out
            where each row is a unit, which is event-level protection.
        strategy : Strategy, optional
            How noise is correlated over the periods, of so many steps; the square root of the sums unless
            given.
        state : path, optional
            The file in which the counter goes on after this process; raw data, for the curator's eyes. None
            holds it in memory.

        Returns
        -------
        Counter

        Raises
        ------
        QueryError, ParameterError
            If the query or the schedule is refused; nothing is charged.
        BudgetExceeded
            If all periods together do not fit into the budget; nothing is charged.
        """
        self._check_usable()
        terms = CounterParameters(
            schedule=Schedule(moment=moment, start=start, every=every, steps=steps),
            epsilon=epsilon,
            delta=delta,
            max_periods=max_periods,
            strategy=strategy,
            state=state,
        )
        return open_counter(query, terms, self._queried())

    @abstractmethod
    def _queried(self) -> QuerySession[TableRelease]:
        """Return the session."""

    @abstractmethod
    def _check_usable(self) -> None:
        """Refuse a session that is closed, or another process's."""
