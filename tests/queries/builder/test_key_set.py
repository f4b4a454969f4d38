"""Key sets: the same plans as lists in SQL, the algebra against sets of Python, one error for bad input."""

from __future__ import annotations

import datetime as dt
import itertools
from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import sfumato as sf
from sfumato.errors import ParameterError, QueryError, SchemaError, SfumatoError
from sfumato.queries.builder.key_factors import require_few
from sfumato.queries.builder.key_set import KeySet
from sfumato.queries.plan.query_key import query_key
from sfumato.queries.sql.clauses.public_lists import MAX_GROUPS
from tests.cases import cases

CLAUSE = (
    "SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(epsilon=1, delta=0, max_groups_contributed=1, "
    "group_selection_strategy=PUBLIC_GROUPS)"
)
OPTIONS: dict[str, Any] = {"epsilon": 1, "delta": 0, "max_groups_contributed": 1}
careless: Any = KeySet
STATES = ["NY", "CA", None]


def session(**given: Any) -> sf.Session:
    days = [dt.date(2024, 1 + i % 4, 1) for i in range(12)]
    people = pa.table({
        "person": range(12),
        "state": ["CA", "NY", "TX"] * 4,
        "year": [2020, 2021] * 6,
        "pay": [0.5, 1.0] * 6,
        "day": days,
    })  # fmt: skip
    regions = pa.table({"state": ["CA", "CA", "NY"], "region": ["west", "west", "east"]})
    return sf.connect(
        people, privacy_unit="person", epsilon=100, delta=1e-6, rng=3, public={"regions": regions}, **given
    )


def rows(keys: KeySet) -> set[tuple[Any, ...]]:
    return {tuple(row[name] for name in keys.columns) for row in keys.to_arrow().to_pylist()}


def states() -> KeySet:
    return KeySet.from_dict({"state": ["CA", "NY"]})


@cases(
    ("make", "using", "sql"),
    [
        (lambda: KeySet.from_dict({"state": ["NY", "CA", "NY"]}), "state", "UNNEST(['CA', 'NY'])"),
        (
            lambda: KeySet.from_range("year", 2018, 2024, step=2),
            "year",
            "UNNEST(GENERATE_ARRAY(2018, 2024, 2))",
        ),
        (lambda: KeySet.from_range("year", 24, 18, step=-3), "year", "UNNEST(GENERATE_ARRAY(24, 18, -3))"),
        (lambda: KeySet.from_dict({"pay": [1, 0.5]}), "pay", "UNNEST([0.5, 1.0])"),
        (
            lambda: KeySet.from_range("day", dt.date(2024, 1, 31), dt.date(2024, 12, 31), unit="month"),
            "day",
            "UNNEST(GENERATE_DATE_ARRAY('2024-01-31', '2024-12-31', INTERVAL 1 MONTH))",
        ),
        (
            lambda: states() * KeySet.from_range("year", 2020, 2022),
            "state, year",
            (
                "(SELECT DISTINCT state, year FROM UNNEST(['CA', 'NY']) AS state "
                "CROSS JOIN UNNEST(GENERATE_ARRAY(2020, 2022)) AS year)"
            ),
        ),
        (
            lambda: KeySet.from_dict({("year", "state"): [(2020, "CA"), (2021, "CA")]}).select("state"),
            "state",
            "UNNEST(['CA'])",
        ),
        (
            lambda: KeySet.from_range("year", 2000, 2024).filter("MOD(year, 4) = 0", sf.col("year") >= 2016),
            "year",
            "UNNEST([2016, 2020, 2024])",
        ),
    ],
)
def test_a_key_set_asks_what_the_sql_asks(make: Any, using: str, sql: str) -> None:
    keys, alias = make(), "k" if "," in using else using
    select = f"{CLAUSE} {using}, COUNT(*) AS n FROM data"
    with session() as book:
        written = book.read(f"{select} RIGHT JOIN {sql} AS {alias} USING ({using}) GROUP BY {using}")
        argument = book.read(f"{select} GROUP BY {using}", public_groups=keys)
        query = book.table().group_by(keys).agg(n=sf.count()).options(**OPTIONS)
        built = book.read(query.sql, query.public_groups)
    assert query_key(written) == query_key(argument) == query_key(built)


def test_an_answer_has_every_group_and_is_replayed_for_the_other_form() -> None:
    keys = KeySet.from_dict({"state": ["CA", "WA"]})
    with session() as book:
        query = book.table().group_by(keys).agg(n=sf.count())
        first = query.release(epsilon=50, delta=0, max_groups_contributed=1)
        again = book.table().group_by("state", public_groups={"state": ["WA", "CA"]}).agg(n=sf.count())
        second = again.release(epsilon=50, delta=0, max_groups_contributed=1)
    assert first.to_arrow().to_pydict() == {"state": ["CA", "WA"], "n": [4, 0]}
    assert second.replayed


