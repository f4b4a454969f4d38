"""Run the process of one shuffler, or of one collector of plain local reports."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Final

from sfumato.crypto.secret_key import SecretKey
from sfumato.local.device.base.public_question import PublicQuestion
from sfumato.local.device.shuffle.collection import PublicCollection
from sfumato.local.device.shuffle.sparse_collection import SparseCollection
from sfumato.server.collector import Collector
from sfumato.server.group_commit import GroupCommit
from sfumato.server.http_process import opened_sockets
from sfumato.server.listening import Listening
from sfumato.server.local_collector import LocalCollector
from sfumato.server.monitoring.counters import Counters
from sfumato.server.monitoring.operator_log import OperatorLog
from sfumato.server.shuffler import Shuffler
from sfumato.server.web import Front

__all__ = ["serve", "serve_local"]

_COUNTERS: Final = "counters"


def serve(
    collection: PublicCollection | SparseCollection,
    key: SecretKey,
    folder: Path,
    *,
    specification: Mapping[str, Any] | None = None,
    listening: Listening | None = None,
) -> None:
    """Run a shuffler until the process is asked to end (SIGINT or SIGTERM).

    Parameters
    ----------
    collection, key, folder
        See `Shuffler`.
    specification : mapping, optional
        What the service states to devices about the collection; ``collection.specification()`` by default.
    listening : Listening, optional
        Where, with what limits, and what the operator hears. Without a certificate, put a proxy with TLS
        before the service: the seals hide answers in any case, but not the analyst's word.

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
    sfumato.errors.ParameterError: key must be a shuffler's, got 'analyst'; make one with role shuffler
    """
    public = collection.specification() if specification is None else specification
    _serve(lambda: Shuffler(collection, key, folder), folder, public, listening or Listening())


def serve_local(
    question: PublicQuestion, folder: Path, *, batch_size: int = 1000, listening: Listening | None = None
) -> None:
    """Run a collector of plain local reports until the process is asked to end (SIGINT or SIGTERM).

    Parameters
    ----------
    question : PublicQuestion
        What devices answer.
    folder : Path
        See `LocalCollector`.
    batch_size : int
        How many devices' reports are released together.
    listening : Listening, optional
        Where, with what limits, and what the operator hears.

    Raises
    ------
    ParameterError
        If the address cannot be had, or the certificate not be used; and see `LocalCollector`.

    Examples
    --------
    It runs until it is stopped; what cannot be served is refused before:

    >>> import tempfile
    >>> from sfumato import local
    >>> oracle = local.RandomizedResponse(epsilon=2.0, domain=local.Domain(["yes", "no"]))
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     serve_local(PublicQuestion(randomizer=oracle.device), folder, batch_size=1)
    Traceback (most recent call last):
        ...
    sfumato.errors.ParameterError: batch_size must be an integer of at least 2, got 1
    """
    public = question.specification()
    _serve(lambda: LocalCollector(question, folder, batch_size), folder, public, listening or Listening())


def _serve(
    opened: Callable[[], Collector], folder: Path, public: Mapping[str, Any], listening: Listening
) -> None:
    log = OperatorLog(listening.say, structured=listening.structured_log)
    with ExitStack() as stack:
        collector = stack.enter_context(opened())
        counters = stack.enter_context(Counters(Path(folder) / _COUNTERS))
        sockets = stack.enter_context(opened_sockets(listening))
        limits = listening.limits
        taker = GroupCommit(collector, limits, log.failure("store-failed"), counters)
        failed = log.failure("request-failed")
        app = Front(
            collector, taker, limits, public, failed, counters=counters, operator_port=sockets.operator_port
        )
        try:
            sockets.run(app, log, lambda url: _say_started(log, collector, url), counters.add)
        finally:
            taker.stop()
            _say_stopped(log, collector)


def _say_started(log: OperatorLog, collector: Collector, url: str) -> None:
    name = collector.id.hex()
    log("started", f"collection {name} at {url}", collection=name, url=url)


def _say_stopped(log: OperatorLog, collector: Collector) -> None:
    refused = ", ".join(f"{count} by {reason}" for reason, count in collector.refused.items())
    message = f"{collector.batches} batches released; refused envelopes: {refused}"
    log("stopped", message, batches=collector.batches, refused=dict(collector.refused))
