"""An aggregator's HTTP interface: the draft's resources, tokens, and problem documents for errors."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any, Final, TypeAlias, final

from sfumato.federated.dap.hpke_config import encoded_configs
from sfumato.federated.dap.problem_document import PROBLEM_TYPE, Problem, ProblemType
from sfumato.federated.dap.report_messages import ID_SIZE, TASK_ID_SIZE
from sfumato.federated.dap.task import base64url, unbase64url
from sfumato.server.dap.helper import Helper
from sfumato.server.dap.leader import Leader
from sfumato.server.dap.upload_limits import network_of

__all__ = ["DapFront"]

Message: TypeAlias = MutableMapping[str, Any]
Receive: TypeAlias = Callable[[], Awaitable[Message]]
Send: TypeAlias = Callable[[Message], Awaitable[None]]
Answer: TypeAlias = tuple[int, bytes, str]
Handler: TypeAlias = Callable[[bytes, bytes], bytes | None]
"""Takes the id in a path, or the network that reports come from, and a request's body."""

_MEDIA: Final = "application/dap-"
_DAY: Final = (b"cache-control", b"max-age=86400")
_NEVER: Final = (b"cache-control", b"no-store")


@final
class DapFront:
    """An ASGI application around a leader or a helper.

    Parameters
    ----------
    aggregator : Leader or Helper
    body : int
        Maximum number of bytes of a request.
    prefix : str
        The path of the aggregator's URL.
    changed : callable
        Called after each request that a leader took.
    failed : callable
        Called with requests that no answer was foreseen for, in words for the operator.

    Notes
    -----
    A task's id is looked at first, then the token, then the body: who has no token learns which task is
    served, and nothing else.
    """

    def __init__(
        self,
        aggregator: Leader | Helper,
        body: int,
        prefix: str,
        changed: Callable[[], None],
        failed: Callable[[str], None],
    ) -> None:
        self._party, self._body = aggregator.party, body
        self._prefix, self._changed, self._failed = prefix.rstrip("/"), changed, failed
        self._configs = encoded_configs(aggregator.party.key.config)
        self._resources = _resources(aggregator)
        self._task_id = aggregator.party.task.task_id

    async def __call__(self, scope: Message, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["type"] != "http":
            return
        try:
            status, body, media = await self._answered(scope, receive)
            await _send(send, status, body, media)
        except Problem as problem:
            named = self._task_id if base64url(self._task_id) in scope["path"] else None
            document, again = problem.document(named), problem.retry_after
            await _send(
                send, problem.status, document, PROBLEM_TYPE, close=problem.status == 413, again=again
            )
        except _Gone:
            return
        except Exception as error:
            self._failed(f"a request failed by a fault of this program or machine ({type(error).__name__})")
            raise

    async def _answered(self, scope: Message, receive: Receive) -> Answer:
        path = scope["path"]
        if not path.startswith(self._prefix + "/"):
            raise Problem(404, "no such path")
        parts = path[len(self._prefix) + 1 :].split("/")
        if parts == ["hpke_config"]:
            if scope["method"] != "GET":
                raise Problem(405, "this path takes GET")
            return 200, self._configs, "hpke-config-list"
        if parts[0] != "tasks" or len(parts) not in (3, 4):
            raise Problem(404, "no such path")
        if unbase64url(parts[1], TASK_ID_SIZE) != self._task_id:
            raise Problem(ProblemType.UNRECOGNIZED_TASK, "no such task")
        return await self._resource(scope, receive, parts[2:])

    async def _resource(self, scope: Message, receive: Receive, parts: list[str]) -> Answer:
        methods = self._resources.get((parts[0], len(parts)))
        if methods is None:
            raise Problem(404, "no such path")
        found = methods.get(scope["method"])
        if found is None:
            raise Problem(405, f"this path takes {', '.join(methods)}")
        handler, asked, answered = found
        if parts[0] != "reports" and not self._party.accepts(_token(scope)):
            raise Problem(401, "this needs the token of who may ask")
        client = scope.get("client") or (None,)
        number = unbase64url(parts[1], ID_SIZE) if len(parts) == 2 else network_of(client[0])
        if number is None:
            raise Problem(404, "an id is 16 bytes in the alphabet of URLs")
        if asked and _header(scope, b"content-type").partition(";")[0].strip() != _MEDIA + asked:
            raise Problem(415, f"this takes {_MEDIA}{asked}")
        body = await self._read(scope, receive) if asked else b""
        result = await asyncio.to_thread(handler, number, body)
        self._changed()
        if result is None or (not result and parts[0] == "reports"):
            return 200, b"", ""
        return (200, result, answered) if result else (202, b"", "")

    async def _read(self, scope: Message, receive: Receive) -> bytes:
        length = _header(scope, b"content-length")
        if length.isdecimal() and int(length[:20]) > self._body:
            raise Problem(413, f"a request has at most {self._body} bytes")
        body, more = bytearray(), True
        while more:
            message = await receive()
            if message["type"] == "http.disconnect":
                raise _Gone
            body += message.get("body", b"")
            more = message.get("more_body", False)
            if len(body) > self._body:
                raise Problem(413, f"a request has at most {self._body} bytes")
        return bytes(body)


class _Gone(Exception):
    """Who asked has gone."""


def _resources(
    aggregator: Leader | Helper,
) -> dict[tuple[str, int], dict[str, tuple[Handler, str, str]]]:
    """Return by path and number of its parts, and by method: what answers, and both messages' names."""
    if isinstance(aggregator, Leader):
        leader = aggregator
        job = "collection-job"
        return {
            ("reports", 1): {"POST": (leader.upload, "upload-req", "upload-resp")},
            ("collection_jobs", 2): {
                "PUT": (leader.put_collection, f"{job}-req", f"{job}-resp"),
                "GET": (lambda number, _: leader.get_collection(number), "", f"{job}-resp"),
                "DELETE": (lambda number, _: leader.delete_collection(number), "", ""),
            },
        }
    helper = aggregator
    share, answer = "aggregate-share", "aggregation-job-resp"
    return {
        ("aggregation_jobs", 2): {
            "PUT": (helper.put_job, "aggregation-job-init-req", answer),
            "POST": (helper.continue_job, "aggregation-job-continue-req", answer),
            "GET": (lambda number, _: helper.get_job(number), "", answer),
            "DELETE": (lambda number, _: helper.delete_job(number), "", ""),
        },
        ("aggregate_shares", 2): {
            "PUT": (helper.put_share, f"{share}-req", share),
            "GET": (lambda number, _: helper.get_share(number), "", share),
            "DELETE": (lambda number, _: helper.delete_share(number), "", ""),
        },
    }


def _header(scope: Message, name: bytes) -> str:
    found: bytes = next((value for key, value in scope["headers"] if key.lower() == name), b"")
    return found.decode("latin-1")


def _token(scope: Message) -> str | None:
    kind, _, token = _header(scope, b"authorization").partition(" ")
    return token.strip() if kind.lower() == "bearer" else None


async def _send(
    send: Send, status: int, body: bytes, media: str, *, close: bool = False, again: int | None = None
) -> None:
    headers = [(b"content-length", str(len(body)).encode()), _NEVER]
    if media:
        kind = media if media == PROBLEM_TYPE else _MEDIA + media
        headers.append((b"content-type", kind.encode()))
    if media == "hpke-config-list":
        headers[1] = _DAY
    if status == 202 or again is not None:
        headers.append((b"retry-after", b"%d" % (again or 1)))
    if status == 401:
        headers.append((b"www-authenticate", b"Bearer"))
    if close:
        headers.append((b"connection", b"close"))
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})
