"""What queries, plans and counters need of the session that they were made from."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Protocol, TypeVar

from sfumato.ledger.view import LedgerView
from sfumato.numerics.randomness.source import RandomSource
from sfumato.queries.engines.engine import Engine
from sfumato.queries.plan.query import Query
from sfumato.queries.pricing.price import PricedQuery
from sfumato.queries.sql.catalog import Catalog
from sfumato.queries.sql.query_parameters import Parameters

__all__ = ["PublicValues", "QuerySession"]

Release_co = TypeVar("Release_co", covariant=True)
"""What the session answers with."""

PublicValues = Mapping[str, Sequence[object]]
"""Groups known without the data: for each key its values."""


class QuerySession(Protocol[Release_co]):
    """A session, as far as it is handed on; `sfumato.session.Session` is one, of `TableRelease`."""

    @property
    def catalog(self) -> Catalog:
        """The tables that a query may name."""
        ...

    @property
    def engine(self) -> Engine:
        """Where the tables lie; what it returns is raw data."""
        ...

    @property
    def account(self) -> LedgerView:
        """The ledger as the analyst asks it."""
        ...

    def randomness(self) -> RandomSource:
        """Return where noise comes from."""
        ...

    def read(
        self,
        text: str,
        public_groups: PublicValues | None = None,
        parameters: Parameters = ...,
        **defaults: object,
    ) -> Query:
        """Return the plan of a query, which is checked; nothing is charged."""
        ...

    def read_all(
        self,
        text: str,
        public_groups: PublicValues | None = None,
        parameters: Parameters = ...,
        **defaults: object,
    ) -> tuple[Query, ...]:
        """Return the plans of all that a private SELECT is written out as; nothing is charged."""
        ...

    def sql(self, text: str, *, public_groups: PublicValues | None = None) -> Release_co:
        """Answer a query, charging the ledger before any row is read."""
        ...

    def explain(self, text: str, *, public_groups: PublicValues | None = None) -> str:
        """Say what a query would do and cost; nothing is charged."""
        ...

    def fits(self, priced: Iterable[PricedQuery]) -> bool:
        """Whether the budget takes all these queries now; nothing is charged."""
        ...

    def release(self, priced: PricedQuery, description: str) -> Release_co:
        """Answer a query that was priced, charging the ledger before any row is read."""
        ...
