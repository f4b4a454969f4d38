"""How much the records at a quilt say about one record: the max-influence, for chains and their classes.

A quilt of node i in a chain is the pair of nodes i - a and i + b, one of them, or none. Given the quilt, what
lies beyond it is independent of record i. The influence is the largest log-ratio of the quilt's probabilities
under two values of the record, over the class.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Final, final

import numpy as np
from numpy.typing import NDArray

from sfumato import _check
from sfumato.pufferfish.chains.chain_classes import MarkovChainClass, MarkovChainInterval
from sfumato.pufferfish.chains.markov_chain import MarkovChain

__all__ = ["ChainModel", "InfluenceTable", "influence_table", "max_influence"]

ChainModel = MarkovChain | MarkovChainClass | MarkovChainInterval | Sequence[MarkovChain]

_ROUNDING: Final = 2.0**-53
_TINY: Final = 1e-280
_ENDLESS: Final = 1e300  # stands for an infinite log-ratio, so that minus infinity may be added to it
Array = NDArray[np.float64]


class InfluenceTable(ABC):
    """Log-ratios from which the influence of every quilt follows: ``max(offset + left[a] + right[b])``.

    The maximum runs over columns, one for each ordered pair of a record's values (and each chain of a finite
    class). All entries are rounded up.
    """

    columns: int = 1
    stationary: bool = True
    partial: int = 0
    """Beyond so many nodes, every state is possible or counts as such."""

    @abstractmethod
    def left(self, reach: int) -> Array:
        """Return the rows ``a = 1..reach`` of the log-ratios at the node a steps before, without offset."""

    @abstractmethod
    def right(self, reach: int) -> Array:
        """Return the rows ``b = 1..reach`` of the log-ratios at the node b steps after."""

    def offsets(self, nodes: int) -> Array:
        """Return a row of offsets for each of the first nodes; minus infinity where a value is impossible."""
        return np.zeros((nodes, self.columns))

    def tail(self, after: int) -> Array:
        """Return one row of offsets that holds for every node beyond the first ``after``."""
        return np.zeros(self.columns)

    def left_of(self, node: int, table: Array) -> Array:
        """Return the left rows for one node: the common ones, unless some states cannot be reached there."""
        del node
        return table


@final
class _ApproximateTable(InfluenceTable):
    """Bounds that depend on the distance alone, for a class known by pi_min and the eigengap."""

    def __init__(self, model: MarkovChainClass) -> None:
        self._model = model

    def _bound(self, steps: int) -> float:
        deviation = self._model.deviation(steps)
        return _ENDLESS if deviation >= 1 else float(np.log((1 + deviation) / (1 - deviation))) * (1 + 1e-12)

    def left(self, reach: int) -> Array:
        return 2 * self.right(reach)

    def right(self, reach: int) -> Array:
        return np.array([[self._bound(steps)] for steps in range(1, reach + 1)])


@final
class _IntervalTable(InfluenceTable):
    """Bounds by contraction, for a class known by intervals of its transitions."""

    def __init__(self, model: MarkovChainInterval) -> None:
        self._model = model

    def left(self, reach: int) -> Array:
        return self.right(reach)

    def right(self, reach: int) -> Array:
        return np.array([[self._model.distance(steps)] for steps in range(1, reach + 1)])


@final
class _ChainTable(InfluenceTable):
    """Exact log-ratios of one chain."""

    def __init__(self, chain: MarkovChain, *, reachable_only: bool) -> None:
        self._chain, self._reachable_only = chain, reachable_only
        self._first, self._second = np.nonzero(~np.eye(chain.states, dtype=bool))
        self.columns = self._first.size
        self.stationary = chain.start is None
        self._powers: list[Array] = [np.eye(chain.states)]
        self._possible: list[NDArray[np.bool_]] = [np.eye(chain.states, dtype=bool)]
        self._left, self._right = np.zeros((0, self.columns)), np.zeros((0, self.columns))
        self._supports: list[NDArray[np.bool_]] = []

    def left(self, reach: int) -> Array:
        self._extend(reach)
        return self._left[:reach]

    def right(self, reach: int) -> Array:
        self._extend(reach)
        return self._right[:reach]

    def offsets(self, nodes: int) -> Array:
        if self._chain.start is None:
            marginal, possible = self._chain.stationary, np.ones(self._chain.states, dtype=bool)
            row = self._offset(marginal, possible, self._chain.states**2)
            return np.broadcast_to(row, (nodes, self.columns))
        step, marginal, possible = self._chain.transition, self._chain.start, self._chain.start > 0
        reaches = step > 0
        rows = np.empty((nodes, self.columns))
        self._supports = []
        for node in range(nodes):
            rows[node] = self._offset(marginal, possible, node + 1)
            self._supports.append(possible)
            if not possible.all() and self._reachable_only:
                self.partial = node + 1
            marginal, possible = marginal @ step, (possible[:, None] & reaches).any(axis=0)
        return rows

    def tail(self, after: int) -> Array:
        if self._chain.start is None:
            return np.array(self.offsets(1)[0])
        # Node i > after has the marginal p P^after, a mixture of rows: p_i(y) / p_i(x) is at most the largest
        # ratio P^after(u, y) / P^after(u, x).
        power, possible = self._power(after)
        return _largest(power, possible, self._second, self._first, self._margin(after))

    def left_of(self, node: int, table: Array) -> Array:
        special = [a for a in range(1, min(len(table), node - 1) + 1) if node - a <= self.partial]
        if not special:
            return table
        rows = np.array(table)
        for a in special:
            states = self._supports[node - a - 1]
            power, possible = self._powers[a][states], self._possible[a][states]
            rows[a - 1] = _largest(power, possible, self._first, self._second, self._margin(a))
        return rows

    def _extend(self, reach: int) -> None:
        start = len(self._left)
        if reach <= start:
            return
        # Only where unreachable states are left out are the powers read again.
        lefts, rights = [], []
        power, possible = self._powers[-1], self._possible[-1]
        reaches = self._chain.transition > 0
        for steps in range(start + 1, reach + 1):
            power = power @ self._chain.transition
            possible = (possible.astype(np.float64) @ reaches.astype(np.float64)) > 0
            margin = self._margin(steps)
            lefts.append(_largest(power, possible, self._first, self._second, margin))
            rights.append(_largest(power.T, possible.T, self._first, self._second, margin))
            if self._reachable_only:
                self._powers.append(power)
                self._possible.append(possible)
        if not self._reachable_only:
            self._powers, self._possible = [power], [possible]
        self._left = np.concatenate([self._left, np.array(lefts)])
        self._right = np.concatenate([self._right, np.array(rights)])

    def _power(self, steps: int) -> tuple[Array, NDArray[np.bool_]]:
        """Return a power by squaring; ``steps`` is a power of two."""
        power, possible = self._chain.transition, self._chain.transition > 0
        while steps > 1:
            power, possible = power @ power, (possible.astype(float) @ possible.astype(float)) > 0
            steps //= 2
        return power, possible

    def _margin(self, steps: int) -> float:
        # Sums of non-negative products err by a relative (states + 1) roundings a step, whatever their order;
        # twice that for the ratio, doubled for the row sums and the logarithms.
        return 4 * (self._chain.states + 4) * (steps + 1) * _ROUNDING + 1e-14

    def _offset(self, marginal: Array, possible: NDArray[np.bool_], steps: int) -> Array:
        upper = _above(np.log(np.maximum(marginal, _TINY)))
        with np.errstate(divide="ignore"):
            lower = _below(np.log(np.where(marginal >= _TINY, marginal, 0.0)))
        row = np.minimum(upper[self._second] - lower[self._first] + self._margin(steps), _ENDLESS)
        return np.where(possible[self._first] & possible[self._second], row, -np.inf)


@final
class _UnionTable(InfluenceTable):
    """A finite class: the columns of all its chains side by side."""

    def __init__(self, parts: Sequence[InfluenceTable]) -> None:
        self._parts = parts
        self.columns = sum(part.columns for part in parts)
        self.stationary = all(part.stationary for part in parts)

    @property
    def partial(self) -> int:  # type: ignore[override]  # settled by offsets
        return max(part.partial for part in self._parts)

    def left(self, reach: int) -> Array:
        return np.concatenate([part.left(reach) for part in self._parts], axis=1)

    def right(self, reach: int) -> Array:
        return np.concatenate([part.right(reach) for part in self._parts], axis=1)

    def offsets(self, nodes: int) -> Array:
        return np.concatenate([part.offsets(nodes) for part in self._parts], axis=1)

    def tail(self, after: int) -> Array:
        return np.concatenate([part.tail(after) for part in self._parts])

    def left_of(self, node: int, table: Array) -> Array:
        ends = np.cumsum([part.columns for part in self._parts])[:-1]
        pieces = zip(self._parts, np.split(table, ends, axis=1), strict=True)
        return np.concatenate([part.left_of(node, piece) for part, piece in pieces], axis=1)


def _above(logs: Array) -> Array:
    """Return logarithms moved up by more than they err, and than later sums with them err."""
    return np.asarray(logs + 8 * _ROUNDING * np.abs(logs))


def _below(logs: Array) -> Array:
    return -_above(-logs)


def _largest(
    power: Array,
    possible: NDArray[np.bool_],
    first: NDArray[np.intp],
    second: NDArray[np.intp],
    margin: float,
) -> Array:
    """Return the largest log-ratio of two columns; rows where both are impossible do not count."""
    upper = np.where(possible, _above(np.log(np.maximum(power, _TINY))), -np.inf)
    with np.errstate(divide="ignore", invalid="ignore"):
        lower = np.where(possible & (power >= _TINY), _below(np.log(power)), -np.inf)
        ratio = upper[:, :, None] - lower[:, None, :]
    ratio[np.isnan(ratio)] = -np.inf
    return np.asarray(np.minimum(ratio.max(axis=0)[first, second] + margin, _ENDLESS))


def influence_table(model: ChainModel, *, reachable_only: bool = False) -> InfluenceTable:
    """Return the table of a model, or refuse what is none.

    Parameters
    ----------
    model : MarkovChain, sequence of MarkovChain, MarkovChainClass or MarkovChainInterval
    reachable_only : bool
        As in `max_influence`.

    Returns
    -------
    InfluenceTable
    """
    if isinstance(model, MarkovChainClass):
        return _ApproximateTable(model)
    if isinstance(model, MarkovChainInterval):
        return _IntervalTable(model)
    chains = [model] if isinstance(model, MarkovChain) else list(model)
    if not chains:
        _check.refuse_state("chain", "hold a chain", "the class is empty", "pass at least one MarkovChain")
    for chain in chains:
        _check.instance("chain", chain, MarkovChain, "pass a MarkovChain, several, or a class of them")
    if len({chain.states for chain in chains}) > 1:
        _check.refuse_state("chain", "have one number of states", "two chains differ", "add unused states")
    parts = [_ChainTable(chain, reachable_only=reachable_only) for chain in chains]
    return parts[0] if len(parts) == 1 else _UnionTable(parts)


def max_influence(
    chain: ChainModel,
    *,
    length: int,
    node: int,
    left: int | None = None,
    right: int | None = None,
    reachable_only: bool = False,
) -> float:
    """Return the max-influence of one node on a quilt of nodes, rounded up.

    Parameters
    ----------
    chain : MarkovChain, sequence of MarkovChain, MarkovChainClass or MarkovChainInterval
    length : int
        How many records the sequence has.
    node : int
        The protected record, from 1 on.
    left, right : int, optional
        The quilt's nodes before and after it; without either the quilt is empty, and nothing leaks.
    reachable_only : bool
        Whether states that a node of the quilt cannot take are left out, as the definition has it; the
        paper's algorithm goes over all of them, which is never smaller.

    Returns
    -------
    float
        ``max log P(quilt | record = x) / P(quilt | record = y)`` over the class, over all values of the
        quilt and all x and y that the record can take; for classes known by bounds, an upper bound on it.

    Raises
    ------
    ParameterError
        If the nodes are not in the sequence, or not in that order.

    References
    ----------
    Song, Wang, Chaudhuri, "Pufferfish privacy mechanisms for correlated data" (SIGMOD 2017), Definition 4.1.

    Examples
    --------
    >>> steady = MarkovChain(transition=[[0.9, 0.1], [0.4, 0.6]], start=[0.8, 0.2])
    >>> round(max_influence(steady, length=12, node=6, left=1, right=11), 4)
    0.2991
    """
    length = _check.integer("length", length, minimum=1)
    node = _check.integer("node", node, minimum=1)
    before = node if left is None else node - _check.integer("left", left, minimum=1)
    after = node if right is None else _check.integer("right", right, minimum=1) - node
    if node > length or before < 1 or after < 1 or (right is not None and right > length):
        rule = "have 1 <= left < node < right <= length"
        _check.refuse_state("the quilt", rule, "it has not", "number the records from 1 on")
    table = influence_table(chain, reachable_only=reachable_only)
    offset = table.offsets(node)[-1]
    total = np.zeros(table.columns)
    if right is not None:
        total = total + table.right(after)[after - 1]
    if left is not None:
        total = total + offset + table.left_of(node, table.left(before))[before - 1]
    total = np.where(np.isneginf(offset), -np.inf, total)
    found = float(total.max(initial=0.0))
    return math.inf if found >= _ENDLESS else found
