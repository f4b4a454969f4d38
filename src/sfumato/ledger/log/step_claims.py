"""The record of training runs beside the chain: steps that were charged, and steps that were claimed."""

from __future__ import annotations

from typing import Final

from sfumato.ledger.failures import corrupt
from sfumato.ledger.log.events import Charged, body_of
from sfumato.ledger.log.hash_chain import Event
from sfumato.ledger.store.base import Transaction

__all__ = ["check_claims", "claimed_in_all", "steps_reserved"]

SUM: Final = "SELECT coalesce(sum(last - first + 1), 0) FROM claim"
ALL: Final = "SELECT run, first, last FROM claim ORDER BY run, first"


def steps_reserved(event: Event) -> tuple[int, int]:
    """Return which run an event reserved steps for, and how many; (0, 0) if it reserved none."""
    # A body is canonical, and a quote within a text of it is escaped: most events need not be parsed.
    if event.kind != Charged.kind or '"steps":0,' in event.body:
        return 0, 0
    body = body_of(event)
    if not isinstance(body, Charged) or not body.steps:
        return 0, 0
    return (event.charge or 0) if body.run is None else body.run, body.steps


def claimed_in_all(connection: Transaction) -> int:
    """Return how many steps were claimed, of all runs."""
    (steps,) = connection.execute(SUM).fetchone()
    return int(steps)


def check_claims(connection: Transaction, reserved: dict[int, int], minimum: int = 0) -> None:
    """Refuse a record of steps with holes, more than were charged, or fewer than a head has seen."""
    following: dict[int, int] = {}
    for run, first, last in connection.execute(ALL):
        if first != following.get(run, 0) or not first <= last < reserved.get(run, 0):
            raise corrupt("hold steps in order, each of them charged", f"step {last} of run {run}")
        following[run] = last + 1
    claimed = sum(following.values())
    if claimed < minimum:
        raise corrupt(
            "continue the head",
            f"{claimed} steps claimed where the head has seen {minimum}: it was rolled back",
        )
