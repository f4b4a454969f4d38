"""Privacy accounting: describe what was run as a loss, compose losses, and read certified bounds off them.

>>> from sfumato.privacy import Gaussian, PoissonSubsampled
>>> training = PoissonSubsampled(Gaussian(1.0), sampling_probability=0.01) * 100
>>> training.epsilon(delta=1e-5) < 1.0
True

A loss knows nothing about the data. Its `epsilon` and `delta` are upper bounds, its `epsilon_interval` and
`delta_interval` enclose the exact value, and `calibrate` finds the noise for a wanted guarantee.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from sfumato._lazy import attach

if TYPE_CHECKING:
    from sfumato.numerics.interval import Interval
    from sfumato.privacy.accountant.precision import Precision
    from sfumato.privacy.accounting import AccountedLoss
    from sfumato.privacy.calibration import analytic_gaussian_stddev, calibrate, classical_gaussian_stddev
    from sfumato.privacy.catalog import loss_from_json
    from sfumato.privacy.composition import (
        advanced_composition,
        basic_composition,
        gdp_clt_approximation,
        heterogeneous_composition,
        optimal_composition,
    )
    from sfumato.privacy.conversion import (
        gdp_delta,
        gdp_epsilon,
        pure_to_gdp,
        pure_to_zcdp,
        rho_for,
        zcdp_delta,
        zcdp_epsilon,
    )
    from sfumato.privacy.guarantee import Guarantee
    from sfumato.privacy.interchange import from_dp_event, to_dp_event
    from sfumato.privacy.interpretation.breakdown import Explanation, Share
    from sfumato.privacy.interpretation.curves import Curve
    from sfumato.privacy.interpretation.loss_variable import LossVariable
    from sfumato.privacy.interpretation.risk import Attack, Risk
    from sfumato.privacy.leaves.declared import ZCDP, ApproximateDP, PureDP
    from sfumato.privacy.leaves.discrete_gaussian import DiscreteGaussian
    from sfumato.privacy.leaves.discrete_gaussian_sum import DiscreteGaussianSum
    from sfumato.privacy.leaves.discrete_gaussian_vector import DiscreteGaussianVector
    from sfumato.privacy.leaves.discrete_laplace import DiscreteLaplace
    from sfumato.privacy.leaves.discrete_pair import DiscretePair
    from sfumato.privacy.leaves.exponential import Exponential
    from sfumato.privacy.leaves.gaussian import Gaussian
    from sfumato.privacy.leaves.gaussian_dp import GaussianDP
    from sfumato.privacy.leaves.gaussian_sparse_vector import GaussianSparseVector
    from sfumato.privacy.leaves.laplace import Laplace
    from sfumato.privacy.leaves.leaf import GroupPrivacy
    from sfumato.privacy.leaves.mean_concentrated import CDP
    from sfumato.privacy.leaves.noisy_iteration import NoisyIteration
    from sfumato.privacy.leaves.noisy_max import MaxNoise, ReportNoisyMax
    from sfumato.privacy.leaves.profile import Profile
    from sfumato.privacy.leaves.randomized_response import RandomizedResponse
    from sfumato.privacy.leaves.rdp_curve import RDPCurve
    from sfumato.privacy.leaves.skellam import Skellam
    from sfumato.privacy.leaves.smooth_noise import SmoothGaussian, SmoothLaplace
    from sfumato.privacy.leaves.smooth_sensitivity import SmoothSensitivity
    from sfumato.privacy.leaves.sparse_vector import SparseVector
    from sfumato.privacy.leaves.staircase import Staircase
    from sfumato.privacy.leaves.support_response import SupportResponse
    from sfumato.privacy.leaves.thresholded_sampling import ThresholdedSampling
    from sfumato.privacy.leaves.trade_off import TradeOff
    from sfumato.privacy.loss import Composed, PrivacyLoss, Repeated, compose
    from sfumato.privacy.neighboring import Neighboring, Relation, register_relation
    from sfumato.privacy.nodes.allocation import RandomAllocation
    from sfumato.privacy.nodes.among_decoys import AmongDecoys
    from sfumato.privacy.nodes.balls_in_bins import BallsInBins
    from sfumato.privacy.nodes.block_bound import BlockBound
    from sfumato.privacy.nodes.choice import AdaptiveChoice, Parallel
    from sfumato.privacy.nodes.fixed_size import FixedSizeSampled
    from sfumato.privacy.nodes.mixture import Mixture
    from sfumato.privacy.nodes.poisson import PoissonSubsampled
    from sfumato.privacy.nodes.poisson_records import PoissonRecords
    from sfumato.privacy.nodes.poisson_replace_one import PoissonReplaceOne
    from sfumato.privacy.nodes.post_processed import PostProcessed
    from sfumato.privacy.nodes.random_stopping import PoissonStopping, RandomStopping
    from sfumato.privacy.nodes.separated_poisson import SeparatedPoisson
    from sfumato.privacy.nodes.shuffled import Shuffled
    from sfumato.privacy.nodes.thresholded import DistanceTest, ThresholdedSelection, propose_test_release
    from sfumato.privacy.nodes.truncated import TruncatedPoisson
    from sfumato.privacy.nodes.with_replacement import SampledWithReplacement
    from sfumato.privacy.participation import matrix_mechanism, participation_sensitivity
    from sfumato.privacy.receipt import Receipt
    from sfumato.privacy.views import GDPView, PureView, ZCDPView

__all__ = [
    "CDP",
    "ZCDP",
    "AccountedLoss",
    "AdaptiveChoice",
    "AmongDecoys",
    "ApproximateDP",
    "Attack",
    "BallsInBins",
    "BlockBound",
    "Composed",
    "Curve",
    "DiscreteGaussian",
    "DiscreteGaussianSum",
    "DiscreteGaussianVector",
    "DiscreteLaplace",
    "DiscretePair",
    "DistanceTest",
    "Explanation",
    "Exponential",
    "FixedSizeSampled",
    "GDPView",
    "Gaussian",
    "GaussianDP",
    "GaussianSparseVector",
    "GroupPrivacy",
    "Guarantee",
    "Interval",
    "Laplace",
    "LossVariable",
    "MaxNoise",
    "Mixture",
    "Neighboring",
    "NoisyIteration",
    "Parallel",
    "PoissonRecords",
    "PoissonReplaceOne",
    "PoissonStopping",
    "PoissonSubsampled",
    "PostProcessed",
    "Precision",
    "PrivacyLoss",
    "Profile",
    "PureDP",
    "PureView",
    "RDPCurve",
    "RandomAllocation",
    "RandomStopping",
    "RandomizedResponse",
    "Receipt",
    "Relation",
    "Repeated",
    "ReportNoisyMax",
    "Risk",
    "SampledWithReplacement",
    "SeparatedPoisson",
    "Share",
    "Shuffled",
    "Skellam",
    "SmoothGaussian",
    "SmoothLaplace",
    "SmoothSensitivity",
    "SparseVector",
    "Staircase",
    "SupportResponse",
    "ThresholdedSampling",
    "ThresholdedSelection",
    "TradeOff",
    "TruncatedPoisson",
    "ZCDPView",
    "advanced_composition",
    "analytic_gaussian_stddev",
    "basic_composition",
    "calibrate",
    "classical_gaussian_stddev",
    "compose",
    "from_dp_event",
    "gdp_clt_approximation",
    "gdp_delta",
    "gdp_epsilon",
    "heterogeneous_composition",
    "loss_from_json",
    "matrix_mechanism",
    "optimal_composition",
    "participation_sensitivity",
    "propose_test_release",
    "pure_to_gdp",
    "pure_to_zcdp",
    "register_relation",
    "rho_for",
    "to_dp_event",
    "zcdp_delta",
    "zcdp_epsilon",
]

_HOMES = {
    "calibration": ["analytic_gaussian_stddev", "calibrate", "classical_gaussian_stddev"],
    "composition": [
        "advanced_composition",
        "basic_composition",
        "gdp_clt_approximation",
        "heterogeneous_composition",
        "optimal_composition",
    ],
    "conversion": [
        "gdp_delta",
        "gdp_epsilon",
        "pure_to_gdp",
        "pure_to_zcdp",
        "rho_for",
        "zcdp_delta",
        "zcdp_epsilon",
    ],
    "leaves.declared": ["ApproximateDP", "PureDP", "ZCDP"],
    "leaves.discrete_gaussian": ["DiscreteGaussian"],
    "leaves.discrete_gaussian_sum": ["DiscreteGaussianSum"],
    "leaves.discrete_gaussian_vector": ["DiscreteGaussianVector"],
    "leaves.discrete_laplace": ["DiscreteLaplace"],
    "leaves.exponential": ["Exponential"],
    "leaves.gaussian": ["Gaussian"],
    "guarantee": ["Guarantee"],
    "interchange": ["from_dp_event", "to_dp_event"],
    "leaves.gaussian_sparse_vector": ["GaussianSparseVector"],
    "leaves.noisy_iteration": ["NoisyIteration"],
    "leaves.laplace": ["Laplace"],
    "leaves.gaussian_dp": ["GaussianDP"],
    "leaves.profile": ["Profile"],
    "leaves.randomized_response": ["RandomizedResponse"],
    "leaves.discrete_pair": ["DiscretePair"],
    "leaves.rdp_curve": ["RDPCurve"],
    "leaves.staircase": ["Staircase"],
    "leaves.support_response": ["SupportResponse"],
    "leaves.thresholded_sampling": ["ThresholdedSampling"],
    "leaves.trade_off": ["TradeOff"],
    "leaves.leaf": ["GroupPrivacy"],
    "leaves.mean_concentrated": ["CDP"],
    "leaves.noisy_max": ["MaxNoise", "ReportNoisyMax"],
    "leaves.skellam": ["Skellam"],
    "leaves.smooth_noise": ["SmoothGaussian", "SmoothLaplace"],
    "leaves.smooth_sensitivity": ["SmoothSensitivity"],
    "leaves.sparse_vector": ["SparseVector"],
    "loss": ["Composed", "PrivacyLoss", "Repeated", "compose"],
    "interpretation.curves": ["Curve"],
    "interpretation.loss_variable": ["LossVariable"],
    "interpretation.risk": ["Attack", "Risk"],
    "interpretation.breakdown": ["Explanation", "Share"],
    "neighboring": ["Neighboring", "Relation", "register_relation"],
    "nodes.allocation": ["RandomAllocation"],
    "nodes.among_decoys": ["AmongDecoys"],
    "nodes.balls_in_bins": ["BallsInBins"],
    "nodes.block_bound": ["BlockBound"],
    "nodes.choice": ["AdaptiveChoice", "Parallel"],
    "nodes.fixed_size": ["FixedSizeSampled"],
    "nodes.mixture": ["Mixture"],
    "nodes.poisson": ["PoissonSubsampled"],
    "nodes.post_processed": ["PostProcessed"],
    "nodes.random_stopping": ["PoissonStopping", "RandomStopping"],
    "nodes.poisson_records": ["PoissonRecords"],
    "nodes.poisson_replace_one": ["PoissonReplaceOne"],
    "nodes.separated_poisson": ["SeparatedPoisson"],
    "nodes.shuffled": ["Shuffled"],
    "nodes.thresholded": ["DistanceTest", "ThresholdedSelection", "propose_test_release"],
    "nodes.truncated": ["TruncatedPoisson"],
    "nodes.with_replacement": ["SampledWithReplacement"],
    "participation": ["matrix_mechanism", "participation_sensitivity"],
    "accountant.precision": ["Precision"],
    "accounting": ["AccountedLoss"],
    "receipt": ["Receipt"],
    "catalog": ["loss_from_json"],
    "views": ["GDPView", "PureView", "ZCDPView"],
}

__getattr__, __dir__ = attach(
    __name__,
    {name: f"{__name__}.{module}" for module, names in _HOMES.items() for name in names}
    | {"Interval": "sfumato.numerics.interval"},
)
