"""Local privacy: each person perturbs their own answer, and no curator has to be trusted.

One shape for all protocols: an oracle's ``randomize`` runs on the device (`sfumato.local.device` is that half
alone) and gives bytes; an `Aggregator` counts them, in pieces that merge; an `Estimate` tells the shares with
their intervals. The bound on every report's loss holds whatever the aggregator does.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from sfumato._lazy import attach

if TYPE_CHECKING:
    from sfumato.local import device, shuffle, surveys
    from sfumato.local.aggregator import Aggregator
    from sfumato.local.cluster import aggregate_spark
    from sfumato.local.columns import aggregate_arrow, aggregate_parquet
    from sfumato.local.device.bins import Bins
    from sfumato.local.device.domain import Domain
    from sfumato.local.device.reports import ReportBatch
    from sfumato.local.device.strings import Strings
    from sfumato.local.estimate import Estimate
    from sfumato.local.frequency.bit_flip import BitFlip
    from sfumato.local.frequency.count_mean_sketch import CountMeanSketch, HadamardCountMeanSketch
    from sfumato.local.frequency.hadamard import HadamardResponse, OneBitHadamard
    from sfumato.local.frequency.local_hashing import BinaryLocalHashing, OptimalLocalHashing
    from sfumato.local.frequency.noisy_histogram import SummationHistogram, ThresholdHistogram
    from sfumato.local.frequency.projective import ProjectiveGeometryResponse
    from sfumato.local.frequency.randomized_response import RandomizedResponse
    from sfumato.local.frequency.rappor.association import Association, associate
    from sfumato.local.frequency.rappor.decoding import Decoded
    from sfumato.local.frequency.rappor.estimate import RapporEstimate
    from sfumato.local.frequency.rappor.oracle import Rappor
    from sfumato.local.frequency.subset_selection import SubsetSelection
    from sfumato.local.frequency.unary import OptimizedUnaryEncoding, SymmetricUnaryEncoding
    from sfumato.local.heavy_hitters.estimate import HeavyHitters
    from sfumato.local.heavy_hitters.fragments import Bitstogram, SequenceFragmentPuzzle
    from sfumato.local.heavy_hitters.planning import StringsChoice, StringsPlan, choose_strings
    from sfumato.local.heavy_hitters.prefixes import PrefixExtending, TreeHist
    from sfumato.local.heavy_hitters.rounds import PrefixRound
    from sfumato.local.longitudinal.bit_flip import MemoizedBitFlip
    from sfumato.local.longitudinal.hashing import LongitudinalLocalHashing
    from sfumato.local.longitudinal.mean import MemoizedOneBitMean
    from sfumato.local.longitudinal.rappor import MemoizedRappor
    from sfumato.local.longitudinal.response import LongitudinalRandomizedResponse
    from sfumato.local.longitudinal.rounds import Rounds, RoundsEstimate
    from sfumato.local.longitudinal.unary import LongitudinalUnaryEncoding
    from sfumato.local.numeric.estimate import MeanEstimate
    from sfumato.local.numeric.hybrid import HybridMean
    from sfumato.local.numeric.laplace import LaplaceMean
    from sfumato.local.numeric.square_wave import DistributionEstimate, SquareWave
    from sfumato.local.numeric.window import Duchi, OneBitMean, PiecewiseMean, PlaceMean
    from sfumato.local.oracle import Oracle
    from sfumato.local.planning import OracleChoice, OraclePlan, choose
    from sfumato.local.structure.marginals.association import Correlation
    from sfumato.local.structure.marginals.consistent import ConsistentMarginals
    from sfumato.local.structure.marginals.estimate import MarginalsEstimate
    from sfumato.local.structure.marginals.fourier import FourierMarginals
    from sfumato.local.structure.marginals.planning import MarginalsChoice, MarginalsPlan, choose_marginals
    from sfumato.local.structure.marginals.sampled import SampledMarginals
    from sfumato.local.structure.ranges.estimate import RangeEstimate
    from sfumato.local.structure.ranges.grid import HaarGrid
    from sfumato.local.structure.ranges.grid_estimate import GridEstimate
    from sfumato.local.structure.ranges.haar import HaarHistogram
    from sfumato.local.structure.ranges.hierarchy import HierarchicalHistogram
    from sfumato.local.structure.ranges.planning import RangeChoice, RangePlan, choose_ranges
    from sfumato.local.structure.ranges.share import RangeShare
    from sfumato.local.vector.attributes import FakeData, SampledAttribute, SplitBudget
    from sfumato.local.vector.directions import PrivUnit, PrivUnitG, SphereSampling
    from sfumato.local.vector.estimate import VectorEstimate

__all__ = [
    "Aggregator",
    "Association",
    "BinaryLocalHashing",
    "Bins",
    "BitFlip",
    "Bitstogram",
    "ConsistentMarginals",
    "Correlation",
    "CountMeanSketch",
    "Decoded",
    "DistributionEstimate",
    "Domain",
    "Duchi",
    "Estimate",
    "FakeData",
    "FourierMarginals",
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
    "PlaceMean",
    "PrefixExtending",
    "PrefixRound",
    "PrivUnit",
    "PrivUnitG",
    "ProjectiveGeometryResponse",
    "RandomizedResponse",
    "RangeChoice",
    "RangeEstimate",
    "RangePlan",
    "RangeShare",
    "Rappor",
    "RapporEstimate",
    "ReportBatch",
    "Rounds",
    "RoundsEstimate",
    "SampledAttribute",
    "SampledMarginals",
    "SequenceFragmentPuzzle",
    "SphereSampling",
    "SplitBudget",
    "SquareWave",
    "Strings",
    "StringsChoice",
    "StringsPlan",
    "SubsetSelection",
    "SummationHistogram",
    "SymmetricUnaryEncoding",
    "ThresholdHistogram",
    "TreeHist",
    "VectorEstimate",
    "aggregate_arrow",
    "aggregate_parquet",
    "aggregate_spark",
    "associate",
    "choose",
    "choose_marginals",
    "choose_ranges",
    "choose_strings",
    "device",
    "shuffle",
    "surveys",
]

__getattr__, __dir__ = attach(
    __name__,
    {
        "PrefixRound": "sfumato.local.heavy_hitters.rounds",
        "MemoizedRappor": "sfumato.local.longitudinal.rappor",
        "RoundsEstimate": "sfumato.local.longitudinal.rounds",
        "Correlation": "sfumato.local.structure.marginals.association",
        "choose_marginals": "sfumato.local.structure.marginals.planning",
        "MarginalsChoice": "sfumato.local.structure.marginals.planning",
        "MarginalsPlan": "sfumato.local.structure.marginals.planning",
        "Strings": "sfumato.local.device.strings",
        "choose_strings": "sfumato.local.heavy_hitters.planning",
        "StringsPlan": "sfumato.local.heavy_hitters.planning",
        "StringsChoice": "sfumato.local.heavy_hitters.planning",
        "HeavyHitters": "sfumato.local.heavy_hitters.estimate",
        "TreeHist": "sfumato.local.heavy_hitters.prefixes",
        "PrefixExtending": "sfumato.local.heavy_hitters.prefixes",
        "SequenceFragmentPuzzle": "sfumato.local.heavy_hitters.fragments",
        "Bitstogram": "sfumato.local.heavy_hitters.fragments",
        "Rounds": "sfumato.local.longitudinal.rounds",
        "MemoizedOneBitMean": "sfumato.local.longitudinal.mean",
        "MemoizedBitFlip": "sfumato.local.longitudinal.bit_flip",
        "LongitudinalLocalHashing": "sfumato.local.longitudinal.hashing",
        "LongitudinalUnaryEncoding": "sfumato.local.longitudinal.unary",
        "LongitudinalRandomizedResponse": "sfumato.local.longitudinal.response",
        "FourierMarginals": "sfumato.local.structure.marginals.fourier",
        "SampledMarginals": "sfumato.local.structure.marginals.sampled",
        "MarginalsEstimate": "sfumato.local.structure.marginals.estimate",
        "ConsistentMarginals": "sfumato.local.structure.marginals.consistent",
        "RapporEstimate": "sfumato.local.frequency.rappor.estimate",
        "Decoded": "sfumato.local.frequency.rappor.decoding",
        "SplitBudget": "sfumato.local.vector.attributes",
        "SampledAttribute": "sfumato.local.vector.attributes",
        "FakeData": "sfumato.local.vector.attributes",
        "Rappor": "sfumato.local.frequency.rappor.oracle",
        "associate": "sfumato.local.frequency.rappor.association",
        "Association": "sfumato.local.frequency.rappor.association",
        "HadamardCountMeanSketch": "sfumato.local.frequency.count_mean_sketch",
        "CountMeanSketch": "sfumato.local.frequency.count_mean_sketch",
        "BitFlip": "sfumato.local.frequency.bit_flip",
        "VectorEstimate": "sfumato.local.vector.estimate",
        "SphereSampling": "sfumato.local.vector.directions",
        "PrivUnitG": "sfumato.local.vector.directions",
        "PrivUnit": "sfumato.local.vector.directions",
        "DistributionEstimate": "sfumato.local.numeric.square_wave",
        "MeanEstimate": "sfumato.local.numeric.estimate",
        "SquareWave": "sfumato.local.numeric.square_wave",
        "PiecewiseMean": "sfumato.local.numeric.window",
        "PlaceMean": "sfumato.local.numeric.window",
        "Duchi": "sfumato.local.numeric.window",
        "OneBitMean": "sfumato.local.numeric.window",
        "LaplaceMean": "sfumato.local.numeric.laplace",
        "HybridMean": "sfumato.local.numeric.hybrid",
        "SubsetSelection": "sfumato.local.frequency.subset_selection",
        "ProjectiveGeometryResponse": "sfumato.local.frequency.projective",
        "ThresholdHistogram": "sfumato.local.frequency.noisy_histogram",
        "SummationHistogram": "sfumato.local.frequency.noisy_histogram",
        "OneBitHadamard": "sfumato.local.frequency.hadamard",
        "HadamardResponse": "sfumato.local.frequency.hadamard",
        "BinaryLocalHashing": "sfumato.local.frequency.local_hashing",
        "OptimalLocalHashing": "sfumato.local.frequency.local_hashing",
        "SymmetricUnaryEncoding": "sfumato.local.frequency.unary",
        "OptimizedUnaryEncoding": "sfumato.local.frequency.unary",
        "Aggregator": "sfumato.local.aggregator",
        "aggregate_arrow": "sfumato.local.columns",
        "aggregate_parquet": "sfumato.local.columns",
        "aggregate_spark": "sfumato.local.cluster",
        "Domain": "sfumato.local.device.domain",
        "Estimate": "sfumato.local.estimate",
        "Oracle": "sfumato.local.oracle",
        "OracleChoice": "sfumato.local.planning",
        "OraclePlan": "sfumato.local.planning",
        "choose": "sfumato.local.planning",
        "Bins": "sfumato.local.device.bins",
        "HaarHistogram": "sfumato.local.structure.ranges.haar",
        "HaarGrid": "sfumato.local.structure.ranges.grid",
        "GridEstimate": "sfumato.local.structure.ranges.grid_estimate",
        "HierarchicalHistogram": "sfumato.local.structure.ranges.hierarchy",
        "RangeEstimate": "sfumato.local.structure.ranges.estimate",
        "RangeShare": "sfumato.local.structure.ranges.share",
        "RangeChoice": "sfumato.local.structure.ranges.planning",
        "RangePlan": "sfumato.local.structure.ranges.planning",
        "choose_ranges": "sfumato.local.structure.ranges.planning",
        "RandomizedResponse": "sfumato.local.frequency.randomized_response",
        "ReportBatch": "sfumato.local.device.reports",
        "device": "",
        "shuffle": "",
        "surveys": "",
    },
)
