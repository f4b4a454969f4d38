"""The client half of local privacy: what runs on a person's own device.

It loads numpy and cryptography, and nothing else. A device is sent a specification, and sends reports:
``Randomizer.from_specification(told).randomize(value)``. Privacy losses and estimates are in `sfumato.local`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from sfumato._lazy import attach

if TYPE_CHECKING:
    from sfumato.crypto.hpke import PublicKey
    from sfumato.local.device.base.randomizer import Randomizer
    from sfumato.local.device.base.report_batch import ReportBatch
    from sfumato.local.device.domains.bins import Bins
    from sfumato.local.device.domains.categories import Domain
    from sfumato.local.device.domains.grid import Grid
    from sfumato.local.device.domains.strings import Strings
    from sfumato.local.device.frequency.bit_flip import BitFlip
    from sfumato.local.device.frequency.count_mean_sketch import CountMeanSketch, HadamardCountMeanSketch
    from sfumato.local.device.frequency.hadamard import HadamardResponse, OneBitHadamard
    from sfumato.local.device.frequency.local_hashing import BinaryLocalHashing, OptimalLocalHashing
    from sfumato.local.device.frequency.noisy_histogram import NoisyHistogram
    from sfumato.local.device.frequency.projective_geometry import ProjectiveGeometryResponse
    from sfumato.local.device.frequency.randomized_response import RandomizedResponse
    from sfumato.local.device.frequency.rappor import Rappor, RapporClient
    from sfumato.local.device.frequency.signed_hadamard import SignedHadamard
    from sfumato.local.device.frequency.subset_selection import SubsetSelection
    from sfumato.local.device.frequency.unary import OptimizedUnaryEncoding, SymmetricUnaryEncoding
    from sfumato.local.device.longitudinal.l_grr import LongitudinalRandomizedResponse
    from sfumato.local.device.longitudinal.l_ue import LongitudinalUnaryEncoding
    from sfumato.local.device.longitudinal.loloha import LongitudinalLocalHashing
    from sfumato.local.device.longitudinal.memo_store import MemoClient, MemoStore
    from sfumato.local.device.longitudinal.memoized_bit_flip import MemoizedBitFlip
    from sfumato.local.device.longitudinal.memoized_mean import MemoizedOneBitMean
    from sfumato.local.device.longitudinal.memoized_rappor import MemoizedRappor
    from sfumato.local.device.marginals.attributes import FakeData, SampledAttribute, SplitBudget
    from sfumato.local.device.marginals.fourier import FourierMarginals
    from sfumato.local.device.marginals.sampled import SampledMarginals
    from sfumato.local.device.numeric.hybrid import HybridMean
    from sfumato.local.device.numeric.laplace import LaplaceMean
    from sfumato.local.device.numeric.window import OneBitMean, PiecewiseMean, PlaceMean, SquareWave
    from sfumato.local.device.ranges.levels import HaarGrid, HaarHistogram, HierarchicalHistogram
    from sfumato.local.device.shuffle.collection import Collection
    from sfumato.local.device.shuffle.counts import ShuffledCounts
    from sfumato.local.device.shuffle.histogram import ShuffledHistogram
    from sfumato.local.device.shuffle.sums import ShuffledSum
    from sfumato.local.device.strings.fragments import Bitstogram, SequenceFragmentPuzzle
    from sfumato.local.device.strings.prefix_round import PrefixRound
    from sfumato.local.device.strings.prefixes import PrefixExtending, TreeHist
    from sfumato.local.device.vector.directions import PrivUnit, PrivUnitG, SphereSampling

__all__ = [
    "BinaryLocalHashing",
    "Bins",
    "BitFlip",
    "Bitstogram",
    "Collection",
    "CountMeanSketch",
    "Domain",
    "FakeData",
    "FourierMarginals",
    "Grid",
    "HaarGrid",
    "HaarHistogram",
    "HadamardCountMeanSketch",
    "HadamardResponse",
    "HierarchicalHistogram",
    "HybridMean",
    "LaplaceMean",
    "LongitudinalLocalHashing",
    "LongitudinalRandomizedResponse",
    "LongitudinalUnaryEncoding",
    "MemoClient",
    "MemoStore",
    "MemoizedBitFlip",
    "MemoizedOneBitMean",
    "MemoizedRappor",
    "NoisyHistogram",
    "OneBitHadamard",
    "OneBitMean",
    "OptimalLocalHashing",
    "OptimizedUnaryEncoding",
    "PiecewiseMean",
    "PlaceMean",
    "PrefixExtending",
    "PrefixRound",
    "PrivUnit",
    "PrivUnitG",
    "ProjectiveGeometryResponse",
    "PublicKey",
    "RandomizedResponse",
    "Randomizer",
    "Rappor",
    "RapporClient",
    "ReportBatch",
    "SampledAttribute",
    "SampledMarginals",
    "SequenceFragmentPuzzle",
    "ShuffledCounts",
    "ShuffledHistogram",
    "ShuffledSum",
    "SignedHadamard",
    "SphereSampling",
    "SplitBudget",
    "SquareWave",
    "Strings",
    "SubsetSelection",
    "SymmetricUnaryEncoding",
    "TreeHist",
]

__getattr__, __dir__ = attach(
    __name__,
    {
        "PrefixRound": "sfumato.local.device.strings.prefix_round",
        "MemoizedRappor": "sfumato.local.device.longitudinal.memoized_rappor",
        "FourierMarginals": "sfumato.local.device.marginals.fourier",
        "SampledMarginals": "sfumato.local.device.marginals.sampled",
        "MemoClient": "sfumato.local.device.longitudinal.memo_store",
        "MemoStore": "sfumato.local.device.longitudinal.memo_store",
        "MemoizedOneBitMean": "sfumato.local.device.longitudinal.memoized_mean",
        "MemoizedBitFlip": "sfumato.local.device.longitudinal.memoized_bit_flip",
        "LongitudinalLocalHashing": "sfumato.local.device.longitudinal.loloha",
        "LongitudinalUnaryEncoding": "sfumato.local.device.longitudinal.l_ue",
        "LongitudinalRandomizedResponse": "sfumato.local.device.longitudinal.l_grr",
        "Strings": "sfumato.local.device.domains.strings",
        "TreeHist": "sfumato.local.device.strings.prefixes",
        "PrefixExtending": "sfumato.local.device.strings.prefixes",
        "SequenceFragmentPuzzle": "sfumato.local.device.strings.fragments",
        "Bitstogram": "sfumato.local.device.strings.fragments",
        "Collection": "sfumato.local.device.shuffle.collection",
        "PublicKey": "sfumato.crypto.hpke",
        "ShuffledSum": "sfumato.local.device.shuffle.sums",
        "ShuffledCounts": "sfumato.local.device.shuffle.counts",
        "SignedHadamard": "sfumato.local.device.frequency.signed_hadamard",
        "HierarchicalHistogram": "sfumato.local.device.ranges.levels",
        "HaarHistogram": "sfumato.local.device.ranges.levels",
        "HaarGrid": "sfumato.local.device.ranges.levels",
        "Grid": "sfumato.local.device.domains.grid",
        "Bins": "sfumato.local.device.domains.bins",
        "ShuffledHistogram": "sfumato.local.device.shuffle.histogram",
        "SplitBudget": "sfumato.local.device.marginals.attributes",
        "SampledAttribute": "sfumato.local.device.marginals.attributes",
        "FakeData": "sfumato.local.device.marginals.attributes",
        "RapporClient": "sfumato.local.device.frequency.rappor",
        "Rappor": "sfumato.local.device.frequency.rappor",
        "HadamardCountMeanSketch": "sfumato.local.device.frequency.count_mean_sketch",
        "CountMeanSketch": "sfumato.local.device.frequency.count_mean_sketch",
        "BitFlip": "sfumato.local.device.frequency.bit_flip",
        "SphereSampling": "sfumato.local.device.vector.directions",
        "PrivUnitG": "sfumato.local.device.vector.directions",
        "PrivUnit": "sfumato.local.device.vector.directions",
        "SquareWave": "sfumato.local.device.numeric.window",
        "PiecewiseMean": "sfumato.local.device.numeric.window",
        "PlaceMean": "sfumato.local.device.numeric.window",
        "OneBitMean": "sfumato.local.device.numeric.window",
        "LaplaceMean": "sfumato.local.device.numeric.laplace",
        "HybridMean": "sfumato.local.device.numeric.hybrid",
        "SubsetSelection": "sfumato.local.device.frequency.subset_selection",
        "ProjectiveGeometryResponse": "sfumato.local.device.frequency.projective_geometry",
        "NoisyHistogram": "sfumato.local.device.frequency.noisy_histogram",
        "OneBitHadamard": "sfumato.local.device.frequency.hadamard",
        "HadamardResponse": "sfumato.local.device.frequency.hadamard",
        "BinaryLocalHashing": "sfumato.local.device.frequency.local_hashing",
        "OptimalLocalHashing": "sfumato.local.device.frequency.local_hashing",
        "SymmetricUnaryEncoding": "sfumato.local.device.frequency.unary",
        "OptimizedUnaryEncoding": "sfumato.local.device.frequency.unary",
        "Domain": "sfumato.local.device.domains.categories",
        "RandomizedResponse": "sfumato.local.device.frequency.randomized_response",
        "Randomizer": "sfumato.local.device.base.randomizer",
        "ReportBatch": "sfumato.local.device.base.report_batch",
    },
)
