"""The curator's report: what it says, what it refuses, and that nobody takes it for a release."""

from __future__ import annotations

import math
import re
import sys
import xml.etree.ElementTree as ET
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from sfumato.errors import MissingExtra, ParameterError
from sfumato.synthetic import (
    Association,
    Categorical,
    CuratorQualityReport,
    Marginals,
    Ordered,
    ReportedRows,
    TableDomain,
    curator_quality_report,
)
from tests.run_time import run_time
from tests.synthetic.quality.test_marginal_distances import SMALL, drawn
from tests.synthetic.quality.test_prediction import Recorder

if run_time(__name__):
    from sklearn.linear_model import LogisticRegression
    from sklearn.tree import DecisionTreeClassifier

DOMAIN = TableDomain(age=Ordered.integers(17, 90), sex=Categorical(["f", "m"]), income=["low", "high"])
ODD = "</title><script>"


def people(rows: int, seed: int, *, independent: bool = False) -> pa.Table:
    """Rows whose income follows from age; or of independent columns."""
    rng = np.random.default_rng(seed)
    age = rng.integers(17, 91, rows)
    high = (rng.permutation(age) if independent else age) > 50
    return pa.table(
        {
            "age": age,
            "sex": rng.choice(["f", "m"], rows),
            "income": np.where(high, "high", "low"),
            "person": np.arange(rows) + 10_000 * seed,
        }
    )


def numbers(report: CuratorQualityReport) -> dict[str, tuple[float, float, float]]:
    return {line.measure: line[1:] for line in report.summary()}


def test_a_copy_is_as_good_as_real_rows_and_independent_columns_are_not() -> None:
    real, held_out = people(600, 1), people(500, 2)
    given: Any = {"target": "income", "holdout": held_out, "rng": 3}
    tree = DecisionTreeClassifier(max_depth=3, random_state=0)
    copy = numbers(curator_quality_report(real, real, DOMAIN, classifier=tree, **given))
    assert copy["TVD, 2 columns, mean"][0] == copy["TVD, 2 columns, worst"][0] == 0
    assert copy["k-marginal score, 2 columns"][0] == 1000
    assert copy["accuracy of 'income'"][:2] == (1.0, 1.0)
    poor = curator_quality_report(real, people(600, 4, independent=True), DOMAIN, classifier=tree, **given)
    found = numbers(poor)
    assert found["TVD, 2 columns, worst"][0] > 2 * found["TVD, 2 columns, worst"][1]
    assert found["Cramer's V, mean difference"][0] > 0.2
    assert found["AUC of 'income'"][0] < 0.65
    assert found["AUC of 'income'"][1:] == (1.0, 0.5)
    assert found["C2ST AUC"][0] > 0.7
    assert abs(found["C2ST AUC"][1] - 0.5) < 0.1
    assert found["pMSE"][0] > 2 * found["pMSE"][1]
    assert math.isnan(found["pMSE"][2])
    assert poor.worst_marginals(1)[0].columns == poor.worst_associations(1)[0].columns == ("age", "income")
    frequent = max(held_out["income"].to_pylist().count(each) for each in ("low", "high")) / 500
    assert found["accuracy of 'income'"][2] in (frequent, 1 - frequent)


def test_the_default_classifier_is_reproduced_by_a_seed() -> None:
    real, made, held_out = people(200, 1), people(200, 4, independent=True), people(150, 2)
    both = [
        curator_quality_report(real, made, DOMAIN, target="income", holdout=held_out, rng=5, max_rows=150)
        for _ in range(2)
    ]
    assert str(both[0]) == str(both[1])
    assert numbers(both[0])["AUC of 'income'"][1] > 0.95


def test_means_are_weighted_as_the_workload_is() -> None:
    real, made = drawn(SMALL, 100, 1), drawn(SMALL, 70, 2)
    tables = [("a", "b"), ("b", "c"), ()]
    report = curator_quality_report(real, made, SMALL, workload=Marginals(tables, weights=[1, 3, 1]), rng=0)
    one, other, empty = (each.synthetic for each in report.marginals)
    found = numbers(report)
    assert found["TVD, 2 columns, mean"][0] == pytest.approx((one + 3 * other) / 4, abs=1e-12)
    assert found["TVD, 2 columns, worst"][0] == max(one, other)
    assert found["k-marginal score, 2 columns"][0] == pytest.approx(1000 - 500 * (one + other), abs=1e-9)
    assert empty == 0


