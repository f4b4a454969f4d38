"""What an ASGI application is called with, and answers in one piece.

>>> header_of({"headers": [(b"Host", b"survey.example")]}, b"host")
b'survey.example'
"""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, MutableMapping, Sequence
from typing import Any, Final, TypeAlias

__all__ = [
    "Application",
    "Connection",
    "Message",
    "Receive",
    "Refusal",
    "Refused",
    "Send",
    "answer",
    "answer_json",
    "answer_refused",
    "begin_answer",
    "header_of",
    "headers_of",
    "refuse_in_json",
]

Connection: TypeAlias = MutableMapping[str, Any]
"""ASGI's scope: what is known of a request before its body."""
Message: TypeAlias = MutableMapping[str, Any]
Receive: TypeAlias = Callable[[], Awaitable[Message]]
Send: TypeAlias = Callable[[Message], Awaitable[None]]
Application: TypeAlias = Callable[[Connection, Receive, Send], Awaitable[None]]

_JSON: Final = b"application/json"


class Refused(Exception):
    """A request that gets an error for an answer.

    Parameters
    ----------
    status : int
    why : str
        Depends on the request's own form only.
    limit : str, optional
        The counter of requests beyond a limit.
    headers : sequence of pairs of bytes
        Of the answer, besides.
    """

    def __init__(
        self, status: int, why: str, limit: str | None = None, headers: Sequence[tuple[bytes, bytes]] = ()
    ) -> None:
        super().__init__(why)
        self.status, self.why, self.limit, self.headers = status, why, limit, tuple(headers)


Refusal: TypeAlias = Callable[[Connection, Send, Refused], Awaitable[None]]
"""Answers a request that was refused before the application saw it: a page, or JSON."""


def headers_of(scope: Connection, name: bytes) -> list[bytes]:
    """Return the values of all headers of a name, which is in lower case."""
    return [value for key, value in scope["headers"] if key.lower() == name]


def header_of(scope: Connection, name: bytes) -> bytes:
    """Return the value of the first header of a name, which is in lower case; empty if there is none."""
    found: bytes = next((value for key, value in scope["headers"] if key.lower() == name), b"")
    return found


async def answer_refused(send: Send, refused: Refused) -> None:
    """Answer with an error, and close the connection unless only the path was wrong."""
    close, again = refused.status != 404, refused.status == 503
    content = {"error": refused.why}
    await answer_json(send, refused.status, content, close=close, again=again, extra=refused.headers)


async def refuse_in_json(scope: Connection, send: Send, refused: Refused) -> None:
    """Answer any request with an error in JSON: a `Refusal`."""
    await answer_refused(send, refused)


async def answer_json(
    send: Send,
    status: int,
    content: dict[str, Any],
    *,
    close: bool = False,
    again: bool = False,
    extra: Sequence[tuple[bytes, bytes]] = (),
) -> None:
    """Answer in JSON; ``close`` ends the connection, ``again`` asks to try once more."""
    extra = [*extra, *([(b"connection", b"close")] if close else [])]
    extra += [(b"retry-after", b"1")] if again else []
    await answer(send, status, json.dumps(content).encode(), extra=extra)


async def answer(
    send: Send,
    status: int,
    body: bytes,
    *,
    kind: bytes = _JSON,
    extra: list[tuple[bytes, bytes]] | None = None,
) -> None:
    """Answer with a body in one piece."""
    await begin_answer(send, status, kind, len(body), extra or [])
    await send({"type": "http.response.body", "body": body})


async def begin_answer(
    send: Send, status: int, kind: bytes, size: int, extra: list[tuple[bytes, bytes]]
) -> None:
    """Send the head of an answer that no cache stores."""
    headers = [
        (b"content-type", kind),
        (b"content-length", str(size).encode()),
        (b"cache-control", b"no-store"),
        *extra,
    ]
    await send({"type": "http.response.start", "status": status, "headers": headers})
