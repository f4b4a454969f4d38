"""What the log and the table beside it say of training runs: steps charged, and steps claimed."""

from __future__ import annotations

from sfumato.ledger.log.event_log import CHARGE, content_of, corrupt
from sfumato.ledger.log.hash_chain import Event
from sfumato.ledger.store.base import Transaction

__all__ = ["check_claims", "claimed_in_all", "reserved_by"]

SUM = "SELECT coalesce(sum(last - first + 1), 0) FROM claim"
ALL = "SELECT run, first, last FROM claim ORDER BY run, first"


def reserved_by(event: Event) -> tuple[int, int]:
    """Return which run an event reserved steps for, and how many; (0, 0) if it reserved none."""
    if event.kind != CHARGE or '"steps":' not in event.body:
        return 0, 0
    content = content_of(event)
    try:
        steps = content.get("steps", 0)
        return (int(content.get("run", event.charge or 0)), int(steps)) if steps else (0, 0)
    except (TypeError, ValueError) as error:
        raise corrupt("hold readable charges", f"an unreadable charge {event.charge}") from error


def claimed_in_all(connection: Transaction) -> int:
    """Return how many steps were claimed, of all runs; the ledger has runs."""
    (steps,) = connection.execute(SUM).fetchone()
    return int(steps)


def check_claims(connection: Transaction, reserved: dict[int, int], least: int = 0) -> None:
    """Refuse a record of steps with holes, with more than were charged, or with fewer than a head has seen.

    The ledger has runs.
    """
    following: dict[int, int] = {}
    for run, first, last in connection.execute(ALL):
        if first != following.get(run, 0) or not first <= last < reserved.get(run, 0):
            raise corrupt("hold steps in order, each of them charged", f"step {last} of run {run}")
        following[run] = last + 1
    claimed = sum(following.values())
    if claimed < least:
        raise corrupt(
            "continue the head",
            f"{claimed} steps claimed where the head has seen {least}: it was rolled back",
        )
