"""What a session offers beside its answers: which limits suit a query."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Self

from sfumato import _check
from sfumato._display import html_facts
from sfumato.ledger.budget.budget import Budget
from sfumato.ledger.display import budget_facts
from sfumato.ledger.identity import Dataset
from sfumato.ledger.ledger import Ledger
from sfumato.ledger.paid_charges import PaidCharges
from sfumato.ledger.view import LedgerView
from sfumato.numerics.randomness.source import RandomSource, Rng, random_source
from sfumato.queries.builder.private_query import PrivateQuery
from sfumato.queries.engines.engine import Engine
from sfumato.queries.plan.policy import PrivacyPolicy
from sfumato.queries.plan.query import Query
from sfumato.queries.planner.limit_pricing import price_histograms
from sfumato.queries.planner.limit_record import LimitsRecord
from sfumato.queries.planner.suggested_limits import SuggestedLimits
from sfumato.queries.sql.catalog import Catalog
from sfumato.queries.sql.query_parameters import NO_PARAMETERS, Parameters
from sfumato.session.period import within_period

__all__ = ["CuratorTools"]

_SECRET_BYTES = 32
_SIMULATED = Budget.approximate(epsilon=1e12, delta=0.5)
"""Of a ledger that protects nobody: whatever is tried out fits."""


class CuratorTools(ABC):
    """Doors of a session that are not for answers; base of `Session`."""

    __slots__ = ()

    _engine: Engine
    _ledger: Ledger
    _account: LedgerView
    _catalog: Catalog
    _rng: RandomSource | None
    _policy: PrivacyPolicy | None
    _privacy_unit: str
    _defaults: Mapping[str, object]

    def _repr_html_(self) -> str:
        catalog = self._catalog
        facts = {"private tables": ", ".join(sorted(catalog.private))}
        if catalog.public:
            facts["public tables"] = ", ".join(sorted(catalog.public))
        if self._account.analyst:
            facts["analyst"] = self._account.analyst
        return html_facts("Session", facts | budget_facts(self._account))

    def suggest_limits(
        self,
        query: str | PrivateQuery,
        *,
        epsilon: float,
        groups: float | None = None,
        public_groups: Mapping[str, Sequence[object]] | None = None,
        level: float = 0.95,
    ) -> SuggestedLimits:
        """Say what the limits of a query cut off, and which to take: a release, charged like an answer.

        What a unit has beyond ``max_groups_contributed``, ``max_rows_per_group`` or the bounds of values does
        not count, and no interval of the answer shows it. This counts groups of a unit, rows of a unit in a
        group, and values by public bins, with noise, and computes from it for each value that a limit may
        have what it would cut off, the noise that the query would have, and the error of both together.

        Parameters
        ----------
        query : str or PrivateQuery
            As for `sql`, with the epsilon that it is to be asked with. Limits that it states stay; the others
            are recommended. ``max_groups_contributed`` may be left out.
        epsilon : float
            What the histograms cost, at delta 0; each gets an equal part.
        groups : float, optional
            How many groups the answer has: a public figure, or the rows of an earlier answer. Left out, the
            values of a single key are counted, too, of each unit as many as the query's limit says.
        public_groups : mapping, optional
            As for `sql`, where the query is a text.
        level : float
            Coverage of each interval.

        Returns
        -------
        SuggestedLimits

        Raises
        ------
        QueryError, ParameterError
            If the query is refused, nothing of it is limited, or the number of groups of several keys is not
            given; nothing is charged.
        BudgetExceeded
            If it does not fit into the budget; nothing is charged, and no row is read.
        EngineError
            If the engine fails after the charge; the charge stays.
        """
        self._check_usable()
        level = _check.unit_interval("level", level, "write 0.95, say")
        if groups is not None:
            groups = _check.positive("groups", groups, "pass a public figure")
        asked, stated = self._limited(query, public_groups)
        priced = price_histograms(asked, epsilon, groups=groups)
        if self._policy is not None:
            self._policy.check(replace(asked.options, epsilon=priced.epsilon, delta=0.0))
        for job in priced.jobs:
            self._engine.check(job)  # it refuses what it cannot run
        committed = self._account.find(priced.request)
        if committed is not None:
            found = LimitsRecord.from_bytes(committed)
            return SuggestedLimits(found, None, priced, True, groups, stated, level)
        source = self.randomness()
        text = query.sql if isinstance(query, PrivateQuery) else query
        receipt = self._account.charge(
            priced.loss,
            delta=0.0,
            request=priced.request,
            description=f"limits for {' '.join(text.split())}",
            simulated=source.simulated,
            loss_at=lambda smaller: price_histograms(asked, smaller, groups=groups).loss,
        )
        exact = [self._engine.aggregate(job, source.bytes(_SECRET_BYTES)) for job in priced.jobs]
        record = priced.with_noise(exact, source, privacy_unit=self._privacy_unit)
        self._account.commit(receipt, record.to_bytes())
        return SuggestedLimits(record, receipt, priced, False, groups, stated, level)

    def as_analyst(
        self,
        analyst: str,
        *,
        period: str = "",
        purpose: str = "",
        defaults: Mapping[str, object] | None = None,
        paid: PaidCharges | None = None,
        engine: Engine | None = None,
    ) -> Self:
        """Return a session of an analyst over the same data and ledger; for a service that serves several.

        Parameters
        ----------
        analyst : str
            Who asks; the curator opened an account for them. "" is the curator.
        period : str
            Where the budget renews, the period that all questions are about.
        purpose : str
            What the answers are for: one line.
        defaults : mapping of str to object, optional
            Values of OPTIONS that a query leaves out, before those of this session.
        paid : PaidCharges, optional
            Charges that were made beforehand, under which it answers; it charges nothing then.
        engine : Engine, optional
            Another one with tables of the same names and columns, such as one without rows to plan on.

        Returns
        -------
        Session
            With the engine and the ledger of this one: close that alone.

        Raises
        ------
        LedgerMismatch
            The analyst has no account.
        ParameterError
            The period is none, or the budget does not renew.
        """
        self._check_usable()
        account = LedgerView(self._ledger, analyst, period=period, purpose=purpose, paid=paid)
        made: Callable[..., Self] = type(self)
        return made(
            engine=engine or self._engine,
            ledger=self._ledger,
            account=account,
            catalog=self._catalog_of(period),
            privacy_unit=account.privacy_unit,
            defaults={**self._defaults, **(defaults or {})},
            rng=self._rng,
            policy=self._policy,
        )

    def simulated(self, engine: Engine, *, rng: Rng, period: str = "") -> Self:
        """Return a session that asks made-up rows, with simulated noise and a ledger in memory of its own.

        Parameters
        ----------
        engine : Engine
            One with tables of the same names and columns, whose rows are made up.
        rng : int, Generator or RandomSource
            Draws the noise; what is released is marked as simulated.
        period : str
            Where the budget renews, the period whose rows are asked.

        Returns
        -------
        Session
            To be closed, with its engine.
        """
        self._check_usable()
        ledger = Ledger.open(
            None,
            budget=_SIMULATED,
            privacy_unit=self._privacy_unit,
            neighboring=self._ledger.neighboring,
            dataset=Dataset(schema=engine.schema_text, fingerprint=lambda key: key.hex()),
            simulated=True,
        )
        made: Callable[..., Self] = type(self)
        return made(
            engine=engine,
            ledger=ledger,
            account=LedgerView(ledger),
            catalog=self._catalog_of(period),
            privacy_unit=self._privacy_unit,
            defaults=self._defaults,
            rng=random_source(rng),
            policy=self._policy,
        )

    def _catalog_of(self, period: str) -> Catalog:
        """Return the tables, of a period where the budget renews."""
        renewal, private = self._ledger.renewal, self._catalog.private
        within = {} if renewal is None else {n: within_period(s, renewal, period) for n, s in private.items()}
        return replace(self._catalog, within=within)

    def cancel(self) -> bool:
        """Make the query that is computed now end at once; called from another thread than the one that asks.

        The thread that asks gets `QueryCancelled`. What was charged stays charged, for rows were read: the
        same query is answered under that charge if no noise was drawn, and else charged anew. Ctrl-C does so
        too where the main thread asks, and raises KeyboardInterrupt.

        Returns
        -------
        bool
            Whether a query was computed.
        """
        return self._engine.cancel()

    def _limited(
        self, query: str | PrivateQuery, listed: Mapping[str, Sequence[object]] | None
    ) -> tuple[Query, bool]:
        """Read a query; return whether it, or a default, states in how many groups a unit counts."""
        if not isinstance(query, str | PrivateQuery):
            _check.refuse_type("query", "be a text or a PrivateQuery", query, "pass what you pass to sql()")
        text = query if isinstance(query, str) else query.sql
        if isinstance(query, PrivateQuery):
            if listed is not None:
                rule, remedy = "be left out for a query of the builder", "it lists its groups itself"
                _check.refuse_state("public_groups", rule, "they are given", remedy)
            listed = query.public_groups
        if {"max_groups_contributed", "max_rows_contributed"} & set(self._defaults):
            return self.read(text, listed), True
        one, two = (self.read(text, listed, max_groups_contributed=many) for many in (1, 2))
        return one, one.options == two.options

    @abstractmethod
    def randomness(self) -> RandomSource:
        """Return where noise comes from."""

    @abstractmethod
    def read(
        self,
        text: str,
        public_groups: Mapping[str, Sequence[object]] | None = None,
        parameters: Parameters = NO_PARAMETERS,
        **defaults: object,
    ) -> Query:
        """Return the plan of a query, which is checked; nothing is charged."""

    @abstractmethod
    def _check_usable(self) -> None:
        """Refuse a session that is closed, or another process's."""
