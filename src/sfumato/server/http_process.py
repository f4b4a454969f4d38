"""Run an ASGI application as a process: a socket, uvicorn, and limits on how long a connection may take."""

from __future__ import annotations

import asyncio
import logging
import signal
import socket
import ssl
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, final

import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol

from sfumato import _check
from sfumato.server.admission import Admission, allow_files, origin
from sfumato.server.cross_origin import CrossOrigin
from sfumato.server.limits import Limits
from sfumato.server.listening import Listening
from sfumato.server.monitoring.operator_log import OperatorLog

__all__ = [
    "Sockets",
    "check_certificate",
    "listening_socket",
    "opened_sockets",
    "place_of",
    "run_application",
]

_LAST_PORT: Final = 65_535
_SIGNALS: Final = (signal.SIGINT, signal.SIGTERM)
_BACKLOG: Final = 4096
_HEAD: Final = 1 << 14
"""Maximum bytes of the head of a request."""
_FAREWELL: Final = 2.0
"""Seconds that who is refused has to read why."""
_WHY: Final = b'{"error": "too many at a time; try again"}'
_FULL: Final = (
    b"HTTP/1.1 503 Service Unavailable\r\ncontent-type: application/json\r\nretry-after: 1\r\n"
    b"cache-control: no-store\r\nconnection: close\r\ncontent-length: %d\r\n\r\n%s"
) % (len(_WHY), _WHY)


class _Patient(H11Protocol):
    """HTTP/1.1 on one connection: refused if it is one too many, and cut if it is slow."""

    limits: Limits
    admission: Admission
    count: Callable[[str], None]
    unlimited: frozenset[int]
    _timer: asyncio.TimerHandle | None = None

    @property
    def _answers(self) -> bool:
        """Whether there is a request that is not answered yet."""
        cycle: Any = self.cycle  # None before the first request
        return cycle is not None and not cycle.response_complete

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._left, self._waits = 0, False
        self._address = origin(self.client[0] if self.client else "")
        self._counted = self.server is None or self.server[1] not in self.unlimited
        refused = self.admission.enter(self._address) if self._counted else None
        self._admitted = refused is None
        if refused is None:
            self._wait()
        else:
            self.count(refused)
            self._turn_away()

    def connection_lost(self, exc: Exception | None) -> None:
        if self._timer is not None:
            self._timer.cancel()
        if not self._admitted:
            self.admission.refusing -= 1
        elif self._counted:
            self.admission.leave(self._address)
        super().connection_lost(exc)

    def _turn_away(self) -> None:
        """Answer before anything was asked, and close: at once if many are refused."""
        crowded = self.admission.crowded
        self.admission.refusing += 1
        self.transport.write(_FULL)
        if crowded or not self.transport.can_write_eof():
            self.transport.close()
        else:  # A socket that is closed before it was read would take the answer back.
            self.transport.write_eof()
            self._timer = self.loop.call_later(_FAREWELL, self.transport.abort)

    def _wait(self) -> None:
        """Begin to wait: for an answer to be over, if there is a request, and else for one to begin."""
        self._waits = not self._answers
        seconds = min(self.limits.seconds, self.limits.head_seconds) if self._waits else self.limits.seconds
        if self._timer is not None:
            self._timer.cancel()
        self._timer = self.loop.call_later(seconds, self._late)

    def data_received(self, data: bytes) -> None:
        if not self._admitted:
            return
        super().data_received(data)
        if self._waits and self._answers:
            self._wait()

    def on_response_complete(self) -> None:
        super().on_response_complete()
        self._wait()

    def _late(self) -> None:
        left = self.transport.get_write_buffer_size()
        cycle: Any = self.cycle
        if self._answers and cycle.response_started and left != self._left:
            # A long answer, of which something was read.
            self._left = left
            self._wait()
        else:
            if self._answers or cycle is None:  # and not one that was answered, and waits for more
                self.count("late")
            self.transport.abort()


