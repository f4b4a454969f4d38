"""The front door: a session joins data, engine and ledger, and is the only one that sees the whole way."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Self, final

from sfumato.errors import SourceError
from sfumato.ledger.ledger import Ledger
from sfumato.ledger.view import LedgerView
from sfumato.mechanisms.factorization.strategies.strategy import Strategy
from sfumato.numerics.randomness.source import RandomSource, Rng, random_source
from sfumato.queries.builder.private_query import PrivateQuery, Table, begin
from sfumato.queries.continual.counter import Counter, open_counter
from sfumato.queries.continual.parameters import CounterParameters
from sfumato.queries.continual.schedule import Moment, Period, Schedule
from sfumato.queries.engines.engine import Engine
from sfumato.queries.plan.policy import PrivacyPolicy
from sfumato.queries.plan.query import Query
from sfumato.queries.planner.targets import PlanRequest, Target
from sfumato.queries.planner.workload import Workload, WorkloadPlan, plan_workload
from sfumato.queries.pricing.price import PricedQuery, price
from sfumato.queries.release.explanation import explain
from sfumato.queries.release.table import TableRelease
from sfumato.queries.sql.analysis import read
from sfumato.queries.sql.catalog import Catalog
from sfumato.queries.sql.parser import without_explain
from sfumato.session.answer import answer

__all__ = ["Session"]


@final
class Session:
    """Answers private SQL over one dataset and charges one ledger; made by :func:`~sfumato.connect`.

    Parameters
    ----------
    engine : Engine
        Where the tables lie.
    ledger : Ledger
        What every answer is charged to.
    account : LedgerView
        The ledger as it is asked here: by an analyst, about a period.
    catalog : Catalog
        The private and public tables.
    privacy_unit : str
        Who is protected, in words for people.
    defaults : mapping of str to object
        Values for options that a query leaves out.
    rng : int, Generator, RandomSource or None
        None is the operating system's entropy; anything else simulates.
    policy : PrivacyPolicy or None
        Limits on each query.

    Notes
    -----
    Guarantee: all answers of all sessions on one ledger together meet the ledger's budget, when one privacy
    unit is added or removed, also when each question depends on the answers before it (see
    :class:`sfumato.ledger.Ledger` for the theorems). Whoever runs Python here is the curator, and trusted.

    Examples
    --------
    >>> import pyarrow as pa
    >>> import sfumato as sf
    >>> people = pa.table({"person": range(1000), "smokes": [True, False] * 500})
    >>> with sf.connect(people, privacy_unit="person", epsilon=1.0, rng=7) as session:
    ...     query = "SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(epsilon=0.5, delta=0) COUNT(*) AS n FROM data"
    ...     release = session.sql(query)
    ...     (session.sql(query).replayed, abs(release.to_arrow()["n"][0].as_py() - 1000) < 100)
    (True, True)
    """

    __slots__ = (
        "_account", "_catalog", "_closed", "_defaults", "_engine", "_ledger", "_policy", "_privacy_unit",
        "_process", "_rng",
    )  # fmt: skip

    def __init__(
        self,
        *,
        engine: Engine,
        ledger: Ledger,
        account: LedgerView,
        catalog: Catalog,
        privacy_unit: str,
        defaults: Mapping[str, object],
        rng: Rng,
        policy: PrivacyPolicy | None = None,
    ) -> None:
        self._engine, self._ledger, self._account = engine, ledger, account
        self._policy, self._catalog, self._privacy_unit = policy, catalog, privacy_unit
        self._defaults = MappingProxyType(dict(defaults))
        self._rng = None if rng is None else random_source(rng)
        self._process, self._closed = os.getpid(), False

    @property
    def ledger(self) -> Ledger:
        """The ledger that every answer is charged to."""
        return self._ledger

    @property
    def account(self) -> LedgerView:
        """The ledger as it is asked here: what is left for the analyst, or of the period."""
        return self._account

    @property
    def privacy_unit(self) -> str:
        """Who is protected: the unit column, or the row."""
        return self._privacy_unit

    @property
    def catalog(self) -> Catalog:
        """The private and public tables that a query may name."""
        return self._catalog

    @property
    def engine(self) -> Engine:
        """Where the tables lie; what it returns is raw data, for the curator alone."""
        return self._engine

    def randomness(self) -> RandomSource:
        """Return where noise comes from: the operating system's entropy, unless the session simulates.

        Returns
        -------
        RandomSource
        """
        return random_source(self._rng)

    def sql(self, text: str, *, public_groups: Mapping[str, Sequence[object]] | None = None) -> TableRelease:
        """Answer a private SELECT, charging the ledger before any row is read.

        Asking the very same query of the same data again returns the committed answer, free of charge.

        Parameters
        ----------
        text : str
            ``SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(...) ...`` in BigQuery's spelling, or a plain SELECT
            where the session has defaults.
        public_groups : mapping, optional
            Groups known without the data: for each GROUP BY item its values.

        Returns
        -------
        TableRelease

        Raises
        ------
        QueryError
            If the query is refused; nothing is charged.
        BudgetExceeded
            If it does not fit into the budget; nothing is charged, and no row is read. What it offers instead
            was priced for this very query.
        SourceError
            If the session is closed, or is another process's, or a file was changed; nothing is charged.
        LedgerUnavailable, LedgerCorrupt
            If the ledger cannot be used; the message says whether the query was charged.
        EngineError
            If the engine fails after the charge; the charge stays.
        """
        self._check_usable()
        return self.release(price(self.read(text, public_groups)), " ".join(text.split()))

    def explain(self, text: str, *, public_groups: Mapping[str, Sequence[object]] | None = None) -> str:
        """Say what a query would do and cost; nothing is charged and no row is read.

        The text may begin with ``EXPLAIN``.

        Parameters
        ----------
        text : str
            A query, as for `sql`.
        public_groups : mapping, optional
            As for `sql`.

        Returns
        -------
        str
        """
        self._check_usable()
        priced = price(self.read(without_explain(text), public_groups))
        for job in priced.jobs:
            self._engine.check(job)  # it refuses what it cannot run
        return explain(priced, privacy_unit=self._privacy_unit, budget=self._account.budget)

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
        return begin(self, name)

    def plan(
        self,
        queries: Workload,
        *,
        target: Target | Mapping[str, Target] | None = None,
        epsilon: float | None = None,
        units: float | None = None,
        level: float = 0.95,
        pilot: float | None = None,
    ) -> WorkloadPlan[TableRelease]:
        """Choose noise for a set of queries and state the error to expect, before anything is spent.

        Parameters
        ----------
        queries : sequence or mapping of str to str or PrivateQuery
            Texts, or queries of the builder; unnamed ones are called ``"1"``, ``"2"``, ... An epsilon in
            OPTIONS stands; the others are chosen.
        target : float, relative, or mapping of str to these, optional
            How large an error may be, for all COUNT, SUM and AVG columns or by name: the half-width of the
            interval, in the column's unit or as :func:`~sfumato.relative` says.
        epsilon : float, optional
            What to split over the queries: errors are then one multiple of their targets, or, without
            targets, the parts are equal. Left out, every query gets the smallest that meets its targets.
        units : float, optional
            Units in a group, a public or released figure: the error of an AVG depends on it.
        level : float
            Coverage of the intervals.
        pilot : float, optional
            Ask with this epsilon first, at its full cost, every query with a relative target of no magnitude,
            to learn it.

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
        request = PlanRequest(target=target, epsilon=epsilon, units=units, level=level, pilot=pilot)
        return plan_workload(queries, self, request)

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
        return open_counter(query, terms, self)

    def close(self) -> None:
        """Close engine and ledger; calling it again does nothing."""
        self._closed = True
        if self._process == os.getpid():
            self._engine.close()
        self._ledger.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"Session(tables={sorted(self._catalog.private)}, privacy_unit={self._privacy_unit!r})"

    def read(
        self, text: str, public_groups: Mapping[str, Sequence[object]] | None = None, **defaults: object
    ) -> Query:
        """Return the plan of a query, which is checked; nothing is charged, and no row is read.

        Parameters
        ----------
        text : str
        public_groups : mapping, optional
            As for `sql`.
        **defaults
            Values of OPTIONS that the query leaves out, before those of the session.

        Returns
        -------
        Query
        """
        defaults = {**self._defaults, **defaults}
        query = read(text, self._catalog, defaults=defaults, public_groups=public_groups)
        if self._policy is not None:
            self._policy.check(query.options)
        return query

    def release(self, priced: PricedQuery, description: str) -> TableRelease:
        """Answer a query that was priced elsewhere, as by a plan, charging the ledger before any row is read.

        Parameters
        ----------
        priced : PricedQuery
        description : str
            What the ledger's entry says.

        Returns
        -------
        TableRelease
        """
        self._check_usable()
        if self._policy is not None:
            self._policy.check(priced.query.options)
        for job in priced.jobs:
            self._engine.check(job)  # it refuses what it cannot run
        return answer(
            priced,
            description,
            engine=self._engine,
            account=self._account,
            source=self.randomness(),
            privacy_unit=self._privacy_unit,
        )

    def _check_usable(self) -> None:
        if self._closed:
            raise SourceError("session must be open, got a closed one; nothing was charged; connect again")
        if self._process != os.getpid():
            # The engine's threads did not come along: its next answer would never end.
            raise SourceError(
                "session must be used in the process that opened it, got a forked child of that; nothing was "
                "charged; connect again in the child"
            )
