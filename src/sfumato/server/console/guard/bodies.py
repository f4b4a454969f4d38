"""Bodies of requests: read whole before anything looks at them, of limited length and time, and forms."""

from __future__ import annotations

import asyncio
from typing import Final, TypeAlias, final
from urllib.parse import parse_qsl

from sfumato import _check
from sfumato.server.asgi import (
    Application,
    Connection,
    Message,
    Receive,
    Refusal,
    Refused,
    Send,
    header_of,
    headers_of,
    refuse_in_json,
)
from sfumato.server.request_room import NoRoom, RequestRoom

__all__ = ["BodyGuard", "body_of", "form_of"]

_KEY: Final = "sfumato.body"
_FORM: Final = "sfumato.form"
_KIND: Final = b"application/x-www-form-urlencoded"
_FIELDS: Final = 100
"""Maximum number of fields of a form."""

Form: TypeAlias = tuple[tuple[str, str], ...]


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


def form_of(scope: Connection) -> Form:
    """Return the fields of a form in the order in which they came; none of a body that is empty.

    It is read here alone, so that whoever checks a form and whoever takes it see the same. Only URL-encoded
    ones are read: a form of parts names its own character set, and with it decoders that fail, or that return
    what is no text.

    Parameters
    ----------
    scope : dict
        ASGI's, of a request that `BodyGuard` has let in.

    Raises
    ------
    Refused
        With status 415 for another kind of content, and 400 for what is no form, or one of too many fields.
    """
    found: Form | None = scope.get(_FORM)
    if found is None:
        found = scope[_FORM] = _fields(scope)
    return found


def _fields(scope: Connection) -> Form:
    body = body_of(scope)
    if not body:
        return ()
    if header_of(scope, b"content-type").partition(b";")[0].strip().lower() != _KIND:
        raise Refused(415, "a form must be sent URL-encoded")
    try:
        return tuple(parse_qsl(body.decode("ascii"), keep_blank_values=True, max_num_fields=_FIELDS))
    except ValueError:
        raise Refused(400, f"a form must be in ASCII, with at most {_FIELDS} fields") from None


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
