"""A key of one party and its times: from when on devices are offered it, and until when it is in use."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final, TypeVar

from sfumato import _check
from sfumato.crypto.hpke import PublicKey
from sfumato.server.periods.collection_window import optional_time

__all__ = ["TimedKey", "check_keys", "in_use", "offered_of"]


@dataclass(frozen=True, slots=True, kw_only=True)
class TimedKey(ABC):
    """One key and its times.

    Parameters
    ----------
    public : PublicKey
    offered : datetime, optional
        From when on devices are offered it; always, by default.
    until : datetime, optional
        When nothing that is sealed for it is taken any more; never, by default.
    """

    public: PublicKey
    offered: datetime | None = None
    until: datetime | None = None

    def __post_init__(self) -> None:
        for name in ("offered", "until"):
            optional_time(name, getattr(self, name))
        role = self.role()
        if self.public.role != role:
            article = "an" if role == "analyst" else "a"
            _check.refuse("key", f"be {article} {role}'s", self.public.role, f"make one with role {role}")
        if self.offered is not None and self.until is not None and self.until <= self.offered:
            shown = self.until.isoformat()
            _check.refuse("until", f"be after offered {self.offered.isoformat()}", shown, "correct one")

    @staticmethod
    @abstractmethod
    def role() -> str:
        """Whose key it is."""

    def like(self, other: TimedKey) -> bool:
        """Report whether another one is the same key at the same times."""
        return (self.public, self.offered, self.until) == (other.public, other.offered, other.until)

    def over(self, now: float) -> bool:
        """Report whether its time is over, at so many seconds since 1970."""
        return self.until is not None and now >= self.until.timestamp()


Key = TypeVar("Key", bound=TimedKey)

_LEFT_OUT: Final = "leave out those that open no more"


def check_keys(keys: Sequence[TimedKey], most: int) -> None:
    """Refuse keys that are none, too many, or one of them twice."""
    if not 1 <= len(keys) <= most:
        _check.refuse("keys", f"be 1 to {most}", len(keys), _LEFT_OUT)
    if len({key.public.point for key in keys}) < len(keys):
        _check.refuse_state("keys", "be different", "one is there twice", "leave it out")


def in_use(keys: Sequence[Key], now: float) -> list[Key]:
    """Return the keys whose time is not over."""
    return [key for key in keys if not key.over(now)]


def offered_of(keys: Sequence[TimedKey], now: float) -> PublicKey | None:
    """Return the last key whose time has come and is not over: the one to offer; None if there is none."""
    begun = [key for key in in_use(keys, now) if key.offered is None or key.offered.timestamp() <= now]
    return begun[-1].public if begun else None
