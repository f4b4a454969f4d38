"""The client half of dBitFlipPM: permanently drawn categories, and memoized bits about them."""

from __future__ import annotations

from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, ClassVar, Final, final

import numpy as np
from numpy.typing import NDArray

from sfumato.local.device.base.bernoulli import Coin
from sfumato.local.device.base.record_layout import Records
from sfumato.local.device.frequency.bit_flip import BitFlipRandomizer
from sfumato.local.device.longitudinal.layers import MemoizedCategories
from sfumato.local.device.longitudinal.memoized_bits import MemoizedBits
from sfumato.numerics.randomness.source import RandomSource

__all__ = ["MemoizedBitFlipRandomizer"]

_INDEX: Final = np.dtype("<u4")


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class MemoizedBitFlipRandomizer(MemoizedCategories):
    r"""`BitFlipRandomizer` with categories and their bits drawn once for each device: dBitFlipPM.

    Parameters
    ----------
    epsilon, domain, max_memos
        See `MemoizedCategories`; at most 2**24 categories, often ranges of a number.
    asked : int
        The d, from 1 to 4096; all categories if there are fewer.
    permanent_epsilon : float, optional
        That of a memo, and so of all reports made of it: above epsilon, at most 40. Left out, it is epsilon,
        and memos are reported as they are.

    Attributes
    ----------
    inner : BitFlipRandomizer
        The distribution of one report, and its record.
    layers : MemoizedBits
        How bits are memoized and reported.

    Notes
    -----
    A device draws d categories once, and memoizes bits for each of these, and bits for all categories that it
    did not draw: at most d + 1 memos. A report is the memo itself, or, with a ``permanent_epsilon``, its bits
    by randomized response (the paper's output perturbation): one report of a device has the distribution of
    `BitFlipRandomizer` with epsilon, up to a few times 2^-64 on the private side.

    Guarantee: one report of a device is :math:`\epsilon`-DP, replace-one, as of `BitFlipRandomizer`. All
    reports of one memo together lose at most ``permanent_epsilon``; each further memo costs that again, up to
    ``memo_limit`` times, between histories alike in the changes of *which drawn category, if any, is true*.
    Theorem and proof are in `sfumato.local.device.longitudinal.memory`. Where memos are reported, a change
    between two that differ is seen for certain.

    References
    ----------
    Ding, Kulkarni, Yekhanin (2017), "Collecting telemetry data privately", dBitFlipPM.

    Examples
    --------
    >>> from sfumato.local.device import Domain
    >>> device = MemoizedBitFlipRandomizer(epsilon=1.0, domain=Domain(range(1024)), asked=4, max_memos=100)
    >>> device.width, device.memo_limit
    (10, 5)
    """

    wire_name: ClassVar[str] = "memoized-bit-flip"
    chosen: ClassVar[tuple[str, ...]] = (*MemoizedCategories.chosen, "asked", "permanent_epsilon")

    asked: int = 16
    permanent_epsilon: float | None = None
    inner: BitFlipRandomizer = field(init=False, repr=False, compare=False)
    layers: MemoizedBits = field(init=False, repr=False, compare=False)

    def _arrange(self) -> None:
        inner = BitFlipRandomizer(epsilon=self.epsilon, domain=self.domain, asked=self.asked)
        layers = MemoizedBits.of(self.epsilon, inner.truth, self.permanent_epsilon, self._coin)
        self._set(inner=inner, asked=inner.asked, layers=layers, permanent_epsilon=layers.epsilon)

    def _coin(self, epsilon: float) -> Coin:
        return BitFlipRandomizer(epsilon=epsilon, domain=self.domain, asked=self.asked).truth

    @property
    def max_keys(self) -> int:
        """How many different keys a device can have: one for each drawn category, and one for all others."""
        return min(self.asked + 1, len(self.domain))

    def _chances(self) -> dict[str, Any]:
        return self.layers.thresholds()

    @property
    def fixed_width(self) -> int:
        """Bytes of what a device draws once for good: the indices of its categories."""
        return _INDEX.itemsize * self.asked

    def fixed(self, size: int, source: RandomSource) -> Records:
        """Draw categories for each device, in ascending order.

        Parameters
        ----------
        size : int
            Number of devices.
        source : RandomSource

        Returns
        -------
        uint8 array, shape (size, fixed_width)
            Indices of the drawn categories, ascending.
        """
        drawn = self.inner.draw(size, source)
        return drawn.astype(_INDEX).view(np.uint8).reshape(size, self.fixed_width)

    def _keys(self, codes: NDArray[np.int64], fixed: Records) -> NDArray[np.int64]:
        found = _indices(fixed) == codes[:, None]
        return np.where(found.any(axis=1), found.argmax(axis=1), self.asked)

    @property
    def _like(self) -> BitFlipRandomizer:
        return self.inner

    @property
    def memo_width(self) -> int:
        """Bytes of a memo: a bit for each drawn category."""
        return -(-self.asked // 8)

    def memoize(self, keys: NDArray[np.int64], fixed: Records, source: RandomSource) -> Records:
        """Draw the memoized bits about each device's drawn categories.

        Parameters
        ----------
        keys : int64 array, shape (n,)
            Positions among a device's drawn categories; `asked` for all other categories.
        fixed : uint8 array, shape (n, fixed_width)
            What each device drew once for good.
        source : RandomSource

        Returns
        -------
        uint8 array, shape (n, memo_width)
            One memo for each key, drawn independently.
        """
        bits = self.layers.memoize(np.arange(self.asked) == keys[:, None], source)
        return np.packbits(bits, axis=1, bitorder="little")

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
        bits = np.unpackbits(memos, axis=1, count=self.asked, bitorder="little").astype(np.bool_)
        records = self.inner.packed(_indices(fixed), self.layers.report(bits, source))
        self.layout.stamp(records)
        return records

    def probabilities(self, value: Any) -> dict[bytes, Fraction]:
        """Return the probability of each report of a new device, were a value true: private.

        Parameters
        ----------
        value
            A category of the domain.

        Returns
        -------
        dict of bytes to Fraction
            From each possible report to its exact probability; they sum to 1.
        """
        return self._stamped(self.inner.probabilities(value, self.layers.chance))


def _indices(fixed: Records) -> NDArray[np.int64]:
    return np.ascontiguousarray(fixed).view(_INDEX).astype(np.int64)
