"""The largest welfare of an allocation without privacy, and an upper bound on it for large markets."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy import optimize, sparse

from sfumato import _check
from sfumato.games.arrays import as_numbers
from sfumato.games.joint.allocation import clipped
from sfumato.games.joint.valuations import Demand, Valuation, checked_types, checked_valuations

__all__ = ["optimal_welfare", "welfare_ceiling"]

_Floats: TypeAlias = NDArray[np.float64]


def optimal_welfare(
    values: Any,
    supply: Sequence[int],
    *,
    capacity: int = 1,
    valuations: Sequence[Valuation] | None = None,
) -> float:
    """Return the largest welfare of any allocation, without privacy: for the curator.

    Parameters
    ----------
    values : array of shape (agents, goods), or of shape (agents,) with ``valuations``
        The agents' reports.
    supply : sequence of int
        Copies of each good.
    capacity : int
        How many different goods an agent can use.
    valuations : sequence of Valuation, optional
        As in `PrivateAllocation`.

    Returns
    -------
    float
        It depends on all values: private.

    Notes
    -----
    A transportation problem in which each agent takes each good at most once: a linear program with whole
    vertices, solved by HiGHS to about 1e-7 of itself. With ``valuations`` it is the program over sets of
    goods, which has a whole optimum for gross substitutes.

    References
    ----------
    Bikhchandani, Mamer (1997), "Competitive equilibrium in an exchange economy with indivisibilities".

    Examples
    --------
    >>> round(optimal_welfare([[1.0, 0.75], [0.5, 0.125]], (1, 1)), 6)
    1.25
    """
    if valuations is not None:
        return _optimum_of_sets(values, supply, checked_valuations(valuations, len(supply)))
    table, copies = _market(values, supply)
    agents, goods = table.shape
    per_agent = sparse.kron(sparse.eye(agents), np.ones((1, goods)))
    per_good = sparse.kron(np.ones((1, agents)), sparse.eye(goods))
    limits = np.concatenate([np.full(agents, capacity), copies])
    matrix = sparse.vstack([per_agent, per_good]).tocsr()
    found: Any = optimize.linprog(-table.ravel(), A_ub=matrix, b_ub=limits, bounds=(0, 1), method="highs")  # type: ignore[call-overload]
    return float(-found.fun)


def _market(values: Any, supply: Sequence[int]) -> tuple[_Floats, _Floats]:
    """Return the clipped values of one agent or more, and the copies of each good, or refuse them."""
    remedy = "pass a row of values for each agent, and the copies of each good"
    table, copies = as_numbers("values", values, remedy), _copies(supply)
    if table.ndim != 2 or not table.size or copies.shape != table.shape[1:]:
        rule = f"have a row for each agent, of {len(copies)} goods"
        _check.refuse_state("values", rule, f"the shape is {table.shape}", remedy)
    return clipped(table), copies


def _copies(supply: Sequence[int]) -> _Floats:
    """Return the copies of each good, or refuse what is no list of them."""
    remedy = "pass the copies of each good"
    copies = as_numbers("supply", supply, remedy)
    if copies.ndim != 1 or not (copies >= 0).all():
        _check.refuse_type("supply", "be a list of non-negative numbers", copies, remedy)
    return copies


def _optimum_of_sets(reports: Any, supply: Sequence[int], valuations: Sequence[Valuation]) -> float:
    types, copies = checked_types(reports, len(reports), len(valuations)), _copies(supply)
    kinds, sets = len(valuations), len(valuations[0].values)
    members = np.arange(sets) >> np.arange(len(supply))[:, None] & 1
    found: Any = optimize.linprog(
        -np.concatenate([each.values for each in valuations]),
        A_ub=sparse.csr_array(np.tile(members, kinds)),
        b_ub=copies,
        A_eq=sparse.csr_array(sparse.kron(sparse.eye(kinds), np.ones((1, sets)))),
        b_eq=np.bincount(types, minlength=kinds),
        method="highs",
    )  # type: ignore[call-overload]
    return float(-found.fun)


def welfare_ceiling(
    values: Any,
    supply: Sequence[int],
    prices: Any,
    *,
    capacity: int = 1,
    valuations: Sequence[Valuation] | None = None,
) -> float:
    r"""Return an upper bound on the welfare of every allocation, from any prices: for the curator.

    Parameters
    ----------
    values : array of shape (agents, goods), or of shape (agents,) with ``valuations``
        The agents' reports.
    supply : sequence of int
        Copies of each good.
    prices : array of shape (goods,)
        Non-negative.
    capacity : int
        How many different goods an agent can use.
    valuations : sequence of Valuation, optional
        As in `PrivateAllocation`.

    Returns
    -------
    float
        It depends on all values: private. For large markets, where `optimal_welfare` takes long.

    Notes
    -----
    Weak duality: an agent's value is at most the price of what it has and the best gain that it could have,
    :math:`\sum_j p_j s_j + \sum_i \max_S \sum_{j \in S} (v_{ij} - p_j)`.

    Examples
    --------
    >>> welfare_ceiling([[1.0, 0.75], [0.5, 0.125]], (1, 1), [0.25, 0.0])
    1.25
    """
    costs = as_numbers("prices", prices, "pass one for each good")
    goods = len(supply)
    if costs.shape != (goods,) or not (costs >= 0).all():
        _check.refuse_type("prices", "be non-negative numbers", costs, "pass one for each good")
    if valuations is not None:
        types = checked_types(values, len(values), len(valuations))
        best = Demand(checked_valuations(valuations, goods)).surplus(types, costs)
        copies = _copies(supply)
    else:
        table, copies = _market(values, supply)
        best = np.sort(np.maximum(table - costs, 0.0), axis=1)[:, -capacity:]
    return float(costs @ copies + best.sum())
