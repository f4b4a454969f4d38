"""A public prior: what it is made of, how much it helps, and that one which is refuted does no harm."""

from __future__ import annotations

import json
from itertools import combinations
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from sfumato.errors import ParameterError
from sfumato.synthetic import (
    AIM,
    MST,
    Implication,
    IndependentMarginals,
    Ordered,
    PublicPrior,
    SyntheticModel,
    TableDomain,
)

DOMAIN = TableDomain(
    age=Ordered.integers(0, 15), work=["no", "part", "full"], pay=Ordered.integers(0, 11), town=list("abcde")
)
GENERATORS: dict[str, Any] = {"aim": AIM, "mst": MST, "independent": IndependentMarginals}


def people(rows: int, seed: int, *, upside_down: bool = False) -> pa.Table:
    """Age decides on work, and work on pay."""
    rng = np.random.default_rng(seed)
    age = rng.binomial(15, 0.35, rows)
    work = np.where(age < 4, 0, np.minimum(2, rng.integers(0, 4, rows)))
    pay = np.minimum(11, work * 4 + rng.integers(0, 4, rows))
    if upside_down:
        age, work, pay = 15 - age, 2 - work, np.where(work == 0, 11, 0)
    columns = {"age": age, "work": np.array(["no", "part", "full"])[work], "pay": pay}
    return pa.table({**columns, "town": rng.choice(list("abcde"), rows, p=[0.4, 0.3, 0.2, 0.05, 0.05])})


def error(model: SyntheticModel, table: pa.Table) -> float:
    """Mean total variation distance over all pairs."""
    codes, found = DOMAIN.encode(table), []
    for pair in combinations(DOMAIN, 2):
        counts = np.zeros([DOMAIN[name].size for name in pair])
        np.add.at(counts, tuple(codes[:, DOMAIN.index(name)] for name in pair), 1 / len(codes))
        found.append(np.abs(model.marginal(*pair) / model.total - counts).sum() / 2)
    return float(np.mean(found))


def test_a_public_table_is_modelled_and_nothing_of_it_is_impossible() -> None:
    table = people(3000, 1)
    prior = PublicPrior.from_table(DOMAIN, table)
    assert {(0, 1), (1, 2)} <= prior.log_weights.keys()
    codes = DOMAIN.encode(table)
    counts = np.zeros((16, 3))
    np.add.at(counts, tuple(codes[:, :2].T), 1 / len(codes))
    assert np.abs(prior.marginal("age", "work") - counts).sum() / 2 < 0.02
    assert (prior.marginal("age", "work", "pay") > 0).all(), "although no child works"
    again = PublicPrior.from_table(DOMAIN, table)
    assert again.digest == prior.digest != PublicPrior.from_table(DOMAIN, people(3000, 2)).digest
    assert len(prior.digest) == 64


def test_a_prior_of_the_same_population_takes_most_of_the_error_away_at_small_epsilon() -> None:
    prior, private = PublicPrior.from_table(DOMAIN, people(5000, 1)), people(1000, 2)
    for generator in GENERATORS.values():
        errors = {}
        for given in (None, prior):
            made = generator.calibrated(DOMAIN, epsilon=0.1, delta=1e-6, prior=given)
            models = [made.release(private, rng=seed) for seed in range(3)]
            errors[given] = np.mean([error(model, private) for model in models])
            assert (models[0].value.prior_strength > 0) is (given is not None)
        assert errors[prior] < 0.4 * errors[None]


def test_a_prior_that_the_columns_refute_changes_nothing() -> None:
    prior, private = PublicPrior.from_table(DOMAIN, people(5000, 1, upside_down=True)), people(4000, 2)
    for generator in GENERATORS.values():
        plain = generator.calibrated(DOMAIN, epsilon=1.0, delta=1e-6).release(private, rng=3)
        made = generator.calibrated(DOMAIN, epsilon=1.0, delta=1e-6, prior=prior).release(private, rng=3)
        assert made.value.prior_strength == 0
        written = json.loads(made.to_json())
        assert written.pop("prior")["digest"] == prior.digest
        assert written == json.loads(plain.to_json())


