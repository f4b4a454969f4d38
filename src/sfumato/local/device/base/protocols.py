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
    "binary-local-hashing": "BinaryLocalHashing",
    "bit-flip": "BitFlip",
    "bitstogram": "Bitstogram",
    "count-mean-sketch": "CountMeanSketch",
    "fake-data": "FakeData",
    "fourier-marginals": "FourierMarginals",
    "haar-grid": "HaarGrid",
    "haar-histogram": "HaarHistogram",
    "hadamard-count-mean-sketch": "HadamardCountMeanSketch",
    "hadamard-response": "HadamardResponse",
    "hierarchical-histogram": "HierarchicalHistogram",
    "hybrid-mean": "HybridMean",
    "laplace-mean": "LaplaceMean",
    "longitudinal-local-hashing": "LongitudinalLocalHashing",
    "longitudinal-randomized-response": "LongitudinalRandomizedResponse",
    "longitudinal-unary-encoding": "LongitudinalUnaryEncoding",
    "memoized-bit-flip": "MemoizedBitFlip",
    "memoized-one-bit-mean": "MemoizedOneBitMean",
    "memoized-rappor": "MemoizedRappor",
    "noisy-histogram": "NoisyHistogram",
    "one-bit-hadamard": "OneBitHadamard",
    "one-bit-mean": "OneBitMean",
    "optimal-local-hashing": "OptimalLocalHashing",
    "optimized-unary-encoding": "OptimizedUnaryEncoding",
    "piecewise-mean": "PiecewiseMean",
    "prefix-extending": "PrefixExtending",
    "prefix-round": "PrefixRound",
    "privunit": "PrivUnit",
    "privunit-g": "PrivUnitG",
    "projective-geometry-response": "ProjectiveGeometryResponse",
    "randomized-response": "RandomizedResponse",
    "rappor": "Rappor",
    "sampled-attribute": "SampledAttribute",
    "sampled-marginals": "SampledMarginals",
    "sequence-fragment-puzzle": "SequenceFragmentPuzzle",
    "shuffled-counts": "ShuffledCounts",
    "shuffled-histogram": "ShuffledHistogram",
    "shuffled-sum": "ShuffledSum",
    "signed-hadamard": "SignedHadamard",
    "sphere-sampling": "SphereSampling",
    "split-budget": "SplitBudget",
    "square-wave": "SquareWave",
    "stochastic-rounding-mean": "PlaceMean",
    "subset-selection": "SubsetSelection",
    "symmetric-unary-encoding": "SymmetricUnaryEncoding",
    "treehist": "TreeHist",
}
"""By wire name, the class in `sfumato.local.device`."""


def protocol_named(name: object) -> type[Any] | None:
    """Return the client half of a wire name, or None for a name that is not known here."""
    if not isinstance(name, str) or name not in PROTOCOLS:
        return None
    kind: type[Any] = getattr(importlib.import_module(_FACE), PROTOCOLS[name])
    return kind
