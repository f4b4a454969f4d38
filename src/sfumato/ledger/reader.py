"""Reading a ledger: what was spent, what is left, and whether it is whole."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

from sfumato import _check
from sfumato.ledger.budget.budget import Budget
from sfumato.ledger.budget.budget_check import fits_all, price_of, remaining_of
from sfumato.ledger.charging import ChargeRecorder
from sfumato.ledger.failures import corrupt
from sfumato.ledger.identity import LedgerFacts
from sfumato.ledger.log.accounts import AccountBook, AnalystAccount
from sfumato.ledger.log.chain_head import ChainHead
from sfumato.ledger.log.entries import Entry, entries_of, entry_of
from sfumato.ledger.log.event_log import EventLog, event_at, event_of_charge, walk
from sfumato.ledger.log.events import AccountKey, Charged, Committed, body_of
from sfumato.ledger.log.export import export_lines, public_key_of
from sfumato.ledger.log.releases import find_release, release_of, request_hash
from sfumato.ledger.log.review_book import ReviewBook
from sfumato.ledger.log.step_claims import claimed_in_all
from sfumato.ledger.log.verification import Verification, verify_log
from sfumato.ledger.log.words import check_name
from sfumato.ledger.members import Members
from sfumato.ledger.registration import read_identity
from sfumato.ledger.reviews import Reviews
from sfumato.ledger.store.base import Store
from sfumato.ledger.stored_releases import StoredRelease, read_release
from sfumato.privacy.guarantee import Guarantee
from sfumato.privacy.loss import PrivacyLoss
from sfumato.privacy.receipt import Receipt

__all__ = ["LedgerReader"]


class LedgerReader(LedgerFacts):
    """What can be read of a ledger, by any number of processes while others charge; base of `Ledger`.

    Its parts are the log in its store, the accounts that are added up from it, and what records charges.
    """

    __slots__ = ("_accounts", "_key", "_log", "_recorder", "_reviews")

    def __init__(self, store: Store[Any], version: int, *, has_dataset: bool) -> None:
        with store.transaction(write=False) as connection:
            identity, key = read_identity(connection)
        super().__init__(identity, store, version)
        self._key = key
        self._log = EventLog(store)
        self._accounts = AccountBook(identity)
        self._reviews = ReviewBook(self._log, identity)
        charged = version if has_dataset else None
        self._recorder = ChargeRecorder(self._log, self._accounts, identity, key, charged)
        self._log.check()

    def would_accept(self, loss: PrivacyLoss, *, delta: float, analyst: str = "", period: str = "") -> bool:
        """Whether `charge` would accept this loss now; nothing is written.

        Parameters
        ----------
        loss : PrivacyLoss
            What would be run.
        delta : float
            Where the charge's own guarantee is read.
        analyst, period
            As for `Ledger.charge`.

        Returns
        -------
        bool
        """
        cost = price_of(self, loss, delta).cost
        with self._log.transaction(write=False) as snapshot:
            return fits_all(self._accounts.balances(snapshot, AccountKey(analyst, period)), cost)

    def steps_that_fit(
        self,
        loss_of: Callable[[int], PrivacyLoss],
        *,
        maximum: int,
        delta: float,
        analyst: str = "",
        period: str = "",
    ) -> int:
        """Return how many steps of a run would be accepted now, at most ``maximum``; nothing is written.

        Parameters
        ----------
        loss_of : callable
            The loss of so many first steps; it grows with them.
        maximum : int
            How many are wanted at most.
        delta, analyst, period
            As for `Ledger.reserve`.

        Returns
        -------
        int
        """
        fitting, above = 0, _check.integer("maximum", maximum) + 1
        steps = above - 1
        while above - fitting > 1:
            # First the whole, then halves: a run that fits is priced once.
            if self.would_accept(loss_of(steps), delta=delta, analyst=analyst, period=period):
                fitting = steps
            else:
                above = steps
            steps = (fitting + above) // 2
        return fitting

    def find(self, request: str, *, analyst: str = "", period: str = "") -> bytes | None:
        """Return the latest release committed for this very request on this version of the dataset.

        Of the same analyst, and about the same period. Handing the same bytes out again costs nothing: it is
        post-processing. None if there is none.

        Parameters
        ----------
        request : str
            As for `Ledger.charge`.
        analyst, period
            As for `Ledger.charge`.

        Returns
        -------
        bytes or None

        Raises
        ------
        LedgerCorrupt
            The release is not the one that was committed.
        """
        hashed = request_hash(self._key, request, AccountKey(analyst, period))
        if not hashed:
            return None
        with self._store.transaction(write=False) as connection:
            return find_release(connection, hashed, self._version)

    def release(self, number: int, *, analyst: str = "") -> StoredRelease:
        """Read a stored release back, without the data and free of charge: it is post-processing.

        Parameters
        ----------
        number : int
            Of the charge, as `entries` and receipts say.
        analyst : str
            Whose charges are meant; "" means all.

        Returns
        -------
        TableRelease or LimitsRecord
            With the receipt of its charge; the query itself is not stored, only what its answer says.

        Raises
        ------
        ParameterError
            If there is no such charge, or none of the analyst's, or no table was stored with it.
        LedgerCorrupt
            The release is not the one that was committed.
        """
        number = _check.integer("number", number, minimum=1, remedy="pass the number of a charge")
        with self._log.transaction(write=False) as snapshot:
            event = event_of_charge(snapshot.connection, Charged.kind, number)
            payload = release_of(snapshot.connection, number)
            spent = snapshot.end.totals.spent
        charged = None if event is None else body_of(event)
        if event is None or payload is None or not isinstance(charged, Charged):
            rule = "be that of a charge with a stored release"
            _check.refuse("number", rule, number, "entries() says which are committed")
        if analyst not in ("", charged.analyst):
            _check.refuse("number", f"be that of a charge of {analyst}", number, "entries() says which")
        return read_release(payload, self._recorder.receipt_of(charged, number, event.digest, spent))

    def remaining(self, delta: float | None = None, *, analyst: str = "", period: str = "") -> Guarantee:
        """Return what is left, in the budget's own unit.

        Parameters
        ----------
        delta : float, optional
            Where the epsilon of one more answer is read; 0 by default.
        analyst : str, optional
            Whose budget is meant; what is still answered fits into the dataset's as well.
        period : str, optional
            Which period's budget is meant, where it renews; today's by default.

        Returns
        -------
        Guarantee
            For an (epsilon, delta) budget ``epsilon`` and ``delta`` are what the filter that adds up each
            charge's own guarantee has left, and ``rho`` what the zCDP filter has left; a charge need fit
            into one of them. ``answerable_epsilon`` is the largest epsilon of one more count with Gaussian
            or Laplace noise that would be accepted at ``answerable_delta``. All are rounded down.
        """
        delta = _check.probability("delta", 0.0 if delta is None else delta)
        if self.renewal is not None and not period:
            period = self.renewal.period_of(datetime.now(UTC).date())
        with self._log.transaction(write=False) as snapshot:
            balances = self._accounts.balances(snapshot, AccountKey(analyst, period))
        return remaining_of(self.neighboring, balances, delta)

    def spent(self) -> Guarantee:
        """Return the sum of all charges, each in its filter's unit, rounded up.

        Where the budget renews this is the lifetime sum, over all periods; no limit holds it.

        Returns
        -------
        Guarantee
        """
        with self._log.transaction(write=False) as snapshot:
            return self._recorder.sum_of(snapshot.end.totals.spent)

    def budget_of(self, analyst: str) -> Budget:
        """Return an analyst's budget.

        Parameters
        ----------
        analyst : str
            The analyst's name.

        Returns
        -------
        Budget

        Raises
        ------
        LedgerMismatch
            The analyst has no account, or it was closed.
        """
        with self._log.transaction(write=False) as snapshot:
            totals = self._accounts.totals(snapshot)
            return totals.balance(AccountKey(check_name("analyst", analyst), ""), self.budget).budget

    def accounts(self) -> tuple[AnalystAccount, ...]:
        """Return the accounts of all analysts, by name.

        Returns
        -------
        tuple of AnalystAccount
        """
        with self._log.transaction(write=False) as snapshot:
            return self._accounts.totals(snapshot).analysts()

    @property
    def members(self) -> Members:
        """Who may do what: roles, signing keys, and requests for budgets."""
        return Members(self._reviews)

    @property
    def reviews(self) -> Reviews:
        """The releases on their way to the public: review, approval, publication."""
        return Reviews(self._reviews)

    @property
    def written(self) -> frozenset[str]:
        """Hashes of the charges begun through this object; those among `entries` were made.

        A caller that was interrupted in the middle of a charge finds out in this way what became of it.
        """
        return frozenset(self._recorder.written)

    def entries(self) -> tuple[Entry, ...]:
        """Return all charges in order, after checking every link of the chain.

        Returns
        -------
        tuple of Entry

        Raises
        ------
        LedgerCorrupt
            The chain is broken, or an event is not readable.
        LedgerUnavailable
            A loss is one that only a later version of sfumato knows.
        """
        with self._log.transaction(write=False) as snapshot:
            events = list(walk(snapshot.connection, (Charged.kind, Committed.kind)))
        return entries_of(events, self.budget)

    def entry(self, number: int) -> Entry:
        """Return one charge, without reading the others.

        Parameters
        ----------
        number : int
            Of the charge.

        Returns
        -------
        Entry

        Raises
        ------
        ParameterError, LedgerCorrupt, LedgerUnavailable
            There is no such charge; else as for `entries`.
        """
        number = _check.integer("number", number, minimum=1, remedy="pass the number of a charge")
        with self._log.transaction(write=False) as snapshot:
            event = event_of_charge(snapshot.connection, Charged.kind, number)
            committed = event_of_charge(snapshot.connection, Committed.kind, number) is not None
        if event is None:
            _check.refuse("number", "be that of a charge", number, "entries() lists them")
        return entry_of(event, self.budget, committed=committed)

    def receipt(self, number: int) -> Receipt:
        """Return the receipt of a charge again; where the budget renews, with the lifetime sum of today.

        Parameters
        ----------
        number : int
            As for `entry`, which says what is raised.

        Returns
        -------
        Receipt
        """
        entry = self.entry(number)
        with self._log.transaction(write=False) as snapshot:
            return self._recorder.receipt_of(entry, number, entry.digest, snapshot.end.totals.spent)

    def verify(self, head: ChainHead | None = None) -> Verification:
        """Check the whole file and price every loss again.

        Parameters
        ----------
        head : ChainHead, optional
            The latest exported head: only against it does a file that was put back as it once was show.

        Returns
        -------
        Verification
            Charges that cost more at today's prices than was recorded, and whether the budget still holds.

        Raises
        ------
        LedgerCorrupt
            Anything was damaged, altered, dropped or swapped, or the chain does not continue ``head``.
        LedgerMismatch
            The head is not one of this ledger.
        """
        with self._log.transaction(write=False) as snapshot:
            return verify_log(snapshot.connection, self._identity, self._key, head)

    def head(self) -> ChainHead:
        """Return where the chain ends now, to be stored where those who can write the file cannot.

        With it, how many steps of training runs were claimed: they are recorded beside the chain.

        Returns
        -------
        ChainHead
        """
        with self._log.transaction(write=False) as snapshot:
            last, steps = snapshot.end, claimed_in_all(snapshot.connection)
        return ChainHead.signed(self._key, **last.summary(self.ledger_id), steps=steps)

    def require(self, position: int, digest: str) -> None:
        """Refuse a ledger that no longer holds an event that it held before, as a checkpoint says.

        Parameters
        ----------
        position : int
            Of the event.
        digest : str
            Its hash then, in hexadecimal.

        Raises
        ------
        LedgerCorrupt
            The event is another, or is not there: the ledger was rolled back.
        """
        with self._log.transaction(write=False) as snapshot:
            event = event_at(snapshot.connection, position)
        if event is None or event.digest != digest:
            raise corrupt("never go back", f"another event {position} than was there before")

    @property
    def public_key(self) -> str:
        """The key, in hexadecimal, by which others know that an export came from who has this ledger."""
        return public_key_of(self._key)

    def export(self) -> str:
        """Return the log for a third party, signed: one line of JSON for each event.

        It holds the descriptions and losses of all charges and the names of the analysts, and neither the
        ledger's key nor any release. `LedgerExport` reads and checks it without the database.

        Returns
        -------
        str
            Lines of JSON, of the format ``sfumato.ledger-export``.
        """
        with self._log.transaction(write=False) as snapshot:
            lines = export_lines(self._key, self._identity, walk(snapshot.connection), snapshot.end)
            return "\n".join([*lines, ""])

    def __repr__(self) -> str:
        return f"<Ledger {self.ledger_id} of {self.budget} in {self._store.name}>"
