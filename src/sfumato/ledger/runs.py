"""Training runs: steps that were charged together beforehand, and the durable record of those that began.

The record is a table beside the chain, of rows (run, first, last): a run of a hundred thousand steps is one
row that grows. A step is claimed, durably, before its noise is drawn, so no step's noise is drawn twice, by
whatever processes, on whatever copies of a checkpoint; a step that was claimed counts as run.
"""

from __future__ import annotations

import hashlib
import math
import re
from collections.abc import Callable
from typing import Final, Protocol, final

from sfumato import _check
from sfumato.errors import LedgerMismatch, RunExhausted
from sfumato.ledger.charging import Charge
from sfumato.ledger.failures import corrupt
from sfumato.ledger.log.event_log import EventLog, event_of_charge, events_after
from sfumato.ledger.log.events import Charged, body_of
from sfumato.ledger.log.step_claims import steps_reserved
from sfumato.ledger.store.base import Transaction
from sfumato.privacy.loss import PrivacyLoss
from sfumato.privacy.receipt import Receipt

__all__ = ["Run", "RunLedger"]

ROWS: Final = "SELECT first, last, digest FROM claim WHERE run = :run AND first < :steps ORDER BY first"
LAST: Final = "SELECT first, last, digest FROM claim WHERE run = :run ORDER BY first DESC LIMIT 1"
AT: Final = (
    "SELECT first, last, digest FROM claim WHERE run = :run AND first <= :step ORDER BY first DESC LIMIT 1"
)
INSERT: Final = "INSERT INTO claim (run, first, last, digest) VALUES (:run, :first, :last, :digest)"
GROW: Final = "UPDATE claim SET last = :last WHERE run = :run AND first = :first"


class RunLedger(Protocol):
    """What a run needs of its ledger."""

    @property
    def ledger_id(self) -> str:
        """The random id of the ledger."""

    @property
    def log(self) -> EventLog:
        """The log, for transactions and for what was seen of the run."""

    def record(self, charge: Charge) -> Receipt:
        """Record a charge, or refuse it."""


