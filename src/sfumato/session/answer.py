"""The way from a priced query to its committed answer: charge, exact integers, noise, commit."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sfumato.errors import BudgetExceeded
from sfumato.ledger.view import LedgerView
from sfumato.numerics.randomness.source import RandomSource
from sfumato.queries.engines.engine import Engine
from sfumato.queries.plan.query import AggregationJob, Query
from sfumato.queries.plan.query_key import query_key
from sfumato.queries.pricing.found_bounds import find_bounds
from sfumato.queries.pricing.price import PricedQuery, loss_at
from sfumato.queries.release.noise import add_noise
from sfumato.queries.release.record import ReleaseRecord
from sfumato.queries.release.table import TableRelease

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["answer"]

_SECRET_BYTES = 32


def answer(
    priced: PricedQuery,
    description: str,
    *,
    engine: Engine,
    account: LedgerView,
    source: RandomSource,
    privacy_unit: str,
) -> TableRelease:
    """Return the committed answer of a query, or charge, ask the engine, add noise and commit.

    Parameters
    ----------
    priced : PricedQuery
        Already checked by the engine and the policy.
    description : str
        What the ledger's entry says.
    engine : Engine
        Computes exact integers, only after the charge.
    account : LedgerView
        What is charged.
    source : RandomSource
        Of noise, and of the secret that chooses rows and groups.
    privacy_unit : str
        Who is protected, in words for people.

    Returns
    -------
    TableRelease

    Raises
    ------
    BudgetExceeded
        If the query does not fit into the budget; no row is read.
    """
    request = query_key(priced.query)
    committed = account.find(request)
    if committed is not None:
        return TableRelease(ReleaseRecord.from_bytes(committed), None, priced, replayed=True)
    try:
        receipt = account.charge(
            priced.loss,
            delta=priced.query.options.delta,
            request=request,
            description=description,
            simulated=source.simulated,
            loss_at=loss_at(priced.query),
        )
    except BudgetExceeded as refused:
        raise _with_parts_named(priced.query, refused) from None

    def exact(job: AggregationJob) -> pa.Table:  # of rows and groups chosen with a fresh secret
        return engine.aggregate(job, source.bytes(_SECRET_BYTES))

    bounded, found = find_bounds(priced, exact, source)
    record = add_noise(bounded, exact(bounded.job), source, privacy_unit=privacy_unit, found=found)
    account.commit(receipt, record.to_bytes())
    return TableRelease(record, receipt, priced)


def _with_parts_named(query: Query, refused: BudgetExceeded) -> BudgetExceeded:
    """Return the error with the words that parts of epsilon need, where the query states any."""
    stated = any(aggregate.epsilon is not None for aggregate in query.aggregates)
    parts = stated or query.options.group_selection_epsilon is not None
    if not refused.remaining.answerable_epsilon or not parts:
        return refused
    return BudgetExceeded(
        f"{refused}, and for its parts in proportion",
        remaining=refused.remaining,
        requested=refused.requested,
    )
