"""Recording a charge: its price, a check of every budget that it falls on, one event in one transaction."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final, TypedDict

from sfumato import _check
from sfumato.errors import BudgetExceeded, LedgerMismatch, LedgerUnavailable, SimulatedCharge
from sfumato.ledger.budget.budget_check import Balance, Price, budget_exceeded, price_of
from sfumato.ledger.budget.refused_question import LossAt, RefusedQuestion
from sfumato.ledger.budget.spent import Spent
from sfumato.ledger.failures import corrupt
from sfumato.ledger.identity import Identity
from sfumato.ledger.log.accounts import AccountBook
from sfumato.ledger.log.draws import RecentRequests, claim_draw, paid_for
from sfumato.ledger.log.entries import Entry
from sfumato.ledger.log.event_log import EventLog, LogEnd, Snapshot
from sfumato.ledger.log.events import AccountKey, Charged
from sfumato.ledger.log.hash_chain import Event
from sfumato.ledger.log.releases import request_hash
from sfumato.ledger.log.words import check_line
from sfumato.ledger.quote import Quote, quoted, require_at_most
from sfumato.ledger.store.base import stating_outcome
from sfumato.privacy.guarantee import Guarantee
from sfumato.privacy.loss import PrivacyLoss
from sfumato.privacy.receipt import Receipt
from sfumato.privacy.serialization import from_text

__all__ = ["Charge", "ChargeDetails", "ChargeRecorder"]

_LARGEST_DELTA: Final = 1 - 2.0**-53


class ChargeDetails(TypedDict, total=False):
    """What a charge may say beside its loss and delta; the words are those of `Ledger.charge`."""

    request: str
    description: str
    simulated: bool
    loss_at: LossAt | None
    purpose: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Charge:
    """One charge to be recorded; the words are those of `Ledger.charge` and `Ledger.reserve`.

    ``run`` is the number of the charge whose run the ``steps`` extend, None where they are a new run or none.
    ``draws`` says that its noise is drawn only after `ChargeRecorder.claim_draw`.
    """

    loss: PrivacyLoss
    delta: float
    request: str = ""
    description: str = ""
    simulated: bool = False
    loss_at: LossAt | None = None
    analyst: str = ""
    period: str = ""
    steps: int = 0
    run: int | None = None
    draws: bool = False
    purpose: str = ""

    @property
    def account(self) -> AccountKey:
        """The account that is charged."""
        return AccountKey(self.analyst, self.period)


class ChargeRecorder:
    """What records the charges of one ledger.

    Parameters
    ----------
    log : EventLog
        Where charges are recorded.
    accounts : AccountBook
        The budgets that they must fit into.
    identity : Identity
        What the ledger was made for.
    key : bytes
        The ledger's key, for the hashes of requests.
    version : int or None
        The dataset's version; None where the ledger was opened without its dataset, and takes no charges.
    """

    def __init__(
        self, log: EventLog, accounts: AccountBook, identity: Identity, key: bytes, version: int | None
    ) -> None:
        self.log = log
        self._accounts = accounts
        self._identity = identity
        self._key = key
        self._version = version
        self._requests = RecentRequests()
        self.written: set[str] = set()
        """Hashes of the charges that were to be recorded here: the chain holds those that were."""

    @property
    def ledger_id(self) -> str:
        """The random id that receipts carry."""
        return self._identity.ledger

    def record(self, charge: Charge) -> Receipt:
        """Record a charge durably, or refuse it and leave no trace; raises what `Ledger.charge` says."""
        (receipt,) = self.record_all([charge])
        return receipt

    def record_all(
        self, charges: Sequence[Charge], at_most: Mapping[str, float] | None = None
    ) -> tuple[Receipt, ...]:
        """Record charges of one account durably, in one transaction: all of them, or none and no trace.

        Raises what `Ledger.charge` says, and `ParameterError` where they cost more than ``at_most``. A
        refusal is about what all of them add up to.
        """
        checked = [self._checked(charge) for charge in charges]
        made: list[tuple[Event, tuple[Spent, ...]]] = []
        with self.log.transaction(write=True, ahead=self._accounts.ahead) as snapshot:
            balances = self._accounts.balances(snapshot, charges[0].account)
            before = [self._requests.undrawn_charge(snapshot, body) for _, body in checked]
            new = [price for (price, _), event in zip(checked, before, strict=True) if event is None]
            if at_most is not None:
                require_at_most(self._together([price.cost for price in new]), at_most)
            if fits := _fit_together([price.cost for price in new], balances):
                made = self._written(snapshot, checked, before)
        if not fits:
            refused = [charge for charge, event in zip(charges, before, strict=True) if event is None]
            raise self._exceeded(refused, new, balances)
        self.log.remember(max((event for event, _ in made), key=lambda event: event.position))
        pairs = zip(charges, made, strict=True)
        return tuple(
            self.receipt_of(charge, event.charge, event.digest, spent) for charge, (event, spent) in pairs
        )

    def would_accept_all(self, charges: Sequence[Charge]) -> bool:
        """Whether `record_all` would accept these charges of one account now; nothing is written."""
        checked = [self._checked(charge) for charge in charges]
        with self.log.transaction(write=False) as snapshot:
            balances = self._accounts.balances(snapshot, charges[0].account)
            new = [
                price.cost for price, body in checked if self._requests.undrawn_charge(snapshot, body) is None
            ]
            return _fit_together(new, balances)

    def _written(
        self, snapshot: Snapshot, checked: Sequence[tuple[Price, Charged]], before: Sequence[Event | None]
    ) -> list[tuple[Event, tuple[Spent, ...]]]:
        """Write the charges that are not there, and return the events of all with what was spent then."""
        filters, made = self._identity.budget.filters, []
        for (price, body), there in zip(checked, before, strict=True):
            if there is not None:
                made.append((there, snapshot.end.totals.spent))
                continue
            spent = filters.after(snapshot.end.totals.spent, price.cost)
            event = snapshot.append(body, charge=snapshot.end.totals.charges + 1, spent=spent)
            self.written.add(event.digest)
            snapshot = Snapshot(snapshot.connection, LogEnd.of(event))
            made.append((event, spent))
        return made

    def quote(self, charges: Sequence[Charge], account: AccountKey) -> Quote:
        """Say what `record_all` would do with these charges of one account now; nothing is written."""
        checked = [self._checked(charge) for charge in charges]
        with self.log.transaction(write=False) as snapshot:
            balances = self._accounts.balances(snapshot, account)
            old = [self._requests.undrawn_charge(snapshot, body) is not None for _, body in checked]
        new = [price for (price, _), there in zip(checked, old, strict=True) if not there]
        made = [charge for charge, there in zip(charges, old, strict=True) if not there]
        fits = _fit_together([price.cost for price in new], balances)
        refused = None if fits else self._exceeded(made, new, balances)
        return quoted(self._identity.neighboring, balances[-1], [price.cost for price in new], refused)

    def paid(self, charges: Sequence[Charge], receipts: tuple[Receipt, ...]) -> tuple[Receipt, ...]:
        """Return the receipts, each of a charge for the very same in every term; else refuse them."""
        checked = [body for _, body in map(self._checked, charges)]
        with self.log.transaction(write=False) as snapshot:
            paid = [paid_for(snapshot, *pair) for pair in zip(receipts, checked, strict=True)]
        if not all(paid):
            number = receipts[paid.index(False)].sequence
            raise LedgerMismatch(
                f"charges must be those that were made beforehand, got other terms than charge {number} has: "
                "another loss, account or version of the dataset; no row was read: ask it anew"
            )
        return receipts

    def claim_draw(self, receipt: Receipt, charge: Charge, *, anew: bool = True) -> Receipt:
        """Write durably that noise is about to be drawn, once for each charge.

        Parameters
        ----------
        receipt : Receipt
            What `record` returned.
        charge : Charge
            What was charged; where another process drew for it first, it is charged anew.
        anew : bool
            Whether it is; else it is refused with `LedgerMismatch`.

        Returns
        -------
        Receipt
            Of the charge to draw under.
        """
        while True:
            stays = f"charge {receipt.sequence} stays, and no noise was drawn"
            stays += ": asking again uses it, unless a draw was recorded"
            with stating_outcome(stays), self.log.transaction(write=True) as snapshot:
                event = claim_draw(snapshot, receipt)
            if event is not None:
                self.log.remember(event)
                return receipt
            if not anew:
                raise LedgerMismatch(
                    f"charge {receipt.sequence} must have no noise drawn for it yet, got one that has; it "
                    "stays: asking again is charged anew"
                )
            receipt = self.record(charge)

    def _together(self, costs: Sequence[tuple[Spent, ...]]) -> Mapping[str, float]:
        """Return what charges add up to, in the units of a guarantee, rounded up; empty for none."""
        filters = self._identity.budget.filters
        total = filters.nothing
        for cost in costs:
            total = filters.after(total, cost)
        return filters.in_units(total, up=True) if costs else {}

    def _exceeded(
        self, charges: Sequence[Charge], prices: Sequence[Price], balances: Sequence[Balance]
    ) -> BudgetExceeded:
        """Return the error for charges that do not fit, by their sum."""
        cost, delta = prices[0].cost, min(sum(price.delta for price in prices), _LARGEST_DELTA)
        for price in prices[1:]:
            cost = self._identity.budget.filters.after(cost, price.cost)
        question, loss_at = None, charges[0].loss_at
        if len(charges) == 1 and loss_at is not None:
            question = RefusedQuestion(loss_at, prices[0].epsilon, delta, cost)
        return budget_exceeded(self._identity.neighboring, balances, cost, delta, question)

    def receipt_of(
        self, charge: Charge | Charged | Entry, number: int | None, digest: str, spent: tuple[Spent, ...]
    ) -> Receipt:
        """Return the receipt of a charge by its number and hash, when so much is spent in all."""
        identity = self._identity
        if number is None:
            raise corrupt("number every charge", "one without a number")
        return Receipt(
            ledger=identity.ledger,
            sequence=number,
            digest=digest,
            neighboring=identity.neighboring,
            privacy_unit=identity.protects,
            analyst=charge.analyst,
            period=charge.period,
            lifetime=None if identity.renewal is None else self.sum_of(spent),
        )

    def sum_of(self, spent: tuple[Spent, ...]) -> Guarantee:
        """Return what was spent as a guarantee, rounded up."""
        identity = self._identity
        numbers = identity.budget.filters.in_units(spent, up=True)
        return Guarantee(neighboring=identity.neighboring, **numbers)

    def _checked(self, charge: Charge) -> tuple[Price, Charged]:
        """Return a charge's price and the body of its event, or refuse what may not be charged."""
        if self._version is None:
            raise LedgerUnavailable(
                f"ledger must be opened with its dataset to be charged, got {self.log.store.name} opened "
                "without; use Ledger.open"
            )
        price = price_of(self._identity, charge.loss, charge.delta)
        if charge.simulated and not self._identity.simulated:
            raise SimulatedCharge(
                "rng must be the operating system's entropy when a real budget is charged, got a simulated "
                "source; pass rng=None, or open a ledger with simulated=True"
            )
        _check.instance("description", charge.description, str, "pass a text, or leave it out")
        text = charge.loss.to_json()
        # A loss that is not read back as it is could never be verified: refused before anything is recorded.
        if from_text(text) != charge.loss:
            _check.refuse("loss", "be what its JSON says", charge.loss, "pass a mechanism's privacy_loss")
        return price, Charged(
            loss=text,
            epsilon=price.epsilon,
            delta=price.delta,
            costs=price.cost,
            description=charge.description,
            request=request_hash(self._key, charge.request, charge.account),
            dataset_version=self._version,
            simulated=bool(charge.simulated),
            analyst=charge.analyst,
            period=charge.period,
            steps=charge.steps,
            run=charge.run,
            draws=charge.draws,
            purpose=check_line("purpose", charge.purpose),
        )


def _fit_together(costs: Sequence[tuple[Spent, ...]], balances: Sequence[Balance]) -> bool:
    """Whether all charges fit into every budget, added up in the order in which they are recorded."""
    for budget, totals, _ in balances:
        filters = budget.filters
        for cost in costs:
            totals = filters.after(totals, cost)  # noqa: PLW2901 - a running total
        if not filters.hold(totals):
            return False
    return True
