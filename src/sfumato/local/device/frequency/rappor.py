"""The client half of RAPPOR: a Bloom filter of a string, randomized permanently and again for each report."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import product
from typing import Any, ClassVar, Final, final

import numpy as np
from numpy.typing import NDArray

from sfumato import _check
from sfumato.errors import ParameterError
from sfumato.local.device.base.bernoulli import Coin
from sfumato.local.device.base.bernoulli_bits import biased_bits, bits_of_words, randomized_bits
from sfumato.local.device.base.numbered_bits import joined, parted
from sfumato.local.device.base.randomizer import Randomizer
from sfumato.local.device.base.record_layout import Records
from sfumato.local.device.frequency.bloom_filter import MAX_HASHES, bloom_filters, bloom_indices, encoded
from sfumato.numerics.randomness.source import RandomSource, Rng, random_source
from sfumato.numerics.randomness.uniform import uniform_integers
from sfumato.numerics.rounding import fraction_up, log_up, mul_up

__all__ = ["RapporClient", "RapporRandomizer", "listed"]

_COIN_BITS: Final = 16
_MAX_BITS: Final = 4096
_MAX_COHORTS: Final = 1 << 16
_MAX_EPSILON: Final = 40.0
_KEY_BYTES: Final = 32
_BLOCK: Final = 1 << 15
_SMALL: Final = 8


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class RapporRandomizer(Randomizer):
    r"""A string's Bloom filter, randomized permanently and then for each report.

    Parameters
    ----------
    bits : int
        Of the filter, k: a multiple of 8, at least twice ``hashes`` and at most 4096.
    hashes : int
        Hash functions h, from 1 to 8.
    cohorts : int
        Groups with hash functions of their own, from 1 to 65,536: a device is in one of them for good.
    permanent : float
        The f, strictly between 0 and 1: the memoized bit is a fair coin with this probability, else true.
    instantaneous : (float, float) or None
        The p and q with :math:`0 < p < q < 1`: a report's bit is 1 with probability q where the memoized one
        is 1, and p where it is 0. None sends the memoized bits themselves (one-time RAPPOR).

    Attributes
    ----------
    epsilon : float
        Bound on the loss of one report, rounded up.
    flip : Coin
        Turns a bit of the filter over, permanently, with probability f/2.
    ones : (Coin, Coin) or None
        The coins of p and q.

    Notes
    -----
    Chances are rounded down to multiples of :math:`2^{-16}`, and priced as drawn. `randomize` and
    `randomize_batch` are reports of new devices, one each; a device that reports again and again is a
    `RapporClient`.

    Guarantee: each report is :math:`\epsilon_1`-DP under replace-one, where :math:`\epsilon_1 = h
    \ln\frac{q^*(1-p^*)}{p^*(1-q^*)}`, :math:`q^* = q - \frac f2 (q - p)` and :math:`p^* = p + \frac f2 (q -
    p)` being the chances of a bit that is set in the filter and of one that is not. For two strings have at
    most h bits each that the other lacks, and bits are independent. All reports of a device about a string
    together are :math:`2h \ln\frac{1-f/2}{f/2}`-DP, as they are functions of the memoized bits.

    References
    ----------
    Erlingsson, Pihur, Korolova (2014), "RAPPOR: randomized aggregatable privacy-preserving ordinal response".

    Examples
    --------
    >>> device = RapporRandomizer(bits=128, hashes=2, cohorts=64)
    >>> device.width, round(device.epsilon, 4), len(device.randomize("https://example.org"))
    (21, 1.0743, 21)
    """

    wire_name: ClassVar[str] = "rappor"
    chosen: ClassVar[tuple[str, ...]] = ("bits", "hashes", "cohorts", "permanent", "instantaneous")

    epsilon: float = field(init=False)
    bits: int = 128
    hashes: int = 2
    cohorts: int = 64
    permanent: float = 0.5
    instantaneous: tuple[float, float] | None = (0.5, 0.75)
    flip: Coin = field(init=False, repr=False, compare=False)
    ones: tuple[Coin, Coin] | None = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        _check_shape(self)
        permanent = _check.unit_interval("permanent", self.permanent)
        self._set(flip=_coin("permanent", Fraction(permanent) / 2), ones=_both(self.instantaneous))
        epsilon = mul_up(self.hashes, log_up(fraction_up(self.odds)))
        if epsilon > _MAX_EPSILON:
            _check.refuse("permanent", "make epsilon at most 40", permanent, "raise it, or use fewer hashes")
        self._set(epsilon=epsilon)
        Randomizer.__post_init__(self)

    def _prepare(self) -> None:
        """Nothing is left to be set."""

    @property
    def chances(self) -> tuple[Fraction, Fraction]:
        r"""Chances :math:`p^*, q^*` of a reported 1, where the filter's bit is not set and where it is."""
        flip = self.flip.chance
        if self.ones is None:
            return flip, 1 - flip
        p, q = (coin.chance for coin in self.ones)
        return p + flip * (q - p), q - flip * (q - p)

    @property
    def odds(self) -> Fraction:
        """How much a bit of either filter that the other lacks changes chances, in a report."""
        p, q = self.chances
        return q * (1 - p) / (p * (1 - q))

    @property
    def permanent_odds(self) -> Fraction:
        """The same for memoized bits: in all reports together."""
        flip = self.flip.chance
        return ((1 - flip) / flip) ** 2

    @property
    def _bits(self) -> int:
        return self.bits + (self.cohorts - 1).bit_length()

    def _chances(self) -> dict[str, Any]:
        return {"hash": "blake2b"}

    def client(self, key: bytes | None = None) -> RapporClient:
        """Return one device, whose memoized bits follow from its key.

        Parameters
        ----------
        key : bytes, optional
            32 secret bytes; left out, they are drawn from the system's entropy.

        Returns
        -------
        RapporClient
        """
        return RapporClient(self, os.urandom(_KEY_BYTES) if key is None else key)

    def indices(self, values: Iterable[Any], cohorts: Iterable[int]) -> NDArray[np.int64]:
        """Return the positions of the set bits in the filters of values.

        Parameters
        ----------
        values : iterable of str or bytes
        cohorts : iterable of int
            The cohort of each value.

        Returns
        -------
        int64 array, shape (values, hashes)
        """
        return bloom_indices(map(encoded, values), cohorts, self.hashes, self.bits)

    def _records(self, values: Any, source: RandomSource) -> Records:
        held = listed(values)
        made = [np.empty((0, self.width), np.uint8)]
        for start in range(0, len(held), _BLOCK):
            part = held[start : start + _BLOCK]
            cohorts = uniform_integers(self.cohorts, len(part), source)
            filters = bloom_filters(self.indices(part, cohorts.tolist()), self.bits)
            memo = filters ^ biased_bits(self.flip, filters.shape, source)
            made.append(joined(self.instant(memo, source), cohorts, self.layout))
        return np.concatenate(made)

    def instant(self, memo: Records, source: RandomSource) -> Records:
        """Return one instantaneous randomization of memoized bits.

        Parameters
        ----------
        memo : uint8 array, shape (devices, bits / 8)
        source : RandomSource

        Returns
        -------
        uint8 array, shape (devices, bits / 8)
        """
        if self.ones is None:
            return memo
        low, high = self.ones
        return randomized_bits(memo, high, low, source)

    def opened(self, records: Records) -> tuple[Records, NDArray[np.int64]]:
        """Return the bits, eight to a byte, and the cohorts of records.

        Parameters
        ----------
        records : uint8 array, shape (records, width)

        Returns
        -------
        uint8 array, shape (records, bits / 8), and int64 array, shape (records,)
        """
        return parted(records, self.bits // 8, self.layout)

    def well_formed(self, records: Records) -> NDArray[np.bool_]:
        """Return which records name a cohort.

        Parameters
        ----------
        records : uint8 array, shape (records, width)

        Returns
        -------
        bool array, shape (records,)
        """
        return self.opened(records)[1] < self.cohorts

    def probabilities(self, value: Any) -> dict[bytes, Fraction]:
        """Return the probability of each report, were a string true: private, and for small filters.

        Parameters
        ----------
        value
            A string or bytes.

        Returns
        -------
        dict of bytes to Fraction
        """
        if self.bits > _SMALL:
            _check.refuse("bits", f"be at most {_SMALL}", self.bits, "look at a smaller one")
        p, q = self.chances
        distribution = {}
        for cohort in range(self.cohorts):
            held = set(self.indices([value], [cohort])[0].tolist())
            for sent in product(range(2), repeat=self.bits):
                mass = Fraction(1, self.cohorts)
                for position, bit in enumerate(sent):
                    one = q if position in held else p
                    mass *= one if bit else 1 - one
                row = np.packbits(np.array([sent], np.uint8), axis=1, bitorder="little")
                distribution[joined(row, np.array([cohort]), self.layout).tobytes()] = mass
        return distribution


@final
@dataclass(frozen=True, slots=True)
class RapporClient:
    """One device, in one cohort for good, whose memoized bits follow from its key.

    Parameters
    ----------
    device : RapporRandomizer
        The protocol.
    key : bytes
        32 secret bytes, drawn once (`RapporRandomizer.client`) and stored on the device: all that it has to
        remember.

    Notes
    -----
    The coins of the memoized bits are BLAKE2b, keyed, of the specification's digest and the string: the same
    for each report of that string and indistinguishable from random without the key, which is what the
    longitudinal guarantee assumes. Under another specification the coins are others, and losses add up. So do
    those of different strings, if a device reports several: reports of one device are linked by its cohort.

    Examples
    --------
    >>> client = RapporRandomizer().client(bytes(32))
    >>> client.report("a") == client.report("a"), bool((client.memo("a") == client.memo("a")).all())
    (False, True)
    """

    device: RapporRandomizer
    key: bytes = field(repr=False)

    def __post_init__(self) -> None:
        given: object = self.key
        if not isinstance(given, bytes) or len(given) != _KEY_BYTES:
            raise ParameterError("key must be 32 secret bytes, got others; use RapporRandomizer.client()")

    @property
    def cohort(self) -> int:
        """The cohort, uniform up to 2**-100, and independent of what is true."""
        return int.from_bytes(self._stream(b"cohort", 16), "little") % self.device.cohorts

    def memo(self, value: Any) -> Records:
        """Return the memoized bits of a string: private, they never leave the device.

        Parameters
        ----------
        value : str or bytes

        Returns
        -------
        uint8 array, shape (1, bits / 8)
        """
        device = self.device
        filters = bloom_filters(device.indices([value], [self.cohort]), device.bits)
        words = -(-device.bits // 64) * device.flip.bits
        stream = np.frombuffer(self._stream(b"memo" + encoded(value), 8 * words), "<u8").astype(np.uint64)
        return filters ^ bits_of_words(device.flip, filters.shape, stream)

    def report(self, value: Any, rng: Rng = None) -> bytes:
        """Return one report of a string.

        Parameters
        ----------
        value, rng
            See `Randomizer.randomize`.

        Returns
        -------
        bytes
            `RapporRandomizer.width` of them.
        """
        sent = self.device.instant(self.memo(value), random_source(rng))
        return joined(sent, np.array([self.cohort]), self.device.layout).tobytes()

    def _stream(self, label: bytes, size: int) -> bytes:
        """Return bytes that follow from the key and a label."""
        name = self.device.digest + label
        made = (
            hashlib.blake2b(at.to_bytes(4, "little") + name, key=self.key, person=b"sfumato rappor").digest()
            for at in range(-(-size // 64))
        )
        return b"".join(made)[:size]


def listed(values: Any) -> list[Any]:
    """Return values as a list, and refuse what is none."""
    if isinstance(values, str | bytes) or not isinstance(values, Iterable):
        _check.refuse_type("values", "be a list or an array", values, "pass [value] for one")
    return values.tolist() if isinstance(values, np.ndarray) else list(values)


def _check_shape(device: RapporRandomizer) -> None:
    hashes = _check.integer("hashes", device.hashes, minimum=1)
    if hashes > MAX_HASHES:
        _check.refuse("hashes", f"be at most {MAX_HASHES}", hashes, "take 2, as is usual")
    bits = _check.integer("bits", device.bits)
    if bits % 8 or not max(8, 2 * hashes) <= bits <= _MAX_BITS:
        _check.refuse(
            "bits", "be a multiple of 8, at least 2 * hashes and at most 4096", bits, "take 128, as is usual"
        )
    cohorts = _check.integer("cohorts", device.cohorts, minimum=1)
    if cohorts > _MAX_COHORTS:
        _check.refuse("cohorts", "be at most 65536", cohorts, "take 64, as is usual")


def _coin(name: str, chance: Fraction) -> Coin:
    """Return the coin of a chance in steps of 2**-16, with as few bits as it needs."""
    threshold = int(chance * (1 << _COIN_BITS))
    if not 0 < threshold < 1 << _COIN_BITS:
        _check.refuse(name, "be at least 2**-15 away from 0 and 1", float(chance), "move it inward")
    spare = (threshold & -threshold).bit_length() - 1
    return Coin(threshold >> spare, _COIN_BITS - spare)


def _both(given: object) -> tuple[Coin, Coin] | None:
    if given is None:
        return None
    if not isinstance(given, tuple) or len(given) != 2:
        _check.refuse_type("instantaneous", "be a pair (p, q) or None", given, "pass (0.5, 0.75)")
    p, q = (_coin("instantaneous", Fraction(_check.unit_interval("instantaneous", x))) for x in given)
    if p.chance >= q.chance:
        _check.refuse("instantaneous", "be (p, q) with p below q", given, "exchange them")
    return p, q
