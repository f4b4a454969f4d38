"""Run the shuffler's process."""

from __future__ import annotations

import socket
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Final

from sfumato import _check
from sfumato.crypto.secret_key import SecretKey
from sfumato.local.device.shuffle.collection import PublicCollection
from sfumato.local.device.shuffle.sparse_collection import SparseCollection
from sfumato.server.admission import allow_files
from sfumato.server.counters import Counters
from sfumato.server.cross_origin import CrossOrigin, checked_origins
from sfumato.server.group_commit import GroupCommit
from sfumato.server.http_process import check_certificate, listening_socket, place_of, run_application
from sfumato.server.limits import Limits
from sfumato.server.operator_log import OperatorLog
from sfumato.server.shuffler import Shuffler
from sfumato.server.web import Front

__all__ = ["serve"]

_COUNTERS: Final = "counters"


def serve(
    collection: PublicCollection | SparseCollection,
    key: SecretKey,
    folder: Path,
    *,
    specification: Mapping[str, Any] | None = None,
    host: str = "127.0.0.1",
    port: int = 0,
    limits: Limits | None = None,
    certificate: tuple[Path, Path] | None = None,
    metrics: tuple[str, int] | None = None,
    say: Callable[[str], None] = print,
    structured_log: bool = False,
    origins: Sequence[str] = (),
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
    metrics : tuple of str and int, optional
        An address of this machine and a port at which ``/metrics`` is answered, to whoever can connect there:
        how many reports wait is for the operator alone.
    say : callable
        Receives lines for the operator: the service's address, failures of the store, and at the end how many
        envelopes were refused. Nothing is said of a client.
    structured_log : bool
        Whether each line is a JSON object, with its time.
    origins : sequence of str
        Of pages that may report from browsers, such as ``"https://survey.example"``: none by default.

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
    pages = checked_origins(origins)
    if certificate is not None:
        check_certificate(*certificate)
    log = OperatorLog(say, structured=structured_log)
    public = collection.specification() if specification is None else specification
    with ExitStack() as stack:
        shuffler = stack.enter_context(Shuffler(collection, key, folder))
        counters = stack.enter_context(Counters(Path(folder) / _COUNTERS))
        listening = stack.enter_context(listening_socket(host, port))
        apart = None if metrics is None else stack.enter_context(_operator_socket(metrics, listening))
        taker = GroupCommit(shuffler, limits, log.failure("store-failed"), counters)
        failed = log.failure("request-failed")
        asked = None if apart is None else apart.getsockname()[1]
        app = Front(shuffler, taker, limits, dict(public), failed, counters=counters, operator_port=asked)
        try:
            run_application(
                CrossOrigin(app, pages),
                listening,
                limits,
                certificate=certificate,
                started=lambda url: _say_started(log, shuffler, limits, url, apart),
                further=[] if apart is None else [apart],
                count=counters.add,
            )
        finally:
            taker.stop()
            _say_stopped(log, shuffler)


def _operator_socket(metrics: tuple[str, int], listening: socket.socket) -> socket.socket:
    """Return the operator's socket; its port is another one, by which it is distinguished."""
    apart = listening_socket(*metrics)
    if apart.getsockname()[1] == listening.getsockname()[1]:
        apart.close()
        _check.refuse("metrics", "have a port of its own", metrics[1], "pass another")
    return apart


def _say_started(
    log: OperatorLog, shuffler: Shuffler, limits: Limits, url: str, apart: socket.socket | None
) -> None:
    name = shuffler.collection.id.hex()
    log("started", f"collection {name} at {url}", collection=name, url=url)
    if apart is not None:
        place = f"{url.partition(':')[0]}://{place_of(apart)}/metrics"
        log("metrics", f"metrics at {place}", url=place)
    if (allowed := allow_files(limits.connections)) < limits.connections:
        message = f"{allowed} connections at a time are all that the system's limit of open files allows"
        log("files", message, level="warning", connections=allowed)


def _say_stopped(log: OperatorLog, shuffler: Shuffler) -> None:
    refused = ", ".join(f"{count} by {reason}" for reason, count in shuffler.refused.items())
    message = f"{shuffler.batches} batches released; refused envelopes: {refused}"
    log("stopped", message, batches=shuffler.batches, refused=dict(shuffler.refused))
