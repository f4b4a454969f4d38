"""Bodies of requests: read whole before anything looks at them, of limited length and time."""

from __future__ import annotations

import asyncio
from typing import Final, final

from sfumato import _check
from sfumato.server.asgi import (
    Application,
    Connection,
    Message,
    Receive,
    Refusal,
    Refused,
    Send,
    headers_of,
    refuse_in_json,
)
from sfumato.server.request_room import NoRoom, RequestRoom

__all__ = ["BodyGuard", "body_of"]

_KEY: Final = "sfumato.body"


class _Gone(Exception):
    """The client closed the connection."""


def body_of(scope: Connection) -> bytes:
    """Return the whole body of a request that `BodyGuard` has let in.

    Parameters
    ----------
    scope : dict
        ASGI's.
    """
    found: bytes = scope.get(_KEY, b"")
    return found


@final
class BodyGuard:
    """An application that sees requests when they are there as a whole.

    Parameters
    ----------
    app : ASGI application
        It receives the body in one piece.
    size : int
        Maximum number of bytes of a body; beyond it the answer is 413.
    seconds : float
        In which it must have come; beyond it the answer is 408.
    unfinished : int
        Maximum number of bytes of all bodies that are on their way, beside the first 16 KiB of each; beyond
        it the answer is 503.
    refusal : callable
        Answers what is refused.
    """

    def __init__(
        self,
        app: Application,
        *,
        size: int,
        seconds: float,
        unfinished: int,
        refusal: Refusal = refuse_in_json,
    ) -> None:
        self._app, self._refusal = app, refusal
        self._size = _check.integer("size", size, minimum=1)
        self._seconds = _check.positive("seconds", seconds)
        self._room = RequestRoom(_check.integer("unfinished", unfinished, minimum=1))

    async def __call__(self, scope: Connection, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        try:
            scope[_KEY] = await self._read(scope, receive)
        except Refused as refused:
            await self._refusal(scope, send, refused)
            return
        except _Gone:
            return
        await self._app(scope, _replaying(scope[_KEY], receive), send)

    async def _read(self, scope: Connection, receive: Receive) -> bytes:
        stated = headers_of(scope, b"content-length")
        if any(not length.isdigit() for length in stated) or len(set(stated)) > 1:
            raise Refused(400, "content-length must be one number")
        if stated and int(stated[0][:20]) > self._size:
            raise self._too_large()
        try:
            with self._room.reserved() as reserve:
                async with asyncio.timeout(self._seconds):
                    body = bytearray()
                    more = True
                    while more:
                        message = await receive()
                        if message["type"] == "http.disconnect":
                            raise _Gone
                        body += message.get("body", b"")
                        more = message.get("more_body", False)
                        if len(body) > self._size:
                            raise self._too_large()
                        reserve(len(body))
        except TimeoutError:
            raise Refused(408, "the request took too long to come", "late") from None
        except NoRoom:
            raise Refused(503, "too much at a time; try again", "unfinished") from None
        return bytes(body)

    def _too_large(self) -> Refused:
        return Refused(413, f"a request has at most {self._size} bytes", "large")


def _replaying(body: bytes, receive: Receive) -> Receive:
    """Return what gives the body that was read, and then what still comes."""
    given = False

    async def replay() -> Message:
        nonlocal given
        if given:
            return await receive()
        given = True
        return {"type": "http.request", "body": body, "more_body": False}

    return replay