def test_it_is_taken_for_some_of_the_keys_with_expressions_beside() -> None:
    with session() as book:
        table = book.table()
        both = table.group_by(states(), KeySet.from_dict({"year": [2020]})).agg(n=sf.count())
        assert both.public_groups == KeySet.from_dict({"year": [2020], "state": ["NY", "CA"]})
        more = table.group_by(states(), old="year < 2000").agg(n=sf.count())
        with pytest.raises(QueryError, match="'old'"):
            more.explain(**OPTIONS)
        with pytest.raises(ParameterError, match="public_groups must be left out"):
            table.group_by(states(), public_groups={"state": ["CA"]})
        other = table.group_by(KeySet.from_dict({"year": ["CA"]})).agg(n=sf.count())
        with pytest.raises(QueryError, match="must hold INT64 values, got 'CA'"):
            other.explain(**OPTIONS)


NAMES = ("a", "b", "c")
VALUES = st.lists(st.sampled_from([None, 0, 1, 2, 3]), min_size=1, max_size=4)
BLOCKS = st.sampled_from([(("a",), ("b",), ("c",)), (("a", "b"), ("c",)), (("a", "c"), ("b",)), (NAMES,)])


@st.composite
def key_sets(draw: Any) -> KeySet:
    factors = {}
    for names in draw(BLOCKS):
        factors[names] = draw(st.lists(st.tuples(*[st.integers(0, 2)] * len(names)), min_size=1, max_size=4))
    return KeySet.from_dict(factors)


@settings(max_examples=40)
@given(key_sets(), st.permutations(NAMES), st.integers(1, 3))
def test_projection_is_that_of_sets(keys: KeySet, order: list[str], many: int) -> None:
    chosen = keys.select(*order[:many])
    places = [keys.columns.index(name) for name in chosen.columns]
    assert set(chosen.columns) == set(order[:many])
    assert rows(chosen) == {tuple(row[place] for place in places) for row in rows(keys)}
    assert chosen.size == len(rows(chosen))


@settings(max_examples=40)
@given(key_sets(), key_sets())
def test_equality_is_that_of_sets_however_they_are_factored(one: KeySet, other: KeySet) -> None:
    ours, theirs = ({frozenset(zip(k.columns, r, strict=True)) for r in rows(k)} for k in (one, other))
    assert (one == other) == (ours == theirs)
    whole = KeySet.from_frame(one.to_arrow())
    assert whole == one
    assert hash(whole) == hash(one)


@settings(max_examples=40)
@given(key_sets(), key_sets())
def test_a_join_is_that_of_sets(one: KeySet, other: KeySet) -> None:
    renamed = KeySet.from_frame(
        other.to_arrow().rename_columns([*map({"a": "x", "b": "b", "c": "c"}.get, other.columns)])
    )
    ours = [dict(zip(one.columns, row, strict=True)) for row in rows(one)]
    theirs = [dict(zip(renamed.columns, row, strict=True)) for row in rows(renamed)]
    expected = {
        tuple(sorted((a | b).items()))
        for a, b in itertools.product(ours, theirs)
        if (a["b"], a["c"]) == (b["b"], b["c"])
    }
    if not expected:
        with pytest.raises(ParameterError, match="at least one group"):
            one.join(renamed)
        return
    joined = one.join(renamed)
    assert {tuple(sorted(row.items())) for row in joined.to_arrow().to_pylist()} == expected
    assert joined.size == len(expected)


@settings(max_examples=15)
@given(key_sets(), st.integers(0, 2))
def test_a_filter_is_that_of_sets(keys: KeySet, least: int) -> None:
    a, b = keys.columns.index("a"), keys.columns.index("b")
    expected = {row for row in rows(keys) if row[a] >= least or row[b] == 1}
    if expected:
        found = keys.filter(f"A >= {least} OR b = 1")
        order = [found.columns.index(name) for name in keys.columns]
        assert {tuple(row[place] for place in order) for row in rows(found)} == expected
    else:
        with pytest.raises(ParameterError, match="at least one group"):
            keys.filter(f"A >= {least} OR b = 1")


def test_null_is_a_group_and_agrees_with_itself() -> None:
    keys = KeySet.from_dict({"state": STATES, "none": [None]})
    assert keys.size == 3
    assert keys.filter("state IS NULL").to_arrow().to_pylist() == [{"state": None, "none": None}]
    assert rows(keys.filter("state <> 'CA'")) == {("NY", None)}  # NULL <> 'CA' is not true, as in SQL
    assert KeySet.from_dict({"none": [None]}).filter("1 = 1").size == 1
    other = KeySet.from_dict({("state", "n"): [(None, 1), ("TX", 2)]})
    assert rows(KeySet.from_dict({"state": STATES}).join(other)) == {(None, 1)}


