"""The maximum-entropy model of noisy tables, by a smooth convex dual."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, final

import numpy as np

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
    measured : Measurements, optional
        What it was fitted to; missing where a document of the first version did not have it.
    """

    model: Calibrated
    thetas: Mapping[Clique, Array]
    total: float
    duality_gap: float
    iterations: int
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
    The model is :math:`q(x) \propto \exp \sum_r \theta_r(x_r)`. With n rows, tables :math:`y_r` and slacks
    :math:`c_r` (a public multiple of the noise's variances) the dual
    :math:`n \log Z - \langle\theta, y\rangle + \sum_r \langle c_r, \theta_r^2\rangle/2` is minimized. It is
    smooth and strictly convex, and the dual of :math:`n\,\mathrm{KL}(q\,\|\,\mathrm{uniform}) + \sum_r
    \langle 1/c_r, (n q_r - y_r)^2\rangle/2`. Its gradient is :math:`g_r = n q_r - y_r + c_r\theta_r`. At any
    :math:`\theta` the two objectives differ by :math:`\sum_r \langle 1/c_r, g_r^2\rangle/2` exactly: add
    them, and insert :math:`\mathrm{KL} = \langle\theta, q\rangle - \log Z + \log|\mathcal X|`. This is the
    duality gap that is reported; by weak duality no distribution is better than the model by more.

    L-BFGS with the inverse of the diagonal :math:`n q(1 - q) + c` as its initial matrix.

    References
    ----------
    McKenna, Sheldon, Miklau, "Graphical-model based estimation and inference for differential privacy" (ICML
    2019), the model; Nocedal, Wright, "Numerical optimization" (2006), algorithm 7.4.
    """
    scopes = tuple(measured.tables)
    calibration = Calibration(junction_tree(measured.sizes, scopes), scopes)
    problem = _Dual(measured, calibration)
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
    return FittedModel(point.model, thetas, problem.total, gap, done, measured)


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
    return Calibration(fitted.model.tree, scopes)([*fitted.thetas.values(), *logs.values()])


@final
@dataclass(frozen=True, slots=True, eq=False)
class _Point:
    x: Array
    value: float
    gradient: Array
    diagonal: Array
    model: Calibrated

    def near(self, tolerance: float) -> bool:
        return float(np.mean(self.gradient**2 / self.diagonal)) < tolerance**2


class _Dual:
    """The dual of some measurements, as a function of all log-weights in one vector."""

    def __init__(self, measured: Measurements, calibration: Calibration) -> None:
        self._calibration, tables = calibration, measured.tables.values()
        self._shapes = [table.counts.shape for table in tables]
        self._cuts = np.cumsum([table.counts.size for table in tables])[:-1].tolist()
        self._counts = np.concatenate([np.ravel(table.counts) for table in tables])
        self.slack = np.concatenate(
            [
                np.ravel(table.variances) * _SLACK[len(scope) > 1]
                for scope, table in zip(measured.tables, tables, strict=True)
            ]
        )
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
        return _Point(x, float(value), gradient, self.total * q * (1 - q) + self.slack, model)


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
