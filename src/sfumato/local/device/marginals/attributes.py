"""Client halves for several categorical questions: all with parts of epsilon, or one with all of it."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, ClassVar, final

import numpy as np
from numpy.typing import NDArray

from sfumato.local.device.base.randomizer import CategoricalRandomizer, category_protocol
from sfumato.local.device.base.record_layout import Records
from sfumato.local.device.base.rows import RowsRandomizer
from sfumato.local.device.base.sampled_question import SampledQuestionRandomizer
from sfumato.numerics.randomness.source import RandomSource
from sfumato.numerics.randomness.uniform import uniform_integers

__all__ = [
    "AttributesRandomizer",
    "FakeDataRandomizer",
    "SampledAttributeRandomizer",
    "SplitBudgetRandomizer",
]


@dataclass(frozen=True, slots=True, kw_only=True)
class AttributesRandomizer(RowsRandomizer):
    """A client half that reports one person's categories in several domains.

    Parameters
    ----------
    epsilon, domains
        See `RowsRandomizer`.
    protocol : str
        Wire name of the client half that reports one category, of epsilon and a domain.

    Attributes
    ----------
    parts : tuple of CategoricalRandomizer
        One for each domain.
    """

    chosen: ClassVar[tuple[str, ...]] = (*RowsRandomizer.chosen, "protocol")

    protocol: str = "optimized-unary-encoding"
    parts: tuple[CategoricalRandomizer, ...] = field(init=False, repr=False, compare=False)

    def _choose(self) -> None:
        kind = category_protocol("protocol", self.protocol)
        epsilon = self._epsilon_of_one(len(self.domains))
        parts = tuple(kind(epsilon=epsilon, domain=domain).within() for domain in self.domains)
        self._set(parts=parts)

    def _epsilon_of_one(self, count: int) -> float:
        """Return epsilon of each part."""
        return self.epsilon

    @property
    def offsets(self) -> list[int]:
        """Where the bytes of each part begin, and where the last ends."""
        return [sum(part.width for part in self.parts[:at]) for at in range(len(self.parts) + 1)]

    @property
    def _bits(self) -> int:
        return 8 * self.offsets[-1]

    def _chances(self) -> dict[str, Any]:
        return {"parts": [part.digest.hex() for part in self.parts]}

    def _side_by_side(self, codes: NDArray[np.int64], source: RandomSource) -> Records:
        """Return records of all parts, one after the other, with the tag at the end."""
        records = np.empty((codes.shape[1], self.width), np.uint8)
        for at, (start, stop) in enumerate(zip(self.offsets, self.offsets[1:], strict=False)):
            records[:, start:stop] = self.parts[at].encoded(codes[at], source)
        self.layout.stamp(records)
        return records

    def cut(self, records: Records, at: int) -> Records:
        """Return the records of one part.

        Parameters
        ----------
        records : uint8 array, shape (records, width)
        at : int
            Index of the part.

        Returns
        -------
        uint8 array, shape (records, width of the part)
        """
        return np.ascontiguousarray(records[:, self.offsets[at] : self.offsets[at + 1]])

    def well_formed(self, records: Records) -> NDArray[np.bool_]:
        """Return which records hold a record of every part.

        Parameters
        ----------
        records : uint8 array, shape (records, width)

        Returns
        -------
        bool array, shape (records,)
            True where the record is one that this protocol can send.
        """
        sound = np.ones(len(records), np.bool_)
        for at, part in enumerate(self.parts):
            piece = self.cut(records, at)
            sound &= part.layout.genuine(piece) & part.well_formed(piece)
        return sound


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class SplitBudgetRandomizer(AttributesRandomizer):
    r"""Every category by itself, each with an equal part of epsilon ("SPL").

    Parameters
    ----------
    epsilon, domains, protocol
        See `AttributesRandomizer`.

    Notes
    -----
    Guarantee: :math:`\epsilon`-DP of each person's report, replace-one: the parts are independent, and their
    losses add up.

    Examples
    --------
    >>> from sfumato.local.device import Domain
    >>> domains = [Domain(["no", "yes"]), Domain(range(5))]
    >>> device = SplitBudgetRandomizer(epsilon=2.0, domains=domains)
    >>> [part.epsilon for part in device.parts], len(device.randomize(["yes", 3]))
    ([1.0, 1.0], 6)
    """

    wire_name: ClassVar[str] = "split-budget"

    def _epsilon_of_one(self, count: int) -> float:
        part = self.epsilon / count
        while Fraction(part) * count > Fraction(self.epsilon):
            part = math.nextafter(part, 0.0)
        return part

    def _encode(self, codes: NDArray[np.int64], source: RandomSource) -> Records:
        return self._side_by_side(codes, source)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class SampledAttributeRandomizer(SampledQuestionRandomizer, AttributesRandomizer):
    r"""One category, of a domain drawn by chance, with all of epsilon; the report names the domain ("SMP").

    Parameters
    ----------
    epsilon, domains, protocol
        See `AttributesRandomizer`.

    Notes
    -----
    Guarantee: :math:`\epsilon`-DP of each person's report, replace-one: see `SampledQuestionRandomizer`.

    Examples
    --------
    >>> from sfumato.local.device import Domain
    >>> domains = [Domain(["no", "yes"]), Domain(range(5))]
    >>> device = SampledAttributeRandomizer(epsilon=2.0, domains=domains)
    >>> [part.epsilon for part in device.parts], len(device.randomize(["yes", 3]))
    ([2.0, 2.0], 7)
    """

    wire_name: ClassVar[str] = "sampled-attribute"

    def answers(self, codes: NDArray[np.int64], question: int) -> NDArray[np.int64]:
        """Return the true categories in one domain.

        Parameters
        ----------
        codes : int64 array, shape (attributes, n)
            Indices in all domains.
        question : int
            Index of the domain.

        Returns
        -------
        int64 array, shape (n,)
        """
        return np.asarray(codes[question])


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class FakeDataRandomizer(AttributesRandomizer):
    r"""One category, of a domain drawn by chance, among made-up ones of all other domains ("RS+FD").

    Parameters
    ----------
    epsilon, domains, protocol
        See `AttributesRandomizer`.

    Notes
    -----
    Guarantee: :math:`\epsilon`-DP of each person's report, replace-one. Each part is randomized with all of
    epsilon, the true category of one and evenly drawn ones of the others. Let :math:`R_j` be the distribution
    of a part and :math:`U_j` its mean over all categories. A report y has the probability :math:`\prod_i
    U_i(y_i)` times the mean over j of :math:`R_j(y_j | x_j) / U_j(y_j)`. Each term of that mean changes by a
    factor of at most :math:`e^\epsilon` with x, and so does the mean.

    The paper gives the parts :math:`\ln(1 + d (e^\epsilon - 1))` for d domains, for amplification by
    sampling. That is right for randomized response over domains of one size and a change in one of them. If
    all change, all terms may, and a report reveals as much of the person as a part does. So epsilon stays the
    same here, and all that is gained is that the report hides which domain was drawn.

    Examples
    --------
    >>> from sfumato.local.device import Domain
    >>> domains = [Domain(["no", "yes"]), Domain(range(5))]
    >>> device = FakeDataRandomizer(epsilon=2.0, domains=domains)
    >>> [part.epsilon for part in device.parts], len(device.randomize(["yes", 3]))
    ([2.0, 2.0], 6)
    """

    wire_name: ClassVar[str] = "fake-data"

    def _encode(self, codes: NDArray[np.int64], source: RandomSource) -> Records:
        which = uniform_integers(len(self.parts), codes.shape[1], source)
        shown = [
            np.where(which == at, codes[at], uniform_integers(len(domain), codes.shape[1], source))
            for at, domain in enumerate(self.domains)
        ]
        return self._side_by_side(np.array(shown), source)
