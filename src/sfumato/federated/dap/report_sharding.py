"""A client's half: measurements become reports."""

from __future__ import annotations

from typing import Any

from sfumato.federated.dap.hpke_config import HpkeConfig
from sfumato.federated.dap.report_messages import (
    InputShareAad,
    PlaintextInputShare,
    Report,
    ReportMetadata,
)
from sfumato.federated.dap.sealing import sealed_input_share
from sfumato.federated.dap.task import DapTask
from sfumato.federated.dap.version import Role

__all__ = ["sharded_reports"]


def sharded_reports(
    task: DapTask, measurements: Any, time: int, leader: HpkeConfig, helper: HpkeConfig
) -> list[Report]:
    """Return reports of measurements, one each.

    Parameters
    ----------
    task : DapTask
    measurements : sequence
        What the task's function measures.
    time : int
        In units of the task's time precision since 1970.
    leader, helper : HpkeConfig
        The aggregators' keys.

    Returns
    -------
    list of Report

    Raises
    ------
    ParameterError
        If a measurement is out of range.
    ValueError
        If a key is a point of small order.

    Examples
    --------
    >>> from sfumato.federated.dap.sealing import HpkeKey
    >>> key = HpkeKey(bytes(range(32))).config
    >>> task = DapTask(
    ...     task_id=bytes(32), leader="http://a", helper="http://b", vdaf={"type": "Prio3Count"},
    ...     collector=key, min_batch_size=10,
    ... )
    >>> len(sharded_reports(task, [1, 0, 1], 7, key, key))
    3
    """
    sharded = task.prio3.shard(measurements)
    reports = []
    for row, nonce in enumerate(map(bytes, sharded.nonces)):
        metadata, public = ReportMetadata(nonce, time), bytes(sharded.public_shares[row])
        aad = InputShareAad(task.task_id, metadata, public)
        sealed = [
            sealed_input_share(config, role, aad, PlaintextInputShare((), bytes(shares[row])).to_bytes())
            for config, role, shares in zip(
                (leader, helper), (Role.LEADER, Role.HELPER), sharded.input_shares, strict=True
            )
        ]
        reports.append(Report(metadata, public, *sealed))
    return reports
