"""The maximum-entropy model of noisy tables, by a smooth convex dual."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, final

import numpy as np

from sfumato.synthetic.graphical_model.base_measure import Cells
from sfumato.synthetic.graphical_model.calibration import Array, Calibrated, Calibration
from sfumato.synthetic.graphical_model.junction_tree import junction_tree
from sfumato.synthetic.graphical_model.lbfgs import Curvature
from sfumato.synthetic.graphical_model.measurements import Measurements
from sfumato.synthetic.marginals.workload import Clique

__all__ = ["FittedModel", "conditioned", "fit"]

_SLACK: Final = (0.01, 0.02)  # of tables of one column and of several, in units of the noise's variance
_FIRST, _STEP = 5.0, 20.0
_DECREASE: Final = 1e-4


@final
@dataclass(frozen=True, slots=True, eq=False)
class FittedModel:
    """A fitted distribution.

    Parameters
    ----------
    model : Calibrated
        Probabilities of the cliques' cells.
    thetas : mapping of tuple of int to array
        Log-weights by measured table.
    total : float
        The number of rows that probabilities are multiplied by, at least 1.
    duality_gap : float
        By how much the fit's objective exceeds its minimum at most, in nats; see `fit`.
    iterations : int
    base : mapping of tuple of int to array
        Public log-weights that ``thetas`` are added to; none unless given.
    prior_strength : float
        What a prior among them is weighed by; 0 where there is none.
    measured : Measurements, optional
        What it was fitted to; missing where a document of the first version did not have it.
    """

    model: Calibrated
    thetas: Mapping[Clique, Array]
    total: float
    duality_gap: float
    iterations: int
    base: Mapping[Clique, Array] = field(default_factory=dict)
    prior_strength: float = 0.0
    measured: Measurements | None = None


def fit(
    measured: Measurements,
    start: Mapping[Clique, Array] | None = None,
    *,
    iterations: int = 200,
    tolerance: float = 0.01,
) -> FittedModel:
    r"""Fit the maximum-entropy model to noisy tables.

    Parameters
    ----------
    measured : Measurements
        Released values: nothing else decides on the iterations or on what is returned.
    start : mapping of tuple of int to array, optional
        Log-weights to begin with; zeros where a table has none.
    iterations : int
        The most.
    tolerance : float
        Of the root of the mean squared gradient, in units of the curvature's root.

    Returns
    -------
    FittedModel

    Notes
    -----
    The model is :math:`q(x) \propto b(x)\exp \sum_r \theta_r(x_r)` for the public base measure b, which is 1
    unless one is given. With n rows, tables :math:`y_r` and slacks :math:`c_r` (a public multiple of the
    noise's variances) the dual :math:`n \log Z - \langle\theta, y\rangle + \sum_r \langle c_r,
    \theta_r^2\rangle/2` is minimized. It is smooth and strictly convex, and the dual of
    :math:`n\,\mathrm{KL}(q\,\|\,b) + \sum_r \langle 1/c_r, (n q_r - y_r)^2\rangle/2`. Its gradient is
    :math:`g_r = n q_r - y_r + c_r\theta_r`. At any :math:`\theta` the two objectives differ by
    :math:`\sum_r \langle 1/c_r, g_r^2\rangle/2` exactly: add them, and insert :math:`\mathrm{KL} =
    \langle\theta, q\rangle - \log Z`, up to the constant :math:`\log \sum b`. This is the duality gap that
    is reported; by weak duality no distribution is better than the model by more.

    Where b is a public prior, slacks are the variances times its strengths (`PriorTrust`) if these are more.

    Where b is 0 no distribution has mass, and the exact counts are 0: the sums of the dual run over the cells
    that b leaves possible, in view of all its factors together. The noise of the other cells is not read.

    L-BFGS with the inverse of the diagonal :math:`n q(1 - q) + c` as its initial matrix.

    References
    ----------
    McKenna, Sheldon, Miklau, "Graphical-model based estimation and inference for differential privacy" (ICML
    2019), the model; Nocedal, Wright, "Numerical optimization" (2006), algorithm 7.4.
    """
    scopes, base = tuple(measured.tables), measured.base
    factors = {} if base is None else base.factors
    tree = junction_tree(measured.sizes, (*scopes, *factors))
    possible = None if base is None else base.possible(tree, scopes)
    problem = _Dual(measured, Calibration(tree, scopes, factors), possible)
    given = start or {}
    parts = [given.get(scope, np.zeros_like(measured.tables[scope].counts)) for scope in scopes]
    x = np.concatenate([np.ravel(part) for part in parts])
    point, curvature = problem.at(x), Curvature()
    done = 0
    while done < iterations and not point.near(tolerance):
        following = _line_search(problem, point, curvature)
        if following is None:
            if not curvature:
                break
            curvature = Curvature()
            continue
        curvature.append(following.x - point.x, following.gradient - point.gradient)
        point = following
        done += 1
    thetas = dict(zip(scopes, problem.split(point.x), strict=True))
    gap = float((point.gradient**2 / problem.slack).sum() / 2)
    return FittedModel(point.model, thetas, problem.total, gap, done, factors, problem.strength, measured)


def conditioned(fitted: FittedModel, parts: Mapping[int, Array]) -> Calibrated:
    """Return a model's distribution given what some columns are.

    Parameters
    ----------
    fitted : FittedModel
    parts : mapping of int to array
        By column what the probability of each of its cells is multiplied by, such as 1 and 0.

    Returns
    -------
    Calibrated
        Its log-normalizer is minus infinity where that leaves nothing.
    """
    with np.errstate(divide="ignore"):
        logs = {(column,): np.log(part) for column, part in parts.items()}
    scopes = [*fitted.thetas, *logs]
    return Calibration(fitted.model.tree, scopes, fitted.base)([*fitted.thetas.values(), *logs.values()])


@final
@dataclass(frozen=True, slots=True, eq=False)
class _Point:
    x: Array
    value: float
    gradient: Array
    diagonal: Array
    model: Calibrated
    cells: int

    def near(self, tolerance: float) -> bool:
        return float(np.sum(self.gradient**2 / self.diagonal)) < tolerance**2 * self.cells


class _Dual:
    """The dual of some measurements, as a function of all log-weights in one vector."""

    def __init__(
        self, measured: Measurements, calibration: Calibration, possible: Sequence[Cells] | None
    ) -> None:
        self._calibration, tables = calibration, measured.tables.values()
        self._shapes = [table.counts.shape for table in tables]
        self._cuts = np.cumsum([table.counts.size for table in tables])[:-1].tolist()
        self._counts = np.concatenate([np.ravel(table.counts) for table in tables])
        trust = measured.trust
        self.strength = 0.0 if trust is None else trust.strength
        columns, others = ({}, 0.0) if trust is None else trust.strengths()
        self.slack = np.concatenate(
            [
                np.ravel(table.variances) * max(_SLACK[len(scope) > 1], columns.get(scope, others))
                for scope, table in zip(measured.tables, tables, strict=True)
            ]
        )
        self._cells = self._counts.size
        if possible is not None:  # elsewhere log-weights stay 0, as their gradient is 0
            inside = np.concatenate([np.ravel(each) for each in possible])
            self._counts[~inside] = 0.0
            self._cells = max(1, int(inside.sum()))
        self.total = max(1.0, measured.total)

    def split(self, x: Array) -> list[Array]:
        """Return a vector as tables."""
        parts = np.split(x, self._cuts)
        return [part.reshape(shape) for part, shape in zip(parts, self._shapes, strict=True)]

    def at(self, x: Array) -> _Point:
        """Return value and gradient."""
        model = self._calibration(self.split(x))
        q = np.concatenate([np.ravel(table) for table in self._calibration.tables(model)])
        value = self.total * model.log_normalizer - x @ self._counts + 0.5 * (self.slack * x) @ x
        gradient = self.total * q - self._counts + self.slack * x
        return _Point(x, float(value), gradient, self.total * q * (1 - q) + self.slack, model, self._cells)


def _line_search(problem: _Dual, point: _Point, curvature: Curvature) -> _Point | None:
    """Return the next point, by halving the step until the value falls enough; None where it does not."""
    direction = -curvature.solve(point.gradient, point.diagonal)
    slope = float(point.gradient @ direction)
    if slope >= 0:
        return None
    largest = float(np.abs(direction).max())
    step = min(1.0, (_STEP if curvature else _FIRST) / largest)
    while step > 1e-6:
        found = problem.at(point.x + step * direction)
        if found.value <= point.value + _DECREASE * step * slope:
            return found
        step /= 2
    return None
