"""Private learning: training of PyTorch modules, classical models, votes of teachers, paid tuning.

Only the parts that train PyTorch modules load torch, and only on first use.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from sfumato._lazy import attach

if TYPE_CHECKING:
    from sfumato.learning.adapters.lightning_callback import PrivacyCallback
    from sfumato.learning.adapters.privacy_arguments import PrivacyArguments
    from sfumato.learning.adapters.trainer import PrivateTrainer, PrivateTrainerMixin
    from sfumato.learning.checks.leaks import LeakReport, leak_probe
    from sfumato.learning.checks.random_batches import batch_of
    from sfumato.learning.checks.replacements import fix_module
    from sfumato.learning.checks.self_test import SelfTest, self_test
    from sfumato.learning.checks.validator import ModuleValidator
    from sfumato.learning.clipping.adaptive_quantile import AdaptiveQuantile
    from sfumato.learning.clipping.automatic import Automatic
    from sfumato.learning.clipping.clipping import Clipping
    from sfumato.learning.clipping.flat import Flat
    from sfumato.learning.clipping.per_group import PerGroup
    from sfumato.learning.clipping.per_layer import PerLayer
    from sfumato.learning.clipping.per_user import clipped_by_user
    from sfumato.learning.engine.clipped_sums import ClippedSums
    from sfumato.learning.engine.engine import Engine
    from sfumato.learning.engine.functional import ClippedGrad, clipped_grad
    from sfumato.learning.estimators.boosted_trees import (
        GradientBoostingClassifier,
        GradientBoostingRegressor,
    )
    from sfumato.learning.estimators.compatibility import expected_failed_checks
    from sfumato.learning.estimators.gaussian_nb import GaussianNB
    from sfumato.learning.estimators.kmeans import KMeans
    from sfumato.learning.estimators.linear_regression import LinearRegression
    from sfumato.learning.estimators.logistic_regression import LogisticRegression
    from sfumato.learning.estimators.pca import PCA
    from sfumato.learning.estimators.private_estimator import PrivateEstimator, UndeclaredClasses
    from sfumato.learning.estimators.standard_scaler import StandardScaler
    from sfumato.learning.federated.aggregation import TrustedAggregator, UpdateAggregator
    from sfumato.learning.federated.client_training import local_sgd
    from sfumato.learning.federated.distributed_aggregator import DistributedNoiseAggregator
    from sfumato.learning.federated.federation import FederatedTraining
    from sfumato.learning.noise.correlated import CorrelatedNoise
    from sfumato.learning.noise.grid import GridNoise
    from sfumato.learning.noise.keyed import KeyedNoise, SimulatedNoise
    from sfumato.learning.noise.noise import Noise
    from sfumato.learning.noise.schedule import Schedule
    from sfumato.learning.noise.strategy_choice import choose_strategy
    from sfumato.learning.pate.aggregator import Aggregator
    from sfumato.learning.pate.confident import ConfidentGNMax
    from sfumato.learning.pate.consensus import Consensus
    from sfumato.learning.pate.consensus_release import ConsensusRelease
    from sfumato.learning.pate.distillation import distill, distill_in_rounds
    from sfumato.learning.pate.gnmax import GNMax
    from sfumato.learning.pate.interactive import InteractiveGNMax
    from sfumato.learning.pate.lnmax import LNMax
    from sfumato.learning.pate.poll import Poll
    from sfumato.learning.pate.teachers import Teachers
    from sfumato.learning.recipes.augmentation import Views
    from sfumato.learning.recipes.frozen_features import frozen_features
    from sfumato.learning.recipes.gradient_penalty import GradientPenalty
    from sfumato.learning.recipes.weight_average import WeightAverage
    from sfumato.learning.recipes.weight_standardization import standardize_weights
    from sfumato.learning.reports.card import PrivacyCard
    from sfumato.learning.reports.group_accuracy import GroupAccuracies, GroupAccuracy, group_accuracies
    from sfumato.learning.reports.individual_losses import IndividualLosses, IndividualSummary
    from sfumato.learning.sampling.balls_in_bins import BallsInBinsSampler
    from sfumato.learning.sampling.epoch_sampler import CyclicSampler, ShuffledSampler
    from sfumato.learning.sampling.fixed_size import FixedSizeSampler, WithReplacementSampler
    from sfumato.learning.sampling.foreign_loader import ForeignLoader, WatchedBatches
    from sfumato.learning.sampling.full_batch import FullBatchSampler
    from sfumato.learning.sampling.poisson import PoissonSampler
    from sfumato.learning.sampling.random_allocation import AllocationSampler
    from sfumato.learning.sampling.sampler import Sampler
    from sfumato.learning.sampling.seed import Seed
    from sfumato.learning.sampling.separated import SeparatedSampler
    from sfumato.learning.sampling.training_plan import (
        TrainingPlan,
        TrainingPlanRow,
        noise_for,
        plan_training,
    )
    from sfumato.learning.sampling.truncated_poisson import TruncatedPoissonSampler
    from sfumato.learning.sampling.users import UserRecordsSampler, UserSampler
    from sfumato.learning.training.distributed.data_parallel import DPDDP
    from sfumato.learning.training.individual_observer import IndividualObserver
    from sfumato.learning.training.learning_curve import LearningCurve, progress
    from sfumato.learning.training.loop.private_optimizer import BatchMemoryManager
    from sfumato.learning.training.monitor import TensorBoardTracker, Tracker, TrainingMonitor
    from sfumato.learning.training.privacy_engine import PrivacyEngine
    from sfumato.learning.training.setup.options import (
        GradientOptions,
        NoiseOptions,
        RecordOptions,
        SamplingOptions,
    )
    from sfumato.learning.training.table_classifier import TrainedTable
    from sfumato.learning.training.table_columns import Columns
    from sfumato.learning.training.table_training import train_table
    from sfumato.learning.tuning.tune import Runs, tune
    from sfumato.ledger.unpaid_fits import UnpaidFits

__all__ = [
    "DPDDP",
    "PCA",
    "AdaptiveQuantile",
    "Aggregator",
    "AllocationSampler",
    "Automatic",
    "BallsInBinsSampler",
    "BatchMemoryManager",
    "ClippedGrad",
    "ClippedSums",
    "Clipping",
    "Columns",
    "ConfidentGNMax",
    "Consensus",
    "ConsensusRelease",
    "CorrelatedNoise",
    "CyclicSampler",
    "DistributedNoiseAggregator",
    "Engine",
    "FederatedTraining",
    "FixedSizeSampler",
    "Flat",
    "ForeignLoader",
    "FullBatchSampler",
    "GNMax",
    "GaussianNB",
    "GradientBoostingClassifier",
    "GradientBoostingRegressor",
    "GradientOptions",
    "GradientPenalty",
    "GridNoise",
    "GroupAccuracies",
    "GroupAccuracy",
    "IndividualLosses",
    "IndividualObserver",
    "IndividualSummary",
    "InteractiveGNMax",
    "KMeans",
    "KeyedNoise",
    "LNMax",
    "LeakReport",
    "LearningCurve",
    "LinearRegression",
    "LogisticRegression",
    "ModuleValidator",
    "Noise",
    "NoiseOptions",
    "PerGroup",
    "PerLayer",
    "PoissonSampler",
    "Poll",
    "PrivacyArguments",
    "PrivacyCallback",
    "PrivacyCard",
    "PrivacyEngine",
    "PrivateEstimator",
    "PrivateTrainer",
    "PrivateTrainerMixin",
    "RecordOptions",
    "Runs",
    "Sampler",
    "SamplingOptions",
    "Schedule",
    "Seed",
    "SelfTest",
    "SeparatedSampler",
    "ShuffledSampler",
    "SimulatedNoise",
    "StandardScaler",
    "Teachers",
    "TensorBoardTracker",
    "Tracker",
    "TrainedTable",
    "TrainingMonitor",
    "TrainingPlan",
    "TrainingPlanRow",
    "TruncatedPoissonSampler",
    "TrustedAggregator",
    "UndeclaredClasses",
    "UnpaidFits",
    "UpdateAggregator",
    "UserRecordsSampler",
    "UserSampler",
    "Views",
    "WatchedBatches",
    "WeightAverage",
    "WithReplacementSampler",
    "batch_of",
    "choose_strategy",
    "clipped_by_user",
    "clipped_grad",
    "distill",
    "distill_in_rounds",
    "expected_failed_checks",
    "fix_module",
    "frozen_features",
    "group_accuracies",
    "leak_probe",
    "local_sgd",
    "noise_for",
    "plan_training",
    "progress",
    "self_test",
    "standardize_weights",
    "train_table",
    "tune",
]
_HOMES = {
    "adapters.lightning_callback": ["PrivacyCallback"],
    "adapters.privacy_arguments": ["PrivacyArguments"],
    "adapters.trainer": ["PrivateTrainer", "PrivateTrainerMixin"],
    "checks.leaks": ["LeakReport", "leak_probe"],
    "checks.random_batches": ["batch_of"],
    "checks.replacements": ["fix_module"],
    "checks.self_test": ["SelfTest", "self_test"],
    "checks.validator": ["ModuleValidator"],
    "clipping.adaptive_quantile": ["AdaptiveQuantile"],
    "clipping.automatic": ["Automatic"],
    "clipping.clipping": ["Clipping"],
    "clipping.flat": ["Flat"],
    "clipping.per_group": ["PerGroup"],
    "clipping.per_layer": ["PerLayer"],
    "clipping.per_user": ["clipped_by_user"],
    "engine.clipped_sums": ["ClippedSums"],
    "engine.engine": ["Engine"],
    "engine.functional": ["ClippedGrad", "clipped_grad"],
    "estimators.boosted_trees": ["GradientBoostingClassifier", "GradientBoostingRegressor"],
    "estimators.compatibility": ["expected_failed_checks"],
    "estimators.gaussian_nb": ["GaussianNB"],
    "estimators.kmeans": ["KMeans"],
    "estimators.linear_regression": ["LinearRegression"],
    "estimators.logistic_regression": ["LogisticRegression"],
    "estimators.pca": ["PCA"],
    "estimators.private_estimator": ["PrivateEstimator", "UndeclaredClasses"],
    "estimators.standard_scaler": ["StandardScaler"],
    "federated.aggregation": ["UpdateAggregator", "TrustedAggregator"],
    "federated.client_training": ["local_sgd"],
    "federated.distributed_aggregator": ["DistributedNoiseAggregator"],
    "federated.federation": ["FederatedTraining"],
    "noise.correlated": ["CorrelatedNoise"],
    "noise.grid": ["GridNoise"],
    "noise.keyed": ["KeyedNoise", "SimulatedNoise"],
    "noise.noise": ["Noise"],
    "noise.schedule": ["Schedule"],
    "noise.strategy_choice": ["choose_strategy"],
    "pate.aggregator": ["Aggregator"],
    "pate.confident": ["ConfidentGNMax"],
    "pate.consensus": ["Consensus"],
    "pate.consensus_release": ["ConsensusRelease"],
    "pate.distillation": ["distill", "distill_in_rounds"],
    "pate.gnmax": ["GNMax"],
    "pate.interactive": ["InteractiveGNMax"],
    "pate.lnmax": ["LNMax"],
    "pate.poll": ["Poll"],
    "pate.teachers": ["Teachers"],
    "recipes.augmentation": ["Views"],
    "recipes.frozen_features": ["frozen_features"],
    "recipes.gradient_penalty": ["GradientPenalty"],
    "recipes.weight_average": ["WeightAverage"],
    "recipes.weight_standardization": ["standardize_weights"],
    "reports.card": ["PrivacyCard"],
    "reports.group_accuracy": ["GroupAccuracies", "GroupAccuracy", "group_accuracies"],
    "reports.individual_losses": ["IndividualLosses", "IndividualSummary"],
    "sampling.balls_in_bins": ["BallsInBinsSampler"],
    "sampling.epoch_sampler": ["CyclicSampler", "ShuffledSampler"],
    "sampling.fixed_size": ["FixedSizeSampler", "WithReplacementSampler"],
    "sampling.foreign_loader": ["ForeignLoader", "WatchedBatches"],
    "sampling.full_batch": ["FullBatchSampler"],
    "sampling.poisson": ["PoissonSampler"],
    "sampling.random_allocation": ["AllocationSampler"],
    "sampling.sampler": ["Sampler"],
    "sampling.seed": ["Seed"],
    "sampling.separated": ["SeparatedSampler"],
    "sampling.training_plan": ["TrainingPlan", "TrainingPlanRow", "noise_for", "plan_training"],
    "sampling.truncated_poisson": ["TruncatedPoissonSampler"],
    "sampling.users": ["UserRecordsSampler", "UserSampler"],
    "training.distributed.data_parallel": ["DPDDP"],
    "training.individual_observer": ["IndividualObserver"],
    "training.learning_curve": ["LearningCurve", "progress"],
    "training.loop.private_optimizer": ["BatchMemoryManager"],
    "training.monitor": ["TensorBoardTracker", "Tracker", "TrainingMonitor"],
    "training.privacy_engine": ["PrivacyEngine"],
    "training.setup.options": ["GradientOptions", "NoiseOptions", "RecordOptions", "SamplingOptions"],
    "training.table_classifier": ["TrainedTable"],
    "training.table_columns": ["Columns"],
    "training.table_training": ["train_table"],
    "tuning.tune": ["Runs", "tune"],
}

__getattr__, __dir__ = attach(
    __name__,
    {
        **{name: f"{__name__}.{module}" for module, names in _HOMES.items() for name in names},
        "UnpaidFits": "sfumato.ledger.unpaid_fits",
    },
    extras={
        "torch": "torch",
        "sklearn": "scikit-learn",
        "transformers": "transformers",
        "accelerate": "transformers",
        "lightning": "lightning",
    },
)
