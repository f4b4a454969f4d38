"""The client half of local privacy: what runs on a person's own device.

It loads numpy and cryptography, and nothing else. A device is sent a specification, and sends reports:
``Randomizer.from_specification(told).randomize(value)``. Privacy losses and estimates are in `sfumato.local`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from sfumato._lazy import attach

if TYPE_CHECKING:
    from sfumato.local.device.attributes import FakeData, SampledAttribute, SplitBudget
    from sfumato.local.device.bins import Bins
    from sfumato.local.device.bit_flip import BitFlip
    from sfumato.local.device.collection import Collection
    from sfumato.local.device.count_mean_sketch import CountMeanSketch, HadamardCountMeanSketch
    from sfumato.local.device.directions import PrivUnit, PrivUnitG, SphereSampling
    from sfumato.local.device.domain import Domain
    from sfumato.local.device.fourier_marginals import FourierMarginals
    from sfumato.local.device.fragments import Bitstogram, SequenceFragmentPuzzle
    from sfumato.local.device.grid import Grid
    from sfumato.local.device.hadamard import HadamardResponse, OneBitHadamard
    from sfumato.local.device.hybrid import HybridMean
    from sfumato.local.device.laplace import LaplaceMean
    from sfumato.local.device.levels import HaarGrid, HaarHistogram, HierarchicalHistogram
    from sfumato.local.device.local_hashing import BinaryLocalHashing, OptimalLocalHashing
    from sfumato.local.device.longitudinal.bit_flip import MemoizedBitFlip
    from sfumato.local.device.longitudinal.hashing import LongitudinalLocalHashing
    from sfumato.local.device.longitudinal.mean import MemoizedOneBitMean
    from sfumato.local.device.longitudinal.rappor import MemoizedRappor
    from sfumato.local.device.longitudinal.response import LongitudinalRandomizedResponse
    from sfumato.local.device.longitudinal.store import MemoClient, MemoStore
    from sfumato.local.device.longitudinal.unary import LongitudinalUnaryEncoding
    from sfumato.local.device.noisy_histogram import NoisyHistogram
    from sfumato.local.device.prefix_round import PrefixRound
    from sfumato.local.device.prefixes import PrefixExtending, TreeHist
    from sfumato.local.device.projective import ProjectiveGeometryResponse
    from sfumato.local.device.randomized_response import RandomizedResponse
    from sfumato.local.device.randomizer import Randomizer
    from sfumato.local.device.rappor import Rappor, RapporClient
    from sfumato.local.device.reports import ReportBatch
    from sfumato.local.device.sampled_marginals import SampledMarginals
    from sfumato.local.device.sealing import PublicKey
    from sfumato.local.device.shuffled_counts import ShuffledCounts
    from sfumato.local.device.shuffled_histogram import ShuffledHistogram
    from sfumato.local.device.shuffled_sum import ShuffledSum
    from sfumato.local.device.signed_hadamard import SignedHadamard
    from sfumato.local.device.strings import Strings
    from sfumato.local.device.subset_selection import SubsetSelection
    from sfumato.local.device.unary import OptimizedUnaryEncoding, SymmetricUnaryEncoding
    from sfumato.local.device.window import OneBitMean, PiecewiseMean, PlaceMean, SquareWave

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
        "PrefixRound": "sfumato.local.device.prefix_round",
        "MemoizedRappor": "sfumato.local.device.longitudinal.rappor",
        "FourierMarginals": "sfumato.local.device.fourier_marginals",
        "SampledMarginals": "sfumato.local.device.sampled_marginals",
        "MemoClient": "sfumato.local.device.longitudinal.store",
        "MemoStore": "sfumato.local.device.longitudinal.store",
        "MemoizedOneBitMean": "sfumato.local.device.longitudinal.mean",
        "MemoizedBitFlip": "sfumato.local.device.longitudinal.bit_flip",
        "LongitudinalLocalHashing": "sfumato.local.device.longitudinal.hashing",
        "LongitudinalUnaryEncoding": "sfumato.local.device.longitudinal.unary",
        "LongitudinalRandomizedResponse": "sfumato.local.device.longitudinal.response",
        "Strings": "sfumato.local.device.strings",
        "TreeHist": "sfumato.local.device.prefixes",
        "PrefixExtending": "sfumato.local.device.prefixes",
        "SequenceFragmentPuzzle": "sfumato.local.device.fragments",
        "Bitstogram": "sfumato.local.device.fragments",
        "Collection": "sfumato.local.device.collection",
        "PublicKey": "sfumato.local.device.sealing",
        "ShuffledSum": "sfumato.local.device.shuffled_sum",
        "ShuffledCounts": "sfumato.local.device.shuffled_counts",
        "SignedHadamard": "sfumato.local.device.signed_hadamard",
        "HierarchicalHistogram": "sfumato.local.device.levels",
        "HaarHistogram": "sfumato.local.device.levels",
        "HaarGrid": "sfumato.local.device.levels",
        "Grid": "sfumato.local.device.grid",
        "Bins": "sfumato.local.device.bins",
        "ShuffledHistogram": "sfumato.local.device.shuffled_histogram",
        "SplitBudget": "sfumato.local.device.attributes",
        "SampledAttribute": "sfumato.local.device.attributes",
        "FakeData": "sfumato.local.device.attributes",
        "RapporClient": "sfumato.local.device.rappor",
        "Rappor": "sfumato.local.device.rappor",
        "HadamardCountMeanSketch": "sfumato.local.device.count_mean_sketch",
        "CountMeanSketch": "sfumato.local.device.count_mean_sketch",
        "BitFlip": "sfumato.local.device.bit_flip",
        "SphereSampling": "sfumato.local.device.directions",
        "PrivUnitG": "sfumato.local.device.directions",
        "PrivUnit": "sfumato.local.device.directions",
        "SquareWave": "sfumato.local.device.window",
        "PiecewiseMean": "sfumato.local.device.window",
        "PlaceMean": "sfumato.local.device.window",
        "OneBitMean": "sfumato.local.device.window",
        "LaplaceMean": "sfumato.local.device.laplace",
        "HybridMean": "sfumato.local.device.hybrid",
        "SubsetSelection": "sfumato.local.device.subset_selection",
        "ProjectiveGeometryResponse": "sfumato.local.device.projective",
        "NoisyHistogram": "sfumato.local.device.noisy_histogram",
        "OneBitHadamard": "sfumato.local.device.hadamard",
        "HadamardResponse": "sfumato.local.device.hadamard",
        "BinaryLocalHashing": "sfumato.local.device.local_hashing",
        "OptimalLocalHashing": "sfumato.local.device.local_hashing",
        "SymmetricUnaryEncoding": "sfumato.local.device.unary",
        "OptimizedUnaryEncoding": "sfumato.local.device.unary",
        "Domain": "sfumato.local.device.domain",
        "RandomizedResponse": "sfumato.local.device.randomized_response",
        "Randomizer": "sfumato.local.device.randomizer",
        "ReportBatch": "sfumato.local.device.reports",
    },
)
