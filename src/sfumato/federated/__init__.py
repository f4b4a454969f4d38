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
    from sfumato.federated.dap.task import DapTask
    from sfumato.federated.distributed_noise.discrete_gaussian import DistributedDiscreteGaussian
    from sfumato.federated.distributed_noise.planning import plan_bits
    from sfumato.federated.distributed_noise.poisson_binomial import DistributedPoissonBinomial
    from sfumato.federated.distributed_noise.skellam import DistributedSkellam
    from sfumato.federated.flower.mod import FlowerSecureAggregationMod
    from sfumato.federated.flower.noise_mod import FlowerDistributedNoiseMod
    from sfumato.federated.flower.noise_workflow import FlowerDistributedNoiseWorkflow
    from sfumato.federated.flower.workflow import FlowerSecureAggregationWorkflow
    from sfumato.federated.secure_aggregation.client import SecureAggregationClient
    from sfumato.federated.secure_aggregation.degree import NeighborPlan, plan_neighbors
    from sfumato.federated.secure_aggregation.parameters import SecureAggregation
    from sfumato.federated.secure_aggregation.server import AggregatedSum, SecureAggregationServer
    from sfumato.federated.secure_aggregation.simulation import simulate_round
    from sfumato.federated.secure_aggregation_trust import fewest_breaking, secure_aggregation_report
    from sfumato.federated.threshold_reporting.nebula import Nebula
    from sfumato.federated.threshold_reporting.published_bounds import (
        PublishedBound,
        sample_and_threshold_bound,
        trie_heavy_hitters_bound,
    )
    from sfumato.federated.threshold_reporting.sample_and_threshold import EstimatedCount, SampleAndThreshold
    from sfumato.federated.threshold_reporting.star import RevealedValue, Star, StarResult
    from sfumato.federated.threshold_reporting.trie_heavy_hitters import TrieHeavyHitters
    from sfumato.federated.trust_report import Collusion, TrustReport, aggregators_report
    from sfumato.federated.vdaf.aggregator import Prio3Aggregator, UsedVerifyKeys
    from sfumato.federated.vdaf.aggregator_noise import AggregatorNoise
    from sfumato.federated.vdaf.mastic.attribute_metrics import (
        AttributeMetrics,
        MasticAttributeMetrics,
        attribute_bits,
    )
    from sfumato.federated.vdaf.mastic.mastic import Mastic
    from sfumato.federated.vdaf.mastic.mastic_aggregator import MasticAggregator
    from sfumato.federated.vdaf.mastic.mastic_functions import (
        mastic_count,
        mastic_histogram,
        mastic_multihot_count_vec,
        mastic_sum,
        mastic_sum_vec,
    )
    from sfumato.federated.vdaf.mastic.mastic_noise import MasticNoise
    from sfumato.federated.vdaf.mastic.mastic_parameter import MasticParameter
    from sfumato.federated.vdaf.mastic.weighted_heavy_hitters import MasticHeavyHitters
    from sfumato.federated.vdaf.named_functions import (
        prio3_count,
        prio3_histogram,
        prio3_l1_bound_sum,
        prio3_multihot_count_vec,
        prio3_sum,
        prio3_sum_vec,
        prio3_sum_vec_with_multiproof,
    )
    from sfumato.federated.vdaf.poplar.heavy_hitters import Poplar1HeavyHitters
    from sfumato.federated.vdaf.poplar.poplar1 import Poplar1
    from sfumato.federated.vdaf.poplar.poplar1_aggregator import Poplar1Aggregator
    from sfumato.federated.vdaf.prefixes.aggregation_parameter import AggregationParameter
    from sfumato.federated.vdaf.prefixes.counted_prefixes import CountedPrefixes
    from sfumato.federated.vdaf.prio3 import Prio3
    from sfumato.federated.vdaf.report_batch import ShardedReports, VerifyState

__all__ = [
    "AggregatedSum",
    "AggregationParameter",
    "AggregatorNoise",
    "AttributeMetrics",
    "Collusion",
    "CountedPrefixes",
    "DapTask",
    "DistributedDiscreteGaussian",
    "DistributedPoissonBinomial",
    "DistributedSkellam",
    "EstimatedCount",
    "FlowerDistributedNoiseMod",
    "FlowerDistributedNoiseWorkflow",
    "FlowerSecureAggregationMod",
    "FlowerSecureAggregationWorkflow",
    "Mastic",
    "MasticAggregator",
    "MasticAttributeMetrics",
    "MasticHeavyHitters",
    "MasticNoise",
    "MasticParameter",
    "Nebula",
    "NeighborPlan",
    "Poplar1",
    "Poplar1Aggregator",
    "Poplar1HeavyHitters",
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
    "TrustReport",
    "UsedVerifyKeys",
    "VerifyState",
    "aggregators_report",
    "attribute_bits",
    "fewest_breaking",
    "mastic_count",
    "mastic_histogram",
    "mastic_multihot_count_vec",
    "mastic_sum",
    "mastic_sum_vec",
    "plan_bits",
    "plan_neighbors",
    "prio3_count",
    "prio3_histogram",
    "prio3_l1_bound_sum",
    "prio3_multihot_count_vec",
    "prio3_sum",
    "prio3_sum_vec",
    "prio3_sum_vec_with_multiproof",
    "sample_and_threshold_bound",
    "secure_aggregation_report",
    "simulate_round",
    "trie_heavy_hitters_bound",
]

