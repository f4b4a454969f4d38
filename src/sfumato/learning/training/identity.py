"""What a run is, as a document: its sampler, its clipping and its noise by wire names, without secrets.

Checkpoints and model cards store these documents, and a replayed step is known by a hash of them. Each kind
of sampler, clipping, noise and strategy has its wire name and its public fields here, so that renaming a
class or an attribute never changes them. A kind of the user's own is written as ``custom``, with the text
that it has for itself.

>>> from sfumato.learning.clipping.flat import Flat
>>> clipping_to_json(Flat(clip_norm=0.5))
{'kind': 'flat', 'clip_norm': 0.5}
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any

import numpy as np

from sfumato._wire import BOOLEAN, INTEGER, NUMBER, TEXT, Codec, Field, Names, Record, optional, sequence
from sfumato.learning.clipping.adaptive_quantile import AdaptiveQuantile
from sfumato.learning.clipping.automatic import Automatic
from sfumato.learning.clipping.clipping import Clipping
from sfumato.learning.clipping.flat import Flat
from sfumato.learning.clipping.per_group import PerGroup
from sfumato.learning.clipping.per_layer import PerLayer
from sfumato.learning.noise.correlated import CorrelatedNoise
from sfumato.learning.noise.grid import GridNoise
from sfumato.learning.noise.keyed import KeyedNoise, SimulatedNoise
from sfumato.learning.noise.noise import Noise
from sfumato.learning.sampling.balls_in_bins import BallsInBinsSampler
from sfumato.learning.sampling.epoch_sampler import CyclicSampler, ShuffledSampler
from sfumato.learning.sampling.fixed_size import FixedSizeSampler, WithReplacementSampler
from sfumato.learning.sampling.full_batch import FullBatchSampler
from sfumato.learning.sampling.independent import IndependentSampler
from sfumato.learning.sampling.poisson import PoissonSampler
from sfumato.learning.sampling.random_allocation import AllocationSampler
from sfumato.learning.sampling.sampler import Sampler
from sfumato.learning.sampling.separated import SeparatedSampler
from sfumato.learning.sampling.truncated_poisson import TruncatedPoissonSampler
from sfumato.learning.sampling.users import UserRecordsSampler, UserSampler
from sfumato.mechanisms.factorization.strategies.banded import BandedToeplitz
from sfumato.mechanisms.factorization.strategies.binary_tree import BinaryTree
from sfumato.mechanisms.factorization.strategies.buffered_toeplitz import BufferedToeplitz
from sfumato.mechanisms.factorization.strategies.lower_triangular import LowerTriangular
from sfumato.mechanisms.factorization.strategies.participation import Participation
from sfumato.mechanisms.factorization.strategies.square_root import SquareRoot
from sfumato.mechanisms.factorization.strategies.strategy import Strategy
from sfumato.privacy.neighboring import RELATION

__all__ = ["clipping_to_json", "noise_to_json", "sampler_kind", "sampler_to_json"]

Fields = dict[str, Codec[Any] | Field]


class _Kinds:
    """The documents of several classes: the wire name of an object's class, and its public fields.

    Parameters
    ----------
    classes : mapping of str to (class, fields)
        By wire name.
    """

    def __init__(self, classes: Mapping[str, tuple[type, Fields]]) -> None:
        self._names = Names("a kind", {name: kind for name, (kind, _) in classes.items()})
        self._records = {kind: Record(f"a {name}", kind, fields) for name, (kind, fields) in classes.items()}

    def name(self, value: object) -> str:
        """Return the wire name of an object's class; ``custom`` for one of the user's own."""
        return str(self._names.encode(type(value))) if type(value) in self._records else "custom"

    def document(self, value: object, text: str | None = None) -> dict[str, Any]:
        """Return the public fields of an object after its kind; of the user's own a text."""
        record = self._records.get(type(value))
        fields = {"text": text or repr(value)} if record is None else record.encode(value)
        return {"kind": self.name(value), **fields}


_PUBLIC_SIZE = optional(NUMBER)
_DRAWN: Fields = {"steps": INTEGER, "neighboring": RELATION, "public_batch_size": _PUBLIC_SIZE}
_ALL: Fields = {"population": INTEGER, **_DRAWN}
_FIXED: Fields = {"population": INTEGER, "batch_size": INTEGER, "steps": INTEGER}
_EPOCHS: Fields = {**_FIXED, "drop_last": BOOLEAN, "neighboring": RELATION}
_RATE: Fields = {"sampling_probability": NUMBER}