def test_a_prior_of_other_dependences_is_dropped_when_tables_refute_it() -> None:
    """The columns are right, and where work was high pay was low: only a table of both can tell."""
    rows = people(5000, 1).to_pydict()
    turned = sorted(rows["pay"], reverse=True)
    order = np.argsort([DOMAIN["work"].labels.index(each) for each in rows["work"]], kind="stable")
    pay = np.empty(5000, np.int64)
    pay[order] = turned
    prior, private = PublicPrior.from_table(DOMAIN, pa.table({**rows, "pay": pay})), people(20_000, 2)
    errors = {}
    for given in (None, prior):
        made = AIM.calibrated(DOMAIN, epsilon=1.0, delta=1e-6, prior=given).release(private, rng=5)
        errors[given] = error(made, private)
    assert made.value.prior_strength == 0
    assert errors[prior] < 1.2 * errors[None] < 0.03


def test_a_released_model_is_a_prior_and_documents_have_it() -> None:
    rule = Implication({"age": "< 3"}, {"work": "no"})
    domain = DOMAIN.with_constraints(rule)
    released = MST.calibrated(domain, epsilon=3.0, delta=1e-6).release(people(2000, 4), rng=1)
    assert any(group.max() + 1 < len(group) for group in released.groups.groups), "cells are merged"
    prior = released.as_prior()
    for columns in (("age", "work"), ("town",), ("pay", "age")):
        np.testing.assert_allclose(
            prior.marginal(*columns), released.marginal(*columns) / released.total, atol=1e-12
        )
    made = AIM.calibrated(domain, epsilon=0.3, delta=1e-6, prior=prior).release(people(2000, 5), rng=2)
    assert made.value.prior_strength > 0
    assert (made.marginal("age", "work")[:3, 1:] == 0).all()
    assert len(domain.encode(made.table(2000, rng=1))) == 2000
    twice = made.as_prior()
    np.testing.assert_allclose(
        twice.marginal("age", "pay"), made.marginal("age", "pay") / made.total, atol=1e-12
    )
    text = made.to_json()
    read = SyntheticModel.from_json(text)
    assert read.to_json() == text
    assert read.prior is not None
    assert read.prior.digest == prior.digest
    assert (read.marginal("work", "pay") == made.marginal("work", "pay")).all()
    document = json.loads(text)
    changed = {**document["prior"], "digest": "0" * 64}
    for wrong in (changed, {**document["prior"], "strength": 2.0}, {"digest": "x"}, 3):
        with pytest.raises(ParameterError):
            SyntheticModel.from_json(json.dumps({**document, "prior": wrong}))


def test_no_weight_of_a_prior_makes_a_model_of_no_numbers() -> None:
    """Sums of log-weights were infinite: the model was NaN, after the charge."""
    domain = TableDomain(a=["x", "y"], b=["p", "q"])
    large = 2.0**500
    weights = {(0,): np.array([large, -large]), (0, 1): np.array([[large, 1], [-large] * 2])}
    prior = PublicPrior(domain, weights)
    table = pa.table({"a": ["x", "y"] * 50, "b": ["p", "q"] * 50})
    for generator in GENERATORS.values():
        model = generator(domain=domain, rho=1, prior=prior).release(table, rng=1)
        assert np.isfinite(model.marginal("a", "b")).all()


def test_what_is_no_prior_of_the_domain_is_refused() -> None:
    prior, other = (
        PublicPrior.from_table(DOMAIN, people(50, 1)),
        TableDomain(dict(DOMAIN) | {"town": list("abcdf")}),
    )
    for generator in GENERATORS.values():
        with pytest.raises(ParameterError, match="prior must be of the domain's columns and cells"):
            generator(domain=other, rho=1, prior=prior)
        with pytest.raises(ParameterError, match="prior must be a PublicPrior"):
            generator(domain=DOMAIN, rho=1, prior=people(3, 1))
    with pytest.raises(ParameterError, match="table must have rows in the domain"):
        PublicPrior.from_table(DOMAIN, people(3, 1).slice(0, 0))
    with pytest.raises(ParameterError, match="max_cells must"):
        PublicPrior.from_table(DOMAIN, people(3, 1), max_cells=0)
    odd: tuple[Any, ...] = ({(0,): np.zeros(3)}, {(0,): np.full(16, np.inf)}, {(1, 0): np.zeros((3, 16))})
    odd = (*odd, {(0,): np.full(16, 1e308)}, {(0,): np.full(16, np.nan)})
    for weights in odd:
        with pytest.raises(ParameterError, match="log_weights must be finite, for all cells of columns"):
            PublicPrior(DOMAIN, weights)
    wide = TableDomain({name: Ordered.integers(0, 199) for name in "abc"})
    large = PublicPrior(wide, {(0, 1, 2): np.zeros((200, 200, 200))})
    with pytest.raises(ParameterError, match="prior must need at most 4194304 cells"):
        AIM(domain=wide, rho=1, prior=large)