__getattr__, __dir__ = attach(
    __name__,
    {
        "AggregatedSum": "sfumato.federated.secure_aggregation.server",
        "AggregationParameter": "sfumato.federated.vdaf.prefixes.aggregation_parameter",
        "AggregatorNoise": "sfumato.federated.vdaf.aggregator_noise",
        "AttributeMetrics": "sfumato.federated.vdaf.mastic.attribute_metrics",
        "Collusion": "sfumato.federated.trust_report",
        "CountedPrefixes": "sfumato.federated.vdaf.prefixes.counted_prefixes",
        "DapTask": "sfumato.federated.dap.task",
        "DistributedDiscreteGaussian": "sfumato.federated.distributed_noise.discrete_gaussian",
        "DistributedPoissonBinomial": "sfumato.federated.distributed_noise.poisson_binomial",
        "DistributedSkellam": "sfumato.federated.distributed_noise.skellam",
        "EstimatedCount": "sfumato.federated.threshold_reporting.sample_and_threshold",
        "FlowerDistributedNoiseMod": "sfumato.federated.flower.noise_mod",
        "FlowerDistributedNoiseWorkflow": "sfumato.federated.flower.noise_workflow",
        "FlowerSecureAggregationMod": "sfumato.federated.flower.mod",
        "FlowerSecureAggregationWorkflow": "sfumato.federated.flower.workflow",
        "Mastic": "sfumato.federated.vdaf.mastic.mastic",
        "MasticAggregator": "sfumato.federated.vdaf.mastic.mastic_aggregator",
        "MasticAttributeMetrics": "sfumato.federated.vdaf.mastic.attribute_metrics",
        "MasticHeavyHitters": "sfumato.federated.vdaf.mastic.weighted_heavy_hitters",
        "MasticNoise": "sfumato.federated.vdaf.mastic.mastic_noise",
        "MasticParameter": "sfumato.federated.vdaf.mastic.mastic_parameter",
        "Nebula": "sfumato.federated.threshold_reporting.nebula",
        "NeighborPlan": "sfumato.federated.secure_aggregation.degree",
        "Poplar1": "sfumato.federated.vdaf.poplar.poplar1",
        "Poplar1Aggregator": "sfumato.federated.vdaf.poplar.poplar1_aggregator",
        "Poplar1HeavyHitters": "sfumato.federated.vdaf.poplar.heavy_hitters",
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
        "TrustReport": "sfumato.federated.trust_report",
        "UsedVerifyKeys": "sfumato.federated.vdaf.aggregator",
        "VerifyState": "sfumato.federated.vdaf.report_batch",
        "aggregators_report": "sfumato.federated.trust_report",
        "attribute_bits": "sfumato.federated.vdaf.mastic.attribute_metrics",
        "fewest_breaking": "sfumato.federated.secure_aggregation_trust",
        "mastic_count": "sfumato.federated.vdaf.mastic.mastic_functions",
        "mastic_histogram": "sfumato.federated.vdaf.mastic.mastic_functions",
        "mastic_multihot_count_vec": "sfumato.federated.vdaf.mastic.mastic_functions",
        "mastic_sum": "sfumato.federated.vdaf.mastic.mastic_functions",
        "mastic_sum_vec": "sfumato.federated.vdaf.mastic.mastic_functions",
        "plan_bits": "sfumato.federated.distributed_noise.planning",
        "plan_neighbors": "sfumato.federated.secure_aggregation.degree",
        "prio3_count": "sfumato.federated.vdaf.named_functions",
        "prio3_histogram": "sfumato.federated.vdaf.named_functions",
        "prio3_l1_bound_sum": "sfumato.federated.vdaf.named_functions",
        "prio3_multihot_count_vec": "sfumato.federated.vdaf.named_functions",
        "prio3_sum": "sfumato.federated.vdaf.named_functions",
        "prio3_sum_vec": "sfumato.federated.vdaf.named_functions",
        "prio3_sum_vec_with_multiproof": "sfumato.federated.vdaf.named_functions",
        "sample_and_threshold_bound": "sfumato.federated.threshold_reporting.published_bounds",
        "secure_aggregation_report": "sfumato.federated.secure_aggregation_trust",
        "simulate_round": "sfumato.federated.secure_aggregation.simulation",
        "trie_heavy_hitters_bound": "sfumato.federated.threshold_reporting.published_bounds",
    },
)
