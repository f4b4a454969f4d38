"""Private learning: training of PyTorch modules, classical models, votes of teachers, paid tuning.

Only the parts that train PyTorch modules load torch, and only on first use.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from sfumato._lazy import attach

if TYPE_CHECKING:
    from sfumato.learning.checks.fixing import fix_module
    from sfumato.learning.checks.leaks import LeakReport, leak_probe
    from sfumato.learning.checks.selftest import SelfTest, self_test
    from sfumato.learning.checks.shapes import batch_of
    from sfumato.learning.checks.validator import ModuleValidator
    from sfumato.learning.clipping.adaptive import AdaptiveQuantile
    from sfumato.learning.clipping.automatic import Automatic
    from sfumato.learning.clipping.clipping import Clipping
    from sfumato.learning.clipping.flat import Flat
    from sfumato.learning.clipping.per_group import PerGroup
    from sfumato.learning.clipping.per_layer import PerLayer
    from sfumato.learning.clipping.per_user import clipped_by_user
    from sfumato.learning.federated.aggregation import SecureAggregation, TrustedAggregator
    from sfumato.learning.federated.federation import FederatedTraining
    from sfumato.learning.federated.local import local_sgd
    from sfumato.learning.noise.correlated import CorrelatedNoise
    from sfumato.learning.noise.grid import GridNoise
    from sfumato.learning.noise.keyed import KeyedNoise, SimulatedNoise
    from sfumato.learning.noise.noise import Noise
    from sfumato.learning.noise.strategies import choose_strategy
    from sfumato.learning.sampling.allocation import AllocationSampler
    from sfumato.learning.sampling.balls_in_bins import BallsInBinsSampler
    from sfumato.learning.sampling.cyclic import CyclicSampler
    from sfumato.learning.sampling.every_step import FullBatchSampler
    from sfumato.learning.sampling.fixed_size import FixedSizeSampler, WithReplacementSampler
    from sfumato.learning.sampling.foreign import ForeignLoader, WatchedBatches
    from sfumato.learning.sampling.planning import TrainingPlan, TrainingPlanRow, noise_for, plan_training
    from sfumato.learning.sampling.poisson import PoissonSampler
    from sfumato.learning.sampling.sampler import Sampler
    from sfumato.learning.sampling.seed import Seed
    from sfumato.learning.sampling.separated import SeparatedSampler
    from sfumato.learning.sampling.shuffled import ShuffledSampler
    from sfumato.learning.sampling.truncated_poisson import TruncatedPoissonSampler
    from sfumato.learning.sampling.users import UserRecordsSampler, UserSampler

__all__ = [
    "AdaptiveQuantile",
    "AllocationSampler",
    "Automatic",
    "BallsInBinsSampler",
    "Clipping",
    "CorrelatedNoise",
    "CyclicSampler",
    "FederatedTraining",
    "FixedSizeSampler",
    "Flat",
    "ForeignLoader",
    "FullBatchSampler",
    "GridNoise",
    "KeyedNoise",
    "LeakReport",
    "ModuleValidator",
    "Noise",
    "PerGroup",
    "PerLayer",
    "PoissonSampler",
    "Sampler",
    "SecureAggregation",
    "Seed",
    "SelfTest",
    "SeparatedSampler",
    "ShuffledSampler",
    "SimulatedNoise",
    "TrainingPlan",
    "TrainingPlanRow",
    "TruncatedPoissonSampler",
    "TrustedAggregator",
    "UserRecordsSampler",
    "UserSampler",
    "WatchedBatches",
    "WithReplacementSampler",
    "batch_of",
    "choose_strategy",
    "clipped_by_user",
    "fix_module",
    "leak_probe",
    "local_sgd",
    "noise_for",
    "plan_training",
    "self_test",
]

__getattr__, __dir__ = attach(
    __name__,
    {
        "AdaptiveQuantile": "sfumato.learning.clipping.adaptive",
        "AllocationSampler": "sfumato.learning.sampling.allocation",
        "Automatic": "sfumato.learning.clipping.automatic",
        "BallsInBinsSampler": "sfumato.learning.sampling.balls_in_bins",
        "Clipping": "sfumato.learning.clipping.clipping",
        "CorrelatedNoise": "sfumato.learning.noise.correlated",
        "CyclicSampler": "sfumato.learning.sampling.cyclic",
        "FederatedTraining": "sfumato.learning.federated.federation",
        "FixedSizeSampler": "sfumato.learning.sampling.fixed_size",
        "Flat": "sfumato.learning.clipping.flat",
        "ForeignLoader": "sfumato.learning.sampling.foreign",
        "FullBatchSampler": "sfumato.learning.sampling.every_step",
        "GridNoise": "sfumato.learning.noise.grid",
        "KeyedNoise": "sfumato.learning.noise.keyed",
        "LeakReport": "sfumato.learning.checks.leaks",
        "ModuleValidator": "sfumato.learning.checks.validator",
        "Noise": "sfumato.learning.noise.noise",
        "PerGroup": "sfumato.learning.clipping.per_group",
        "PerLayer": "sfumato.learning.clipping.per_layer",
        "PoissonSampler": "sfumato.learning.sampling.poisson",
        "Sampler": "sfumato.learning.sampling.sampler",
        "SecureAggregation": "sfumato.learning.federated.aggregation",
        "Seed": "sfumato.learning.sampling.seed",
        "SelfTest": "sfumato.learning.checks.selftest",
        "SeparatedSampler": "sfumato.learning.sampling.separated",
        "ShuffledSampler": "sfumato.learning.sampling.shuffled",
        "SimulatedNoise": "sfumato.learning.noise.keyed",
        "TrainingPlan": "sfumato.learning.sampling.planning",
        "TrainingPlanRow": "sfumato.learning.sampling.planning",
        "TruncatedPoissonSampler": "sfumato.learning.sampling.truncated_poisson",
        "TrustedAggregator": "sfumato.learning.federated.aggregation",
        "UserRecordsSampler": "sfumato.learning.sampling.users",
        "UserSampler": "sfumato.learning.sampling.users",
        "WatchedBatches": "sfumato.learning.sampling.foreign",
        "WithReplacementSampler": "sfumato.learning.sampling.fixed_size",
        "batch_of": "sfumato.learning.checks.shapes",
        "choose_strategy": "sfumato.learning.noise.strategies",
        "clipped_by_user": "sfumato.learning.clipping.per_user",
        "fix_module": "sfumato.learning.checks.fixing",
        "leak_probe": "sfumato.learning.checks.leaks",
        "local_sgd": "sfumato.learning.federated.local",
        "noise_for": "sfumato.learning.sampling.planning",
        "plan_training": "sfumato.learning.sampling.planning",
        "self_test": "sfumato.learning.checks.selftest",
    },
    extras={"torch": "torch", "sklearn": "scikit-learn"},
)
