"""Real tables: published uniqueness, and what pycanon computes, where it follows the papers."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest

from sfumato import anonymity
from sfumato.anonymity.measures.delta_disclosure import delta_disclosure

DATA = Path(__file__).parent / "data"
PYCANON: dict[str, Any] = json.loads((DATA / "pycanon.json").read_text(encoding="utf-8"))
FEW = ["age", "sex", "race"]
MORE = [*FEW, "education", "native-country"]


def uniqueness(file: str, columns: list[str]) -> float:
    data = anonymity.Microdata(DATA / file, quasi_identifiers=columns)
    return 100 * anonymity.check(data).risk.uniqueness


def test_the_fractions_of_unique_people_are_those_measured_before() -> None:
    assert uniqueness("adult.parquet", FEW) == pytest.approx(0.2, abs=0.05)
    assert uniqueness("adult.parquet", MORE) == pytest.approx(10.75, abs=0.005)
    most = [*MORE, "marital-status", "occupation"]
    assert uniqueness("adult.parquet", most) == pytest.approx(36.8, abs=0.05)
    assert uniqueness("adult.parquet", [*FEW, "fnlwgt", "education"]) == pytest.approx(94.3, abs=0.05)
    acs = ["PUMA", "AGEP", "SEX", "RAC1P", "HISP"]
    assert uniqueness("nist_acs.parquet", acs) == pytest.approx(15.6, abs=0.05)


def test_a_sample_tells_how_many_are_unique_in_the_population() -> None:
    everyone = pq.read_table(DATA / "adult.parquet")
    columns = [*MORE, "marital-status"]
    true = uniqueness("adult.parquet", columns)
    rng = np.random.default_rng(1)
    for fraction in (0.1, 0.3):
        drawn = rng.choice(everyone.num_rows, int(fraction * everyone.num_rows), replace=False)
        sample = anonymity.Microdata(everyone.take(drawn), quasi_identifiers=columns)
        risk = anonymity.check(sample, population_size=everyone.num_rows).risk
        assert risk.population_uniqueness is not None
        assert 100 * risk.population_uniqueness.fraction == pytest.approx(true, abs=1)
        assert 100 * risk.uniqueness > true + 8  # what the sample itself would say


@pytest.mark.sharpest(*PYCANON)
@pytest.mark.parametrize("case", PYCANON)
def test_measures_are_those_of_pycanon(case: str) -> None:
    theirs = PYCANON[case]
    levels = {"age": 1} if case == "coarse" else {}
    tens = anonymity.Intervals((10,))
    identifying = {name: tens if name in levels else None for name in theirs["quasi_identifiers"]}
    column = theirs["sensitive"]
    data = anonymity.Microdata(DATA / "adult.parquet", quasi_identifiers=identifying, sensitive=[column])
    found = anonymity.check(data, levels=levels)
    assert found.k == theirs["k_anonymity"]
    assert [found.alpha[column], found.k] == pytest.approx(theirs["alpha_k_anonymity"], rel=1e-12)
    assert found.distinct_l[column] == theirs["l_diversity"]
    assert math.floor(found.entropy_l[column]) == theirs["entropy_l_diversity"]
    assert found.t[column] == pytest.approx(theirs["t_closeness"], rel=1e-10)
    assert found.basic_beta[column] == pytest.approx(theirs["basic_beta_likeness"], rel=1e-10)
    present = delta_disclosure(found.counts(column), present_only=True)
    assert present == pytest.approx(theirs["delta_disclosure"], rel=1e-10)
