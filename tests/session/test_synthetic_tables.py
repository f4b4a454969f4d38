"""Marginals of a session: charged before a row is read, free when asked again, refused before any charge."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import sfumato as sf
from sfumato.errors import (
    BudgetExceeded,
    EngineError,
    OptionError,
    ParameterError,
    QueryError,
    SchemaError,
    SourceError,
)
from sfumato.privacy import Neighboring
from sfumato.queries.engines.duckdb.engine import DuckDBEngine
from sfumato.session.session import Session
from sfumato.synthetic import (
    AIM,
    BoughtCategories,
    BoughtDomain,
    BoughtEdges,
    Categorical,
    Implication,
    Marginals,
    Ordered,
    PublicPrior,
    ResidualMechanism,
    TableDomain,
)
from sfumato.synthetic.generators.private_table import PrivateTable
from sfumato.synthetic.generators.table_shift import TableShift
from sfumato.synthetic.releases.release_record import SyntheticRecord
from tests.cases import cases
from tests.run_time import run_time

DOMAIN = TableDomain(
    age=Ordered(0, 100, bins=4, missing=True), sex=["f", "m"], work=Categorical([1, 2], other=True)
)
PAIRS = Marginals.every(2)
if run_time(__name__):
    generator = np.random.default_rng(1)
    PEOPLE = pa.table(
        {
            "id": np.arange(3000) // 3,
            "age": generator.integers(-5, 120, 3000),
            "sex": generator.choice(["f", "m", "x"], 3000),
            "work": generator.integers(1, 4, 3000),
        }
    )


def opened(table: Any = None, **given: Any) -> Session:
    return sf.connect(  # type: ignore[no-any-return]
        PEOPLE if table is None else table,
        **{"privacy_unit": "id", "epsilon": 5.0, "delta": 1e-6, "rng": 7, **given},
    )


def asked(session: Session, workload: Marginals = PAIRS, **given: Any) -> Any:
    return session.marginals(DOMAIN, workload, **{"epsilon": 1.0, "delta": 1e-8, **given})


def test_the_charge_is_in_the_ledger_before_rows_are_read_and_stays_if_that_fails(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    seen: list[int] = []
    compute = DuckDBEngine._compute
    with opened() as session:

        def spy(self: DuckDBEngine, *job: Any) -> pa.Table:
            seen.append(len(session.ledger.entries()))
            if len(seen) == 1:
                raise RuntimeError
            return compute(self, *job)

        monkeypatch.setattr(DuckDBEngine, "_compute", spy)
        with pytest.raises(EngineError):
            asked(session)
        released = asked(session)  # under the charge that is there, as no noise was drawn for it
        assert seen == [1, 1]
        (entry,) = session.ledger.entries()
        assert entry.description == "marginals: 3 tables of age, sex, work"
        mechanism = ResidualMechanism.calibrated(DOMAIN, PAIRS, epsilon=1.0, delta=1e-8)
        assert released.loss == entry.loss == mechanism.privacy_loss
        assert released.receipt is not None
        assert released.receipt.sequence == entry.sequence
        assert released.simulated


def test_an_answer_that_cannot_be_read_leaves_its_charge_for_asking_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with opened() as session, monkeypatch.context() as patched:
        patched.setattr("sfumato.session.counted_release.read_counts", None)
        with pytest.raises(TypeError):
            asked(session)
        patched.undo()
        released = asked(session, max_rows_contributed=np.int64(1))  # no noise was drawn before
        assert released.receipt is not None
        assert [entry.sequence for entry in session.ledger.entries()] == [released.receipt.sequence]


def test_a_synthetic_table_is_charged_once_and_read_from_the_ledger(tmp_path: Path) -> None:
    path = tmp_path / "ledger"
    asked_for: dict[str, Any] = {"epsilon": 2.0, "delta": 1e-8, "max_rows_contributed": 3}
    with opened(rng=None, ledger=path) as session:
        first, left = session.synthesize(DOMAIN, **asked_for), session.account.remaining()
        (entry,) = session.ledger.entries()
        mechanism = AIM.calibrated(DOMAIN, **asked_for)
        assert first.receipt is not None
        assert first.loss == entry.loss == mechanism.privacy_loss
        assert entry.description == "synthetic table by aim: age, sex, work"
    with opened(rng=None, ledger=path) as session:
        again = session.synthesize(DOMAIN, **asked_for)
        assert session.account.remaining() == left
        assert (again.receipt, again.to_json()) == (None, first.to_json())
        stored = session.ledger.release(first.receipt.sequence)
        assert stored.to_arrow().num_rows == again.to_arrow().num_rows > 3
        session.synthesize(DOMAIN, **asked_for, method="independent")
        assert len(session.ledger.entries()) == 2
    with opened(epsilon=100.0) as session:
        model = session.synthesize(DOMAIN, **(asked_for | {"epsilon": 90.0}), workload=PAIRS)
        assert abs(model.total - 2000) < 200  # rows of sex "x" have no cell
        one = session.synthesize(
            DOMAIN, **(asked_for | {"epsilon": 9.0, "max_rows_contributed": 1}), method="mst"
        )
        assert abs(one.total - 960) < 60


def test_a_prior_is_part_of_what_is_asked() -> None:
    """Zeros too: another prior, or none, is another release with a charge of its own."""
    domain = DOMAIN.with_constraints(Implication({"age": "< 25"}, {"work": [1, "(other)"]}))
    priors = [PublicPrior.from_table(domain, PEOPLE.slice(0, rows)) for rows in (500, 900)]
    with opened(epsilon=9.0) as session:
        asked_for: dict[str, Any] = {"epsilon": 1.0, "delta": 1e-8, "max_rows_contributed": 3}
        first = session.synthesize(domain, **asked_for, prior=priors[0])
        assert session.synthesize(domain, **asked_for, prior=priors[0]).to_json() == first.to_json()
        assert len(session.ledger.entries()) == 1
        for other in (priors[1], None):
            session.synthesize(domain, **asked_for, prior=other)
        assert len(session.ledger.entries()) == 3
        assert first.prior is not None
        assert first.prior.digest == priors[0].digest
        assert first.marginal("age", "work")[0, 1] == 0
        with pytest.raises(ParameterError, match="prior must be a PublicPrior"):
            session.synthesize(domain, **asked_for, prior=PEOPLE)
        with pytest.raises(ParameterError, match="prior must be of the domain's columns"):
            session.synthesize(TableDomain(sex=["f", "m"]), **asked_for, prior=priors[0])
        assert len(session.ledger.entries()) == 3


@cases("method", ["aim", "mst", "independent"])
def test_the_noise_of_a_synthetic_table_is_that_of_all_rows_of_a_unit(method: str) -> None:
    """The loss is the same whatever a unit's rows are: only the noise says that they are paid for."""
    drawn: list[TableShift] = []
    begun = PrivateTable.__init__

    def spy(table: PrivateTable, *given: Any) -> None:
        drawn.extend(each for each in given if isinstance(each, TableShift))
        begun(table, *given)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(PrivateTable, "__init__", spy)
        for unit, most, relation in (
            ("id", 3, Neighboring.ADD_REMOVE),
            (sf.ROW, 3, Neighboring.ADD_REMOVE),
            ("id", 2, Neighboring.REPLACE_ONE),
        ):
            with opened(privacy_unit=unit, neighboring=relation) as session:
                session.synthesize(DOMAIN, epsilon=1.0, delta=1e-8, method=method, max_rows_contributed=most)
    add, replace = Neighboring.ADD_REMOVE, Neighboring.REPLACE_ONE
    assert drawn == [TableShift(add, 3), TableShift(add, 1), TableShift(replace, 2)]


