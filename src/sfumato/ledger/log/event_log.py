"""The log in a store: events in the order in which they happened, read and appended in transactions.

Every event has the running totals after it, so the last event alone says what has been spent, and a charge
costs the same however long the log is.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from typing import Any, Final, NamedTuple

from sfumato.ledger.budget.spent import Spent
from sfumato.ledger.failures import corrupt, unreadable
from sfumato.ledger.log.events import Body, RunningTotals, read_event, totals_of, write_body
from sfumato.ledger.log.hash_chain import EVENT, GENESIS, Event, link
from sfumato.ledger.store.base import Read, ReadAhead, Store, Transaction

__all__ = [
    "EventLog",
    "LogEnd",
    "LogFollower",
    "Snapshot",
    "append_event",
    "event_at",
    "event_of_charge",
    "events_after",
    "last_event",
    "reading_after",
    "utc_now",
    "walk",
]

COLUMNS: Final = "SELECT position, kind, charge, body, previous, digest FROM event"
LATEST: Final = "(SELECT max(position) FROM event)"
LAST: Final = f"{COLUMNS} WHERE position = {LATEST} OR position = :seen ORDER BY position DESC"
INSERT: Final = """INSERT INTO event (position, kind, charge, body, previous, digest)
    VALUES (:position, :kind, :charge, :body, :previous, :digest)"""


class LogEnd(NamedTuple):
    """The last event, and the running totals that it states."""

    event: Event
    totals: RunningTotals

    @classmethod
    def of(cls, event: Event) -> LogEnd:
        """Return the end of a log whose last event this is."""
        return cls(event, totals_of(event))

    def summary(self, ledger: str) -> dict[str, Any]:
        """Return what a head says of it, beside the ledger's id."""
        return {
            "ledger": ledger,
            "position": self.event.position,
            "charges": self.totals.charges,
            "digest": self.event.digest,
        }


class Snapshot(NamedTuple):
    """The log within one transaction: where rows are read and written, and how the log ended at its begin."""

    connection: Transaction
    end: LogEnd

    def append(
        self, body: Body, *, charge: int | None = None, spent: tuple[Spent, ...] | None = None
    ) -> Event:
        """Write one event after the last.

        Parameters
        ----------
        body : Body
            What happened.
        charge : int, optional
            The number of the charge that it records or commits.
        spent : tuple of Spent, optional
            What is spent in all with it; as before by default.
        """
        before = self.end.totals
        totals = before.after(body, before.spent if spent is None else spent)
        return append_event(self.connection, self.end.event, body, totals, charge=charge)


class EventLog:
    """A ledger's log as one process reads it and writes on, with a memory of what was there.

    A log that was put back to an earlier state under this process is refused.

    Parameters
    ----------
    store : Store
        Where the rows are.
    """

    def __init__(self, store: Store[Any]) -> None:
        self.store = store
        self._seen: tuple[int, str] = (0, "")
        self._claimed: dict[int, int] = {}

    @contextlib.contextmanager
    def transaction(self, *, write: bool, ahead: ReadAhead = tuple) -> Iterator[Snapshot]:
        """Run one transaction, after checking that the log still holds what this process has seen.

        ``ahead`` says what else will be read in it; see `Store.transaction`.
        """

        def reads() -> Sequence[Read]:
            return (LAST, {"seen": self._seen[0]}), *ahead()

        with self.store.transaction(write=write, ahead=reads) as connection:
            end = last_event(connection, self._seen)
            self.remember(end.event)
            yield Snapshot(connection, end)

    def check(self) -> None:
        """Refuse a log whose last event is damaged, or that no longer has what this process has seen."""
        with self.transaction(write=False):
            pass

    def remember(self, event: Event) -> None:
        """Remember an event that is durable: a log that no longer has it is refused from now on."""
        if event.position > self._seen[0]:
            self._seen = (event.position, event.digest)

    def check_claimed(self, run: int, steps: int) -> None:
        """Remember how many steps of a run are claimed, in a transaction; refuse a record that went back.

        The record of steps is beside the chain, where no later event covers it.
        """
        seen = self._claimed.get(run, 0)
        if steps < seen:
            raise corrupt("never go back", f"{steps} steps of run {run} claimed where {seen} were before")
        self._claimed[run] = steps

    def remember_claimed(self, run: int, steps: int) -> None:
        """Remember a claim that is durable: another thread's later one may have come before."""
        self._claimed[run] = max(steps, self._claimed.get(run, 0))


