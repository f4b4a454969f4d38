"""The sensitive values of the rows of a generalised table that a person may be."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from scipy import sparse

from sfumato.attacks.inference.record_matrix import columns_of
from sfumato.attacks.syntactic.class_matches import class_matches
from sfumato.attacks.syntactic.label_coverage import Coverage, coded, is_suppressed

__all__ = ["MatchedValues", "matched_values"]


class MatchedValues(NamedTuple):
    """Sensitive values of the rows that each target may be.

    Attributes
    ----------
    values : list
        Of the sensitive column, those that occur.
    counts : sparse array of shape (targets, values)
        How many matching rows have each; nothing where no row matches.
    overall : array of float, shape (values,)
        Of all rows.
    """

    values: list[Any]
    counts: sparse.csr_array
    overall: NDArray[np.float64]


def matched_values(release: pa.Table, targets: pa.Table, sensitive: str, coverage: Coverage) -> MatchedValues:
    """Return the sensitive values of all rows that may be each target.

    Parameters
    ----------
    release : pyarrow.Table
        Generalised: labels for values.
    targets : pyarrow.Table
        The quasi-identifiers, not generalised.
    sensitive : str
        A column of the release.
    coverage : mapping
        By column, as for `class_matches`.

    Returns
    -------
    MatchedValues
        Rows that are suppressed in all columns count only for who fits no others: an algorithm that
        suppresses classes which are too small does not suppress whoever is in one that is not. A
        suppressed sensitive value, or a missing one in such a row, counts as none.
    """
    columns_of("sensitive", [sensitive], release)
    values, has = coded(release.column(sensitive))
    found = class_matches(release, targets, coverage)
    missing = np.array([value is None for value in values])
    counted = ~(is_suppressed(values)[has] | (missing[has] & found.suppressed[found.classes]))
    where = (found.classes[counted], has[counted])
    shape = (len(found.suppressed), len(values))
    counts = sparse.csr_array((np.ones(len(where[0])), where), shape=shape)
    overall = np.asarray(counts.sum(axis=0), dtype=np.float64)
    shown = sparse.csr_array(sparse.diags_array(np.where(found.suppressed, 0.0, 1.0)) @ counts)
    summed = sparse.csr_array(found.matches @ shown)
    if found.suppressed.any():
        nowhere = np.asarray(summed.sum(axis=1)) == 0
        only = sparse.diags_array(nowhere.astype(np.float64)) @ found.matches
        summed = sparse.csr_array(summed + only @ counts)
    return MatchedValues(values, summed, overall)