def test_a_synthetic_table_that_cannot_be_made_is_refused_before_a_charge() -> None:
    impossible = TableDomain({name: Ordered.integers(0, 299) for name in "abc"})
    impossible = impossible.with_structural_zeros({"a": [0], "b": [0], "c": [0]})
    refused: list[tuple[TableDomain, dict[str, Any], str]] = [
        (DOMAIN, {"method": "gan"}, "method must be one of"),
        (DOMAIN, {"method": ["aim"]}, "method must be one of"),
        (DOMAIN, {"workload": Marginals([["age", "town"]])}, "town"),
        (impossible, {}, "structural zeros"),
        (TableDomain(DOMAIN, town=["a"]), {}, "town"),
        (DOMAIN, {"delta": 0.0}, "delta"),
    ]
    with opened() as session:
        for domain, given, message in refused:
            with pytest.raises((ParameterError, QueryError), match=message):
                session.synthesize(domain, **({"epsilon": 1.0, "delta": 1e-8} | given))
        with pytest.raises(BudgetExceeded):
            session.synthesize(DOMAIN, epsilon=6.0, delta=1e-8)
        assert not session.ledger.entries()
        alone = session.synthesize(TableDomain(sex=["f", "m"]), epsilon=1.0, delta=1e-8)
        assert alone.marginal("sex").shape == (2,)


