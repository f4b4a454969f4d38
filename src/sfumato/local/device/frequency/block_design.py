"""The base of client halves whose reports each support some values, most likely one of them the truth."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sfumato.local.device.base.bernoulli import Coin, odds_below, truth_coin
from sfumato.local.device.base.randomizer import CategoricalRandomizer
from sfumato.local.device.base.record_layout import Records
from sfumato.numerics.randomness.source import RandomSource

__all__ = ["DesignRandomizer", "NumberedRandomizer", "mean_variance"]


@dataclass(frozen=True, slots=True, kw_only=True)
class DesignRandomizer(CategoricalRandomizer):
    r"""A client half that reports an even draw from the reports that support the truth, or from the others.

    Parameters
    ----------
    epsilon, domain
        See `CategoricalRandomizer`.

    Attributes
    ----------
    truth : Coin
        Falls on heads for a report that supports the truth: its probability p is the largest multiple of
        :math:`2^{-64}` for which `odds` are at most :math:`e^\epsilon`.

    Notes
    -----
    Guarantee: :math:`\epsilon`-DP of each report, replace-one. Each value is supported by the same part a of
    all N reports. One that supports the truth has the probability :math:`p/(aN)`, each other
    :math:`(1-p)/((1-a)N)`: so two probabilities of a report differ by a factor of at most :math:`p(1-a) /
    ((1-p)a)`, exactly.
    """

    truth: Coin = field(init=False, repr=False, compare=False)

    def _choose(self) -> None:
        self._arrange(odds_below(self.epsilon))
        count = len(self.domain)
        self._set(truth=truth_coin(self.epsilon, self.part, 1 - self.part, categories=count))

    @abstractmethod
    def _arrange(self, odds: Fraction) -> None:
        """Set which reports there are, and which support which values, with `_set`."""

    @property
    @abstractmethod
    def part(self) -> Fraction:
        """Part of all reports that supports a value: the same for each, at most a half."""

    @property
    def odds(self) -> Fraction:
        """How much likelier a report is under a truth that it supports, exactly."""
        truth = self.truth.chance
        return truth * (1 - self.part) / ((1 - truth) * self.part)

    @abstractmethod
    def _arrangement(self) -> dict[str, Any]:
        """Return what `_arrange` set, as JSON."""

    def _chances(self) -> dict[str, Any]:
        return {"truth": self.truth.threshold, **self._arrangement()}

    @abstractmethod
    def draw(self, codes: NDArray[np.int64], true: NDArray[np.bool_], source: RandomSource) -> Records:
        """Return for each index in the domain a report that supports it, or else one that does not.

        Parameters
        ----------
        codes : int64 array, shape (n,)
            Indices of categories in the domain.
        true : bool array, shape (n,)
            Whether the report supports that category.
        source : RandomSource

        Returns
        -------
        uint8 array, shape (n, width)
            One stamped record for each index.
        """

    def _encode(self, codes: NDArray[np.int64], source: RandomSource) -> Records:
        return self.draw(codes, self.truth.flip(len(codes), source), source)

    @abstractmethod
    def reports(self) -> Records:
        """Return all reports there are; for small domains.

        Returns
        -------
        uint8 array, shape (reports, width)
        """

    @abstractmethod
    def supporting(self, code: int) -> NDArray[np.bool_]:
        """Return which of all `reports` support the value at an index in the domain.

        Parameters
        ----------
        code : int
            Index of a category in the domain.

        Returns
        -------
        bool array, shape (reports,)
            In the order of `reports`.
        """

    def probabilities(self, value: Any) -> dict[bytes, Fraction]:
        """Return the probability of each report, were a value true: private, and for small domains.

        Parameters
        ----------
        value
            A category of the domain.

        Returns
        -------
        dict of bytes to Fraction
            From each possible report to its exact probability; they sum to 1.
        """
        (code,) = self.domain.codes([value]).tolist()
        supports = self.supporting(code)
        with_truth = int(supports.sum())
        chances = (
            (1 - self.truth.chance) / (len(supports) - with_truth),
            self.truth.chance / with_truth,
        )
        rows = (row.tobytes() for row in self.reports())
        return {row: chances[held] for row, held in zip(rows, supports.tolist(), strict=True)}


@dataclass(frozen=True, slots=True, kw_only=True)
class NumberedRandomizer(DesignRandomizer):
    """A `DesignRandomizer` whose reports are numbered, and sent as their numbers."""

    @property
    @abstractmethod
    def number(self) -> int:
        """How many reports there are."""

    @property
    def _bits(self) -> int:
        return (self.number - 1).bit_length()

    def well_formed(self, records: Records) -> NDArray[np.bool_]:
        """Return which records hold the number of a report.

        Parameters
        ----------
        records : uint8 array, shape (records, width)

        Returns
        -------
        bool array, shape (records,)
            True where the record is one that this protocol can send.
        """
        return self.layout.unpack(records) < np.uint64(self.number)

    def reports(self) -> Records:
        """Return all reports there are, in the order of their numbers.

        Returns
        -------
        uint8 array, shape (number, width)
        """
        return self.layout.pack(np.arange(self.number, dtype=np.uint64))


def mean_variance(odds: Fraction, part: Fraction, overlap: Fraction, count: int) -> Fraction:
    """Return the variance of an estimate from one report, as a mean over all values.

    Parameters
    ----------
    odds : Fraction
        How much likelier a report is under a truth that it supports.
    part, overlap : Fraction
        Parts of all reports that support a value, and two.
    count : int
        Of values. The mean does not depend on their frequencies.

    Returns
    -------
    Fraction
    """
    weight = odds * part + 1 - part
    true, other = odds * part / weight, (odds * overlap + part - overlap) / weight
    gap = true - other
    return other * (1 - other) / gap**2 + (1 - true - other) / (gap * count)
