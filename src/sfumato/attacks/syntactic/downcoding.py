"""Downcoding: values come back, because the algorithm generalised no more than it needed to."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import product
from typing import Any, final

import pyarrow as pa

from sfumato import _check
from sfumato.anonymity.hierarchies.hierarchy import SUPPRESSED, GeneralizationHierarchy
from sfumato.attacks.base.knowledge import Knowledge
from sfumato.attacks.inference.record_matrix import columns_of
from sfumato.attacks.syntactic.algorithm_inversion import AlgorithmInversion, Worlds
from sfumato.synthetic.domain.column_types import plain_column

__all__ = ["DowncodingAttack"]


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class DowncodingAttack(AlgorithmInversion):
    """Find the values below generalised labels, knowing the algorithm and the hierarchies only.

    Parameters
    ----------
    anonymize : callable
        The algorithm: from a table with the release's columns, not generalised, to a generalised one. It
        must be deterministic.
    hierarchies : mapping of str to GeneralizationHierarchy
        Of each column that was generalised.
    least_share : float
        A row's values are claimed if at least this share of the tables that fit has them; 1 claims certainty.
    most_worlds : int
        How many tables are tried at most; of more the run is refused before it begins.

    Raises
    ------
    ParameterError
        If a parameter breaks its rule; in `run`, if the release lacks a column, a label is in no hierarchy,
        or no table fits.

    Notes
    -----
    Truth is a sequence of tuples: for each row of the release, in its order, the values of the generalised
    columns in the order of ``hierarchies``. All tables that fit are taken to be equally likely.

    References
    ----------
    Cohen (2022), Attacks on Deidentification's Defenses.

    Examples
    --------
    >>> import pyarrow as pa
    >>> from sfumato import anonymity, attacks
    >>> ages = anonymity.GeneralizationHierarchy.from_rows([("20", "2*"), ("21", "2*"), ("30", "3*")])
    >>> def two_of_each(table):  # generalises the decade only if a year in it has but one person
    ...     years = table.column("age").to_pylist()
    ...     rare = {year[0] for year in years if years.count(year) < 2}
    ...     return pa.table({"age": [f"{year[0]}*" if year[0] in rare else year for year in years]})
    >>> secret = pa.table({"age": ["20", "21", "30", "30"]})
    >>> attack = attacks.DowncodingAttack(anonymize=two_of_each, hierarchies={"age": ages})
    >>> found = attack.run(two_of_each(secret), truth=[("20",), ("21",), ("30",), ("30",)])
    >>> found.numbers["tables that fit the labels"], found.numbers["tables that fit the algorithm too"]
    (4, 2)
    """

    hierarchies: Mapping[str, GeneralizationHierarchy]

    def __post_init__(self) -> None:
        AlgorithmInversion.__post_init__(self)
        if not self.hierarchies:
            remedy = "pass {'age': GeneralizationHierarchy.from_csv(...)}, say"
            _check.refuse("hierarchies", "have one column at least", self.hierarchies, remedy)
        for hierarchy in self.hierarchies.values():
            _check.instance(
                "hierarchies",
                hierarchy,
                GeneralizationHierarchy,
                "pass a GeneralizationHierarchy for each column",
            )
        object.__setattr__(self, "hierarchies", dict(self.hierarchies))

    @property
    def name(self) -> str:
        """Of the attack, for findings."""
        return "downcoding"

    @property
    def knowledge(self) -> Knowledge:
        """What the attacker has beside the release."""
        return Knowledge(("the hierarchies", "the algorithm and its parameters"))

    def _worlds(self, release: pa.Table) -> Worlds:
        names = columns_of("hierarchies", list(self.hierarchies), release)
        below = {name: _values_below(name, self.hierarchies[name]) for name in names}
        labels = zip(*(plain_column(release.column(name)).to_pylist() for name in names), strict=True)
        choices = [
            list(product(*(below[name](label) for name, label in zip(names, row, strict=True))))
            for row in labels
        ]
        return Worlds(math.prod(map(len, choices)), self._tables(release, names, choices))

    def _tables(
        self, release: pa.Table, names: tuple[str, ...], choices: list[list[tuple[Any, ...]]]
    ) -> Iterator[tuple[tuple[Any, ...], pa.Table]]:
        places = [release.schema.get_field_index(name) for name in names]
        for hidden in product(*choices):
            world = release
            for place, name, values in zip(places, names, zip(*hidden, strict=True), strict=True):
                world = world.set_column(place, name, pa.array(values, pa.string()))
            yield hidden, world


def _values_below(name: str, hierarchy: GeneralizationHierarchy) -> Any:
    below: dict[Any, list[Any]] = {SUPPRESSED: list(hierarchy.values)}
    for labels, codes in zip(hierarchy.labels, hierarchy.levels, strict=True):
        found: dict[Any, list[Any]] = {}
        for value, code in zip(hierarchy.values, codes, strict=True):
            found.setdefault(labels[code], []).append(value)
        # a label that stands at two levels means the coarser one
        below |= found

    def values(label: Any) -> list[Any]:
        text = None if label is None else str(label)
        if text not in below:
            remedy = "pass the hierarchy that the release was made with"
            _check.refuse("hierarchies", f"have each label of column {name!r}", text, remedy)
        return below[text]

    return values
