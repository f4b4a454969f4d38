"""From published tables to an integer program over how many persons there are of each type."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from sfumato import _check
from sfumato.attacks.census.person_types import PersonTypes
from sfumato.attacks.census.published_tables import PublishedTable
from sfumato.attacks.integer_programs.integer_program import IntegerProgram

__all__ = ["TableProgram", "table_program"]


@dataclass(frozen=True, slots=True)
class TableProgram:
    """An integer program and where its rows come from.

    Parameters
    ----------
    program : IntegerProgram
        Its first variables are the counts of the types.
    tables : tuple of str
        The name of each row's table.
    groups : int64 array of shape (variables,)
        The type that each variable counts, or -1.
    noise_scales : float64 array of shape (rows,)
        Zero for rows that hold; the scale of the noise of those that are fitted.
    """

    program: IntegerProgram
    tables: tuple[str, ...]
    groups: NDArray[np.int64]
    noise_scales: NDArray[np.float64]

    @property
    def noisy(self) -> bool:
        """Whether some tables have noise and are fitted."""
        return bool(self.noise_scales.any())

    def misfit(self, counts: NDArray[np.int64]) -> float:
        """Return the sum of absolute errors of fitted rows over the scales of their noise.

        Parameters
        ----------
        counts : int64 array of shape (types,)
        """
        fitted = np.flatnonzero(self.noise_scales)
        if not len(fitted):
            return 0.0
        sums = self.program.matrix[fitted][:, : len(counts)] @ counts.astype(np.float64)
        return float((np.abs(sums - self.program.row_lower[fitted]) / self.noise_scales[fitted]).sum())


def table_program(
    types: PersonTypes, tables: Sequence[PublishedTable], *, population: int | None = None
) -> TableProgram:
    """Return the program whose solutions are all sets of persons with these tables.

    Parameters
    ----------
    types : PersonTypes
    tables : sequence of PublishedTable
        With names that differ.
    population : int, optional
        No more than this many persons are there; needed where no table bounds them.

    Returns
    -------
    TableProgram

    Raises
    ------
    ParameterError
        If there is no table, two have one name, or nothing bounds how many persons there are of a type.
    """
    names = [table.name for table in tables]
    if not names or len(set(names)) != len(names) or "" in names:
        _check.refuse("tables", "be at least one, with names that differ", names, "name each table")
    built = _Builder(types, population)
    for table in tables:
        _check.instance("tables", table, PublishedTable, "pass PublishedCounts and its like")
        built.add(table)
    return built.program()


class _Builder:
    def __init__(self, types: PersonTypes, population: int | None) -> None:
        self.types = types
        self.upper = np.full(len(types), np.inf)
        if population is not None:
            self.upper[:] = _check.integer("population", population)
        self.population = population
        self.places: list[NDArray[np.int64]] = []
        self.values: list[NDArray[np.float64]] = []
        self.row_lower: list[float] = []
        self.row_upper: list[float] = []
        self.tables: list[str] = []
        self.binaries = 0
        self.noise: list[tuple[int, float]] = []

    def add(self, table: PublishedTable) -> None:
        found = table.rows(self.types)
        count = len(self.types)
        for places, values in found.rows:
            self.places.append(np.where(places >= count, places + self.binaries, places))
            self.values.append(values)
        if found.noise_scale:
            first = len(self.tables)
            self.noise += [(first + place, found.noise_scale) for place in range(len(found.rows))]
        else:
            for (places, values), upper in zip(found.rows, found.upper, strict=True):
                if (values > 0).all() and upper < np.inf:
                    inside = places < count
                    self.upper[places[inside]] = np.minimum(
                        self.upper[places[inside]], upper / values[inside]
                    )
        self.row_lower += found.lower
        self.row_upper += found.upper
        self.tables += [table.name] * len(found.rows)
        self.binaries += found.binaries

    def program(self) -> TableProgram:
        count, rows = len(self.types), len(self.tables)
        upper = np.maximum(np.floor(self.upper + 1e-9), 0)
        if np.isinf(upper).any():
            remedy = "add a table that counts everyone, or pass population="
            _check.refuse_state(
                "tables", "bound how many persons there are", "some types have no bound", remedy
            )
        if self.population is not None:
            self.places.append(np.arange(count))
            self.values.append(np.ones(count))
            self.row_lower.append(0.0)
            self.row_upper.append(float(self.population))
            self.tables.append("population")
            rows += 1
        errors = 2 * len(self.noise)
        width = count + self.binaries + errors
        objective = np.zeros(width)
        for place, (row, scale) in enumerate(self.noise):
            above = count + self.binaries + 2 * place
            self.places[row] = np.append(self.places[row], [above, above + 1])
            self.values[row] = np.append(self.values[row], [-1.0, 1.0])
            objective[[above, above + 1]] = 1 / scale
        sizes = [len(places) for places in self.places]
        ends = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
        matrix = csr_array(
            (np.concatenate(self.values), np.concatenate(self.places), ends), shape=(rows, width)
        )
        kinds = np.repeat([0, 1, 2], [count, self.binaries, errors])
        program = IntegerProgram(
            objective=objective,
            matrix=matrix,
            row_lower=np.array(self.row_lower),
            row_upper=np.array(self.row_upper),
            lower=np.zeros(width),
            upper=np.concatenate([upper, np.ones(self.binaries), np.full(errors, np.inf)]),
            integer=kinds < 2,
            variables=tuple(f"x{place}" for place in range(width)),
            rows=tuple(f"{name}[{place}]" for place, name in enumerate(self.tables)),
        )
        groups = np.where(kinds == 0, np.arange(width), -1)
        scales = np.zeros(rows)
        for row, scale in self.noise:
            scales[row] = scale
        return TableProgram(program, tuple(self.tables), groups, scales)
