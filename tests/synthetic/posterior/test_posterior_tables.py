"""Posterior draws of released models: their tables, columns, documents and refusals."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from sfumato.errors import ParameterError
from sfumato.synthetic import AIM, MST, FixedMarginals, Marginals, Ordered, SyntheticModel, TableDomain
from sfumato.synthetic.posterior import posterior_tables as module
from tests.golden.synthetic import released_model

DOMAIN = TableDomain(age=Ordered(0, 100, bins=20), sex=["f", "m"], work=["private", "public", "own"])


def people(rows: int = 3000) -> pa.Table:
    rng = np.random.default_rng(5)
    sex = rng.integers(0, 2, rows)
    work = np.where(rng.random(rows) < 0.3 + 0.4 * sex, 0, rng.integers(1, 3, rows))
    columns = {"age": rng.uniform(0, 60, rows), "sex": np.array(["f", "m"])[sex]}
    return pa.table({**columns, "work": np.array(["private", "public", "own"])[work]})


def released(kind: Any = FixedMarginals, **given: Any) -> SyntheticModel:
    model: SyntheticModel = kind.calibrated(DOMAIN, epsilon=1.0, delta=1e-6, **given).release(people(), rng=3)
    return model


def test_tables_are_of_the_columns_asked_for_one_of_each_draw() -> None:
    model = released(MST)
    drawn = model.posterior("work", "sex", draws=6, rng=1)
    tables = list(drawn.tables(rng=2))
    assert (drawn.draws, len(tables), drawn.simulated) == (6, 6, True)
    assert tables[0].column_names == ["sex", "work"]
    assert {table.num_rows for table in tables} == {round(model.total)}
    assert [table.num_rows for table in drawn.tables(7)] == [7] * 6
    shares = drawn.marginal("work", "sex")
    assert shares.shape == (6, 3, 2)
    np.testing.assert_allclose(shares.sum(axis=(1, 2)), 1, rtol=1e-12)
    first = drawn.domain.encode(tables[0])
    counts = np.bincount(first[:, 1] * 2 + first[:, 0], minlength=6).reshape(3, 2)
    # Rows are drawn independently: a cell is off by five standard errors with a chance of 6e-7.
    deviation = np.sqrt(len(first) * shares[0] * (1 - shares[0]))
    assert (np.abs(counts - len(first) * shares[0]) < 5 * deviation).all()
    assert np.abs(counts - len(first) * shares[0]).max() > 2  # and not systematically


def test_other_columns_are_summed_out_of_measured_tables() -> None:
    model = released(workload=Marginals.every(2))
    for columns in (("sex",), ("sex", "work")):
        drawn = model.posterior(*columns, draws=200, rng=1).marginal("sex")[:, 0]
        exact = float((people()["sex"].to_numpy() == "f").mean())
        assert abs(drawn.mean() - exact) < 5 * drawn.std()
        # 3,000 people and noise: at least the deviation that people alone give.
        assert drawn.std() > 0.8 * np.sqrt(exact * (1 - exact) / 3000)
    assert model.posterior("sex", draws=4, rng=1).measured == (("sex",),)


def test_merged_cells_are_spread_over_their_values() -> None:
    model = released(MST)
    drawn = model.posterior("age", draws=4, rng=1)
    assert drawn.groups.sizes[0] < 20  # nobody is above 60
    assert drawn.marginal("age").shape == (4, 20)
    (ages, *_) = drawn.tables(500, rng=1, within_bins=True)
    assert 0 <= min(ages["age"].to_pylist()) <= max(ages["age"].to_pylist()) <= 100


def test_a_model_read_from_its_document_gives_the_same_draws() -> None:
    for model in (released(AIM), released(workload=Marginals.every(2))):
        again = SyntheticModel.from_json(model.to_json())
        assert again.to_json() == model.to_json()
        here, there = (each.posterior("sex", "work", draws=5, rng=1) for each in (model, again))
        np.testing.assert_array_equal(here.probabilities, there.probabilities)


def test_documents_whose_measured_tables_do_not_fit_are_refused() -> None:
    document = json.loads(released(MST).to_json())
    assert document["version"] == 2
    one = document["measured"][0]
    for wrong in (
        None,
        document["measured"][1:],
        [{**one, "counts": one["counts"][1:]}, *document["measured"][1:]],
        [{**one, "variances": [0.0]}, *document["measured"][1:]],
        [{**one, "variances": [1.0, 2.0]}, *document["measured"][1:]],
        [{**one, "counts": ["inf"] * len(one["counts"])}, *document["measured"][1:]],
    ):
        with pytest.raises(ParameterError):
            SyntheticModel.from_json(json.dumps({**document, "measured": wrong}))
    with pytest.raises(ParameterError):
        SyntheticModel.from_json(json.dumps({**document, "version": 1}))


def test_what_has_no_posterior_is_refused() -> None:
    model = released(MST)
    for columns, given, message in (
        (("sex", "sex"), {}, "columns must be different"),
        (("height",), {}, "height"),
        ((), {"draws": 1}, "draws"),
        ((), {"draws": 5000}, "draws must be at most 4096"),
        ((), {"prior_scale": 0.0}, "prior_scale"),
        ((), {"rng": "x"}, "rng"),
    ):
        arguments: Any = given
        with pytest.raises(ParameterError, match=message):
            model.posterior(*columns, **arguments)
    with pytest.raises(ParameterError, match="columns must be different"):
        model.posterior("sex", "work", draws=2, rng=1).marginal("sex", "sex")
    first = SyntheticModel.from_json(released_model.files()["synthetic-model.json"].decode())
    with pytest.raises(ParameterError, match="model must have the tables that were measured"):
        first.posterior()
    wide = TableDomain(a=Ordered(0, 1, bins=130), b=Ordered(0, 1, bins=130))
    rows = pa.table({"a": np.linspace(0, 0.99, 20_000), "b": np.linspace(0, 0.99, 20_000)})
    many = MST.calibrated(wide, epsilon=50.0, delta=1e-6).release(rows, rng=1)
    with pytest.raises(ParameterError, match="columns must have at most 16384 cells together"):
        many.posterior()
    pairs = TableDomain(a=Ordered(0, 1, bins=60), b=Ordered(0, 1, bins=60))
    many = MST.calibrated(pairs, epsilon=50.0, delta=1e-6).release(rows, rng=1)
    with pytest.raises(ParameterError, match="columns must have at most 512 measured cells"):
        many.posterior()
    assert many.posterior("a", draws=2, rng=1).measured == (("a",),)


def test_chains_that_disagree_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_R_HAT", 0.5)
    monkeypatch.setattr(module, "_LONGEST", 1)
    with pytest.raises(ParameterError, match="columns must be of columns whose posterior can be drawn"):
        released(MST).posterior("sex", draws=2, rng=1)


def test_a_release_of_no_rows_has_no_posterior_and_says_so() -> None:
    """Noise says that there are less than none: their logarithm was none, and a matrix singular."""
    domain = TableDomain(a=["x", "y"], b=["p", "q"])
    table = pa.table({name: pa.array([], pa.string()) for name in domain})
    mechanism = FixedMarginals.calibrated(domain, epsilon=1.0, delta=1e-6)
    totals = []
    for seed in (0, 2):
        model = mechanism.release(table, rng=seed)
        assert model.value.measured is not None
        totals.append(model.value.measured.total)
        with pytest.raises(ParameterError, match="columns must be of columns whose posterior can be drawn"):
            model.posterior(draws=20, rng=1)
    assert max(totals) < -3
