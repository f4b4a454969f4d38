"""Local recoding as ARX does it: full-domain generalisation, and then again of the rows that it suppressed.

Each iteration generalises less than one node for all rows would, and its choice shows more than k-anonymity
promises: `RecodingChoiceAttack` shows how much.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from sfumato import _check
from sfumato._progress import Progress, shown_progress
from sfumato.anonymity.generalization.lattice import LatticeSearch
from sfumato.anonymity.generalization.losses import InformationLoss, Precision, information_loss
from sfumato.anonymity.generalization.requirement import Requirement, checked_models, coded_table
from sfumato.anonymity.privacy_models.base import PrivacyModel
from sfumato.anonymity.table.microdata import Microdata
from sfumato.anonymity.table.released_table import RecodedTable, labelled, released_table

__all__ = ["LocalRecoding", "recode_locally"]


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class LocalRecoding(RecodedTable):
    """A local recoding; made by `recode_locally`.

    Parameters
    ----------
    levels : tuple of dict of str to int
        The levels of each iteration, in their order.
    iteration_of_row : int64 array
        In which iteration each row was released, from 0; -1 where it is suppressed.

    Examples
    --------
    >>> import pyarrow as pa
    >>> from sfumato import anonymity
    >>> rows = [(c, "ab" if c < "c" else "cd", "*") for c in "abcd"]
    >>> jobs = anonymity.GeneralizationHierarchy.from_rows(rows)
    >>> data = anonymity.Microdata(pa.table({"job": list("aacdb")}), quasi_identifiers={"job": jobs})
    >>> recoded = anonymity.recode_locally(data, k=2, share=0)
    >>> recoded.table.column("job").to_pylist(), recoded.levels
    (['a', 'a', 'cd', 'cd', '*'], ({'job': 0}, {'job': 1}))
    """

    levels: tuple[dict[str, int], ...]
    iteration_of_row: NDArray[np.int64]


def recode_locally(
    data: Microdata,
    k: int,
    *,
    models: Sequence[PrivacyModel] | PrivacyModel = (),
    share: float = 0.05,
    loss: str | InformationLoss | None = None,
    progress: Progress | bool | None = None,
) -> LocalRecoding:
    """Generalise to the node of least loss, and repeat with the rows whose classes were too small.

    Parameters
    ----------
    data : Microdata
        The table, and the hierarchies of its quasi-identifiers.
    k : int
        The least size of an equivalence class.
    models : sequence of PrivacyModel
        Further conditions on each class, of an iteration's rows; t-closeness and its like compare with all
        rows.
    share : float, default 0.05
        Which share of the rows that remain an iteration has to release, and at least one class. Smaller ones
        recode with less loss, in more iterations.
    loss : str or InformationLoss, optional
        What the choice of an iteration minimises; by default precision, without suppressed rows.
    progress : callable, bool or None
        Called with the rows released so far, and all rows; True or False show a bar or nothing, and by
        default there is one on a terminal and in a notebook. It is for who holds the rows.

    Returns
    -------
    LocalRecoding
        The released table, and what each iteration chose.

    Raises
    ------
    ParameterError
        If a parameter is out of range, or a model reads an undeclared column.

    Notes
    -----
    Guarantee: none of differential privacy. Every class of an iteration satisfies k-anonymity and the models.
    Each choice says that all nodes of less loss failed on the rows that remained, which bounds how these rows
    lie: see `RecodingChoiceAttack`.

    References
    ----------
    Prasser, Eicher, Spengler, Bild and Kuhn, "Flexible data anonymization using ARX", Software: Practice and
    Experience 50(7), 2020.

    Examples
    --------
    >>> import pyarrow as pa
    >>> from sfumato import anonymity
    >>> people = pa.table({"zip": ["02139", "02139", "02142", "94305"]})
    >>> data = anonymity.Microdata(people, quasi_identifiers={"zip": anonymity.Prefixes((3,))})
    >>> anonymity.recode_locally(data, k=2).table.column("zip").to_pylist()
    ['02139', '02139', '*', '*']
    """
    wanted = checked_models(data, k, (models,) if isinstance(models, PrivacyModel) else models)
    measure = Precision(suppressed=False) if loss is None else information_loss(loss)
    part = Fraction(repr(_check.share("share", share)))
    iteration_of_row = np.full(data.rows, -1, dtype=np.int64)
    chosen: list[tuple[int, ...]] = []
    with shown_progress(progress, "recoding locally, rows") as show:
        while True:
            left = np.flatnonzero(iteration_of_row < 0)
            least = max(1, math.ceil(part * len(left)))
            found = _iteration(data, wanted, left, len(left) - least, measure) if len(left) else None
            if found is None:
                break
            iteration_of_row[left[found[1]]] = len(chosen)
            chosen.append(found[0])
            show(int(np.count_nonzero(iteration_of_row >= 0)), data.rows)
    return LocalRecoding(
        table=_table(data, chosen, iteration_of_row),
        suppressed=iteration_of_row < 0,
        levels=tuple(dict(zip(data.quasi_identifiers, node, strict=True)) for node in chosen),
        iteration_of_row=iteration_of_row,
    )


def _iteration(
    data: Microdata,
    models: Sequence[PrivacyModel],
    left: NDArray[np.int64],
    limit: int,
    measure: InformationLoss,
) -> tuple[tuple[int, ...], NDArray[np.bool_]] | None:
    """Choose a node for the rows that are left, and say which of them it releases."""
    rows = np.zeros(data.rows, dtype=np.bool_)
    rows[left] = True
    table = coded_table(data, models, rows)
    requirement = Requirement.of(data, table, models, limit)
    node = LatticeSearch(table, requirement, measure).run().best
    if node is None:
        return None
    held = requirement.complete(table.partition(node))
    return node, held[table.classes_of_rows(node)]


def _table(
    data: Microdata, chosen: Sequence[tuple[int, ...]], iteration_of_row: NDArray[np.int64]
) -> pa.Table:
    suppressed = iteration_of_row < 0
    columns = {}
    for index, name in enumerate(data.quasi_identifiers):
        column = data.columns[name]
        texts = labelled(column.hierarchy.labels[0], column.codes, suppressed)
        for iteration, node in enumerate(chosen):
            level = node[index]
            general = labelled(column.hierarchy.labels[level], column.at(level), suppressed)
            texts = pc.if_else(pa.array(iteration_of_row == iteration), general, texts)
        columns[name] = texts
    return released_table(data, columns, suppressed)
