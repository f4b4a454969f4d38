"""The wire names of all protocols, and the client half that each stands for.

A specification names its protocol by one of these words. They are frozen: a class may be renamed or moved,
and devices still read what was written before.

>>> from sfumato.local.device.base.protocols import protocol_named
>>> protocol_named("randomized-response").wire_name
'randomized-response'
"""

from __future__ import annotations

import importlib
from typing import Any, Final

__all__ = ["PROTOCOLS", "protocol_named"]

_FACE: Final = "sfumato.local.device"

PROTOCOLS: Final = {
    "binary-local-hashing": "BinaryLocalHashingRandomizer",
    "bit-flip": "BitFlipRandomizer",
    "bitstogram": "BitstogramRandomizer",
    "count-mean-sketch": "CountMeanSketchRandomizer",
    "fake-data": "FakeDataRandomizer",
    "fourier-marginals": "FourierMarginalsRandomizer",
    "haar-grid": "HaarGridRandomizer",
    "haar-histogram": "HaarHistogramRandomizer",
    "hadamard-count-mean-sketch": "HadamardCountMeanSketchRandomizer",
    "hadamard-response": "HadamardResponseRandomizer",
    "hierarchical-histogram": "HierarchicalHistogramRandomizer",
    "hybrid-mean": "HybridMeanRandomizer",
    "laplace-mean": "LaplaceMeanRandomizer",
    "longitudinal-local-hashing": "LongitudinalLocalHashingRandomizer",
    "longitudinal-randomized-response": "LongitudinalRandomizedResponseRandomizer",
    "longitudinal-unary-encoding": "LongitudinalUnaryEncodingRandomizer",
    "memoized-bit-flip": "MemoizedBitFlipRandomizer",
    "memoized-one-bit-mean": "MemoizedOneBitMeanRandomizer",
    "memoized-rappor": "MemoizedRapporRandomizer",
    "noisy-histogram": "NoisyHistogramRandomizer",
    "one-bit-hadamard": "OneBitHadamardRandomizer",
    "one-bit-mean": "OneBitMeanRandomizer",
    "optimal-local-hashing": "OptimalLocalHashingRandomizer",
    "optimized-unary-encoding": "OptimizedUnaryEncodingRandomizer",
    "piecewise-mean": "PiecewiseMeanRandomizer",
    "prefix-extending": "PrefixExtendingRandomizer",
    "prefix-round": "PrefixRoundRandomizer",
    "privunit": "PrivUnitRandomizer",
    "privunit-g": "PrivUnitGRandomizer",
    "projective-geometry-response": "ProjectiveGeometryResponseRandomizer",
    "projunit": "ProjUnitRandomizer",
    "randomized-response": "RandomizedResponseRandomizer",
    "rappor": "RapporRandomizer",
    "sampled-attribute": "SampledAttributeRandomizer",
    "sampled-marginals": "SampledMarginalsRandomizer",
    "sequence-fragment-puzzle": "SequenceFragmentPuzzleRandomizer",
    "shuffled-counts": "ShuffledCountsRandomizer",
    "shuffled-histogram": "ShuffledHistogramRandomizer",
    "shuffled-sum": "ShuffledSumRandomizer",
    "signed-hadamard": "SignedHadamardRandomizer",
    "sphere-sampling": "SphereSamplingRandomizer",
    "split-budget": "SplitBudgetRandomizer",
    "square-wave": "SquareWaveRandomizer",
    "stochastic-rounding-mean": "StochasticRoundingMeanRandomizer",
    "subset-selection": "SubsetSelectionRandomizer",
    "symmetric-unary-encoding": "SymmetricUnaryEncodingRandomizer",
    "treehist": "TreeHistRandomizer",
}
"""By wire name, the class in `sfumato.local.device`."""


def protocol_named(name: object) -> type[Any] | None:
    """Return the client half of a wire name, or None for a name that is not known here.

    Parameters
    ----------
    name : object
        Such as ``"randomized-response"``.

    Returns
    -------
    type or None
        A class of `sfumato.local.device`.
    """
    if not isinstance(name, str) or name not in PROTOCOLS:
        return None
    kind: type[Any] = getattr(importlib.import_module(_FACE), PROTOCOLS[name])
    return kind
