"""All guards around an application, in the order in which they must stand.

From the outside in: headers of every answer; the host; how fast an address asks; the body, as a whole; who
asks; how fast they ask; forms of own pages alone. So nothing is read for a wrong host, no body is read for an
address that is too fast, and what the application sees was let in by all.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from sfumato.server.asgi import Application, Connection, Receive, Refusal, Send, refuse_in_json
from sfumato.server.console.guard.bodies import BodyGuard
from sfumato.server.console.guard.csrf import CsrfGuard
from sfumato.server.console.guard.headers import SecurityHeaders
from sfumato.server.console.guard.hosts import HostGuard
from sfumato.server.console.guard.rates import RateGuard, address_of, member_of
from sfumato.server.console.guard.request_limits import RequestLimits
from sfumato.server.console.rate_limiter import RateLimiter

__all__ = ["guarded"]


def guarded(
    app: Application,
    *,
    identified: Callable[[Application], Application],
    origins: Sequence[str],
    limits: RequestLimits | None = None,
    refusal: Refusal = refuse_in_json,
    styles: Sequence[str] = (),
) -> Application:
    """Return an application that answers what every guard lets in.

    Parameters
    ----------
    app : ASGI application
    identified : callable
        Puts `Identification` around an application.
    origins : sequence of str
        At which browsers reach it: what `own_origins` returned.
    limits : RequestLimits, optional
        The defaults suit a few hundred people.
    refusal : callable
        Answers what is refused.
    styles : sequence of str
        See `SecurityHeaders`.

    Returns
    -------
    ASGI application
        It has no websockets.
    """
    bounds = RequestLimits() if limits is None else limits
    inner: Application = CsrfGuard(app, origins=origins, refusal=refusal)
    inner = RateGuard(
        inner,
        key=member_of,
        limiter=RateLimiter(bounds.member_rate, burst=bounds.member_burst),
        at_once=bounds.member_at_once,
        refusal=refusal,
    )
    inner = BodyGuard(
        identified(inner),
        size=bounds.body,
        seconds=bounds.seconds,
        unfinished=bounds.unfinished,
        refusal=refusal,
    )
    if bounds.address_rate is not None:
        inner = RateGuard(
            inner,
            key=address_of,
            limiter=RateLimiter(bounds.address_rate, burst=bounds.address_burst),
            at_once=bounds.address_at_once,
            refusal=refusal,
        )
    inner = HostGuard(inner, origins=origins, refusal=refusal)
    https = all(origin.startswith("https:") for origin in origins)
    return _without_websockets(SecurityHeaders(inner, https=https, styles=styles))


def _without_websockets(app: Application) -> Application:
    """Return an application to which no guard is blind: it closes what is no request."""

    async def answering(scope: Connection, receive: Receive, send: Send) -> None:
        if scope["type"] == "websocket":
            await send({"type": "websocket.close", "code": 1008})
        else:
            await app(scope, receive, send)

    return answering
