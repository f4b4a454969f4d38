"""Released models: marginals, rows, conditions, and their document."""

from __future__ import annotations

import datetime as dt
import json
from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from sfumato.errors import ParameterError
from sfumato.privacy import Neighboring
from sfumato.synthetic import (
    AIM,
    MST,
    Categorical,
    IndependentMarginals,
    Ordered,
    SyntheticModel,
    TableDomain,
)
from sfumato.synthetic.generators.cell_groups import CellGroups
from sfumato.synthetic.marginals.contingency import contingency_table

DOMAIN = TableDomain(
    age=Ordered(0, 100, bins=10, missing=True),
    born=Ordered(edges=[dt.date(1900, 1, 1), dt.date(1950, 1, 1), dt.date(2000, 1, 1)]),
    sex=Categorical(["f", "m"], other=True),
    children=Ordered.integers(0, 5),
    smokes=[True, False],
)


def people(rows: int = 4000) -> pa.Table:
    rng = np.random.default_rng(5)
    sex, age = rng.integers(0, 2, rows), rng.uniform(0, 95, rows)
    born = [dt.date(1930 if old else 1970, 5, 1) for old in age > 50]
    return pa.table({
        "age": pa.array(np.where(rng.random(rows) < 0.1, np.nan, age), from_pandas=True),
        "born": pa.array(born),
        "sex": pa.array(np.array(["f", "m"])[sex]),
        "children": pa.array(np.minimum(5, rng.poisson(1.5 * (1 - sex), rows))),
        "smokes": pa.array(sex == 1),
    })  # fmt: skip


def released(epsilon: float = 5.0) -> SyntheticModel:
    return MST.calibrated(DOMAIN, epsilon=epsilon, delta=1e-9).release(people(), rng=3)


def test_marginals_of_any_columns_are_near_the_exact_ones_and_agree() -> None:
    model, exact = released(), DOMAIN.encode(people())
    for columns in (("sex",), ("smokes", "sex"), ("born", "age"), ("children", "sex", "age"), ()):
        found = model.marginal(*columns)
        counts = contingency_table(exact, DOMAIN.sizes, tuple(map(DOMAIN.index, columns)))
        assert found.shape == counts.shape
        assert found.min() >= 0
        assert found.sum() == pytest.approx(model.total)
        assert np.abs(found - counts).sum() < 0.15 * len(exact)
    assert model.total == pytest.approx(4000, abs=20)
    np.testing.assert_allclose(model.marginal("sex", "age").sum(axis=0), model.marginal("age"))
    for wrong in (("sex", "sex"), ("x",)):
        with pytest.raises(ParameterError, match=r"columns? must be"):
            model.marginal(*wrong)


def test_rows_are_in_the_domain_and_follow_the_model() -> None:
    model = released()
    table = model.table(rng=1)
    assert table.num_rows == round(model.total) != 4000
    assert table.column_names == list(DOMAIN)
    drawn = model.table(20_000, rng=2, within_bins=True)
    codes = DOMAIN.encode(drawn)
    assert len(codes) == 20_000  # every value, and every NULL, has its cell
    counts = contingency_table(codes, DOMAIN.sizes, (2, 4))
    np.testing.assert_allclose(counts / 20_000, model.marginal("sex", "smokes") / model.total, atol=0.01)
    ages = drawn["age"].to_numpy()
    assert len(set(ages[~np.isnan(ages)].tolist())) > 15_000
    assert {type(each) for each in drawn["born"].to_pylist()} == {dt.date}
    assert {0, 1, 2, 3, 4, 5} >= set(drawn["children"].to_pylist())
    assert model.table(0).num_rows == 0
    assert model.table(5, rng=7).equals(model.table(5, rng=7))
    assert len(model.to_pandas(9)) == len(model.to_polars(9, within_bins=True)) == 9


