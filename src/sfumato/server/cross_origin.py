"""Pages of other origins that may report: an allow-list, and the answers that browsers ask for (CORS).

A browser asks a service before it lets a page of another origin use it (Fetch standard, CORS protocol).
Without a list nothing is allowed, and the service answers as if this module was not there.

>>> checked_origins(["https://Survey.example:443", "http://127.0.0.1:8000"])
('https://survey.example', 'http://127.0.0.1:8000')
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, final
from urllib.parse import urlsplit

from sfumato import _check
from sfumato.server.asgi import Application, Connection, Message, Receive, Send

__all__ = ["CrossOrigin", "checked_origins"]

_METHODS: Final = {
    "reports": b"POST", "collection": b"GET", "collections": b"GET", "keys": b"GET", "status": b"GET",
}  # fmt: skip
"""What devices ask for, after ``/v1/`` or ``/NAME/v1/``. Batches, health and metrics are for no page."""

_PORTS: Final = {"http": 80, "https": 443}
_SECONDS: Final = b"7200"
"""For which a browser remembers the answer: the longest that all of them take."""


@final
class CrossOrigin:
    """An application whose answers to devices some pages of other origins may read.

    Parameters
    ----------
    app : ASGI application
    origins : sequence of str
        What `checked_origins` returned.

    Notes
    -----
    It protects no report: whoever is no browser sends what it likes. Credentials are never allowed, and no
    header of a request beyond its content type.
    """

    def __init__(self, app: Application, origins: Sequence[str]) -> None:
        self._app, self._origins = app, frozenset(origin.encode() for origin in origins)

    async def __call__(self, scope: Connection, receive: Receive, send: Send) -> None:
        """Answer one request."""
        method = None
        if scope["type"] == "http" and self._origins:
            method = _METHODS.get(scope["path"].rpartition("/v1/")[2])
        if method is None:
            await self._app(scope, receive, send)
            return
        headers = {name.lower(): value for name, value in scope["headers"]}
        origin = headers.get(b"origin", b"")
        # Whether the header is there depends on the request's own, so that a cache must look at it.
        more = [(b"vary", b"origin")]
        if origin in self._origins:
            more.append((b"access-control-allow-origin", origin))
        if scope["method"] == "OPTIONS" and len(more) > 1 and b"access-control-request-method" in headers:
            await _preflight(send, method, more)
            return

        async def sending(message: Message) -> None:
            if message["type"] == "http.response.start":
                message = {**message, "headers": [*message["headers"], *more]}
            await send(message)

        await self._app(scope, receive, sending)


async def _preflight(send: Send, method: bytes, more: Sequence[tuple[bytes, bytes]]) -> None:
    """Answer what may be asked for, without a body."""
    headers = [
        (b"access-control-allow-methods", method),
        (b"access-control-allow-headers", b"content-type"),
        (b"access-control-max-age", _SECONDS),
        *more,
    ]
    await send({"type": "http.response.start", "status": 204, "headers": headers})
    await send({"type": "http.response.body", "body": b""})


def checked_origins(given: object) -> tuple[str, ...]:
    """Return origins as browsers write them, or refuse what is none.

    Parameters
    ----------
    given : object
        What the caller passed: a list of texts such as ``"https://survey.example"``.

    Returns
    -------
    tuple of str
        In lower case, without the port that the scheme has by default.

    Raises
    ------
    ParameterError
        If one is no origin: everybody's (``*``), nobody's (``null``), or one with a path.
    """
    if not isinstance(given, list | tuple):
        _check.refuse_type("origins", "be a list of texts", given, 'pass ["https://survey.example"]')
    return tuple(_origin(one) for one in given)


def _origin(given: object) -> str:
    text = given.lower() if isinstance(given, str) else ""
    try:
        parts = urlsplit(text)
        port = parts.port
    except ValueError:  # a port that is no number, or brackets that do not close
        parts, port = urlsplit(""), None
    host = parts.netloc.removesuffix(f":{port}") if port is not None else parts.netloc
    wanted = host if port in (None, _PORTS.get(parts.scheme)) else f"{host}:{port}"
    known = parts.scheme in _PORTS and parts.hostname and parts.username is None and port != 0
    if not known or not text.isascii() or text != f"{parts.scheme}://{parts.netloc}" or host.endswith(":"):
        rule = "be origins of pages: https:// or http://, a host and perhaps a port"
        _check.refuse("origins", rule, given, "leave out any path; list each origin by itself")
    return f"{parts.scheme}://{wanted}"
