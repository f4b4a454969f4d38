"""TopDown of a session: charged before a row is read, free when asked again, refused before any charge."""

from __future__ import annotations

import functools
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import sfumato as sf
from sfumato.errors import BudgetExceeded, EngineError, OptionError, ParameterError, QueryError, SchemaError
from sfumato.privacy import Neighboring
from sfumato.queries.engines.duckdb.engine import DuckDBEngine
from sfumato.queries.engines.spark.engine import SparkEngine
from sfumato.session import topdown_tables
from sfumato.session.session import Session
from sfumato.synthetic import (
    Categorical,
    CountBound,
    Hierarchy,
    Invariant,
    Ordered,
    TableDomain,
    TopDown,
    TopDownRelease,
)
from sfumato.synthetic.releases.release_record import SyntheticRecord
from sfumato.synthetic.topdown.workers.spark_families import SparkFamilies
from tests.run_time import run_time

DOMAIN = TableDomain(sex=["f", "m"], age=Ordered(0, 100, bins=2, missing=True))
QUERIES: Any = [(), ("sex", "age")]
SHOPS = [f"shop {i:03}" for i in range(80)]
if run_time(__name__):
    # labels are not in the order of the places, and more than an expression lists
    FIRM = Hierarchy.from_table(
        pa.table({"region": [f"region {i % 3}" for i in range(80)], "shop": SHOPS}),
        ["region", "shop"],
        root="firm",
    )
    generator = np.random.default_rng(1)
    ROWS = 3000
    PEOPLE = pa.table(
        {
            "id": np.arange(ROWS) // 3,
            "Shop": [f"shop {i:03}" for i in generator.integers(0, 90, ROWS)],
            "sex": generator.choice(["f", "m", "x"], ROWS, p=[0.45, 0.45, 0.1]),
            "age": pa.array(generator.integers(-5, 120, ROWS), mask=generator.random(ROWS) < 0.1),
        }
    )


def opened(table: Any = None, **given: Any) -> Session:
    return sf.connect(  # type: ignore[no-any-return]
        PEOPLE if table is None else table,
        **{"privacy_unit": "id", "epsilon": 5.0, "delta": 1e-6, "rng": 7, **given},
    )


def asked(session: Session, domain: TableDomain = DOMAIN, **given: Any) -> TopDownRelease:
    wanted = {"hierarchy": FIRM, "queries": QUERIES, "epsilon": 1.0, "delta": 1e-8, **given}
    return session.topdown(domain, **wanted)


@functools.cache
def _has_cell(sex: str, age: int | None) -> bool:
    row = pa.Table.from_pylist([{"sex": sex, "age": age}], PEOPLE.select(["sex", "age"]).schema)
    return len(DOMAIN.encode(row)) == 1


def exact(table: pa.Table, most: int | None = None) -> pa.Table:
    """The rows that have a place and a cell; of each unit the number that may count."""
    inside = [row for row in table.to_pylist() if row["Shop"] in SHOPS and _has_cell(row["sex"], row["age"])]
    if most is None:
        return inside
    units = [row["id"] for row in inside]
    return sum(min(most, units.count(unit)) for unit in set(units))


