"""The client half of local privacy: what runs on a person's own device.

It loads numpy and cryptography, and nothing else. A device receives a specification and sends reports:
``Randomizer.from_specification(specification).randomize(value)``. Privacy losses and estimates are in
`sfumato.local`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from sfumato._lazy import attach

if TYPE_CHECKING:
    from sfumato.crypto.hpke import PublicKey
    from sfumato.local.device.base.public_question import PublicQuestion
    from sfumato.local.device.base.randomizer import Randomizer
    from sfumato.local.device.base.report_batch import ReportBatch
    from sfumato.local.device.budget.device_budget import BudgetRemaining, DeviceBudget
    from sfumato.local.device.domains.bins import Bins
    from sfumato.local.device.domains.categories import Domain
    from sfumato.local.device.domains.grid import Grid
    from sfumato.local.device.domains.strings import Strings
    from sfumato.local.device.frequency.bit_flip import BitFlipRandomizer
    from sfumato.local.device.frequency.count_mean_sketch import (
        CountMeanSketchRandomizer,
        HadamardCountMeanSketchRandomizer,
    )
    from sfumato.local.device.frequency.hadamard import HadamardResponseRandomizer, OneBitHadamardRandomizer
    from sfumato.local.device.frequency.local_hashing import (
        BinaryLocalHashingRandomizer,
        OptimalLocalHashingRandomizer,
    )
    from sfumato.local.device.frequency.noisy_histogram import NoisyHistogramRandomizer
    from sfumato.local.device.frequency.projective_geometry import ProjectiveGeometryResponseRandomizer
    from sfumato.local.device.frequency.randomized_response import RandomizedResponseRandomizer
    from sfumato.local.device.frequency.rappor import RapporClient, RapporRandomizer
    from sfumato.local.device.frequency.signed_hadamard import SignedHadamardRandomizer
    from sfumato.local.device.frequency.subset_selection import SubsetSelectionRandomizer
    from sfumato.local.device.frequency.unary import (
        OptimizedUnaryEncodingRandomizer,
        SymmetricUnaryEncodingRandomizer,
    )
    from sfumato.local.device.longitudinal.l_grr import LongitudinalRandomizedResponseRandomizer
    from sfumato.local.device.longitudinal.l_ue import LongitudinalUnaryEncodingRandomizer
    from sfumato.local.device.longitudinal.loloha import LongitudinalLocalHashingRandomizer
    from sfumato.local.device.longitudinal.memo_store import MemoClient, MemoStore
    from sfumato.local.device.longitudinal.memoized_bit_flip import MemoizedBitFlipRandomizer
    from sfumato.local.device.longitudinal.memoized_mean import MemoizedOneBitMeanRandomizer
    from sfumato.local.device.longitudinal.memoized_rappor import MemoizedRapporRandomizer
    from sfumato.local.device.marginals.attributes import (
        FakeDataRandomizer,
        SampledAttributeRandomizer,
        SplitBudgetRandomizer,
    )
    from sfumato.local.device.marginals.fourier import FourierMarginalsRandomizer
    from sfumato.local.device.marginals.sampled import SampledMarginalsRandomizer
    from sfumato.local.device.numeric.hybrid import HybridMeanRandomizer
    from sfumato.local.device.numeric.laplace import LaplaceMeanRandomizer
    from sfumato.local.device.numeric.window import (
        OneBitMeanRandomizer,
        PiecewiseMeanRandomizer,
        SquareWaveRandomizer,
        StochasticRoundingMeanRandomizer,
    )
    from sfumato.local.device.ranges.levels import (
        HaarGridRandomizer,
        HaarHistogramRandomizer,
        HierarchicalHistogramRandomizer,
    )
    from sfumato.local.device.shuffle.collection import PublicCollection
    from sfumato.local.device.shuffle.counts import ShuffledCountsRandomizer
    from sfumato.local.device.shuffle.histogram import ShuffledHistogramRandomizer
    from sfumato.local.device.shuffle.key_offer import offered_analyst_key, offered_key
    from sfumato.local.device.shuffle.sparse_collection import SparseCollection
    from sfumato.local.device.shuffle.sums import ShuffledSumRandomizer
    from sfumato.local.device.strings.fragments import BitstogramRandomizer, SequenceFragmentPuzzleRandomizer
    from sfumato.local.device.strings.prefix_round import PrefixRoundRandomizer
    from sfumato.local.device.strings.prefixes import PrefixExtendingRandomizer, TreeHistRandomizer
    from sfumato.local.device.vector.directions import (
        PrivUnitGRandomizer,
        PrivUnitRandomizer,
        SphereSamplingRandomizer,
    )
    from sfumato.local.device.vector.projections import ProjUnitRandomizer

__all__ = [
    "BinaryLocalHashingRandomizer",
    "Bins",
    "BitFlipRandomizer",
    "BitstogramRandomizer",
    "BudgetRemaining",
    "CountMeanSketchRandomizer",
    "DeviceBudget",
    "Domain",
    "FakeDataRandomizer",
    "FourierMarginalsRandomizer",
    "Grid",
    "HaarGridRandomizer",
    "HaarHistogramRandomizer",
    "HadamardCountMeanSketchRandomizer",
    "HadamardResponseRandomizer",
    "HierarchicalHistogramRandomizer",
    "HybridMeanRandomizer",
    "LaplaceMeanRandomizer",
    "LongitudinalLocalHashingRandomizer",
    "LongitudinalRandomizedResponseRandomizer",
    "LongitudinalUnaryEncodingRandomizer",
    "MemoClient",
    "MemoStore",
    "MemoizedBitFlipRandomizer",
    "MemoizedOneBitMeanRandomizer",
    "MemoizedRapporRandomizer",
    "NoisyHistogramRandomizer",
    "OneBitHadamardRandomizer",
    "OneBitMeanRandomizer",
    "OptimalLocalHashingRandomizer",
    "OptimizedUnaryEncodingRandomizer",
    "PiecewiseMeanRandomizer",
    "PrefixExtendingRandomizer",
    "PrefixRoundRandomizer",
    "PrivUnitGRandomizer",
    "PrivUnitRandomizer",
    "ProjUnitRandomizer",
    "ProjectiveGeometryResponseRandomizer",
    "PublicCollection",
    "PublicKey",
    "PublicQuestion",
    "RandomizedResponseRandomizer",
    "Randomizer",
    "RapporClient",
    "RapporRandomizer",
    "ReportBatch",
    "SampledAttributeRandomizer",
    "SampledMarginalsRandomizer",
    "SequenceFragmentPuzzleRandomizer",
    "ShuffledCountsRandomizer",
    "ShuffledHistogramRandomizer",
    "ShuffledSumRandomizer",
    "SignedHadamardRandomizer",
    "SparseCollection",
    "SphereSamplingRandomizer",
    "SplitBudgetRandomizer",
    "SquareWaveRandomizer",
    "StochasticRoundingMeanRandomizer",
    "Strings",
    "SubsetSelectionRandomizer",
    "SymmetricUnaryEncodingRandomizer",
    "TreeHistRandomizer",
    "offered_analyst_key",
    "offered_key",
]

__getattr__, __dir__ = attach(
    __name__,
    {
        "DeviceBudget": "sfumato.local.device.budget.device_budget",
        "BudgetRemaining": "sfumato.local.device.budget.device_budget",
        "PrefixRoundRandomizer": "sfumato.local.device.strings.prefix_round",
        "MemoizedRapporRandomizer": "sfumato.local.device.longitudinal.memoized_rappor",
        "FourierMarginalsRandomizer": "sfumato.local.device.marginals.fourier",
        "SampledMarginalsRandomizer": "sfumato.local.device.marginals.sampled",
        "MemoClient": "sfumato.local.device.longitudinal.memo_store",
        "MemoStore": "sfumato.local.device.longitudinal.memo_store",
        "MemoizedOneBitMeanRandomizer": "sfumato.local.device.longitudinal.memoized_mean",
        "MemoizedBitFlipRandomizer": "sfumato.local.device.longitudinal.memoized_bit_flip",
        "LongitudinalLocalHashingRandomizer": "sfumato.local.device.longitudinal.loloha",
        "LongitudinalUnaryEncodingRandomizer": "sfumato.local.device.longitudinal.l_ue",
        "LongitudinalRandomizedResponseRandomizer": "sfumato.local.device.longitudinal.l_grr",
        "Strings": "sfumato.local.device.domains.strings",
        "TreeHistRandomizer": "sfumato.local.device.strings.prefixes",
        "PrefixExtendingRandomizer": "sfumato.local.device.strings.prefixes",
        "SequenceFragmentPuzzleRandomizer": "sfumato.local.device.strings.fragments",
        "BitstogramRandomizer": "sfumato.local.device.strings.fragments",
        "PublicCollection": "sfumato.local.device.shuffle.collection",
        "PublicKey": "sfumato.crypto.hpke",
        "offered_analyst_key": "sfumato.local.device.shuffle.key_offer",
        "offered_key": "sfumato.local.device.shuffle.key_offer",
        "PublicQuestion": "sfumato.local.device.base.public_question",
        "ShuffledSumRandomizer": "sfumato.local.device.shuffle.sums",
        "ShuffledCountsRandomizer": "sfumato.local.device.shuffle.counts",
        "SignedHadamardRandomizer": "sfumato.local.device.frequency.signed_hadamard",
        "HierarchicalHistogramRandomizer": "sfumato.local.device.ranges.levels",
        "HaarHistogramRandomizer": "sfumato.local.device.ranges.levels",
        "HaarGridRandomizer": "sfumato.local.device.ranges.levels",
        "Grid": "sfumato.local.device.domains.grid",
        "Bins": "sfumato.local.device.domains.bins",
        "ShuffledHistogramRandomizer": "sfumato.local.device.shuffle.histogram",
        "SparseCollection": "sfumato.local.device.shuffle.sparse_collection",
        "SplitBudgetRandomizer": "sfumato.local.device.marginals.attributes",
        "SampledAttributeRandomizer": "sfumato.local.device.marginals.attributes",
        "FakeDataRandomizer": "sfumato.local.device.marginals.attributes",
        "RapporClient": "sfumato.local.device.frequency.rappor",
        "RapporRandomizer": "sfumato.local.device.frequency.rappor",
        "HadamardCountMeanSketchRandomizer": "sfumato.local.device.frequency.count_mean_sketch",
        "CountMeanSketchRandomizer": "sfumato.local.device.frequency.count_mean_sketch",
        "BitFlipRandomizer": "sfumato.local.device.frequency.bit_flip",
        "SphereSamplingRandomizer": "sfumato.local.device.vector.directions",
        "ProjUnitRandomizer": "sfumato.local.device.vector.projections",
        "PrivUnitGRandomizer": "sfumato.local.device.vector.directions",
        "PrivUnitRandomizer": "sfumato.local.device.vector.directions",
        "SquareWaveRandomizer": "sfumato.local.device.numeric.window",
        "PiecewiseMeanRandomizer": "sfumato.local.device.numeric.window",
        "StochasticRoundingMeanRandomizer": "sfumato.local.device.numeric.window",
        "OneBitMeanRandomizer": "sfumato.local.device.numeric.window",
        "LaplaceMeanRandomizer": "sfumato.local.device.numeric.laplace",
        "HybridMeanRandomizer": "sfumato.local.device.numeric.hybrid",
        "SubsetSelectionRandomizer": "sfumato.local.device.frequency.subset_selection",
        "ProjectiveGeometryResponseRandomizer": "sfumato.local.device.frequency.projective_geometry",
        "NoisyHistogramRandomizer": "sfumato.local.device.frequency.noisy_histogram",
        "OneBitHadamardRandomizer": "sfumato.local.device.frequency.hadamard",
        "HadamardResponseRandomizer": "sfumato.local.device.frequency.hadamard",
        "BinaryLocalHashingRandomizer": "sfumato.local.device.frequency.local_hashing",
        "OptimalLocalHashingRandomizer": "sfumato.local.device.frequency.local_hashing",
        "SymmetricUnaryEncodingRandomizer": "sfumato.local.device.frequency.unary",
        "OptimizedUnaryEncodingRandomizer": "sfumato.local.device.frequency.unary",
        "Domain": "sfumato.local.device.domains.categories",
        "RandomizedResponseRandomizer": "sfumato.local.device.frequency.randomized_response",
        "Randomizer": "sfumato.local.device.base.randomizer",
        "ReportBatch": "sfumato.local.device.base.report_batch",
    },
)
