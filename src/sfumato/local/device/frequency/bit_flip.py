"""The client half of dBitFlip: noisy bits about a few categories that each device draws for itself."""

from __future__ import annotations

from dataclasses import dataclass, field
from fractions import Fraction
from itertools import combinations, product
from math import comb
from typing import Any, ClassVar, Final, final

import numpy as np
from numpy.typing import NDArray

from sfumato import _check
from sfumato.local.device.base.bernoulli import Coin, truth_coin
from sfumato.local.device.base.randomizer import CategoricalRandomizer
from sfumato.local.device.base.record_layout import Records
from sfumato.numerics.randomness.source import RandomSource
from sfumato.numerics.randomness.uniform import uniform_integers

__all__ = ["BitFlipRandomizer"]

_MAX: Final = 1 << 12
_MAX_CATEGORIES: Final = 1 << 24
_BLOCK: Final = 1 << 13


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class BitFlipRandomizer(CategoricalRandomizer):
    r"""The d categories that were drawn, evenly, and for each a noisy bit that reports whether it is true.

    Parameters
    ----------
    epsilon, domain
        See `CategoricalRandomizer`; at most 2**24 categories, often ranges of a number.
    asked : int
        The d, from 1 to 4096; all categories if there are fewer.

    Attributes
    ----------
    truth : Coin
        Falls on heads for a true bit: its odds are at most :math:`e^{\epsilon/2}`, or :math:`e^\epsilon` for
        d = 1.

    Notes
    -----
    Guarantee: :math:`\epsilon`-DP of each report, replace-one. The drawn categories are independent of the
    truth. Given them two true values change the distributions of as many bits as are drawn of the two, each
    by :math:`p/(1-p)` at most: two for d > 1, one for d = 1, where the odds may therefore be the square of
    those of the paper.

    The categories are sent in ascending order: how they were drawn shows nothing.

    References
    ----------
    Ding, Kulkarni, Yekhanin (2017), "Collecting telemetry data privately".

    Examples
    --------
    >>> from sfumato.local.device import Domain
    >>> BitFlipRandomizer(epsilon=1.0, domain=Domain(range(1024)), asked=4).width
    10
    """

    wire_name: ClassVar[str] = "bit-flip"
    chosen: ClassVar[tuple[str, ...]] = ("epsilon", "domain", "asked")

    asked: int = 16
    truth: Coin = field(init=False, repr=False, compare=False)

    def _choose(self) -> None:
        if len(self.domain) > _MAX_CATEGORIES:
            remedy = "use a protocol with short reports, such as OptimalLocalHashingRandomizer"
            _check.refuse("domain", "have at most 2**24 categories", len(self.domain), remedy)
        asked = _check.integer("asked", self.asked, minimum=1)
        if asked > _MAX:
            _check.refuse("asked", f"be at most {_MAX}", asked, "ask about fewer: each costs bytes")
        asked = min(asked, len(self.domain))
        truth = truth_coin(self.epsilon if asked == 1 else self.epsilon / 2, stated=self.epsilon)
        self._set(asked=asked, truth=truth)

    def _chances(self) -> dict[str, Any]:
        return {"truth": self.truth.threshold}

    @property
    def _name_bits(self) -> int:
        return (len(self.domain) - 1).bit_length()

    @property
    def _bits(self) -> int:
        return self.asked * (self._name_bits + 1)

    def _encode(self, codes: NDArray[np.int64], source: RandomSource) -> Records:
        made = [np.empty((0, self.width), np.uint8)]
        for start in range(0, len(codes), _BLOCK):
            part = codes[start : start + _BLOCK]
            drawn = self.draw(len(part), source)
            heads = self.truth.flip(drawn.size, source).reshape(drawn.shape)
            made.append(self.packed(drawn, (drawn == part[:, None]) == heads))
        return np.concatenate(made)

    def draw(self, count: int, source: RandomSource) -> NDArray[np.int64]:
        """Return even draws of so many categories without replacement, ascending (Floyd's algorithm).

        Parameters
        ----------
        count : int
            Number of devices.
        source : RandomSource

        Returns
        -------
        int64 array, shape (count, asked)
            Indices of categories, ascending in each row.
        """
        size = len(self.domain)
        drawn = np.full((count, self.asked), -1, np.int64)
        for column, last in enumerate(range(size - self.asked, size)):
            position = uniform_integers(last + 1, count, source)
            taken = (drawn[:, :column] == position[:, None]).any(axis=1)
            drawn[:, column] = np.where(taken, last, position)
        drawn.sort(axis=1)
        return drawn

    def packed(self, drawn: NDArray[np.int64], bits: NDArray[np.bool_]) -> Records:
        """Return stamped records of drawn categories and their bits.

        Parameters
        ----------
        drawn : int64 array, shape (records, asked)
            Indices of categories, ascending.
        bits : bool array, shape (records, asked)

        Returns
        -------
        uint8 array, shape (records, width)
        """
        payload = np.empty((*drawn.shape, self._name_bits + 1), np.uint8)
        for bit in range(self._name_bits):
            payload[:, :, bit] = drawn >> bit & 1
        payload[:, :, -1] = bits
        packed = np.packbits(payload.reshape(len(drawn), self._bits), axis=1, bitorder="little")
        records = np.zeros((len(drawn), self.layout.width), np.uint8)
        records[:, : packed.shape[1]] = packed
        self.layout.stamp(records)
        return records

    def opened(self, records: Records) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
        """Return the drawn categories of records, and their bits.

        Parameters
        ----------
        records : uint8 array, shape (records, width)

        Returns
        -------
        drawn : int64 array, shape (records, asked)
            Indices of categories.
        bits : bool array, shape (records, asked)
        """
        payload = np.unpackbits(records, axis=1, bitorder="little")[:, : self._bits]
        parts = payload.reshape(len(records), self.asked, self._name_bits + 1)
        drawn = np.zeros(parts.shape[:2], np.int64)
        for bit in range(self._name_bits):
            drawn |= parts[:, :, bit].astype(np.int64) << bit
        return drawn, parts[:, :, -1].astype(np.bool_)

    def well_formed(self, records: Records) -> NDArray[np.bool_]:
        """Return which records name different categories in ascending order.

        Parameters
        ----------
        records : uint8 array, shape (records, width)

        Returns
        -------
        bool array, shape (records,)
            True where the record is one that this protocol can send.
        """
        found = np.empty(len(records), np.bool_)
        for start in range(0, len(records), _BLOCK):
            drawn, _ = self.opened(records[start : start + _BLOCK])
            rising = (np.diff(drawn, axis=1) > 0).all(axis=1)
            found[start : start + _BLOCK] = rising & (drawn[:, -1] < len(self.domain))
        return found

    def probabilities(self, value: Any, truth: Fraction | None = None) -> dict[bytes, Fraction]:
        """Return the probability of each report, were a value true: private, and for small domains.

        Parameters
        ----------
        value
            A category.
        truth : Fraction, optional
            Another chance of a true bit than that of the coin.

        Returns
        -------
        dict of bytes to Fraction
            From each possible report to its exact probability; they sum to 1.
        """
        right = self.truth.chance if truth is None else truth
        (code,) = self.domain.codes([value]).tolist()
        distribution, even = {}, Fraction(1, comb(len(self.domain), self.asked))
        for drawn in combinations(range(len(self.domain)), self.asked):
            for bits in product((False, True), repeat=self.asked):
                mass = even
                for position, bit in zip(drawn, bits, strict=True):
                    mass *= right if bit == (position == code) else 1 - right
                record = self.packed(np.array([drawn]), np.array([bits]))
                distribution[record.tobytes()] = mass
        return distribution