_SAMPLERS = _Kinds(
    {
        "poisson": (PoissonSampler, {**_ALL, **_RATE}),
        "truncated-poisson": (
            TruncatedPoissonSampler,
            {**_ALL, **_RATE, "max_batch_size": INTEGER, "population_bound": optional(INTEGER)},
        ),
        "separated": (SeparatedSampler, {**_ALL, **_RATE, "separation": INTEGER}),
        "random-allocation": (AllocationSampler, {**_ALL, "round_steps": INTEGER, "selected": INTEGER}),
        "balls-in-bins": (BallsInBinsSampler, {**_ALL, "bins": INTEGER}),
        "full-batch": (FullBatchSampler, _ALL),
        "fixed-size": (FixedSizeSampler, _FIXED),
        "with-replacement": (WithReplacementSampler, _FIXED),
        "shuffled": (ShuffledSampler, _EPOCHS),
        "cyclic": (CyclicSampler, {**_EPOCHS, "shuffle": BOOLEAN}),
        "user-poisson": (UserSampler, {**_DRAWN, **_RATE, "max_examples": optional(INTEGER), "clip": TEXT}),
        "user-records": (UserRecordsSampler, {**_DRAWN, **_RATE, "max_examples": INTEGER}),
    }
)

_NORM: Fields = {"clip_norm": NUMBER}
_PAIR: Codec[tuple[str, float]] = Codec(list, lambda name, pair: (pair[0], pair[1]))

_CLIPPINGS = _Kinds(
    {
        "flat": (Flat, _NORM),
        "automatic": (Automatic, {**_NORM, "gamma": NUMBER}),
        "per-layer": (PerLayer, {**_NORM, "layers": sequence(TEXT), "allocation": TEXT}),
        "per-group": (PerGroup, {"clip_norms": sequence(_PAIR), "allocation": TEXT}),
        "adaptive-quantile": (
            AdaptiveQuantile,
            {**_NORM, "count_stddev": NUMBER, "quantile": NUMBER, "learning_rate": NUMBER},
        ),
    }
)


def _hash_of_entries(rows: Any) -> str:
    """Return the SHA-256 of a matrix: its float64 entries row by row, little-endian."""
    return hashlib.sha256(np.ascontiguousarray(rows, dtype="<f8").tobytes()).hexdigest()


def _never(name: str, written: Any) -> Any:
    raise NotImplementedError(name)


_LENGTH: Fields = {"steps": INTEGER}
_NUMBERS: Codec[Any] = Codec(lambda values: [float(value) for value in values], _never)
_HASHED: Codec[Any] = Codec(_hash_of_entries, _never)

_STRATEGIES = _Kinds(
    {
        "tree": (BinaryTree, _LENGTH),
        "square-root": (SquareRoot, _LENGTH),
        "banded-toeplitz": (BandedToeplitz, {**_LENGTH, "bands": _NUMBERS}),
        "buffered-toeplitz": (BufferedToeplitz, {**_LENGTH, "decays": _NUMBERS, "weights": _NUMBERS}),
        "lower-triangular": (LowerTriangular, {"rows_sha256": Field("rows", _HASHED)}),
    }
)

_PARTICIPATION = Record(
    "a participation",
    Participation,
    {"max_participations": optional(INTEGER), "separation": INTEGER, "fixed_order": BOOLEAN},
)
_STRATEGY: Codec[Strategy] = Codec(_STRATEGIES.document, _never)
_NOISES = _Kinds(
    {
        "keyed-normal": (KeyedNoise, {}),
        "simulated-normal": (SimulatedNoise, {}),
        "grid-normal": (GridNoise, {}),
        "correlated-normal": (CorrelatedNoise, {"strategy": _STRATEGY, "participation": _PARTICIPATION}),
    }
)


def sampler_kind(sampler: Sampler) -> str:
    """Return the wire name of a kind of sampler."""
    return _SAMPLERS.name(sampler)


def sampler_to_json(sampler: Sampler) -> dict[str, Any]:
    """Return the public parameters of a sampler, without the number of examples where that is private.

    Parameters
    ----------
    sampler : Sampler

    Returns
    -------
    dict
        Of plain values; never with the seed.
    """
    document = _SAMPLERS.document(sampler, sampler.public_text)
    if isinstance(sampler, IndependentSampler) and sampler.public_batch_size is not None:
        document.pop("population", None)
    return document


def clipping_to_json(clipping: Clipping) -> dict[str, Any]:
    """Return the parameters of a clipping as plain values."""
    return _CLIPPINGS.document(clipping)


def noise_to_json(noise: Noise) -> dict[str, Any]:
    """Return which noise it is, and of which strategy and participation, without its key."""
    return _NOISES.document(noise, type(noise).__qualname__)
