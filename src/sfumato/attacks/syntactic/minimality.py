"""Minimality: an algorithm that generalises only where it must says why it had to."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product
from typing import Any, final

import numpy as np
import pyarrow as pa

from sfumato import _check
from sfumato.attacks.base.knowledge import Knowledge
from sfumato.attacks.inference.record_matrix import columns_of, table_of
from sfumato.attacks.syntactic.algorithm_inversion import AlgorithmInversion, Worlds
from sfumato.attacks.syntactic.class_matches import class_matches
from sfumato.attacks.syntactic.label_coverage import Coverage, checked_coverage
from sfumato.synthetic.domain.column_types import plain_column

__all__ = ["MinimalityAttack"]


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class MinimalityAttack(AlgorithmInversion):
    """Infer sensitive values from the fact that an algorithm generalised no more than it had to.

    The attacker knows who is in the table and their quasi-identifiers, and runs the algorithm on every
    assignment of the published sensitive values to these people.

    Parameters
    ----------
    anonymize : callable
        The algorithm: from a table of ``people`` and the sensitive column to a generalised table. It must be
        deterministic.
    people : frame
        The quasi-identifiers of everyone in the table, not generalised.
    sensitive : str
        The column that is guessed.
    hierarchies : mapping of str to GeneralizationHierarchy, rows or callable, optional
        By column, how values are generalised; or ``covers(value, label)``.
    least_share : float
        A value is claimed if at least this share of the tables that fit has it; 1 claims certainty.
    most_worlds : int
        How many tables are tried at most; of more the run is refused before it begins.

    Raises
    ------
    ParameterError
        If a parameter breaks its rule; in `run`, if tables lack a column, a class has not one row for each
        person who fits it, or no table fits.

    Notes
    -----
    All tables that fit are taken to be equally likely. ``numbers`` has how many fit the labels alone, and how
    many the algorithm as well.

    References
    ----------
    Wong, Fu, Wang, Pei (2007), Minimality Attack in Privacy Preserving Data Publishing.

    Examples
    --------
    >>> import pyarrow as pa
    >>> from sfumato import attacks
    >>> def hide(table):  # the town of all, where everybody in some town is ill
    ...     towns, ill = (table.column(name).to_pylist() for name in ("town", "ill"))
    ...     well = {town for town, value in zip(towns, ill) if value == "no"}
    ...     return pa.table({"town": towns if well == set(towns) else ["*"] * len(towns), "ill": ill})
    >>> people = pa.table({"town": ["A", "A", "B", "B", "B"]})
    >>> secret = people.append_column("ill", pa.array(["yes", "yes", "no", "no", "no"]))
    >>> attack = attacks.MinimalityAttack(anonymize=hide, people=people, sensitive="ill")
    >>> found = attack.run(hide(secret), truth=secret.column("ill"))
    >>> found.targets.guesses.tolist(), found.targets.claims
    (['yes', 'yes', 'no', 'no', 'no'], 5)
    """

    people: Any
    sensitive: str
    hierarchies: Coverage | None = None

    def __post_init__(self) -> None:
        AlgorithmInversion.__post_init__(self)
        _check.instance("sensitive", self.sensitive, str, "name the column that is guessed")
        object.__setattr__(self, "people", table_of("people", self.people))
        object.__setattr__(self, "hierarchies", checked_coverage(self.hierarchies))

    @property
    def name(self) -> str:
        """Of the attack, for findings."""
        return "minimality"

    @property
    def knowledge(self) -> Knowledge:
        """What the attacker has beside the release."""
        known = ", ".join(self.people.schema.names)
        statements = (f"who is in the table, and their {known}", "the algorithm and its parameters")
        return Knowledge(statements, {"people": self.people})

    def _worlds(self, release: pa.Table) -> Worlds:
        columns_of("sensitive", [self.sensitive], release)
        found = class_matches(release, self.people, self.hierarchies or {})
        matching, members = found.matches.toarray() > 0, found.classes
        secrets = plain_column(release.column(self.sensitive))
        listed = secrets.to_pylist()
        groups = []
        for at in range(matching.shape[1]):
            people = np.flatnonzero(matching[:, at])
            values = [listed[row] for row in np.flatnonzero(members == at)]
            if len(people) != len(values) or (matching[people].sum(axis=1) != 1).any():
                seen = f"one has {len(values)} rows and {len(people)} people who fit"
                remedy = "pass everyone in the table, and how values were generalised"
                _check.refuse_state("people", "fit one class each, as many as it has rows", seen, remedy)
            groups.append((people.tolist(), Counter(values)))
        count = math.prod(_arrangements(values) for _, values in groups)
        return Worlds(count, self._tables(groups, secrets.type))

    def _tables(
        self, groups: list[tuple[list[int], Counter[Any]]], kind: pa.DataType
    ) -> Iterator[tuple[tuple[Any, ...], pa.Table]]:
        for chosen in product(*(_arranged(values) for _, values in groups)):
            hidden: list[Any] = [None] * self.people.num_rows
            for (people, _), values in zip(groups, chosen, strict=True):
                for person, value in zip(people, values, strict=True):
                    hidden[person] = value
            yield tuple(hidden), self.people.append_column(self.sensitive, pa.array(hidden, kind))


def _arrangements(values: Counter[Any]) -> int:
    found = math.factorial(values.total())
    for count in values.values():
        found //= math.factorial(count)
    return found


def _arranged(values: Counter[Any]) -> list[tuple[Any, ...]]:
    """Return the different orders of a multiset."""
    if not values.total():
        return [()]
    found = []
    for value in list(values):
        rest = values - Counter([value])
        found += [(value, *others) for others in _arranged(rest)]
    return found
