from __future__ import annotations

import json

import numpy as np
import pyarrow as pa
import pytest

from sfumato import anonymity
from sfumato.errors import ParameterError
from tests.run_time import run_time

if run_time(__name__):
    import matplotlib as mpl

    mpl.use("Agg")


def report() -> anonymity.Report:
    table = pa.table(
        {
            "zip": ["021", "021", "021", "100", "100"],
            "job": ["cook", "nurse", "nurse", "cook", "cook"],
            "pay": [3, 1, 2, 9, 10],
        }
    )
    jobs = anonymity.GeneralizationHierarchy.from_rows([("cook", "*"), ("nurse", "*")])
    data = anonymity.Microdata(table, quasi_identifiers=["zip"], sensitive={"job": jobs, "pay": None})
    return anonymity.check(data, population_size=50)


def test_every_measure_is_there_by_column() -> None:
    found = report()
    assert found.t_distance == {"job": "hierarchical", "pay": "ordered"}
    assert found.distinct_l == {"job": 1, "pay": 2}
    assert found.entropy_l == {"job": 1.0, "pay": 2.0}
    assert found.alpha == {"job": 1.0, "pay": 0.5}
    assert found.recursive_c == {"job": np.inf, "pay": 1.0}
    assert found.recursive_diversity("pay", 3) == np.inf
    assert found.t == pytest.approx({"job": 0.4, "pay": 0.375}, rel=1e-12)
    assert found.t_closeness("job", "equal") == pytest.approx(0.4, rel=1e-12)
    assert found.t_closeness("pay", "equal") == pytest.approx(0.6, rel=1e-12)
    assert found.basic_beta == pytest.approx({"job": 2 / 3, "pay": 1.5}, rel=1e-12)
    assert found.enhanced_beta == pytest.approx({"job": np.inf, "pay": 1.5}, rel=1e-12)
    assert found.delta_disclosure == {"job": np.inf, "pay": np.inf}


def test_json_has_every_measure_and_no_infinity() -> None:
    document = json.loads(report().to_json())
    assert (document["format"], document["version"]) == ("sfumato.anonymity-report", 1)
    assert document["k"] == 2
    assert document["sensitive"]["job"]["delta_disclosure"] is None
    assert document["sensitive"]["pay"]["t"] == pytest.approx(0.375)
    assert document["risk"]["population_uniqueness"]["chosen"] == "zayatz"


def test_the_text_says_whom_it_is_for() -> None:
    lines = str(report()).splitlines()
    assert lines[0] == "FOR THE CURATOR ONLY: measures of real rows; none of them is differential privacy"
    shown = {" ".join(line.split()) for line in lines}
    assert {
        "rows, classes 5, 2",
        "k-anonymity 2",
        "pay: t-closeness, ordered 0.375",
        "pay: delta-disclosure none",
        "prosecutor: highest, average 50 %, 40 %",
        "unique in the population, zayatz 0 %",
    } <= shown


def test_the_plot_is_the_distribution_of_class_sizes() -> None:
    axes = report().plot()
    (line,) = axes.get_lines()
    assert line.get_xydata().tolist() == pytest.approx(np.array([[2.0, 0.4], [3.0, 1.0]]))
    assert report().plot(axes) is axes


def test_what_is_not_sensitive_or_no_distance_is_refused() -> None:
    with pytest.raises(ParameterError, match="column must be a sensitive column, got 'zip'"):
        report().t_closeness("zip")
    with pytest.raises(ParameterError, match="distance must be equal, ordered or hierarchical, got 'far'"):
        report().t_closeness("pay", "far")  # type: ignore[arg-type]
    with pytest.raises(ParameterError, match="l must be an integer of at least 2, got 1"):
        report().recursive_diversity("pay", 1)