def test_a_product_is_not_written_out() -> None:
    wide = KeySet.from_dict({name: range(2_000) for name in ("a", "b", "c")})
    assert wide.size == 8 * 10**9
    some = wide.filter("a < 3", "b = 7").select("a", "b")
    assert rows(some) == {(0, 7), (1, 7), (2, 7)}
    assert repr(wide).endswith("2000 x 2000 x 2000 = 8000000000 groups)")
    assert wide == KeySet.from_dict({name: range(1_999, -1, -1) for name in ("c", "b", "a")})
    with pytest.raises(ParameterError, match="at most 1000000 rows"):
        wide.to_arrow()
    with pytest.raises(ParameterError, match="at most 1000000 rows"):
        wide.filter("a = b")


def test_a_million_rows_are_written_out_and_no_more() -> None:
    def keys(name: str, many: int) -> KeySet:
        return KeySet.from_dict({("one", name): [("a", number) for number in range(many)]})

    def numbers(name: str, many: int) -> KeySet:
        return KeySet.from_range(name, 1, many)

    require_few(MAX_GROUPS)
    for make in (
        lambda: require_few(MAX_GROUPS + 1),
        lambda: keys("left", 1_000).join(keys("right", 1_001)),
        (numbers("left", 1_000) * numbers("right", 1_001)).to_arrow,
        lambda: (numbers("left", 1_000) * numbers("right", 1_001)).filter("`left` = `right`"),
    ):
        with pytest.raises(ParameterError, match="at most 1000000 rows that are written out"):
            make()


def test_values_of_other_libraries_are_plain_ones() -> None:
    table = pa.table({
        "s": pa.array(["x", "y", "x"]).dictionary_encode(),
        "t": pa.array([0, 1_000_000, 0], pa.timestamp("ns", "Europe/Berlin")),
        "f": pa.array([-0.0, 1.0, 0.0], pa.float32()),
    })  # fmt: skip
    keys = KeySet.from_frame(table)
    assert rows(keys) == {
        ("x", dt.datetime(1970, 1, 1), 0.0),
        ("y", dt.datetime(1970, 1, 1, 0, 0, 0, 1000), 1.0),
    }
    for kind in (
        pa.float16(),
        pa.uint8(),
        pa.large_string(),
        pa.date64(),
        pa.bool_(),
        pa.null(),
    ):
        column = pa.array([None, None] if pa.types.is_null(kind) else [None, None, _ONE[str(kind)]], kind)
        assert frame(column).size == 2 - pa.types.is_null(kind)
    assert KeySet.from_dict({"a": np.array([1, 2, 2])}) == KeySet.from_dict({"a": (2, 1)})
    assert KeySet.from_dict({"a": [1, 2.0]}) == KeySet.from_dict({"a": [1.0, 2]})
    assert KeySet.from_dict({"a": [1]}) != KeySet.from_dict({"a": [1.0]})
    assert KeySet.from_dict({"a": [1]}) != {"a": [1]}


def test_a_public_table_is_read_and_a_private_one_refused() -> None:
    with session() as book:
        keys = KeySet.from_public_table(book, "REGIONS", "state")
        assert rows(keys) == {("CA",), ("NY",)}
        assert rows(KeySet.from_public_table(book, "regions")) == {("CA", "west"), ("NY", "east")}
        assert book.ledger.entries() == ()
        with pytest.raises(ParameterError, match="table must be a public table of the session, got 'data'"):
            KeySet.from_public_table(book, "data", "state")
        with pytest.raises(SchemaError, match="'region'"):
            KeySet.from_public_table(book, "region")


def test_it_is_a_mapping_of_its_factors() -> None:
    keys = KeySet.from_dict({("b", "a"): [(1, 2)], "c": ["x", "y"]})
    assert dict(keys) == {("b", "a"): ((1, 2),), "c": ["x", "y"]}
    assert len(keys) == 2
    assert "b" not in keys


DAY = dt.date(2024, 1, 1)
_ONE: dict[str, Any] = {
    "halffloat": np.float16(0.5),
    "uint8": 3,
    "large_string": "x",
    "date64[ms]": DAY,
    "bool": True,
}


def good() -> Any:
    return KeySet.from_dict({"a": [1]})


def frame(column: Any, *names: str) -> KeySet:
    return KeySet.from_frame(pa.table({"a": column}), *names)


