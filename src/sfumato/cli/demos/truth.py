"""The true answers beside the demo's noisy ones.

Nothing else in sfumato shows an exact answer. The demo may, because its file is already public: the Census
Bureau and NIST publish every row of it, so the truth about it is no secret that noise could keep.
"""

from __future__ import annotations

from typing import Final, NamedTuple

import duckdb
import numpy as np
from numpy.typing import NDArray

from sfumato.cli.data import ACS

__all__ = ["INCOMES", "StateTruth", "adults", "people_by_race", "people_by_state"]

INCOMES: Final = (0.0, 200_000.0)
"""Between these the demo clamps incomes."""


class StateTruth(NamedTuple):
    """Exactly what the demo's first query estimates, for one state."""

    people: int
    income: float


def people_by_state() -> dict[str, StateTruth]:
    """Return the number of people and the mean income, clamped as the query clamps it, of each state.

    Examples
    --------
    >>> people_by_state()["Iowa"].people
    1374
    """
    # DuckDB's LEAST and GREATEST pass over NULL; people without an income are not in the mean.
    rows = _rows(
        "SELECT state, count(*), avg(least(greatest(income, 0), 200000)) FILTER (WHERE income IS NOT NULL) "
        "FROM read_parquet(?) GROUP BY state"
    )
    return {str(state): StateTruth(int(str(people)), float(str(income))) for state, people, income in rows}


def people_by_race() -> dict[str, int]:
    """Return the number of people of each race, the largest first.

    Examples
    --------
    >>> min(people_by_race().values())
    2
    """
    rows = _rows("SELECT race, count(*) AS n FROM read_parquet(?) GROUP BY race ORDER BY n DESC, race")
    return {str(race): int(str(people)) for race, people in rows}


def adults() -> tuple[list[str], NDArray[np.float64]]:
    """Return what people of 15 and over would report: industries, and incomes as they are clamped.

    Examples
    --------
    >>> industries, incomes = adults()
    >>> industries.count("MIL: Military"), len(incomes) == len(industries)
    (101, True)
    """
    rows = _rows(
        "SELECT coalesce(industry, 'not at work'), income FROM read_parquet(?) WHERE age >= 15 "
        "ORDER BY person_id"
    )
    incomes = np.array([float(str(income)) for _, income in rows])
    return [str(industry) for industry, _ in rows], incomes.clip(*INCOMES)


def _rows(query: str) -> list[tuple[object, ...]]:
    with duckdb.connect() as connection:
        return connection.execute(query, [str(ACS)]).fetchall()
