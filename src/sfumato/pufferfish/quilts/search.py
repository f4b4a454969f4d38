"""The search for each record's active quilt: the one that needs the least noise.

Nodes whose tables agree are searched once: a long chain is its first nodes, one block, and its last nodes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple, final

import numpy as np
from numpy.typing import NDArray

from sfumato.pufferfish.chains.quilt_run import QuiltRun
from sfumato.pufferfish.quilts.influence import InfluenceTable

__all__ = ["QuiltSearch"]

_WHOLE: Final = 2_000_000  # how many influences are computed in one step
_CELLS: Final = 8_000_000  # the largest table that is made: it bounds the reach of the search
_OUTWARD: Final = 1 + 2.0**-48
Array = NDArray[np.float64]


class _Node(NamedTuple):
    first: int
    last: int
    row: int


@final
@dataclass(slots=True)
class QuiltSearch:
    """The search over the quilts of one chain.

    Parameters
    ----------
    table : InfluenceTable
    length : int
    epsilon : float
    cost : tuple of two floats
        What a move of n records may shift the answer by is ``cost[0] n + cost[1]``.
    """

    table: InfluenceTable
    length: int
    epsilon: float
    cost: tuple[float, float]

    def solve(self) -> tuple[float, tuple[QuiltRun, ...]]:
        """Return the scale of the noise, rounded up, and every node's active quilt."""
        most = max(1, min(self.length - 1, _CELLS // max(1, self.table.columns)))
        reach = min(most, 32)
        while True:
            scale, runs = _Round(self, reach).solve()
            # A quilt around n records costs at least cost(n) / epsilon: none that reaches farther is better.
            needed = (scale * self.epsilon - self.cost[1]) / self.cost[0]
            if reach >= most or reach >= needed:
                return scale, runs
            reach = int(min(most, 2 * reach, needed + 1))

    def price(self, runs: tuple[QuiltRun, ...]) -> float:
        """Return the scale that given quilts need, infinite where one leaks epsilon or more."""
        reach = max([1, *(max(run.left, run.right) for run in runs)])
        return _Round(self, reach, [run.first for run in runs]).price(runs)

    def shift(self, size: NDArray[np.int64] | int) -> NDArray[np.float64]:
        """Return how far so many records move the answer."""
        return np.asarray(self.cost[0] * np.asarray(size, dtype=np.float64) + self.cost[1])


class _Round:
    """One round of the search, at one reach."""

    def __init__(self, search: QuiltSearch, reach: int, cuts: Sequence[int] = ()) -> None:
        self.search, self.reach = search, reach
        table, length = search.table, search.length
        exact = 1 if table.stationary else (4096 if table.columns <= 64 else 1024)
        self.left, self.right = table.left(reach), table.right(reach)
        if length <= max(exact, 2 * reach + 1) or (not table.stationary and length <= exact + reach):
            singles, block = length, False
        else:
            # A power of two, so that the tail's power is had by squaring.
            singles, block = max(exact, 1 << reach.bit_length()), True
            block = singles + reach < length
            singles = singles if block else length
        self.rows = table.offsets(1 if table.stationary else singles)
        self.nodes = [_Node(i, i, 0 if table.stationary else i - 1) for i in range(1, singles + 1)]
        if block:
            if not table.stationary:
                self.rows = np.concatenate([self.rows, table.tail(singles)[None]])
            last = len(self.rows) - 1
            starts = [singles + 1, *(cut for cut in cuts if singles + 1 < cut <= length - reach)]
            ends = [*(start - 1 for start in starts[1:]), length - reach]
            self.nodes += [_Node(*ends_of, last) for ends_of in zip(starts, ends, strict=True)]
            self.nodes += [_Node(i, i, last) for i in range(length - reach + 1, length + 1)]
        self.first = np.array([node.first for node in self.nodes])
        self.last = np.array([node.last for node in self.nodes])
        self.row = np.array([node.row for node in self.nodes])
        self._alone = self.first == self.last

    def solve(self) -> tuple[float, tuple[QuiltRun, ...]]:
        """Return the largest of the nodes' least scales, and a quilt for each node that needs no more."""
        count = len(self.nodes)
        known = np.full(count, float(self.search.shift(self.search.length)) / self.search.epsilon)
        choice = np.zeros((count, 2), dtype=np.int64)
        known[np.isneginf(self.rows[self.row]).all(axis=1)] = 0.0  # a record that can take one value only
        searched = np.zeros(count, dtype=bool)
        while not searched[worst := int(np.argmax(known))]:
            searched[worst] = True
            quilt = self._best(worst, float(known[worst]))
            if quilt is None:
                continue
            values = self._values(*quilt)
            better = values < known
            known[better], choice[better] = values[better], quilt
        return float(known.max()) * _OUTWARD, self._runs(choice)

    def price(self, runs: tuple[QuiltRun, ...]) -> float:
        """Return the largest scale that the given quilts need."""
        worst = 0.0
        for run in runs:
            inside = (self.first >= run.first) & (self.last <= run.last)
            touched = (self.last >= run.first) & (self.first <= run.last)
            if bool((inside != touched).any()):
                return np.inf
            worst = max(worst, float(self._values(run.left, run.right)[inside].max(initial=0.0)))
        return worst * _OUTWARD

    def _runs(self, choice: NDArray[np.int64]) -> tuple[QuiltRun, ...]:
        runs: list[QuiltRun] = []
        for node, (left, right) in zip(self.nodes, choice.tolist(), strict=True):
            if runs and (runs[-1].left, runs[-1].right) == (left, right):
                runs[-1] = runs[-1]._replace(last=node.last)
            else:
                runs.append(QuiltRun(node.first, node.last, left, right))
        return tuple(runs)

    def _values(self, left: int, right: int) -> Array:
        """Return the scale that each node needs with one quilt, infinite where it does not fit."""
        offsets = self.rows[self.row]
        total = np.zeros(offsets.shape)
        if left:
            total = total + offsets + self.left[left - 1]
        if right:
            total = total + self.right[right - 1]
        total = np.where(np.isneginf(offsets), -np.inf, total)
        if left:
            self._correct(total, offsets, left, right)
        leak = np.maximum(total.max(axis=1, initial=0.0), 0.0)
        before = left if left else self.last
        after = right if right else self.search.length - self.first + 1
        size = before + after - 1 if left or right else self.search.length
        size = np.broadcast_to(np.asarray(size, dtype=np.int64), leak.shape)
        fits = (self.first > left) & (self.last + right <= self.search.length) & (leak < self.search.epsilon)
        values = np.full(len(leak), np.inf)
        values[fits] = self.search.shift(size)[fits] / (self.search.epsilon - leak[fits])
        values[np.isneginf(offsets).all(axis=1)] = 0.0
        return values

    def _correct(self, total: Array, offsets: Array, left: int, right: int) -> None:
        """Replace the rows of nodes whose quilt cannot take all states, where only reachable ones count."""
        special = self.search.table.partial
        for index in np.nonzero(self._alone & (self.first > left) & (self.first - left <= special))[0]:
            rows = self.search.table.left_of(int(self.first[index]), self.left[:left])
            row = offsets[index] + rows[left - 1] + (self.right[right - 1] if right else 0.0)
            total[index] = np.where(np.isneginf(offsets[index]), -np.inf, row)

    def _best(self, index: int, known: float) -> tuple[int, int] | None:
        """Return the quilt of one node that needs less than what is known, and the least."""
        node, search = self.nodes[index], self.search
        offset = self.rows[node.row]
        possible = ~np.isneginf(offset)
        most_left = min(self.reach, node.first - 1)
        left = self.left
        if node.first == node.last:  # the nodes of a block may reach different states
            left = search.table.left_of(node.first, left[:most_left])
        left = left[:most_left, possible]
        left = left + offset[possible]
        right = self.right[: max(0, min(self.reach, search.length - node.last)), possible]
        sizes = np.arange(1, self.reach + 1)
        found = _Least(known)
        one_left = np.maximum(left.max(axis=1, initial=0.0), 0.0)
        one_right = np.maximum(right.max(axis=1, initial=0.0), 0.0)
        found.try_all(
            self._quotient(search.length - node.first + sizes[: len(left)], one_left),
            lambda at: (at + 1, 0),
        )
        found.try_all(self._quotient(node.last + sizes[: len(right)] - 1, one_right), lambda at: (0, at + 1))
        if len(left) and len(right):
            self._two_sided(found, left, right, one_left)
        return found.quilt

    def _two_sided(self, found: _Least, left: Array, right: Array, one_left: Array) -> None:
        rights = np.arange(1, len(right) + 1)
        if left.size * len(right) <= _WHOLE:
            leak = np.maximum((left[:, None, :] + right[None, :, :]).max(axis=2), 0.0)
            sizes = np.arange(1, len(left) + 1)[:, None] + rights[None, :] - 1
            wide = len(right)
            found.try_all(self._quotient(sizes, leak).ravel(), lambda at: (at // wide + 1, at % wide + 1))
            return
        same = min(len(left), len(right))
        leak = np.maximum((left[:same] + right[:same]).max(axis=1), 0.0)
        found.try_all(self._quotient(2 * rights[:same] - 1, leak), lambda at: (at + 1, at + 1))
        for a in range(1, len(left) + 1):
            # What the left node alone leaks is the least that any quilt with it leaks.
            room = found.value * (self.search.epsilon - one_left[a - 1]) - self.search.cost[1]
            most = int(min(len(right), room / self.search.cost[0] - a + 2)) if room > 0 else 0
            if most < 1:
                continue
            leak = np.maximum((left[a - 1] + right[:most]).max(axis=1), 0.0)
            found.try_all(self._quotient(a + rights[:most] - 1, leak), lambda at, a=a: (a, at + 1))

    def _quotient(self, sizes: NDArray[np.int64], leak: Array) -> Array:
        rest = self.search.epsilon - leak
        return np.where(rest > 0, self.search.shift(sizes) / np.where(rest > 0, rest, 1.0), np.inf)


class _Least:
    """The least scale found so far, and its quilt."""

    def __init__(self, known: float) -> None:
        self.value = known
        self.quilt: tuple[int, int] | None = None

    def try_all(self, values: Array, quilt: object) -> None:
        """Keep the least of these, if it is less."""
        if values.size and values[at := int(np.argmin(values))] < self.value:
            self.value, self.quilt = float(values[at]), quilt(at)  # type: ignore[operator]
