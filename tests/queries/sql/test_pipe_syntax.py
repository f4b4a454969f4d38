"""Pipe syntax behind an aggregation: the same SELECT, or the same larger SQL, as written without pipes."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa
import pytest

import sfumato as sf
from sfumato.errors import QueryError

OPTIONS = "WITH DIFFERENTIAL_PRIVACY OPTIONS(epsilon=1e9, delta=1e-8, max_groups_contributed=5)"
ASKED = f"AGGREGATE {OPTIONS} COUNT(*) AS n GROUP BY IF(age > 25, 'a', 'b') AS g"


@pytest.fixture(scope="module")
def session() -> Iterator[sf.Session]:
    people = pa.table({"person": [1, 2, 3, 4, 5, 6], "age": [10, 20, 30, 40, 50, 60]})
    groups = pa.table({"g": ["a", "b", "d"], "w": [1, 2, 3]})
    with sf.connect(
        people, privacy_unit="person", public={"groups": groups}, rng=1, epsilon=1e12, delta=1e-3
    ) as opened:
        yield opened


@pytest.mark.parametrize(
    ("pipe", "rows"),
    [
        ("|> SELECT g, n * 2 AS m |> WHERE m > 4", [{"g": "a", "m": 8}]),
        ("|> WHERE n > 1 |> EXTEND n / 4 AS q |> ORDER BY n |> LIMIT 1", [{"g": "b", "n": 2, "q": 0.5}]),
        ("|> ORDER BY n |> LIMIT 1 |> DROP g |> SET n = n + 1", [{"n": 3}]),
        ("|> AGGREGATE SUM(n) AS total, COUNT(*) AS many", [{"total": 6, "many": 2}]),
        ("|> JOIN groups USING (g) |> SELECT w, n |> ORDER BY w", [{"w": 1, "n": 4}, {"w": 2, "n": 2}]),
        ("|> ORDER BY n DESC |> LIMIT 2 |> LIMIT 1 |> SELECT n", [{"n": 4}]),
        ("|> SELECT 1 AS one |> DISTINCT", [{"one": 1}]),
        ("|> ORDER BY n |> ORDER BY n DESC", [{"g": "a", "n": 4}, {"g": "b", "n": 2}]),
    ],
)
def test_operators_behind_the_private_aggregation_read_its_answer(
    session: sf.Session, pipe: str, rows: list[dict[str, object]]
) -> None:
    assert session.sql(f"FROM data |> {ASKED} {pipe}").to_arrow().to_pylist() == rows


def test_an_aggregation_before_the_private_one_is_over_each_unit(session: sf.Session) -> None:
    text = f"FROM data |> AGGREGATE MAX(age) AS a GROUP BY person |> AGGREGATE {OPTIONS} SUM(a, "
    text += "contribution_bounds_per_group => (0, 100)) AS total"
    assert session.sql(text).to_arrow().to_pylist() == [{"total": 210}]


def test_a_private_table_behind_it_is_refused(session: sf.Session) -> None:
    spent = len(session.ledger.entries())
    for pipe in ("|> JOIN data ON n = age", f"|> {ASKED}", "|> AS t", "|> UNION ALL (SELECT 1)"):
        with pytest.raises(QueryError):
            session.sql(f"FROM data |> {ASKED} {pipe}")
    assert len(session.ledger.entries()) == spent
