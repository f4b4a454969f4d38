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
    from sfumato.learning.estimators.gaussian_nb import GaussianNB
    from sfumato.learning.estimators.kmeans import KMeans
    from sfumato.learning.estimators.linear_regression import LinearRegression
    from sfumato.learning.estimators.logistic_regression import LogisticRegression
    from sfumato.learning.estimators.pca import PCA
    from sfumato.learning.estimators.private_estimator import PrivateEstimator, UndeclaredClasses
    from sfumato.learning.estimators.standard_scaler import StandardScaler
    from sfumato.learning.federated.aggregation import SecureAggregation, TrustedAggregator
    from sfumato.learning.federated.client_training import local_sgd
    from sfumato.learning.federated.federation import FederatedTraining
    from sfumato.learning.noise.correlated import CorrelatedNoise
    from sfumato.learning.noise.grid import GridNoise
    from sfumato.learning.noise.keyed import KeyedNoise, SimulatedNoise
    from sfumato.learning.noise.noise import Noise
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
    from sfumato.learning.training.privacy_engine import PrivacyEngine
    from sfumato.learning.training.setup.options import (
        GradientOptions,
        NoiseOptions,
        RecordOptions,
        SamplingOptions,
    )
    from sfumato.learning.training.table_classifier import Columns, TrainedTable, train_table
    from sfumato.learning.tuning.runs import Runs
    from sfumato.learning.tuning.tune import tune

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
    "SecureAggregation",
    "Seed",
    "SelfTest",
    "SeparatedSampler",
    "ShuffledSampler",
    "SimulatedNoise",
    "StandardScaler",
    "Teachers",
    "TrainedTable",
    "TrainingPlan",
    "TrainingPlanRow",
    "TruncatedPoissonSampler",
    "TrustedAggregator",
    "UndeclaredClasses",
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

