"""The rounds of AIM: choose, measure, fit."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from statistics import median
from typing import Final, final

import numpy as np

from sfumato.synthetic.generators.cell_groups import CellGroups
from sfumato.synthetic.generators.column_tables import (
    MEAN_ABSOLUTE,
    column_noise,
    grouped_tables,
    measured_columns,
    regrouped,
)
from sfumato.synthetic.generators.model_base import ModelBase
from sfumato.synthetic.generators.private_table import Candidate, PrivateTable
from sfumato.synthetic.generators.public_noise import PublicNoise
from sfumato.synthetic.generators.table_shift import TableShift
from sfumato.synthetic.graphical_model.base_measure import BaseMeasure
from sfumato.synthetic.graphical_model.calibration import Array
from sfumato.synthetic.graphical_model.dual_fit import FittedModel, fit
from sfumato.synthetic.graphical_model.junction_tree import JunctionTree, tree_cells
from sfumato.synthetic.graphical_model.measurements import Measurements, NoisyTable
from sfumato.synthetic.graphical_model.model_marginals import ModelMarginals
from sfumato.synthetic.graphical_model.prior_trust import PriorTrust
from sfumato.synthetic.marginals.workload import Clique

__all__ = ["AdaptiveRounds", "RoundPlan", "round_noise"]

_COUNT: Final = Fraction(1, 64)  # of the budget, for the number of rows
_COLUMNS: Final = Fraction(15, 100)
_COLUMNS_OF_LITTLE: Final = Fraction(8, 10)
_NOISE: Final = 0.05  # mean error of columns above which a budget is small
_CHOICE: Final = Fraction(1, 10)  # of a round
_MERGED: Final = 2.0
_GROWTH: Final = 2 / 3
_LEAST, _MOST = 0.3, 5.0
_PENALIZED: Final = 10_000
_FULL = 1 << 20


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class RoundPlan:
    """What is public of a run.

    Parameters
    ----------
    weights : mapping of tuple of int to int
        The tables that may be measured.
    rho : Fraction
    max_cells : int
    rounds : int
    shift : TableShift
    base : ModelBase, optional
        What the model is relative to.
    """

    weights: Mapping[Clique, int]
    rho: Fraction
    max_cells: int
    rounds: int
    shift: TableShift
    base: ModelBase | None = None


@final
class AdaptiveRounds:
    """One run; everything but the answers of the table follows from them and from the plan.

    Parameters
    ----------
    table : PrivateTable
    plan : RoundPlan
    """

    def __init__(self, table: PrivateTable, plan: RoundPlan) -> None:
        self._table, self._plan = table, plan
        self._tables: dict[Clique, NoisyTable] = {}
        self._total = 1.0
        self._sizes: tuple[int, ...] = ()
        self._base: BaseMeasure | None = None
        self._trust: PriorTrust | None = None
        self._possible: Mapping[Clique, int] = {}

    def run(self) -> tuple[CellGroups, FittedModel]:
        """Measure until the budget is spent.

        Returns
        -------
        tuple of CellGroups and FittedModel
        """
        self._measure_columns()
        fitted = fit(self._measured())
        cost = self._table.left / self._plan.rounds
        while self._table.left > self._plan.rho / _FULL:
            cells = self._allowed(fitted.model.tree)
            if not cells:
                self._measure_columns_again()
                break
            last = self._table.left < 2 * cost
            cost = self._table.left if last else cost
            clique, sigma, before = self._round(fitted, cells, cost, last=last)
            if self._drop_prior():
                fitted = fit(self._measured())
                continue
            fitted = fit(self._measured(), fitted.thetas, iterations=60, tolerance=0.03)
            after = ModelMarginals(fitted.model)(clique)
            noise = MEAN_ABSOLUTE * sigma * self._possible.get(clique, after.size)
            if self._total * float(np.abs(after - before).sum()) <= noise:
                cost *= 2
        return self._table.groups, fit(self._measured(), fitted.thetas)

    def _measure_columns(self) -> None:
        """Measure each column, with most of the budget where they are mostly noise."""
        table, plan = self._table, self._plan
        sigma = plan.shift.noise(plan.rho * _COUNT)
        count = float(table.measure((), sigma))
        noise = column_noise(table.groups.sizes, _columns_budget(plan, table.groups.sizes, count), plan.shift)
        self._alone = measured_columns(table, noise, plan.base)
        self._take(*grouped_tables(self._alone, _MERGED))
        self._typical = _typical(self._cells)

    def _measure_columns_again(self) -> None:
        """Spend what is left on the tables of columns."""
        noise = column_noise(self._sizes, self._table.left, self._plan.shift)
        for clique, table in measured_columns(self._table, noise).tables.items():
            self._tables[clique] = self._tables[clique].combined(table)

    def _measured(self) -> Measurements:
        return Measurements(self._sizes, self._tables, self._total, self._base, self._trust)

    def _round(
        self, fitted: FittedModel, cells: Mapping[Clique, int], cost: Fraction, *, last: bool
    ) -> tuple[Clique, float, Array]:
        """Choose one of some tables and measure it; return its noise, and what the model predicted."""
        choice, moved = cost * _CHOICE, self._plan.shift.l2_squared

        def spent(clique: Clique) -> Fraction:
            factor = Fraction(1) if last else _factor(cells[clique], self._typical)
            return min(factor * (cost - choice), self._table.left - choice)

        marginals, candidates = ModelMarginals(fitted.model), list[Candidate]()
        costs = {clique: spent(clique) for clique in cells}
        for clique, rho in costs.items():
            noisy = min(self._possible.get(clique, cells[clique]), _PENALIZED)
            penalty = MEAN_ABSOLUTE * math.sqrt(moved / (2 * rho)) * noisy
            expected = fitted.total * marginals(clique)
            candidates.append(Candidate(clique, expected, penalty, self._plan.weights[clique]))
        picked = candidates[self._table.choose(candidates, choice)]
        noise = self._plan.shift.noise(costs[picked.clique])
        counts = self._table.measure(picked.clique, noise).astype(np.float64)
        measured = NoisyTable(counts, float(noise) ** 2)
        self._believe(picked, measured)
        there = self._tables.get(picked.clique)
        self._tables[picked.clique] = measured if there is None else there.combined(measured)
        return picked.clique, float(noise), picked.expected / fitted.total

    def _believe(self, picked: Candidate, table: NoisyTable) -> None:
        """Believe the prior as far as it has predicted the chosen tables so far."""
        if self._trust is not None:
            self._trust = self._trust.seen(
                picked.clique, picked.expected, table.counts, np.asarray(table.variances)
            )

    def _drop_prior(self) -> bool:
        """Go on without the prior where the tables refute it, as if it had not been there."""
        plan = self._plan
        if self._trust is None or self._trust.strength > 0 or plan.base is None:
            return False
        plain = replace(self._alone, base=plan.base.zeros, trust=None)
        self._take(*regrouped(plain, self._table.groups, self._tables, _MERGED))
        return True

    def _take(self, groups: CellGroups, measured: Measurements) -> None:
        """Count and model groups of cells from now on."""
        plan = self._plan
        self._table.merge(groups)
        self._tables, self._total, self._sizes = dict(measured.tables), measured.total, groups.sizes
        self._base, self._trust = measured.base, measured.trust
        self._cells = {clique: math.prod(groups.sizes[i] for i in clique) for clique in plan.weights}
        base = self._base
        self._possible = {} if base is None else {clique: base.count(clique) for clique in plan.weights}

    def _allowed(self, tree: JunctionTree) -> dict[Clique, int]:
        """Return the tables that leave the model small enough: as small as the part of the budget spent.

        What the base measure needs comes on top.
        """
        plan, base = self._plan, self._base
        scopes = (*self._tables, *(() if base is None else base.factors))
        limit = max(plan.max_cells * float(1 - self._table.left / plan.rho), 2 * sum(self._sizes))
        limit += 0 if base is None else base.cells

        def fits(clique: Clique, cells: int) -> bool:
            if tree.home(clique) is not None:
                return True
            return cells <= limit and tree_cells(self._sizes, (*scopes, clique)) <= limit

        return {clique: cells for clique, cells in self._cells.items() if fits(clique, cells)}


def round_noise(plan: RoundPlan, sizes: Sequence[int], rows: float | None) -> PublicNoise:
    """Return the noise of columns and of the first round, before anything is known of the table.

    Parameters
    ----------
    plan : RoundPlan
    sizes : sequence of int
        Cells of each column.
    rows : float, optional
        How many rows there are, about.

    Returns
    -------
    PublicNoise
    """
    budget = _columns_budget(plan, sizes, math.inf if rows is None else rows)
    columns = [float(each) for each in column_noise(sizes, budget, plan.shift)]
    rest = (plan.rho * (1 - _COUNT) - budget) * (1 - _CHOICE) / plan.rounds
    cells = {clique: math.prod(sizes[i] for i in clique) for clique in plan.weights}
    typical = _typical(cells)
    noise = {clique: float(plan.shift.noise(rest * _factor(size, typical))) for clique, size in cells.items()}
    return PublicNoise(columns, noise, plan.rounds if noise else 0)


def _columns_budget(plan: RoundPlan, sizes: Sequence[int], count: float) -> Fraction:
    """Return what the tables of columns get: most of the budget where they would be mostly noise."""
    rest = plan.rho * (1 - _COUNT)
    noise = column_noise(sizes, rest * _COLUMNS, plan.shift)
    errors = [float(each) * size for each, size in zip(noise, sizes, strict=True)]
    little = MEAN_ABSOLUTE * sum(errors) / len(sizes) / (2 * max(1.0, count)) > _NOISE
    return rest * (_COLUMNS_OF_LITTLE if little else _COLUMNS)


def _typical(cells: Mapping[Clique, int]) -> float:
    """Return the median size of the tables of the fewest columns."""
    fewest = min(map(len, cells), default=0)
    return median([size for clique, size in cells.items() if len(clique) == fewest] or [1])


def _factor(cells: int, typical: float) -> Fraction:
    """Return by how much a table's measurement is dearer than a typical one."""
    return Fraction(round(min(_MOST, max(_LEAST, (cells / typical) ** _GROWTH)) * _FULL), _FULL)
