"""The client half of counts by split and mix: additive shares of a one or a zero for each category."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar, final

import numpy as np
from numpy.typing import NDArray

from sfumato import _check
from sfumato.local.device.base.randomizer import CategoricalRandomizer
from sfumato.local.device.base.record_layout import Records
from sfumato.local.device.shuffle.decoys import check_messages, mixed
from sfumato.local.device.shuffle.split_and_mix import Split
from sfumato.local.device.shuffle.sums import checked_scale
from sfumato.numerics.randomness.source import RandomSource

__all__ = ["ShuffledCountsRandomizer"]

_LONGEST = 56


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class ShuffledCountsRandomizer(CategoricalRandomizer):
    r"""For each category a one or a zero and a part of the noise, split into additive shares.

    Parameters
    ----------
    epsilon, domain
        See `CategoricalRandomizer`. Here epsilon is that of the noise of ``split.clients`` clients together:
        discrete Laplace noise of scale ``2 / epsilon`` on each count.
    split : Split, or what `Split.specification` returned
        How many clients share the noise, how many shares each number has, and of how many bits.

    Notes
    -----
    ``randomize`` returns all `messages` of a client, one record after the other, sorted: as many for each
    category. A shuffler takes the records of all clients apart and mixes them.

    Guarantee: as of `sfumato.local.device.ShuffledSumRandomizer`, for each category.

    Examples
    --------
    >>> from sfumato.local.device import Domain
    >>> device = ShuffledCountsRandomizer(epsilon=1.0, domain=Domain(["yes", "no"]), split=Split(1000, 7, 12))
    >>> device.messages, device.width, len(device.randomize("yes"))
    (14, 6, 84)
    """

    wire_name: ClassVar[str] = "shuffled-counts"
    chosen: ClassVar[tuple[str, ...]] = (*CategoricalRandomizer.chosen, "split")

    split: Split

    def _choose(self) -> None:
        self._set(split=Split.from_specification(self.split))
        checked_scale(self.scale)
        check_messages("domain", self.messages)
        if self._bits > _LONGEST:
            remedy = "take fewer categories or clients"
            _check.refuse("domain", f"leave messages of at most {_LONGEST} bits", self._bits, remedy)

    @property
    def scale(self) -> Fraction:
        """Scale of the whole noise on a count, exactly two over epsilon."""
        return 2 / Fraction(self.epsilon)

    @property
    def report_epsilon(self) -> float:
        """Infinite: all messages of one client together reveal its value."""
        return float("inf")

    @property
    def messages(self) -> int:
        """How many records each client sends."""
        return len(self.domain) * self.split.shares

    @property
    def _bits(self) -> int:
        return self.split.bits + (len(self.domain) - 1).bit_length()

    def _chances(self) -> dict[str, Any]:
        return {}

    def _encode(self, codes: NDArray[np.int64], source: RandomSource) -> Records:
        positions = np.arange(len(self.domain))
        ones = (codes[:, None] == positions).astype(np.int64)
        shares = self.split.shared(ones, self.scale, source).view(np.int64)
        named = positions[:, None] << self.split.bits | shares
        return mixed(named.reshape(len(codes), -1), self.layout)

    def opened(self, records: Records) -> tuple[NDArray[np.int64], NDArray[np.uint64]]:
        """Return the categories that records belong to, and their additive shares.

        Parameters
        ----------
        records : uint8 array, shape (records, width)

        Returns
        -------
        codes : int64 array, shape (records,)
            Indices of categories.
        shares : uint64 array, shape (records,)
        """
        payloads = self.layout.unpack(records)
        bits = np.uint64(self.split.bits)
        return (payloads >> bits).astype(np.int64), payloads & np.uint64((1 << self.split.bits) - 1)

    def well_formed(self, records: Records) -> NDArray[np.bool_]:
        """Return which records are of a category.

        Parameters
        ----------
        records : uint8 array, shape (records, width)

        Returns
        -------
        bool array, shape (records,)
            True where the record is one that this protocol can send.
        """
        return self.opened(records)[0] < len(self.domain)