@final
class Run:
    """The steps that `Ledger.reserve` charged, numbered from 0, each to be claimed before it is run.

    Safe to use from several threads and processes at once: each claim is one transaction, and no two are
    given the same step.

    Parameters
    ----------
    ledger : RunLedger
        Where it was charged.
    number : int
        Of the charge that began it.
    digest : str
        That charge's hash, or "" not to compare it.

    Notes
    -----
    Guarantee: at most as many steps are claimed as were charged, each of them once. What is run under a claim
    is then within the loss that was charged, if a step is claimed before it draws noise, and its number
    determines its sample and its noise.

    Examples
    --------
    >>> from sfumato.ledger import Budget, Dataset, Ledger
    >>> from sfumato.privacy import Gaussian, Neighboring, PoissonSubsampled
    >>> ledger = Ledger.open(
    ...     None,
    ...     budget=Budget.approximate(epsilon=2.0, delta=1e-5),
    ...     privacy_unit="person_id",
    ...     neighboring=Neighboring.ADD_REMOVE,
    ...     dataset=Dataset(schema="people(age BIGINT)", fingerprint=lambda key: "0" * 64),
    ... )
    >>> step = PoissonSubsampled(Gaussian(1.0), sampling_probability=0.01)
    >>> run = ledger.reserve(step * 1000, steps=1000, delta=5e-6, description="train")
    >>> run.claim(10), run.left
    (range(0, 10), 990)
    >>> round(ledger.entries()[0].epsilon, 2)
    1.92
    >>> ledger.close()
    """

    def __init__(self, ledger: RunLedger, number: int, digest: str = "") -> None:
        self._ledger = ledger
        self._log = ledger.log
        self.number = number
        with self._log.transaction(write=False) as snapshot:
            first = event_of_charge(snapshot.connection, Charged.kind, number)
            if first is None and digest:
                raise corrupt("hold every charge that it gave a receipt for", f"none for run {number}")
            body = None if first is None else body_of(first)
            if first is None or not isinstance(body, Charged) or not body.steps or body.run is not None:
                raise LedgerMismatch(
                    f"run must be a charge that reserved steps, got {number}; pass the number of a run's "
                    "first charge"
                )
            if digest not in ("", first.digest):
                raise corrupt("hold every charge that it gave a receipt for", f"another run {number}")
            self._first, self._charged = first, body
            self._reserved = self._count(snapshot.connection)

    @property
    def ledger_id(self) -> str:
        """The random id of the ledger."""
        return self._ledger.ledger_id

    @property
    def digest(self) -> str:
        """The hash of the charge that began the run."""
        return self._first.digest

    @property
    def analyst(self) -> str:
        """Who is charged for it; "" for nobody but the dataset."""
        return self._charged.analyst

    @property
    def reserved(self) -> int:
        """How many steps were charged, with those by which the run was extended."""
        with self._log.transaction(write=False) as snapshot:
            self._reserved = self._count(snapshot.connection)
        return self._reserved

    @property
    def claimed(self) -> int:
        """How many steps were claimed: they count as run, whether or not they were."""
        with self._log.transaction(write=False) as snapshot:
            return self._next(snapshot.connection)

    @property
    def left(self) -> int:
        """How many steps may still be claimed."""
        with self._log.transaction(write=False) as snapshot:
            self._reserved = self._count(snapshot.connection)
            return self._reserved - self._next(snapshot.connection)

    def epsilon_charged(self, *, steps: int, delta: float) -> float:
        """Return the epsilon at which the run was charged; infinity at another delta or for other steps.

        Parameters
        ----------
        steps : int
            Of the whole run.
        delta : float

        Returns
        -------
        float
            An upper bound, as the ledger states it; a reading in another process may round up further.
        """
        first = self._charged
        return first.epsilon if (first.steps, first.delta) == (steps, delta) else math.inf

    def require(self, loss_of: Callable[[int], PrivacyLoss], *, simulated: bool) -> None:
        """Refuse to go on with steps of another loss than was charged for them.

        Parameters
        ----------
        loss_of : callable
            Returns the loss of so many steps, as the process that goes on would run them.
        simulated : bool
            Whether it would draw noise or batches from a number.

        Raises
        ------
        LedgerMismatch
            The steps that were charged first have another loss, or were not a simulation and now are one.
        """
        first = self._charged
        if loss_of(first.steps).to_json() != first.loss or (simulated and not first.simulated):
            raise LedgerMismatch(
                f"run must go on with the loss that charge {self.number} has, got steps with another; pass "
                "the noise and the sampling that the run began with, or begin another run"
            )

    def claim(self, count: int = 1) -> range:
        """Claim the next steps, durably; fewer if fewer are left.

        Parameters
        ----------
        count : int
            How many are wanted.

        Returns
        -------
        range
            The steps, numbered from 0.

        Raises
        ------
        RunExhausted
            All that were charged were claimed.
        LedgerUnavailable, LedgerCorrupt
            The ledger cannot be written or is damaged; a failure at the very end of the write may have
            claimed the steps, which are then lost.
        """
        count = _check.integer("count", count, minimum=1)
        with self._log.transaction(write=True) as snapshot:
            start = self._require_left(snapshot.connection)
            stop = min(start + count, self._reserved)
            row = snapshot.connection.execute(LAST, {"run": self.number}).fetchone()
            if row is not None and not row[2]:
                snapshot.connection.execute(GROW, {"run": self.number, "first": row[0], "last": stop - 1})
            else:
                self._insert(snapshot.connection, start, stop - 1, "")
        self._log.remember_claimed(self.number, stop)
        return range(start, stop)

    def claim_replayable(self, step: int, digest: str) -> bool:
        """Claim one step together with a digest of all that it will compute, or claim it a second time.

        Parameters
        ----------
        step : int
            The next step, or one claimed before.
        digest : str
            SHA-256, in hexadecimal, of everything that determines the step's result but its noise.

        Returns
        -------
        bool
            Whether it was claimed before with this very digest: the same noise then gives the same result,
            which reveals nothing new.

        Raises
        ------
        LedgerMismatch
            The step was claimed before, with another digest or none: its noise must not be drawn again.
        RunExhausted, LedgerUnavailable, LedgerCorrupt
            As for `claim`.
        """
        step = _check.integer("step", step)
        if not re.fullmatch("[0-9a-f]{64}", digest):
            _check.refuse("digest", "be 64 hexadecimal digits", digest, "pass a SHA-256 in hexadecimal")
        with self._log.transaction(write=True) as snapshot:
            if step < self._next(snapshot.connection):
                row = snapshot.connection.execute(AT, {"run": self.number, "step": step}).fetchone()
                if row[2] == digest and row[0] == step:
                    return True
                raise LedgerMismatch(
                    f"step {step} must be computed as when it was claimed to use its noise again, got "
                    "another state, batch, device or kernels; claim a fresh step"
                )
            if step != self._require_left(snapshot.connection):
                _check.refuse("step", "be the next, or one claimed before", step, "claim steps in order")
            self._insert(snapshot.connection, step, step, digest)
        self._log.remember_claimed(self.number, step + 1)
        return False

    def record(self, steps: int) -> str:
        """Return a hash of how the first steps were claimed, to be stored elsewhere, in a checkpoint say.

        Parameters
        ----------
        steps : int
            At most those that are claimed. The hash of these does not change while others are claimed, and
            is another if one was claimed again, after a roll-back, with another digest.

        Returns
        -------
        str
            64 hexadecimal digits.

        Raises
        ------
        LedgerCorrupt
            Fewer are claimed: the record went back.
        """
        steps = _check.integer("steps", steps)
        with self._log.transaction(write=False) as snapshot:
            if self._next(snapshot.connection) < steps:
                raise corrupt("never go back", f"fewer than {steps} steps of run {self.number}")
            rows = [*snapshot.connection.execute(ROWS, {"run": self.number, "steps": steps})]
        claims = [f"{first} {min(last, steps - 1)} {digest}" for first, last, digest in rows]
        return hashlib.sha256("\n".join([self.digest, *claims]).encode()).hexdigest()

    def extend(self, loss: PrivacyLoss, *, steps: int, delta: float | None = None) -> Receipt:
        """Charge more steps, to the same account as the run.

        Parameters
        ----------
        loss : PrivacyLoss
            Of the further steps.
        steps : int
            How many they are.
        delta : float, optional
            Where the charge's own guarantee is read; as for the run by default.

        Returns
        -------
        Receipt

        Raises
        ------
        BudgetExceeded, NeighboringMismatch, LedgerMismatch, LedgerUnavailable, LedgerCorrupt
            As for `Ledger.charge`; the run goes on being what it was.
        """
        first = self._charged
        charge = Charge(
            loss=loss,
            delta=first.delta if delta is None else delta,
            description=first.description,
            simulated=first.simulated,
            analyst=first.analyst,
            period=first.period,
            steps=_check.integer("steps", steps, minimum=1),
            run=self.number,
        )
        return self._ledger.record(charge)

    def __repr__(self) -> str:
        return (
            f"<Run {self.number} of ledger {self.ledger_id}, {self.claimed} of {self.reserved} steps claimed>"
        )

    def _count(self, connection: Transaction) -> int:
        """Return how many steps the run's charges reserved."""
        later = events_after(connection, self._first.position)
        return sum(steps for run, steps in map(steps_reserved, (self._first, *later)) if run == self.number)

    def _next(self, connection: Transaction) -> int:
        row = connection.execute(LAST, {"run": self.number}).fetchone()
        following = 0 if row is None else int(row[1]) + 1
        self._log.check_claimed(self.number, following)
        return following

    def _require_left(self, connection: Transaction) -> int:
        """Return the next step, if it was charged."""
        start = self._next(connection)
        if start >= self._reserved:
            self._reserved = self._count(connection)
        if start >= self._reserved:
            raise RunExhausted(
                f"run must have steps left, got all {self._reserved} claimed; charge more with extend()"
            )
        return start

    def _insert(self, connection: Transaction, first: int, last: int, digest: str) -> None:
        connection.execute(INSERT, {"run": self.number, "first": first, "last": last, "digest": digest})
