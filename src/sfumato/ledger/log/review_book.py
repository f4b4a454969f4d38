"""Members and reviews of a ledger, by the events that this process has read."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from sfumato.ledger.identity import Identity
from sfumato.ledger.log.event_log import EventLog, LogFollower, Snapshot
from sfumato.ledger.log.member_events import MemberBody
from sfumato.ledger.log.review_events import ReviewBody
from sfumato.ledger.log.review_roll import ReviewRoll

__all__ = ["ReviewBook"]

T = TypeVar("T")


class ReviewBook:
    """What the events about people and publication add up to, read on as the log grows.

    Parameters
    ----------
    log : EventLog
        Where they are recorded.
    identity : Identity
        What the ledger was made for.
    """

    def __init__(self, log: EventLog, identity: Identity) -> None:
        self._log = log
        self._roll = ReviewRoll(identity)
        self._follower = LogFollower()

    def read(self, question: Callable[[ReviewRoll], T]) -> T:
        """Return what the state now answers; no other thread changes it meanwhile.

        Parameters
        ----------
        question : callable
            It must return nothing that changes later.
        """
        with self._log.transaction(write=False, ahead=self._follower.ahead) as snapshot:
            return question(self._read_on(snapshot))

    def write(self, body: MemberBody | ReviewBody) -> None:
        """Record an event that the rules allow, else raise `ParameterError`: one transaction."""
        with self._log.transaction(write=True, ahead=self._follower.ahead) as snapshot:
            self._read_on(snapshot).check(body)
            event = snapshot.append(body)
        self._log.remember(event)

    def _read_on(self, snapshot: Snapshot) -> ReviewRoll:
        for event, body, time in self._follower.new_events(snapshot):
            self._roll.follow(event, body, time)
        return self._roll
