"""Mechanisms: a query's exact answer in, a noisy release out, and the privacy loss of what was run.

A :class:`Query` knows how far one unit moves it; a mechanism (:class:`Laplace`, :class:`Gaussian`) adds exact
noise to hide that much; a :class:`Release` carries the value with its error and its loss. These are the raw
tools: they charge no ledger, and the caller's sensitivity is believed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from sfumato._lazy import attach

if TYPE_CHECKING:
    from sfumato.mechanisms.base.additive import AdditiveMechanism
    from sfumato.mechanisms.base.grid import Grid
    from sfumato.mechanisms.base.measurement import Measurement
    from sfumato.mechanisms.base.mechanism import Mechanism
    from sfumato.mechanisms.base.parallel_composition import ParallelComposition, ParallelRelease
    from sfumato.mechanisms.base.query import Query, TransformedQuery
    from sfumato.mechanisms.base.release import LatticeRelease, Release
    from sfumato.mechanisms.base.sensitivity import Norm, Shift, Stability
    from sfumato.mechanisms.factorization.continual_sum import ContinualSum
    from sfumato.mechanisms.factorization.k_norm import KNorm
    from sfumato.mechanisms.factorization.k_norm_release import KNormRelease
    from sfumato.mechanisms.factorization.kronecker_mechanism import KroneckerMechanism
    from sfumato.mechanisms.factorization.linear_release import LinearRelease
    from sfumato.mechanisms.factorization.matrix_mechanism import MatrixMechanism
    from sfumato.mechanisms.factorization.multiplicative_weights import (
        MultiplicativeWeights,
        MultiplicativeWeightsRelease,
    )
    from sfumato.mechanisms.factorization.online_multiplicative_weights import OnlineMultiplicativeWeights
    from sfumato.mechanisms.factorization.polytope import facets_around
    from sfumato.mechanisms.factorization.pure_continual_sum import PureContinualSum
    from sfumato.mechanisms.factorization.query_stream import LinearQueryStream, StreamAnswer
    from sfumato.mechanisms.factorization.small_database import SmallDatabase, SmallDatabaseRelease
    from sfumato.mechanisms.factorization.strategies.banded import BandedToeplitz
    from sfumato.mechanisms.factorization.strategies.binary_tree import BinaryTree
    from sfumato.mechanisms.factorization.strategies.buffered_toeplitz import BufferedToeplitz
    from sfumato.mechanisms.factorization.strategies.lower_triangular import LowerTriangular
    from sfumato.mechanisms.factorization.strategies.optimal_strategy import optimal_strategy, svd_bound
    from sfumato.mechanisms.factorization.strategies.p_identity import p_identity
    from sfumato.mechanisms.factorization.strategies.participation import Participation
    from sfumato.mechanisms.factorization.strategies.square_root import SquareRoot
    from sfumato.mechanisms.factorization.strategies.strategy import NoiseStream, Strategy
    from sfumato.mechanisms.factorization.stream_mechanism import SumStream
    from sfumato.mechanisms.local_sensitivity.inverse_sensitivity import InverseSensitivity
    from sfumato.mechanisms.local_sensitivity.propose_test_release import (
        ProposeTestRelease,
        StableQuantile,
        Statistic,
    )
    from sfumato.mechanisms.local_sensitivity.sample_and_aggregate import SampleAndAggregate
    from sfumato.mechanisms.local_sensitivity.smooth_quantile import SmoothQuantile
    from sfumato.mechanisms.local_sensitivity.smooth_trimmed_mean import SmoothTrimmedMean
    from sfumato.mechanisms.noise.bounded_laplace import BoundedLaplace
    from sfumato.mechanisms.noise.canonical import CanonicalNoise
    from sfumato.mechanisms.noise.gaussian import Gaussian
    from sfumato.mechanisms.noise.laplace import Laplace
    from sfumato.mechanisms.noise.randomized_response import RandomizedResponse, ResponseRelease
    from sfumato.mechanisms.noise.staircase import Staircase
    from sfumato.mechanisms.noise.truncated_laplace import TruncatedLaplace
    from sfumato.mechanisms.query.contribution_bound import ContributionBound
    from sfumato.mechanisms.query.counts import Count, Histogram
    from sfumato.mechanisms.query.linear_workload import LinearWorkload
    from sfumato.mechanisms.query.lipschitz import LipschitzMap
    from sfumato.mechanisms.query.sensitivity_check import SensitivityReport, Witness, check_sensitivity
    from sfumato.mechanisms.query.sums import BoundedSum, Mean
    from sfumato.mechanisms.selection.alp import ALP, ALPRelease
    from sfumato.mechanisms.selection.exponential import Exponential
    from sfumato.mechanisms.selection.gaussian_noisy_max import GaussianNoisyMax
    from sfumato.mechanisms.selection.noisy_max import NoisyMax
    from sfumato.mechanisms.selection.permute_and_flip import PermuteAndFlip
    from sfumato.mechanisms.selection.private_candidates import BestRun, PrivateCandidates
    from sfumato.mechanisms.selection.selection import Selection
    from sfumato.mechanisms.selection.stability_histogram import StabilityHistogram
    from sfumato.mechanisms.selection.top_k import TopK
    from sfumato.mechanisms.selection.unknown_domain_top_k import UnknownDomainTopK
    from sfumato.mechanisms.sparse_vector.gaussian_sparse_vector import GaussianSparseVector
    from sfumato.mechanisms.sparse_vector.laplace_sparse_vector import SparseVector
    from sfumato.mechanisms.statistics.coinpress import CoinPress, MeanRelease
    from sfumato.mechanisms.statistics.coinpress_vectors.covariance_matrix import CoinPressCovariance
    from sfumato.mechanisms.statistics.coinpress_vectors.vector_mean import CoinPressVectorMean
    from sfumato.mechanisms.statistics.covariance import Covariance, Variance
    from sfumato.mechanisms.statistics.distinct_count import DistinctCountRelease, DistinctCountSketch
    from sfumato.mechanisms.statistics.heavy_tailed_mean import HeavyTailedMean
    from sfumato.mechanisms.statistics.hypothesis_test.anova import AbsoluteVariation, OneWayAnova
    from sfumato.mechanisms.statistics.hypothesis_test.binomial_test import binomial_test, proportion_interval
    from sfumato.mechanisms.statistics.hypothesis_test.chi_square import goodness_of_fit, independence_test
    from sfumato.mechanisms.statistics.hypothesis_test.kolmogorov_smirnov import KolmogorovSmirnov
    from sfumato.mechanisms.statistics.hypothesis_test.p_value import HypothesisTestResult
    from sfumato.mechanisms.statistics.hypothesis_test.rank_correlation import KendallTau, SpearmanRho
    from sfumato.mechanisms.statistics.hypothesis_test.rank_tests import KruskalWallis, MannWhitney
    from sfumato.mechanisms.statistics.hypothesis_test.signed_rank import WilcoxonSignedRank
    from sfumato.mechanisms.statistics.hypothesis_test.t_test import t_interval, t_test, variance_interval
    from sfumato.mechanisms.statistics.hypothesis_test.two_proportions import (
        two_proportions_interval,
        two_proportions_test,
    )
    from sfumato.mechanisms.statistics.hypothesis_test.two_sample_distance import TwoSampleKolmogorovSmirnov
    from sfumato.mechanisms.statistics.least_squares import CoefficientErrors, LeastSquares, LinearFit
    from sfumato.mechanisms.statistics.nonparametric.adaptive_histogram import (
        AdaptiveHistogram,
        AdaptiveHistogramRelease,
    )
    from sfumato.mechanisms.statistics.nonparametric.contingency_table import (
        AssociationEstimate,
        ContingencyTable,
    )
    from sfumato.mechanisms.statistics.nonparametric.kaplan_meier import (
        KaplanMeier,
        SurvivalBand,
        SurvivalCurve,
    )
    from sfumato.mechanisms.statistics.nonparametric.kernel_density import (
        DensityBand,
        DensityEstimate,
        KernelDensity,
    )
    from sfumato.mechanisms.statistics.private_bounds import PrivateBounds
    from sfumato.mechanisms.statistics.quantile.extremes import Extreme
    from sfumato.mechanisms.statistics.quantile.joint_quantiles import JointQuantiles
    from sfumato.mechanisms.statistics.quantile.quantile_interval import QuantileInterval
    from sfumato.mechanisms.statistics.quantile.quantile_tree import QuantilesRelease, QuantileTree
    from sfumato.mechanisms.statistics.quantile.quantiles import Quantile, Quantiles
    from sfumato.mechanisms.statistics.second_moments import PrincipalComponents, SecondMoments
    from sfumato.mechanisms.statistics.slope_test import slope_test
    from sfumato.mechanisms.statistics.theil_sen import TheilSen
    from sfumato.mechanisms.statistics.trimmed_mean import TrimmedMean
    from sfumato.mechanisms.statistics.tukey_median import TukeyMedian

__all__ = [
    "ALP",
    "ALPRelease",
    "AbsoluteVariation",
    "AdaptiveHistogram",
    "AdaptiveHistogramRelease",
    "AdditiveMechanism",
    "AssociationEstimate",
    "BandedToeplitz",
    "BestRun",
    "BinaryTree",
    "BoundedLaplace",
    "BoundedSum",
    "BufferedToeplitz",
    "CanonicalNoise",
    "CoefficientErrors",
    "CoinPress",
    "CoinPressCovariance",
    "CoinPressVectorMean",
    "ContingencyTable",
    "ContinualSum",
    "ContributionBound",
    "Count",
    "Covariance",
    "DensityBand",
    "DensityEstimate",
    "DistinctCountRelease",
    "DistinctCountSketch",
    "Exponential",
    "Extreme",
    "Gaussian",
    "GaussianNoisyMax",
    "GaussianSparseVector",
    "Grid",
    "HeavyTailedMean",
    "Histogram",
    "HypothesisTestResult",
    "InverseSensitivity",
    "JointQuantiles",
    "KNorm",
    "KNormRelease",
    "KaplanMeier",
    "KendallTau",
    "KernelDensity",
    "KolmogorovSmirnov",
    "KroneckerMechanism",
    "KruskalWallis",
    "Laplace",
    "LatticeRelease",
    "LeastSquares",
    "LinearFit",
    "LinearQueryStream",
    "LinearRelease",
    "LinearWorkload",
    "LipschitzMap",
    "LowerTriangular",
    "MannWhitney",
    "MatrixMechanism",
    "Mean",
    "MeanRelease",
    "Measurement",
    "Mechanism",
    "MultiplicativeWeights",
    "MultiplicativeWeightsRelease",
    "NoiseStream",
    "NoisyMax",
    "Norm",
    "OneWayAnova",
    "OnlineMultiplicativeWeights",
    "ParallelComposition",
    "ParallelRelease",
    "Participation",
    "PermuteAndFlip",
    "PrincipalComponents",
    "PrivateBounds",
    "PrivateCandidates",
    "ProposeTestRelease",
    "PureContinualSum",
    "Quantile",
    "QuantileInterval",
    "QuantileTree",
    "Quantiles",
    "QuantilesRelease",
    "Query",
    "RandomizedResponse",
    "Release",
    "ResponseRelease",
    "SampleAndAggregate",
    "SecondMoments",
    "Selection",
    "SensitivityReport",
    "Shift",
    "SmallDatabase",
    "SmallDatabaseRelease",
    "SmoothQuantile",
    "SmoothTrimmedMean",
    "SparseVector",
    "SpearmanRho",
    "SquareRoot",
    "Stability",
    "StabilityHistogram",
    "StableQuantile",
    "Staircase",
    "Statistic",
    "Strategy",
    "StreamAnswer",
    "SumStream",
    "SurvivalBand",
    "SurvivalCurve",
    "TheilSen",
    "TopK",
    "TransformedQuery",
    "TrimmedMean",
    "TruncatedLaplace",
    "TukeyMedian",
    "TwoSampleKolmogorovSmirnov",
    "UnknownDomainTopK",
    "Variance",
    "WilcoxonSignedRank",
    "Witness",
    "binomial_test",
    "check_sensitivity",
    "facets_around",
    "goodness_of_fit",
    "independence_test",
    "optimal_strategy",
    "p_identity",
    "proportion_interval",
    "slope_test",
    "svd_bound",
    "t_interval",
    "t_test",
    "two_proportions_interval",
    "two_proportions_test",
    "variance_interval",
]

__getattr__, __dir__ = attach(
    __name__,
    {
        name: f"{__name__}.{module}"
        for module, names in {
            "base.additive": ("AdditiveMechanism",),
            "base.grid": ("Grid",),
            "base.measurement": ("Measurement",),
            "base.mechanism": ("Mechanism",),
            "base.parallel_composition": ("ParallelComposition", "ParallelRelease"),
            "base.query": ("Query", "TransformedQuery"),
            "base.release": ("LatticeRelease", "Release"),
            "base.sensitivity": ("Norm", "Shift", "Stability"),
            "factorization.continual_sum": ("ContinualSum",),
            "factorization.k_norm": ("KNorm",),
            "factorization.k_norm_release": ("KNormRelease",),
            "factorization.kronecker_mechanism": ("KroneckerMechanism",),
            "factorization.linear_release": ("LinearRelease",),
            "factorization.matrix_mechanism": ("MatrixMechanism",),
            "factorization.multiplicative_weights": ("MultiplicativeWeights", "MultiplicativeWeightsRelease"),
            "factorization.online_multiplicative_weights": ("OnlineMultiplicativeWeights",),
            "factorization.polytope": ("facets_around",),
            "factorization.pure_continual_sum": ("PureContinualSum",),
            "factorization.query_stream": ("LinearQueryStream", "StreamAnswer"),
            "factorization.small_database": ("SmallDatabase", "SmallDatabaseRelease"),
            "factorization.strategies.banded": ("BandedToeplitz",),
            "factorization.strategies.binary_tree": ("BinaryTree",),
            "factorization.strategies.buffered_toeplitz": ("BufferedToeplitz",),
            "factorization.strategies.lower_triangular": ("LowerTriangular",),
            "factorization.strategies.optimal_strategy": ("optimal_strategy", "svd_bound"),
            "factorization.strategies.p_identity": ("p_identity",),
            "factorization.strategies.participation": ("Participation",),
            "factorization.strategies.square_root": ("SquareRoot",),
            "factorization.strategies.strategy": ("NoiseStream", "Strategy"),
            "factorization.stream_mechanism": ("SumStream",),
            "local_sensitivity.inverse_sensitivity": ("InverseSensitivity",),
            "local_sensitivity.propose_test_release": ("ProposeTestRelease", "StableQuantile", "Statistic"),
            "local_sensitivity.sample_and_aggregate": ("SampleAndAggregate",),
            "local_sensitivity.smooth_quantile": ("SmoothQuantile",),
            "local_sensitivity.smooth_trimmed_mean": ("SmoothTrimmedMean",),
            "noise.bounded_laplace": ("BoundedLaplace",),
            "noise.canonical": ("CanonicalNoise",),
            "noise.gaussian": ("Gaussian",),
            "noise.laplace": ("Laplace",),
            "noise.randomized_response": ("RandomizedResponse", "ResponseRelease"),
            "noise.staircase": ("Staircase",),
            "noise.truncated_laplace": ("TruncatedLaplace",),
            "query.contribution_bound": ("ContributionBound",),
            "query.counts": ("Count", "Histogram"),
            "query.linear_workload": ("LinearWorkload",),
            "query.lipschitz": ("LipschitzMap",),
            "query.sensitivity_check": ("SensitivityReport", "Witness", "check_sensitivity"),
            "query.sums": ("BoundedSum", "Mean"),
            "selection.alp": ("ALP", "ALPRelease"),
            "selection.exponential": ("Exponential",),
            "selection.gaussian_noisy_max": ("GaussianNoisyMax",),
            "selection.noisy_max": ("NoisyMax",),
            "selection.permute_and_flip": ("PermuteAndFlip",),
            "selection.private_candidates": ("BestRun", "PrivateCandidates"),
            "selection.selection": ("Selection",),
            "selection.stability_histogram": ("StabilityHistogram",),
            "selection.top_k": ("TopK",),
            "selection.unknown_domain_top_k": ("UnknownDomainTopK",),
            "sparse_vector.gaussian_sparse_vector": ("GaussianSparseVector",),
            "sparse_vector.laplace_sparse_vector": ("SparseVector",),
            "statistics.coinpress": ("CoinPress", "MeanRelease"),
            "statistics.coinpress_vectors.covariance_matrix": ("CoinPressCovariance",),
            "statistics.coinpress_vectors.vector_mean": ("CoinPressVectorMean",),
            "statistics.covariance": ("Covariance", "Variance"),
            "statistics.distinct_count": ("DistinctCountRelease", "DistinctCountSketch"),
            "statistics.heavy_tailed_mean": ("HeavyTailedMean",),
            "statistics.hypothesis_test.anova": ("AbsoluteVariation", "OneWayAnova"),
            "statistics.hypothesis_test.binomial_test": ("binomial_test", "proportion_interval"),
            "statistics.hypothesis_test.chi_square": ("goodness_of_fit", "independence_test"),
            "statistics.hypothesis_test.kolmogorov_smirnov": ("KolmogorovSmirnov",),
            "statistics.hypothesis_test.p_value": ("HypothesisTestResult",),
            "statistics.hypothesis_test.rank_correlation": ("KendallTau", "SpearmanRho"),
            "statistics.hypothesis_test.rank_tests": ("KruskalWallis", "MannWhitney"),
            "statistics.hypothesis_test.signed_rank": ("WilcoxonSignedRank",),
            "statistics.hypothesis_test.t_test": ("t_interval", "t_test", "variance_interval"),
            "statistics.hypothesis_test.two_proportions": (
                "two_proportions_interval",
                "two_proportions_test",
            ),
            "statistics.hypothesis_test.two_sample_distance": ("TwoSampleKolmogorovSmirnov",),
            "statistics.least_squares": ("CoefficientErrors", "LeastSquares", "LinearFit"),
            "statistics.nonparametric.adaptive_histogram": ("AdaptiveHistogram", "AdaptiveHistogramRelease"),
            "statistics.nonparametric.contingency_table": ("AssociationEstimate", "ContingencyTable"),
            "statistics.nonparametric.kaplan_meier": ("KaplanMeier", "SurvivalBand", "SurvivalCurve"),
            "statistics.nonparametric.kernel_density": ("DensityBand", "DensityEstimate", "KernelDensity"),
            "statistics.private_bounds": ("PrivateBounds",),
            "statistics.quantile.extremes": ("Extreme",),
            "statistics.quantile.joint_quantiles": ("JointQuantiles",),
            "statistics.quantile.quantile_interval": ("QuantileInterval",),
            "statistics.quantile.quantile_tree": ("QuantileTree", "QuantilesRelease"),
            "statistics.quantile.quantiles": ("Quantile", "Quantiles"),
            "statistics.second_moments": ("PrincipalComponents", "SecondMoments"),
            "statistics.slope_test": ("slope_test",),
            "statistics.theil_sen": ("TheilSen",),
            "statistics.trimmed_mean": ("TrimmedMean",),
            "statistics.tukey_median": ("TukeyMedian",),
        }.items()
        for name in names
    },
)
