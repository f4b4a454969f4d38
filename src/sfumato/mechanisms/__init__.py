"""Mechanisms: exact answers in, noisy releases out, with a loss derived from the parameters that ran.

A :class:`Query` knows how far one unit moves it; a mechanism (:class:`Laplace`, :class:`Gaussian`) adds exact
noise to hide that much; a :class:`Release` carries the value with its error and its loss. These are the raw
tools: they charge no ledger, and the caller's sensitivity is believed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from sfumato._lazy import attach

if TYPE_CHECKING:
    from sfumato.mechanisms.additive import AdditiveMechanism
    from sfumato.mechanisms.bounded_laplace import BoundedLaplace
    from sfumato.mechanisms.contributions import ContributionBound
    from sfumato.mechanisms.counting import Count
    from sfumato.mechanisms.factorization.banded import BandedToeplitz
    from sfumato.mechanisms.factorization.blt import BufferedToeplitz
    from sfumato.mechanisms.factorization.continual import ContinualSum
    from sfumato.mechanisms.factorization.k_norm import CubeRelease, KNorm
    from sfumato.mechanisms.factorization.kronecker import KroneckerMechanism
    from sfumato.mechanisms.factorization.linear_release import LinearRelease
    from sfumato.mechanisms.factorization.lower_triangular import LowerTriangular
    from sfumato.mechanisms.factorization.matrix_mechanism import MatrixMechanism
    from sfumato.mechanisms.factorization.multiplicative_weights import MultiplicativeWeights, WeightsRelease
    from sfumato.mechanisms.factorization.online_weights import OnlineMultiplicativeWeights
    from sfumato.mechanisms.factorization.optimal import optimal_strategy, svd_bound
    from sfumato.mechanisms.factorization.p_identity import p_identity
    from sfumato.mechanisms.factorization.participation import Participation
    from sfumato.mechanisms.factorization.polytope import facets_around
    from sfumato.mechanisms.factorization.pure_continual import PureContinualSum
    from sfumato.mechanisms.factorization.square_root import SquareRoot
    from sfumato.mechanisms.factorization.strategy import NoiseStream, Strategy
    from sfumato.mechanisms.factorization.stream_mechanism import SumStream
    from sfumato.mechanisms.factorization.tree import Tree
    from sfumato.mechanisms.factorization.weights_stream import LearnedAnswer, WeightsStream
    from sfumato.mechanisms.gaussian import Gaussian
    from sfumato.mechanisms.gaussian_sparse_vector import GaussianSparseVector
    from sfumato.mechanisms.grid import Grid
    from sfumato.mechanisms.histogram import Histogram
    from sfumato.mechanisms.laplace import Laplace
    from sfumato.mechanisms.lattice_release import LatticeRelease
    from sfumato.mechanisms.linear import LinearWorkload
    from sfumato.mechanisms.lipschitz import LipschitzMap
    from sfumato.mechanisms.local_sensitivity.inverse_sensitivity import InverseSensitivity
    from sfumato.mechanisms.local_sensitivity.propose_test_release import (
        ProposeTestRelease,
        StableQuantile,
        Statistic,
    )
    from sfumato.mechanisms.local_sensitivity.sample_and_aggregate import SampleAndAggregate
    from sfumato.mechanisms.local_sensitivity.smooth_quantile import SmoothQuantile
    from sfumato.mechanisms.local_sensitivity.smooth_trimmed_mean import SmoothTrimmedMean
    from sfumato.mechanisms.measurement import Measurement
    from sfumato.mechanisms.mechanism import Mechanism
    from sfumato.mechanisms.parallel import Parallel, ParallelRelease
    from sfumato.mechanisms.query import Query, TransformedQuery
    from sfumato.mechanisms.randomized_response import RandomizedResponse, ResponseRelease
    from sfumato.mechanisms.release import Release
    from sfumato.mechanisms.selection.exponential import Exponential
    from sfumato.mechanisms.selection.gaussian_noisy_max import GaussianNoisyMax
    from sfumato.mechanisms.selection.noisy_max import NoisyMax
    from sfumato.mechanisms.selection.permute_and_flip import PermuteAndFlip
    from sfumato.mechanisms.selection.private_candidates import BestRun, PrivateCandidates
    from sfumato.mechanisms.selection.selection import Selection
    from sfumato.mechanisms.selection.stability_histogram import StabilityHistogram
    from sfumato.mechanisms.selection.top_k import TopK
    from sfumato.mechanisms.selection.unknown_domain_top_k import UnknownDomainTopK
    from sfumato.mechanisms.sensitivity_check import SensitivityReport, Witness, check_sensitivity
    from sfumato.mechanisms.shift import Norm, Shift, Stability
    from sfumato.mechanisms.sparse_vector import SparseVector
    from sfumato.mechanisms.staircase import Staircase
    from sfumato.mechanisms.statistics.binomial_test import binomial_test, share_interval
    from sfumato.mechanisms.statistics.chi_square import goodness_of_fit, independence_test
    from sfumato.mechanisms.statistics.coin_press import CoinPress, MeanRelease
    from sfumato.mechanisms.statistics.extremes import Extreme
    from sfumato.mechanisms.statistics.heavy_tails import HeavyTailedMean
    from sfumato.mechanisms.statistics.joint_quantiles import JointQuantiles
    from sfumato.mechanisms.statistics.kolmogorov_smirnov import KolmogorovSmirnov
    from sfumato.mechanisms.statistics.moments import Covariance, Variance
    from sfumato.mechanisms.statistics.noisy_tail import Significance
    from sfumato.mechanisms.statistics.private_bounds import PrivateBounds
    from sfumato.mechanisms.statistics.quantile_tree import QuantilesRelease, QuantileTree
    from sfumato.mechanisms.statistics.quantiles import Quantile, Quantiles
    from sfumato.mechanisms.statistics.regression import LeastSquares, Line
    from sfumato.mechanisms.statistics.t_test import t_test
    from sfumato.mechanisms.statistics.theil_sen import TheilSen
    from sfumato.mechanisms.statistics.trimmed_mean import TrimmedMean
    from sfumato.mechanisms.sums import BoundedSum, Mean
    from sfumato.mechanisms.truncated_laplace import TruncatedLaplace

__all__ = [
    "AdditiveMechanism",
    "BandedToeplitz",
    "BestRun",
    "BoundedLaplace",
    "BoundedSum",
    "BufferedToeplitz",
    "CoinPress",
    "ContinualSum",
    "ContributionBound",
    "Count",
    "Covariance",
    "CubeRelease",
    "Exponential",
    "Extreme",
    "Gaussian",
    "GaussianNoisyMax",
    "GaussianSparseVector",
    "Grid",
    "HeavyTailedMean",
    "Histogram",
    "InverseSensitivity",
    "JointQuantiles",
    "KNorm",
    "KolmogorovSmirnov",
    "KroneckerMechanism",
    "Laplace",
    "LatticeRelease",
    "LearnedAnswer",
    "LeastSquares",
    "Line",
    "LinearRelease",
    "LinearWorkload",
    "LipschitzMap",
    "LowerTriangular",
    "MatrixMechanism",
    "Mean",
    "MeanRelease",
    "Measurement",
    "Mechanism",
    "MultiplicativeWeights",
    "NoiseStream",
    "NoisyMax",
    "Norm",
    "OnlineMultiplicativeWeights",
    "Parallel",
    "ParallelRelease",
    "Participation",
    "PermuteAndFlip",
    "PrivateBounds",
    "PrivateCandidates",
    "ProposeTestRelease",
    "PureContinualSum",
    "Quantile",
    "QuantileTree",
    "Quantiles",
    "QuantilesRelease",
    "Query",
    "RandomizedResponse",
    "Release",
    "ResponseRelease",
    "SampleAndAggregate",
    "Selection",
    "SensitivityReport",
    "Shift",
    "Significance",
    "SmoothQuantile",
    "SmoothTrimmedMean",
    "SparseVector",
    "SquareRoot",
    "Stability",
    "StabilityHistogram",
    "StableQuantile",
    "Staircase",
    "Statistic",
    "Strategy",
    "SumStream",
    "TheilSen",
    "TopK",
    "TransformedQuery",
    "Tree",
    "TrimmedMean",
    "TruncatedLaplace",
    "UnknownDomainTopK",
    "Variance",
    "WeightsRelease",
    "WeightsStream",
    "Witness",
    "binomial_test",
    "check_sensitivity",
    "facets_around",
    "goodness_of_fit",
    "independence_test",
    "optimal_strategy",
    "p_identity",
    "share_interval",
    "svd_bound",
    "t_test",
]

__getattr__, __dir__ = attach(
    __name__,
    {
        "AdditiveMechanism": "sfumato.mechanisms.additive",
        "BandedToeplitz": "sfumato.mechanisms.factorization.banded",
        "BestRun": "sfumato.mechanisms.selection.private_candidates",
        "BoundedLaplace": "sfumato.mechanisms.bounded_laplace",
        "BoundedSum": "sfumato.mechanisms.sums",
        "BufferedToeplitz": "sfumato.mechanisms.factorization.blt",
        "CoinPress": "sfumato.mechanisms.statistics.coin_press",
        "ContinualSum": "sfumato.mechanisms.factorization.continual",
        "ContributionBound": "sfumato.mechanisms.contributions",
        "Count": "sfumato.mechanisms.counting",
        "Covariance": "sfumato.mechanisms.statistics.moments",
        "CubeRelease": "sfumato.mechanisms.factorization.k_norm",
        "Exponential": "sfumato.mechanisms.selection.exponential",
        "Extreme": "sfumato.mechanisms.statistics.extremes",
        "Gaussian": "sfumato.mechanisms.gaussian",
        "GaussianNoisyMax": "sfumato.mechanisms.selection.gaussian_noisy_max",
        "GaussianSparseVector": "sfumato.mechanisms.gaussian_sparse_vector",
        "Grid": "sfumato.mechanisms.grid",
        "HeavyTailedMean": "sfumato.mechanisms.statistics.heavy_tails",
        "Histogram": "sfumato.mechanisms.histogram",
        "InverseSensitivity": "sfumato.mechanisms.local_sensitivity.inverse_sensitivity",
        "JointQuantiles": "sfumato.mechanisms.statistics.joint_quantiles",
        "KNorm": "sfumato.mechanisms.factorization.k_norm",
        "KolmogorovSmirnov": "sfumato.mechanisms.statistics.kolmogorov_smirnov",
        "KroneckerMechanism": "sfumato.mechanisms.factorization.kronecker",
        "Laplace": "sfumato.mechanisms.laplace",
        "LatticeRelease": "sfumato.mechanisms.lattice_release",
        "LearnedAnswer": "sfumato.mechanisms.factorization.weights_stream",
        "LeastSquares": "sfumato.mechanisms.statistics.regression",
        "Line": "sfumato.mechanisms.statistics.regression",
        "LinearRelease": "sfumato.mechanisms.factorization.linear_release",
        "LinearWorkload": "sfumato.mechanisms.linear",
        "LipschitzMap": "sfumato.mechanisms.lipschitz",
        "LowerTriangular": "sfumato.mechanisms.factorization.lower_triangular",
        "MatrixMechanism": "sfumato.mechanisms.factorization.matrix_mechanism",
        "Mean": "sfumato.mechanisms.sums",
        "MeanRelease": "sfumato.mechanisms.statistics.coin_press",
        "Measurement": "sfumato.mechanisms.measurement",
        "Mechanism": "sfumato.mechanisms.mechanism",
        "MultiplicativeWeights": "sfumato.mechanisms.factorization.multiplicative_weights",
        "NoiseStream": "sfumato.mechanisms.factorization.strategy",
        "NoisyMax": "sfumato.mechanisms.selection.noisy_max",
        "Norm": "sfumato.mechanisms.shift",
        "OnlineMultiplicativeWeights": "sfumato.mechanisms.factorization.online_weights",
        "Parallel": "sfumato.mechanisms.parallel",
        "ParallelRelease": "sfumato.mechanisms.parallel",
        "Participation": "sfumato.mechanisms.factorization.participation",
        "PermuteAndFlip": "sfumato.mechanisms.selection.permute_and_flip",
        "PrivateBounds": "sfumato.mechanisms.statistics.private_bounds",
        "PrivateCandidates": "sfumato.mechanisms.selection.private_candidates",
        "ProposeTestRelease": "sfumato.mechanisms.local_sensitivity.propose_test_release",
        "PureContinualSum": "sfumato.mechanisms.factorization.pure_continual",
        "Quantile": "sfumato.mechanisms.statistics.quantiles",
        "QuantileTree": "sfumato.mechanisms.statistics.quantile_tree",
        "Quantiles": "sfumato.mechanisms.statistics.quantiles",
        "QuantilesRelease": "sfumato.mechanisms.statistics.quantile_tree",
        "Query": "sfumato.mechanisms.query",
        "RandomizedResponse": "sfumato.mechanisms.randomized_response",
        "Release": "sfumato.mechanisms.release",
        "ResponseRelease": "sfumato.mechanisms.randomized_response",
        "SampleAndAggregate": "sfumato.mechanisms.local_sensitivity.sample_and_aggregate",
        "Selection": "sfumato.mechanisms.selection.selection",
        "SensitivityReport": "sfumato.mechanisms.sensitivity_check",
        "Shift": "sfumato.mechanisms.shift",
        "Significance": "sfumato.mechanisms.statistics.noisy_tail",
        "SmoothQuantile": "sfumato.mechanisms.local_sensitivity.smooth_quantile",
        "SmoothTrimmedMean": "sfumato.mechanisms.local_sensitivity.smooth_trimmed_mean",
        "SparseVector": "sfumato.mechanisms.sparse_vector",
        "SquareRoot": "sfumato.mechanisms.factorization.square_root",
        "Stability": "sfumato.mechanisms.shift",
        "StabilityHistogram": "sfumato.mechanisms.selection.stability_histogram",
        "StableQuantile": "sfumato.mechanisms.local_sensitivity.propose_test_release",
        "Staircase": "sfumato.mechanisms.staircase",
        "Statistic": "sfumato.mechanisms.local_sensitivity.propose_test_release",
        "Strategy": "sfumato.mechanisms.factorization.strategy",
        "SumStream": "sfumato.mechanisms.factorization.stream_mechanism",
        "TheilSen": "sfumato.mechanisms.statistics.theil_sen",
        "TopK": "sfumato.mechanisms.selection.top_k",
        "TransformedQuery": "sfumato.mechanisms.query",
        "Tree": "sfumato.mechanisms.factorization.tree",
        "TrimmedMean": "sfumato.mechanisms.statistics.trimmed_mean",
        "TruncatedLaplace": "sfumato.mechanisms.truncated_laplace",
        "UnknownDomainTopK": "sfumato.mechanisms.selection.unknown_domain_top_k",
        "Variance": "sfumato.mechanisms.statistics.moments",
        "WeightsRelease": "sfumato.mechanisms.factorization.multiplicative_weights",
        "WeightsStream": "sfumato.mechanisms.factorization.weights_stream",
        "Witness": "sfumato.mechanisms.sensitivity_check",
        "binomial_test": "sfumato.mechanisms.statistics.binomial_test",
        "check_sensitivity": "sfumato.mechanisms.sensitivity_check",
        "facets_around": "sfumato.mechanisms.factorization.polytope",
        "goodness_of_fit": "sfumato.mechanisms.statistics.chi_square",
        "independence_test": "sfumato.mechanisms.statistics.chi_square",
        "optimal_strategy": "sfumato.mechanisms.factorization.optimal",
        "p_identity": "sfumato.mechanisms.factorization.p_identity",
        "share_interval": "sfumato.mechanisms.statistics.binomial_test",
        "svd_bound": "sfumato.mechanisms.factorization.optimal",
        "t_test": "sfumato.mechanisms.statistics.t_test",
    },
)
