"""Apple's sketches as frequency oracles: counts at hashed indices, averaged over many hash functions."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar, Final, TypeVar, final

import numpy as np
from numpy.typing import NDArray

from sfumato.local.device.base.record_layout import Records
from sfumato.local.device.frequency import count_mean_sketch as client
from sfumato.local.frequency.oracle import SupportOracle
from sfumato.local.frequency.support import Support
from sfumato.local.frequency.walsh_hadamard import walsh
from sfumato.numerics import _kernels
from sfumato.privacy.leaves.support_response import SupportResponse
from sfumato.privacy.loss import PrivacyLoss

__all__ = ["CountMeanSketch", "HadamardCountMeanSketch", "SketchOracle"]

Device = TypeVar("Device", bound=client.SketchRandomizer)

_CELLS: Final = 1 << 20
_FEW: Final = 32
"""Categories for which each record is asked of each."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SketchOracle(SupportOracle[Device]):
    r"""A report supports all values that its hash function puts where the report says something of.

    Parameters
    ----------
    epsilon, domain
        See `Oracle`.
    size : int
        Positions m that values are hashed to: a power of two from 8 to 65,536.
    hashes : int
        Hash functions k, from 2 to 2**20.
    key : int
        Public; names a family of hash functions.

    Notes
    -----
    *Collisions.* Another value shares the position of the true one with probability 1/m, and then is
    supported as often. So another value is supported with probability :math:`q + (p - q)/m`, where q would be
    right without collisions: estimates are corrected for that.

    *What the estimate rests on.* That the k functions are drawn at random and put any three values
    independently: then it is unbiased over the draw, with the variance that is stated, of which
    :math:`\frac{1}{n(m-1)}` for a rare value is the sketch's part, if respondents have functions of their
    own. The k functions are fixed, though: a family has an error that more reports do not lessen, of variance
    about :math:`\frac{1}{km} \sum_x f_x^2` over families, f being the others' shares. It is not in the
    intervals: for k = 65,536 and m = 1024 its deviation is at most 0.00013.

    *Simulation.* Every value's number of supports has its exact distribution under such functions; those of
    two values are drawn as independent, where they are correlated by about 1/m.
    """

    size: int = 1024
    hashes: int = 65_536
    key: int = 0

    def tally(self, records: Records) -> NDArray[np.int64]:
        """Count for each category the records that support it, one by one or function by function."""
        functions = self.device.functions(records)
        if len(self.domain) <= _FEW:
            return self._one_by_one(records, functions)
        order = np.argsort(functions, kind="stable")
        names, starts = np.unique(functions[order], return_index=True)
        ends = np.append(starts[1:], len(order))
        codes = np.arange(len(self.domain))
        totals = np.zeros(len(codes), np.int64)
        step = max(1, _CELLS // max(self.size, len(codes)))
        for first in range(0, len(names), step):
            own = slice(first, first + step)
            chosen = order[starts[own][0] : ends[own][-1]]
            counts = self._at_points(records[chosen], np.diff(np.append(starts[own], ends[own][-1])))
            indices = self.device.indices(names[own][:, None], codes[None, :])
            totals += np.take_along_axis(counts, indices, axis=1).sum(axis=0)
        return totals

    def _one_by_one(self, records: Records, functions: NDArray[np.int64]) -> NDArray[np.int64]:
        totals = np.zeros(len(self.domain), np.int64)
        for code in range(len(totals)):
            indices = self.device.indices(functions, np.array([code]))
            totals[code] = np.count_nonzero(self._supported(records, indices))
        return totals

    @abstractmethod
    def _supported(self, records: Records, indices: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Return which records support the position that is given for each."""

    @abstractmethod
    def _at_points(self, records: Records, sizes: NDArray[np.int64]) -> NDArray[np.int64]:
        """Count the records that support each position, for runs of records that share a function each."""

    @property
    def sketch_variance(self) -> float:
        """The part of a rare value's variance, for one report, that collisions add; see the notes."""
        alike = Fraction(1, self.size)
        return float(alike / (1 - alike))


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class CountMeanSketch(SketchOracle[client.CountMeanSketchRandomizer]):
    r"""Each report is m bits of a sketch's row.

    Parameters
    ----------
    epsilon, domain, size, hashes, key
        See `SketchOracle`.

    Notes
    -----
    Guarantee: :math:`\epsilon`-DP of each report, replace-one; see
    `sfumato.local.device.CountMeanSketchRandomizer`. The variance for a rare value is about :math:`\frac1n
    \left(\frac{e^{\epsilon/2}}{(e^{\epsilon/2} - 1)^2} + \frac1m\right)`. `OptimalLocalHashing` has less, in
    five bytes instead of m/8.

    References
    ----------
    Apple Differential Privacy Team (2017), "Learning with privacy at scale": epsilon 4, m = 1024 and
    k = 65,536 for the most used emojis.

    Examples
    --------
    >>> from sfumato.local import Domain
    >>> oracle = CountMeanSketch(epsilon=4.0, domain=Domain(range(2600)))
    >>> round(oracle.variance(1), 4)
    0.1824
    """

    wire_name: ClassVar[str] = "count-mean-sketch"

    @property
    def privacy_loss(self) -> PrivacyLoss:
        """Two independent bits, with the chances that are drawn; see `UnaryOracle`."""
        p, q = self.device.bits.true.chance, self.device.bits.other.chance
        return SupportResponse(self._bound(p * (1 - q) / (q * (1 - p))), q, q * q)

    @property
    def support(self) -> Support:
        """A report supports the values whose bits are set."""
        p, q = self.device.bits.true.chance, self.device.bits.other.chance
        alike = Fraction(1, self.size)
        apart = 1 - alike
        other = alike * p + apart * q
        return Support(
            true=p,
            other=other,
            with_true=alike * p + apart * p * q,
            both_others=alike * other + apart * (2 * alike * p * q + (1 - 2 * alike) * q * q),
            drawn_functions=False,
        )

    def _supported(self, records: Records, indices: NDArray[np.int64]) -> NDArray[np.bool_]:
        bits = records[np.arange(len(records)), indices >> 3] >> (indices & 7).astype(np.uint8)
        return np.asarray(bits & np.uint8(1), np.bool_)

    def _at_points(self, records: Records, sizes: NDArray[np.int64]) -> NDArray[np.int64]:
        rows = np.ascontiguousarray(self.device.opened(records)[0])
        counts = np.zeros((len(sizes), self.size), np.int64)
        ends = np.cumsum(sizes).tolist()
        for line, (start, end) in enumerate(zip([0, *ends], ends, strict=False)):
            _kernels.count_bits(rows[start:end], rows.shape[1], counts[line])
        return counts


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class HadamardCountMeanSketch(SketchOracle[client.HadamardCountMeanSketchRandomizer]):
    r"""Each report is one sign of a transformed row: four bytes instead of 131.

    Parameters
    ----------
    epsilon, domain, size, hashes, key
        See `SketchOracle`.

    Notes
    -----
    Guarantee: :math:`\epsilon`-DP of each report, replace-one; see
    `sfumato.local.device.HadamardCountMeanSketchRandomizer`. The variance for a rare value is about
    :math:`\frac1n \left(\frac{e^\epsilon + 1}{e^\epsilon - 1}\right)^2`, which never falls below 1/n.

    References
    ----------
    Apple Differential Privacy Team (2017), "Learning with privacy at scale".

    Examples
    --------
    >>> from sfumato.local import Domain
    >>> oracle = HadamardCountMeanSketch(epsilon=4.0, domain=Domain(range(2600)))
    >>> round(oracle.variance(1), 4)
    1.0781
    """

    wire_name: ClassVar[str] = "hadamard-count-mean-sketch"

    @property
    def privacy_loss(self) -> PrivacyLoss:
        """A sign that half of all reports agree with; two values agree on a quarter of them at least."""
        truth = self.device.truth.chance
        return SupportResponse(self._bound(truth / (1 - truth)), Fraction(1, 2), Fraction(1, 4))

    @property
    def support(self) -> Support:
        """A report supports the values whose entries have its sign."""
        p, alike, half = self.device.truth.chance, Fraction(1, self.size), Fraction(1, 2)
        apart = 1 - alike
        other = alike * p + apart * half
        three = alike * p + (1 - 2 * alike) * half * half
        return Support(
            true=p,
            other=other,
            with_true=alike * p + apart * p * half,
            both_others=alike * other + apart * three,
            drawn_functions=False,
        )

    def _supported(self, records: Records, indices: NDArray[np.int64]) -> NDArray[np.bool_]:
        _, entries, negative = self.device.opened(records)
        return np.asarray(client.odd(entries & indices) == negative)

    def _at_points(self, records: Records, sizes: NDArray[np.int64]) -> NDArray[np.int64]:
        _, entries, negative = self.device.opened(records)
        lines = np.repeat(np.arange(len(sizes)) * self.size, sizes)
        cells = len(sizes) * self.size
        signs = np.bincount(lines + entries, minlength=cells)
        signs -= 2 * np.bincount((lines + entries)[negative == 1], minlength=cells)
        surplus = walsh(signs.reshape(len(sizes), self.size))
        return (sizes[:, None] + surplus) // 2
