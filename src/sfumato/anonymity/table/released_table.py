"""The table that is released: generalised quasi-identifiers, suppressed rows as ``*``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from pyarrow import csv, parquet

from sfumato import _check
from sfumato.anonymity.hierarchies.hierarchy import SUPPRESSED, Label
from sfumato.anonymity.table.microdata import Microdata

__all__ = ["RecodedTable", "labelled", "released_table"]


def labelled(labels: Sequence[Label], codes: NDArray[Any], suppressed: NDArray[np.bool_]) -> pa.Array:
    """Write the labels of codes, and ``*`` for suppressed rows, as a column of text."""
    numbers = np.where(suppressed, len(labels), codes).astype(np.int32)
    return pa.array([*labels, SUPPRESSED], pa.string()).take(pa.array(numbers))


def released_table(
    data: Microdata, columns: Mapping[str, pa.Array], suppressed: NDArray[np.bool_]
) -> pa.Table:
    """Put the released columns together, in the order of the table.

    A suppressed row has ``*`` for every quasi-identifier and no sensitive value. A column that was declared
    neither a quasi-identifier nor sensitive is left out: nothing was said of what it shows.
    """
    released: dict[str, Any] = {}
    for name in data.table.column_names:
        if name in columns:
            released[name] = columns[name]
        elif name in data.sensitive:
            rows = np.where(suppressed, 0, np.arange(data.rows))
            released[name] = data.table.column(name).take(pa.array(rows, mask=suppressed))
    return pa.table(released)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class RecodedTable:
    """A released table with what its recoding cost; base of the results of this room.

    Parameters
    ----------
    table : pyarrow.Table
        Quasi-identifiers as text, generalised, and sensitive columns; a suppressed row has ``*`` for each
        quasi-identifier and no sensitive values.
    suppressed : bool array
        Which rows are suppressed.
    """

    table: pa.Table
    suppressed: NDArray[np.bool_]

    def write(self, path: str | Path) -> Path:
        """Write the released table as Parquet, or as CSV where the path ends in ``.csv``.

        Parameters
        ----------
        path : path
            What is there is replaced.

        Returns
        -------
        pathlib.Path
            The path.

        Raises
        ------
        ParameterError
            If the path ends in neither ``.parquet`` nor ``.csv``.
        """
        target = Path(path)
        if target.suffix == ".csv":
            csv.write_csv(self.table, target)
        elif target.suffix == ".parquet":
            parquet.write_table(self.table, target)
        else:
            _check.refuse("path", "end in .parquet or .csv", str(path), "name a file of one of them")
        return target
