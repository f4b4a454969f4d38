"""Histograms of keys that nobody knows in advance: a trusted shuffler counts, and shows what many have."""

from __future__ import annotations

import struct
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Final, TypeAlias, final

import numpy as np

from sfumato import _check
from sfumato.errors import ParameterError
from sfumato.local.device.base.record_layout import Records
from sfumato.local.device.shuffle.sparse_collection import SparseCollection
from sfumato.mechanisms.base.calibration import PrivacyTarget
from sfumato.mechanisms.noise.gaussian import Gaussian
from sfumato.mechanisms.noise.laplace import Laplace
from sfumato.mechanisms.selection.randomized_threshold import RandomizedThreshold
from sfumato.mechanisms.selection.stability_histogram import StabilityHistogram
from sfumato.numerics.randomness.source import Rng
from sfumato.privacy.leaves.declared import ApproximateDP
from sfumato.privacy.loss import PrivacyLoss
from sfumato.privacy.neighboring import Neighboring
from sfumato.privacy.nodes.thresholded import ThresholdedSelection

__all__ = ["SparseHistogram", "SparseRelease"]

Noise: TypeAlias = Laplace | Gaussian

_LEAST_DELTA: Final = 1e-300
"""Parts of what is much less than that are no floats any more."""
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
    the shuffler's. It is the loss of the noise on :math:`2 k` counts, k being ``max_keys``, and k times a
    mass m: the probability that a key of a single client is shown. A release is a post-processing of
    `sfumato.mechanisms.StabilityHistogram`, since encrypted keys are the keys under a one-to-one map, and a
    client that is replaced leaves at most k counts and enters at most k others. Each client is in one batch,
    once (see `sfumato.server.Shuffler`), so that many batches cost it no more than one.

    *Proof that k masses are enough*, though any of 2 k counts may be that of one client. Put each count that
    the client leaves beside one that it enters. Let N be the noise's pair (symmetric) of one count, which
    moves by one, and :math:`H_N(s)` its hockey-stick divergence. Claim: for :math:`s \ge 1` the divergence of
    what is shown of two such counts, before over after, is at most :math:`m + (1 - m) H_{N \otimes N}(s)`,
    that of the noise on both and a mass m of total failure. A count that others have too, in both datasets,
    is dominated by N (what is shown is a function of noisy count and coin); one that nobody else has is not
    there in one of the datasets, and there nothing is shown of it.

    - Both counts have others: :math:`H_{N \otimes N}(s)`.
    - Nobody else has what is left: with probability m it is shown before, and never after; else nothing. That
      is :math:`m + (1 - m) H_N(s / (1 - m)) \le m + (1 - m) H_N(s)` beside a count that has others; and
      beside one that has none it is m, as nothing is shown at all with probability 1 - m before and after.
    - Nobody else has what is entered: nothing is shown of it before, and with probability 1 - m after. So the
      divergence is :math:`H_N(s (1 - m)) = P(E) - s (1 - m) Q(E)` for some event E. Since
      :math:`H_N(s) \ge P(E) - s Q(E)`, it is at most :math:`m P(E) + (1 - m) H_N(s)`.

    And :math:`H_N \le H_{N \otimes N}`; a count that is left or entered alone is among these cases. After
    over before is the same with the roles of the two counts exchanged. So the claim holds in both orders for
    :math:`s \ge 1`. That is enough for all s: the divergence of a pair at s below 1 follows from that of the
    exchanged pair at 1/s, and N with the mass is symmetric. The k pairs of counts are independent, and
    dominating pairs compose. With Laplace noise the bound is met at the collection's epsilon: a client whose
    k keys nobody else has, before or after, makes delta :math:`1 - (1 - m)^k`.

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
    (27, True)
    """

    collection: SparseCollection

    def __post_init__(self) -> None:
        _check.instance("collection", self.collection, SparseCollection, "pass a SparseCollection")
        _ = self.mechanism  # what cannot be calibrated is refused before anybody sends

    @property
    def mechanism(self) -> StabilityHistogram:
        """What the shuffler runs on the counts of each batch."""
        known = self.collection
        return _mechanism(known.epsilon, known.delta, known.max_keys, known.noise)

    @property
    def privacy_loss(self) -> PrivacyLoss:
        """The loss of each client, seen by the analyst; in as many batches as there are, for it is in one."""
        mechanism = self.mechanism
        threshold = RandomizedThreshold(mechanism.threshold, Fraction(mechanism.probability))
        return _loss(mechanism.noise, threshold, self.collection.max_keys)

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
def _mechanism(epsilon: float, delta: float, keys: int, noise: str) -> StabilityHistogram:
    """Return the mechanism with the lowest threshold that `_loss` allows."""
    if delta < _LEAST_DELTA:
        _check.refuse("delta", f"be at least {_LEAST_DELTA:g}", delta, "pass a greater one")
    request = PrivacyTarget.approximate(epsilon, delta, "pass a positive delta")
    counts, relation = 2 * keys, Neighboring.REPLACE_ONE
    if noise == "laplace":
        drawn: Noise = Laplace.calibrated(epsilon=epsilon, sensitivity=1, l0=counts, neighboring=relation)
    else:
        drawn = Gaussian.calibrated(
            epsilon=epsilon, delta=delta / 2, sensitivity=1, l0=counts, neighboring=relation
        )
    start = 1 + drawn.distribution.quantile_above(delta / (2 * keys))
    found = RandomizedThreshold.lowest(lambda each: request.met_by(_loss(drawn, each, keys)), start)
    return StabilityHistogram(noise=drawn, threshold=found.units, probability=found.probability)


def _loss(noise: Noise, threshold: RandomizedThreshold, keys: int) -> PrivacyLoss:
    """Return the loss of a client with so many keys: see the notes of `SparseHistogram`."""
    ((one, count),) = noise.privacy_loss.terms
    mass = ThresholdedSelection(one, threshold.units, threshold.probability).mass
    failure = ApproximateDP(0.0, mass, neighboring=Neighboring.REPLACE_ONE)
    return one * count + failure * keys
