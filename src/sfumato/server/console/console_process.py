"""Run a console as a process."""

from __future__ import annotations

import socket
from collections.abc import Callable, Sequence
from functools import partial

from sfumato.server.console.app import application
from sfumato.server.console.console import Console
from sfumato.server.console.settings import ConsoleSettings
from sfumato.server.http_process import check_certificate, listening_socket, run_application
from sfumato.server.limits import Limits
from sfumato.server.monitoring.operator_log import OperatorLog

__all__ = ["serve_console"]


def serve_console(
    settings: ConsoleSettings,
    say: Callable[[str], None] = print,
    *,
    structured_log: bool = False,
    started: Callable[[str], None] = lambda origin: None,
) -> None:
    """Run a console until the process is asked to end (SIGINT or SIGTERM).

    Parameters
    ----------
    settings : ConsoleSettings
    say : callable
        Receives lines for the operator; nothing is said of who visits.
    structured_log : bool
        Whether each line is a JSON object, with its time.
    started : callable
        Receives the address at which browsers reach it, before the first request is answered.

    Raises
    ------
    ParameterError
        If the address cannot be had, or the certificate not be used.
    LedgerUnavailable, LedgerCorrupt
        If the ledger cannot be used.
    """
    log = OperatorLog(say, structured=structured_log)

    def begin(origin: str, url: str) -> None:
        log("started", f"console at {origin}", url=origin, listens=url)
        started(origin)

    if settings.certificate is not None:
        check_certificate(*settings.certificate)
    with (
        Console(settings, log.failure("run-failed")) as console,
        listening_socket(settings.host, settings.port) as listening,
    ):
        console.start()
        origins = settings.origins or _own_origins(listening, https=settings.certificate is not None)
        run_application(
            application(console, origins, log.failure("page-failed")),
            listening,
            Limits(per_address=None) if settings.behind_proxy else Limits(),
            certificate=settings.certificate,
            started=partial(begin, origins[0]),
        )


def _own_origins(listening: socket.socket, *, https: bool) -> Sequence[str]:
    """Return the origins of a service that browsers on this machine reach alone."""
    scheme, port = "https" if https else "http", listening.getsockname()[1]
    return [f"{scheme}://{host}:{port}" for host in ("localhost", "127.0.0.1", "[::1]")]
