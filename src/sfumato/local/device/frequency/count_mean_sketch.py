r"""The client halves of Apple's sketches: the value hashed to one of m buckets, by one of k functions.

*The hash functions* are the same on every machine. Function j is a mixer of 32 bits under a seed, and the
seed is BLAKE2b of j in 4 bytes, keyed with the public ``key``. Privacy rests on none of this: the
function is drawn whatever is true, and values with the same hash are indistinguishable.
"""

from __future__ import annotations

import hashlib
from abc import abstractmethod
from dataclasses import dataclass, field
from fractions import Fraction
from functools import lru_cache
from itertools import product
from typing import Any, ClassVar, Final, final

import numpy as np
from numpy.typing import NDArray

from sfumato import _check
from sfumato.local.device.base.bernoulli import Coin, truth_coin
from sfumato.local.device.base.numbered_bits import joined, parted
from sfumato.local.device.base.randomizer import CategoricalRandomizer
from sfumato.local.device.base.record_layout import Records
from sfumato.local.device.domains.categories import Domain
from sfumato.local.device.frequency.local_hashing import hashed, keys_of
from sfumato.local.device.frequency.unary import SymmetricUnaryEncodingRandomizer
from sfumato.numerics.randomness.source import RandomSource
from sfumato.numerics.randomness.uniform import uniform_integers

__all__ = ["CountMeanSketchRandomizer", "HadamardCountMeanSketchRandomizer", "SketchRandomizer", "odd"]

