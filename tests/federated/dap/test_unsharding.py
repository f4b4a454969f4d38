"""What a collector accepts as the answer to its query."""

from __future__ import annotations

from dataclasses import replace

import pytest

from sfumato.errors import SourceError
from sfumato.federated.dap.collection_messages import BatchMode, BatchQuery, CollectionJobResp, Interval
from sfumato.federated.dap.sealing import HpkeKey, sealed_aggregate_share
from sfumato.federated.dap.task import DapTask
from sfumato.federated.dap.unsharding import collected_batch
from sfumato.federated.dap.version import Role

KEY = HpkeKey(bytes(range(32)))


def test_the_reports_lie_where_the_collector_asked() -> None:
    task = DapTask(
        task_id=bytes(32),
        leader="http://a",
        helper="http://b",
        vdaf={"type": "Prio3Count"},
        collector=KEY.config,
        min_batch_size=2,
    )
    query = BatchQuery(BatchMode.TIME_INTERVAL, interval=Interval(10, 4))
    share = task.prio3.added(bytes(8), [1])
    sealed = [sealed_aggregate_share(task, role, query, share) for role in (Role.LEADER, Role.HELPER)]
    answer = CollectionJobResp(BatchQuery(BatchMode.TIME_INTERVAL), 2, Interval(10, 4), *sealed)
    assert collected_batch(task, KEY, query, answer).result == 2
    assert collected_batch(task, KEY, query, replace(answer, interval=Interval(12, 1))).result == 2
    for other in (Interval(9, 2), Interval(13, 2), Interval(0, 99)):
        with pytest.raises(SourceError, match=r"^the leader must answer with a whole batch"):
            collected_batch(task, KEY, query, replace(answer, interval=other))
    with pytest.raises(SourceError, match=r"^the leader must answer with a whole batch"):
        collected_batch(task, KEY, query, replace(answer, report_count=1))
