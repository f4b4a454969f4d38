"""The log: events in the order in which they happened, each carrying the totals after it.

So the last event alone says what has been spent, and a charge costs the same however long the log is.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from typing import Any, NamedTuple

from sfumato.errors import LedgerCorrupt
from sfumato.ledger.budget.filters import Spent
from sfumato.ledger.failures import NOTHING_CHARGED
from sfumato.ledger.log.hash_chain import GENESIS, Event, canonical, decode_number, encode_number, link
from sfumato.ledger.store.base import Transaction

__all__ = [
    "ACCOUNT",
    "CHARGE",
    "COMMIT",
    "OPENED",
    "VERSION",
    "State",
    "append",
    "content_of",
    "corrupt",
    "decode_spent",
    "encode_spent",
    "event_at",
    "event_of_charge",
    "events_after",
    "last_state",
    "now",
    "state_of",
    "walk",
]

OPENED, VERSION, CHARGE, COMMIT, ACCOUNT = "opened", "version", "charge", "commit", "account"
"""The kinds of events."""

COLUMNS = "SELECT position, kind, charge, body, previous, digest FROM event"
LATEST = "(SELECT max(position) FROM event)"
LAST = f"{COLUMNS} WHERE position = {LATEST} OR position = :seen ORDER BY position DESC"
INSERT = """INSERT INTO event (position, kind, charge, body, previous, digest)
    VALUES (:position, :kind, :charge, :body, :previous, :digest)"""


class State(NamedTuple):
    """The last event, and what every event carries: totals, and how many of which events there were."""

    event: Event
    totals: tuple[Spent, ...]
    charges: int
    versions: int
    accounts: int = 0


def corrupt(rule: str, got: str) -> LedgerCorrupt:
    """Return the error of a log that breaks a rule."""
    return LedgerCorrupt(
        f"ledger must {rule}, got {got}; {NOTHING_CHARGED}; restore the file from a backup and compare it "
        "with the latest exported head"
    )


def now() -> str:
    """Return the time, in UTC, to the microsecond."""
    return datetime.now(UTC).isoformat(timespec="microseconds")


def encode_spent(parts: tuple[Spent, ...]) -> list[list[float | str]]:
    """Return amounts and masses as plain values."""
    return [[encode_number(part.amount), encode_number(part.delta)] for part in parts]


def decode_spent(parts: list[list[float | str]]) -> tuple[Spent, ...]:
    """Return what `encode_spent` wrote."""
    return tuple(Spent(decode_number(amount), decode_number(delta)) for amount, delta in parts)


def append(
    connection: Transaction,
    before: State | None,
    kind: str,
    content: Mapping[str, object],
    *,
    totals: tuple[Spent, ...],
    charge: int | None = None,
) -> Event:
    """Write one event after the last; None is before the first."""
    position, previous = (1, GENESIS) if before is None else (before.event.position + 1, before.event.digest)
    carried = {
        "time": now(),
        "totals": encode_spent(totals),
        "charges": (before.charges if before else 0) + (kind == CHARGE),
        "versions": (before.versions if before else 0) + (kind in (OPENED, VERSION)),
    }
    accounts = (before.accounts if before else 0) + (kind == ACCOUNT)
    if accounts:  # a ledger without accounts is written as it always was
        carried["accounts"] = accounts
    event = link(position, kind, charge, canonical({**content, **carried}), previous)
    connection.execute(INSERT, event._asdict())
    return event


def last_state(connection: Transaction, seen: tuple[int, str] = (0, "")) -> State:
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
    return state_of(event)


def state_of(event: Event) -> State:
    """Return what an event carries."""
    try:
        content = event.content
        totals = decode_spent(content["totals"])
        accounts = int(content.get("accounts", 0))
        return State(event, totals, int(content["charges"]), int(content["versions"]), accounts)
    except (KeyError, TypeError, ValueError) as error:
        raise corrupt("hold readable events", f"an unreadable event {event.position}") from error


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


def events_after(connection: Transaction, position: int) -> Iterator[Event]:
    """Yield the events after a position, in order, unchecked."""
    rows = connection.execute(
        f"{COLUMNS} WHERE position > :position ORDER BY position", {"position": position}
    )
    return (Event(*row) for row in rows)


def content_of(event: Event) -> dict[str, Any]:
    """Return an event's body; a body that is not JSON is damage."""
    try:
        return event.content
    except ValueError as error:
        raise corrupt("hold readable events", f"an unreadable event {event.position}") from error