def test_the_charge_is_in_the_ledger_before_rows_are_read_and_stays_if_that_fails(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    seen: list[int] = []
    compute = DuckDBEngine._compute
    given: dict[str, Any] = {"invariants": [Invariant("region"), Invariant("firm")], "levels": None}
    with opened() as session:

        def spy(self: DuckDBEngine, *job: Any) -> pa.Table:
            seen.append(len(session.ledger.entries()))
            if len(seen) == 1:
                raise RuntimeError
            return compute(self, *job)

        monkeypatch.setattr(DuckDBEngine, "_compute", spy)
        with pytest.raises(EngineError):
            asked(session, **given)
        released = asked(session, **given)  # under the charge that is there, as no noise was drawn for it
        assert seen == [1, 1]
        (entry,) = session.ledger.entries()
    assert entry.description == (
        "topdown: firm > region > shop by sex, age; exact, outside of the guarantee: "
        "the total at each region; the total at each firm"
    )
    assert released.outside_guarantee == ("the total at each region", "the total at each firm")
    mechanism = TopDown.calibrated(
        hierarchy=FIRM, domain=DOMAIN, queries=QUERIES, epsilon=1.0, delta=1e-8, **given
    )
    assert released.loss == entry.loss == mechanism.privacy_loss
    assert released.receipt is not None
    assert released.receipt.sequence == entry.sequence
    assert released.simulated


def test_asking_again_is_free_and_has_the_same_counts_and_intervals(tmp_path: Path) -> None:
    path = tmp_path / "ledger"
    with opened(rng=None, ledger=path) as session:
        first, left = asked(session), session.account.remaining()
        (entry,) = session.ledger.entries()
        assert entry.description == "topdown: firm > region > shop by sex, age"
    with opened(rng=None, ledger=path) as session:
        again = asked(session)
        assert session.account.remaining() == left
        assert again.receipt is None
        assert not again.simulated
        assert again.to_json() == first.to_json()
        some = {"region": ["region 2"], "shop": ["shop 000"]}
        one, other = (each.estimate("age", places=some) for each in (first, again))
        assert one.counts.tolist() == other.counts.tolist()
        assert one.stddev == other.stddev > 0
        assert first.receipt is not None
        stored = session.ledger.release(first.receipt.sequence)
        assert isinstance(stored, SyntheticRecord)
        assert (stored.kind, stored.epsilon, stored.delta, stored.privacy_unit) == (
            "topdown",
            1.0,
            1e-8,
            "id",
        )
        assert stored.to_arrow().column_names == ["shop", "sex", "age", "count"]
        bounds = [CountBound("shop", upper={SHOPS[3]: 8})]
        for change in (
            {"shares": [1, 2]},
            {"max_rows_contributed": 2, "epsilon": 0.5},
            {"bounds": bounds, "epsilon": 0.5},
            {"bounds": bounds, "intervals": False, "epsilon": 0.5},
        ):
            charged = len(session.ledger.entries())
            changed = asked(session, **change)
            assert len(session.ledger.entries()) == charged + 1
        assert changed.measured is None
        assert asked(session, bounds=bounds, epsilon=0.5).counts("shop")[FIRM.index("shop", SHOPS[3])] <= 8
        assert len(session.ledger.entries()) == 5


def test_counts_are_of_the_rows_that_have_a_place_and_a_cell_few_of_each_unit() -> None:
    few = PEOPLE.slice(0, 900)
    much: dict[str, Any] = {"epsilon": 4000.0, "delta": 1e-3}
    with opened(few, epsilon=3e4, delta=0.1) as session:
        every = asked(session, **much, max_rows_contributed=3)
        rows = exact(few)
        for place, shop in enumerate(FIRM.places("shop").to_pylist()):
            sexes = [row["sex"] for row in rows if row["Shop"] == shop]
            assert every.counts("shop", "sex")[place].tolist() == [sexes.count("f"), sexes.count("m")]
        ages = [0 if row["age"] is not None and row["age"] < 50 else 1 for row in rows]
        nulls = sum(row["age"] is None for row in rows)
        assert every.counts("firm", "age").tolist() == [[ages.count(0), ages.count(1) - nulls, nulls]]
        for most in (1, 2):
            assert asked(session, **much, max_rows_contributed=most).counts("firm")[0] == exact(few, most)
        invariants = asked(session, epsilon=0.01, delta=1e-8, invariants=[Invariant("firm", ["sex"])])
        assert invariants.counts("firm").tolist() == [exact(few, 1)]
        elders = asked(session, **much, table=session.table().filter("age >= 50"), max_rows_contributed=3)
        assert elders.counts("firm", "age").tolist() == [[0, ages.count(1) - nulls, 0]]
    with opened(few, privacy_unit=sf.ROW, epsilon=1e4, delta=0.1) as session:
        released = asked(session, **much, max_rows_contributed=9)
        assert released.counts("firm").tolist() == [len(rows)]
        plain = TopDown.calibrated(hierarchy=FIRM, domain=DOMAIN, queries=QUERIES, **much)
        assert released.loss == plain.privacy_loss, "a row is one row, whatever the limit"


def test_rows_in_structural_zeros_are_not_counted() -> None:
    domain = DOMAIN.with_structural_zeros({"sex": ["m"], "age": [None]})
    few = PEOPLE.slice(0, 900)
    with opened(few, epsilon=1e4, delta=0.1) as session:
        released = asked(session, domain, epsilon=4000.0, delta=1e-3, max_rows_contributed=3)
        rows = exact(few)
        left = sum(row["sex"] == "f" or row["age"] is not None for row in rows)
        assert released.counts("firm").tolist() == [left] != [len(rows)]
        noisy = asked(session, domain, epsilon=0.1, delta=1e-8)
        assert not noisy.counts("shop", "sex", "age")[:, 1, 2].any()
        back = TopDownRelease.from_json(noisy.to_json())
        assert back.estimate("sex", "age").interval(0.95).upper[1, 2] == 0


def test_rows_that_are_not_counted_are_left_out_before_a_units_rows_are_chosen() -> None:
    domain = DOMAIN.with_structural_zeros({"sex": ["m"], "age": [None]})
    people = pa.table(
        {
            "id": np.arange(400) // 4,
            "Shop": [SHOPS[1], SHOPS[2], SHOPS[2], "elsewhere"] * 100,
            "sex": ["f", "m", "x", "f"] * 100,
            "age": pa.array([30, None, 30, 30] * 100, pa.int64()),
        }
    )
    with opened(people, epsilon=1e4, delta=0.1) as session:
        released = asked(session, domain, epsilon=4000.0, delta=1e-3)
    assert released.counts("firm", "sex", "age").tolist() == [[[100, 0, 0], [0, 0, 0]]]


def test_noise_grows_with_the_rows_of_a_unit_and_with_the_relation() -> None:
    with opened(epsilon=20.0, delta=1e-5) as session:
        one, three = (asked(session, max_rows_contributed=most) for most in (1, 3))
        assert three.estimate("sex").stddev == pytest.approx(3 * one.estimate("sex").stddev, rel=1e-3)
        assert max(one.loss.epsilon(1e-8), three.loss.epsilon(1e-8)) <= 1
    with opened(neighboring=Neighboring.REPLACE_ONE) as session:
        replaced = asked(session)
        assert replaced.neighboring is Neighboring.REPLACE_ONE
        assert replaced.estimate("sex").stddev > 1.2 * one.estimate("sex").stddev


def test_places_that_are_whole_numbers_are_found_by_their_numbers() -> None:
    places = Hierarchy.from_table(
        pa.table({"half": [1, 0, 1, 0], "store": [10, 11, 12, 13]}), ["half", "store"]
    )
    assert places.places("store").to_pylist() == [11, 13, 10, 12]
    people = pa.table({"id": range(100), "store": [9, 10, 11, 11, 12, 12, 12, 13, 14, None] * 10})
    people = people.append_column("sex", pa.array(["f"] * 100))
    with opened(people, epsilon=1e4, delta=0.1) as session:
        released = asked(
            session, TableDomain(sex=["f"]), hierarchy=places, queries=[()], epsilon=4000.0, delta=1e-3
        )
    assert released.counts("store").tolist() == [20, 10, 10, 30]
    assert released.counts("half").tolist() == [30, 40]


def test_places_may_be_numbered_by_a_public_table() -> None:
    units = pa.table({"code": ["b", "a", "c"], "number": [0, 1, 2]})
    places = Hierarchy.from_table(units, ["number"])
    people = pa.table(
        {"id": range(60), "code": ["a", "a", "b", "elsewhere", None, "c"] * 10, "sex": ["f"] * 60}
    )
    with opened(people, epsilon=1e4, delta=0.1, public={"units": units}) as session:
        joined, wanted = session.table().join("units", on="code"), TableDomain(sex=["f"])
        much = {"epsilon": 4000.0, "delta": 1e-3, "table": joined}
        released = asked(session, wanted, hierarchy=places, queries=[()], **much)
    assert released.counts("number").tolist() == [10, 20, 10]


def test_the_table_may_be_empty_or_hold_no_row_that_counts() -> None:
    outside = PEOPLE.set_column(1, "Shop", pa.array([None] * ROWS, pa.string()))
    for table in (PEOPLE.slice(0, 0), outside):
        with opened(table, epsilon=1e4, delta=0.1) as session:
            released = asked(session, epsilon=4000.0, delta=1e-3, invariants=[Invariant("shop")])
            assert released.counts("firm").tolist() == [0]
            assert released.to_arrow().num_rows == 0


def test_invariants_that_contradict_bounds_are_refused_and_the_charge_stays() -> None:
    with opened() as session:
        with pytest.raises(ParameterError, match="counts must exist that meet all invariants and bounds"):
            asked(session, invariants=[Invariant("firm")], bounds=[CountBound("shop", upper=1)])
        assert len(session.ledger.entries()) == 1


def refused() -> list[tuple[dict[str, Any], type[Exception], str]]:
    many = [f"t{i}" for i in range(65_537)]
    towns = Hierarchy.from_table(pa.table({"shop": many}), ["shop"])
    numbers = Hierarchy.from_table(pa.table({"shop": [1, 2]}), ["shop"])
    unknown = Hierarchy.from_table(pa.table({"town": ["a", "b"]}), ["town"])
    return [
        ({"epsilon": -1.0}, OptionError, "epsilon must be positive"),
        ({"delta": 0.0}, ParameterError, "delta must be"),
        ({"max_rows_contributed": 0}, ParameterError, "max_rows_contributed must be"),
        ({"max_rows_contributed": 2**40}, ParameterError, "max_rows_contributed must be at most"),
        ({"table": "other"}, SchemaError, "other"),
        ({"domain": {"age": [1]}}, ParameterError, "domain must be"),
        (
            {"domain": TableDomain(DOMAIN, colour=["x"])},
            ParameterError,
            "column must be one of the table's",
        ),
        ({"domain": TableDomain(DOMAIN, SHOP=["a"])}, ParameterError, "domain must not have the column"),
        ({"domain": TableDomain(sex=Categorical([1]), age=[1])}, ParameterError, "column 'sex' must be"),
        ({"hierarchy": ["shop"]}, ParameterError, "hierarchy must be"),
        ({"hierarchy": towns}, ParameterError, "values of 'Shop' must have at most 65536 values"),
        ({"hierarchy": numbers}, ParameterError, "column 'Shop' must be a column of whole numbers"),
        ({"hierarchy": unknown}, ParameterError, "column must be one of the table's"),
        ({"queries": []}, ParameterError, "queries must be a list of lists"),
        ({"queries": [("town",)]}, ParameterError, "column must be one of"),
        ({"levels": {"firm": 1}}, ParameterError, "levels must have an entry for each"),
        ({"shares": [1, 2, 3]}, ParameterError, "shares must be 2 numbers"),
        ({"invariants": [Invariant("state")]}, ParameterError, "level must be one of"),
        ({"bounds": [CountBound("shop", lower=3, upper=2)]}, ParameterError, "counts must exist that meet"),
        ({"intervals": 1}, ParameterError, "intervals must be"),
        ({"epsilon": 900.0}, BudgetExceeded, "epsilon"),
    ]


def test_what_cannot_be_answered_is_refused_before_any_charge_and_any_row() -> None:
    with opened() as session:
        session.engine.aggregate = None  # type: ignore[method-assign, assignment]
        for given, error, part in refused():
            with pytest.raises(error, match=part):
                asked(session, **given)
        assert session.ledger.entries() == ()


def test_refusals_of_policy_and_of_several_tables() -> None:
    policy = {
        "privacy_unit_column": "id", "max_epsilon_per_query": 0.5, "epsilon_budget": 3, "delta_budget": 1e-6,
        "max_groups_contributed": 1,
    }  # fmt: skip
    with sf.connect(PEOPLE, policy=policy, rng=1) as session:
        with pytest.raises(OptionError, match=r"epsilon must be at most 0\.5"):
            asked(session)
        with pytest.raises(OptionError, match="max_groups_contributed must be at most 1"):
            asked(session, epsilon=0.4, max_rows_contributed=2)
        with pytest.raises(OptionError, match="invariants must be left out under a privacy policy"):
            asked(session, epsilon=0.4, invariants=[Invariant("firm")])
        assert session.ledger.entries() == ()
        asked(session, epsilon=0.4)
    with (
        opened({"a": PEOPLE, "b": PEOPLE}) as session,
        pytest.raises((SchemaError, QueryError), match="name one of a, b"),
    ):
        asked(session)


def test_levels_are_shown_where_the_session_shows_progress(monkeypatch: pytest.MonkeyPatch) -> None:
    given: list[Any] = []
    release = TopDown.release

    def seen(self: TopDown, *args: Any, **options: Any) -> TopDownRelease:
        given.append((options["progress"], options["spark"]))
        return release(self, *args, **{**options, "progress": False})

    monkeypatch.setattr(TopDown, "release", seen)
    for shown in (True, False):
        with opened(progress=shown) as session:
            asked(session, intervals=False)
    assert given == [(True, None), (False, None)]


def test_spark_fits_what_it_counted_where_that_is_much(monkeypatch: pytest.MonkeyPatch) -> None:
    engine: Any = SparkEngine.__new__(SparkEngine)
    engine._session = spark = object()
    mechanism = TopDown(hierarchy=FIRM, domain=DOMAIN, queries=QUERIES, rho=1)
    for large, kind in ((1, SparkFamilies), (80 * DOMAIN.cells + 1, type(None))):
        monkeypatch.setattr(topdown_tables, "_LARGE", large)
        found = topdown_tables._CountedTopDown(mechanism, False, engine)._spark()
        assert type(found) is kind
        if isinstance(found, SparkFamilies):
            assert found == SparkFamilies(spark, otherwise_here=True)
    here: Any = None
    monkeypatch.setattr(topdown_tables, "_LARGE", 1)
    assert topdown_tables._CountedTopDown(mechanism, False, here)._spark() is None
