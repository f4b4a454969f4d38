"""Multi-message protocols of the shuffle model: nearly the error of a trusted curator, without one.

A client sends some messages, decoys or shares of a number; a shuffler mixes the messages of all clients, and
only then does anybody see them. Protocols with one message are the oracles of `sfumato.local`: their loss
under a shuffler is ``Shuffled(oracle.privacy_loss, clients=n)``.

A `Collection` is a question that is asked by way of a shuffler process (`sfumato.server`): its parameters,
its keys and its price; an `Opening` is what the analyst reads the released batches with.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from sfumato._lazy import attach

if TYPE_CHECKING:
    from sfumato.crypto.secret_key import SecretKey
    from sfumato.local.shuffle.collection import Collection
    from sfumato.local.shuffle.counts import NoiseErrorModel, ShuffledCounts
    from sfumato.local.shuffle.estimate import NoisyNumber, ShuffledMeanEstimate, ShuffledSumEstimate
    from sfumato.local.shuffle.histogram import DecoyErrorModel, ShuffledHistogram
    from sfumato.local.shuffle.mixed_batch import MixedBatch
    from sfumato.local.shuffle.noise import SharedNoise
    from sfumato.local.shuffle.opening import Opening
    from sfumato.local.shuffle.protocol import ShuffleProtocol
    from sfumato.local.shuffle.single_message import loosest, single_message_mean
    from sfumato.local.shuffle.sparse_histogram import SparseHistogram, SparseRelease
    from sfumato.local.shuffle.split_and_mix import SplitProtocol
    from sfumato.local.shuffle.sums import ShuffledMean, ShuffledSum

__all__ = [
    "Collection",
    "DecoyErrorModel",
    "MixedBatch",
    "NoiseErrorModel",
    "NoisyNumber",
    "Opening",
    "SecretKey",
    "SharedNoise",
    "ShuffleProtocol",
    "ShuffledCounts",
    "ShuffledHistogram",
    "ShuffledMean",
    "ShuffledMeanEstimate",
    "ShuffledSum",
    "ShuffledSumEstimate",
    "SparseHistogram",
    "SparseRelease",
    "SplitProtocol",
    "loosest",
    "single_message_mean",
]

__getattr__, __dir__ = attach(
    __name__,
    {
        "Collection": "sfumato.local.shuffle.collection",
        "MixedBatch": "sfumato.local.shuffle.mixed_batch",
        "Opening": "sfumato.local.shuffle.opening",
        "SecretKey": "sfumato.crypto.secret_key",
        "DecoyErrorModel": "sfumato.local.shuffle.histogram",
        "ShuffleProtocol": "sfumato.local.shuffle.protocol",
        "ShuffledHistogram": "sfumato.local.shuffle.histogram",
        "NoiseErrorModel": "sfumato.local.shuffle.counts",
        "ShuffledCounts": "sfumato.local.shuffle.counts",
        "NoisyNumber": "sfumato.local.shuffle.estimate",
        "SharedNoise": "sfumato.local.shuffle.noise",
        "ShuffledMean": "sfumato.local.shuffle.sums",
        "ShuffledMeanEstimate": "sfumato.local.shuffle.estimate",
        "ShuffledSum": "sfumato.local.shuffle.sums",
        "ShuffledSumEstimate": "sfumato.local.shuffle.estimate",
        "SparseHistogram": "sfumato.local.shuffle.sparse_histogram",
        "SparseRelease": "sfumato.local.shuffle.sparse_histogram",
        "SplitProtocol": "sfumato.local.shuffle.split_and_mix",
        "loosest": "sfumato.local.shuffle.single_message",
        "single_message_mean": "sfumato.local.shuffle.single_message",
    },
)
