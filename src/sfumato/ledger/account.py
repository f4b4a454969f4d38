"""The reading face of a ledger: who it belongs to, what was spent, what is left, whether it is whole."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Self

from sfumato import _check
from sfumato.ledger.accounts import AnalystAccount, Books, Key, check_analyst, keys_of
from sfumato.ledger.budget.budget import Budget
from sfumato.ledger.budget.budget_check import Holding, all_hold, remaining_of
from sfumato.ledger.budget.filters import Spent
from sfumato.ledger.budget.price import price_of
from sfumato.ledger.budget.renewal import Renewal, check_period
from sfumato.ledger.identity import keyed
from sfumato.ledger.log.chain_head import ChainHead
from sfumato.ledger.log.entries import Entry, entry_of
from sfumato.ledger.log.event_log import (
    CHARGE,
    COMMIT,
    State,
    corrupt,
    event_at,
    events_after,
    last_state,
    walk,
)
from sfumato.ledger.log.export import export_lines, public_key_of
from sfumato.ledger.log.hash_chain import Event, canonical
from sfumato.ledger.log.releases import find_release
from sfumato.ledger.log.step_claims import claimed_in_all
from sfumato.ledger.log.verification import Verification, verify_log
from sfumato.ledger.registration import check_text, read_identity
from sfumato.ledger.store.base import Store, Transaction
from sfumato.ledger.store.sqlite_schema import RUNS
from sfumato.privacy.guarantee import Guarantee
from sfumato.privacy.loss import PrivacyLoss
from sfumato.privacy.neighboring import Neighboring

__all__ = ["Account"]


class Account:
    """What can be read of a ledger, by any number of processes while others charge; base of `Ledger`."""

    def __init__(self, store: Store[Any], version: int) -> None:
        self._store = store
        self._version = version
        self._seen: tuple[int, str] = (0, "")
        self._claimed: dict[int, int] = {}
        with store.transaction(write=False) as connection:
            self._identity, self._key = read_identity(connection)
            self._books = Books(self.budget.filters)
            self._state(connection)

    @property
    def budget(self) -> Budget:
        """What may be spent in all, with the split it was made with."""
        return self._identity.budget

    @property
    def renewal(self) -> Renewal | None:
        """How the budget renews; None if it is one for all time."""
        return self._identity.renewal

    @property
    def privacy_unit(self) -> str:
        """What one unit is; where the budget renews, ``(unit, period)``."""
        return self._identity.protects

    @property
    def neighboring(self) -> Neighboring:
        """How two datasets that must look alike may differ."""
        return self._identity.neighboring

    @property
    def ledger_id(self) -> str:
        """The random id that receipts and heads carry."""
        return self._identity.ledger

    @property
    def dataset_id(self) -> str:
        """The random id of the dataset, whatever its version."""
        return self._identity.dataset

    @property
    def version(self) -> int:
        """Version of the dataset that this ledger was opened with, from 1."""
        return self._version

    @property
    def simulated(self) -> bool:
        """Whether the ledger takes simulated noise and so protects nobody."""
        return self._identity.simulated

    @property
    def path(self) -> Path | None:
        """The file, or None in memory or on a server."""
        return self._store.path

    @property
    def durable(self) -> bool:
        """Whether the ledger is still there when the process ends: it is not in memory."""
        return self._store.outlives

    def would_accept(self, loss: PrivacyLoss, *, delta: float, analyst: str = "", period: str = "") -> bool:
        """Whether `charge` would accept this loss now; nothing is written."""
        cost = price_of(self, loss, delta).cost
        with self._store.transaction(write=False) as connection:
            return all_hold(self._holdings(connection, self._state(connection), analyst, period), cost)

    def find(self, request: str, *, analyst: str = "", period: str = "") -> bytes | None:
        """Return the latest release committed for this very request on this version of the dataset.

        Of the same analyst, and about the same period. Handing the same bytes out again costs nothing: it is
        post-processing. None if there is none.
        """
        mac = self._request(request, analyst, period)
        if not mac:
            return None
        with self._store.transaction(write=False) as connection:
            return find_release(connection, mac, self._version)

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
        with self._store.transaction(write=False) as connection:
            holdings = self._holdings(connection, self._state(connection), analyst, period)
        return remaining_of(self.neighboring, holdings, delta)

    def spent(self) -> Guarantee:
        """Return the sum of all charges, each in its filter's unit, rounded up.

        Where the budget renews this is the lifetime sum, over all periods; no limit holds it.
        """
        with self._store.transaction(write=False) as connection:
            state = self._state(connection)
        return self._sum(state.totals)

    def budget_of(self, analyst: str) -> Budget:
        """Return an analyst's budget.

        Raises
        ------
        LedgerMismatch
            The analyst has no account, or it was closed.
        """
        with self._store.transaction(write=False) as connection:
            self._keep_books(connection, self._state(connection))
            return self._books.holding(Key(check_analyst(analyst), ""), self.budget).budget

    def accounts(self) -> tuple[AnalystAccount, ...]:
        """Return the accounts of all analysts, by name."""
        with self._store.transaction(write=False) as connection:
            self._keep_books(connection, self._state(connection))
            return tuple(
                AnalystAccount(
                    analyst=analyst,
                    budget=budget,
                    charges=self._books.charges.get(analyst, 0),
                    periods=tuple(filter(None, self._books.periods(analyst))),
                )
                for analyst, budget in sorted(self._books.budgets.items())
            )

    def entries(self) -> tuple[Entry, ...]:
        """Return all charges in order, after checking every link of the chain."""
        with self._store.transaction(write=False) as connection:
            self._state(connection)
            events = list(walk(connection, (CHARGE, COMMIT)))
        committed = {event.charge for event in events if event.kind == COMMIT}
        charges = (event for event in events if event.kind == CHARGE)
        return tuple(entry_of(event, self.budget, committed=event.charge in committed) for event in charges)

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
        with self._store.transaction(write=False) as connection:
            self._state(connection)
            return verify_log(connection, self._identity, self._key, head)

    def head(self) -> ChainHead:
        """Return where the chain stands, to be kept where those who can write the file cannot.

        With it, how many steps of training runs were claimed: their record is beside the chain.
        """
        with self._store.transaction(write=False) as connection:
            state = self._state(connection)
            steps = claimed_in_all(connection) if connection.format() >= RUNS else 0
        return ChainHead.signed(
            self._key,
            ledger=self.ledger_id,
            position=state.event.position,
            charges=state.charges,
            digest=state.event.digest,
            steps=steps,
        )

    def require(self, position: int, digest: str) -> None:
        """Refuse a ledger that no longer holds an event that it held before, as a checkpoint tells.

        Raises
        ------
        LedgerCorrupt
            The event is another, or is not there: the ledger was rolled back.
        """
        with self._checked(write=False) as connection:
            event = event_at(connection, position)
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
        """
        with self._store.transaction(write=False) as connection:
            state = self._state(connection)
            lines = export_lines(self._key, self._identity, walk(connection), state)
            return "\n".join([*lines, ""])

    def close(self) -> None:
        """Close the file; everything is already on the disk."""
        self._store.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<Ledger {self.ledger_id} of {self.budget} in {self._store.name}>"

    def _sum(self, totals: tuple[Spent, ...]) -> Guarantee:
        return Guarantee(neighboring=self.neighboring, **self.budget.filters.in_units(totals, up=True))

    def _request(self, request: str, analyst: str, period: str) -> str:
        if not check_text("request", request):
            return ""
        if analyst or period:
            asked = canonical({"analyst": analyst, "period": period, "request": request})
            return keyed(self._key, "request of an account", asked)
        return keyed(self._key, "request", request)

    def _holdings(
        self, connection: Transaction, state: State, analyst: str, period: str
    ) -> tuple[Holding, ...]:
        """Return the budgets that a charge must fit into: the dataset's, and then the analyst's."""
        check_period(self.renewal, period)
        self._keep_books(connection, state)
        # Without accounts no books are kept, and the last event says what was spent.
        dataset = Holding(self.budget, state.totals)
        keys = keys_of({"analyst": analyst, "period": period})
        if self.renewal is not None:
            dataset = self._books.holding(keys[0], self.budget)
        return (dataset, *(self._books.holding(key, self.budget) for key in keys[1:]))

    def _keep_books(self, connection: Transaction, state: State) -> None:
        if (state.accounts or self.renewal is not None) and self._books.position < state.event.position:
            self._books.read_on(events_after(connection, self._books.position))

    @contextlib.contextmanager
    def _checked(self, *, write: bool) -> Iterator[Transaction]:
        """Run one transaction, after checking that the log still holds what this process has seen."""
        with self._store.transaction(write=write) as connection:
            self._state(connection)
            yield connection

    def _state(self, connection: Transaction) -> State:
        """Read the last event and check that the log still holds what this process has already seen."""
        state = last_state(connection, self._seen)
        self._see(state.event)
        return state

    def _see_claimed(self, run: int, steps: int) -> None:
        """Remember how many steps of a run are claimed, in a transaction; refuse a record that went back.

        The record of steps is beside the chain, where no later event covers it.
        """
        seen = self._claimed.get(run, 0)
        if steps < seen:
            raise corrupt("never go back", f"{steps} steps of run {run} claimed where {seen} were before")
        self._claimed[run] = steps

    def _see(self, event: Event) -> None:
        if event.position > self._seen[0]:
            self._seen = (event.position, event.digest)
