"""Arrays that a query writes out, as public groups and their products."""

from __future__ import annotations

import datetime as dt

import pytest

from sfumato.errors import QueryError
from sfumato.queries.plan.query import PublicRelation, PublicValues
from sfumato.queries.sql.analysis import read
from tests.cases import cases
from tests.queries.people import CATALOG

_DP = (
    "SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(epsilon=1, delta=0, max_groups_contributed=1, "
    "group_selection_strategy=PUBLIC_GROUPS) "
)


def _groups(array: str, key: str = "age") -> list[object]:
    text = f"{_DP} k, COUNT(*) FROM data RIGHT JOIN UNNEST({array}) AS k ON {key} = k GROUP BY k"
    groups = read(text, CATALOG).public_groups
    assert isinstance(groups, PublicValues)
    return [value for (value,) in groups.rows]


def _day(text: str) -> dt.date:
    return dt.date.fromisoformat(text)


def test_ranges_are_what_bigquery_lists() -> None:
    assert _groups("GENERATE_ARRAY(1, 5)") == [1, 2, 3, 4, 5]
    assert _groups("GENERATE_ARRAY(0, 10, 4)") == [0, 4, 8]
    assert _groups("GENERATE_ARRAY(9, -1, -5)") == [-1, 4, 9]
    assert _groups("[3, 1]") == [1, 3]
    dates = "GENERATE_DATE_ARRAY('2024-01-30', DATE '2024-02-02')"
    assert _groups(dates, "born") == [_day(f"2024-{day}") for day in ("01-30", "01-31", "02-01", "02-02")]
    months = "GENERATE_DATE_ARRAY('2024-01-31', '2024-04-30', INTERVAL 1 MONTH)"
    assert _groups(months, "born") == [_day(f"2024-{day}") for day in ("01-31", "02-29", "03-31", "04-30")]
    years = "GENERATE_DATE_ARRAY('9990-01-01', '9999-12-31', INTERVAL 5 YEAR)"
    assert _groups(years, "born") == [_day("9990-01-01"), _day("9995-01-01")]


def test_lists_are_multiplied() -> None:
    text = (
        f"{_DP} age, state, COUNT(*) FROM data RIGHT JOIN (SELECT DISTINCT s, a FROM UNNEST(['x', 'y']) AS s "
        "CROSS JOIN UNNEST(GENERATE_ARRAY(1, 2)) AS a) p ON data.age = p.a AND data.state = p.s "
        "GROUP BY age, state"
    )
    assert read(text, CATALOG).public_groups == PublicValues(((1, "x"), (1, "y"), (2, "x"), (2, "y")))
    comma = text.replace("CROSS JOIN UNNEST", ", UNNEST")
    assert read(comma, CATALOG).public_groups == read(text, CATALOG).public_groups


@cases(
    ("array", "phrase"),
    [
        ("GENERATE_ARRAY(1, 5, 0)", "its step not 0"),
        ("GENERATE_ARRAY(1.5, 5)", "must have whole numbers"),
        ("GENERATE_ARRAY(5, 1)", "must list 1 to 1000000 values"),
        ("GENERATE_ARRAY(1, 100000000000)", "must list 1 to 1000000 values"),
        ("GENERATE_ARRAY(1, age)", "a literal is needed here"),
        ("GENERATE_DATE_ARRAY('2024-01-30', '2024-01-01')", "must list 1 to"),
        ("GENERATE_DATE_ARRAY('2024-01-30', 5)", "must have dates"),
        ("GENERATE_DATE_ARRAY('2024-01-30', '2025-01-01', INTERVAL 5 HOUR)", "must be days, weeks"),
        ("[]", "must be literals with a name"),
    ],
)
def test_what_is_no_list_is_named(array: str, phrase: str) -> None:
    with pytest.raises(QueryError, match=phrase):
        _groups(array)


def test_a_product_has_an_end_and_is_read_as_a_relation_where_it_is_more() -> None:
    def of(joins: str) -> object:
        text = (
            f"{_DP} s, COUNT(*) FROM data RIGHT JOIN (SELECT DISTINCT s FROM {joins}) p ON data.state = p.s "
            "GROUP BY s"
        )
        return read(text, CATALOG).public_groups

    for joins in (
        "UNNEST(['x']) AS s JOIN UNNEST(['y']) AS a ON s = a",
        "UNNEST(['x']) AS s LEFT JOIN UNNEST(['y']) AS a ON TRUE",
        "UNNEST(['x']) AS s CROSS JOIN states",
    ):
        assert isinstance(of(joins), PublicRelation)
    with pytest.raises(QueryError, match="at most 1000000 groups"):
        of("UNNEST(GENERATE_ARRAY(1, 9999)) AS s CROSS JOIN UNNEST(GENERATE_ARRAY(1, 9999)) AS a")
