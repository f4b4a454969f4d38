"""Histograms of keys that nobody knows in advance: a trusted shuffler counts, and shows what many have."""

from __future__ import annotations

import struct
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Final, Literal, cast, final

import numpy as np

from sfumato import _check
from sfumato.errors import ParameterError
from sfumato.local.device.base.record_layout import Records
from sfumato.local.device.shuffle.sparse_collection import SparseCollection
from sfumato.mechanisms.selection.stability_histogram import StabilityHistogram
from sfumato.numerics.randomness.source import Rng
from sfumato.privacy.loss import PrivacyLoss
from sfumato.privacy.neighboring import Neighboring

__all__ = ["SparseHistogram", "SparseRelease"]

_MAGIC: Final = b"sfmtTHRS"
_VERSION: Final = 1
_HEADER: Final = struct.Struct("<8sHxxI32sQQ")
"""Magic, version, bytes of an encrypted key, the collection's id, the batch's number, keys shown."""


@final
@dataclass(frozen=True, slots=True)
class SparseRelease:
    """What the analyst reads of one batch.

    Parameters
    ----------
    number : int
        Of the batch.
    counts : mapping of str to int
        Noisy counts of the keys that reached the threshold, the largest first.
    unreadable : int
        How many counts were shown of what no device encrypted; forged by clients who worked together.
    """

    number: int
    counts: Mapping[str, int]
    unreadable: int


