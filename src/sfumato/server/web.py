"""A collector's HTTP interface: no cookies, no logs of requests, and not a word of who asked."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, MutableMapping
from pathlib import Path
from typing import Any, Final, final

from sfumato.server.admission import origin
from sfumato.server.asgi import (
    Receive,
    Refused,
    Send,
    answer,
    answer_json,
    answer_refused,
    begin_answer,
    header_of,
)
from sfumato.server.collector import Collector
from sfumato.server.group_commit import GroupCommit, NotStored
from sfumato.server.limits import Limits
from sfumato.server.monitoring.counters import Counters
from sfumato.server.monitoring.metrics import CONTENT_TYPE, openmetrics
from sfumato.server.periods.collection_window import CollectionWindow
from sfumato.server.request_room import NoRoom
from sfumato.server.shared_limits import Busy

__all__ = ["Front"]

_BINARY: Final = b"application/octet-stream"
_PIECE: Final = 1 << 16
_BATCH: Final = "/v1/batches/"
_PUBLIC: Final = ("/v1/reports", "/v1/collection", "/v1/keys", "/v1/status", "/healthz")
_OPERATOR: Final = ("/metrics", "/healthz")
_CLOSED: Final = {"early": (403, "the collection has not begun"), "expired": (410, "the collection is over")}


@final
class Front:
    """An ASGI application around one collector.

    Parameters
    ----------
    collector : Collector
    taker : GroupCommit
        Of that collector.
    limits : Limits
    specification : dict
        The collection as JSON, for devices that ask.
    failed : callable
        Called with requests that no answer was foreseen for, in words for the operator.
    counters : Counters, optional
        Of what is refused; shown with the collector's own numbers.
    operator_port : int, optional
        Of the socket at which the operator alone asks.
    window : CollectionWindow, optional
        When reports are taken; always, by default.

    Notes
    -----
    ``GET /v1/collection``: what devices need, and all of it public. ``GET /v1/status``: the collection's id,
    its batch size, and how many batches were released: nothing else that depends on reports, so not how many
    wait. ``POST /v1/reports``: one or more envelopes, one after the other; the answer says how many were
    taken and how many refused, and a nonce that was taken before is answered as if it were new. Before and
    after the collection's time the answer is 403 and 410, and nothing is read. ``GET /v1/keys``: which keys
    to seal for, if it is a shuffler. ``GET /v1/batches/N``: a released batch, for who has the analyst's word;
    not where there is no analyst. ``GET /healthz``: whether reports can be stored.
    ``GET /metrics``, at the operator's port alone, which has no other path but that one: see
    `sfumato.server.monitoring.metrics`.
    """

    def __init__(
        self,
        collector: Collector,
        taker: GroupCommit,
        limits: Limits,
        specification: Mapping[str, Any],
        failed: Callable[[str], None],
        *,
        counters: Counters | None = None,
        operator_port: int | None = None,
        window: CollectionWindow | None = None,
    ) -> None:
        self._counters = Counters() if counters is None else counters
        self._operator_port = operator_port
        self._collector, self._taker = collector, taker
        self._width = collector.envelope_width
        self._body = max(limits.body, self._width)
        self._shared = taker.shared
        self.window = CollectionWindow() if window is None else window
        self._specification, self._failed = json.dumps(specification).encode(), failed

    async def __call__(self, scope: MutableMapping[str, Any], receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["type"] != "http":
            return
        try:
            await self._route(scope, receive, send)
        except Refused as refused:
            if refused.limit is not None:
                self._counters.add(refused.limit)
            await answer_refused(send, refused)
        except NoRoom:
            self._counters.add("unfinished")
            await answer_refused(send, Refused(503, "too much at a time; try again"))
        except Busy as busy:
            self._counters.add(busy.limit)
            await answer_json(send, busy.status, {"error": "too much at a time; try again"}, again=True)
        except NotStored:
            await answer_json(send, 503, {"error": "not stored; try again"}, again=True)
        except Exception as error:
            self._failed(f"a request failed by a fault of this program or machine ({type(error).__name__})")
            raise

    async def _route(self, scope: MutableMapping[str, Any], receive: Receive, send: Send) -> None:
        method, path = scope["method"], scope["path"]
        _, port = scope.get("server") or ("", None)
        operator = port is not None and port == self._operator_port
        if not self._serves(path, operator=operator):
            raise Refused(404, "no such path")
        allowed = "POST" if path == "/v1/reports" else "GET"
        if method != allowed:
            raise Refused(405, f"this path takes {allowed}")
        if path == "/healthz":
            health = (200, "ok") if self.healthy else (503, "reports are not stored")
            await answer_json(send, health[0], {"status": health[1]})
        elif path == "/metrics":
            page = openmetrics({"": (self._collector, self._counters)}, self._counters)
            await answer(send, 200, page, kind=CONTENT_TYPE)
        elif path == "/v1/reports":
            host = (scope.get("client") or ("",))[0] if self._shared.by_address else ""
            address = origin(host) if host else ""
            await self._reports(header_of(scope, b"content-length"), address, receive, send)
        elif path == "/v1/collection":
            await answer(send, 200, self._specification)
        elif path == "/v1/keys":
            await answer_json(send, 200, dict(self._collector.key_offer() or {}))
        elif path == "/v1/status":
            known = self._collector
            status = {"collection": known.id.hex(), "batch_size": known.batch_size}
            await answer_json(send, 200, {**status, "batches": known.batches, **self.window.times()})
        else:
            await self._batch(path.removeprefix(_BATCH), header_of(scope, b"authorization"), send)

    @property
    def healthy(self) -> bool:
        """Whether reports can be stored."""
        return self._taker.healthy

    def _serves(self, path: str, *, operator: bool) -> bool:
        """Return whether there is such a path at this port, for this kind of collector."""
        if operator:
            return path in _OPERATOR
        if path == "/v1/keys":
            return self._collector.key_offer() is not None
        if path.startswith(_BATCH):
            return self._collector.analysts is not None
        return path in _PUBLIC

    async def _reports(self, length: bytes, address: str, receive: Receive, send: Send) -> None:
        self._require_open()
        self._shared.check_stored()
        if length.isdigit() and int(length[:20]) > self._body:
            raise Refused(413, f"a request has at most {self._body} bytes", "large")
        with self._shared.room.reserved() as reserve:
            body = bytearray()
            more = True
            while more:
                message = await receive()
                if message["type"] == "http.disconnect":
                    return
                body += message.get("body", b"")
                more = message.get("more_body", False)
                if len(body) > self._body:
                    raise Refused(413, f"a request has at most {self._body} bytes", "large")
                reserve(len(body))
            self._require_open()  # what began in time and came late is late
            await self._stored(body, address, send)

    def _require_open(self) -> None:
        if (closed := self.window.closed()) is not None:
            raise Refused(*_CLOSED[closed], closed)

    async def _stored(self, body: bytearray, address: str, send: Send) -> None:
        width = self._width
        # What is no row of whole envelopes is one refused envelope.
        whole = len(body) > 0 and len(body) % width == 0
        envelopes = [bytes(body[at : at + width]) for at in range(0, len(body), width)] if whole else [b""]
        taken = await self._taker.take(envelopes, address)
        counts = {"taken": sum(taken), "refused": len(taken) - sum(taken)}
        await answer_json(send, 200 if all(taken) else 422, counts)

    async def _batch(self, number: str, authorization: bytes, send: Send) -> None:
        kind, _, word = authorization.partition(b" ")
        analysts = self._collector.analysts or ()
        known_by = any(analyst.known_by(word.strip()) for analyst in analysts)
        if kind.lower() != b"bearer" or not known_by:
            raise Refused(401, "released batches are the analyst's")
        known = number.isascii() and number.isdigit() and 1 <= int(number[:20]) <= self._collector.batches
        path = self._collector.path(int(number[:20])) if known else Path()
        if not known or not path.is_file():
            raise Refused(404, "no such batch")
        await _file(send, path)


async def _file(send: Send, path: Path) -> None:
    with path.open("rb") as file:
        await begin_answer(send, 200, _BINARY, path.stat().st_size, [])
        while piece := file.read(_PIECE):
            await send({"type": "http.response.body", "body": piece, "more_body": True})
    await send({"type": "http.response.body", "body": b""})
