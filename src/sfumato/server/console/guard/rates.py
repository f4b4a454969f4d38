"""How fast and how many requests of one sender are answered: of an address, and of a member."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable
from typing import Any, final

from sfumato import _check
from sfumato.server.admission import origin
from sfumato.server.asgi import (
    Application,
    Connection,
    Receive,
    Refusal,
    Refused,
    Send,
    refuse_in_json,
)
from sfumato.server.console.access.identity import identity_of
from sfumato.server.console.rate_limiter import RateLimiter

__all__ = ["RateGuard", "address_of", "member_of"]


def address_of(scope: Connection) -> str:
    """Return what one sender has: the peer's IPv4 address, or the network of its IPv6 address.

    Parameters
    ----------
    scope : dict
        ASGI's.

    Examples
    --------
    >>> address_of({"client": ("2001:db8::1:2", 5)}), address_of({"client": None})
    ('2001:db8::/64', '')
    """
    client: Any = scope.get("client")
    return "" if client is None else origin(client[0])


def member_of(scope: Connection) -> str:
    """Return who asks, by name; empty for the public, of whom addresses are counted.

    Parameters
    ----------
    scope : dict
        ASGI's.

    Examples
    --------
    >>> member_of({})
    ''
    """
    return identity_of(scope).name


@final
class RateGuard:
    """An application of which each sender gets so much.

    Parameters
    ----------
    app : ASGI application
    key : callable
        From a request to its sender; an empty text is not limited.
    limiter : RateLimiter
        Of requests; beyond it the answer is 429, with the seconds to wait.
    at_once : int
        Maximum number of requests that are not answered yet; beyond it the answer is 429, too.
    refusal : callable
        Answers what is refused.
    """

    def __init__(
        self,
        app: Application,
        *,
        key: Callable[[Connection], str],
        limiter: RateLimiter,
        at_once: int,
        refusal: Refusal = refuse_in_json,
    ) -> None:
        self._app, self._refusal = app, refusal
        self._sender, self._limiter = key, limiter
        self._at_once = _check.integer("at_once", at_once, minimum=1)
        self._open: Counter[str] = Counter()

    async def __call__(self, scope: Connection, receive: Receive, send: Send) -> None:
        """Answer one request."""
        sender = self._sender(scope) if scope["type"] == "http" else ""
        if not sender:
            await self._app(scope, receive, send)
            return
        seconds = self._limiter.wait(sender) if self._open[sender] < self._at_once else 1.0
        if seconds:
            again = (b"retry-after", str(math.ceil(seconds)).encode())
            refused = Refused(429, "too many requests; try again", "rate", headers=(again,))
            await self._refusal(scope, send, refused)
            return
        self._open[sender] += 1
        try:
            await self._app(scope, receive, send)
        finally:
            self._open[sender] -= 1
            if not self._open[sender]:
                del self._open[sender]