@final
@dataclass(frozen=True, slots=True)
class SparseHistogram:
    r"""Noisy counts of texts from an unknown domain, of those whose noisy count reaches a threshold.

    Parameters
    ----------
    collection : SparseCollection
        What the devices know.

    Notes
    -----
    Guarantee: `privacy_loss`, (epsilon, delta)-DP, of all that the analyst sees, for each client under
    replace-one, whatever all other clients do: they may work for the analyst, in any number, for the noise is
    the shuffler's. It is the loss of `sfumato.mechanisms.StabilityHistogram` with noise for :math:`2 k`
    counts, k being ``max_keys``: a release is a post-processing of that mechanism, since encrypted keys are
    the keys under a one-to-one map, and a client that is replaced leaves at most k counts and enters at most
    k others. Each client is in one batch, once (see `sfumato.server.Shuffler`), so that many batches cost it
    no more than one.

    Conditions: the shuffler does as it should, draws its noise in secret, and shows nothing but its releases.
    So the shuffler is trusted with the counts, more than one that only mixes.

    *Who sees what below the threshold.* The analyst: nothing, but for delta. The shuffler: which encrypted
    keys are alike, how many clients have each, and from where they came. From how many have them it can guess
    texts whose frequency is known elsewhere: frequency analysis, which no deterministic encryption hinders.
    It reads all of them if it gets the devices' encryption key, from the analyst or from any one device that
    works for it. Other devices and the network: nothing. A device cannot be made to lie: no local noise
    protects it from a shuffler with the encryption key.

    *Sybils* are colluders. The loss holds whatever they send, but that many people have a key which is shown
    does not: who sends under many nonces makes any text be shown, or counts up one that a single client has.

    References
    ----------
    Korolova, Kenthapadi, Mishra, Ntoulas (2009), "Releasing search queries and clicks privately"; Bun,
    Nissim, Stemmer (2016), stability-based histograms. Naveed, Kamara, Wright (2015), "Inference attacks on
    property-preserving encrypted databases", for what a shuffler may guess.

    Examples
    --------
    >>> from sfumato.crypto import SecretKey
    >>> encryption_key = SparseCollection.encryption_key()
    >>> asked = SparseCollection(
    ...     epsilon=1.0,
    ...     delta=1e-6,
    ...     batch_size=1000,
    ...     max_keys=1,
    ...     key_bytes=40,
    ...     commitment=SparseCollection.commit(encryption_key),
    ...     analyst=SecretKey.generate("analyst").public,
    ...     shuffler=SecretKey.generate("shuffler").public,
    ... )
    >>> histogram = SparseHistogram(asked)
    >>> histogram.mechanism.threshold, histogram.privacy_loss.delta(1.0) <= 1.000001e-6
    (29, True)
    """

    collection: SparseCollection

    def __post_init__(self) -> None:
        _check.instance("collection", self.collection, SparseCollection, "pass a SparseCollection")
        _ = self.mechanism  # what cannot be calibrated is refused before anybody sends

    @property
    def mechanism(self) -> StabilityHistogram:
        """What the shuffler runs on the counts of each batch."""
        known = self.collection
        return _mechanism(known.epsilon, known.delta, 2 * known.max_keys, known.noise)

    @property
    def privacy_loss(self) -> PrivacyLoss:
        """The loss of each client, seen by the analyst; in as many batches as there are, for it is in one."""
        return self.mechanism.privacy_loss

    def release(self, number: int, clients: Records, rng: Rng = None) -> bytes:
        """Return what the shuffler releases of a batch: encrypted keys and noisy counts.

        Parameters
        ----------
        number : int
            Of the batch, from 1 on.
        clients : uint8 array, shape (clients, messages * sealed_width)
            The encrypted keys of each client; one that it sent twice counts once.
        rng : None, int, numpy Generator or RandomSource
            None draws from the operating system's entropy.

        Returns
        -------
        bytes
            What `opened` reads; sorted, so that the order shows nothing.
        """
        width = self.collection.sealed_width
        shown = self.mechanism.release(distinct_clients(clients, width), rng).value
        header = _HEADER.pack(_MAGIC, _VERSION, width, self.collection.id, number, len(shown))
        return header + b"".join(key + struct.pack("<q", shown[key]) for key in sorted(shown))

    def opened(self, release: bytes, encryption_key: bytes) -> SparseRelease:
        """Return the texts and counts of a release.

        Parameters
        ----------
        release : bytes
            As the shuffler released it.
        encryption_key : bytes
            That of the devices.

        Returns
        -------
        SparseRelease

        Raises
        ------
        ParameterError
            If it is no whole release of this collection, or the encryption key is another.
        """
        given: object = release
        if not isinstance(given, bytes) or len(release) < _HEADER.size or not release.startswith(_MAGIC):
            raise ParameterError("a release must be one that a shuffler wrote, got other bytes")
        _, version, width, collection, number, count = _HEADER.unpack_from(release)
        if version != _VERSION:
            _check.refuse("a release", f"be of version {_VERSION}", version, "use a newer sfumato")
        if collection != self.collection.id or width != self.collection.sealed_width:
            raise ParameterError("a release must be of this collection, got another's; use that one's file")
        if len(release) != _HEADER.size + (width + 8) * count:
            raise ParameterError("a release must be whole, got more or fewer bytes than its header says")
        table = np.frombuffer(release, [("key", f"V{width}"), ("count", "<i8")], offset=_HEADER.size)
        texts = self.collection.decrypted([key.tobytes() for key in table["key"]], encryption_key)
        read = [
            (text, int(found)) for text, found in zip(texts, table["count"], strict=True) if text is not None
        ]
        read.sort(key=lambda one: (-one[1], one[0]))
        return SparseRelease(number, dict(read), len(texts) - len(read))


def distinct_clients(clients: Records, width: int) -> Counter[bytes]:
    """Return how many clients have each record.

    Parameters
    ----------
    clients : uint8 array, shape (clients, records * width)
    width : int
        Bytes of a record.
    """
    counts: Counter[bytes] = Counter()
    for row in clients:
        content = row.tobytes()
        counts.update({content[start : start + width] for start in range(0, len(content), width)})
    return counts


@lru_cache(maxsize=64)
def _mechanism(epsilon: float, delta: float, counts: int, noise: str) -> StabilityHistogram:
    return StabilityHistogram.calibrated(
        epsilon=epsilon,
        delta=delta,
        l0=counts,
        distribution=cast("Literal['laplace', 'gaussian']", noise),
        neighboring=Neighboring.REPLACE_ONE,
    )