def test_prediction_needs_rows_that_no_generator_saw() -> None:
    real = people(50, 1)
    for given, message in (
        ({"target": "income"}, "^holdout must be given where a target is predicted, but it is None; split"),
        ({"holdout": real}, "^holdout must be other rows than real, but it is the same table; split"),
        ({"target": "incme", "holdout": people(50, 2)}, "^column must be one of"),
    ):
        with pytest.raises(ParameterError, match=message):
            curator_quality_report(real, real, DOMAIN, **given)
    constant = TableDomain(age=Ordered.integers(17, 90), sex=Categorical(["f"], other=False))
    with pytest.raises(ParameterError, match="target must be a column of several cells"):
        curator_quality_report(real, real, constant, target="sex", holdout=people(50, 2))
    without = curator_quality_report(real, real, DOMAIN)
    assert without.prediction is None
    assert without.distinguishability is None
    assert "without holdout= there is no prediction" in str(without)


def test_held_out_rows_of_a_unit_that_was_trained_on_are_left_out() -> None:
    real, fresh = people(60, 1), people(40, 2)
    unknown = people(3, 3).set_column(3, "person", pa.array([None] * 3, pa.int64()))
    mixed = pa.concat_tables([real.slice(0, 25), fresh, unknown])
    tree: Any = DecisionTreeClassifier()
    report = curator_quality_report(real, fresh, DOMAIN, holdout=mixed, unit="person", classifier=tree, rng=1)
    assert str(report.holdout) == "40 of 68"
    nobody = curator_quality_report(
        real, fresh, DOMAIN, holdout=real.slice(0), unit="person", classifier=tree
    )
    assert str(nobody.holdout) == "0 of 60"
    assert math.isnan(numbers(nobody)["C2ST AUC"][0])
    text = fresh.set_column(3, "person", pa.array(["x"] * 40))
    with pytest.raises(ParameterError, match="column 'person' must be of one type in both tables"):
        curator_quality_report(real, fresh, DOMAIN, holdout=text, unit="person")
    with pytest.raises(ParameterError, match="holdout must be a frame with one column 'person'"):
        curator_quality_report(real, fresh, DOMAIN, holdout=fresh.drop(["person"]), unit="person")


def test_tables_without_rows_have_no_numbers_and_no_error() -> None:
    real, none = people(30, 1), people(0, 2)
    outside = real.set_column(1, "sex", pa.array(["x"] * 30))
    for tables in ((none, real), (real, none), (outside, real), (none, outside)):
        report = curator_quality_report(
            *tables, DOMAIN, target="income", holdout=people(20, 3), classifier=LogisticRegression(), rng=1
        )
        assert math.isnan(numbers(report)["TVD, 2 columns, mean"][0])
        assert math.isnan(numbers(report)["AUC of 'income'"][0])
        assert "-" in str(report)
        assert "nan" not in report.to_html()
    assert "0 of 30" in str(curator_quality_report(outside, real, DOMAIN))


def test_nobody_takes_it_for_a_release() -> None:
    report = curator_quality_report(people(50, 1), people(50, 2), DOMAIN, rng=1)
    warning = "FOR THE CURATOR ONLY, NOT A RELEASE"
    assert not hasattr(report, "loss")
    assert not hasattr(report, "value")
    assert str(report).startswith(warning)
    assert max(map(len, str(report).splitlines())) <= 80
    assert "not a release" in repr(report)
    page = ET.fromstring(re.sub("<(!DOCTYPE html|meta [^>]*)>", "", report.to_html()))
    assert str(page.find("body/p").text).startswith(warning)  # type: ignore[union-attr]
    for part in ("summary", "marginals", "associations"):
        assert report.table(part).schema.metadata[b"warning"].decode().startswith(warning)
        assert report.to_pandas(part).attrs["warning"].startswith(warning)
    assert report.plot().get_title().startswith(warning)


def test_parts_are_tables() -> None:
    report = curator_quality_report(people(50, 1), people(50, 2), DOMAIN, rng=1)
    assert report.table().column_names == ["measure", "synthetic", "real", "baseline"]
    assert report.table("marginals").to_pylist()[3]["columns"] == ["age", "sex"]
    assert report.table("associations").num_rows == 3
    with pytest.raises(ParameterError, match="part must be one of"):
        report.table("rows")  # type: ignore[arg-type]
    assert len(report.worst_marginals(2)) == 2
    alone = curator_quality_report(people(9, 1), people(9, 2), TableDomain(sex=["f", "m"]), rng=1)
    assert alone.associations == ()
    assert "Associations" not in alone.to_html()


