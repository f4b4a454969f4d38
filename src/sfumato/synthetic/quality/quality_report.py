"""Comparing synthetic rows with real ones; for the curator only."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final, NamedTuple, final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from sfumato import _check
from sfumato.synthetic.domain.attributes import Codes
from sfumato.synthetic.domain.domain import TableDomain
from sfumato.synthetic.marginals.workload import Marginals
from sfumato.synthetic.quality.associations import associations
from sfumato.synthetic.quality.distinguishability import Distinguishability, distinguishability
from sfumato.synthetic.quality.encoded_rows import encoded, rows_of
from sfumato.synthetic.quality.marginal_distances import marginal_distances
from sfumato.synthetic.quality.prediction import (
    PredictionScores,
    as_classifier,
    prediction_scores,
    some_rows,
    trained_and_tested,
)
from sfumato.synthetic.quality.report import CuratorQualityReport, ReportedRows

__all__ = ["curator_quality_report"]

_RESAMPLES: Final = 3
_SEEDS: Final = 1 << 31
_HOLDOUT: Final = "split the real rows before you train: holdout= takes those that no generator has seen"


class _Tables(NamedTuple):
    """Cells of real, of synthetic and of held-out rows, and how many there were."""

    real: Codes
    synthetic: Codes
    held_out: Codes | None
    present: tuple[int, int, int | None]


def curator_quality_report(
    real: Any,
    synthetic: Any,
    domain: TableDomain,
    *,
    workload: Marginals | None = None,
    target: str | None = None,
    holdout: Any = None,
    unit: str | None = None,
    classifier: Any = None,
    max_rows: int = 20_000,
    rng: int | np.random.Generator | None = None,
) -> CuratorQualityReport:
    """Return how near synthetic rows are to the real ones; for the curator only, it is not private.

    It reads the real rows without noise. No privacy loss covers the result, which is no release: do not
    publish it, and do not choose by it among generators whose output is published. `WorkloadError` is the
    measure that is paid for.

    Parameters
    ----------
    real : frame, or int64 array of shape (rows, columns)
        The rows that the generator was trained on; an array holds cells, as ``domain.encode`` returns them.
    synthetic : frame, released model, or int64 array of shape (rows, columns)
        Of a model as many rows are drawn as its ``table`` has. Ordered columns may have their bins' labels.
    domain : TableDomain
    workload : Marginals, optional
        The marginals that are compared: all of one and of two columns unless given.
    target : str, optional
        A column to be predicted from all others; needs ``holdout``.
    holdout : frame, or int64 array of shape (rows, columns), optional
        Real rows that the generator was not trained on. Without them nothing is said of predictions and of
        distinguishing rows: on rows that were trained on, a copy of them would be the best table.
    unit : str, optional
        A column of ``real`` and of ``holdout`` that says whose row it is: those held out of a unit that is
        also in ``real``, or of none, are left out.
    classifier : classifier, optional
        Unfitted, with ``fit`` and ``predict_proba``; it is given cells as numbers. Scikit-learn's
        ``HistGradientBoostingClassifier`` unless given: the extra ``sfumato[scikit-learn]``.
    max_rows : int
        How many rows of a table classifiers are given at most; drawn at random.
    rng : None, int or numpy Generator
        For resampling and for classifiers; it needs no secrecy.

    Returns
    -------
    CuratorQualityReport

    Raises
    ------
    ParameterError
        If a table is not of the domain, or ``target`` is given without ``holdout``.
    MissingExtra
        If a classifier is needed and scikit-learn is absent.

    Notes
    -----
    Distances of marginals and associations are those of the synthetic rows from ``real``. Each is beside the
    same of bootstrap samples of ``real``, as many rows as are synthetic, and beside independent columns.
    Rows that are not in the domain are left out; the report says how many.

    Examples
    --------
    >>> import pyarrow as pa
    >>> domain = TableDomain(sex=["f", "m"], smokes=["no", "yes"])
    >>> real = pa.table({"sex": ["f", "m"] * 50, "smokes": ["no", "yes"] * 50})
    >>> synthetic = pa.table({"sex": ["f", "m"] * 50, "smokes": ["no", "no", "yes", "yes"] * 25})
    >>> report = curator_quality_report(real, synthetic, domain, rng=1)
    >>> worst = report.worst_marginals(1)[0]
    >>> worst.columns, worst.synthetic, worst.independent
    (('sex', 'smokes'), 0.5, 0.5)
    """
    _check.instance("domain", domain, TableDomain, "declare one with sfumato.synthetic.TableDomain")
    if rng is not None and not isinstance(rng, np.random.Generator):
        _check.integer("rng", rng)
    max_rows = _check.integer("max_rows", max_rows, minimum=1)
    generator = np.random.default_rng(rng)
    aim = _target(domain, target, real, holdout)
    wanted = Marginals.up_to(min(2, len(domain))) if workload is None else workload
    _check.instance("workload", wanted, Marginals, "write Marginals.every(2), say")
    cliques = wanted.cliques(domain)
    tables = _tables(domain, (real, synthetic, holdout), unit, generator)
    size = len(tables.real)
    resamples = [_resample(size, len(tables.synthetic), generator) for _ in range(_RESAMPLES)]
    held_out, scores, distinguished = tables.held_out, None, None
    if held_out is not None:
        trials = _Trials(
            domain=domain,
            tables=tables,
            held_out=held_out,
            classifier=classifier,
            max_rows=max_rows,
            generator=generator,
        )
        scores, distinguished = None if aim is None else trials.prediction(aim), trials.distinguished()
    return CuratorQualityReport(
        real=ReportedRows(size, tables.present[0]),
        synthetic=ReportedRows(len(tables.synthetic), tables.present[1]),
        holdout=None if held_out is None else ReportedRows(len(held_out), tables.present[2] or 0),
        marginals=marginal_distances(tables.real, tables.synthetic, domain, cliques, resamples),
        weights=tuple(wanted.weight(place) for place in range(len(cliques))),
        associations=associations(tables.real, tables.synthetic, domain, resamples[0]),
        target=target,
        prediction=scores,
        distinguishability=distinguished,
    )


def _target(domain: TableDomain, target: str | None, real: Any, holdout: Any) -> int | None:
    """Return the target's number, and refuse a holdout that is none."""
    if holdout is real:
        _check.refuse_state("holdout", "be other rows than real", "it is the same table", _HOLDOUT)
    if target is None:
        return None
    place = domain.index(target)
    if holdout is None:
        _check.refuse_state("holdout", "be given where a target is predicted", "it is None", _HOLDOUT)
    if domain.sizes[place] < 2:
        _check.refuse("target", "be a column of several cells", target, "take another column")
    return place


