"""A collector's half: two sealed shares become a sum."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, final

from sfumato.errors import SourceError
from sfumato.federated.dap.collection_messages import (
    AggregateShareAad,
    BatchMode,
    BatchQuery,
    CollectionJobResp,
    Interval,
)
from sfumato.federated.dap.sealing import HpkeKey
from sfumato.federated.dap.task import DapTask
from sfumato.federated.dap.version import Role

__all__ = ["CollectedBatch", "collected_batch"]


@final
@dataclass(frozen=True, slots=True)
class CollectedBatch:
    """A batch's result.

    Parameters
    ----------
    result : int or list of int
        The sum, with the noise of both aggregators if the task has noise; it may be negative then.
    reports : int
        How many reports it is of, as the leader says; no seal is bound to it.
    interval : Interval
        Where their times lie, as the leader says; within the interval that was asked for.

    Examples
    --------
    >>> CollectedBatch(result=3, reports=10, interval=Interval(7, 1)).result
    3
    """

    result: Any
    reports: int
    interval: Interval


def collected_batch(
    task: DapTask, key: HpkeKey, query: BatchQuery, answer: CollectionJobResp
) -> CollectedBatch:
    """Open both shares and add them.

    Parameters
    ----------
    task : DapTask
    key : HpkeKey
        The collector's.
    query : BatchQuery
        What was asked.
    answer : CollectionJobResp
        What the leader answered.

    Returns
    -------
    CollectedBatch

    Raises
    ------
    SourceError
        If the answer is for another batch, too small, or not sealed for this collector.
    """
    selector = query if task.batch_mode == BatchMode.TIME_INTERVAL else answer.partial_batch_selector
    inside, asked = answer.interval, query.interval
    foreign = asked is not None and not asked.start <= inside.start <= inside.end <= asked.end
    whole = (
        answer.partial_batch_selector.mode == task.batch_mode and answer.report_count >= task.min_batch_size
    )
    if foreign or not whole:
        raise SourceError(
            "the leader must answer with a whole batch of the task, got another; ask its operator"
        )
    aad = AggregateShareAad(task.task_id, b"", selector)
    shares = []
    for role, sealed in ((Role.LEADER, answer.leader_share), (Role.HELPER, answer.helper_share)):
        opened = key.opened_aggregate_share(sealed, role, aad)
        if opened is None or len(opened) != task.prio3.aggregate_share_size:
            raise SourceError(
                f"the {role.name.lower()}'s share must open with this key, got one that does not"
            )
        shares.append(opened)
    return CollectedBatch(task.prio3.unshard(shares, signed=True), answer.report_count, answer.interval)
