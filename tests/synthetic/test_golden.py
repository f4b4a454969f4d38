"""Released models are written in the bytes of their frozen format, and read back."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from sfumato.privacy import ZCDP, Neighboring
from sfumato.synthetic import MarginalsRelease, SyntheticModel
from tests.golden.synthetic import released_model, released_ranges

GOLDEN = Path(released_model.__file__).parent


def test_what_is_written_today_is_what_was_written_first() -> None:
    for name, content in (released_model.files() | released_ranges.files()).items():
        assert content == (GOLDEN / name).read_bytes(), name


def test_a_model_of_the_first_version_is_read() -> None:
    text = (GOLDEN / "synthetic-model.json").read_text()
    model = SyntheticModel.from_json(text)
    assert model.to_json() == text
    assert model.domain.to_json() == released_model.DOMAIN.to_json()
    assert (model.total, model.duality_gap, model.simulated) == (1234.5, 0.0625, False)
    assert model.loss == ZCDP(0.015, neighboring=Neighboring.REPLACE_ONE)
    weights = np.exp(
        released_model.THETAS[0, 2] + released_model.THETAS[(0,)][:, None] + released_model.THETAS[(2,)]
    )
    groups = 1234.5 * weights / weights.sum()
    found = model.marginal("age", "sex")
    np.testing.assert_allclose(found[:2], groups[:2], rtol=1e-12)
    np.testing.assert_allclose(found[2:], np.tile(groups[2] / 3, (3, 1)), rtol=1e-12)
    assert model.table(5, rng=1).schema.names == ["age", "born", "sex", "children"]


def test_released_ranges_of_the_first_version_that_had_them_are_read() -> None:
    text = (GOLDEN / "released-ranges.json").read_text()
    found = MarginalsRelease.from_json(text)
    assert found.to_json() == text
    # What is known of rows only by their number is divided as the strategy's null vector says.
    base = np.array([32000, 33000, 31000.0])  # the cross product of the rows
    cells = 1000.5 * base / base.sum() + released_ranges.VALUES[(0,)]
    np.testing.assert_allclose(found.marginal("age").counts, cells, rtol=1e-12)
    table = found.ranges("age", between={"age": [(0, 60)]})
    np.testing.assert_allclose(table.counts, [cells[0] + cells[1]], rtol=1e-12)
    np.testing.assert_allclose(table.stddev, found.prefixes("age").stddev[1:2], rtol=1e-12)


def test_a_model_with_structural_zeros_is_read() -> None:
    text = (GOLDEN / "synthetic-model-zeros.json").read_text()
    model = SyntheticModel.from_json(text)
    assert model.to_json() == text
    assert len(model.domain.structural_zeros) == 2
    found, made = model.marginal("age", "children"), released_model.released_with_zeros()
    assert (found[0, 1:] == 0).all()
    assert found[0, 0] > 0 < found[1:].min()
    np.testing.assert_allclose(found, made.marginal("age", "children"), rtol=1e-12)
    assert model.marginal("born", "sex")[0, 2] == 0 < model.marginal("born", "sex")[1, 2]


def test_a_model_with_a_prior_is_read() -> None:
    text = (GOLDEN / "synthetic-model-prior.json").read_text()
    model, made = SyntheticModel.from_json(text), released_model.released_with_prior()
    assert model.to_json() == text
    assert model.prior is not None
    assert made.prior is not None
    assert model.value.prior_strength == 0.5
    assert model.prior.digest == made.prior.digest
    assert model.marginal("born", "children")[0, 2] == 0
    for columns in (("sex", "children"), ("born",), ("age", "sex")):
        np.testing.assert_allclose(model.marginal(*columns), made.marginal(*columns), rtol=1e-12)
    plain = SyntheticModel.from_json((GOLDEN / "synthetic-model.json").read_text())
    assert np.abs(model.marginal("sex", "children") - plain.marginal("sex", "children")).max() > 10