def test_rows_given_some_columns_have_them_and_the_others_follow() -> None:
    model = released()
    table = model.sample(3000, given={"sex": "m"}, rng=4)
    assert set(table["sex"].to_pylist()) == {"m"}
    assert np.mean(table["smokes"].to_numpy()) > 0.97
    table = model.sample(500, given={"age": [15.0, "[20, 30)", None], "born": dt.date(1930, 1, 1)}, rng=4)
    assert set(table["age"].to_pylist()) <= {"[10, 20)", "[20, 30)", None}
    assert set(table["born"].to_pylist()) == {"[1900-01-01, 1950-01-01)"}
    single = model.sample(1000, given={"children": range(2)}, rng=4)["children"].to_numpy()
    share = model.marginal("children")
    assert np.mean(single == 0) == pytest.approx(share[0] / share[:2].sum(), abs=0.002)


def test_a_condition_within_merged_cells_draws_only_what_is_allowed() -> None:
    groups = CellGroups([np.array([0, 1, 1, 1]), np.array([0, 1])])
    rows = np.array([[1, 0]] * 400, np.int32)
    cells = groups.decoded(rows, np.random.default_rng(1), {0: np.array([True, False, True, True])})
    assert set(cells[:, 0].tolist()) == {2, 3}
    every = groups.decoded(rows, np.random.default_rng(1), {})
    assert set(every[:, 0].tolist()) == {1, 2, 3}


def test_merged_and_expanded_tables_add_up_in_any_order_of_groups() -> None:
    groups = CellGroups([np.array([2, 0, 1]), np.array([0, 1, 0, 1])])
    table = np.arange(12).reshape(3, 4)
    merged = groups.merged(table, (0, 1))
    assert merged.tolist() == [[4 + 6, 5 + 7], [8 + 10, 9 + 11], [0 + 2, 1 + 3]]
    expanded = groups.expanded(merged.astype(float), (0, 1))
    assert expanded[0].tolist() == [1.0, 2.0, 1.0, 2.0]
    assert (groups.merged(expanded, (0, 1)) == merged).all()


def test_what_is_given_without_a_cell_or_mass_is_refused() -> None:
    model = released()
    for given, match in (
        ({"children": "x"}, "given must be among the cells"),
        ({"children": []}, "must have a value"),
        ({"smokes": 1}, "given must be among the cells"),
        ({"nobody": 1}, "column must be one of"),
        ("sex", "given must be a mapping"),
    ):
        with pytest.raises(ParameterError, match=match):
            model.sample(1, given=given)  # type: ignore[arg-type]
    with pytest.raises(ParameterError, match="rows must"):
        model.table(-1)
    for rng in ("x", -1):
        with pytest.raises(ParameterError, match="rng must be None, a whole number"):
            model.table(1, rng=rng)  # type: ignore[arg-type]
    document = json.loads(model.to_json())
    (smokes,) = (each for each in document["tables"] if each["columns"] == ["smokes"])
    for weight in (-300.0, -1000.0):
        smokes["log_weights"] = [0.0, weight]
        unlikely = SyntheticModel.from_json(json.dumps(document))
        if weight > -690:
            assert unlikely.sample(3, given={"smokes": False})["smokes"].to_pylist() == [False] * 3
        else:
            with pytest.raises(ParameterError, match="given must have a probability above 1e-300, but the"):
                unlikely.sample(3, given={"smokes": False})


def test_a_table_beyond_all_memory_is_refused() -> None:
    domain = TableDomain({f"c{i}": [0, 1] if i < 27 else [0] for i in range(40)})
    rows = pa.table({name: [0, 0] for name in domain})
    model = IndependentMarginals(domain=domain, rho=1).release(rows, rng=1)
    names = list(domain)
    for wanted in (names[:27], names[20:], names):
        if len(wanted) == 20:
            assert model.marginal(*wanted).shape == (2,) * 7 + (1,) * 13
            continue
        with pytest.raises(ParameterError, match="columns must be at most 32, of at most 67108864 cells"):
            model.marginal(*wanted)