_MAX_HASHES: Final = 1 << 20
_MAX_SIZE: Final = 1 << 16
_SMALL: Final = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class SketchRandomizer(CategoricalRandomizer):
    """A hash function, drawn evenly, and a randomized report of the bucket that it maps the truth to.

    Parameters
    ----------
    epsilon, domain
        See `CategoricalRandomizer`; at most 2**32 categories.
    size : int
        Buckets m that values are hashed to: a power of two from 8 to 65,536.
    hashes : int
        Hash functions k, from 2 to 2**20.
    key : int
        Public; names a family of hash functions, from 0 to 2**64 - 1.
    """

    chosen: ClassVar[tuple[str, ...]] = ("epsilon", "domain", "size", "hashes", "key")

    size: int = 1024
    hashes: int = 65_536
    key: int = 0

    def _choose(self) -> None:
        if len(self.domain) > 1 << 32:
            _check.refuse("domain", "have at most 2**32 categories", len(self.domain), "ask in parts")
        size = _check.integer("size", self.size)
        if not 8 <= size <= _MAX_SIZE or size & (size - 1):
            _check.refuse("size", "be a power of two from 8 to 65536", size, "take 1024, as is usual")
        hashes = _check.integer("hashes", self.hashes, minimum=2)
        if hashes > _MAX_HASHES:
            _check.refuse("hashes", "be at most 2**20", hashes, "take fewer: more gain nothing")
        key = _check.integer("key", self.key)
        if key >> 64:
            _check.refuse("key", "be below 2**64", key, "take any public number below it")
        self._set(size=size, hashes=hashes, key=key)
        self._arrange()

    @abstractmethod
    def _arrange(self) -> None:
        """Set the coins."""

    @property
    @abstractmethod
    def truth(self) -> Coin:
        """Falls on heads for a bit that is sent as it is."""

    def _chances(self) -> dict[str, Any]:
        return {"truth": [self.truth.threshold, self.truth.bits], "hash": "blake2b, mix3"}

    @property
    def _number_bits(self) -> int:
        return (self.hashes - 1).bit_length()

    def indices(self, functions: NDArray[np.int64], codes: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the buckets that functions map indices in the domain to; the two arrays are broadcast."""
        seeds = _seeds(self.key, self.hashes)[functions]
        shift = np.uint32(33 - self.size.bit_length())
        return (hashed(seeds, keys_of(codes)) >> shift).astype(np.int64)

    def _encode(self, codes: NDArray[np.int64], source: RandomSource) -> Records:
        functions = uniform_integers(self.hashes, len(codes), source)
        return self._send(functions, self.indices(functions, codes), source)

    @abstractmethod
    def _send(
        self, functions: NDArray[np.int64], positions: NDArray[np.int64], source: RandomSource
    ) -> Records:
        """Return one stamped record for each pair of a function and a bucket."""

    @abstractmethod
    def functions(self, records: Records) -> NDArray[np.int64]:
        """Return which hash functions made records."""

    def well_formed(self, records: Records) -> NDArray[np.bool_]:
        """Return which records name a hash function.

        Parameters
        ----------
        records : uint8 array, shape (records, width)

        Returns
        -------
        bool array, shape (records,)
            True where the record is one that this protocol can send.
        """
        return self.functions(records) < self.hashes


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class CountMeanSketchRandomizer(SketchRandomizer):
    r"""One bit for each of m buckets, set where the value is hashed to, and every one flipped by chance.

    Parameters
    ----------
    epsilon, domain, size, hashes, key
        See `SketchRandomizer`.

    Attributes
    ----------
    bits : SymmetricUnaryEncodingRandomizer
        What is done to the m bits: each is flipped with probability :math:`1/(1 + e^{\epsilon/2})`, rounded
        up to a short coin.

    Notes
    -----
    Guarantee: :math:`\epsilon`-DP of each report, replace-one: the function is independent of the truth, and
    given it the bits are those of `SymmetricUnaryEncodingRandomizer` over m categories.

    References
    ----------
    Apple Differential Privacy Team (2017), "Learning with privacy at scale": epsilon 4, m = 1024 and k =
    65,536 for the most frequent emojis.

    Examples
    --------
    >>> from sfumato.local.device import Domain
    >>> CountMeanSketchRandomizer(epsilon=4.0, domain=Domain(range(2600))).width
    134
    """

    wire_name: ClassVar[str] = "count-mean-sketch"

    bits: SymmetricUnaryEncodingRandomizer = field(init=False, repr=False, compare=False)

    def _arrange(self) -> None:
        bits = SymmetricUnaryEncodingRandomizer(epsilon=self.epsilon, domain=Domain(range(self.size)))
        self._set(bits=bits)

    @property
    def truth(self) -> Coin:
        """Falls on heads for a bit that is sent as it is."""
        return self.bits.true

    @property
    def _bits(self) -> int:
        return self.size + self._number_bits

    def _send(
        self, functions: NDArray[np.int64], positions: NDArray[np.int64], source: RandomSource
    ) -> Records:
        rows = self.bits.encoded(positions, source)[:, : self.size // 8]
        return joined(rows, functions, self.layout)

    def opened(self, records: Records) -> tuple[Records, NDArray[np.int64]]:
        """Return the bits, eight to a byte, and the functions of records.

        Parameters
        ----------
        records : uint8 array, shape (records, width)

        Returns
        -------
        bits : uint8 array, shape (records, size / 8)
        functions : int64 array, shape (records,)
        """
        return parted(records, self.size // 8, self.layout)

    def functions(self, records: Records) -> NDArray[np.int64]:
        """Return the indices of the hash functions that made records.

        Parameters
        ----------
        records : uint8 array, shape (records, width)

        Returns
        -------
        int64 array, shape (records,)
        """
        return self.opened(records)[1]

    def probabilities(self, value: Any) -> dict[bytes, Fraction]:
        """Return the probability of each report, were a value true: private, and for small sketches.

        Parameters
        ----------
        value
            A category of the domain.

        Returns
        -------
        dict of bytes to Fraction
            From each possible report to its exact probability; they sum to 1.
        """
        if self.size > _SMALL:
            _check.refuse("size", f"be at most {_SMALL}", self.size, "look at a smaller one")
        codes, distribution = self.domain.codes([value]), {}
        for function in range(self.hashes):
            (position,) = self.indices(np.array([function]), codes).tolist()
            for record, chance in self.bits.probabilities(position).items():
                row = np.frombuffer(record, np.uint8)[None, : self.size // 8]
                sent = joined(row, np.array([function]), self.layout).tobytes()
                distribution[sent] = chance / self.hashes
        return distribution


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class HadamardCountMeanSketchRandomizer(SketchRandomizer):
    r"""One entry of the Hadamard transform of the m bits, drawn evenly, its sign flipped by chance.

    Parameters
    ----------
    epsilon, domain, size, hashes, key
        See `SketchRandomizer`.

    Attributes
    ----------
    truth : Coin
        Falls on tails, and flips the sign, with probability :math:`1/(1 + e^\epsilon)`, rounded up.

    Notes
    -----
    Entry l for the bucket x is -1 to the number of bits that l and x share. Guarantee: :math:`\epsilon`-DP of
    each report, replace-one: function and entry are independent of the truth, and given them the sign is
    randomized response.

    References
    ----------
    Apple Differential Privacy Team (2017), "Learning with privacy at scale".

    Examples
    --------
    >>> from sfumato.local.device import Domain
    >>> HadamardCountMeanSketchRandomizer(epsilon=4.0, domain=Domain(range(2600))).width
    8
    """

    wire_name: ClassVar[str] = "hadamard-count-mean-sketch"

    sign: Coin = field(init=False, repr=False, compare=False)

    def _arrange(self) -> None:
        self._set(sign=truth_coin(self.epsilon))

    @property
    def truth(self) -> Coin:
        """Falls on heads for a sign that is sent as it is."""
        return self.sign

    @property
    def _entry_bits(self) -> int:
        return self.size.bit_length()

    @property
    def _bits(self) -> int:
        return self._entry_bits + self._number_bits

    def _send(
        self, functions: NDArray[np.int64], positions: NDArray[np.int64], source: RandomSource
    ) -> Records:
        entries = uniform_integers(self.size, len(positions), source)
        negative = odd(entries & positions) ^ ~self.sign.flip(len(positions), source)
        payload = functions << self._entry_bits | entries << 1 | negative
        return self.layout.pack(payload.astype(np.uint64))

    def opened(self, records: Records) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
        """Return the functions of records, their entries, and 1 for each negative sign.

        Parameters
        ----------
        records : uint8 array, shape (records, width)

        Returns
        -------
        tuple of int64 array, shape (records,)
            The hash functions, the entries, and 1 where the report is negative.
        """
        payload = self.layout.unpack(records).astype(np.int64)
        return payload >> self._entry_bits, payload >> 1 & (self.size - 1), payload & 1

    def functions(self, records: Records) -> NDArray[np.int64]:
        """Return the indices of the hash functions that made records.

        Parameters
        ----------
        records : uint8 array, shape (records, width)

        Returns
        -------
        int64 array, shape (records,)
        """
        return self.opened(records)[0]

    def probabilities(self, value: Any) -> dict[bytes, Fraction]:
        """Return the probability of each report, were a value true: private, and for small sketches.

        Parameters
        ----------
        value
            A category of the domain.

        Returns
        -------
        dict of bytes to Fraction
            From each possible report to its exact probability; they sum to 1.
        """
        codes, distribution = self.domain.codes([value]), {}
        even = Fraction(1, self.hashes * self.size)
        for function, entry, negative in product(range(self.hashes), range(self.size), range(2)):
            (position,) = self.indices(np.array([function]), codes).tolist()
            true = (entry & position).bit_count() % 2 == negative
            payload = function << self._entry_bits | entry << 1 | negative
            record = self.layout.pack(np.array([payload], np.uint64)).tobytes()
            distribution[record] = even * (self.truth.chance if true else 1 - self.truth.chance)
        return distribution


def odd(numbers: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Return which whole numbers below 2**16 have an odd number of bits."""
    folded = numbers ^ numbers >> 8
    for shift in (4, 2, 1):
        folded = folded ^ folded >> shift
    return (folded & 1).astype(np.bool_)


@lru_cache(maxsize=8)
def _seeds(key: int, hashes: int) -> NDArray[np.uint32]:
    """Return the seeds of all hash functions; see the notes of the module."""
    keyed = key.to_bytes(8, "little")
    digests = (
        hashlib.blake2b(j.to_bytes(4, "little"), digest_size=4, key=keyed, person=b"sfumato sketch").digest()
        for j in range(hashes)
    )
    seeds = np.frombuffer(b"".join(digests), "<u4").astype(np.uint32)
    seeds.flags.writeable = False
    return seeds
