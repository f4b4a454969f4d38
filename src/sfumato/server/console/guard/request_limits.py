"""What the console puts up with from one sender."""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

from sfumato import _check

__all__ = ["RequestLimits"]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class RequestLimits:
    """Bounds on requests, beside those of `sfumato.server.limits.Limits` on connections.

    Parameters
    ----------
    body : int
        Maximum number of bytes of a body.
    seconds : float
        In which a body must have come.
    unfinished : int
        Maximum number of bytes of all bodies that are on their way.
    address_rate, address_burst, address_at_once : float or None, int, int
        Requests a second of one address, how many at once after a pause, and how many that are not answered
        yet. A rate of None does not count addresses: behind a proxy all clients have its address.
    member_rate, member_burst, member_at_once : float, int, int
        The same of one member, from whatever address.

    Examples
    --------
    >>> RequestLimits(member_at_once=4).body
    1048576
    """

    body: int = 1 << 20
    seconds: float = 10.0
    unfinished: int = 1 << 26
    address_rate: float | None = 50.0
    address_burst: int = 200
    address_at_once: int = 64
    member_rate: float = 20.0
    member_burst: int = 100
    member_at_once: int = 16

    def __post_init__(self) -> None:
        for name in (
            "body",
            "unfinished",
            "address_burst",
            "address_at_once",
            "member_burst",
            "member_at_once",
        ):
            _check.integer(name, getattr(self, name), minimum=1)
        for name in ("seconds", "member_rate"):
            _check.positive(name, getattr(self, name))
        if self.address_rate is not None:
            _check.positive("address_rate", self.address_rate, "pass None behind a proxy")