def test_asking_again_is_free_and_returns_the_same_numbers(tmp_path: Path) -> None:
    path = tmp_path / "ledger"
    with opened(rng=None, ledger=path) as session:
        first, left = asked(session), session.account.remaining()
    with opened(rng=None, ledger=path) as session:
        again = asked(session)
        assert session.account.remaining() == left
        assert again.receipt is None
        assert not again.simulated
        assert again.domain == DOMAIN
        assert again.loss == first.loss
        for columns in (("age", "sex"), ("work",), ()):
            one, other = first.marginal(*columns), again.marginal(*columns)
            assert np.array_equal(one.counts, other.counts)
            assert (one.stddev, one.proxy, one.labels) == (other.stddev, other.proxy, other.labels)
        assert first.receipt is not None
        stored = session.ledger.release(first.receipt.sequence)
        assert isinstance(stored, SyntheticRecord)
        assert (stored.kind, stored.epsilon, stored.delta, stored.privacy_unit) == (
            "marginals",
            1.0,
            1e-8,
            "id",
        )
        assert stored.loss == first.loss
        assert not stored.simulated
        table = stored.to_arrow()
        assert table.column_names == ["columns", "cell", "count", "stddev"]
        assert len(table) == 5 * 2 + 5 * 3 + 2 * 3
        asked(session, Marginals.every(1))
        asked(session, max_rows_contributed=2)
        asked(session, Marginals([("age", "sex")], weights=[2.0]), epsilon=0.5)
        assert len(session.ledger.entries()) == 4


def exact(table: pa.Table, most: int) -> int:
    """How many rows count where each unit has at most so many."""
    kept = [
        row["id"]
        for row in table.to_pylist()
        if len(DOMAIN.encode(pa.Table.from_pylist([row], table.schema)))
    ]
    return sum(min(most, kept.count(unit)) for unit in set(kept))


def test_counts_are_of_the_rows_that_have_a_cell_few_of_each_unit() -> None:
    few = PEOPLE.slice(0, 300)
    with opened(few, epsilon=2e4, delta=0.1) as session:
        for most in (1, 2, 3):
            released = asked(session, epsilon=4000.0, delta=1e-3, max_rows_contributed=most)
            assert released.total == pytest.approx(exact(few, most), abs=3)
        elders = asked(session, epsilon=4000.0, delta=1e-3, table=session.table().filter("age >= 50"))
        assert elders.marginal("age").counts[:2] == pytest.approx([0, 0], abs=3)
        assert elders.total > 20
        by_name = asked(session, epsilon=3999.0, delta=1e-3, table="DATA")
        assert by_name.total == pytest.approx(exact(few, 1), abs=3)
    with opened(few, privacy_unit=sf.ROW, epsilon=1e4, delta=0.1) as session:
        released = asked(session, epsilon=4000.0, delta=1e-3, max_rows_contributed=9)
        assert released.total == pytest.approx(len(DOMAIN.encode(few)), abs=3)
        assert (
            released.loss
            == ResidualMechanism.calibrated(DOMAIN, PAIRS, epsilon=4000.0, delta=1e-3).privacy_loss
        ), "a row is one row, whatever the limit"


def test_noise_grows_with_the_rows_of_a_unit_and_with_the_relation() -> None:
    with opened(epsilon=20.0, delta=1e-5) as session:
        one, three = (asked(session, max_rows_contributed=most) for most in (1, 3))
        assert three.marginal("age", "sex").stddev == pytest.approx(
            3 * one.marginal("age", "sex").stddev, rel=1e-3
        )
        assert one.loss.epsilon(1e-8) <= 1
        assert three.loss.epsilon(1e-8) <= 1
    with opened(neighboring=Neighboring.REPLACE_ONE) as session:
        replaced = asked(session)
        assert replaced.neighboring is Neighboring.REPLACE_ONE
        assert replaced.marginal("age").stddev > 1.3 * one.marginal("age").stddev


