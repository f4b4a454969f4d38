"""The base of client halves that report one part, drawn by chance: a record names the part it is about."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from sfumato.local.device.base.randomizer import Randomizer
from sfumato.local.device.base.record_layout import Records

__all__ = ["OnePart", "rows_of"]


class OnePart(Randomizer):
    r"""A client half that draws one of its parts, whatever is true, and sends a record of that part.

    Attributes
    ----------
    parts : tuple of Randomizer
        Those of one report.

    Notes
    -----
    Guarantee: if all parts are :math:`\epsilon`-DP under replace-one, so is the whole. Which part it is does
    not depend on the truth, and is public: the probability of a record is that of its part, times that of
    the part's record.
    """

    __slots__ = ()

    index_bytes: ClassVar[int] = 2
    parts: tuple[Randomizer, ...]

    @property
    def _longest(self) -> int:
        return max(part.width for part in self.parts)

    @property
    def _bits(self) -> int:
        return 8 * (self.index_bytes + self._longest)

    def _assembled(
        self, which: NDArray[np.int64], piece: Callable[[int, NDArray[np.int64]], Records]
    ) -> Records:
        """Return stamped records about drawn parts; ``piece`` makes those of one part for some rows."""
        records = np.zeros((len(which), self.width), np.uint8)
        named = which.astype("<u8").view(np.uint8).reshape(len(which), 8)
        records[:, : self.index_bytes] = named[:, : self.index_bytes]
        for at, rows in rows_of(which, len(self.parts)):
            part = self.parts[at]
            records[rows, self.index_bytes : self.index_bytes + part.width] = piece(at, rows)
        self.layout.stamp(records)
        return records

    def named(self, records: Records) -> NDArray[np.int64]:
        """Return the indices of the parts that records are about.

        Parameters
        ----------
        records : uint8 array, shape (records, width)

        Returns
        -------
        int64 array, shape (records,)
            Not checked: it may exceed the number of parts.
        """
        wide = np.zeros((len(records), 8), np.uint8)
        wide[:, : self.index_bytes] = records[:, : self.index_bytes]
        return wide.view("<i8")[:, 0].astype(np.int64, copy=False)

    def cut(self, records: Records, at: int) -> Records:
        """Return the records of one part, where all are about it.

        Parameters
        ----------
        records : uint8 array, shape (records, width)
            All about the same part.
        at : int
            Index of that part.

        Returns
        -------
        uint8 array, shape (records, width of the part)
        """
        return np.ascontiguousarray(records[:, self.index_bytes : self.index_bytes + self.parts[at].width])

    def well_formed(self, records: Records) -> NDArray[np.bool_]:
        """Return which records are about a part, hold a record of it, and nothing after that.

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
