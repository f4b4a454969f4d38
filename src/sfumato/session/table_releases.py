"""How a session's doors to whole tables go: rows of a builder, a check by the policy, one charge."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from sfumato import _check
from sfumato.ledger.ledger import Ledger
from sfumato.ledger.view import LedgerView
from sfumato.numerics.randomness.source import RandomSource
from sfumato.queries.builder.aggregate_calls import count
from sfumato.queries.builder.private_query import Table
from sfumato.queries.engines.engine import Engine
from sfumato.queries.plan.policy import PrivacyPolicy
from sfumato.queries.plan.query import Query
from sfumato.queries.sql.query_parameters import NO_PARAMETERS, Parameters
from sfumato.session.counted_release import ChargedRequest, CountedRequest, release_charged

__all__ = ["TableReleases"]


class TableReleases(ABC):
    """What a session's doors to published tables have in common."""

    __slots__ = ()

    _engine: Engine
    _ledger: Ledger
    _account: LedgerView
    _policy: PrivacyPolicy | None
    _privacy_unit: str

    def _rows_of(self, table: str | Table | None, epsilon: float, delta: float) -> Query:
        """Return the query for the number of rows that are to be counted; it is checked by the policy."""
        self._check_usable()
        given: object = table
        if not isinstance(given, str | Table | None):
            rule = "be a table's name, or rows of the builder that are not grouped"
            _check.refuse_type("table", rule, given, 'write session.table().filter("age >= 18")')
        rows = table if isinstance(table, Table) else self.table(table)
        return self.read(rows.agg(count()).sql, epsilon=epsilon, delta=delta)

    @staticmethod
    def _rows_counted(query: Query, most: int) -> int:
        """Return how many rows of a unit are counted: one, where each row is a unit."""
        most = _check.integer("max_rows_contributed", most, minimum=1)
        return 1 if query.relation.unit is None else most

    def _released(self, request: CountedRequest) -> Any:
        """Return a release of counted tables, after the policy's check and the charge."""
        return self._charged(self._prepared(request))

    def _prepared(self, request: CountedRequest) -> ChargedRequest:
        self._check_rows(request.rows, request.max_rows_contributed)
        return request.charged()

    def _checked(self, request: CountedRequest) -> ChargedRequest:
        """Return a request that the policy, the mechanism and the engine accept."""
        prepared = self._prepared(request)
        for job in prepared.jobs:
            self._engine.check(job)
        return prepared

    def _check_rows(self, rows: Query, most: int) -> None:
        """Refuse more rows of a unit than the policy allows."""
        if self._policy is not None and rows.relation.unit is not None:
            self._policy.check(replace(rows.options, max_rows_contributed=most))

    def _charged(self, request: ChargedRequest) -> Any:
        """Return the committed release of a request, or charge and make it."""
        return release_charged(
            request,
            engine=self._engine,
            account=self._account,
            source=self.randomness(),
            privacy_unit=self._privacy_unit,
        )

    @abstractmethod
    def randomness(self) -> RandomSource:
        """Return where noise comes from."""

    @abstractmethod
    def table(self, name: str | None = None) -> Table:
        """Begin a query in Python."""

    @abstractmethod
    def read(
        self,
        text: str,
        public_groups: Mapping[str, Any] | None = None,
        parameters: Parameters = NO_PARAMETERS,
        **defaults: object,
    ) -> Query:
        """Return the plan of a query, which is checked; nothing is charged."""

    @abstractmethod
    def _check_usable(self) -> None:
        """Refuse a session that is closed, or another process's."""
