"""The front door: a session joins data, engine and ledger, and is the only one that sees the whole way."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, Self, TypeAlias, final

from sfumato.errors import OptionError, SourceError
from sfumato.ledger.ledger import Ledger
from sfumato.ledger.view import LedgerView
from sfumato.numerics.randomness.source import RandomSource, Rng, random_source
from sfumato.queries.engines.engine import Engine
from sfumato.queries.outer.release import PostprocessedRelease
from sfumato.queries.outer.separation import separate
from sfumato.queries.plan.policy import PrivacyPolicy
from sfumato.queries.plan.query import Query
from sfumato.queries.pricing.price import PricedQuery, price
from sfumato.queries.release.explanation import explain
from sfumato.queries.release.table import TableRelease
from sfumato.queries.sql.analysis import read_statement
from sfumato.queries.sql.catalog import Catalog
from sfumato.queries.sql.parser import LargerStatement, Statement, parse, parse_statement, without_explain
from sfumato.queries.sql.query_parameters import NO_PARAMETERS, Parameters, QueryValues
from sfumato.queries.sql.rewriting import written_out
from sfumato.session.answer import answer_all, would_answer_all
from sfumato.session.curator import CuratorTools
from sfumato.session.larger_query import LargerQuery, explain_larger, read_larger
from sfumato.session.planning import PlanningTools
from sfumato.session.synthetic_tables import SyntheticTools
from sfumato.session.topdown_tables import TopDownTools

__all__ = ["Session"]

Answer: TypeAlias = TableRelease | Any
"""A `TableRelease`, or for larger SQL a `PostprocessedRelease`: the text decides, which types cannot say."""


@final
class Session(CuratorTools, PlanningTools, SyntheticTools, TopDownTools):
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
    :class:`sfumato.ledger.Ledger` for the theorems). `topdown`'s invariants alone are outside of it, named in
    the ledger. Whoever runs Python here is the curator, and trusted.

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

    def sql(
        self,
        text: str,
        *,
        public_groups: Mapping[str, Sequence[object]] | None = None,
        params: QueryValues | None = None,
    ) -> Answer:
        """Answer a private SELECT, charging the ledger before any row is read.

        Asking the very same query of the same data again returns the committed answer, free of charge.

        Parameters
        ----------
        text : str
            ``SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(...) ...`` in BigQuery's spelling, or a plain SELECT
            where the session has defaults. Or larger SQL with private SELECTs in WITH, subqueries and UNION:
            they are charged in one transaction, all or none, and the SQL around them costs nothing.
        public_groups : mapping, optional
            Groups known without the data: for each GROUP BY item its values.
        params : mapping, optional
            What ``@name`` in the text stands for: a bool, int, float, Decimal, str, date, datetime, or a
            list of one of these for ``UNNEST(@name)``. Values become literals after the text was parsed.

        Returns
        -------
        TableRelease or PostprocessedRelease
            The latter for larger SQL, with the answers of its private SELECTs.

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
        parameters = Parameters.of(params)
        statement = written_out(parse_statement(text, parameters))
        description = parameters.describe(text)
        if isinstance(statement, LargerStatement):
            larger = self._larger(statement, public_groups)
            public = larger.public_rows(self._engine)
            released = self._answer_all(larger.priced, larger.descriptions(description))
            return PostprocessedRelease.of(released, larger.outer, public)
        return self.release(price(self._read(statement, public_groups)), description)

    def explain(
        self,
        text: str,
        *,
        public_groups: Mapping[str, Sequence[object]] | None = None,
        params: QueryValues | None = None,
    ) -> str:
        """Say what a query would do and cost; nothing is charged and no row is read.

        The text may begin with ``EXPLAIN``.

        Parameters
        ----------
        text : str
            A query, as for `sql`.
        public_groups, params : mapping, optional
            As for `sql`.

        Returns
        -------
        str
        """
        self._check_usable()
        statement = written_out(parse_statement(without_explain(text), Parameters.of(params)))
        if isinstance(statement, LargerStatement):
            larger = self._larger(statement, public_groups)
            return explain_larger(larger, privacy_unit=self._privacy_unit, budget=self._account.budget)
        priced = price(self._read(statement, public_groups))
        for job in priced.jobs:
            self._engine.check(job)  # it refuses what it cannot run
        return explain(priced, privacy_unit=self._privacy_unit, budget=self._account.budget)

    def priced(self, text: str, *, params: QueryValues | None = None) -> tuple[PricedQuery, ...]:
        """Return the price of each private SELECT of a query; nothing is charged and no row is read.

        Parameters
        ----------
        text : str
            As for `explain`.
        params : mapping, optional
            As for `sql`.

        Returns
        -------
        tuple of PricedQuery
        """
        self._check_usable()
        statement = written_out(parse_statement(without_explain(text), Parameters.of(params)))
        if isinstance(statement, LargerStatement):
            return tuple(self._larger(statement, None).priced)
        return (price(self._read(statement)),)

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
        self,
        text: str,
        public_groups: Mapping[str, Sequence[object]] | None = None,
        parameters: Parameters = NO_PARAMETERS,
        **defaults: object,
    ) -> Query:
        """Return the plan of one private SELECT, which is checked; nothing is charged, and no row is read.

        Parameters
        ----------
        text : str
        public_groups : mapping, optional
            As for `sql`.
        parameters : Parameters
            What ``@name`` stands for.
        **defaults
            Values of OPTIONS that the query leaves out, before those of the session.

        Returns
        -------
        Query
        """
        return self._read(parse(text, parameters), public_groups, **defaults)

    def read_all(
        self,
        text: str,
        public_groups: Mapping[str, Sequence[object]] | None = None,
        parameters: Parameters = NO_PARAMETERS,
        **defaults: object,
    ) -> tuple[Query, ...]:
        """Return the plans of one private SELECT, or of all those that it is written out as.

        Parameters
        ----------
        text, public_groups, parameters, **defaults
            As for `read`.

        Returns
        -------
        tuple of Query
            Each has an equal part of a stated epsilon, and of delta.
        """
        statement = written_out(parse(text, parameters))
        several: tuple[Statement, ...] = (statement,) if isinstance(statement, Statement) else ()
        if isinstance(statement, LargerStatement):
            _require_single(statement, public_groups)
            several = separate(statement, self._catalog).private
        return tuple(self._read(each, public_groups, **defaults) for each in several)

    def _read(
        self,
        statement: Statement,
        public_groups: Mapping[str, Sequence[object]] | None = None,
        **defaults: object,
    ) -> Query:
        defaults = {**self._defaults, **defaults}
        query = read_statement(statement, self._catalog, defaults=defaults, public_groups=public_groups)
        if self._policy is not None:
            self._policy.check(query.options)
        return query

    def _larger(
        self, statement: LargerStatement, public_groups: Mapping[str, Sequence[object]] | None
    ) -> LargerQuery:
        """Read and check private SELECTs and the SQL around them."""
        _require_single(statement, public_groups)
        return read_larger(
            statement, self._catalog, lambda each: self._read(each, public_groups), self._engine
        )

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
        (released,) = self._answer_all([priced], [description])
        return released

    def fits(self, priced: Iterable[PricedQuery]) -> bool:
        """Whether what is left of the budget takes all these queries, asked one after the other.

        Nothing is charged. What was answered before costs nothing, and the same query twice is charged once.

        Parameters
        ----------
        priced : iterable of PricedQuery

        Returns
        -------
        bool
        """
        self._check_usable()
        return would_answer_all(tuple(priced), account=self._account, source=self.randomness())

    def _answer_all(
        self, priced: Sequence[PricedQuery], descriptions: Sequence[str]
    ) -> tuple[TableRelease, ...]:
        return answer_all(
            priced,
            descriptions,
            engine=self._engine,
            account=self._account,
            source=self.randomness(),
            privacy_unit=self._privacy_unit,
        )

    def _queried(self) -> Session:
        return self

    def _check_usable(self) -> None:
        if self._closed:
            raise SourceError("session must be open, got a closed one; nothing was charged; connect again")
        if self._process != os.getpid():
            # The engine's threads did not come along: its next answer would never end.
            raise SourceError(
                "session must be used in the process that opened it, got a forked child of that; nothing was "
                "charged; connect again in the child"
            )


def _require_single(statement: LargerStatement, public_groups: object) -> None:
    if public_groups is not None and len(statement.private) > 1:
        raise OptionError(
            "public_groups must be left out where a statement has several private SELECTs, got them; "
            "join a public list in each of them"
        )
