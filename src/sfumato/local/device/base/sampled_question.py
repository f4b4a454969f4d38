r"""The base of client halves that answer one question, drawn by chance: a record names it.

Ranges ask about one level of a tree, marginals about one table, surveys of several attributes about one of
them. All draw the question without regard to what is true, and answer it by a client half of its own, with
all of epsilon; they differ in how questions are drawn, and in what a person's true answer to one is.

Guarantee: if all parts are :math:`\epsilon`-DP under replace-one, so is the whole. The probability of a
record is that of its question, which is public, times that of the part's record.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterator
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from sfumato.local.device.base.randomizer import CategoricalRandomizer, Randomizer
from sfumato.local.device.base.record_layout import Records
from sfumato.numerics.randomness.source import RandomSource
from sfumato.numerics.randomness.uniform import uniform_integers

__all__ = ["SampledQuestionRandomizer", "rows_of"]


class SampledQuestionRandomizer(Randomizer):
    r"""A client half that draws one of its questions, whatever is true, and sends the answer to it.

    Attributes
    ----------
    parts : tuple of CategoricalRandomizer
        Of each question, the client half that answers it.

    Notes
    -----
    Guarantee: :math:`\epsilon`-DP, replace-one, if all parts are; see the top of this module.
    """

    __slots__ = ()

    index_bytes: ClassVar[int] = 2
    parts: tuple[CategoricalRandomizer, ...]

    @abstractmethod
    def answers(self, codes: NDArray[np.int64], question: int) -> NDArray[np.int64]:
        """Return the true answers to one question, as indices in the domain of its part.

        Parameters
        ----------
        codes : int64 array, shape (n,) or (attributes, n)
            Indices in the domain, or in those of all attributes.
        question : int
            Counted from 0.

        Returns
        -------
        int64 array, shape (n,)
        """

    @property
    def chances(self) -> tuple[Fraction, ...]:
        """How likely each question is drawn, exactly: all alike, where a protocol does not say."""
        return (Fraction(1, len(self.parts)),) * len(self.parts)

    def _drawn(self, size: int, source: RandomSource) -> NDArray[np.int64]:
        """Return a drawn question for each respondent."""
        return uniform_integers(len(self.parts), size, source)

    def _chances(self) -> dict[str, Any]:
        return {"parts": [part.digest.hex() for part in self.parts]}

    @property
    def _longest(self) -> int:
        return max(part.width for part in self.parts)

    @property
    def _bits(self) -> int:
        return 8 * (self.index_bytes + self._longest)

    def _encode(self, codes: NDArray[np.int64], source: RandomSource) -> Records:
        """Return a stamped record about a drawn question for each respondent."""
        which = self._drawn(codes.shape[-1], source)
        return self._assembled(
            which, lambda at, rows: self.parts[at].encoded(self.answers(codes[..., rows], at), source)
        )

    def _assembled(
        self, which: NDArray[np.int64], piece: Callable[[int, NDArray[np.int64]], Records]
    ) -> Records:
        """Return stamped records about drawn questions; ``piece`` makes those about one for some rows."""
        records = np.zeros((len(which), self.width), np.uint8)
        named = which.astype("<u8").view(np.uint8).reshape(len(which), 8)
        records[:, : self.index_bytes] = named[:, : self.index_bytes]
        for at, rows in rows_of(which, len(self.parts)):
            part = self.parts[at]
            records[rows, self.index_bytes : self.index_bytes + part.width] = piece(at, rows)
        self.layout.stamp(records)
        return records

    def named(self, records: Records) -> NDArray[np.int64]:
        """Return the indices of the questions that records are about.

        Parameters
        ----------
        records : uint8 array, shape (records, width)

        Returns
        -------
        int64 array, shape (records,)
            Not checked: it may exceed the number of questions.
        """
        wide = np.zeros((len(records), 8), np.uint8)
        wide[:, : self.index_bytes] = records[:, : self.index_bytes]
        return wide.view("<i8")[:, 0].astype(np.int64, copy=False)

    def cut(self, records: Records, at: int) -> Records:
        """Return the parts' records within records that are all about one question.

        Parameters
        ----------
        records : uint8 array, shape (records, width)
            All about the same question.
        at : int
            Index of that question.

        Returns
        -------
        uint8 array, shape (records, width of the part)
        """
        return np.ascontiguousarray(records[:, self.index_bytes : self.index_bytes + self.parts[at].width])

    def well_formed(self, records: Records) -> NDArray[np.bool_]:
        """Return which records name a question, hold a record of its part, and nothing after that.

        Parameters
        ----------
        records : uint8 array, shape (records, width)

        Returns
        -------
        bool array, shape (records,)
            True where the record is one that this protocol can send.
        """
        which, sound = self.named(records), np.zeros(len(records), np.bool_)
        end = self.index_bytes + self._longest
        for at, rows in rows_of(which, len(self.parts)):
            part = self.parts[at]
            piece = self.cut(records[rows], at)
            empty = ~records[rows, self.index_bytes + part.width : end].any(axis=1)
            sound[rows] = part.layout.genuine(piece) & part.well_formed(piece) & empty
        return sound


def rows_of(which: NDArray[np.int64], parts: int) -> Iterator[tuple[int, NDArray[np.int64]]]:
    """Yield each part that is named with the rows that name it, ascending; unknown parts are left out.

    Parameters
    ----------
    which : int64 array, shape (rows,)
        The part that each row names.
    parts : int
        Number of parts.

    Yields
    ------
    int and int64 array

    Examples
    --------
    >>> [(at, rows.tolist()) for at, rows in rows_of(np.array([2, 0, 9, 2]), 3)]
    [(0, [1]), (2, [0, 3])]
    """
    known = np.minimum(which, parts)
    order = np.argsort(known.astype(np.uint16) if parts < 1 << 16 else known, kind="stable")
    cuts = np.searchsorted(known[order], np.arange(parts + 1))
    for at in np.flatnonzero(np.diff(cuts)).tolist():
        yield at, order[cuts[at] : cuts[at + 1]]
