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
    "AdditiveMechanism",
    "BandedToeplitz",
    "BestRun",
    "BinaryTree",
    "BoundedLaplace",
    "BoundedSum",
    "BufferedToeplitz",
    "CanonicalNoise",
    "CoefficientErrors",
    "CoinPress",
    "ContinualSum",
    "ContributionBound",
    "Count",
    "Covariance",
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
    "KendallTau",
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
        "AdditiveMechanism": "sfumato.mechanisms.base.additive",
        "BandedToeplitz": "sfumato.mechanisms.factorization.strategies.banded",
        "BestRun": "sfumato.mechanisms.selection.private_candidates",
        "BoundedLaplace": "sfumato.mechanisms.noise.bounded_laplace",
        "BoundedSum": "sfumato.mechanisms.query.sums",
        "BufferedToeplitz": "sfumato.mechanisms.factorization.strategies.buffered_toeplitz",
        "CanonicalNoise": "sfumato.mechanisms.noise.canonical",
        "AbsoluteVariation": "sfumato.mechanisms.statistics.hypothesis_test.anova",
        "KruskalWallis": "sfumato.mechanisms.statistics.hypothesis_test.rank_tests",
        "MannWhitney": "sfumato.mechanisms.statistics.hypothesis_test.rank_tests",
        "OneWayAnova": "sfumato.mechanisms.statistics.hypothesis_test.anova",
        "PrincipalComponents": "sfumato.mechanisms.statistics.second_moments",
        "SecondMoments": "sfumato.mechanisms.statistics.second_moments",
        "TukeyMedian": "sfumato.mechanisms.statistics.tukey_median",
        "SmallDatabase": "sfumato.mechanisms.factorization.small_database",
        "SmallDatabaseRelease": "sfumato.mechanisms.factorization.small_database",
        "ALP": "sfumato.mechanisms.selection.alp",
        "ALPRelease": "sfumato.mechanisms.selection.alp",
        "DistinctCountRelease": "sfumato.mechanisms.statistics.distinct_count",
        "DistinctCountSketch": "sfumato.mechanisms.statistics.distinct_count",
        "CoefficientErrors": "sfumato.mechanisms.statistics.least_squares",
        "CoinPress": "sfumato.mechanisms.statistics.coinpress",
        "ContinualSum": "sfumato.mechanisms.factorization.continual_sum",
        "ContributionBound": "sfumato.mechanisms.query.contribution_bound",
        "Count": "sfumato.mechanisms.query.counts",
        "Covariance": "sfumato.mechanisms.statistics.covariance",
        "KNormRelease": "sfumato.mechanisms.factorization.k_norm_release",
        "Exponential": "sfumato.mechanisms.selection.exponential",
        "Extreme": "sfumato.mechanisms.statistics.quantile.extremes",
        "Gaussian": "sfumato.mechanisms.noise.gaussian",
        "GaussianNoisyMax": "sfumato.mechanisms.selection.gaussian_noisy_max",
        "GaussianSparseVector": "sfumato.mechanisms.sparse_vector.gaussian_sparse_vector",
        "Grid": "sfumato.mechanisms.base.grid",
        "HeavyTailedMean": "sfumato.mechanisms.statistics.heavy_tailed_mean",
        "Histogram": "sfumato.mechanisms.query.counts",
        "InverseSensitivity": "sfumato.mechanisms.local_sensitivity.inverse_sensitivity",
        "JointQuantiles": "sfumato.mechanisms.statistics.quantile.joint_quantiles",
        "KNorm": "sfumato.mechanisms.factorization.k_norm",
        "KolmogorovSmirnov": "sfumato.mechanisms.statistics.hypothesis_test.kolmogorov_smirnov",
        "KroneckerMechanism": "sfumato.mechanisms.factorization.kronecker_mechanism",
        "Laplace": "sfumato.mechanisms.noise.laplace",
        "LatticeRelease": "sfumato.mechanisms.base.release",
        "StreamAnswer": "sfumato.mechanisms.factorization.query_stream",
        "LeastSquares": "sfumato.mechanisms.statistics.least_squares",
        "LinearFit": "sfumato.mechanisms.statistics.least_squares",
        "LinearRelease": "sfumato.mechanisms.factorization.linear_release",
        "LinearWorkload": "sfumato.mechanisms.query.linear_workload",
        "LipschitzMap": "sfumato.mechanisms.query.lipschitz",
        "LowerTriangular": "sfumato.mechanisms.factorization.strategies.lower_triangular",
        "MatrixMechanism": "sfumato.mechanisms.factorization.matrix_mechanism",
        "Mean": "sfumato.mechanisms.query.sums",
        "MeanRelease": "sfumato.mechanisms.statistics.coinpress",
        "Measurement": "sfumato.mechanisms.base.measurement",
        "Mechanism": "sfumato.mechanisms.base.mechanism",
        "MultiplicativeWeights": "sfumato.mechanisms.factorization.multiplicative_weights",
        "NoiseStream": "sfumato.mechanisms.factorization.strategies.strategy",
        "NoisyMax": "sfumato.mechanisms.selection.noisy_max",
        "Norm": "sfumato.mechanisms.base.sensitivity",
        "OnlineMultiplicativeWeights": "sfumato.mechanisms.factorization.online_multiplicative_weights",
        "ParallelComposition": "sfumato.mechanisms.base.parallel_composition",
        "ParallelRelease": "sfumato.mechanisms.base.parallel_composition",
        "Participation": "sfumato.mechanisms.factorization.strategies.participation",
        "PermuteAndFlip": "sfumato.mechanisms.selection.permute_and_flip",
        "PrivateBounds": "sfumato.mechanisms.statistics.private_bounds",
        "PrivateCandidates": "sfumato.mechanisms.selection.private_candidates",
        "ProposeTestRelease": "sfumato.mechanisms.local_sensitivity.propose_test_release",
        "PureContinualSum": "sfumato.mechanisms.factorization.pure_continual_sum",
        "Quantile": "sfumato.mechanisms.statistics.quantile.quantiles",
        "QuantileInterval": "sfumato.mechanisms.statistics.quantile.quantile_interval",
        "QuantileTree": "sfumato.mechanisms.statistics.quantile.quantile_tree",
        "Quantiles": "sfumato.mechanisms.statistics.quantile.quantiles",
        "QuantilesRelease": "sfumato.mechanisms.statistics.quantile.quantile_tree",
        "Query": "sfumato.mechanisms.base.query",
        "RandomizedResponse": "sfumato.mechanisms.noise.randomized_response",
        "Release": "sfumato.mechanisms.base.release",
        "ResponseRelease": "sfumato.mechanisms.noise.randomized_response",
        "SampleAndAggregate": "sfumato.mechanisms.local_sensitivity.sample_and_aggregate",
        "Selection": "sfumato.mechanisms.selection.selection",
        "SensitivityReport": "sfumato.mechanisms.query.sensitivity_check",
        "Shift": "sfumato.mechanisms.base.sensitivity",
        "HypothesisTestResult": "sfumato.mechanisms.statistics.hypothesis_test.p_value",
        "SmoothQuantile": "sfumato.mechanisms.local_sensitivity.smooth_quantile",
        "SmoothTrimmedMean": "sfumato.mechanisms.local_sensitivity.smooth_trimmed_mean",
        "SparseVector": "sfumato.mechanisms.sparse_vector.laplace_sparse_vector",
        "SquareRoot": "sfumato.mechanisms.factorization.strategies.square_root",
        "Stability": "sfumato.mechanisms.base.sensitivity",
        "StabilityHistogram": "sfumato.mechanisms.selection.stability_histogram",
        "StableQuantile": "sfumato.mechanisms.local_sensitivity.propose_test_release",
        "Staircase": "sfumato.mechanisms.noise.staircase",
        "Statistic": "sfumato.mechanisms.local_sensitivity.propose_test_release",
        "Strategy": "sfumato.mechanisms.factorization.strategies.strategy",
        "SumStream": "sfumato.mechanisms.factorization.stream_mechanism",
        "TheilSen": "sfumato.mechanisms.statistics.theil_sen",
        "TopK": "sfumato.mechanisms.selection.top_k",
        "TransformedQuery": "sfumato.mechanisms.base.query",
        "BinaryTree": "sfumato.mechanisms.factorization.strategies.binary_tree",
        "TrimmedMean": "sfumato.mechanisms.statistics.trimmed_mean",
        "TruncatedLaplace": "sfumato.mechanisms.noise.truncated_laplace",
        "UnknownDomainTopK": "sfumato.mechanisms.selection.unknown_domain_top_k",
        "Variance": "sfumato.mechanisms.statistics.covariance",
        "MultiplicativeWeightsRelease": "sfumato.mechanisms.factorization.multiplicative_weights",
        "LinearQueryStream": "sfumato.mechanisms.factorization.query_stream",
        "Witness": "sfumato.mechanisms.query.sensitivity_check",
        "binomial_test": "sfumato.mechanisms.statistics.hypothesis_test.binomial_test",
        "check_sensitivity": "sfumato.mechanisms.query.sensitivity_check",
        "facets_around": "sfumato.mechanisms.factorization.polytope",
        "goodness_of_fit": "sfumato.mechanisms.statistics.hypothesis_test.chi_square",
        "independence_test": "sfumato.mechanisms.statistics.hypothesis_test.chi_square",
        "optimal_strategy": "sfumato.mechanisms.factorization.strategies.optimal_strategy",
        "p_identity": "sfumato.mechanisms.factorization.strategies.p_identity",
        "proportion_interval": "sfumato.mechanisms.statistics.hypothesis_test.binomial_test",
        "svd_bound": "sfumato.mechanisms.factorization.strategies.optimal_strategy",
        "t_interval": "sfumato.mechanisms.statistics.hypothesis_test.t_test",
        "t_test": "sfumato.mechanisms.statistics.hypothesis_test.t_test",
        "KendallTau": "sfumato.mechanisms.statistics.hypothesis_test.rank_correlation",
        "SpearmanRho": "sfumato.mechanisms.statistics.hypothesis_test.rank_correlation",
        "TwoSampleKolmogorovSmirnov": "sfumato.mechanisms.statistics.hypothesis_test.two_sample_distance",
        "WilcoxonSignedRank": "sfumato.mechanisms.statistics.hypothesis_test.signed_rank",
        "slope_test": "sfumato.mechanisms.statistics.slope_test",
        "two_proportions_interval": "sfumato.mechanisms.statistics.hypothesis_test.two_proportions",
        "two_proportions_test": "sfumato.mechanisms.statistics.hypothesis_test.two_proportions",
        "variance_interval": "sfumato.mechanisms.statistics.hypothesis_test.t_test",
    },
)
