"""Two proportions: sizes and coverages, what a release may be, wrong arguments."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from scipy import stats

from sfumato.errors import NeighboringMismatch, ParameterError
from sfumato.mechanisms import (
    CanonicalNoise,
    Gaussian,
    Grid,
    Histogram,
    Laplace,
    Variance,
    two_proportions_interval,
    two_proportions_test,
)
from sfumato.privacy import Neighboring
from tests.cases import cases
from tests.chance import accepts_only, at_least, at_most

JOINING = Laplace.calibrated(sensitivity=1, epsilon=1.0)
REPLACED = Laplace.calibrated(sensitivity=1, epsilon=1.0, neighboring=Neighboring.REPLACE_ONE)
RUNS = 150


def table(rng: np.random.Generator, sizes: tuple[int, int], shares: tuple[float, float]) -> Any:
    hits = rng.binomial(sizes, shares)
    return np.stack([hits, np.array(sizes) - hits], axis=1)


@cases(("sizes", "share"), [((20, 30), 0.5), ((200, 100), 0.1)])
@cases("public", [False, True])
def test_one_proportion_is_refused_as_rarely_as_promised(
    sizes: tuple[int, int], share: float, public: bool
) -> None:
    rng, values = np.random.default_rng(sizes[0]), []
    for _ in range(RUNS):
        counts = table(rng, sizes, (share, share))
        release = REPLACED.release(counts[:, 0], rng) if public else JOINING.release(counts, rng)
        given = sizes if public else None
        values.append(two_proportions_test(release, sizes=given, draws=99, rng=rng).p_value)
    for level in (0.05, 0.3):
        accepts_only(at_most(sum(value <= level for value in values), RUNS), level, never=0.0)
    assert sum(value <= 0.5 for value in values) > 0.25 * RUNS


@cases("public", [False, True])
def test_intervals_hold_the_difference_as_often_as_promised(public: bool) -> None:
    rng, sizes, held, wrong = np.random.default_rng(2), (40, 60), 0, 0
    for _ in range(RUNS):
        counts = table(rng, sizes, (0.5, 0.2))
        release = REPLACED.release(counts[:, 0], rng) if public else JOINING.release(counts, rng)
        given = sizes if public else None
        ends = two_proportions_interval(release, sizes=given, level=0.8, draws=99, rng=rng)
        held += ends.lower <= 0.3 <= ends.upper
        wrong += ends.lower <= 0.0 <= ends.upper
    accepts_only(at_least(held, RUNS), 0.8, too_narrow=0.98)
    assert wrong < 0.5 * RUNS


def test_without_noise_it_is_the_test_of_the_books() -> None:
    exact = Laplace.calibrated(sensitivity=1, epsilon=1e4)
    for counts in ([[30, 70], [45, 55]], [[300, 700], [330, 670]]):
        found = two_proportions_test(exact.release(np.array(counts), rng=1), rng=1)
        book = stats.chi2_contingency(counts, correction=False)
        assert found.statistic == pytest.approx(book.statistic**0.5, rel=0.02)
        assert found.p_value == pytest.approx(book.pvalue, abs=0.02)


def test_counts_may_come_in_any_of_four_ways() -> None:
    counts = np.array([[90, 110], [60, 240]])
    cells = Laplace.for_query(Histogram(categories=(0, 1, 2, 3)), epsilon=1.0)
    flat = cells.release(np.repeat([0, 1, 2, 3], counts.ravel()), rng=1)
    both = replace(flat, query=None, steps=counts, simulated=True)
    same = replace(flat, steps=counts.ravel())
    first, second = (replace(both, steps=row) for row in counts)
    found = [two_proportions_test(release, other, rng=3) for release, other in ((both, None), (same, None))]
    found.append(two_proportions_test(first, second, rng=3))
    assert found[0] == found[1] == found[2]
    assert found[0].p_value < 0.001
    for noisy in (
        REPLACED,
        CanonicalNoise(sensitivity=1, epsilon=1.0, neighboring=Neighboring.REPLACE_ONE),
    ):
        hits = noisy.release(counts[:, 0], rng=1)
        assert two_proportions_test(hits, sizes=(200, 300), alternative="greater", rng=3).p_value < 0.001
        assert two_proportions_test(hits, sizes=(200, 300), alternative="less", rng=3).p_value > 0.99
    wide = Gaussian.calibrated(sensitivity=1, epsilon=0.1, delta=1e-6).release(counts, rng=1)
    lower, upper, _ = two_proportions_interval(wide, rng=3)
    assert -1 <= lower < 0.25 < upper <= 1


def test_odd_counts_are_answered() -> None:
    for counts in (np.zeros((2, 2), np.int64), np.full((2, 2), -(10**6)), np.full((2, 2), 10**15)):
        release = JOINING.release(counts, rng=1)
        assert 0 < two_proportions_test(release, draws=99, rng=1).p_value <= 1
        lower, upper, _ = two_proportions_interval(release, draws=99, rng=1)
        assert -1 <= lower <= upper <= 1


def test_wrong_arguments_are_refused() -> None:
    four = JOINING.release(np.ones((2, 2), np.int64), rng=1)
    two = REPLACED.release(np.ones(2, np.int64), rng=1)
    moments = Laplace.for_query(Variance(bounds=(0.0, 1.0)), epsilon=1.0).release(np.zeros(5), rng=1)
    wrong: list[tuple[Any, Any, str]] = [
        ((two,), {}, "release must be of 4 noisy counts"),
        ((four, four), {}, "release must be of 2 noisy counts"),
        ((two, four), {}, "release must be of 2 noisy counts"),
        ((two, two), {"sizes": (3, 4)}, "other must be left out"),
        ((two,), {"sizes": (3, 4, 5)}, "sizes must be two"),
        ((two,), {"sizes": "ab"}, "sizes must be two"),
        ((two,), {"sizes": (0, 4)}, "n must be an integer"),
        ((moments,), {}, "release must be of 4 noisy counts"),
        ((3,), {}, "release must be of 4 noisy counts"),
        ((four,), {"draws": 5}, "draws must"),
        ((four,), {"rng": "x"}, "rng must"),
    ]
    for arguments, options, message in wrong:
        for call in (two_proportions_test, two_proportions_interval):
            with pytest.raises(ParameterError, match=message):
                call(*arguments, **options)
    with pytest.raises(ParameterError, match="alternative must"):
        two_proportions_test(four, alternative="more")  # type: ignore[arg-type]
    with pytest.raises(ParameterError, match="level must"):
        two_proportions_interval(four, level=1.0)
    with pytest.raises(NeighboringMismatch, match="replace-one or zero-out where n is public"):
        two_proportions_test(JOINING.release(np.ones(2, np.int64), rng=1), sizes=(3, 4))
    real = Laplace.calibrated(sensitivity=1.0, epsilon=1.0, grid=Grid(exponent=-3))
    assert two_proportions_test(real.release(np.ones(4), rng=1), draws=19, rng=1).p_value > 0
