"""The persons behind published tables: one set of them that fits, and who is in every such set.

>>> types = PersonTypes({"age": (8, 18, 30), "sex": ("F", "M")})
>>> tables = [PublishedCounts(name="sex", by=("sex",), counts=[1, 1]),
...           PublishedMean(name="mean age of women", attribute="age", value=8, where={"sex": "F"}),
...           PublishedCounts(name="adults", by={"age": [(18, 30)]}, counts=[1])]
>>> found = reconstruct_tables(types, tables)
>>> found.certain_persons(), found.unique
([(8, 'F')], False)
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NoReturn, final

import numpy as np
from numpy.typing import NDArray

from sfumato.attacks.census.person_types import Person, PersonTypes
from sfumato.attacks.census.published_tables import PublishedCounts, PublishedMean, PublishedTable
from sfumato.attacks.census.table_program import TableProgram, table_program
from sfumato.attacks.integer_programs.contradiction import contradiction
from sfumato.attacks.integer_programs.integer_program import Infeasible
from sfumato.attacks.integer_programs.variability import (
    group_counts,
    iterate_solutions,
    solution_variability,
)

__all__ = [
    "ContradictoryTables",
    "PublishedCounts",
    "PublishedMean",
    "TableReconstruction",
    "all_reconstructions",
    "reconstruct_tables",
    "solve_tables",
]


class ContradictoryTables(Infeasible):
    """Published tables that no set of persons has.

    Parameters
    ----------
    message : str
    tables : tuple of str
        Tables that contradict each other, of which none can be left out.
    """

    def __init__(self, message: str, *, tables: tuple[str, ...]) -> None:
        super().__init__(message)
        self.tables = tables

    def __reduce__(self) -> tuple[object, ...]:
        return _contradictory, (self.args[0], self.tables)


def _contradictory(message: str, tables: tuple[str, ...]) -> ContradictoryTables:
    return ContradictoryTables(message, tables=tables)


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class TableReconstruction:
    """Persons reconstructed from published tables.

    Parameters
    ----------
    types : PersonTypes
    counts : int64 array of shape (types,)
        How many persons of each type are in the solution that was found.
    certain : int64 array of shape (types,)
        How many are in every solution. All zero where tables have noise, or it was not asked for.
    shared : int
        How many persons any two solutions share at least, one of them being that found.
    proven : bool
        Whether ``certain`` and ``shared`` are proven; False if a time limit came first.
    misfit : float
        The sum of absolute errors of noisy counts, each over its noise's scale.

    Examples
    --------
    >>> types = PersonTypes({"sex": ("F", "M")})
    >>> found = reconstruct_tables(types, [PublishedCounts(name="sex", by=("sex",), counts=[2, 0])])
    >>> found.persons(), found.unique
    ([('F',), ('F',)], True)
    """

    types: PersonTypes
    counts: NDArray[np.int64]
    certain: NDArray[np.int64]
    shared: int
    proven: bool
    misfit: float = 0.0

    @property
    def unique(self) -> bool:
        """Whether it is proven that no other set of persons has these tables."""
        return self.proven and self.shared == int(self.counts.sum())

    def persons(self) -> list[Person]:
        """Return the persons that were found.

        Returns
        -------
        list of tuples
        """
        return self.types.persons(self.counts)

    def certain_persons(self) -> list[Person]:
        """Return the persons who are in every solution.

        Returns
        -------
        list of tuples
        """
        return self.types.persons(self.certain)


def reconstruct_tables(
    types: PersonTypes,
    tables: Sequence[PublishedTable],
    *,
    population: int | None = None,
    variability: bool = True,
    time_limit: float | None = None,
) -> TableReconstruction:
    """Return persons who have published tables, and which of them are certain.

    Parameters
    ----------
    types : PersonTypes
        Who may be there.
    tables : sequence of PublishedTable
        Counts, means and medians, with names that differ.
    population : int, optional
        No more persons are there; needed where no table without noise bounds them.
    variability : bool
        Whether to find what all solutions share, which takes more solves.
    time_limit : float, optional
        Seconds for each solve.

    Returns
    -------
    TableReconstruction

    Raises
    ------
    ContradictoryTables
        If nobody has these tables; it names a few that contradict each other.
    Unsolved
        If the time limit came before a solution.
    ParameterError
        If tables do not fit the types, or nothing bounds how many persons there are.

    Notes
    -----
    Guarantee: ``certain`` persons are in every set of persons with these tables, so they are in the data, if
    the tables are right, the types cover everyone, and ``proven`` holds (by the solver's proof; see
    `solution_variability`). The others are one guess of several.

    References
    ----------
    Garfinkel, Abowd, Martindale (2019), "Understanding Database Reconstruction Attacks on Public Data",
    Communications of the ACM 62(3). Abowd et al. (2023), "The 2010 Census Confidentiality Protections Failed,
    Here's How and Why", arXiv 2312.11283.

    Examples
    --------
    >>> types = PersonTypes({"age": range(100), "sex": ("F", "M")})
    >>> tables = [PublishedCounts(name="sex", by=("sex",), counts=[1, 2]),
    ...           PublishedMean(name="mean of women", attribute="age", value=30, where={"sex": "F"}),
    ...           PublishedCounts(name="children", by={"age": [range(18)]}, counts=[0]),
    ...           PublishedMean(name="mean of men", attribute="age", value=18.5, where={"sex": "M"})]
    >>> reconstruct_tables(types, tables).certain_persons()
    [(18, 'M'), (19, 'M'), (30, 'F')]
    """
    built = table_program(types, tables, population=population)
    return solve_tables(types, built, variability=variability, time_limit=time_limit)


def solve_tables(
    types: PersonTypes, built: TableProgram, *, variability: bool, time_limit: float | None
) -> TableReconstruction:
    """Return the reconstruction of a program that was built; see `reconstruct_tables`."""
    try:
        found = built.program.solve(time_limit=time_limit)
    except Infeasible:
        _refuse_contradiction(built, time_limit)
    counts = group_counts(found.x, built.groups, len(types))
    nothing = np.zeros_like(counts)
    if built.noisy or not variability:
        return TableReconstruction(
            types=types, counts=counts, certain=nothing, shared=0, proven=False, misfit=built.misfit(counts)
        )
    seen = solution_variability(built.program, built.groups, first=found.x, time_limit=time_limit)
    certain = seen.certain if seen.proven else nothing
    return TableReconstruction(
        types=types, counts=counts, certain=certain, shared=seen.shared, proven=seen.proven
    )


def all_reconstructions(
    types: PersonTypes,
    tables: Sequence[PublishedTable],
    *,
    population: int | None = None,
    time_limit: float | None = None,
) -> Iterator[list[Person]]:
    """Yield every set of persons who have published tables, each once.

    Parameters
    ----------
    types : PersonTypes
    tables : sequence of PublishedTable
        Without noise.
    population : int, optional
        No more persons are there.
    time_limit : float, optional
        Seconds for each solve.

    Yields
    ------
    list of tuples

    Raises
    ------
    ContradictoryTables
        If there is none.

    Examples
    --------
    >>> import itertools
    >>> types = PersonTypes({"age": range(5), "sex": ("F", "M")})
    >>> tables = [PublishedCounts(name="women", by={"sex": ["F"]}, counts=[2]),
    ...           PublishedCounts(name="men", by={"sex": ["M"]}, counts=[0]),
    ...           PublishedMean(name="mean", attribute="age", value=3)]
    >>> sorted(itertools.islice(all_reconstructions(types, tables), 10))
    [[(2, 'F'), (4, 'F')], [(3, 'F'), (3, 'F')]]
    """
    built = table_program(types, tables, population=population)
    none = True
    for counts in iterate_solutions(built.program, built.groups, time_limit=time_limit):
        none = False
        yield types.persons(counts)
    if none:
        _refuse_contradiction(built, time_limit)


def _refuse_contradiction(built: TableProgram, time_limit: float | None) -> NoReturn:
    tables = contradiction(built.program, built.tables, time_limit=time_limit)
    if len(tables) == 1:
        found = f"{tables[0]!r} contradicts itself or the types"
    else:
        found = f"{', '.join(map(repr, tables[:-1]))} and {tables[-1]!r} contradict each other"
    message = f"tables must have persons whom they count, but {found}; leave one out, or give it a margin"
    raise ContradictoryTables(message, tables=tables)
