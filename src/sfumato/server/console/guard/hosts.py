"""Requests for this host alone: a page of another name that resolves to this machine gets no answer.

A site may let its own name point at a loopback address, so that a browser takes the console for a part of it
(DNS rebinding). The browser still says which name it was asked for.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import final
from urllib.parse import urlsplit

from sfumato import _check
from sfumato.server.asgi import (
    Application,
    Connection,
    Receive,
    Refusal,
    Refused,
    Send,
    headers_of,
    refuse_in_json,
)
from sfumato.server.cross_origin import checked_origins

__all__ = ["HostGuard", "own_origins"]


def own_origins(given: object) -> tuple[str, ...]:
    """Return the origins at which browsers reach this service, or refuse what is none.

    Parameters
    ----------
    given : object
        A list of texts such as ``"https://console.example"`` or ``"http://127.0.0.1:8421"``: at least one.

    Raises
    ------
    ParameterError
        If there is none, or one is no origin.

    Examples
    --------
    >>> own_origins(["https://Console.example:443"])
    ('https://console.example',)
    """
    origins = checked_origins(given)
    if not origins:
        _check.refuse("origins", "be at least one", given, 'pass ["https://console.example"]')
    return origins


@final
class HostGuard:
    """An application that answers requests for its own hosts.

    Parameters
    ----------
    app : ASGI application
    origins : sequence of str
        What `own_origins` returned.
    refusal : callable
        Answers what is refused, with status 421.
    """

    def __init__(
        self, app: Application, *, origins: Sequence[str], refusal: Refusal = refuse_in_json
    ) -> None:
        self._app, self._refusal = app, refusal
        self._hosts = frozenset(host for origin in origins for host in _hosts(origin))

    async def __call__(self, scope: Connection, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["type"] == "http":
            stated = headers_of(scope, b"host")
            if len(stated) != 1 or stated[0].lower() not in self._hosts:
                await self._refusal(scope, send, Refused(421, "this service has another name"))
                return
        await self._app(scope, receive, send)


def _hosts(origin: str) -> tuple[bytes, ...]:
    """Return what a request for an origin may state: the default port too, as some clients do."""
    parts = urlsplit(origin)
    if parts.port is not None:
        return (parts.netloc.encode(),)
    default = 443 if parts.scheme == "https" else 80
    return parts.netloc.encode(), f"{parts.netloc}:{default}".encode()
