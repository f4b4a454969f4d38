"""Charging a ledger: a price, a check of every budget that it falls on, and one event in one transaction."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from sfumato import _check
from sfumato.errors import LedgerUnavailable, SimulatedCharge
from sfumato.ledger.account import Account
from sfumato.ledger.chain import Event, encode_number
from sfumato.ledger.log import CHARGE, append, encode_spent
from sfumato.ledger.offer import LossAt, Question
from sfumato.ledger.pricing import price_of
from sfumato.ledger.refusal import all_hold, refusal
from sfumato.ledger.registration import check_text
from sfumato.ledger.schema import RUNS
from sfumato.ledger.store import Store
from sfumato.privacy.catalog import loss_from_json
from sfumato.privacy.loss import PrivacyLoss
from sfumato.privacy.receipt import Receipt

__all__ = ["Charging"]


class Charging(Account):
    """What records charges; base of `Ledger`, which says what they mean."""

    def __init__(self, store: Store[Any], version: int, *, has_dataset: bool = True) -> None:
        super().__init__(store, version)
        self._has_dataset = has_dataset

    def steps_that_fit(
        self,
        loss_of: Callable[[int], PrivacyLoss],
        *,
        most: int,
        delta: float,
        analyst: str = "",
        period: str = "",
    ) -> int:
        """Return how many steps of a run would be accepted now, at most ``most``; nothing is written.

        Parameters
        ----------
        loss_of : callable
            The loss of so many first steps; it grows with them.
        most : int
            The most that are wanted.
        delta, analyst, period
            As for `Ledger.reserve`.
        """
        least, most = 0, _check.integer("most", most)
        step = most
        while least < most:
            # First the whole, then halves: a run that fits is priced once.
            if self.would_accept(loss_of(step), delta=delta, analyst=analyst, period=period):
                least = step
            else:
                most = step - 1
            step = (least + most + 1) // 2
        return least

    def _record(
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
        run: Mapping[str, int] | None = None,
    ) -> Receipt:
        """Record a charge, as `Ledger.charge` says; ``run`` are the steps that it reserves, and for whom."""
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
            **(run or {}),
        }
        event: Event | None = None
        with self._store.transaction(write=True) as connection:
            state = self._state(connection)
            holdings = self._holdings(connection, state, analyst, period)
            if all_hold(holdings, cost):
                totals = self.budget.filters.after(state.totals, cost)
                number = state.charges + 1
                if run is not None:
                    connection.require_format(RUNS)
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