def test_the_page_fetches_nothing_and_shows_names_as_text() -> None:
    domain = TableDomain({ODD: ["f", "m"], "x": [0, 1]})
    rows = pa.table({ODD: ["f", "m"] * 5, "x": [0, 1] * 5})
    page = curator_quality_report(rows, rows, domain, rng=1).to_html()
    assert "<script" not in page
    assert "href" not in page
    assert "src=" not in page
    assert "url(" not in page
    assert "&lt;/title&gt;&lt;script&gt;" in page
    assert page.count("<rect") == 2
    assert page.count("<svg") == 1


def test_a_missing_library_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    report = curator_quality_report(people(50, 1), people(50, 2), DOMAIN, rng=1)
    for library, ask, extra in (
        ("matplotlib.pyplot", report.plot, "plot"),
        ("pandas", report.to_pandas, "pandas"),
    ):
        monkeypatch.setitem(sys.modules, library, None)
        with pytest.raises(MissingExtra, match=rf"sfumato\[{extra}\]"):
            ask()


def test_parameters_are_checked() -> None:
    real = people(5, 1)
    for given in ({"rng": "x"}, {"max_rows": 0}, {"workload": [("age",)]}):
        with pytest.raises(ParameterError, match=f"^{next(iter(given))} must"):
            curator_quality_report(real, real, DOMAIN, **given)
    with pytest.raises(ParameterError, match=r"^domain must"):
        curator_quality_report(real, real, {"age": [1]})  # type: ignore[arg-type]


def test_rows_are_counted_for_each_table() -> None:
    outside = people(3, 5).set_column(1, "sex", pa.array(["x"] * 3))
    tables = [pa.concat_tables([people(size, size), outside]) for size in (40, 50, 60)]
    real, made, fresh = tables
    tree: Any = DecisionTreeClassifier()
    report = curator_quality_report(real, made, DOMAIN, holdout=fresh, classifier=tree, rng=1)
    line = "rows in the domain: real 40 of 43, synthetic 50 of 53, held out 60 of 63"
    assert line in str(report)
    assert (*report.real, *report.synthetic, *(report.holdout or ())) == (40, 43, 50, 53, 60, 63)


def test_classifiers_are_given_as_many_rows_of_each_table() -> None:
    for made, most, expected in ((60, 1000, (60, 40)), (200, 1000, (90, 40)), (60, 30, (30, 30))):
        recorder = Recorder()
        curator_quality_report(
            people(90, 1),
            people(made, 2),
            DOMAIN,
            target="income",
            holdout=people(40, 3),
            classifier=recorder,
            max_rows=most,
        )
        assert recorder.sizes[:2] == [expected[0]] * 2
        third = 2 * expected[1] / 3  # of each of two tables, two of three folds
        assert all(abs(size - 2 * third) < 3 for size in recorder.sizes[2:])
        assert len(recorder.sizes) == 8


def test_the_figure_and_the_page_show_by_how_much_each_pair_is_off() -> None:
    pairs = [Association(("a", "b"), 0.5, 0.25, 0.0), Association(("a", "c"), 0.0, 1.0, 0.0)]
    missing = Association(("b", "c"), math.nan, 0.5, 0.0)
    rows = ReportedRows(counted=1, present=1)
    report = CuratorQualityReport(
        real=rows, synthetic=rows, marginals=(), weights=(), associations=[missing, *pairs]
    )
    ax = report.plot()
    (image,) = ax.images
    shown = image.get_array().filled(9.0)
    assert shown.tolist() == [[9, 9, -0.25], [9, 9, 1], [-0.25, 1, 9]]
    assert image.get_clim() == (-1, 1)
    assert [label.get_text() for label in ax.get_xticklabels()] == ["b", "c", "a"]
    assert [label.get_text() for label in ax.get_yticklabels()] == ["b", "c", "a"]
    assert report.plot(ax) is ax
    page = report.to_html()
    assert re.findall(r'<rect x="(\d+)" y="(\d+)"[^>]*fill="(#\w+)"', page) == [
        ("18", "26", "#e8e8e8"),
        ("44", "0", "#e8e8e8"),
        ("70", "0", "#d88c95"),  # half way from white to red: the root of a quarter
        ("18", "52", "#d88c95"),
        ("70", "26", "#2166ac"),
        ("44", "52", "#2166ac"),
    ]
    assert "<title>a, b: synthetic 0.2500, real 0.5000</title>" in page
    assert [each.columns for each in report.worst_associations(3)] == [("a", "c"), ("a", "b"), ("b", "c")]
