"""Bayesian networks over few records: d-separation, and the joint distribution by enumeration."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, final

from sfumato import _check
from sfumato.pufferfish.models.data_models import DataModel
from sfumato.pufferfish.models.exact import exact_probabilities

__all__ = ["BayesianNetwork"]

_MOST = 1 << 18


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class BayesianNetwork(DataModel):
    """Records linked by a directed acyclic graph, each with a table given its parents.

    Parameters
    ----------
    parents : sequence of sequences of int
        For each record the records it depends on, all of them before it.
    tables : sequence of mappings
        For each record, by the tuple of its parents' values, the probability of each of its values 0, 1, ...

    Raises
    ------
    ParameterError
        If a parent does not come before its child, or a table is no table of distributions.

    Examples
    --------
    >>> chain = BayesianNetwork(
    ...     parents=[(), (0,), (1,)],
    ...     tables=[{(): [0.5, 0.5]}, *[{(0,): [0.9, 0.1], (1,): [0.2, 0.8]}] * 2],
    ... )
    >>> chain.separated(0, {1}), chain.separated(0, set())
    ({2}, set())
    """

    parents: Any
    tables: Any

    def __post_init__(self) -> None:
        parents = tuple(tuple(found) for found in self.parents)
        tables = tuple(self._table(table) for table in self.tables)
        if not parents or len(parents) != len(tables):
            _check.refuse_state("tables", "be as many as parents", "they are not", "pass one for each record")
        sizes: list[int] = []
        for record, (above, table) in enumerate(zip(parents, tables, strict=True)):
            if not all(isinstance(parent, int) and 0 <= parent < record for parent in above):
                rule = "name records that come before their child"
                _check.refuse_state(
                    "parents", rule, "one does not", "sort the records from causes to effects"
                )
            wanted = set(itertools.product(*(range(sizes[parent]) for parent in above)))
            widths = {len(row) for row in table.values()}
            if set(table) != wanted or len(widths) != 1:
                rule = "have a distribution for each choice of the parents' values"
                _check.refuse_state("tables", rule, "one has not", "key it by the tuple of parents' values")
            sizes.append(widths.pop())
        object.__setattr__(self, "parents", parents)
        object.__setattr__(self, "tables", tables)

    @staticmethod
    def _table(table: Mapping[Any, Any]) -> dict[tuple[int, ...], tuple[Fraction, ...]]:
        return {tuple(key): exact_probabilities("tables", row) for key, row in table.items()}

    def __hash__(self) -> int:
        return hash(self.parents)

    @property
    def records(self) -> int:
        """How many records there are."""
        return len(self.parents)

    def datasets(self) -> dict[tuple[Any, ...], Fraction]:
        """Return each dataset that can be, with its exact probability.

        Returns
        -------
        dict of tuple to Fraction

        Raises
        ------
        ParameterError
            If there are more than 2^18.
        """
        if math.prod(len(next(iter(table.values()))) for table in self.tables) > _MOST:
            remedy = "split the network, or use a Markov chain"
            _check.refuse_state("the network", f"have at most {_MOST} datasets", "it has more", remedy)
        found: dict[tuple[Any, ...], Fraction] = {(): Fraction(1)}
        for above, table in zip(self.parents, self.tables, strict=True):
            found = {
                (*dataset, value): weight * step
                for dataset, weight in found.items()
                for value, step in enumerate(table[tuple(dataset[parent] for parent in above)])
                if step
            }
        return found

    def describe(self) -> str:
        """Return the model in words.

        Returns
        -------
        str
        """
        links = sum(len(above) for above in self.parents)
        return f"a Bayesian network of {self.records} records and {links} links"

    def separated(self, record: int, given: Iterable[int]) -> set[int]:
        """Return the records that are d-separated from one, given others.

        Parameters
        ----------
        record : int
        given : iterable of int
            The quilt.

        Returns
        -------
        set of int
            Without the record and the quilt.

        Notes
        -----
        They are independent of it by the graph alone. By the Bayes ball (Shachter, UAI 1998).
        """
        quilt = set(given)
        children: dict[int, list[int]] = {node: [] for node in range(self.records)}
        for node, above in enumerate(self.parents):
            for parent in above:
                children[parent].append(node)
        reached: set[int] = set()
        visited: set[tuple[int, bool]] = set()
        # True: the trail comes from a child, False: from a parent.
        waiting = [(record, True)]
        while waiting:
            node, from_child = waiting.pop()
            if (node, from_child) in visited:
                continue
            visited.add((node, from_child))
            if node not in quilt:
                reached.add(node)
                waiting += [(child, False) for child in children[node]]
            if from_child != (node in quilt):  # a known effect links its causes
                waiting += [(parent, True) for parent in self.parents[node]]
        return set(range(self.records)) - reached - quilt - {record}
