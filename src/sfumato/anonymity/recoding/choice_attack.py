"""The attack on the choices of local recoding: what the chosen nodes say of the rows that they hide.

Local recoding that releases at least one class in each iteration takes the node of least loss at which some k
of the remaining rows agree. So at each node of less loss, no k of them agree; and of what it released nothing
is left. These are linear constraints on how many rows of each released class have each combination of values,
which an integer program turns into combinations that are impossible, and ones that certainly occur.
"""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple, NoReturn, final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from scipy.optimize import Bounds, LinearConstraint, milp
from scipy.sparse import csr_array

from sfumato import _check
from sfumato.anonymity.hierarchies.hierarchy import SUPPRESSED, GeneralizationHierarchy, Label

__all__ = ["ChoiceFindings", "RecodingChoiceAttack"]

_Node = tuple[int, ...]
_LARGEST = 4_000


class _Class(NamedTuple):
    """A released class: its labels, its rows, the node that it was released at; None for suppressed rows."""

    labels: tuple[Label, ...]
    rows: int
    node: _Node | None


@final
@dataclass(frozen=True, slots=True, eq=False)
class ChoiceFindings:
    """What the choices of a local recoding prove of the rows.

    Parameters
    ----------
    table : pyarrow.Table
        A row for each released class and combination of original values that its labels allow:
        ``class_rows``, and the ``least`` and ``most`` rows of the class that can have this combination.
    k : int
        What was promised.

    Examples
    --------
    >>> table = pa.table({"class_rows": [2, 2], "least": [1, 1], "most": [1, 1]})
    >>> ChoiceFindings(table, 2).certain
    2
    """

    table: pa.Table
    k: int

    @property
    def excluded(self) -> float:
        """The share of combinations, among those that labels allow, that no row can have."""
        return float(np.mean(self.table.column("most").to_numpy() == 0))

    @property
    def certain(self) -> int:
        """How many rows are proved to lie in groups of fewer than k rows of known original values."""
        least, most = (self.table.column(name).to_numpy() for name in ("least", "most"))
        return int(least[(least > 0) & (most < self.k)].sum())


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class RecodingChoiceAttack:
    """An attack on a table from `recode_locally` with ``share=0``, that knows how the table was made.

    Parameters
    ----------
    hierarchies : mapping of str to GeneralizationHierarchy
        Those of the quasi-identifiers, in their order. A label stands at one level only.
    k : int
        The k asked for; no further models.

    Notes
    -----
    What is found is certain, if the table was made as stated: precision without suppressed rows as the loss.
    Let node g have less loss than the node chosen in iteration i. It failed on the rows left at i, so that
    each of its cells has at most k - 1 of them. Cells only lose rows, so that it fails later too; hence
    iterations are in the order of their loss, which the labels show. A cell of the node chosen at i is
    released as a whole, or has at most k - 1 rows, all of them left for later. Nodes of equal loss are not
    used.

    References
    ----------
    Chhillar, Righi, Sutter and Kornaropoulos, "Exposing privacy risks in anonymizing clinical data:
    combinatorial refinement attacks on k-anonymity without auxiliary information", arXiv 2509.03350, 2025,
    who relax it to a linear program; here it is solved in integers.

    Examples
    --------
    Two rows share ``cd``, and one is suppressed. Its value is certain all the same:

    >>> from sfumato import anonymity
    >>> rows = [(c, "ab" if c < "c" else "cd", "*") for c in "abcd"]
    >>> jobs = anonymity.GeneralizationHierarchy.from_rows(rows)
    >>> data = anonymity.Microdata(pa.table({"job": list("aacdb")}), quasi_identifiers={"job": jobs})
    >>> released = anonymity.recode_locally(data, k=2, share=0).table
    >>> findings = anonymity.RecodingChoiceAttack(hierarchies={"job": jobs}, k=2).run(released)
    >>> findings.table.filter(pa.compute.field("released job") == "*").to_pydict()["most"]
    [0, 1, 0, 0]
    >>> findings.certain
    3
    """

    hierarchies: Mapping[str, GeneralizationHierarchy]
    k: int

    def __post_init__(self) -> None:
        _check.integer("k", self.k, minimum=2, remedy="with k = 1 nothing is generalised")
        for name, hierarchy in self.hierarchies.items():
            _check.instance(f"the hierarchy of {name!r}", hierarchy, GeneralizationHierarchy)

    def run(self, release: pa.Table) -> ChoiceFindings:
        """Find how many rows of each class can have each combination of original values.

        Parameters
        ----------
        release : pyarrow.Table
            A released table with the quasi-identifiers as text.

        Returns
        -------
        ChoiceFindings

        Raises
        ------
        ParameterError
            If a column or label is unknown, a label stands at two levels, there are more than 4,000
            combinations, or no table has the constraints: then it was not made as stated.
        """
        classes = self._classes(release)
        pairs = [(index, leaf) for index, of in enumerate(classes) for leaf in self._leaves(of)]
        if len(pairs) > _LARGEST:
            _check.refuse(
                "release", f"allow at most {_LARGEST:,} combinations", len(pairs), "take fewer columns"
            )
        least, most = self._bounds(classes, pairs)
        names = list(self.hierarchies)
        columns: dict[str, Any] = {}
        for position, name in enumerate(names):
            columns[f"released {name}"] = [classes[index].labels[position] for index, _ in pairs]
            columns[name] = [self.hierarchies[name].values[leaf[position]] for _, leaf in pairs]
        columns["class_rows"] = [classes[index].rows for index, _ in pairs]
        return ChoiceFindings(pa.table({**columns, "least": least, "most": most}), self.k)

    def _classes(self, release: pa.Table) -> list[_Class]:
        for name in self.hierarchies:
            if name not in release.column_names:
                _check.refuse("hierarchies", "be of columns of the release", name, "leave it out")
        levels = {name: self._levels(name) for name in self.hierarchies}
        rows = zip(*(release.column(name).to_pylist() for name in self.hierarchies), strict=True)
        classes = []
        for labels, count in Counter(rows).items():
            node: _Node | None = None
            known = [label in levels[name] for label, name in zip(labels, levels, strict=True)]
            if any(label != SUPPRESSED for label in labels) or (all(known) and count >= self.k):
                if not all(known):
                    _check.refuse(
                        "release",
                        "have labels of the hierarchies",
                        labels[known.index(False)],
                        "pass its hierarchy",
                    )
                node = tuple(levels[name][label] for label, name in zip(labels, levels, strict=True))
                if count < self.k:
                    _not_as_stated("a class has fewer than k rows")
            classes.append(_Class(labels, count, node))
        return classes

    def _levels(self, name: str) -> dict[Label, int]:
        found: dict[Label, int] = {}
        for level, labels in enumerate(self.hierarchies[name].labels):
            for label in labels:
                if label in found:
                    _check.refuse(
                        f"the hierarchy of {name!r}", "have each label at one level", label, "rename it above"
                    )
                found[label] = level
        return found

    def _leaves(self, of: _Class) -> Iterator[_Node]:
        """List the combinations of original codes that the labels of a class allow."""
        options = []
        for position, hierarchy in enumerate(self.hierarchies.values()):
            codes = np.arange(len(hierarchy.values))
            if of.node is not None:
                level = of.node[position]
                code = hierarchy.labels[level].index(of.labels[position])
                codes = np.flatnonzero(hierarchy.levels[level] == code)
            options.append(codes.tolist())
        return itertools.product(*options)

    def _constraints(
        self, classes: list[_Class], pairs: list[tuple[int, _Node]]
    ) -> dict[tuple[int, ...], int]:
        """Bound sums of counts: for each set of pairs, the most rows that they have together."""
        heights = [hierarchy.height for hierarchy in self.hierarchies.values()]
        lost = {node: _loss(node, heights) for node in itertools.product(*(range(h + 1) for h in heights))}
        time = [math.inf if of.node is None else lost[of.node] for of in classes]
        chosen = sorted({value for value in time if value < math.inf})
        maps = [hierarchy.levels for hierarchy in self.hierarchies.values()]
        bounds: dict[tuple[int, ...], int] = {}
        for node, loss in lost.items():
            # The rows left when the node had failed, or had released what it could.
            start = min((value for value in chosen if value > loss + 1e-9), default=math.inf)
            cells: dict[_Node, list[int]] = {}
            for number, (index, leaf) in enumerate(pairs):
                if time[index] >= start:
                    cell = tuple(
                        int(of[level][code]) for of, level, code in zip(maps, node, leaf, strict=True)
                    )
                    cells.setdefault(cell, []).append(number)
            released = {self._cell(node, of.labels) for of in classes if of.node == node}
            for cell, numbers in cells.items():
                bounds[tuple(numbers)] = min(
                    bounds.get(tuple(numbers), self.k - 1), 0 if cell in released else self.k - 1
                )
        return bounds

    def _cell(self, node: _Node, labels: tuple[Label, ...]) -> _Node:
        parts = zip(self.hierarchies.values(), node, labels, strict=True)
        return tuple(hierarchy.labels[level].index(label) for hierarchy, level, label in parts)

    def _bounds(
        self, classes: list[_Class], pairs: list[tuple[int, _Node]]
    ) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Solve for the least and the most of each count, skipping what solutions seen so far decide."""
        program = _Program(
            [[number for number, (index, _) in enumerate(pairs) if index == i] for i in range(len(classes))],
            [of.rows for of in classes],
            self._constraints(classes, pairs),
        )
        return program.ranges()


def _not_as_stated(found: str) -> NoReturn:
    _check.refuse_state("release", "be a local recoding with share=0", found, "check k and the hierarchies")


def _loss(node: _Node, heights: list[int]) -> float:
    return sum(level / max(1, height) for level, height in zip(node, heights, strict=True)) / len(heights)


class _Program:
    """Counts that add up to the rows of each class, with bounded sums, in integers; HiGHS solves it."""

    def __init__(self, groups: list[list[int]], rows: list[int], bounds: dict[tuple[int, ...], int]) -> None:
        size = sum(map(len, groups))
        sets = [*groups, *bounds]
        upper = np.array([*rows, *bounds.values()], dtype=float)
        lower = np.where(np.arange(len(sets)) < len(groups), upper, -np.inf)
        columns = np.fromiter((number for of in sets for number in of), np.int32)
        starts = np.concatenate([[0], np.cumsum([len(of) for of in sets])]).astype(np.int32)
        matrix = csr_array((np.ones(len(columns)), columns, starts), shape=(len(sets), size))
        self._constraints = LinearConstraint(matrix, lower, upper)
        self._bounds = Bounds(0, np.inf)
        self._size = size

    def ranges(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Find the least and the most of each count."""
        found = self._solve(np.zeros(self._size))
        least, most = found.copy(), found.copy()
        for number in range(self._size):
            signs = (1.0, -1.0) if least[number] else (-1.0,)
            for sign in signs:
                goal = np.zeros(self._size)
                goal[number] = sign
                found = self._solve(goal)
                least, most = np.minimum(least, found), np.maximum(most, found)
        return least, most

    def _solve(self, goal: NDArray[np.float64]) -> NDArray[np.int64]:
        result = milp(
            goal,
            integrality=np.ones(self._size, np.int64),
            constraints=self._constraints,
            bounds=self._bounds,
            options={"mip_rel_gap": 0.0},  # the default of 1e-4 may miss a row of ten thousand
        )
        if result.x is None:
            _not_as_stated("no table gives it")
        return np.rint(result.x).astype(np.int64)
