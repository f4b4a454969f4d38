"""The ledger of one dataset: the only mutable thing, which refuses or records before anything is read."""

from __future__ import annotations

import dataclasses
import functools
from typing import Any, final

from sfumato import _check
from sfumato.errors import LedgerMismatch, LedgerUnavailable, SimulatedCharge
from sfumato.ledger.account import Account
from sfumato.ledger.accounts import account_content, check_analyst
from sfumato.ledger.budget import Budget
from sfumato.ledger.chain import Event, encode_number
from sfumato.ledger.failures import outcome
from sfumato.ledger.identity import Dataset, Identity
from sfumato.ledger.log import ACCOUNT, CHARGE, append, encode_spent
from sfumato.ledger.offer import LossAt, Question
from sfumato.ledger.places import Place, made_store, opened_store
from sfumato.ledger.pricing import price_of
from sfumato.ledger.refusal import all_hold, refusal
from sfumato.ledger.registration import (
    admit,
    check_opening,
    check_text,
    closed_on_error,
    first_event,
    known_versions,
    read_identity,
)
from sfumato.ledger.releases import check_payload, store_release
from sfumato.ledger.renewal import Renewal
from sfumato.ledger.schema import APART
from sfumato.ledger.store import Store
from sfumato.privacy.loss import PrivacyLoss
from sfumato.privacy.neighboring import Neighboring
from sfumato.privacy.receipt import Receipt
from sfumato.privacy.serial import loss_from_json

__all__ = ["Ledger"]


