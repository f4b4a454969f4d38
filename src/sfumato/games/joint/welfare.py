"""The largest welfare of an allocation without privacy, and an upper bound on it for large markets."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy import optimize, sparse

from sfumato import _check
from sfumato.games.game import as_floats
from sfumato.games.joint.allocation import clipped

__all__ = ["optimal_welfare", "welfare_ceiling"]

_Floats: TypeAlias = NDArray[np.float64]


def optimal_welfare(values: Any, supply: Sequence[int], *, capacity: int = 1) -> float:
    """Return the largest welfare of any allocation, without privacy: for the curator.

    Parameters
    ----------
    values : array of shape (agents, goods)
    supply : sequence of int
        Copies of each good.
    capacity : int
        How many different goods an agent can use.

    Returns
    -------
    float
        It depends on all values: private.

    Notes
    -----
    A transportation problem in which each agent takes each good at most once: a linear program with whole
    vertices, solved by HiGHS to about 1e-7 of itself.

    Examples
    --------
    >>> round(optimal_welfare([[1.0, 0.75], [0.5, 0.125]], (1, 1)), 6)
    1.25
    """
    table, copies = _market(values, supply)
    agents, goods = table.shape
    per_agent = sparse.kron(sparse.eye(agents), np.ones((1, goods)))
    per_good = sparse.kron(np.ones((1, agents)), sparse.eye(goods))
    limits = np.concatenate([np.full(agents, capacity), copies])
    matrix = sparse.vstack([per_agent, per_good]).tocsr()
    found: Any = optimize.linprog(-table.ravel(), A_ub=matrix, b_ub=limits, bounds=(0, 1), method="highs")  # type: ignore[call-overload]
    return float(-found.fun)


def welfare_ceiling(values: Any, supply: Sequence[int], prices: Any, *, capacity: int = 1) -> float:
    r"""Return an upper bound on the welfare of every allocation, from any prices: for the curator.

    Parameters
    ----------
    values : array of shape (agents, goods)
    supply : sequence of int
        Copies of each good.
    prices : array of shape (goods,)
        Non-negative.
    capacity : int
        How many different goods an agent can use.

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
    table, copies = _market(values, supply)
    costs = np.asarray(prices, np.float64)
    if costs.shape != table.shape[1:] or not (costs >= 0).all():
        _check.refuse_type("prices", "be non-negative numbers", costs, "pass one for each good")
    gains = np.maximum(table - costs, 0.0)
    best = np.sort(gains, axis=1)[:, -capacity:]
    return float(costs @ copies + best.sum())


def _market(values: Any, supply: Any) -> tuple[_Floats, _Floats]:
    """Return clipped values and the copies of each good, or refuse what does not fit."""
    remedy = "pass a row of values for each agent, and the copies of each good"
    table, copies = as_floats("values", values, remedy), as_floats("supply", supply, remedy)
    if table.ndim != 2 or not table.size or copies.shape != table.shape[1:] or not (copies >= 0).all():
        _check.refuse_type("values", "have an axis of agents and one of the goods supplied", table, remedy)
    return clipped(table), copies
