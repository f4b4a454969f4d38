"""What a node of the lattice must satisfy: privacy models for each class, and a limit of suppressed rows."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from sfumato import _check
from sfumato.anonymity.generalization.equivalence_classes import CodedTable, Partition, group
from sfumato.anonymity.measures.sensitive_counts import SensitiveCounts
from sfumato.anonymity.privacy_models.base import KAnonymity, PrivacyModel
from sfumato.anonymity.table.microdata import Microdata

__all__ = ["Requirement", "checked_models", "coded_table", "releasable"]

_Condition = Callable[[Partition], NDArray[np.bool_]]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Requirement:
    """What a node must satisfy.

    ``necessary`` and ``complete`` say of each class whether it may be released, by the part that is monotone
    and by all of it; at most ``limit`` rows may be outside. ``monotone`` says that both are the same.

    Notes
    -----
    Let a node b be coarser than a: each class of b is a union of classes of a. With an upward closed
    condition, a class of b that contains a satisfying class of a satisfies it, so that no row is suppressed
    at b that was not at a: the condition with a limit is monotone. With a limit of zero, every class of a
    satisfies the condition, and closure under unions suffices. Else a violating class of a may join a
    satisfying one and spoil it, so that b may suppress more rows than a: then only the upward closed models
    and the sizes that all models imply are used to infer that a node fails.
    """

    necessary: _Condition
    complete: _Condition
    limit: int
    monotone: bool

    @classmethod
    def of(
        cls, data: Microdata, table: CodedTable, models: Sequence[PrivacyModel], limit: int
    ) -> Requirement:
        """Take from the models what is proved monotone under this limit of suppressed rows."""
        monotone = tuple(
            model for model in models if model.upward_closed or (limit == 0 and model.union_closed)
        )
        size = max(model.minimum_size for model in models)

        def necessary(partition: Partition) -> NDArray[np.bool_]:
            enough: NDArray[np.bool_] = partition.counts >= size
            return enough & releasable(data, table, partition, monotone)

        def complete(partition: Partition) -> NDArray[np.bool_]:
            return releasable(data, table, partition, models)

        return cls(necessary=necessary, complete=complete, limit=limit, monotone=len(monotone) == len(models))


def releasable(
    data: Microdata, table: CodedTable, partition: Partition, models: Sequence[PrivacyModel]
) -> NDArray[np.bool_]:
    """Say of each class whether it satisfies all models."""
    held = np.ones(len(partition.counts), dtype=np.bool_)
    counted: dict[str | None, SensitiveCounts] = {}
    for model in models:
        column = model.sensitive
        if column not in counted:
            counted[column] = _class_counts(data, table, partition, column)
        held &= model.satisfied(counted[column], None if column is None else data.columns[column].hierarchy)
    return held


def _class_counts(
    data: Microdata, table: CodedTable, partition: Partition, column: str | None
) -> SensitiveCounts:
    if column is None:
        nothing = partition.counts[:0]
        return SensitiveCounts(nothing, nothing, nothing, partition.counts, nothing)
    of_cell, counts = partition.cell_class, partition.cell_counts
    values = table.sensitive[column][partition.cell_first]
    overall = np.bincount(data.columns[column].codes, minlength=len(data.columns[column].hierarchy.values))
    if len(table.sensitive) > 1:
        cell, number = group([of_cell, values], [len(partition.counts), len(overall)])
        counts = np.bincount(cell, weights=counts, minlength=number).astype(np.int64)
        of_cell, values = _first(cell, of_cell, number), _first(cell, values, number)
    return SensitiveCounts(of_cell, values, counts, partition.counts, overall)


def _first(cell: NDArray[Any], numbers: NDArray[Any], count: int) -> NDArray[Any]:
    found = np.empty(count, dtype=numbers.dtype)
    found[cell] = numbers
    return found


def coded_table(
    data: Microdata, models: Sequence[PrivacyModel], rows: NDArray[np.bool_] | None = None
) -> CodedTable:
    """Take from a table what the search reads: quasi-identifiers, and the sensitive columns of the models."""
    names = dict.fromkeys(model.sensitive for model in models if model.sensitive is not None)
    chosen = slice(None) if rows is None else rows
    return CodedTable(
        [data.columns[name].codes[chosen] for name in data.quasi_identifiers],
        [data.columns[name].hierarchy.levels for name in data.quasi_identifiers],
        {name: data.columns[name].codes[chosen] for name in names},
    )


def checked_models(data: Microdata, k: int, models: Sequence[PrivacyModel]) -> tuple[PrivacyModel, ...]:
    """Check k and the models against the columns of the table, and put k first."""
    if not isinstance(data, Microdata):
        _check.refuse_type("data", "be a Microdata", data, "wrap the frame in anonymity.Microdata")
    if _check.integer("k", k, minimum=1) > data.rows:
        _check.refuse("k", "be at most the number of rows", k, "ask for less")
    for model in models:
        if not isinstance(model, PrivacyModel):
            _check.refuse_type("models", "be privacy models, such as EntropyLDiversity", model, "make one")
        if model.sensitive is not None and model.sensitive not in data.sensitive:
            _check.refuse(
                "models",
                "read sensitive columns",
                model.sensitive,
                f"declared are {', '.join(data.sensitive) or 'none'}",
            )
    return (KAnonymity(k), *models)