__getattr__, __dir__ = attach(
    __name__,
    {
        "AdaptiveQuantile": "sfumato.learning.clipping.adaptive_quantile",
        "Aggregator": "sfumato.learning.pate.aggregator",
        "AllocationSampler": "sfumato.learning.sampling.random_allocation",
        "Automatic": "sfumato.learning.clipping.automatic",
        "BallsInBinsSampler": "sfumato.learning.sampling.balls_in_bins",
        "BatchMemoryManager": "sfumato.learning.training.loop.private_optimizer",
        "ClippedGrad": "sfumato.learning.engine.functional",
        "ClippedSums": "sfumato.learning.engine.clipped_sums",
        "Clipping": "sfumato.learning.clipping.clipping",
        "Columns": "sfumato.learning.training.table_classifier",
        "ConfidentGNMax": "sfumato.learning.pate.confident",
        "Consensus": "sfumato.learning.pate.consensus",
        "ConsensusRelease": "sfumato.learning.pate.consensus_release",
        "CorrelatedNoise": "sfumato.learning.noise.correlated",
        "CyclicSampler": "sfumato.learning.sampling.epoch_sampler",
        "DPDDP": "sfumato.learning.training.distributed.data_parallel",
        "Engine": "sfumato.learning.engine.engine",
        "FederatedTraining": "sfumato.learning.federated.federation",
        "FixedSizeSampler": "sfumato.learning.sampling.fixed_size",
        "Flat": "sfumato.learning.clipping.flat",
        "ForeignLoader": "sfumato.learning.sampling.foreign_loader",
        "FullBatchSampler": "sfumato.learning.sampling.full_batch",
        "GNMax": "sfumato.learning.pate.gnmax",
        "GaussianNB": "sfumato.learning.estimators.gaussian_nb",
        "GradientBoostingClassifier": "sfumato.learning.estimators.boosted_trees",
        "GradientBoostingRegressor": "sfumato.learning.estimators.boosted_trees",
        "GradientOptions": "sfumato.learning.training.setup.options",
        "GridNoise": "sfumato.learning.noise.grid",
        "GroupAccuracies": "sfumato.learning.reports.group_accuracy",
        "GroupAccuracy": "sfumato.learning.reports.group_accuracy",
        "IndividualLosses": "sfumato.learning.reports.individual_losses",
        "IndividualObserver": "sfumato.learning.training.individual_observer",
        "IndividualSummary": "sfumato.learning.reports.individual_losses",
        "InteractiveGNMax": "sfumato.learning.pate.interactive",
        "KMeans": "sfumato.learning.estimators.kmeans",
        "KeyedNoise": "sfumato.learning.noise.keyed",
        "LNMax": "sfumato.learning.pate.lnmax",
        "LeakReport": "sfumato.learning.checks.leaks",
        "LearningCurve": "sfumato.learning.training.learning_curve",
        "LinearRegression": "sfumato.learning.estimators.linear_regression",
        "LogisticRegression": "sfumato.learning.estimators.logistic_regression",
        "ModuleValidator": "sfumato.learning.checks.validator",
        "Noise": "sfumato.learning.noise.noise",
        "NoiseOptions": "sfumato.learning.training.setup.options",
        "PCA": "sfumato.learning.estimators.pca",
        "PerGroup": "sfumato.learning.clipping.per_group",
        "PerLayer": "sfumato.learning.clipping.per_layer",
        "PoissonSampler": "sfumato.learning.sampling.poisson",
        "Poll": "sfumato.learning.pate.poll",
        "PrivacyArguments": "sfumato.learning.adapters.privacy_arguments",
        "PrivacyCallback": "sfumato.learning.adapters.lightning_callback",
        "PrivacyCard": "sfumato.learning.reports.card",
        "PrivacyEngine": "sfumato.learning.training.privacy_engine",
        "PrivateEstimator": "sfumato.learning.estimators.private_estimator",
        "PrivateTrainer": "sfumato.learning.adapters.trainer",
        "PrivateTrainerMixin": "sfumato.learning.adapters.trainer",
        "RecordOptions": "sfumato.learning.training.setup.options",
        "Runs": "sfumato.learning.tuning.runs",
        "Sampler": "sfumato.learning.sampling.sampler",
        "SamplingOptions": "sfumato.learning.training.setup.options",
        "SecureAggregation": "sfumato.learning.federated.aggregation",
        "Seed": "sfumato.learning.sampling.seed",
        "SelfTest": "sfumato.learning.checks.self_test",
        "SeparatedSampler": "sfumato.learning.sampling.separated",
        "ShuffledSampler": "sfumato.learning.sampling.epoch_sampler",
        "SimulatedNoise": "sfumato.learning.noise.keyed",
        "StandardScaler": "sfumato.learning.estimators.standard_scaler",
        "Teachers": "sfumato.learning.pate.teachers",
        "TrainedTable": "sfumato.learning.training.table_classifier",
        "TrainingPlan": "sfumato.learning.sampling.training_plan",
        "TrainingPlanRow": "sfumato.learning.sampling.training_plan",
        "TruncatedPoissonSampler": "sfumato.learning.sampling.truncated_poisson",
        "TrustedAggregator": "sfumato.learning.federated.aggregation",
        "UndeclaredClasses": "sfumato.learning.estimators.private_estimator",
        "UserRecordsSampler": "sfumato.learning.sampling.users",
        "UserSampler": "sfumato.learning.sampling.users",
        "Views": "sfumato.learning.recipes.augmentation",
        "WatchedBatches": "sfumato.learning.sampling.foreign_loader",
        "WeightAverage": "sfumato.learning.recipes.weight_average",
        "WithReplacementSampler": "sfumato.learning.sampling.fixed_size",
        "batch_of": "sfumato.learning.checks.random_batches",
        "choose_strategy": "sfumato.learning.noise.strategy_choice",
        "clipped_by_user": "sfumato.learning.clipping.per_user",
        "clipped_grad": "sfumato.learning.engine.functional",
        "distill": "sfumato.learning.pate.distillation",
        "distill_in_rounds": "sfumato.learning.pate.distillation",
        "fix_module": "sfumato.learning.checks.replacements",
        "frozen_features": "sfumato.learning.recipes.frozen_features",
        "group_accuracies": "sfumato.learning.reports.group_accuracy",
        "leak_probe": "sfumato.learning.checks.leaks",
        "local_sgd": "sfumato.learning.federated.client_training",
        "noise_for": "sfumato.learning.sampling.training_plan",
        "plan_training": "sfumato.learning.sampling.training_plan",
        "progress": "sfumato.learning.training.learning_curve",
        "self_test": "sfumato.learning.checks.self_test",
        "standardize_weights": "sfumato.learning.recipes.weight_standardization",
        "train_table": "sfumato.learning.training.table_classifier",
        "tune": "sfumato.learning.tuning.tune",
    },
    extras={
        "torch": "torch",
        "sklearn": "scikit-learn",
        "transformers": "transformers",
        "accelerate": "transformers",
        "lightning": "lightning",
    },
)
