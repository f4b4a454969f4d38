"""Groups, households and networks as neighboring relations, and the loss of a mechanism under them.

Here the guarantee is differential privacy: two fixed datasets differ in all records of one group. Losses
under these relations compose. They hide a group whatever the correlations within it are, and nothing across
groups. A ledger holds budgets of add/remove, replace-one and zero-out only: for households, open one whose
privacy unit is the household, and charge the epsilon that stands here.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, final

from sfumato import _check
from sfumato._wire import INTEGER
from sfumato.errors import NeighboringMismatch
from sfumato.numerics.rounding import fraction_up
from sfumato.privacy.leaves.declared import PureDP
from sfumato.privacy.neighboring import Neighboring, Relation, register_relation

__all__ = ["GroupNeighboring", "HouseholdNeighboring", "NetworkNeighboring"]


class _Several(Relation):
    """Two fixed datasets of one size that differ in at most so many records."""

    __slots__ = ()

    composes = True
    records: int

    def __post_init__(self) -> None:
        object.__setattr__(self, "records", _check.integer("records", self.records, minimum=1))

    def group_loss(self, loss: Any) -> PureDP:
        """Return what a mechanism costs under this relation, from its loss for one replaced record.

        Parameters
        ----------
        loss : PrivacyLoss
            Under ``Neighboring.REPLACE_ONE``, with a finite pure epsilon.

        Returns
        -------
        PureDP
            ``records`` times its epsilon, rounded up: a chain of that many neighbors leads from one dataset
            to the other.

        Raises
        ------
        NeighboringMismatch
            If the loss is about another relation.
        """
        if getattr(loss, "neighboring", None) is not Neighboring.REPLACE_ONE:
            found = "it is about another relation"
            remedy = "state the mechanism under Neighboring.REPLACE_ONE"
            _check.refuse_state("loss", "be under replace-one", found, remedy, error=NeighboringMismatch)
        epsilon = _check.non_negative("loss.epsilon()", loss.epsilon(), "use pure differential privacy")
        return PureDP(fraction_up(Fraction(epsilon) * self.records), neighboring=self)


@final
@dataclass(frozen=True, slots=True)
class GroupNeighboring(_Several):
    """Replace the records of any group of bounded size.

    Parameters
    ----------
    records : int
        The most records of a group.

    Examples
    --------
    >>> from sfumato.mechanisms import Laplace
    >>> count = Laplace(sensitivity=1, scale=8, neighboring=Neighboring.REPLACE_ONE)
    >>> GroupNeighboring(4).group_loss(count.privacy_loss).epsilon()
    0.5
    """

    records: int

    def __str__(self) -> str:
        return f"replace any {self.records} records"


@final
@dataclass(frozen=True, slots=True)
class HouseholdNeighboring(_Several):
    """Replace all records of one household.

    Parameters
    ----------
    records : int
        The most records that a household has; public.

    Examples
    --------
    >>> str(HouseholdNeighboring(5))
    'replace all of at most 5 records of one household'
    """

    records: int

    def __str__(self) -> str:
        return f"replace all of at most {self.records} records of one household"


@final
@dataclass(frozen=True, slots=True)
class NetworkNeighboring(_Several):
    """Replace the records of one person and of those that person is linked with, in a public network.

    Parameters
    ----------
    records : int
        The most records that are replaced together.

    Examples
    --------
    >>> flu = NetworkNeighboring.of_components([(0, 1), (1, 2), (2, 3), (4, 5)], people=7)
    >>> flu.records, str(flu)
    (4, 'replace at most 4 records that a network links')
    >>> NetworkNeighboring.of_contacts([(0, 1), (1, 2), (2, 3), (4, 5)], people=7).records
    3
    """

    records: int

    def __str__(self) -> str:
        return f"replace at most {self.records} records that a network links"

    @classmethod
    def of_components(cls, edges: Iterable[tuple[int, int]], *, people: int) -> NetworkNeighboring:
        """Return the relation in which all that are linked, over however many steps, change together.

        Parameters
        ----------
        edges : iterable of pairs of int
            Links of a public network, between people from 0 on.
        people : int

        Returns
        -------
        NetworkNeighboring
        """
        parent = list(range(_check.integer("people", people, minimum=1)))

        def root(person: int) -> int:
            while parent[person] != person:
                parent[person] = parent[parent[person]]
                person = parent[person]
            return person

        for one, other in _checked(edges, people):
            parent[root(one)] = root(other)
        sizes: dict[int, int] = {}
        for person in range(people):
            sizes[root(person)] = sizes.get(root(person), 0) + 1
        return cls(max(sizes.values()))

    @classmethod
    def of_contacts(cls, edges: Iterable[tuple[int, int]], *, people: int) -> NetworkNeighboring:
        """Return the relation in which one person changes with those linked directly.

        Parameters
        ----------
        edges : iterable of pairs of int
            Links of a public network, between people from 0 on.
        people : int

        Returns
        -------
        NetworkNeighboring
        """
        linked: dict[int, set[int]] = {
            person: {person} for person in range(_check.integer("people", people, minimum=1))
        }
        for one, other in _checked(edges, people):
            linked[one].add(other)
            linked[other].add(one)
        return cls(max(map(len, linked.values())))


def _checked(edges: Iterable[tuple[int, ...]], people: int) -> list[tuple[int, ...]]:
    found: list[tuple[int, ...]] = []
    for edge in edges:
        if len(edge) != 2 or not all(one in range(people) for one in edge):
            rule = f"be pairs of people from 0 to {people - 1}"
            _check.refuse_state("edges", rule, "one is not", "number the people from 0 on")
        found.append(edge)
    return found


register_relation("group", GroupNeighboring, {"records": INTEGER})
register_relation("household", HouseholdNeighboring, {"records": INTEGER})
register_relation("network", NetworkNeighboring, {"records": INTEGER})