def test_the_document_is_the_release() -> None:
    model = released()
    again = SyntheticModel.from_json(model.to_json())
    assert again.to_json() == model.to_json()
    assert again.loss == model.loss
    assert again.neighboring is Neighboring.ADD_REMOVE
    assert again.simulated
    assert repr(again) == repr(model)
    assert (again.marginal("age", "sex") == model.marginal("age", "sex")).all()
    assert again.table(50, rng=3).equals(model.table(50, rng=3))
    document = json.loads(model.to_json())
    for key, wrong in (
        ("format", "sfumato.loss"),
        ("version", 3),
        ("groups", [[0]]),
        ("groups", [[7] * size for size in DOMAIN.sizes]),
        ("groups", [[2**80] * size for size in DOMAIN.sizes]),
        ("total", 0.0),
        ("tables", [{"columns": ["sex", "age"], "log_weights": [0.0]}]),
        ("tables", [{"columns": ["sex"], "log_weights": [0.0]}]),
        ("tables", [{"columns": ["sex"], "log_weights": ["inf", 0.0, 0.0]}]),
        ("domain", "{}"),
    ):
        with pytest.raises(ParameterError):
            SyntheticModel.from_json(json.dumps({**document, key: wrong}))


def test_odd_tables_are_released_all_the_same() -> None:
    empty = people(1).slice(0, 0)
    outside = people(50).set_column(3, "children", pa.array([None] * 50, pa.int64()))
    one = TableDomain(a=[1], b=[1, 2])
    for generator in (IndependentMarginals, MST, AIM):
        for table in (empty, outside):
            model = generator.calibrated(DOMAIN, epsilon=1.0, delta=1e-6).release(table, rng=1)
            assert model.marginal("age", "sex").sum() == pytest.approx(model.total)
            assert model.total < 50
            assert model.table(rng=1).num_rows == round(model.total)
        flat = generator.calibrated(one, epsilon=1.0, delta=1e-6).release(
            pa.table({"a": [1], "b": [2]}), rng=1
        )
        assert flat.table(3)["a"].to_pylist() == [1, 1, 1]
        for relation in Neighboring:
            made = generator.calibrated(DOMAIN, epsilon=1.0, delta=1e-6, neighboring=relation)
            assert 0.99 < made.privacy_loss.epsilon(1e-6) <= 1.0
            assert made.release(people(9), rng=1).neighboring is relation


def test_budgets_are_small_before_they_are_refused() -> None:
    """What is refused is so before a charge: a release at any rho that is taken comes to its end."""
    for generator in (IndependentMarginals, MST, AIM):
        made = generator.calibrated(DOMAIN, epsilon=1e-6, delta=1e-9)
        assert 0.99e-6 < made.privacy_loss.epsilon(1e-9) <= 1e-6
        for rows, least in ((1, 1 << 56), (1000, (1 << 56) // (2 * 1000**2))):
            relation = Neighboring.ADD_REMOVE if rows == 1 else Neighboring.REPLACE_ONE
            given: dict[str, Any] = {"neighboring": relation, "max_rows_contributed": rows}
            made = generator(domain=DOMAIN, rho=Fraction(1, least), **given)
            assert made.release(people(9), rng=1).total >= 1
            with pytest.raises(ParameterError, match="rho must be from"):
                generator(domain=DOMAIN, rho=Fraction(1, 2 * least), **given)


def test_parameters_are_checked_before_anything_is_read() -> None:
    wide = TableDomain(a=Ordered.integers(0, 5000), b=Ordered.integers(0, 5000))
    with pytest.raises(ParameterError, match="domain must have at most 4194304 cells in any pair"):
        MST.calibrated(wide, epsilon=1.0, delta=1e-6)
    for rho in (0, -1, float("nan"), 2.0**-70):
        with pytest.raises(ParameterError, match="rho must be"):
            MST(domain=DOMAIN, rho=rho)
    with pytest.raises(ParameterError, match="workload"):
        MST.calibrated(DOMAIN, [("a", "b")], epsilon=1.0, delta=1e-6)  # type: ignore[arg-type]
    with pytest.raises(ParameterError, match="delta must be"):
        IndependentMarginals.calibrated(DOMAIN, epsilon=1.0, delta=0.0)
