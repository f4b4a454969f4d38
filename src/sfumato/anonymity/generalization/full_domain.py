"""Optimal full-domain generalisation: the node of the lattice with the least loss that is private enough.

Full-domain means that a column is generalised to one level in all rows. The search is exhaustive in effect: a
node is left out only where monotonicity or a lower bound of the loss proves that it is not better.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, final

import numpy as np

from sfumato import _check
from sfumato._progress import Progress, shown_progress
from sfumato.anonymity.generalization.lattice import LatticeSearch
from sfumato.anonymity.generalization.lattice_nodes import LatticeNodes
from sfumato.anonymity.generalization.losses import InformationLoss, information_loss
from sfumato.anonymity.generalization.requirement import Requirement, checked_models, coded_table
from sfumato.anonymity.privacy_models.base import PrivacyModel
from sfumato.anonymity.table.microdata import Microdata
from sfumato.anonymity.table.released_table import RecodedTable, labelled, released_table

__all__ = ["Generalization", "generalize"]

_LARGEST = 5_000_000


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Generalization(RecodedTable):
    """An optimal full-domain generalisation; made by `generalize`.

    The node, its loss and the suppressed rows were chosen on the data, so that they show something of the
    data: k-anonymity does not bound what.

    Parameters
    ----------
    loss : float
        The loss of the chosen node: no other node that satisfies the requirement has less.
    levels : dict of str to int
        The level of each quasi-identifier.
    classes : int
        How many equivalence classes are released.
    nodes : LatticeNodes
        Which nodes hold, fail, or were pruned.
    checks : int
        For how many nodes classes were computed.

    Examples
    --------
    >>> import pyarrow as pa
    >>> from sfumato import anonymity
    >>> people = pa.table({"age": [31, 34, 52, 58], "sex": ["F", "M", "M", "M"]})
    >>> columns = {"age": anonymity.Intervals((10, 50)), "sex": None}
    >>> data = anonymity.Microdata(people, quasi_identifiers=columns)
    >>> best = anonymity.generalize(data, k=2)
    >>> best.levels, best.table.column("age").to_pylist()
    ({'age': 1, 'sex': 1}, ['[30, 40)', '[30, 40)', '[50, 60)', '[50, 60)'])
    """

    loss: float
    levels: dict[str, int]
    classes: int
    nodes: LatticeNodes
    checks: int

    def plot(self, ax: Any = None) -> Any:
        """Draw the lattice: how many nodes of each height hold, fail or were pruned, and the chosen one.

        Parameters
        ----------
        ax : matplotlib.axes.Axes, optional
            Where to draw; a new figure if None.

        Returns
        -------
        matplotlib.axes.Axes
            The axes.

        Raises
        ------
        MissingExtra
            If matplotlib is absent and no axes are given.
        """
        return self.nodes.plot(ax, chosen=tuple(self.levels.values()))

    def __repr__(self) -> str:
        """Say the levels, the loss and what is suppressed."""
        hidden = int(np.count_nonzero(self.suppressed))
        rows = f"{hidden:,} of {self.table.num_rows:,} rows suppressed"
        return f"Generalization(levels={self.levels}, loss={self.loss:.6g}, {rows})"


def generalize(
    data: Microdata,
    k: int,
    *,
    suppression: float = 0.0,
    loss: str | InformationLoss = "non-uniform-entropy",
    models: Sequence[PrivacyModel] | PrivacyModel = (),
    progress: Progress | bool | None = None,
) -> Generalization:
    """Find the full-domain generalisation of least loss that is k-anonymous and satisfies all models.

    A class that violates a condition is suppressed as a whole, up to the limit.

    Parameters
    ----------
    data : Microdata
        The table, its quasi-identifiers with their hierarchies, and its sensitive columns.
    k : int
        The least size of a released equivalence class; 1 asks for the models only.
    suppression : float, default 0
        The largest share of the rows that may be suppressed.
    loss : str or InformationLoss
        ``"non-uniform-entropy"``, ``"discernibility"``, ``"average-class-size"``, ``"precision"``, or a value
        of their classes, which say how suppressed rows count.
    models : sequence of PrivacyModel
        Further conditions, such as ``EntropyLDiversity("occupation", 5)``.
    progress : callable, bool or None
        Called with the nodes decided so far, and all nodes; True or False show a bar or nothing, and by
        default there is one on a terminal and in a notebook. It is for who holds the rows.

    Returns
    -------
    Generalization
        The released table, its loss and levels, and the state of every node.

    Raises
    ------
    ParameterError
        If a parameter is out of range, a model reads an undeclared column, the lattice has more than 50
        million nodes, or no node satisfies the requirement.

    Notes
    -----
    Guarantee: none of differential privacy. Every released class satisfies k-anonymity and the models, at
    most the limit of rows is suppressed, and no node that does so has less loss. Pruning by monotonicity is
    used for conditions that are proved monotone (`Requirement`): upward closed ones (k-anonymity, distinct
    l-diversity), and ones closed under unions where no row may be suppressed. For others every node is
    checked whose lower bound of the loss is below the best loss.

    References
    ----------
    Kohlmayer, Prasser, Eckert, Kemper and Kuhn, "Flash: efficient, stable and optimal k-anonymity", PASSAT
    2012. El Emam et al., "A globally optimal k-anonymity method for the de-identification of health data",
    JAMIA 16(5), 2009.

    Examples
    --------
    >>> import pyarrow as pa
    >>> from sfumato import anonymity
    >>> people = pa.table({"zip": ["02139", "02142", "10001", "94305"], "job": ["cook", "nurse"] * 2})
    >>> zips = {"zip": anonymity.Prefixes((3,))}
    >>> data = anonymity.Microdata(people, quasi_identifiers=zips, sensitive=["job"])
    >>> best = anonymity.generalize(data, k=2, suppression=0.5, models=anonymity.DistinctLDiversity("job", 2))
    >>> best.table.column("zip").to_pylist()
    ['021**', '021**', '*', '*']
    """
    measure = information_loss(loss)
    wanted = checked_models(data, k, (models,) if isinstance(models, PrivacyModel) else models)
    limit = _row_limit(suppression, data.rows)
    table = coded_table(data, wanted)
    if math.prod(table.shape) > _LARGEST:
        _check.refuse(
            "quasi_identifiers",
            f"have at most {_LARGEST:,} combinations of levels",
            math.prod(table.shape),
            "use mondrian",
        )
    requirement = Requirement.of(data, table, wanted, limit)
    with shown_progress(progress, "generalizing, nodes of the lattice") as show:
        search = LatticeSearch(table, requirement, measure, show).run()
    if search.best is None:
        _check.refuse_state(
            "k, suppression and models",
            "be satisfied by some node of the lattice",
            "none does",
            "let hierarchies end in one value, or allow more suppression",
        )
    partition = table.partition(search.best)
    held = requirement.complete(partition)
    suppressed = ~held[table.classes_of_rows(search.best)]
    columns = {}
    for name, level in zip(data.quasi_identifiers, search.best, strict=True):
        column = data.columns[name]
        columns[name] = labelled(column.hierarchy.labels[level], column.at(level), suppressed)
    return Generalization(
        table=released_table(data, columns, suppressed),
        suppressed=suppressed,
        loss=search.best_loss,
        levels=dict(zip(data.quasi_identifiers, search.best, strict=True)),
        classes=int(np.count_nonzero(held)),
        nodes=LatticeNodes(data.quasi_identifiers, search.states),
        checks=search.checks,
    )


def _row_limit(suppression: float, rows: int) -> int:
    """Turn a share into a number of rows; 0.29 of 100 rows are 29, as it is written, and not 28."""
    return math.floor(Fraction(repr(_check.share("suppression", suppression))) * rows)
