"""The test of a slope: its size, also beside other features, its power, wrong arguments."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from scipy import stats

from sfumato.errors import ParameterError
from sfumato.mechanisms import Gaussian, Laplace, LeastSquares, Variance, slope_test
from tests.cases import cases
from tests.chance import accepts_only, at_most

ONE, TWO = LeastSquares(bounds=((-4, 4), (-4, 4))), LeastSquares(bounds=((-4, 4),) * 3)


def records(rng: np.random.Generator, n: int, slope: float, *, features: int = 1) -> Any:
    """The second feature goes along with the first one, and moves the response."""
    x = rng.normal(size=(n, features))
    if features > 1:
        x[:, 1] = 0.6 * x[:, 0] + 0.8 * x[:, 1]
    response = slope * x[:, 0] + 0.5 * x[:, features - 1] * (features > 1) + rng.normal(0, 0.8, n)
    return np.column_stack([x, response])


@cases("features", [1, 2])
@cases("kind", [Laplace, Gaussian])
def test_a_slope_of_zero_is_refused_as_rarely_as_promised(features: int, kind: Any) -> None:
    delta = {"delta": 1e-6} if kind is Gaussian else {}
    query, runs, rng = (ONE, TWO)[features - 1], 60, np.random.default_rng(features)
    noisy = kind.for_query(query, epsilon=2.0, **delta)
    found = [
        slope_test(noisy.release(records(rng, 2000, 0.0, features=features), rng), draws=59, rng=rng).p_value
        for _ in range(runs)
    ]
    assert sum(value <= 0.05 for value in found) <= 14
    hits = sum(value <= 0.3 for value in found)
    accepts_only(at_most(hits, runs), 0.35, never=0.01)
    assert sum(value <= 0.6 for value in found) > 0.25 * runs


def test_without_noise_it_is_the_test_of_the_books() -> None:
    rng = np.random.default_rng(3)
    noisy = Gaussian.for_query(ONE, epsilon=1e5, delta=1e-6)
    for slope in (0.0, 0.08):
        data = records(rng, 300, slope)
        book = stats.linregress(data[:, 0], data[:, 1])
        found = slope_test(noisy.release(data, rng=1), rng=1, draws=1999)
        assert found.statistic == pytest.approx(abs(book.slope) / book.stderr, rel=0.03)
        assert found.p_value == pytest.approx(book.pvalue, abs=0.05)


def test_slopes_are_noticed_each_by_itself() -> None:
    rng = np.random.default_rng(4)
    noisy = Gaussian.for_query(TWO, epsilon=1.0, delta=1e-6)
    release = noisy.release(records(rng, 20_000, 0.0, features=2), rng=1)
    assert slope_test(release, 0, draws=199, rng=1).p_value > 0.05
    assert slope_test(release, 1, draws=199, rng=1).p_value < 0.01
    assert slope_test(release, 1, alternative="less", draws=199, rng=1).p_value > 0.9
    named = noisy.release(records(rng, 20_000, 1.0, features=2), rng=1)
    bare = replace(named, query=None)
    assert slope_test(bare, 0, query=TWO, draws=199, rng=1).p_value < 0.01


def test_odd_data_is_answered() -> None:
    noisy = Laplace.for_query(TWO, epsilon=1.0)
    for rows in (np.zeros((0, 3)), np.ones((50, 3)), np.full((9, 3), np.nan)):
        assert 0 < slope_test(noisy.release(rows, rng=1), 1, draws=39, rng=1).p_value <= 1


def test_wrong_arguments_are_refused() -> None:
    release = Laplace.for_query(ONE, epsilon=1.0).release(np.zeros((5, 2)), rng=1)
    other = Laplace.for_query(Variance(bounds=(0.0, 1.0)), epsilon=1.0).release(np.zeros(5), rng=1)
    wrong: list[tuple[Any, Any, str]] = [
        ((release, 1), {}, "feature must be below 1"),
        ((release, -1), {}, "feature must"),
        ((release,), {"query": TWO}, "release must be of this query"),
        ((release,), {"draws": 3}, "draws must"),
        ((release,), {"alternative": "more"}, "alternative must"),
        ((other,), {}, "query must"),
        ((3,), {}, "release must be of a LeastSquares query"),
    ]
    for arguments, options, message in wrong:
        with pytest.raises(ParameterError, match=message):
            slope_test(*arguments, **options)
