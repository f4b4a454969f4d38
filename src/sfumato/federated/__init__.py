"""Federated computation: many clients and a server that learns a sum, and nothing of one client.

`Prio3` splits measurements among aggregators, who verify that they are valid and add them up.

>>> from sfumato.federated import prio3_histogram
>>> prio3_histogram(length=4, chunk_length=2).rand_size
128
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from sfumato._lazy import attach

if TYPE_CHECKING:
    from sfumato.federated.vdaf.aggregator import Prio3Aggregator, UsedVerifyKeys
    from sfumato.federated.vdaf.named_functions import (
        prio3_count,
        prio3_histogram,
        prio3_l1_bound_sum,
        prio3_multihot_count_vec,
        prio3_sum,
        prio3_sum_vec,
        prio3_sum_vec_with_multiproof,
    )
    from sfumato.federated.vdaf.prio3 import Prio3
    from sfumato.federated.vdaf.report_batch import ShardedReports, VerifyState

__all__ = [
    "Prio3",
    "Prio3Aggregator",
    "ShardedReports",
    "UsedVerifyKeys",
    "VerifyState",
    "prio3_count",
    "prio3_histogram",
    "prio3_l1_bound_sum",
    "prio3_multihot_count_vec",
    "prio3_sum",
    "prio3_sum_vec",
    "prio3_sum_vec_with_multiproof",
]

__getattr__, __dir__ = attach(
    __name__,
    {
        "Prio3": "sfumato.federated.vdaf.prio3",
        "Prio3Aggregator": "sfumato.federated.vdaf.aggregator",
        "ShardedReports": "sfumato.federated.vdaf.report_batch",
        "UsedVerifyKeys": "sfumato.federated.vdaf.aggregator",
        "VerifyState": "sfumato.federated.vdaf.report_batch",
        "prio3_count": "sfumato.federated.vdaf.named_functions",
        "prio3_histogram": "sfumato.federated.vdaf.named_functions",
        "prio3_l1_bound_sum": "sfumato.federated.vdaf.named_functions",
        "prio3_multihot_count_vec": "sfumato.federated.vdaf.named_functions",
        "prio3_sum": "sfumato.federated.vdaf.named_functions",
        "prio3_sum_vec": "sfumato.federated.vdaf.named_functions",
        "prio3_sum_vec_with_multiproof": "sfumato.federated.vdaf.named_functions",
    },
)
