"""Recording a charge: its price, a check of every budget that it falls on, one event in one transaction."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypedDict

from sfumato import _check
from sfumato.errors import LedgerUnavailable, SimulatedCharge
from sfumato.ledger.budget.budget_check import Price, budget_exceeded, fits_all, price_of
from sfumato.ledger.budget.filters import Spent
from sfumato.ledger.budget.refused_question import LossAt, RefusedQuestion
from sfumato.ledger.identity import Identity
from sfumato.ledger.log.accounts import AccountBook
from sfumato.ledger.log.event_log import EventLog
from sfumato.ledger.log.events import AccountKey, Charged
from sfumato.ledger.log.hash_chain import Event
from sfumato.ledger.log.releases import request_hash
from sfumato.privacy.guarantee import Guarantee
from sfumato.privacy.loss import PrivacyLoss
from sfumato.privacy.receipt import Receipt
from sfumato.privacy.serialization import from_text

__all__ = ["Charge", "ChargeDetails", "ChargeRecorder"]


class ChargeDetails(TypedDict, total=False):
    """What a charge may say beside its loss and delta; the words are those of `Ledger.charge`."""

    request: str
    description: str
    simulated: bool
    loss_at: LossAt | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Charge:
    """One charge to be recorded; the words are those of `Ledger.charge` and `Ledger.reserve`.

    ``run`` is the number of the charge whose run the ``steps`` extend, None where they are a new run or none.
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

    @property
    def ledger_id(self) -> str:
        """The random id that receipts carry."""
        return self._identity.ledger

    def record(self, charge: Charge) -> Receipt:
        """Record a charge durably, or refuse it and leave no trace; raises what `Ledger.charge` says."""
        identity = self._identity
        price, body = self._checked(charge)
        event: Event | None = None
        with self.log.transaction(write=True) as snapshot:
            balances = self._accounts.balances(snapshot, charge.account)
            if fits_all(balances, price.cost):
                spent = identity.budget.filters.after(snapshot.end.totals.spent, price.cost)
                number = snapshot.end.totals.charges + 1
                event = snapshot.append(body, charge=number, spent=spent)
        if event is None:
            question = None
            if charge.loss_at is not None:
                question = RefusedQuestion(charge.loss_at, price.epsilon, price.delta, price.cost)
            raise budget_exceeded(identity.neighboring, balances, price.cost, price.delta, question)
        self.log.remember(event)
        return Receipt(
            ledger=identity.ledger,
            sequence=number,
            digest=event.digest,
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
        )
