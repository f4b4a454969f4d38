"""The client half of RAPPOR with a store: strings whose randomized filters are memoized."""

from __future__ import annotations

from dataclasses import dataclass, field
from fractions import Fraction
from functools import partial
from typing import Any, ClassVar, Final, final

import numpy as np
from numpy.typing import NDArray

from sfumato import _check
from sfumato.local.device.base.bernoulli_bits import biased_bits
from sfumato.local.device.base.numbered_bits import joined
from sfumato.local.device.base.randomizer import Randomizer
from sfumato.local.device.base.record_layout import Records
from sfumato.local.device.frequency.bloom_filter import bloom_filters
from sfumato.local.device.frequency.rappor import RapporRandomizer, listed
from sfumato.local.device.longitudinal.memory import MemoizingRandomizer, checked_memos
from sfumato.numerics.randomness.source import RandomSource
from sfumato.numerics.randomness.uniform import uniform_integers
from sfumato.numerics.rounding import fraction_up, log_up, mul_up

__all__ = ["MemoizedRapporRandomizer"]

_COHORT: Final = np.dtype("<u4")
_KEYS: Final = 1 << 62


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class MemoizedRapporRandomizer(MemoizingRandomizer):
    r"""`RapporRandomizer` whose memoized bits are drawn and stored in a `MemoStore`, up to a number.

    Parameters
    ----------
    bits, hashes, cohorts, permanent, instantaneous
        See `RapporRandomizer`; ``bits ** hashes`` must be below 2^62.
    max_memos : int
        Largest number of memos that a device draws, from 1 to 65,536.

    Attributes
    ----------
    epsilon : float
        Bound on the loss of one report, rounded up.
    inner : RapporRandomizer
        The distribution of one report, and its record.

    Notes
    -----
    A `RapporClient` derives its memos from a key, and needs no store; it has no cap either, so that each
    further string costs `permanent_epsilon` again. This one draws them, in one cohort for good, one for each
    different Bloom filter: strings that have the same bits in its cohort share a memo.

    Guarantee: one report of a device is :math:`\epsilon`-DP, replace-one, as of `RapporRandomizer`; all
    reports of one memo together are ``permanent_epsilon``-DP, and each further memo costs that again, up to
    ``max_memos`` times, between histories alike in the changes of their *filters*, given the cohort. Theorem
    and proof are in `sfumato.local.device.longitudinal.memory`.

    References
    ----------
    Erlingsson, Pihur, Korolova (2014), "RAPPOR: randomized aggregatable privacy-preserving ordinal response".

    Examples
    --------
    >>> device = MemoizedRapporRandomizer()
    >>> device.width, round(device.epsilon, 4), round(device.permanent_epsilon, 4)
    (21, 1.0743, 4.3944)
    """

    wire_name: ClassVar[str] = "memoized-rappor"
    chosen: ClassVar[tuple[str, ...]] = (*RapporRandomizer.chosen, "max_memos")

    epsilon: float = field(init=False)
    bits: int = 128
    hashes: int = 2
    cohorts: int = 64
    permanent: float = 0.5
    instantaneous: tuple[float, float] | None = (0.5, 0.75)
    max_memos: int = 4
    inner: RapporRandomizer = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        inner = RapporRandomizer(
            bits=self.bits,
            hashes=self.hashes,
            cohorts=self.cohorts,
            permanent=self.permanent,
            instantaneous=self.instantaneous,
        )
        if inner.bits**inner.hashes >= _KEYS:
            _check.refuse("hashes", "make at most 2**62 filters", inner.hashes, "use fewer, or fewer bits")
        self._set(inner=inner, epsilon=inner.epsilon, max_memos=checked_memos(self.max_memos))
        Randomizer.__post_init__(self)

    def _prepare(self) -> None:
        """Nothing is left to be set."""

    @property
    def permanent_epsilon(self) -> float:
        """That of a memo, and so of all reports made of it, rounded up."""
        return mul_up(self.hashes, log_up(fraction_up(self.inner.permanent_odds)))

    @property
    def max_keys(self) -> int:
        """How many different keys a device can have: more than it ever will."""
        return _KEYS

    def _chances(self) -> dict[str, Any]:
        return {"hash": "blake2b"}

    @property
    def fixed_width(self) -> int:
        """Bytes of what a device draws once for good: its cohort."""
        return _COHORT.itemsize

    def fixed(self, size: int, source: RandomSource) -> Records:
        """Draw cohorts.

        Parameters
        ----------
        size : int
            Number of devices.
        source : RandomSource

        Returns
        -------
        uint8 array, shape (size, fixed_width)
            Cohorts.
        """
        drawn = uniform_integers(self.cohorts, size, source).astype(_COHORT)
        return drawn.view(np.uint8).reshape(size, self.fixed_width)

    def keys(self, values: Any, fixed: Records) -> NDArray[np.int64]:
        """Return the filters of strings as numbers: the positions of set bits, ascending, in base ``bits``.

        Parameters
        ----------
        values : array or list
            What is true on each device.
        fixed : uint8 array, shape (n, fixed_width)
            What each device drew once for good.

        Returns
        -------
        int64 array, shape (n,)
            The key of each value, at least 0.
        """
        positions = self.inner.indices(listed(values), _cohorts(fixed).tolist())
        positions.sort(axis=1)
        again = np.zeros(positions.shape, np.bool_)
        again[:, 1:] = positions[:, 1:] == positions[:, :-1]
        # A position that two hash functions share counts once: the same filter is the same number.
        positions = np.sort(np.where(again, positions[:, -1:], positions), axis=1)
        return np.asarray(positions @ self._powers)

    @property
    def _powers(self) -> NDArray[np.int64]:
        return np.array([self.bits**power for power in range(self.hashes)], np.int64)

    @property
    def _like(self) -> RapporRandomizer:
        return self.inner

    @property
    def memo_width(self) -> int:
        """Bytes of a memo: a bit for each bit of the filter."""
        return self.bits // 8

    def memoize(self, keys: NDArray[np.int64], fixed: Records, source: RandomSource) -> Records:
        """Draw the permanent bits of filters.

        Parameters
        ----------
        keys : int64 array, shape (n,)
            Filters, as `keys` numbers them.
        fixed : uint8 array, shape (n, fixed_width)
            What each device drew once for good.
        source : RandomSource

        Returns
        -------
        uint8 array, shape (n, memo_width)
            One memo for each key, drawn independently.
        """
        filters = bloom_filters(keys[:, None] // self._powers % self.bits, self.bits)
        return filters ^ biased_bits(self.inner.flip, filters.shape, source)

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
        return joined(self.inner.instant(memos, source), _cohorts(fixed), self.layout)

    def _records(self, values: Any, source: RandomSource) -> Records:
        held = listed(values)
        return self._first_reports(len(held), partial(self.keys, held), source)

    def probabilities(self, value: Any) -> dict[bytes, Fraction]:
        """Return the probability of each report of a new device, were a string true: private.

        Parameters
        ----------
        value
            A string or bytes.

        Returns
        -------
        dict of bytes to Fraction
            From each possible report to its exact probability; they sum to 1.
        """
        return self._stamped(self.inner.probabilities(value))


def _cohorts(fixed: Records) -> NDArray[np.int64]:
    return np.ascontiguousarray(fixed).view(_COHORT)[:, 0].astype(np.int64)
