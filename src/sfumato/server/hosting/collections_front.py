"""The HTTP interface of many collections: each has its own paths, after its name."""

from __future__ import annotations

from collections.abc import Mapping, MutableMapping
from typing import Any, Final, final

from sfumato.server.asgi import Receive, Refused, Send, answer, answer_json, answer_refused
from sfumato.server.hosting.hosted_collection import HostedCollection
from sfumato.server.monitoring.counters import Counters
from sfumato.server.monitoring.metrics import CONTENT_TYPE, openmetrics

__all__ = ["CollectionsFront"]

_OPERATOR: Final = ("/metrics", "/healthz")
_SHARED: Final = ("/v1/collections", "/healthz")


@final
class CollectionsFront:
    """An ASGI application around many collections.

    Parameters
    ----------
    hosted : mapping of str to HostedCollection
        By name; replaced as a whole by a reload.
    default : str or None
        The collection that has its paths without a name, too.
    process : Counters
        Of connections.
    operator_port : int or None
        Of the socket at which the operator alone asks.

    Notes
    -----
    ``/NAME/v1/reports`` and so on are the paths of `Front`. ``GET /v1/collections``: names, ids and times of
    all, which are public. ``GET /healthz``: whether all of them can store. ``GET /metrics``, at the
    operator's port alone: the numbers of all, each with the collection's name.
    """

    def __init__(
        self,
        hosted: Mapping[str, HostedCollection],
        default: str | None,
        process: Counters,
        operator_port: int | None,
    ) -> None:
        self.hosted, self.default = hosted, default
        self._process, self._operator_port = process, operator_port

    async def __call__(self, scope: MutableMapping[str, Any], receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["type"] != "http":
            return
        path = scope["path"]
        _, port = scope.get("server") or ("", None)
        operator = port is not None and port == self._operator_port
        if path in (_OPERATOR if operator else _SHARED):
            await self._shared(scope["method"], path, send)
            return
        name, _, rest = path.removeprefix("/").partition("/")
        found = self.hosted.get(name)
        if found is None and self.default is not None and not operator:
            found, rest = self.hosted.get(self.default), path.removeprefix("/")
        if found is None or operator:
            await answer_refused(send, Refused(404, "no such path"))
            return
        await found.front({**scope, "path": "/" + rest}, receive, send)

    async def _shared(self, method: str, path: str, send: Send) -> None:
        hosted = self.hosted
        if method != "GET":
            await answer_refused(send, Refused(405, "this path takes GET"))
        elif path == "/metrics":
            watched = {name: (each.collector, each.counters) for name, each in hosted.items()}
            await answer(send, 200, openmetrics(watched, self._process), kind=CONTENT_TYPE)
        elif path == "/healthz":
            ill = [name for name, each in hosted.items() if not each.front.healthy]
            health = {"status": "reports are not stored", "collections": ill} if ill else {"status": "ok"}
            await answer_json(send, 503 if ill else 200, health)
        else:
            listed = [
                {
                    "name": name,
                    "collection": each.collector.id.hex(),
                    "batch_size": each.collector.batch_size,
                    **each.front.window.times(),
                }
                for name, each in hosted.items()
            ]
            await answer_json(send, 200, {"collections": listed})
