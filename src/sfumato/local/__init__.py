"""Local privacy: each person perturbs their own answer, and no curator has to be trusted.

One shape for all protocols: an oracle's ``randomize`` runs on the device (`sfumato.local.device` is that half
alone) and gives bytes; an `Aggregator` counts them, in pieces that merge; an `Estimate` has the shares with
their intervals. The bound on every report's loss holds whatever the aggregator does.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from sfumato._lazy import attach

if TYPE_CHECKING:
    from sfumato.local import baselines, device, shuffle, surveys
    from sfumato.local.aggregation.arrow import aggregate_arrow, aggregate_parquet
    from sfumato.local.aggregation.spark import aggregate_spark
    from sfumato.local.base.aggregator import Aggregator
    from sfumato.local.base.plan_comparison import choose
    from sfumato.local.device.base.report_batch import ReportBatch
    from sfumato.local.device.domains.bins import Bins
    from sfumato.local.device.domains.categories import Domain
    from sfumato.local.device.domains.strings import Strings
    from sfumato.local.frequency.bit_flip import BitFlip
    from sfumato.local.frequency.combination import (
        CombinedShares,
        PooledShares,
        ShareDifference,
        difference,
        pool,
    )
    from sfumato.local.frequency.count_mean_sketch import CountMeanSketch, HadamardCountMeanSketch
    from sfumato.local.frequency.estimate import Estimate
    from sfumato.local.frequency.fit import FitTest
    from sfumato.local.frequency.hadamard import HadamardResponse, OneBitHadamard
    from sfumato.local.frequency.local_hashing import OptimalLocalHashing
    from sfumato.local.frequency.oracle import Oracle
    from sfumato.local.frequency.planning import Frequencies, OracleChoice, OraclePlan
    from sfumato.local.frequency.projective_geometry import ProjectiveGeometryResponse
    from sfumato.local.frequency.randomized_response import RandomizedResponse
    from sfumato.local.frequency.rappor.association import Association, associate
    from sfumato.local.frequency.rappor.decoding import Decoded
    from sfumato.local.frequency.rappor.estimate import RapporEstimate
    from sfumato.local.frequency.rappor.oracle import Rappor
    from sfumato.local.frequency.subset_selection import SubsetSelection
    from sfumato.local.frequency.unary import OptimizedUnaryEncoding, SymmetricUnaryEncoding
    from sfumato.local.longitudinal.l_grr import LongitudinalRandomizedResponse
    from sfumato.local.longitudinal.l_ue import LongitudinalUnaryEncoding
    from sfumato.local.longitudinal.loloha import LongitudinalLocalHashing
    from sfumato.local.longitudinal.memoized_bit_flip import MemoizedBitFlip
    from sfumato.local.longitudinal.memoized_mean import MemoizedOneBitMean
    from sfumato.local.longitudinal.memoized_rappor import MemoizedRappor
    from sfumato.local.longitudinal.rounds import Rounds, RoundsEstimate
    from sfumato.local.marginals.association import Correlation
    from sfumato.local.marginals.attributes import SampledAttribute, SplitBudget
    from sfumato.local.marginals.consistency import ConsistentMarginals
    from sfumato.local.marginals.estimate import MarginalsEstimate
    from sfumato.local.marginals.fourier import FourierMarginals
    from sfumato.local.marginals.planning import Marginals, MarginalsChoice, MarginalsPlan
    from sfumato.local.marginals.sampled import SampledMarginals
    from sfumato.local.numeric.estimate import MeanEstimate
    from sfumato.local.numeric.hybrid import HybridMean
    from sfumato.local.numeric.laplace import LaplaceMean
    from sfumato.local.numeric.square_wave import DistributionEstimate, SquareWave
    from sfumato.local.numeric.window import Duchi, OneBitMean, PiecewiseMean, StochasticRoundingMean
    from sfumato.local.ranges.estimate import RangeEstimate
    from sfumato.local.ranges.grid import HaarGrid
    from sfumato.local.ranges.grid_estimate import GridEstimate
    from sfumato.local.ranges.haar import HaarHistogram
    from sfumato.local.ranges.hierarchy import HierarchicalHistogram
    from sfumato.local.ranges.planning import RangeChoice, RangePlan, Ranges
    from sfumato.local.ranges.range_share import RangeShare
    from sfumato.local.strings.estimate import HeavyHitters
    from sfumato.local.strings.fragments import Bitstogram, SequenceFragmentPuzzle
    from sfumato.local.strings.planning import FrequentStrings, StringsChoice, StringsPlan
    from sfumato.local.strings.prefix_rounds import PrefixRound
    from sfumato.local.strings.prefixes import PrefixExtending, TreeHist
    from sfumato.local.vector.directions import PrivUnit, PrivUnitG, SphereSampling
    from sfumato.local.vector.estimate import VectorEstimate
    from sfumato.local.vector.projections import ProjUnit

__all__ = [
    "Aggregator",
    "Association",
    "Bins",
    "BitFlip",
    "Bitstogram",
    "CombinedShares",
    "ConsistentMarginals",
    "Correlation",
    "CountMeanSketch",
    "Decoded",
    "DistributionEstimate",
    "Domain",
    "Duchi",
    "Estimate",
    "FitTest",
    "FourierMarginals",
    "Frequencies",
    "FrequentStrings",
    "GridEstimate",
    "HaarGrid",
    "HaarHistogram",
    "HadamardCountMeanSketch",
    "HadamardResponse",
    "HeavyHitters",
    "HierarchicalHistogram",
    "HybridMean",
    "LaplaceMean",
    "LongitudinalLocalHashing",
    "LongitudinalRandomizedResponse",
    "LongitudinalUnaryEncoding",
    "Marginals",
    "MarginalsChoice",
    "MarginalsEstimate",
    "MarginalsPlan",
    "MeanEstimate",
    "MemoizedBitFlip",
    "MemoizedOneBitMean",
    "MemoizedRappor",
    "OneBitHadamard",
    "OneBitMean",
    "OptimalLocalHashing",
    "OptimizedUnaryEncoding",
    "Oracle",
    "OracleChoice",
    "OraclePlan",
    "PiecewiseMean",
    "PooledShares",
    "PrefixExtending",
    "PrefixRound",
    "PrivUnit",
    "PrivUnitG",
    "ProjUnit",
    "ProjectiveGeometryResponse",
    "RandomizedResponse",
    "RangeChoice",
    "RangeEstimate",
    "RangePlan",
    "RangeShare",
    "Ranges",
    "Rappor",
    "RapporEstimate",
    "ReportBatch",
    "Rounds",
    "RoundsEstimate",
    "SampledAttribute",
    "SampledMarginals",
    "SequenceFragmentPuzzle",
    "ShareDifference",
    "SphereSampling",
    "SplitBudget",
    "SquareWave",
    "StochasticRoundingMean",
    "Strings",
    "StringsChoice",
    "StringsPlan",
    "SubsetSelection",
    "SymmetricUnaryEncoding",
    "TreeHist",
    "VectorEstimate",
    "aggregate_arrow",
    "aggregate_parquet",
    "aggregate_spark",
    "associate",
    "baselines",
    "choose",
    "device",
    "difference",
    "pool",
    "shuffle",
    "surveys",
]

__getattr__, __dir__ = attach(
    __name__,
    {
        "PrefixRound": "sfumato.local.strings.prefix_rounds",
        "MemoizedRappor": "sfumato.local.longitudinal.memoized_rappor",
        "RoundsEstimate": "sfumato.local.longitudinal.rounds",
        "Correlation": "sfumato.local.marginals.association",
        "Marginals": "sfumato.local.marginals.planning",
        "MarginalsChoice": "sfumato.local.marginals.planning",
        "MarginalsPlan": "sfumato.local.marginals.planning",
        "Strings": "sfumato.local.device.domains.strings",
        "FrequentStrings": "sfumato.local.strings.planning",
        "StringsPlan": "sfumato.local.strings.planning",
        "StringsChoice": "sfumato.local.strings.planning",
        "HeavyHitters": "sfumato.local.strings.estimate",
        "TreeHist": "sfumato.local.strings.prefixes",
        "PrefixExtending": "sfumato.local.strings.prefixes",
        "SequenceFragmentPuzzle": "sfumato.local.strings.fragments",
        "Bitstogram": "sfumato.local.strings.fragments",
        "Rounds": "sfumato.local.longitudinal.rounds",
        "MemoizedOneBitMean": "sfumato.local.longitudinal.memoized_mean",
        "MemoizedBitFlip": "sfumato.local.longitudinal.memoized_bit_flip",
        "LongitudinalLocalHashing": "sfumato.local.longitudinal.loloha",
        "LongitudinalUnaryEncoding": "sfumato.local.longitudinal.l_ue",
        "LongitudinalRandomizedResponse": "sfumato.local.longitudinal.l_grr",
        "FourierMarginals": "sfumato.local.marginals.fourier",
        "SampledMarginals": "sfumato.local.marginals.sampled",
        "MarginalsEstimate": "sfumato.local.marginals.estimate",
        "ConsistentMarginals": "sfumato.local.marginals.consistency",
        "RapporEstimate": "sfumato.local.frequency.rappor.estimate",
        "Decoded": "sfumato.local.frequency.rappor.decoding",
        "SplitBudget": "sfumato.local.marginals.attributes",
        "SampledAttribute": "sfumato.local.marginals.attributes",
        "Rappor": "sfumato.local.frequency.rappor.oracle",
        "associate": "sfumato.local.frequency.rappor.association",
        "Association": "sfumato.local.frequency.rappor.association",
        "HadamardCountMeanSketch": "sfumato.local.frequency.count_mean_sketch",
        "CountMeanSketch": "sfumato.local.frequency.count_mean_sketch",
        "BitFlip": "sfumato.local.frequency.bit_flip",
        "VectorEstimate": "sfumato.local.vector.estimate",
        "SphereSampling": "sfumato.local.vector.directions",
        "ProjUnit": "sfumato.local.vector.projections",
        "PrivUnitG": "sfumato.local.vector.directions",
        "PrivUnit": "sfumato.local.vector.directions",
        "DistributionEstimate": "sfumato.local.numeric.square_wave",
        "MeanEstimate": "sfumato.local.numeric.estimate",
        "SquareWave": "sfumato.local.numeric.square_wave",
        "PiecewiseMean": "sfumato.local.numeric.window",
        "StochasticRoundingMean": "sfumato.local.numeric.window",
        "Duchi": "sfumato.local.numeric.window",
        "OneBitMean": "sfumato.local.numeric.window",
        "LaplaceMean": "sfumato.local.numeric.laplace",
        "HybridMean": "sfumato.local.numeric.hybrid",
        "SubsetSelection": "sfumato.local.frequency.subset_selection",
        "ProjectiveGeometryResponse": "sfumato.local.frequency.projective_geometry",
        "OneBitHadamard": "sfumato.local.frequency.hadamard",
        "HadamardResponse": "sfumato.local.frequency.hadamard",
        "OptimalLocalHashing": "sfumato.local.frequency.local_hashing",
        "SymmetricUnaryEncoding": "sfumato.local.frequency.unary",
        "OptimizedUnaryEncoding": "sfumato.local.frequency.unary",
        "Aggregator": "sfumato.local.base.aggregator",
        "aggregate_arrow": "sfumato.local.aggregation.arrow",
        "aggregate_parquet": "sfumato.local.aggregation.arrow",
        "aggregate_spark": "sfumato.local.aggregation.spark",
        "Domain": "sfumato.local.device.domains.categories",
        "CombinedShares": "sfumato.local.frequency.combination",
        "PooledShares": "sfumato.local.frequency.combination",
        "ShareDifference": "sfumato.local.frequency.combination",
        "difference": "sfumato.local.frequency.combination",
        "pool": "sfumato.local.frequency.combination",
        "Estimate": "sfumato.local.frequency.estimate",
        "FitTest": "sfumato.local.frequency.fit",
        "Oracle": "sfumato.local.frequency.oracle",
        "OracleChoice": "sfumato.local.frequency.planning",
        "OraclePlan": "sfumato.local.frequency.planning",
        "Frequencies": "sfumato.local.frequency.planning",
        "choose": "sfumato.local.base.plan_comparison",
        "Bins": "sfumato.local.device.domains.bins",
        "HaarHistogram": "sfumato.local.ranges.haar",
        "HaarGrid": "sfumato.local.ranges.grid",
        "GridEstimate": "sfumato.local.ranges.grid_estimate",
        "HierarchicalHistogram": "sfumato.local.ranges.hierarchy",
        "RangeEstimate": "sfumato.local.ranges.estimate",
        "RangeShare": "sfumato.local.ranges.range_share",
        "RangeChoice": "sfumato.local.ranges.planning",
        "RangePlan": "sfumato.local.ranges.planning",
        "Ranges": "sfumato.local.ranges.planning",
        "RandomizedResponse": "sfumato.local.frequency.randomized_response",
        "ReportBatch": "sfumato.local.device.base.report_batch",
        "baselines": "",
        "device": "",
        "shuffle": "",
        "surveys": "",
    },
)
