"""The examples of BigQuery's documentation in docs/sql.md: each is answered, or refused as it says."""

from __future__ import annotations

import re

import pyarrow as pa
import pytest

import sfumato as sf
from sfumato.errors import QueryError, UnsupportedSql

_ROW = re.compile(r"^\| (.+?) \| `(.+?)` \| `(.+)` \| (answered|refused: .+) \|$", re.MULTILINE)
_ITEMS = ("pencil", "pen", "scissors", "ruler")


def _session() -> sf.Session:
    people = [(person, request) for person in range(60) for request in range(3)]
    professors = pa.table({
        "id": [person for person, _ in people],
        "item": [_ITEMS[person * request % 3] for person, request in people],
        "quantity": [float((7 * person + 11 * request) % 100) for person, request in people],
    })  # fmt: skip
    students = pa.table(
        {"id": range(40), "item": [_ITEMS[person % 2] for person in range(40)], "quantity": [3.5] * 40}
    )
    return sf.connect(
        {"professors": professors, "students": students},
        public={"items": pa.table({"item": _ITEMS})},
        privacy_unit="id",
        epsilon=1e22,
        delta=0.9,
        rng=1,
    )


def test_every_example_does_what_the_table_says(pytestconfig: pytest.Config) -> None:
    page = (pytestconfig.rootpath / "docs" / "sql.md").read_text(encoding="utf-8")
    rows = _ROW.findall(page.partition("## BigQuery's examples")[2])
    assert len(rows) >= 30
    wrong = []
    with _session() as session:
        for example, options, query, outcome in rows:
            text = f"SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS({options}) {query}"
            try:
                table = session.sql(text).to_arrow()
            except QueryError as error:
                if outcome == "answered" or outcome.removeprefix("refused: ") not in str(error):
                    wrong.append(f"{example}: {error}")
                continue
            if outcome != "answered" or not table.num_rows:
                wrong.append(f"{example}: {table.num_rows} rows")
    assert wrong == []


def test_the_first_example_is_nearly_exact() -> None:
    options = "epsilon=1e20, delta=.01, max_groups_contributed=4, max_rows_per_group=9"
    with _session() as session:
        answer = session.sql(
            f"SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS({options}) item, "
            "SUM(quantity, contribution_bounds_per_group => (0, 300)) AS n FROM professors GROUP BY item"
        ).to_arrow()
    people = [(person, request) for person in range(60) for request in range(3)]
    exact = dict.fromkeys(_ITEMS[:3], 0)
    for person, request in people:
        exact[_ITEMS[person * request % 3]] += (7 * person + 11 * request) % 100
    assert {row["item"]: row["n"] for row in answer.to_pylist()} == pytest.approx(exact)


@pytest.mark.parametrize("clause", ["ANONYMIZATION", "AGGREGATION_THRESHOLD"])
def test_other_clauses_are_refused_by_name(clause: str) -> None:
    with _session() as session, pytest.raises(UnsupportedSql, match=clause):
        session.sql(f"SELECT WITH {clause} OPTIONS(epsilon=1) item, COUNT(*) FROM professors GROUP BY item")