@final
class Ledger(Account):
    """The account of everything ever answered about one dataset; made by `open` or `read`.

    A charge is recorded, durably, before the data is touched, and is never given back. Everything is safe to
    use from several threads and processes at once, also after a fork; a ledger in memory refuses to work in
    a forked child, where two processes would spend one budget.

    Notes
    -----
    Guarantee: whatever is charged here, by whom and in whatever order, however each charge depends on
    earlier answers, and whatever crashes in between, all answers together satisfy the budget's guarantee,
    for the ledger's privacy unit and neighboring relation. Conditions: every answer is charged before it is
    computed, with a loss that is true of it; the file is not rolled back (see :class:`Head`) nor written by
    other programs. How charges add up, and by which theorems, is said in `sfumato.ledger.filters`.

    Examples
    --------
    >>> from sfumato.ledger import Budget, Dataset, Ledger
    >>> from sfumato.privacy import Laplace, Neighboring
    >>> ledger = Ledger.open(
    ...     None,
    ...     budget=Budget.pure(epsilon=1.0),
    ...     privacy_unit="person_id",
    ...     neighboring=Neighboring.ADD_REMOVE,
    ...     dataset=Dataset(schema="people(age BIGINT)", fingerprint=lambda key: "0" * 64),
    ... )
    >>> ledger.charge(Laplace(2.0), delta=0.0, description="how many people").sequence
    1
    >>> ledger.remaining().epsilon
    0.5
    >>> ledger.would_accept(Laplace(1.0), delta=0.0)
    False
    >>> ledger.close()
    """

    @classmethod
    def open(
        cls,
        path: Place | None,
        *,
        budget: Budget,
        privacy_unit: str,
        neighboring: Neighboring,
        dataset: Dataset,
        new_version: bool = False,
        simulated: bool = False,
        renewal: Renewal | None = None,
        lock_timeout: float = 30.0,
    ) -> Ledger:
        """Open the ledger in a file, or make it if there is no such file.

        Opening checks every link of the chain; the time grows with the number of charges.

        Parameters
        ----------
        path : str or path-like or None
            The file; it is made readable for its owner only. Or the address of a PostgreSQL database that a
            team shares, ``postgresql://user@host/database``, with ``?schema=acs`` where it holds several
            ledgers; needs the extra ``sfumato[postgres]``. None keeps the ledger in memory.
        budget : Budget
            What may be spent in all, the same as when the ledger was made.
        privacy_unit : str
            What one unit is: the column that names it, or a word for the row.
        neighboring : Neighboring
            How two datasets that must look alike may differ.
        dataset : Dataset
            The data that will be asked about.
        new_version : bool
            Accept content or a schema that the ledger has not seen, as a new version of its dataset. All
            versions share one budget: the units are the same.
        simulated : bool
            Make a ledger that also takes charges for simulated noise; it protects nobody.
        renewal : Renewal, optional
            Give each period of the rows' own time the whole budget; a unit within one period is then what
            is protected. None is one budget for all time.
        lock_timeout : float
            Seconds to wait while other processes write.

        Returns
        -------
        Ledger
            To be closed, or used as a context manager.

        Raises
        ------
        LedgerMismatch
            The ledger was made for another dataset, unit, relation or budget.
        LedgerCorrupt
            The file is damaged, truncated, empty, altered, or no ledger.
        LedgerUnavailable
            The file cannot be read, written or made, or is of a later version.
        """
        check_opening(budget, privacy_unit, neighboring, dataset, renewal)
        lock_timeout = _check.non_negative("lock_timeout", lock_timeout)
        wanted = Identity.drawn(
            privacy_unit=privacy_unit,
            neighboring=neighboring,
            budget=budget,
            simulated=bool(simulated),
            renewal=renewal,
        )
        # Reading all of the data may take long: once is enough.
        dataset = dataclasses.replace(dataset, fingerprint=functools.cache(dataset.fingerprint))
        store = made_store(path, lambda: first_event(wanted, dataset), lock_timeout=lock_timeout)
        with closed_on_error(store):
            with store.transaction(write=False) as connection:
                kept, key = read_identity(connection)
            kept.require_same_use(wanted)
            return cls(store, admit(store, dataset, key, new_version=bool(new_version)))

    @classmethod
    def read(cls, path: Place, *, lock_timeout: float = 30.0) -> Ledger:
        """Open an existing ledger to look at, without its dataset; it takes no charges.

        Raises
        ------
        LedgerCorrupt, LedgerUnavailable
            As for `open`; there must be a file.
        """
        return cls._without_dataset(path, lock_timeout, read_only=True)

    @classmethod
    def manage(cls, path: Place, *, lock_timeout: float = 30.0) -> Ledger:
        """Open an existing ledger as its curator, without its dataset: to grant budgets; it takes no charges.

        Raises
        ------
        LedgerCorrupt, LedgerUnavailable
            As for `open`; there must be a ledger.
        """
        return cls._without_dataset(path, lock_timeout, read_only=False)

    @classmethod
    def _without_dataset(cls, path: Place, lock_timeout: float, *, read_only: bool) -> Ledger:
        lock_timeout = _check.non_negative("lock_timeout", lock_timeout)
        store = opened_store(path, read_only=read_only, lock_timeout=lock_timeout)
        with closed_on_error(store):
            with store.transaction(write=False) as connection:
                version = len(known_versions(connection))
            return cls(store, version, has_dataset=False)

    def __init__(self, store: Store[Any], version: int, *, has_dataset: bool = True) -> None:
        super().__init__(store, version)
        self._has_dataset = has_dataset

    def grant(self, analyst: str, budget: Budget | None) -> None:
        """Open an analyst's account, or change its budget; for the curator.

        Parameters
        ----------
        analyst : str
            Who may ask, as `charge` will name them.
        budget : Budget or None
            What they may spend, of the dataset's kind; in each period, where the dataset's budget renews.
            What they have spent stays spent. None closes the account: no more charges, until another grant.

        Raises
        ------
        ParameterError
            The name is none, or the budget is of another kind than the dataset's.
        LedgerUnavailable, LedgerCorrupt
            As for `charge`.

        Notes
        -----
        The budgets of analysts may sum to more than the dataset's, which holds all the same. From the first
        grant on, the ledger is of a format that versions of sfumato without accounts refuse to open.
        """
        content = account_content(check_analyst(analyst), budget, self.budget)
        with self._store.transaction(write=True) as connection:
            state = self._state(connection)
            connection.require_format(APART)
            event = append(connection, state, ACCOUNT, content, totals=state.totals)
        self._see(event)

    def charge(
        self,
        loss: PrivacyLoss,
        *,
        delta: float,
        request: str = "",
        description: str = "",
        simulated: bool = False,
        loss_at: LossAt | None = None,
        analyst: str = "",
        period: str = "",
    ) -> Receipt:
        """Record a charge durably, or refuse it and leave no trace.

        Parameters
        ----------
        loss : PrivacyLoss
            What will be run.
        delta : float
            Where the charge's own guarantee is read: the delta of the query. An (epsilon, delta) budget
            charges this guarantee to one of its filters.
        request : str
            What makes two questions the same, for `find`; "" if the answer is never to be found again.
            Only its keyed hash is stored.
        description : str
            For people who read the ledger; stored in the clear.
        simulated : bool
            Whether the noise is simulated.
        loss_at : callable, optional
            The loss of the same question asked at another epsilon, and the same delta: a refusal then offers
            an epsilon at which this question fits, else one at which a count does.
        analyst : str
            Who asks: their account is charged as well as the dataset's, in one transaction; both must hold.
        period : str
            Where the budget renews, the period that the answer is about: it must depend on no rows of other
            periods.

        Returns
        -------
        Receipt
            Only returned once the charge is on the disk.

        Raises
        ------
        BudgetExceeded
            The charge does not fit.
        SimulatedCharge
            Simulated noise against a real budget.
        NeighboringMismatch
            The loss is about another relation than the ledger.
        LedgerMismatch
            The analyst has no account.
        LedgerUnavailable, LedgerCorrupt
            The file cannot be written or is damaged. If the disk failed at the very end of the write, the
            charge may have been recorded without a receipt, and the error says so; it is never the other way
            round.
        """
        if not self._has_dataset:
            raise LedgerUnavailable(
                f"ledger must be opened with its dataset to be charged, got {self._store.name} opened "
                "without; use Ledger.open"
            )
        epsilon, delta, cost = price_of(self, loss, delta)
        if simulated and not self.simulated:
            raise SimulatedCharge(
                "rng must be the operating system's entropy when a real budget is charged, got a simulated "
                "source; pass rng=None, or open a ledger with simulated=True"
            )
        text = loss.to_json()
        # A loss that is not read back as it is could never be verified: refused before anything is recorded.
        if loss_from_json(text) != loss:
            _check.refuse("loss", "be what its JSON says", loss, "pass a mechanism's privacy_loss")
        content = {
            "loss": text,
            "epsilon": encode_number(epsilon),
            "delta": delta,
            "costs": encode_spent(cost),
            "description": check_text("description", description),
            "request": self._request(request, analyst, period),
            "version": self._version,
            "simulated": bool(simulated),
            # A charge to no account is written as it always was.
            **{name: value for name, value in (("analyst", analyst), ("period", period)) if value},
        }
        event: Event | None = None
        with self._store.transaction(write=True) as connection:
            state = self._state(connection)
            holdings = self._holdings(connection, state, analyst, period)
            if all_hold(holdings, cost):
                totals = self.budget.filters.after(state.totals, cost)
                number = state.charges + 1
                event = append(connection, state, CHARGE, content, totals=totals, charge=number)
        if event is None:
            question = None if loss_at is None else Question(loss_at, epsilon, delta, cost)
            raise refusal(self.neighboring, holdings, cost, delta, question)
        self._see(event)
        return Receipt(
            ledger=self.ledger_id,
            sequence=number,
            digest=event.digest,
            neighboring=self.neighboring,
            privacy_unit=self.privacy_unit,
            analyst=analyst,
            period=period,
            lifetime=None if self.renewal is None else self._sum(totals),
        )

    def commit(self, receipt: Receipt, payload: bytes) -> None:
        """Store the noised release of a charge, durably; to be done before it is delivered.

        Committing the same bytes again does nothing.

        Parameters
        ----------
        receipt : Receipt
            What `charge` returned.
        payload : bytes
            The release, at most 900 MB in a file and 400 MB on a server.

        Raises
        ------
        LedgerMismatch
            The receipt is another ledger's.
        LedgerCorrupt
            The charge is no longer in the ledger: it was rolled back.
        LedgerUnavailable
            The file cannot be written. The charge stays.
        ParameterError
            Something else was committed for this receipt.
        """
        check_payload(payload, self._store.most_bytes)
        if receipt.ledger != self.ledger_id:
            raise LedgerMismatch(
                f"receipt must be of ledger {self.ledger_id}, got one of {receipt.ledger}; commit it there"
            )
        number = receipt.sequence
        stays = f"charge {number} stays, and its answer is not safely stored: asking again may be charged"
        with outcome(stays), self._store.transaction(write=True) as connection:
            store_release(connection, self._state(connection), receipt, payload)
