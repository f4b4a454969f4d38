"""The mechanism with the least expected loss under a prior, by linear programming over a spanner."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.optimize import linprog
from scipy.sparse import coo_array, eye_array, kron

from sfumato import _check
from sfumato.location.metrics.coordinates import as_prior, distance_matrix
from sfumato.location.metrics.place_metric import PlaceMetric
from sfumato.location.metrics.spanner import greedy_spanner
from sfumato.location.places.interior_point import LinearProgram, dual_bound, solve
from sfumato.location.places.place_mechanism import PlaceMechanism, whole_weights

__all__ = ["OptimalMechanism", "optimal_mechanism"]

_MARGIN = 1e-6
_LARGEST = 400


@dataclass(frozen=True, slots=True, eq=False)
class OptimalMechanism:
    """A mechanism that is nearly optimal, and how near it is.

    Attributes
    ----------
    mechanism : PlaceMechanism
        The repaired and verified table.
    expected_loss : float
        Of the table, under the prior.
    lower_bound : float
        Of the expected loss of every mechanism that satisfies the constraints of the spanner; with stretch
        1 of every mechanism on these places with this epsilon.
    stretch : float
        Of the spanner.

    Examples
    --------
    >>> best = optimal_mechanism(PlaceMetric.grid(3, 3), epsilon=0.7)
    >>> best.lower_bound <= best.expected_loss <= best.lower_bound * 1.0001
    True
    """

    mechanism: PlaceMechanism
    expected_loss: float
    lower_bound: float
    stretch: float


def optimal_mechanism(
    metric: PlaceMetric,
    *,
    epsilon: float,
    prior: ArrayLike | None = None,
    loss: ArrayLike | None = None,
    stretch: float = 1.0,
    solver: Literal["interior-point", "highs"] = "interior-point",
) -> OptimalMechanism:
    """Return the mechanism with the least expected loss under a prior.

    Parameters
    ----------
    metric : PlaceMetric
        At most 400 places.
    epsilon : float
        Per unit of the metric.
    prior : array_like or None
        Public probability of each place; None is uniform. The guarantee holds whatever the prior is.
    loss : array_like of shape (n, n) or None
        Loss of report z at place x; None is the distance.
    stretch : float
        Of the spanner whose edges are constraints: 1 keeps all that matter, 1.05 far fewer, and costs some
        loss.
    solver : {"interior-point", "highs"}
        Our own method, which uses the blocks of this program, or HiGHS's, through scipy.

    Returns
    -------
    OptimalMechanism

    Raises
    ------
    ParameterError
        If a parameter breaks its rule, or the solver found no table.

    Notes
    -----
    Guarantee: epsilon per unit of the metric, for all pairs of places. The program has epsilon / stretch on
    the spanner's edges (Bordenabe, Chatzikokolakis, Palamidessi, CCS 2014). A solver's table breaks
    constraints by its tolerance; here each column is lowered to the largest one that keeps them, what rows
    then lack is shared out with a constant that keeps them too, and `PlaceMechanism` verifies the integers
    that are drawn from. The lower bound is that of the dual program, and holds whatever the solver did.

    Examples
    --------
    >>> best = optimal_mechanism(PlaceMetric.grid(3, 3, cell=100), epsilon=0.007, stretch=1.05)
    >>> best.mechanism.verified_epsilon <= 0.007
    True
    """
    _check.instance("metric", metric, PlaceMetric, "pass PlaceMetric.grid(...) or another one")
    epsilon = _check.positive("epsilon", epsilon, "pass a number per metre, such as math.log(4) / 200")
    size = metric.size
    if not 2 <= size <= _LARGEST:
        _check.refuse(
            "metric", f"have 2 to {_LARGEST} places", size, "merge cells, or use remap, which has no limit"
        )
    if epsilon * float(metric.distances.max()) > 40:
        _check.refuse(
            "epsilon", "be below 40 over the largest distance", epsilon, "use remap, or fewer places"
        )
    if solver not in ("interior-point", "highs"):
        _check.refuse("solver", "be 'interior-point' or 'highs'", solver, "leave it out")
    given = as_prior(prior, size)
    costs = metric.distances if loss is None else distance_matrix("loss", loss)
    if costs.shape != (size, size):
        _check.refuse_type(
            "loss", "have one row and column for each place", costs, "pass loss[place, report]"
        )
    few = greedy_spanner(metric, stretch=stretch)
    factors = np.exp(epsilon * (1 - _MARGIN) / few.stretch * few.lengths)
    program = LinearProgram(given[:, None] * costs, few.edges, factors)
    table, multipliers = solve(program) if solver == "interior-point" else _highs(program)
    repaired = _repaired(table, metric, epsilon * (1 - _MARGIN))
    mechanism = PlaceMechanism(metric, whole_weights(repaired), epsilon)
    # The bound is for the epsilon that was asked, which is larger than the program's by the margin.
    exact = LinearProgram(program.costs, few.edges, np.exp(epsilon / few.stretch * few.lengths) * (1 + 1e-10))
    return OptimalMechanism(
        mechanism,
        mechanism.expected_loss(given, costs),
        max(0.0, dual_bound(exact, multipliers)),
        few.stretch,
    )


def _highs(program: LinearProgram) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    n, m = program.costs.shape
    ratios = kron(program.constraints(), eye_array(m), format="csr")
    entries = (np.ones(n * m), (np.repeat(np.arange(n), m), np.arange(n * m)))
    rows = coo_array(entries, shape=(n, n * m)).tocsr()
    solver: Any = linprog
    found = solver(
        program.costs.ravel(),
        A_ub=-ratios,
        b_ub=np.zeros(ratios.shape[0]),
        A_eq=rows,
        b_eq=np.ones(n),
        method="highs-ipm",
    )
    if found.x is None:
        _check.refuse_state("solver", "have a solution", "HiGHS found none", "use solver='interior-point'")
    table: NDArray[np.float64] = found.x.reshape(n, m)
    multipliers: NDArray[np.float64] = np.maximum(-found.ineqlin.marginals, 0).reshape(-1, m)
    return table, multipliers


def _repaired(table: NDArray[np.float64], metric: PlaceMetric, epsilon: float) -> NDArray[np.float64]:
    """Return a table near a given one that keeps all ratios and has equal row sums.

    Notes
    -----
    ``min_y exp(epsilon d(x, y)) p(y)`` keeps all ratios of a column, as d is a metric, and is no more than
    p. What a row lacks of the longest one is shared out evenly, with a constant added to all rows: lack +
    constant changes between places by less than ``exp(epsilon d)`` if the constant is the largest lack over
    ``exp(epsilon d) - 1`` at least.
    """
    grown = np.exp(epsilon * metric.distances)
    positive = np.maximum(table, 0)
    lowered = np.stack([(grown * column).min(axis=1) for column in positive.T], axis=1)
    sums = lowered.sum(axis=1)
    lack = sums.max() - sums
    nearest = float(metric.distances[metric.distances > 0].min())
    constant = float(lack.max()) / np.expm1(epsilon * nearest) + 1e-9
    shared: NDArray[np.float64] = (lowered + (lack + constant)[:, None] / table.shape[1]) / (
        sums.max() + constant
    )
    return shared
