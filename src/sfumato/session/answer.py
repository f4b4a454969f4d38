"""The way from priced queries to their committed answers: charge, exact integers, noise, commit."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, final

from sfumato.errors import BudgetExceeded
from sfumato.ledger.quote import Quote
from sfumato.ledger.view import LedgerView
from sfumato.numerics.randomness.source import RandomSource
from sfumato.privacy.decimal_cost import delta_needed
from sfumato.privacy.loss import PrivacyLoss
from sfumato.privacy.receipt import Receipt
from sfumato.queries.engines.engine import Engine
from sfumato.queries.plan.query import AggregationJob
from sfumato.queries.plan.query_key import query_key
from sfumato.queries.pricing.found_bounds import find_bounds
from sfumato.queries.pricing.price import PricedQuery, loss_at
from sfumato.queries.release.noise import add_noise
from sfumato.queries.release.record import ReleaseRecord
from sfumato.queries.release.table import TableRelease
from sfumato.session.offered_parts import with_offered_parts

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["AskedLedger", "answer_all", "ask_ledger", "would_answer_all"]

_SECRET_BYTES = 32


@final
@dataclass(frozen=True, slots=True)
class AskedLedger:
    """What a ledger has for some queries, and what the others are charged; made by `ask_ledger`.

    Parameters
    ----------
    priced : tuple of PricedQuery
    committed : tuple of bytes or None
        The releases of those that were answered before, in their order.
    charges : mapping of int to mapping
        What `LedgerView.charge_all` takes, of the others by their positions.
    """

    priced: tuple[PricedQuery, ...]
    committed: tuple[bytes | None, ...]
    charges: Mapping[int, Mapping[str, Any]]

    def charge(
        self, account: LedgerView, *, at_most: Mapping[str, float] | None = None
    ) -> dict[int, Receipt]:
        """Charge what was not answered before, in one transaction; return the receipts by position.

        Parameters
        ----------
        account : LedgerView
        at_most : mapping of str to float, optional
            As for `LedgerView.charge_all`.

        Raises
        ------
        BudgetExceeded
            If they do not fit together; nothing is charged. What it offers was priced for this very query.
        """
        try:
            receipts = account.charge_all(list(self.charges.values()), at_most=at_most)
            return dict(zip(self.charges, receipts, strict=True))
        except BudgetExceeded as refused:
            raise self._with_offers(refused, account) from None

    def quote(self, account: LedgerView) -> Quote:
        """Say what `charge` would do now; nothing is charged.

        Parameters
        ----------
        account : LedgerView
        """
        quote = account.quote(list(self.charges.values()))
        refused = None if quote.refused is None else self._with_offers(quote.refused, account)
        return replace(quote, refused=refused)

    def _with_offers(self, refused: BudgetExceeded, account: LedgerView) -> BudgetExceeded:
        """Return the refusal; of a single query with what is offered instead of its parts."""
        if len(self.charges) > 1:
            return refused
        query = self.priced[next(iter(self.charges))].query

        def fits(loss: PrivacyLoss) -> bool:
            options = query.options
            return account.would_accept(loss, delta=delta_needed(loss, options.epsilon, options.delta))

        return with_offered_parts(query, refused, fits)


def ask_ledger(
    priced: Sequence[PricedQuery], descriptions: Sequence[str], *, account: LedgerView, source: RandomSource
) -> AskedLedger:
    """Look for the answers of queries in the ledger; nothing is charged.

    Parameters
    ----------
    priced, descriptions, account, source
        As for `answer_all`.

    Returns
    -------
    AskedLedger
    """
    requests = [query_key(each.query) for each in priced]
    committed = tuple(account.find(request) for request in requests)
    charges = {
        index: _charge(priced[index], requests[index], source) | {"description": descriptions[index]}
        for index, found in enumerate(committed)
        if found is None
    }
    return AskedLedger(tuple(priced), committed, charges)


def answer_all(
    priced: Sequence[PricedQuery],
    descriptions: Sequence[str],
    *,
    engine: Engine,
    account: LedgerView,
    source: RandomSource,
    privacy_unit: str,
) -> tuple[TableRelease, ...]:
    """Return committed answers, or charge, ask the engine, add noise and commit.

    Of several different queries those not answered before are charged in one transaction. One that was
    charged before, and whose noise was never drawn, is answered under that charge.

    Parameters
    ----------
    priced : sequence of PricedQuery
        Already checked by the engine and the policy.
    descriptions : sequence of str
        What each one's entry in the ledger says.
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
    tuple of TableRelease

    Raises
    ------
    BudgetExceeded
        If they do not fit into the budget together; nothing is charged, and no row is read.
    """
    asked = ask_ledger(priced, descriptions, account=account, source=source)
    receipts = asked.charge(account)

    def exact(job: AggregationJob) -> pa.Table:  # of rows and groups chosen with a fresh secret
        return engine.aggregate(job, source.bytes(_SECRET_BYTES))

    def drawn(each: PricedQuery, index: int) -> TableRelease:
        receipt, charge, report = receipts[index], asked.charges[index], each.truncation
        # No noise is drawn before the ledger says so, and then for this charge no more.
        if not each.bounds_known:
            receipt = account.claim_draw(receipt, charge)
        bounded, found = find_bounds(each, exact, source)
        table = exact(bounded.job)
        truncated = None if report is None else exact(report.job(each.query))
        if each.bounds_known:
            receipt = account.claim_draw(receipt, charge)
        noised = add_noise(
            bounded, table, source, privacy_unit=privacy_unit, found=found, truncated=truncated
        )
        account.commit(receipt, noised.to_bytes())
        return TableRelease(noised, receipt, each, account=account)

    releases = []
    for index, (each, found_before) in enumerate(zip(priced, asked.committed, strict=True)):
        if found_before is not None:
            record = ReleaseRecord.from_bytes(found_before)
            releases.append(TableRelease(record, None, each, replayed=True, account=account))
            continue
        releases.append(drawn(each, index))
    return tuple(releases)


def would_answer_all(priced: Sequence[PricedQuery], *, account: LedgerView, source: RandomSource) -> bool:
    """Whether the budget takes all these queries now, asked one after the other; nothing is charged.

    Each is charged as `answer_all` does: at its own delta, once if it is there twice, and not at all if it
    was answered before.

    Parameters
    ----------
    priced, account, source
        As for `answer_all`.

    Returns
    -------
    bool
    """
    different = {query_key(each.query): each for each in priced}
    missing = {request: each for request, each in different.items() if account.find(request) is None}
    return account.would_accept_all([_charge(each, request, source) for request, each in missing.items()])


def _charge(priced: PricedQuery, request: str, source: RandomSource) -> dict[str, Any]:
    """Return what the ledger is charged for a query."""
    return {
        "loss": priced.loss,
        "delta": priced.charged_delta,
        "request": request,
        "simulated": source.simulated,
        "loss_at": loss_at(priced.query),
        "draws": True,
    }
