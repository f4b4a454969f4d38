"""One connection, on a transport that notes what is done with it: refused, cut, or read to its end."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any

import uvicorn
from uvicorn.server import ServerState

from sfumato.server.admission import Admission
from sfumato.server.http_process import _Patient
from sfumato.server.limits import Limits


class Transport:
    """Notes the calls; bytes that were written wait until `left` is changed."""

    def __init__(self, port: int = 1, *, eof: bool = True) -> None:
        self.done: list[str] = []
        self.written = b""
        self.left, self._port, self._eof = 0, port, eof

    def get_extra_info(self, name: str) -> Any:
        return {"sockname": ("127.0.0.1", self._port), "peername": ("192.0.2.1", 5)}.get(name)

    def write(self, data: bytes) -> None:
        self.written += data

    def can_write_eof(self) -> bool:
        return self._eof

    def write_eof(self) -> None:
        self.done.append("eof")

    def close(self) -> None:
        self.done.append("close")

    def abort(self) -> None:
        self.done.append("abort")

    def get_write_buffer_size(self) -> int:
        return self.left


def connection(admission: Admission, counted: list[str], transport: Transport) -> Any:
    """A new connection; at port 2 it is the operator's."""
    parts = {
        "limits": Limits(head_seconds=7.0, seconds=50.0),
        "admission": admission,
        "count": staticmethod(counted.append),
        "unlimited": frozenset({2}),
    }
    config = uvicorn.Config(lambda: None, http=_Patient, ws="none", lifespan="off", log_config=None)
    made: Any = type("Patient", (_Patient,), parts)(config, ServerState(), {})
    made.connection_made(transport)
    return made


def waits(made: Any) -> int:
    """For how many seconds its timer was set."""
    seconds: float = made._timer.when() - made.loop.time()
    return round(seconds)


def test_who_is_refused_has_time_to_read_why_unless_many_are() -> None:
    async def run() -> None:
        admission, counted = Admission(connections=1, per_address=None), list[str]()
        first = connection(admission, counted, Transport())
        assert waits(first) == 7
        second = Transport()
        refused = connection(admission, counted, second)
        assert second.done == ["eof"]
        assert second.written.startswith(b"HTTP/1.1 503 Service Unavailable\r\n")
        assert waits(refused) == 2
        assert admission.refusing == 1
        refused.data_received(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")  # is not looked at
        assert refused.cycle is None
        without = Transport(eof=False)  # TLS
        connection(admission, counted, without)
        assert without.done == ["close"]
        admission.refusing = 448
        crowded = Transport()
        last = connection(admission, counted, crowded)
        assert crowded.done == ["close"]
        assert crowded.written == second.written
        assert admission.refusing == 449
        last.connection_lost(OSError())
        refused.connection_lost(OSError())
        assert refused._timer.cancelled()
        assert (admission.refusing, admission.admitted) == (447, 1)
        assert counted == ["connections"] * 3
        operator = connection(admission, counted, Transport(port=2))
        assert admission.admitted == 1
        operator.connection_lost(OSError())
        first.connection_lost(OSError())
        assert admission.admitted == 0

    asyncio.run(run())


def test_a_long_answer_goes_on_while_it_is_read() -> None:
    async def run() -> None:
        counted: list[str] = []
        transport = Transport()
        made = connection(Admission(connections=9, per_address=9), counted, transport)
        made.cycle = SimpleNamespace(response_started=True, response_complete=False)
        transport.left = 1000
        made._late()
        assert waits(made) == 50
        transport.left = 900  # something was read
        made._late()
        assert (transport.done, counted) == ([], [])
        made._late()  # and now nothing
        assert (transport.done, counted) == (["abort"], ["late"])
        made.cycle.response_complete = True
        made._late()  # answered, and no further request came: nothing is refused
        assert (transport.done, counted) == (["abort"] * 2, ["late"])
        made.cycle = SimpleNamespace(response_started=False, response_complete=False)
        transport.left = 0
        made._late()  # a request without an answer
        assert counted == ["late"] * 2
        made.cycle = None
        made._late()
        assert counted == ["late"] * 3

    asyncio.run(run())
