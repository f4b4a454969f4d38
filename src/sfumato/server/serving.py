"""Run the shuffler's process."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from sfumato.crypto.secret_key import SecretKey
from sfumato.local.device.shuffle.collection import PublicCollection
from sfumato.server.group_commit import GroupCommit
from sfumato.server.http_process import check_certificate, listening_socket, run_application
from sfumato.server.limits import Limits
from sfumato.server.shuffler import Shuffler
from sfumato.server.web import Front

__all__ = ["serve"]


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
        check_certificate(*certificate)
    with Shuffler(collection, key, folder) as shuffler, listening_socket(host, port) as listening:
        taker = GroupCommit(shuffler, limits, say)
        public = collection.specification() if specification is None else specification
        app = Front(shuffler, taker, limits, dict(public), say)
        try:
            run_application(
                app,
                listening,
                limits,
                certificate=certificate,
                started=lambda url: say(f"collection {collection.id.hex()} at {url}"),
            )
        finally:
            taker.stop()
            refused = ", ".join(f"{count} by {reason}" for reason, count in shuffler.refused.items())
            say(f"{shuffler.batches} batches released; refused envelopes: {refused}")
