"""Which labels of a generalised column stand for which values."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from sfumato import _check
from sfumato.anonymity.hierarchies.hierarchy import SUPPRESSED, GeneralizationHierarchy
from sfumato.synthetic.domain.column_types import plain_column

__all__ = ["Coverage", "checked_coverage", "coded", "covering", "is_suppressed"]

Coverage: TypeAlias = Mapping[str, "GeneralizationHierarchy | Callable[[str | None, str | None], bool]"]
"""By column, its hierarchy, or a function that tells whether a label stands for a value."""


def checked_coverage(coverage: Mapping[str, Any] | None) -> Coverage:
    """Return what tells which labels stand for which values, or refuse it."""
    given = {} if coverage is None else dict(coverage)
    for column, covers in given.items():
        if isinstance(covers, list | tuple):
            rows = [[None if label is None else str(label) for label in row] for row in covers]
            given[column] = GeneralizationHierarchy.from_rows(rows)
        elif not callable(covers) and not isinstance(covers, GeneralizationHierarchy):
            rule = "have a hierarchy, its rows, or a function of a value and a label, for each column"
            _check.refuse_type("hierarchies", rule, covers, f"see column {column!r}")
    return given


def is_suppressed(labels: list[Any]) -> NDArray[np.bool_]:
    """Return which labels are ``*``."""
    return np.array([_text(label) == SUPPRESSED for label in labels], dtype=np.bool_)


def coded(column: pa.ChunkedArray) -> tuple[list[Any], NDArray[np.int64]]:
    """Return the different values of a column, and the index of each row's; numbers stay what they are."""
    plain = plain_column(column)
    known = pc.unique(plain)
    codes = pc.index_in(plain, value_set=known)
    return known.to_pylist(), np.asarray(codes, dtype=np.int64)


def _text(value: Any) -> str | None:
    return None if value is None else str(value)


def covering(covers: Any) -> Callable[[Any, Any], bool]:
    """Return what tells whether a label stands for a value, as texts."""
    if covers is None:
        return lambda value, label: label in (SUPPRESSED, value) or _text(value) == _text(label)
    if not isinstance(covers, GeneralizationHierarchy):
        return lambda value, label: bool(covers(_text(value), _text(label)))
    above: dict[Any, set[Any]] = {}
    for place, value in enumerate(covers.values):
        codes = [level[place] for level in covers.levels]
        above[value] = {labels[code] for labels, code in zip(covers.labels, codes, strict=True)}

    def covered(value: Any, label: Any) -> bool:
        text = _text(label)
        return text == SUPPRESSED or text in above.get(_text(value), ())

    return covered