def run_application(
    app: Any,
    listening: socket.socket,
    limits: Limits,
    *,
    certificate: tuple[Path, Path] | None = None,
    started: Callable[[str], None],
    further: Sequence[socket.socket] = (),
    count: Callable[[str], None] = lambda reason: None,
) -> None:
    """Serve an application on a socket until the process is asked to end (SIGINT or SIGTERM).

    Parameters
    ----------
    app : ASGI application
    listening : socket.socket
        As `listening_socket` returned it.
    limits : Limits
        Of connections.
    certificate : tuple of two paths, optional
        A TLS certificate and its key, in PEM.
    started : callable
        Receives the service's URL, before the first request is answered.
    further : sequence of socket.socket
        More sockets to serve it on, without a limit on connections: those of the operator. The application
        sees by its address where a request came.
    count : callable, optional
        Called for each connection that is refused or cut, with the limit: ``"connections"``, ``"address"`` or
        ``"late"``.
    """
    admission = Admission(allow_files(limits.connections), limits.per_address)
    unlimited = frozenset(each.getsockname()[1] for each in further)
    parts = {
        "limits": limits,
        "admission": admission,
        "count": staticmethod(count),
        "unlimited": unlimited,
    }
    config = uvicorn.Config(
        app,
        http=type("Patient", (_Patient,), parts),
        ws="none",
        loop="asyncio",
        lifespan="off",
        log_config=None,
        log_level="critical",
        access_log=False,
        server_header=False,
        proxy_headers=False,
        backlog=_BACKLOG,
        h11_max_incomplete_event_size=_HEAD,
        timeout_graceful_shutdown=10,
        ssl_certfile=None if certificate is None else str(certificate[0]),
        ssl_keyfile=None if certificate is None else str(certificate[1]),
    )
    logging.getLogger("asyncio").setLevel(logging.CRITICAL)  # its warnings may name peers
    scheme = "http" if certificate is None else "https"
    running = uvicorn.Server(config)

    def end(*_: object) -> None:
        running.should_exit = True

    # uvicorn ends on these signals once it listens to them, and then raises them again here.
    before = {number: signal.signal(number, end) for number in _SIGNALS}
    try:
        started(f"{scheme}://{place_of(listening)}")
        running.run(sockets=[listening, *further])
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def place_of(listening: socket.socket) -> str:
    """Return the address and port of a socket as a URL has them."""
    address, at = listening.getsockname()[:2]
    return f"[{address}]:{at}" if ":" in address else f"{address}:{at}"


def check_certificate(certificate: Path, key: Path) -> None:
    """Refuse a certificate that cannot be used."""
    try:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(certificate, key, password="")  # nobody is asked for one
    except OSError as error:  # which SSL's errors are, too
        why = (error.strerror or type(error).__name__).lower()
        rule = "be a PEM file that matches its key, without a password"
        _check.refuse_state("certificate", rule, f"{str(certificate)!r} is not: {why}", "check both files")


def listening_socket(host: str, port: int) -> socket.socket:
    """Return a socket that listens at an address; port 0 is any that is free."""
    if _check.integer("port", port) > _LAST_PORT:
        _check.refuse("port", f"be at most {_LAST_PORT}", port, "pass 0 for any that is free")
    listening = None
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(
            host, port, type=socket.SOCK_STREAM, proto=socket.IPPROTO_TCP
        )[0]
        # Of a socket whose protocol is not stated, asyncio does not know that small answers should not wait.
        listening = socket.socket(family, kind, protocol)
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind(address)
        listening.listen(_BACKLOG)
    except (OSError, UnicodeError) as error:
        if listening is not None:
            listening.close()
        found = f"{host}:{port} is not: {error}"
        _check.refuse_state("host and port", "be free on this machine", found, "pass others")
    return listening


@final
@dataclass(frozen=True, slots=True)
class Sockets:
    """Sockets that listen.

    Parameters
    ----------
    listening : Listening
        What they were made of.
    public : socket.socket
    operator : socket.socket or None
    """

    listening: Listening
    public: socket.socket
    operator: socket.socket | None

    @property
    def operator_port(self) -> int | None:
        """The port at which the operator alone asks."""
        port: int | None = None if self.operator is None else self.operator.getsockname()[1]
        return port

    def run(
        self,
        app: Any,
        log: OperatorLog,
        started: Callable[[str], None],
        count: Callable[[str], None],
    ) -> None:
        """Serve an application until the process is asked to end; see `run_application`."""
        run_application(
            CrossOrigin(app, self.listening.origins),
            self.public,
            self.listening.limits,
            certificate=self.listening.certificate,
            started=lambda url: self._say_started(log, started, url),
            further=[] if self.operator is None else [self.operator],
            count=count,
        )

    def _say_started(self, log: OperatorLog, started: Callable[[str], None], url: str) -> None:
        started(url)
        if self.operator is not None:
            place = f"{url.partition(':')[0]}://{place_of(self.operator)}/metrics"
            log("metrics", f"metrics at {place}", url=place)
        wanted = self.listening.limits.connections
        if (allowed := allow_files(wanted)) < wanted:
            message = f"{allowed} connections at a time are all that the system's limit of open files allows"
            log("files", message, level="warning", connections=allowed)


@contextmanager
def opened_sockets(where: Listening) -> Iterator[Sockets]:
    """Hold the socket of the service, and that of the operator if there is to be one."""
    if where.certificate is not None:
        check_certificate(*where.certificate)
    with ExitStack() as stack:
        public = stack.enter_context(listening_socket(where.host, where.port))
        apart = None
        if where.metrics is not None:
            apart = stack.enter_context(listening_socket(*where.metrics))
            # By its port it is distinguished.
            if apart.getsockname()[1] == public.getsockname()[1]:
                _check.refuse("metrics", "have a port of its own", where.metrics[1], "pass another")
        yield Sockets(where, public, apart)
