"""Counts by bin, put beside the groups they are of: the same for every engine."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

__all__ = ["with_bin_counts"]

_LEAF = pa.struct([("leaf", pa.int64()), ("n", pa.int64())])


def with_bin_counts(answer: pa.Table, leaves: Mapping[int, pa.Table]) -> pa.Table:
    """Put counts by bin in the place of their measures.

    Parameters
    ----------
    answer : pyarrow.Table
        One row per group: the keys ``k0, ...``, then ``m0, ...``.
    leaves : mapping of int to pyarrow.Table
        For measures, by number: rows of ``leaf`` and ``n``, with the keys, or with the number ``g`` of a
        public group (from 1, in the order of the answer). In any order.

    Returns
    -------
    pyarrow.Table
        The answer, with a list of structs ``leaf`` and ``n`` for each of those measures, sorted by bin.
    """
    for index, table in leaves.items():
        leaf, many = (np.asarray(table[name].to_numpy(), dtype=np.int64) for name in ("leaf", "n"))
        group = _places(answer, table)
        order = np.lexsort((leaf, group))
        ends = np.searchsorted(group[order], np.arange(answer.num_rows + 1))
        struct = pa.StructArray.from_arrays(
            [pa.array(leaf[order]), pa.array(many[order])], fields=list(_LEAF)
        )
        column = pa.LargeListArray.from_arrays(pa.array(ends, pa.int64()), struct)
        answer = answer.set_column(answer.column_names.index(f"m{index}"), f"m{index}", column)
    return answer


def _places(answer: pa.Table, leaves: pa.Table) -> NDArray[np.int64]:
    """Return the row of the answer that each row of ``leaves`` belongs to; NULL keys are equal."""
    if "g" in leaves.column_names:
        return np.asarray(leaves["g"].to_numpy(), dtype=np.int64) - 1
    codes = np.zeros(answer.num_rows + leaves.num_rows, dtype=np.int64)
    for name in (name for name in answer.column_names if name.startswith("k")):
        both = pa.concat_arrays(
            [column.cast(answer[name].type).combine_chunks() for column in (answer[name], leaves[name])]
        )
        each = both.dictionary_encode(null_encoding="encode").indices.to_numpy()
        _, codes = np.unique(codes * (int(each.max(initial=0)) + 1) + each, return_inverse=True)
    mine, theirs = codes[: answer.num_rows], codes[answer.num_rows :]
    order = np.argsort(mine, kind="stable")
    return np.asarray(order[np.searchsorted(mine[order], theirs)], dtype=np.int64)
