"""When a collection takes reports: not before one time, and not from another one on.

>>> opens, over = datetime(2027, 1, 4, tzinfo=UTC), datetime(2027, 1, 11, tzinfo=UTC)
>>> window = CollectionWindow(not_before=opens, expires=over, now=lambda: opens.timestamp() - 1)
>>> window.closed(), window.times()
('early', {'not_before': '2027-01-04T00:00:00+00:00', 'expires': '2027-01-11T00:00:00+00:00'})
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import final

from sfumato import _check

__all__ = ["CollectionWindow", "optional_time", "time_with_offset"]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class CollectionWindow:
    """The times between which reports are taken; they are public.

    Parameters
    ----------
    not_before : datetime, optional
        With its offset from UTC. Reports are taken from then on.
    expires : datetime, optional
        With its offset from UTC; after ``not_before``. From then on no report is taken.
    now : callable
        Seconds since 1970.
    """

    not_before: datetime | None = None
    expires: datetime | None = None
    now: Callable[[], float] = time.time

    def __post_init__(self) -> None:
        for name in ("not_before", "expires"):
            optional_time(name, getattr(self, name))
        if self.not_before is not None and self.expires is not None and self.expires <= self.not_before:
            shown = self.expires.isoformat()
            _check.refuse(
                "expires", f"be after not_before {self.not_before.isoformat()}", shown, "correct one"
            )

    def closed(self) -> str | None:
        """Return why no report is taken now, ``"early"`` or ``"expired"``; None if reports are taken."""
        now = self.now()
        if self.not_before is not None and now < self.not_before.timestamp():
            return "early"
        return "expired" if self.expires is not None and now >= self.expires.timestamp() else None

    def times(self) -> dict[str, str]:
        """Return those of the two times that are set, for devices."""
        each = (("not_before", self.not_before), ("expires", self.expires))
        return {name: at.astimezone(UTC).isoformat() for name, at in each if at is not None}


def time_with_offset(name: str, value: object) -> datetime:
    """Return a time with its offset from UTC, or refuse what is none.

    >>> time_with_offset("expires", datetime(2027, 1, 11))
    Traceback (most recent call last):
    ...
    sfumato.errors.ParameterError: expires must be a time with its offset from UTC, got '2027-...; write ...
    """
    rule, remedy = "be a time with its offset from UTC", "write it such as 2027-01-11T00:00:00Z"
    if not isinstance(value, datetime):
        _check.refuse_type(name, rule, value, remedy)
    if value.tzinfo is None:
        _check.refuse(name, rule, value.isoformat(), remedy)
    return value


def optional_time(name: str, value: object) -> None:
    """Refuse what is neither None nor a time with its offset from UTC."""
    if value is not None:
        time_with_offset(name, value)
