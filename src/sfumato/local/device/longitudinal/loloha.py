"""The client half of LOLOHA: a permanent hash function, and L-GRR of the value's bucket."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, ClassVar, Final, final

import numpy as np
from numpy.typing import NDArray

from sfumato import _check
from sfumato.local.device.base.bernoulli import odds_below
from sfumato.local.device.base.record_layout import Records
from sfumato.local.device.domains.categories import Domain
from sfumato.local.device.frequency.local_hashing import bucket_of
from sfumato.local.device.longitudinal.l_grr import LongitudinalRandomizedResponseRandomizer
from sfumato.local.device.longitudinal.layers import TwoLayerRandomizer
from sfumato.numerics.randomness.source import RandomSource

__all__ = ["LongitudinalLocalHashingRandomizer"]

_SEED_BITS: Final = 32
_MAX_BUCKETS: Final = 1 << 16


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class LongitudinalLocalHashingRandomizer(TwoLayerRandomizer):
    r"""Local hashing with one hash function a device, and two layers of randomized response: LOLOHA.

    Parameters
    ----------
    epsilon, domain, permanent_epsilon, max_memos
        See `TwoLayerRandomizer`; at most :math:`2^{32}` categories.
    buckets : int, optional
        The g, from 2 to 65,536. 2 is BiLOLOHA: a device has at most two memos. Left out, it is
        :math:`\mathrm{round}(e^\epsilon) + 1`, which has the smallest error (OLOLOHA).

    Attributes
    ----------
    inner : LongitudinalRandomizedResponseRandomizer
        Both layers, over the buckets.

    Notes
    -----
    Guarantee: as of `TwoLayerRandomizer`. The seed of the hash function is drawn without regard to any value,
    and sent with each report: it links the reports of a device. What is memoized is a bucket, of which there
    are g, so that all reports together lose at most g times ``permanent_epsilon``, whatever ``max_memos`` is:
    values that fall in one bucket share its memo, and a change between them is not seen. Histories must be
    alike in the changes of their *buckets*, given the seed.

    The paper's second layer has the odds :math:`\frac{e^{\epsilon_\infty + \epsilon} -
    1}{e^{\epsilon_\infty} - e^\epsilon}` for every g, which is exact for two buckets and leaves part of
    epsilon unused for more. Here it is solved exactly for each g: one report has the distribution of
    `OptimalLocalHashingRandomizer`, and the best g is the one of that.

    References
    ----------
    Arcolezi, Pinzón, Palamidessi, Gambs (2023), "Frequency estimation of evolving data under local
    differential privacy".

    Examples
    --------
    >>> from sfumato.local.device import Domain
    >>> device = LongitudinalLocalHashingRandomizer(epsilon=1.0, domain=Domain(range(65536)))
    >>> device.buckets, device.width, device.memo_limit
    (4, 9, 4)
    """

    wire_name: ClassVar[str] = "longitudinal-local-hashing"
    chosen: ClassVar[tuple[str, ...]] = (*TwoLayerRandomizer.chosen, "buckets")

    buckets: int | None = None
    inner: LongitudinalRandomizedResponseRandomizer = field(init=False, repr=False, compare=False)

    def _layers(self, permanent_epsilon: float) -> None:
        if len(self.domain) > 1 << _SEED_BITS:
            _check.refuse("domain", "have at most 2**32 categories", len(self.domain), "ask in parts")
        best = round(min(odds_below(self.epsilon), Fraction(_MAX_BUCKETS - 1))) + 1
        buckets = best if self.buckets is None else _check.integer("buckets", self.buckets, minimum=2)
        if buckets > _MAX_BUCKETS:
            _check.refuse("buckets", f"be at most {_MAX_BUCKETS}", buckets, "take fewer: more gain nothing")
        inner = LongitudinalRandomizedResponseRandomizer(
            epsilon=self.epsilon, permanent_epsilon=permanent_epsilon, domain=Domain(range(buckets))
        )
        self._set(buckets=buckets, inner=inner)

    @property
    def max_keys(self) -> int:
        """How many different keys a device can have: one for each bucket."""
        return len(self.inner.domain)

    @property
    def memo_chances(self) -> tuple[Fraction, Fraction]:
        """How likely a memo is the bucket of the true category, and any one other bucket."""
        return self.inner.memo_chances

    @property
    def fresh_chances(self) -> tuple[Fraction, Fraction]:
        """How likely the memoized bucket is reported, and any one other."""
        return self.inner.fresh_chances

    @property
    def chances(self) -> tuple[Fraction, Fraction]:
        """How likely the bucket of the true category is reported, and that of any one other."""
        return self.inner.chances[0], Fraction(1, self.max_keys)

    @property
    def _bits(self) -> int:
        return _SEED_BITS + (self.max_keys - 1).bit_length()

    def _chances(self) -> dict[str, Any]:
        return {**self.inner._chances(), "hash": "mix3"}  # noqa: SLF001 - of the same family

    @property
    def fixed_width(self) -> int:
        """Bytes of what a device draws once for good: the seed of its hash function."""
        return _SEED_BITS // 8

    def fixed(self, size: int, source: RandomSource) -> Records:
        """Draw seeds.

        Parameters
        ----------
        size : int
            Number of devices.
        source : RandomSource

        Returns
        -------
        uint8 array, shape (size, fixed_width)
            Seeds of hash functions.
        """
        return np.frombuffer(source.bytes(4 * size), np.uint8).reshape(size, 4)

    def _keys(self, codes: NDArray[np.int64], fixed: Records) -> NDArray[np.int64]:
        return bucket_of(_seeds(fixed), codes, self.max_keys)

    @property
    def _like(self) -> LongitudinalRandomizedResponseRandomizer:
        return self.inner

    @property
    def memo_width(self) -> int:
        """Bytes of a memo: a bucket."""
        return self.inner.memo_width

    def memoize(self, keys: NDArray[np.int64], fixed: Records, source: RandomSource) -> Records:
        """Draw the permanent reports of buckets.

        Parameters
        ----------
        keys : int64 array, shape (n,)
            Buckets.
        fixed : uint8 array, shape (n, fixed_width)
            What each device drew once for good.
        source : RandomSource

        Returns
        -------
        uint8 array, shape (n, memo_width)
            One memo for each key, drawn independently.
        """
        return self.inner.memoize(keys, fixed, source)

    def fresh(self, memos: Records, fixed: Records, source: RandomSource) -> Records:
        """Draw one report of each memo.

        Parameters
        ----------
        memos : uint8 array, shape (n, memo_width)
            What `memoize` returned.
        fixed : uint8 array, shape (n, fixed_width)
            What each device drew once for good.
        source : RandomSource

        Returns
        -------
        uint8 array, shape (n, width)
            One stamped report from each memo.
        """
        named = self.inner.reported(memos, source).astype(np.uint64)
        return self.layout.pack(named << np.uint64(_SEED_BITS) | _seeds(fixed))

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
        return self.layout.unpack(records) >> np.uint64(_SEED_BITS) < np.uint64(self.max_keys)

    def opened(self, records: Records) -> tuple[NDArray[np.uint32], NDArray[np.uint32]]:
        """Return the seeds and the buckets of records.

        Parameters
        ----------
        records : uint8 array, shape (records, width)

        Returns
        -------
        tuple of uint32 array, shape (records,)
            The seeds and the buckets.
        """
        payloads = self.layout.unpack(records)
        return payloads.astype(np.uint32), (payloads >> np.uint64(_SEED_BITS)).astype(np.uint32)

    def probabilities(self, value: Any, seed: int = 0) -> dict[bytes, Fraction]:
        """Return the probability of each report of a new device with a seed, were a value true: private.

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
        seeds = np.array([seed], np.uint32)
        bucket = int(bucket_of(seeds, self.domain.codes([value]), self.max_keys)[0])
        return self._named(self.inner.probabilities(bucket), seed)

    def fresh_probabilities(self, memo: bytes, seed: int = 0) -> Mapping[bytes, Fraction]:
        """Return the probability of each report, given seed and memo: private.

        Parameters
        ----------
        memo : bytes
            One row of what `memoize` returned.
        seed : int
            Seed of the device's hash function.

        Returns
        -------
        dict of bytes to Fraction
            From each possible report to its exact probability; they sum to 1.
        """
        return self._named(self.inner.fresh_probabilities(memo), seed)

    def _named(self, distribution: Mapping[bytes, Fraction], seed: int) -> dict[bytes, Fraction]:
        """Return a distribution over buckets as one over reports with a seed."""
        rows = np.frombuffer(b"".join(distribution), np.uint8).reshape(len(distribution), -1)
        names = self.inner.layout.unpack(rows) << np.uint64(_SEED_BITS) | np.uint64(seed)
        packed = self.layout.pack(names)
        return {row.tobytes(): chance for row, chance in zip(packed, distribution.values(), strict=True)}


def _seeds(fixed: Records) -> NDArray[np.uint32]:
    return np.ascontiguousarray(fixed).view("<u4")[:, 0].astype(np.uint32)
