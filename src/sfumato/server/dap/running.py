"""Run an aggregator's process."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

from sfumato import _check
from sfumato.errors import SfumatoError, SourceError
from sfumato.federated.dap.version import Role
from sfumato.server.dap.helper import Helper
from sfumato.server.dap.http_front import DapFront
from sfumato.server.dap.http_peer import HttpPeer
from sfumato.server.dap.leader import Leader
from sfumato.server.dap.leader_work import JOB_BYTES, LeaderWork
from sfumato.server.dap.party import DapParty
from sfumato.server.dap.upload_limits import UploadLimits
from sfumato.server.http_process import check_certificate, listening_socket, run_application
from sfumato.server.limits import Limits

__all__ = ["serve_dap"]

_PAUSES: Final = (0.1, 2.0)
_IDLE: Final = 1.0
_MARGIN: Final = 4096


def serve_dap(
    party: DapParty,
    folder: Path,
    *,
    host: str = "127.0.0.1",
    port: int | None = None,
    limits: Limits | None = None,
    uploads: UploadLimits | None = None,
    certificate: tuple[Path, Path] | None = None,
    say: Callable[[str], None] = print,
) -> None:
    """Run a leader or a helper until the process is asked to end (SIGINT or SIGTERM).

    Parameters
    ----------
    party : DapParty
        The aggregator's.
    folder : Path
        Its own, for its store; made if there is none.
    host : str
        An address of this machine.
    port : int, optional
        The one of the aggregator's URL by default; 0 for any that is free.
    limits : Limits, optional
        Of requests and connections.
    uploads : UploadLimits, optional
        Of the reports that a leader takes.
    certificate : tuple of two paths, optional
        A TLS certificate and its key, in PEM. Without it, put a proxy with TLS before the service, whose
        tokens would be read otherwise.
    say : callable
        Receives lines for the operator: the service's address, and failures. Nothing is said of a client.

    Raises
    ------
    ParameterError
        If the party is no aggregator, the address cannot be had, or the folder is another's.

    Examples
    --------
    >>> from sfumato.server.dap.party import new_parties
    >>> parties = new_parties(vdaf={"type": "Prio3Count"}, min_batch_size=10)
    >>> serve_dap(parties[Role.COLLECTOR], Path("unused"))
    Traceback (most recent call last):
    ...
    sfumato.errors.ParameterError: party must be a leader or a helper, got 'collector'; use another
    """
    if party.role not in (Role.LEADER, Role.HELPER):
        rule = "be a leader or a helper"
        _check.refuse("party", rule, party.role.name.lower(), "use another")
    limits = Limits(connections=500, per_address=None) if limits is None else limits
    if certificate is not None:
        check_certificate(*certificate)
    url = urlsplit(party.task.leader if party.role == Role.LEADER else party.task.helper)
    port = (url.port or (443 if url.scheme == "https" else 80)) if port is None else port
    name, changed, ended = party.role.name.lower(), threading.Event(), threading.Event()
    with listening_socket(host, port) as listening:
        aggregator: Leader | Helper
        if party.role == Role.LEADER:
            aggregator = Leader(party, folder, time.time, uploads)
        else:
            aggregator = Helper(party, folder, time.time)
        # A request of the leader must fit, also where one report is longer than a job should be.
        sizes = party.task.prio3
        least = JOB_BYTES + sizes.input_share_size(0) + sizes.verifier_share_size + sizes.public_share_size
        front = DapFront(aggregator, max(limits.body, least + _MARGIN), url.path, changed.set, say)
        worker = None
        if isinstance(aggregator, Leader):
            worker = threading.Thread(target=_work, args=(aggregator, changed, ended, say), name="dap-leader")
            worker.start()
        try:
            task = party.task.task_id.hex()
            run_application(
                front,
                listening,
                limits,
                certificate=certificate,
                started=lambda at: say(f"{name} of task {task} at {at}{url.path}"),
            )
        finally:
            ended.set()
            changed.set()
            if worker is not None:
                worker.join()
            aggregator.close()


def _work(
    leader: Leader, changed: threading.Event, ended: threading.Event, say: Callable[[str], None]
) -> None:
    """Do what there is to do with the helper, and wait for more."""
    shortest, longest = _PAUSES
    pause, said = shortest, ""
    with HttpPeer(leader.task.helper, leader.party.sends) as peer:
        work = LeaderWork(leader, peer.ask)
        while not ended.is_set():
            changed.clear()
            try:
                while work.step() and not ended.is_set():
                    pause, said = shortest, ""
                changed.wait(_IDLE)
            except Exception as error:  # the thread must go on, whatever happened: a disk may be freed
                why = (
                    str(error)
                    if isinstance(error, SfumatoError)
                    else f"a step failed: {type(error).__name__}"
                )
                if why != said and not (isinstance(error, SourceError) and ended.is_set()):
                    say(why)
                said = why
                ended.wait(pause)
                pause = min(2 * pause, longest)
