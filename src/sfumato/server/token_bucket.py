"""So many a second, with bursts of one second.

>>> clock = iter([0.0, 0.0, 0.5]).__next__
>>> bucket = TokenBucket(10.0, clock())
>>> bucket.allows(25, clock())  # more than a second's worth passes alone, and is paid for afterwards
True
>>> bucket.pay(25)
>>> bucket.allows(1, clock()), round(bucket.full_at, 6)
(False, 2.5)
"""

from __future__ import annotations

from typing import final

__all__ = ["TokenBucket"]

_ENDLESS = 1e18


@final
class TokenBucket:
    """What may still come, of a rate.

    Parameters
    ----------
    rate : float
        A second; it may be infinite.
    now : float
        Seconds of a clock that never goes back.
    """

    __slots__ = ("_allowed", "_rate", "_since")

    def __init__(self, rate: float, now: float) -> None:
        self._rate = min(rate, _ENDLESS)
        self._allowed, self._since = self._rate, now

    def allows(self, count: int, now: float) -> bool:
        """Report whether so many may come now."""
        self._allowed = min(self._rate, self._allowed + (now - self._since) * self._rate)
        self._since = now
        return self._allowed >= min(count, self._rate)

    def pay(self, count: int) -> None:
        """Take away so many."""
        self._allowed -= count

    @property
    def full_at(self) -> float:
        """When it is as if nothing had ever come."""
        return self._since + max(0.0, self._rate - self._allowed) / self._rate
