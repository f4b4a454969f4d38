"""Generators and structural zeros: no row and no marginal is where none can be, whatever the noise."""

from __future__ import annotations

import json
from itertools import combinations
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from sfumato.errors import ParameterError
from sfumato.synthetic import AIM, MST, IndependentMarginals, Marginals, Ordered, SyntheticModel, TableDomain
from sfumato.synthetic.domain.structural_zeros import impossible_rows, possible_cells
from tests.cases import cases

PLAIN = TableDomain(
    age=Ordered.integers(0, 11),
    marital=["never", "married", "widowed"],
    work=["no", "yes"],
    hours=Ordered(0, 60, bins=4),
    start=Ordered.integers(0, 3),
    end=Ordered.integers(0, 3),
)
DOMAIN = PLAIN.with_structural_zeros(
    {"age": range(5), "marital": ["married", "widowed"]},
    {"work": ["no"], "hours": PLAIN["hours"].labels[1:]},
    *({"start": [first], "end": range(first)} for first in range(1, 4)),
    {"age": [5], "marital": ["married"], "work": ["yes"]},
)
GENERATORS: dict[str, Any] = {"aim": AIM, "mst": MST, "independent": IndependentMarginals}


def people(rows: int, seed: int = 0) -> pa.Table:
    """Rows of the plain domain, of which many are in structural zeros of the other."""
    rng = np.random.default_rng(seed)
    age, start = rng.integers(0, 12, rows), rng.integers(0, 4, rows)
    return pa.table(
        {
            "age": age,
            "marital": np.where(age < 4, "never", rng.choice(["never", "married", "widowed"], rows)),
            "work": rng.choice(["no", "yes"], rows),
            "hours": rng.uniform(0, 60, rows),
            "start": start,
            "end": np.minimum(3, start + rng.integers(-1, 3, rows)).clip(0),
        }
    )


@cases(("name", "epsilon"), [("aim", 0.02), ("aim", 3.0), ("mst", 0.02), ("mst", 3.0), ("independent", 0.02)])
def test_no_row_and_no_marginal_is_in_a_structural_zero(name: str, epsilon: float) -> None:
    """At small budgets nearly all is noise, and cells are merged."""
    generator = GENERATORS[name].calibrated(DOMAIN, Marginals.up_to(3), epsilon=epsilon, delta=1e-6)
    released = generator.release(people(2000), rng=5)
    if epsilon < 1 and name != "independent":
        assert released.groups.sizes != DOMAIN.sizes
    read = SyntheticModel.from_json(released.to_json())
    assert read.to_json() == released.to_json()
    assert json.loads(released.to_json())["version"] == 2, "an older reader would not see the zeros"
    names = list(DOMAIN)
    for model in (released, read):
        for within_bins in (False, True):
            rows = model.table(1500, rng=2, within_bins=within_bins)
            assert within_bins is False or len(DOMAIN.encode(rows)) == 1500
        given = model.sample(300, given={"age": [2, 5, 7], "work": "yes"}, rng=3, within_bins=True)
        assert len(DOMAIN.encode(given)) == 300
        for k in (2, 3, 6):
            for clique in combinations(range(6), k):
                possible = possible_cells(clique, DOMAIN.sizes, DOMAIN.structural_zeros)
                marginal = model.marginal(*(names[place] for place in clique))
                assert (marginal[~possible] == 0).all()
                assert marginal.sum() == pytest.approx(model.total)


def test_rows_in_structural_zeros_count_as_if_they_were_not_there() -> None:
    table = people(900)
    left_out = impossible_rows(PLAIN.encode(table), PLAIN.sizes, DOMAIN.structural_zeros)
    kept = table.filter(pa.array(~left_out))
    assert 100 < kept.num_rows < 800
    for generator in GENERATORS.values():
        made = generator.calibrated(DOMAIN, epsilon=1.0, delta=1e-6)
        assert made.release(table, rng=8).to_json() == made.release(kept, rng=8).to_json()


def test_what_is_known_of_zeros_is_no_error_of_the_model() -> None:
    """Pairs of a column with itself shifted: with the zeros declared, columns alone say much more of them."""
    rng = np.random.default_rng(3)
    start = rng.integers(0, 4, 4000)
    table = people(4000).set_column(4, "start", pa.array(start))
    table = table.set_column(5, "end", pa.array(np.minimum(3, start + rng.integers(0, 2, 4000))))
    errors = {}
    for domain in (PLAIN, DOMAIN):
        model = IndependentMarginals.calibrated(domain, epsilon=2.0, delta=1e-6).release(table, rng=1)
        exact = np.zeros((4, 4))
        counted = domain.encode(table)
        np.add.at(exact, (counted[:, 4], counted[:, 5]), 1 / len(counted))
        errors[domain] = float(np.abs(model.marginal("start", "end") / model.total - exact).sum() / 2)
    assert errors[DOMAIN] < 0.6 * errors[PLAIN]


def test_zeros_that_no_model_can_hold_are_refused_by_public_sizes() -> None:
    wide = TableDomain({name: Ordered.integers(0, 299) for name in "abc"})
    wide = wide.with_structural_zeros({"a": [0], "b": [0], "c": [0]})
    for generator in GENERATORS.values():
        with pytest.raises(
            ParameterError, match="domain must have structural zeros that need at most 4194304"
        ):
            generator(domain=wide, rho=1)
    written = json.loads(DOMAIN.to_json())
    none_left = [{"work": ["no"]}, {"work": ["yes"], "start": [0, 1, 2, 3]}]
    read = TableDomain.from_json(json.dumps({**written, "zeros": written["zeros"] + none_left}))
    with pytest.raises(ParameterError, match="domain must have a cell that can hold a row"):
        MST(domain=read, rho=1)


def test_a_document_whose_groups_break_zeros_or_whose_zeros_leave_nothing_is_refused() -> None:
    model = MST.calibrated(DOMAIN, epsilon=3.0, delta=1e-6).release(people(2000), rng=5)
    document = json.loads(model.to_json())
    merged = [list(range(size)) for size in DOMAIN.sizes]
    merged[1] = [0, 0, 1]
    domain = json.loads(document["domain"])
    domain["zeros"] = [{"work": ["no"]}, {"work": ["yes"], "hours": list(PLAIN["hours"].labels)}]
    for key, wrong, part in (
        ("groups", merged, "merge only cells that structural zeros do not tell apart"),
        ("domain", json.dumps(domain), "leave some cell"),
    ):
        with pytest.raises(ParameterError, match=part):
            SyntheticModel.from_json(json.dumps({**document, key: wrong}))
