"""The document of a released model, ``sfumato.synthetic-model``.

Version 1 has no measured tables, structural zeros or prior: who reads it would not see them. A model that was
read from one is written as it was; others are version 2.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
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
from sfumato.synthetic.generators.public_prior import PublicPrior
from sfumato.synthetic.graphical_model.base_measure import BaseMeasure
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
_PRIOR: Final[Record[dict[str, Any]]] = Record(
    "a prior", dict, {"digest": TEXT, "strength": NUMBER, "tables": sequence(_TABLE)}
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


def written(release: Release, domain: TableDomain, groups: CellGroups, prior: PublicPrior | None) -> str:
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
    more: dict[str, object] = {}
    if prior is not None:
        strength = fitted.prior_strength
        more["prior"] = {"digest": prior.digest, "tables": prior.described(), "strength": strength}
    if fitted.measured is not None:
        tables = [fitted.measured.tables[scope] for scope in fitted.thetas]
        more["measured"] = [_table_fields(table) for table in tables]
    first = not more and not fitted.base
    return canonical((_FIRST if first else _FORMAT).wrap({**fields, **more}))


def _table_fields(table: NoisyTable) -> dict[str, object]:
    """Return a measured table's fields: one variance where all are the same."""
    variances = np.unique(table.variances)
    shown = variances if len(variances) == 1 else np.ravel(table.variances)
    return {"counts": table.counts.ravel().tolist(), "variances": shown.tolist()}


def read(text: str) -> dict[str, Any]:
    """Return the fields of the model that a document describes."""
    version, document = _FORMAT.unwrap("text", parse("text", text))
    more = {name: document.pop(name) for name in ("prior", "measured") if version > 1 and name in document}
    fields = _MODEL.decode("text", document)
    domain = TableDomain.from_json(fields["domain"])
    numbers = fields["groups"]
    listed = [[number for number in group if 0 <= number < len(group)] for group in numbers]
    groups = CellGroups([np.array(group, np.int64) for group in listed])
    if listed != list(map(list, numbers)) or not _fits(groups, domain):
        _refuse("have a group for each cell of its domain")
    prior, strength = _prior(domain, more["prior"]) if "prior" in more else (None, 0.0)
    base = _base(domain, groups, prior if strength > 0 else None)
    thetas = _tables(domain, groups.sizes, fields["tables"])
    if tree_cells(groups.sizes, (*thetas, *base)) > _MOST or not fields["total"] >= 1:
        _refuse(f"be of at most {_MOST} cells and at least one row")
    calibration = Calibration(junction_tree(groups.sizes, (*thetas, *base)), list(thetas), base)
    model = calibration(list(thetas.values()))
    if not math.isfinite(model.log_normalizer):
        _refuse("leave some cell that can hold a row")
    measured = None
    if "measured" in more:
        measured = _measured(more["measured"], thetas, groups.sizes, fields["total"])
    figures = fields["total"], fields["duality_gap"], fields["iterations"]
    fitted = FittedModel(model, thetas, *figures, base, strength, measured)
    rest = {name: fields[name] for name in ("loss", "neighboring", "simulated")}
    return {"value": fitted, "domain": domain, "groups": groups, "prior": prior, **rest}


def _tables(domain: TableDomain, sizes: Sequence[int], given: Sequence[Any]) -> dict[Clique, Array]:
    """Return the log-weights of tables of columns."""
    thetas: dict[Clique, Array] = {}
    for table in given:
        scope = tuple(map(domain.index, table["columns"]))
        shape = tuple(sizes[column] for column in scope)
        weights = np.array(table["log_weights"], np.float64)
        known = list(scope) == sorted(set(scope)) and scope not in thetas
        if not known or weights.size != prod(shape) or not np.isfinite(weights).all():
            _refuse("have tables of different columns, in the order of the domain, with all their cells")
        thetas[scope] = weights.reshape(shape)
    return thetas


def _prior(domain: TableDomain, described: object) -> tuple[PublicPrior, float]:
    """Return the prior that a document describes, and what it was weighed by."""
    fields = _PRIOR.decode("prior", described)
    prior = PublicPrior(domain, _tables(domain, domain.sizes, fields["tables"]))
    if prior.digest != fields["digest"] or not 0 <= fields["strength"] <= 1:
        _refuse("have a prior of its digest, with a strength from 0 to 1")
    return prior, fields["strength"]


def _base(domain: TableDomain, groups: CellGroups, prior: PublicPrior | None) -> Mapping[Clique, Array]:
    """Return the log-weights of groups that structural zeros and a prior give."""
    scopes = BaseMeasure.scopes_of(domain.structural_zeros)
    scopes = scopes if prior is None else (*scopes, *prior.log_weights)
    if not scopes:
        return {}
    if tree_cells(domain.sizes, scopes) > _MOST:
        _refuse(f"have structural zeros of at most {_MOST} cells")
    base = BaseMeasure.from_zeros(domain.sizes, domain.structural_zeros)
    base = base if prior is None else prior.base(domain)
    for classes, group in zip(base.classes(), groups.groups, strict=True):
        if len(np.unique(np.stack([classes, group]), axis=1).T) > int(group.max()) + 1:
            _refuse("merge only cells that structural zeros do not tell apart")
    return base.grouped(groups.groups).factors


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