def _tables(
    domain: TableDomain, given: tuple[Any, Any, Any], unit: str | None, generator: np.random.Generator
) -> _Tables:
    """Return the tables' cells, and how many rows there were; without units that are in both."""
    names = ("real", "synthetic", "holdout")
    frames: list[Any] = [
        None if table is None else rows_of(name, table, generator)
        for name, table in zip(names, given, strict=True)
    ]
    present = [None if table is None else len(table) for table in frames]
    if unit is not None and frames[2] is not None:
        owners = [_owners(name, frames[place], unit) for name, place in (("real", 0), ("holdout", 2))]
        if owners[0].type != owners[1].type:
            found = f"it is of {owners[0].type} and of {owners[1].type}"
            _check.refuse_state(f"column {unit!r}", "be of one type in both tables", found, "cast it")
        fresh = pc.and_(owners[1].is_valid(), pc.invert(pc.is_in(owners[1], value_set=owners[0])))
        frames[2] = frames[2].filter(fresh)
    codes = [
        None if table is None else encoded(name, domain, table)
        for name, table in zip(names, frames, strict=True)
    ]
    return _Tables(codes[0], codes[1], codes[2], (present[0] or 0, present[1] or 0, present[2]))  # type: ignore[arg-type]


def _owners(name: str, table: Any, unit: str) -> pa.ChunkedArray:
    """Return the column that says whose rows these are."""
    if not isinstance(table, pa.Table) or table.schema.names.count(unit) != 1:
        remedy = "pass frames that have it, or leave unit out"
        _check.refuse_state(name, f"be a frame with one column {unit!r}", "it is not", remedy)
    return pa.chunked_array(table[unit])


def _resample(size: int, rows: int, generator: np.random.Generator) -> Codes:
    """Return how often a bootstrap sample of so many rows holds each of the real ones."""
    if not size:
        return np.zeros(0, np.int64)
    return np.bincount(generator.integers(0, size, rows), minlength=size).astype(np.int64)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class _Trials:
    """Classifiers that are tested on rows that were held out."""

    domain: TableDomain
    tables: _Tables
    held_out: Codes
    classifier: Any
    max_rows: int
    generator: np.random.Generator

    def prediction(self, aim: int) -> tuple[PredictionScores, PredictionScores, PredictionScores]:
        """Return scores of training on synthetic rows, on as many real ones, and of a constant."""
        real, synthetic = self.tables.real, self.tables.synthetic
        model = self._model([place for place in range(len(self.domain)) if place != aim])
        size, test = self.domain.sizes[aim], self._some(self.held_out, self.max_rows)
        number = min(self.max_rows, len(real), len(synthetic))
        made, true = (
            trained_and_tested(model, self._some(rows, number), test, aim, size) for rows in (synthetic, real)
        )
        shares = np.bincount(real[:, aim], minlength=size) / max(1, len(real))
        return made, true, prediction_scores(test[:, aim], np.tile(shares, (len(test), 1)))

    def distinguished(self) -> tuple[Distinguishability, Distinguishability]:
        """Return how well synthetic rows are distinguished from those held out, and as many real ones."""
        model = self._model(list(range(len(self.domain))))
        tables = (self.tables.synthetic, self.tables.real, self.held_out)
        number = min(self.max_rows, *map(len, tables))
        synthetic, real, held_out = (self._some(rows, number) for rows in tables)
        return (
            distinguishability(model, synthetic, held_out, self.generator),
            distinguishability(model, real, held_out, self.generator),
        )

    def _model(self, features: list[int]) -> Any:
        return as_classifier(self.classifier, self.domain, features, int(self.generator.integers(_SEEDS)))

    def _some(self, rows: Codes, most: int) -> Codes:
        return some_rows(rows, most, self.generator)