def test_the_table_may_be_empty_or_hold_no_row_that_counts() -> None:
    outside = PEOPLE.set_column(2, "sex", pa.array(["x"] * len(PEOPLE)))
    odd = pa.table({
        "id": [1, 2, 3, 4, None],
        "age": [math.nan, math.inf, -math.inf, None, 1.0],
        "sex": ["f"] * 5,
        "work": [1] * 5,
    })  # fmt: skip
    for table, many in ((PEOPLE.slice(0, 0), 0), (outside, 0), (odd, 4)):
        with opened(table, epsilon=1e4, delta=0.1) as session:
            released = asked(session, epsilon=4000.0, delta=1e-3)
            assert released.total == pytest.approx(many, abs=3)
            if many:
                assert released.marginal("age").counts == pytest.approx([1, 0, 0, 1, 2], abs=3)


def test_columns_of_one_cell_and_tables_of_no_column_are_counted() -> None:
    domain = TableDomain(sex=["f"], age=Ordered(0, 200, bins=1))
    with opened(epsilon=1e4, delta=0.1) as session:
        released = session.marginals(domain, Marginals([("sex", "age"), ()]), epsilon=4000.0, delta=1e-3)
        assert released.marginal("sex", "age").counts.shape == (1, 1)
        assert released.total == pytest.approx(float(released.marginal("age").counts[0]))


def test_a_period_is_counted_alone() -> None:
    days = pa.array(["2026-01-05"] * 1000 + ["2026-02-05"] * 2000).cast(pa.date32())
    table = PEOPLE.append_column("day", days)
    renewal = sf.ledger.Renewal(every="month", column="day")
    with opened(table, renewal=renewal, period="2026-01", epsilon=1e4, delta=0.1) as session:
        released = asked(session, epsilon=4000.0, delta=1e-3)
        assert released.total == pytest.approx(exact(table.slice(0, 1000), 1), abs=3)


REFUSED: list[tuple[dict[str, Any], type[Exception], str]] = [
    ({"epsilon": -1.0}, OptionError, "epsilon must be positive"),
    ({"epsilon": math.nan}, OptionError, "epsilon must be positive"),
    ({"delta": 0.0}, ParameterError, "delta must be"),
    ({"max_rows_contributed": 0}, ParameterError, "max_rows_contributed must be"),
    ({"max_rows_contributed": 2**40}, ParameterError, "max_rows_contributed must be at most"),
    ({"table": "other"}, SchemaError, "other"),
    ({"workload": Marginals([("age", "town")])}, ParameterError, "column must be one of"),
    ({"workload": 3}, ParameterError, "workload must be"),
    ({"table": 5}, ParameterError, "table must be a table's name, or rows of the builder"),
    ({"domain": {"age": [1]}}, ParameterError, "domain must be"),
    ({"domain": TableDomain(town=["x"])}, ParameterError, "column must be one of the table's"),
    ({"domain": TableDomain(age=["x"])}, ParameterError, "column 'age' must be a column of texts"),
    ({"domain": TableDomain(id=list(range(0, 2 * 65537, 2)))}, ParameterError, "at most 65536"),
    (
        {"domain": TableDomain(id=Ordered.integers(0, 2**15 - 1), age=Ordered.integers(0, 2**15 - 1))},
        ParameterError,
        "workload must be of tables of at most",
    ),
    (
        {
            "domain": TableDomain({f"c{i}": Ordered.integers(0, 3999) for i in range(6)}),
            "workload": Marginals.every(2),
        },
        ParameterError,
        "noisy numbers of the workload must be at most",
    ),
    ({"epsilon": 900.0}, BudgetExceeded, "epsilon"),
]


def test_what_cannot_be_answered_is_refused_before_any_charge_and_any_row() -> None:
    for table in (PEOPLE, PEOPLE.slice(0, 0)):
        with opened(table) as session:
            session.engine.aggregate = None  # type: ignore[method-assign, assignment]
            for given, error, part in REFUSED:
                arguments: dict[str, Any] = {
                    "domain": DOMAIN,
                    "workload": PAIRS,
                    "epsilon": 1.0,
                    "delta": 1e-8,
                }
                arguments |= given
                if len(arguments["domain"]) == 1:
                    arguments["workload"] = Marginals.every(1)
                with pytest.raises(error, match=part):
                    session.marginals(**arguments)
            assert session.ledger.entries() == ()


