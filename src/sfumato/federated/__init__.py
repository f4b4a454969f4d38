"""Federated computation: many clients and a server that learns a sum, and nothing of one client.

`SecureAggregation` states a round; a client and a server are state machines of messages, bytes in and bytes
out, so that any transport carries them.

>>> from sfumato.federated import SecureAggregation, simulate_round
>>> plan = SecureAggregation(clients=4, length=2, bounds=(0, 9), bits=8, minimum_survivors=3)
>>> simulate_round(plan, [[1, 2], [3, 4], [5, 6], [7, 8]]).total.tolist()
[16, 20]

`Prio3` splits measurements among aggregators, who verify that they are valid and add them up.

>>> from sfumato.federated import prio3_histogram
>>> prio3_histogram(length=4, chunk_length=2).rand_size
128
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from sfumato._lazy import attach

if TYPE_CHECKING:
    from sfumato.federated.secure_aggregation.client import SecureAggregationClient
    from sfumato.federated.secure_aggregation.degree import NeighborPlan, plan_neighbors
    from sfumato.federated.secure_aggregation.parameters import SecureAggregation
    from sfumato.federated.secure_aggregation.server import AggregatedSum, SecureAggregationServer
    from sfumato.federated.secure_aggregation.simulation import simulate_round
    from sfumato.federated.threshold_reporting.published_bounds import (
        PublishedBound,
        sample_and_threshold_bound,
        trie_heavy_hitters_bound,
    )
    from sfumato.federated.threshold_reporting.sample_and_threshold import EstimatedCount, SampleAndThreshold
    from sfumato.federated.threshold_reporting.star import RevealedValue, Star, StarResult
    from sfumato.federated.threshold_reporting.trie_heavy_hitters import TrieHeavyHitters
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
    "AggregatedSum",
    "EstimatedCount",
    "NeighborPlan",
    "Prio3",
    "Prio3Aggregator",
    "PublishedBound",
    "RevealedValue",
    "SampleAndThreshold",
    "SecureAggregation",
    "SecureAggregationClient",
    "SecureAggregationServer",
    "ShardedReports",
    "Star",
    "StarResult",
    "TrieHeavyHitters",
    "UsedVerifyKeys",
    "VerifyState",
    "plan_neighbors",
    "prio3_count",
    "prio3_histogram",
    "prio3_l1_bound_sum",
    "prio3_multihot_count_vec",
    "prio3_sum",
    "prio3_sum_vec",
    "prio3_sum_vec_with_multiproof",
    "sample_and_threshold_bound",
    "simulate_round",
    "trie_heavy_hitters_bound",
]

__getattr__, __dir__ = attach(
    __name__,
    {
        "AggregatedSum": "sfumato.federated.secure_aggregation.server",
        "EstimatedCount": "sfumato.federated.threshold_reporting.sample_and_threshold",
        "NeighborPlan": "sfumato.federated.secure_aggregation.degree",
        "Prio3": "sfumato.federated.vdaf.prio3",
        "Prio3Aggregator": "sfumato.federated.vdaf.aggregator",
        "PublishedBound": "sfumato.federated.threshold_reporting.published_bounds",
        "RevealedValue": "sfumato.federated.threshold_reporting.star",
        "SampleAndThreshold": "sfumato.federated.threshold_reporting.sample_and_threshold",
        "SecureAggregation": "sfumato.federated.secure_aggregation.parameters",
        "SecureAggregationClient": "sfumato.federated.secure_aggregation.client",
        "SecureAggregationServer": "sfumato.federated.secure_aggregation.server",
        "ShardedReports": "sfumato.federated.vdaf.report_batch",
        "Star": "sfumato.federated.threshold_reporting.star",
        "StarResult": "sfumato.federated.threshold_reporting.star",
        "TrieHeavyHitters": "sfumato.federated.threshold_reporting.trie_heavy_hitters",
        "UsedVerifyKeys": "sfumato.federated.vdaf.aggregator",
        "VerifyState": "sfumato.federated.vdaf.report_batch",
        "plan_neighbors": "sfumato.federated.secure_aggregation.degree",
        "prio3_count": "sfumato.federated.vdaf.named_functions",
        "prio3_histogram": "sfumato.federated.vdaf.named_functions",
        "prio3_l1_bound_sum": "sfumato.federated.vdaf.named_functions",
        "prio3_multihot_count_vec": "sfumato.federated.vdaf.named_functions",
        "prio3_sum": "sfumato.federated.vdaf.named_functions",
        "prio3_sum_vec": "sfumato.federated.vdaf.named_functions",
        "prio3_sum_vec_with_multiproof": "sfumato.federated.vdaf.named_functions",
        "sample_and_threshold_bound": "sfumato.federated.threshold_reporting.published_bounds",
        "simulate_round": "sfumato.federated.secure_aggregation.simulation",
        "trie_heavy_hitters_bound": "sfumato.federated.threshold_reporting.published_bounds",
    },
)