REFUSED: list[tuple[Callable[[], object], str]] = [
    (lambda: careless.from_dict(["a"]), "keys must map columns to their values, got a value of type list"),
    (lambda: careless.from_dict({}), "keys must map columns"),
    (lambda: careless.from_dict({1: [2]}), "a column of a key set must be a non-empty string, got 1"),
    (lambda: careless.from_dict({(): [()]}), "a column of a key set must be a non-empty string"),
    (lambda: careless.from_dict({"a": "xyz"}), "the keys of 'a' must be a list, got a value of type str"),
    (lambda: careless.from_dict({"a": 5}), "the keys of 'a' must be a list"),
    (lambda: careless.from_dict({"a": []}), "a key set must hold at least one group"),
    (lambda: careless.from_dict({"a": [object()]}), "the keys of 'a' must be of one type: bools"),
    (lambda: careless.from_dict({"a": [1, "x"]}), "must be of one type.*got a value of type str"),
    (lambda: careless.from_dict({"a": [True, 1]}), "the keys of 'a' must be of one type.*type int"),
    (lambda: careless.from_dict({"a": [float("nan")]}), "the keys of 'a' must be of one type"),
    (lambda: careless.from_dict({"a": [2**63]}), "the keys of 'a' must be of one type"),
    (lambda: careless.from_dict({"a": ["\0"]}), "the keys of 'a' must be of one type"),
    (lambda: careless.from_dict({"a": [dt.date(2024, 1, 1), dt.datetime(2024, 1, 1)]}), "of one type"),
    (lambda: careless.from_dict({"a": range(1_000_001)}), "at most 1000000 rows"),
    (lambda: careless.from_dict({("a", "b"): [(1,)]}), "must be rows of 2 values, got a value of type tuple"),
    (lambda: careless.from_dict({"a": [1], "A": [2]}), "a key set must name each column once, but 'A' comes"),
    (lambda: careless.from_range("a", 1, "x"), "start, end and step must be two whole numbers or two dates"),
    (lambda: careless.from_range("a", 1, 5, step=0), "start, end and step must be two"),
    (lambda: careless.from_range("a", 1, DAY), "start, end and step must be two"),
    (lambda: careless.from_range("a", DAY, DAY, step=-1), "of dates, positive"),
    (lambda: careless.from_range("a", 5, 1), "start, end and step must make 1 to 1,000,000 keys"),
    (lambda: careless.from_range("a", 0, 10**7), "start, end and step must make 1 to 1,000,000 keys"),
    (lambda: careless.from_range("a", 0, 9, unit="hour"), "unit must be one of day, week, month"),
    (lambda: careless.from_range("", 0, 9), "a column of a key set must be a non-empty string"),
    (lambda: frame([1], "b"), "columns must be columns of the key set, got 'b'"),
    (lambda: frame([[1]]), "column 'a' must be of one type.*Arrow's type list"),
    (lambda: frame(pa.array([1], pa.timestamp("ns"))), "column 'a' must be of one type"),
    (lambda: frame(pa.array([2**64 - 1], pa.uint64())), "column 'a' must be of one type"),
    (lambda: frame(pa.array([10**7], pa.int32()).cast(pa.date32())), "dates of the years 1 to 9999"),
    (lambda: frame(pa.array([float("inf")])), "the keys of 'a' must be of one type"),
    (lambda: careless.from_frame(pa.table({})), "a key set must hold at least one group"),
    (lambda: careless.from_frame(5), "a source must be"),
    (lambda: good() * 3, "other must be a KeySet, got a value of type int"),
    (lambda: good() * good(), "a key set must name each column once"),
    (lambda: good().join(careless.from_dict({"b": [1]})), "other must share a column"),
    (lambda: good().join(good().from_dict({"a": ["x"]})), "must have 'a' in the same type, but they are"),
    (lambda: good().join(careless.from_dict({"a": [2]})), "a key set must hold at least one group"),
    (lambda: good().select(), "columns must name at least one column"),
    (lambda: good().select("aa"), "columns must be columns of the key set, got 'aa'"),
    (lambda: good().select("a", "A"), "columns must name each column once"),
    (lambda: good().filter("b = 1"), "the column 'b' does not exist"),
    (lambda: good().filter("a + 1"), "BOOL"),
    (lambda: good().filter("a = 1; DROP TABLE x"), "condition must be one SQL expression"),
    (lambda: good().filter("COUNT(*) > 1"), "COUNT"),
    (lambda: good().filter("a = 2"), "a key set must hold at least one group"),
    (lambda: careless.filter(good(), 5), "condition must be SQL in a string or a column expression"),
]  # fmt: skip


def test_bad_input_gets_one_clear_error() -> None:
    for make, words in REFUSED:
        with pytest.raises(SfumatoError, match=words) as found:
            raise AssertionError(f"{words!r} was not refused, but {make()!r} made")
        assert "\n" not in str(found.value)