def test_refusals_of_policy_closed_sessions_and_several_tables() -> None:
    policy = {
        "privacy_unit_column": "id",
        "max_epsilon_per_query": 0.5,
        "epsilon_budget": 3,
        "delta_budget": 1e-6,
    }
    with sf.connect(PEOPLE, policy={**policy, "max_groups_contributed": 1}, rng=1) as session:
        with pytest.raises(OptionError, match=r"epsilon must be at most 0\.5"):
            asked(session)
        with pytest.raises(OptionError, match="max_groups_contributed must be at most 1"):
            asked(session, epsilon=0.4, max_rows_contributed=2)
        asked(session, epsilon=0.4)
    with pytest.raises(SourceError):
        asked(session, epsilon=0.3)
    with opened({"a": PEOPLE, "b": PEOPLE}) as session:
        with pytest.raises((SchemaError, QueryError), match="name one of a, b"):
            asked(session)
        asked(session, table="b")


def test_rows_may_be_joined_with_public_ones_first() -> None:
    regions = pa.table({"sex": ["f"]})
    with opened(public={"regions": regions}, epsilon=1e4, delta=0.1) as session:
        joined = session.table().join("regions", on="sex")
        released = asked(session, epsilon=4000.0, delta=1e-3, table=joined)
        assert released.marginal("sex").counts[1] == pytest.approx(0, abs=3)
        assert released.total > 300


BOUGHT = {"sex": BoughtCategories(missing=True), "age": BoughtEdges(0, 100, bins=4), "work": [1, 2]}


def test_a_domain_is_bought_for_one_charge_and_asked_again_for_free(tmp_path: Path) -> None:
    path = tmp_path / "ledger"
    with opened(rng=None, ledger=path) as session:
        first, left = session.bought_domain(BOUGHT, epsilon=2.0, delta=1e-7), session.account.remaining()
        (entry,) = session.ledger.entries()
        assert entry.description == "the cells of sex, age"
        assert entry.loss == first.loss == BoughtDomain(BOUGHT, epsilon=2.0, delta=1e-7).privacy_loss
        assert first.domain["sex"] == Categorical(["f", "m", "x"], missing=True, other=True)
        assert first.domain["work"] == Categorical([1, 2])
        age = first.domain["age"]
        assert isinstance(age, Ordered)
        assert np.abs(np.array(age.numbers) - [0, 26, 57, 88, 100]).max() < 15
        released = session.marginals(first.domain, PAIRS, epsilon=1.0, delta=1e-8)
        assert released.marginal("sex").counts.shape == (5,)
    with opened(rng=None, ledger=path) as session:
        again = session.bought_domain(BOUGHT, epsilon=2.0, delta=1e-7)
        assert (again.domain, again.absent, again.loss) == (first.domain, (), first.loss)
        assert again.receipt is None
        assert first.receipt is not None
        stored = session.ledger.release(first.receipt.sequence)
        assert stored.to_arrow().num_rows == sum(first.domain.sizes)
        assert len(session.ledger.entries()) == 2
        assert session.account.remaining() != left
        session.bought_domain({**BOUGHT, "age": BoughtEdges(0, 100, bins=3)}, epsilon=1.0, delta=1e-7)
        assert len(session.ledger.entries()) == 3


def test_what_cannot_be_bought_is_refused_before_any_charge() -> None:
    with opened() as session:
        session.engine.aggregate = None  # type: ignore[method-assign, assignment]
        for columns, error, part in (
            ({"town": BoughtCategories()}, ParameterError, "column must be one of the table's"),
            ({"sex": ["f"]}, ParameterError, "columns must have one to be bought"),
            ({"sex": BoughtEdges(0, 1, bins=2)}, ParameterError, "column 'sex' must be of numbers"),
            ({}, ParameterError, "columns must be a mapping"),
        ):
            with pytest.raises(error, match=part):
                session.bought_domain(columns, epsilon=1.0, delta=1e-7)
        with pytest.raises(ParameterError, match="delta must be"):
            session.bought_domain(BOUGHT, epsilon=1.0)
        with pytest.raises(BudgetExceeded):
            session.bought_domain(BOUGHT, epsilon=100.0, delta=1e-7)
        assert session.ledger.entries() == ()
    with opened(PEOPLE.slice(0, 0)) as session:
        assert session.bought_domain(BOUGHT, epsilon=1.0, delta=1e-7).absent == ("sex",)
