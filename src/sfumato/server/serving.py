"""Run the shuffler's process: a socket, uvicorn, and limits on how long a connection may take."""

from __future__ import annotations

import asyncio
import logging
import signal
import socket
import ssl
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final

import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol

from sfumato import _check
from sfumato.crypto.secret_key import SecretKey
from sfumato.local.device.shuffle.collection import PublicCollection
from sfumato.server.group_commit import GroupCommit
from sfumato.server.limits import Limits
from sfumato.server.shuffler import Shuffler
from sfumato.server.web import Front

__all__ = ["serve"]

_LAST_PORT: Final = 65_535
_SIGNALS: Final = (signal.SIGINT, signal.SIGTERM)


class _Patient(H11Protocol):
    """HTTP/1.1 on one connection, which is cut when nothing comes of it for some seconds."""

    seconds = 30.0

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._left = 0
        self._timer = self.loop.call_later(self.seconds, self._late)

    def connection_lost(self, exc: Exception | None) -> None:
        self._timer.cancel()
        super().connection_lost(exc)

    def on_response_complete(self) -> None:
        super().on_response_complete()
        self._timer.cancel()
        self._timer = self.loop.call_later(self.seconds, self._late)

    def _late(self) -> None:
        left = self.transport.get_write_buffer_size()
        cycle: Any = self.cycle  # None before the first request
        if cycle and cycle.response_started and not cycle.response_complete and left != self._left:
            # A long answer, of which something was read.
            self._left = left
            self._timer = self.loop.call_later(self.seconds, self._late)
        else:
            self.transport.abort()


def _patient(wanted: float) -> type[_Patient]:
    class Patient(_Patient):
        seconds = wanted

    return Patient


def serve(
    collection: PublicCollection,
    key: SecretKey,
    folder: Path,
    *,
    specification: Mapping[str, Any] | None = None,
    host: str = "127.0.0.1",
    port: int = 0,
    limits: Limits | None = None,
    certificate: tuple[Path, Path] | None = None,
    say: Callable[[str], None] = print,
) -> None:
    """Run a shuffler until the process is asked to end (SIGINT or SIGTERM).

    Parameters
    ----------
    collection, key, folder
        See `Shuffler`.
    specification : mapping, optional
        What the service states to devices about the collection; ``collection.specification()`` by default.
    host : str
        An address of this machine.
    port : int
        0 for any that is free.
    limits : Limits, optional
        Of requests and connections; the defaults suit a small machine.
    certificate : tuple of two paths, optional
        A TLS certificate and its key, in PEM. Without it, put a proxy with TLS before the service: the seals
        hide answers in any case, but not the analyst's word.
    say : callable
        Receives lines for the operator: the service's address, failures of the store, and at the end how many
        envelopes were refused. Nothing is said of a client.

    Raises
    ------
    ParameterError
        If the address cannot be had, or the certificate not be used; and see `Shuffler`.

    Examples
    --------
    It runs until it is stopped; what cannot be served is refused before:

    >>> import tempfile
    >>> from sfumato import local
    >>> from sfumato.local.shuffle import Collection
    >>> analyst, shuffler = SecretKey.generate("analyst"), SecretKey.generate("shuffler")
    >>> oracle = local.RandomizedResponse(epsilon=2.0, domain=local.Domain(["yes", "no"]))
    >>> collection = Collection(
    ...     protocol=oracle, batch_size=4, analyst=analyst.public, shuffler=shuffler.public
    ... )
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     serve(collection.device, analyst, folder)
    Traceback (most recent call last):
        ...
    sfumato.errors.ParameterError: key must be that of the collection's shuffler, got another; use that one
    """
    limits = Limits() if limits is None else limits
    if certificate is not None:
        _check_certificate(*certificate)
    with Shuffler(collection, key, folder) as shuffler, _listening(host, port) as listening:
        taker = GroupCommit(shuffler, limits, say)
        stated = collection.specification() if specification is None else specification
        app = Front(shuffler, taker, limits, dict(stated), say)
        config = uvicorn.Config(
            app,
            http=_patient(limits.seconds),
            ws="none",
            loop="asyncio",
            lifespan="off",
            log_config=None,
            log_level="critical",
            access_log=False,
            server_header=False,
            proxy_headers=False,
            limit_concurrency=limits.connections,
            timeout_graceful_shutdown=10,
            ssl_certfile=None if certificate is None else str(certificate[0]),
            ssl_keyfile=None if certificate is None else str(certificate[1]),
        )
        logging.getLogger("asyncio").setLevel(logging.CRITICAL)  # its warnings may name peers
        scheme = "http" if certificate is None else "https"
        address, at = listening.getsockname()[:2]
        shown = f"[{address}]" if ":" in address else address
        running = uvicorn.Server(config)

        def end(*_: object) -> None:
            running.should_exit = True

        # uvicorn ends on these signals once it listens to them, and then raises them again here.
        before = {number: signal.signal(number, end) for number in _SIGNALS}
        try:
            say(f"collection {collection.id.hex()} at {scheme}://{shown}:{at}")
            running.run(sockets=[listening])
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)
            taker.stop()
            refused = ", ".join(f"{count} by {reason}" for reason, count in shuffler.refused.items())
            say(f"{shuffler.batches} batches released; refused envelopes: {refused}")


def _check_certificate(certificate: Path, key: Path) -> None:
    try:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(certificate, key, password="")  # nobody is asked for one
    except OSError as error:  # which SSL's errors are, too
        why = (error.strerror or type(error).__name__).lower()
        rule = f"be a PEM file that matches its key, without a password ({why})"
        _check.refuse("certificate", rule, str(certificate), "check both files")


def _listening(host: str, port: int) -> socket.socket:
    if _check.integer("port", port) > _LAST_PORT:
        _check.refuse("port", f"be at most {_LAST_PORT}", port, "0 is any that is free")
    listening = None
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(
            host, port, type=socket.SOCK_STREAM, proto=socket.IPPROTO_TCP
        )[0]
        # Of a socket whose protocol is not stated, asyncio does not know that small answers should not wait.
        listening = socket.socket(family, kind, protocol)
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind(address)
        listening.listen(1024)
    except (OSError, UnicodeError) as error:
        if listening is not None:
            listening.close()
        _check.refuse("host and port", f"be free here ({error})", f"{host}:{port}", "pass others")
    return listening
