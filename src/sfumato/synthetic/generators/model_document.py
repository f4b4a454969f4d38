"""The document of a released model, ``sfumato.synthetic-model``.

Version 1 has no measured tables. A model that was read from one is written as it was; others are version 2.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import prod
from typing import Any, Final

import numpy as np

from sfumato import _check
from sfumato._wire import BOOLEAN, INTEGER, NUMBER, TEXT, Codec, Format, Record, canonical, parse, sequence
from sfumato.mechanisms.base.release import Release
from sfumato.privacy.catalog import LOSS
from sfumato.privacy.neighboring import RELATION
from sfumato.synthetic.domain.domain import TableDomain
from sfumato.synthetic.generators.cell_groups import CellGroups
from sfumato.synthetic.graphical_model.calibration import Array, Calibration
from sfumato.synthetic.graphical_model.dual_fit import FittedModel
from sfumato.synthetic.graphical_model.junction_tree import junction_tree, tree_cells
from sfumato.synthetic.graphical_model.measurements import Measurements, NoisyTable
from sfumato.synthetic.marginals.workload import Clique

__all__ = ["read", "written"]

_FIRST: Final = Format("sfumato.synthetic-model", 1)
_FORMAT: Final = Format("sfumato.synthetic-model", 2)
_MOST: Final = 1 << 26
_REMEDY: Final = "pass what to_json returned"

_TABLE: Final[Record[dict[str, Any]]] = Record(
    "a table", dict, {"columns": sequence(TEXT), "log_weights": sequence(NUMBER)}
)
_MODEL: Final[Record[dict[str, Any]]] = Record(
    "a model",
    dict,
    {
        "domain": TEXT,
        "groups": sequence(sequence(INTEGER)),
        "tables": sequence(_TABLE),
        "total": NUMBER,
        "duality_gap": NUMBER,
        "iterations": INTEGER,
        "loss": LOSS,
        "neighboring": RELATION,
        "simulated": BOOLEAN,
    },
)
_MEASURED: Final[Codec[tuple[dict[str, Any], ...]]] = sequence(
    Record("a measured table", dict, {"counts": sequence(NUMBER), "variances": sequence(NUMBER)})
)


def written(release: Release, domain: TableDomain, groups: CellGroups) -> str:
    """Return the document of a released model."""
    names, fitted = list(domain), release.value
    fields: dict[str, object] = {
        "domain": domain.to_json(),
        "groups": [group.tolist() for group in groups.groups],
        "tables": [
            {"columns": [names[column] for column in scope], "log_weights": theta.ravel().tolist()}
            for scope, theta in fitted.thetas.items()
        ],
        "total": fitted.total,
        "duality_gap": fitted.duality_gap,
        "iterations": fitted.iterations,
        "loss": LOSS.encode(release.loss),
        "neighboring": RELATION.encode(release.neighboring),
        "simulated": release.simulated,
    }
    if fitted.measured is None:
        return canonical(_FIRST.wrap(fields))
    tables = [fitted.measured.tables[scope] for scope in fitted.thetas]
    return canonical(_FORMAT.wrap({**fields, "measured": [_table_fields(table) for table in tables]}))


def _table_fields(table: NoisyTable) -> dict[str, object]:
    """Return a measured table's fields: one variance where all are the same."""
    variances = np.unique(table.variances)
    shown = variances if len(variances) == 1 else np.ravel(table.variances)
    return {"counts": table.counts.ravel().tolist(), "variances": shown.tolist()}


def read(text: str) -> dict[str, Any]:
    """Return the fields of the model that a document describes."""
    version, given = _FORMAT.unwrap("text", parse("text", text))
    written_tables = given.pop("measured", None) if version > 1 else None
    fields = _MODEL.decode("text", given)
    domain = TableDomain.from_json(fields["domain"])
    numbers = fields["groups"]
    listed = [[number for number in group if 0 <= number < len(group)] for group in numbers]
    groups = CellGroups([np.array(group, np.int64) for group in listed])
    if listed != list(map(list, numbers)) or not _fits(groups, domain):
        _refuse("have a group for each cell of its domain")
    thetas: dict[Clique, Array] = {}
    for table in fields["tables"]:
        scope = tuple(map(domain.index, table["columns"]))
        shape = tuple(groups.sizes[column] for column in scope)
        weights = np.array(table["log_weights"], np.float64)
        known = list(scope) == sorted(set(scope)) and scope not in thetas
        if not known or weights.size != prod(shape) or not np.isfinite(weights).all():
            _refuse("have tables of different columns, in the order of the domain, with all their cells")
        thetas[scope] = weights.reshape(shape)
    if tree_cells(groups.sizes, thetas) > _MOST or not fields["total"] >= 1:
        _refuse(f"be of at most {_MOST} cells and at least one row")
    calibration = Calibration(junction_tree(groups.sizes, thetas), list(thetas))
    fitted = FittedModel(
        calibration(list(thetas.values())),
        thetas,
        fields["total"],
        fields["duality_gap"],
        fields["iterations"],
        None if version == 1 else _measured(written_tables, thetas, groups.sizes, fields["total"]),
    )
    rest = {name: fields[name] for name in ("loss", "neighboring", "simulated")}
    return {"value": fitted, "domain": domain, "groups": groups, **rest}


def _measured(
    written_tables: object, thetas: Mapping[Clique, Array], sizes: tuple[int, ...], total: float
) -> Measurements:
    """Return the measured tables of a document, one for each table of log-weights."""
    listed = _MEASURED.decode("measured", written_tables)
    if len(listed) != len(thetas):
        _refuse("have a measured table for each table of log-weights")
    tables: dict[Clique, NoisyTable] = {}
    for (scope, theta), each in zip(thetas.items(), listed, strict=True):
        counts, variances = (np.array(each[name], np.float64) for name in ("counts", "variances"))
        fits = counts.size == theta.size and variances.size in (1, theta.size)
        if not fits or not np.isfinite(counts).all() or not (np.isfinite(variances) & (variances > 0)).all():
            _refuse("have measured tables with all their cells, and variances above 0")
        shown = variances[0] if variances.size == 1 else variances.reshape(theta.shape)
        tables[scope] = NoisyTable(counts.reshape(theta.shape), shown)
    return Measurements(sizes, tables, total)


def _fits(groups: CellGroups, domain: TableDomain) -> bool:
    """Whether each cell has a group, and each group from 0 a cell."""
    if [len(group) for group in groups.groups] != list(domain.sizes):
        return False
    return all(set(group.tolist()) == set(range(int(group.max()) + 1)) for group in groups.groups)


def _refuse(rule: str) -> None:
    _check.refuse_state("text", rule, "it does not", _REMEDY)
