r"""The client half of local hashing: a random hash of the true value, by randomized response.

The hash of a value is a fixed function of the report's seed of 32 bits and of the value's key: three
multiplications by odd constants and two shifts (Mueller's and Wellons's family of mixers), of which the high
bits name one of g buckets. Multiplications carry a difference of two keys upward, so keys that differ in high
bits only would be hashed alike too often or too rarely. Keys therefore differ in their low 20 bits for all
indices below :math:`2^{20}`, and for all but one in a million pairs of higher ones.
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, ClassVar, Final, final

import numpy as np
from numpy.typing import NDArray

from sfumato import _check
from sfumato.local.device.base.bernoulli import Coin, odds_below, truth_coin
from sfumato.local.device.base.randomizer import CategoricalRandomizer
from sfumato.local.device.base.record_layout import Records
from sfumato.local.device.frequency.randomized_response import exchanged
from sfumato.numerics.randomness.source import RandomSource

__all__ = [
    "BinaryLocalHashingRandomizer",
    "HashingRandomizer",
    "OptimalLocalHashingRandomizer",
    "bucket_of",
    "hashed",
    "keys_of",
]

_SEED_BITS: Final = 32
_MAX_BUCKETS: Final = 1 << 16
_LOW_BITS: Final = 20
_KEY: Final = np.uint32(0x9E3779B1)
_HIGH_KEY: Final = np.uint32(0x9E379)
_MIX: Final = tuple(map(np.uint32, (0xED5AD4BB, 0xAC4C1B51, 0x31848BAB)))


def keys_of(codes: NDArray[np.int64]) -> NDArray[np.uint32]:
    """Return the keys of indices below 2^32 in a domain: one to one; see the notes of the module.

    Parameters
    ----------
    codes : int64 array, shape (n,)

    Returns
    -------
    uint32 array, shape (n,)
    """
    positions = codes.astype(np.uint32)
    high = positions >> np.uint32(_LOW_BITS)
    return (positions ^ high * _HIGH_KEY & np.uint32((1 << _LOW_BITS) - 1)) * _KEY


def hashed(seeds: NDArray[np.uint32], keys: NDArray[np.uint32]) -> NDArray[np.uint32]:
    """Return the hashes of keys under seeds; the kernel ``count_hashes`` has the same function.

    Parameters
    ----------
    seeds, keys : uint32 array

    Returns
    -------
    uint32 array
        Of their broadcast shape.
    """
    x = (seeds ^ keys) * _MIX[0]
    x = (x ^ x >> np.uint32(11)) * _MIX[1]
    return np.asarray((x ^ x >> np.uint32(15)) * _MIX[2])


def bucket_of(seeds: NDArray[np.uint32], codes: NDArray[np.int64], buckets: int) -> NDArray[np.int64]:
    """Return the bucket that each seed hashes an index in the domain to.

    Parameters
    ----------
    seeds : uint32 array, shape (n,)
    codes : int64 array, shape (n,)
        Indices in the domain.
    buckets : int

    Returns
    -------
    int64 array, shape (n,)
        From 0 to ``buckets - 1``.
    """
    high = hashed(seeds, keys_of(codes)).astype(np.uint64)
    return (high * np.uint64(buckets) >> np.uint64(32)).astype(np.int64)


@dataclass(frozen=True, slots=True, kw_only=True)
class HashingRandomizer(CategoricalRandomizer):
    r"""A random seed, and the bucket that it hashes the truth to, by randomized response over g buckets.

    Parameters
    ----------
    epsilon, domain
        See `CategoricalRandomizer`; at most :math:`2^{32}` categories.

    Attributes
    ----------
    buckets : int
        The g.
    truth : Coin
        Falls on heads for the true bucket; chosen as in `RandomizedResponseRandomizer`.

    Notes
    -----
    Guarantee: :math:`\epsilon`-DP of each report, replace-one, whatever the hash: the seed is independent of
    the truth, and given the seed the report is randomized response over g buckets.
    """

    buckets: int = field(init=False, repr=False, compare=False)
    truth: Coin = field(init=False, repr=False, compare=False)

    @staticmethod
    @abstractmethod
    def _best_buckets(odds: Fraction) -> int:
        """Return how many buckets to use for the odds of epsilon."""

    def _choose(self) -> None:
        if len(self.domain) > 1 << 32:
            _check.refuse("domain", "have at most 2**32 categories", len(self.domain), "ask in parts")
        buckets = min(self._best_buckets(odds_below(self.epsilon)), _MAX_BUCKETS)
        self._set(buckets=buckets, truth=truth_coin(self.epsilon, 1, buckets - 1))

    @property
    def _bits(self) -> int:
        return _SEED_BITS + (self.buckets - 1).bit_length()

    def _chances(self) -> dict[str, Any]:
        return {"buckets": self.buckets, "truth": self.truth.threshold, "hash": "mix3"}

    def _encode(self, codes: NDArray[np.int64], source: RandomSource) -> Records:
        count = len(codes)
        seeds = source.words(-(-count // 2)).view(np.uint32)[:count]
        reported = exchanged(bucket_of(seeds, codes, self.buckets), self.buckets, self.truth, source)
        return self.layout.pack(reported.astype(np.uint64) << np.uint64(_SEED_BITS) | seeds)

    def well_formed(self, records: Records) -> NDArray[np.bool_]:
        """Return which records name a bucket.

        Parameters
        ----------
        records : uint8 array, shape (records, width)

        Returns
        -------
        bool array, shape (records,)
            True where the record is one that this protocol can send.
        """
        return self.layout.unpack(records) >> np.uint64(_SEED_BITS) < np.uint64(self.buckets)

    def opened(self, records: Records) -> tuple[NDArray[np.uint32], NDArray[np.uint32]]:
        """Return the seeds and the buckets of records.

        Parameters
        ----------
        records : uint8 array, shape (records, width)

        Returns
        -------
        seeds, buckets : uint32 array, shape (records,)
        """
        payloads = self.layout.unpack(records)
        return payloads.astype(np.uint32), (payloads >> np.uint64(_SEED_BITS)).astype(np.uint32)

    def probabilities(self, value: Any, seed: int = 0) -> dict[bytes, Fraction]:
        """Return the probability of each report, given its seed, were a value true: private.

        Parameters
        ----------
        value
            A category of the domain.
        seed : int
            Seed of the report, which is public.

        Returns
        -------
        dict of bytes to Fraction
            From each possible report to its exact probability; they sum to 1.
        """
        codes = self.domain.codes([value])
        high = int(hashed(np.array([seed], np.uint32), keys_of(codes))[0])
        lie = (1 - self.truth.chance) / (self.buckets - 1)
        names = np.arange(self.buckets, dtype=np.uint64) << np.uint64(_SEED_BITS) | np.uint64(seed)
        bucket = high * self.buckets >> 32
        return {
            row.tobytes(): self.truth.chance if at == bucket else lie
            for at, row in enumerate(self.layout.pack(names))
        }


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class OptimalLocalHashingRandomizer(HashingRandomizer):
    r"""Local hashing to :math:`g = \mathrm{round}(e^\epsilon) + 1` buckets: lowest error in some five bytes.

    Parameters
    ----------
    epsilon, domain
        See `HashingRandomizer`.

    References
    ----------
    Wang, Blocki, Li, Jha (2017), "Locally differentially private protocols for frequency estimation".

    Examples
    --------
    >>> from sfumato.local.device import Domain
    >>> device = OptimalLocalHashingRandomizer(epsilon=1.0, domain=Domain(range(65536)))
    >>> device.buckets, device.width
    (4, 9)
    """

    wire_name: ClassVar[str] = "optimal-local-hashing"

    @staticmethod
    def _best_buckets(odds: Fraction) -> int:
        return round(min(odds, Fraction(_MAX_BUCKETS))) + 1


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class BinaryLocalHashingRandomizer(HashingRandomizer):
    """Local hashing to two buckets: one bit of the truth, for any domain.

    Parameters
    ----------
    epsilon, domain
        See `HashingRandomizer`.

    References
    ----------
    Bassily, Smith (2015), "Local, private, efficient protocols for succinct histograms"; Wang, Blocki, Li,
    Jha (2017), the name.

    Examples
    --------
    >>> from sfumato.local.device import Domain
    >>> BinaryLocalHashingRandomizer(epsilon=1.0, domain=Domain(range(65536))).width
    9
    """

    wire_name: ClassVar[str] = "binary-local-hashing"

    @staticmethod
    def _best_buckets(_: Fraction) -> int:
        return 2