class LogFollower:
    """A place in the log up to which a process has read, from where it reads on, checking every link."""

    def __init__(self) -> None:
        self._position, self._digest = 0, GENESIS

    def ahead(self) -> Sequence[Read]:
        """Return what `new_events` will read, if it has read before."""
        return (reading_after(self._position),) if self._position else ()

    def new_events(self, snapshot: Snapshot) -> Iterator[tuple[Event, Body, str]]:
        """Yield the events since the last call with their bodies and times; one that was taken is read."""
        if self._position == snapshot.end.event.position:
            return
        for event in events_after(snapshot.connection, self._position):
            if event.position != self._position + 1 or event.previous != self._digest or not event.intact:
                raise corrupt("be an unbroken chain of events", f"a break at event {event.position}")
            try:
                body, _, time = read_event(event)
                yield event, body, time
            except ValueError as error:
                raise unreadable(event.position) from error
            self._position, self._digest = event.position, event.digest


def utc_now() -> str:
    """Return the time, in UTC, to the microsecond."""
    return datetime.now(UTC).isoformat(timespec="microseconds")


def append_event(
    connection: Transaction, last: Event | None, body: Body, totals: RunningTotals, *, charge: int | None
) -> Event:
    """Write one event after the last one, None before the first."""
    position, previous = (1, GENESIS) if last is None else (last.position + 1, last.digest)
    event = link(position, body.kind, charge, write_body(body, totals, utc_now()), previous)
    connection.execute(INSERT, EVENT.encode(event))
    return event


def last_event(connection: Transaction, seen: tuple[int, str] = (0, "")) -> LogEnd:
    """Read the last event, and nothing else, and check that it is whole.

    With ``seen``, position and digest of an event that was there before, also that it still is.
    """
    rows = [Event(*row) for row in connection.execute(LAST, {"seen": seen[0]})]
    highest = connection.highest()
    if not rows or highest is None:
        raise corrupt("hold at least one event", "none")
    event = rows[0]
    if highest != event.position:
        raise corrupt("end with its last event", f"event {event.position} of {highest} at the end")
    if not event.intact:
        raise corrupt("hold unaltered events", f"an altered event {event.position}")
    if seen[0] and (rows[-1].position, rows[-1].digest) != seen:
        raise corrupt("never go back", f"another event {seen[0]} than was there before")
    return LogEnd.of(event)


def event_of_charge(connection: Transaction, kind: str, charge: int) -> Event | None:
    """Return the event that records, or that commits, one charge."""
    row = connection.execute(
        f"{COLUMNS} WHERE kind = :kind AND charge = :charge", {"kind": kind, "charge": charge}
    ).fetchone()
    if row is None:
        return None
    event = Event(*row)
    if not event.intact:
        raise corrupt("hold unaltered events", f"an altered event {event.position}")
    return event


def event_at(connection: Transaction, position: int) -> Event | None:
    """Return the event at one position."""
    row = connection.execute(f"{COLUMNS} WHERE position = :position", {"position": position}).fetchone()
    return None if row is None else Event(*row)


def walk(connection: Transaction, kinds: tuple[str, ...] = ()) -> Iterator[Event]:
    """Yield all events in order, or those of some kinds, checking every link of the whole chain."""
    previous = GENESIS
    for position, row in enumerate(connection.execute(f"{COLUMNS} ORDER BY position"), start=1):
        event = Event(*row)
        if event.position != position or event.previous != previous or not event.intact:
            raise corrupt("be an unbroken chain of events", f"a break at event {position}")
        previous = event.digest
        if not kinds or event.kind in kinds:
            yield event


def reading_after(position: int) -> Read:
    """Return the statement by which `events_after` reads."""
    return f"{COLUMNS} WHERE position > :position ORDER BY position", {"position": position}


def events_after(connection: Transaction, position: int) -> Iterator[Event]:
    """Yield the events after a position, in order, unchecked."""
    rows = connection.execute(*reading_after(position))
    return (Event(*row) for row in rows)
