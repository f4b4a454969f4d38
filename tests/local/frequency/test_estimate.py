"""Estimates: unbiased, with the variance, covariance and coverage that they state."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from scipy.stats import binom

from sfumato.errors import ParameterError
from sfumato.local import (
    Domain,
    Estimate,
    HadamardResponse,
    OneBitHadamard,
    OptimalLocalHashing,
    OptimizedUnaryEncoding,
    RandomizedResponse,
)
from sfumato.local.frequency.consistency import STEPS
from sfumato.local.frequency.support import Support
from tests.cases import cases
from tests.chance import accepts_only, at_most
from tests.local.laws import covers

COUNTS = np.array([500, 300, 150, 40, 10, 0])
ORACLE = RandomizedResponse(epsilon=1.0, domain=Domain(list("abcdef")))


def simulated(repeats: int, times: int = 1) -> list[Estimate]:
    generator = np.random.default_rng(1)
    return [ORACLE.simulate(COUNTS * times, generator) for _ in range(repeats)]


def test_estimates_are_exact_where_all_counts_are_as_expected() -> None:
    support = ORACLE.support
    shares = COUNTS / COUNTS.sum()
    counts = 10**9 * (float(support.other) + shares * float(support.gap))
    found = ORACLE.estimate(counts.astype(np.int64), 10**9)
    assert np.allclose(found.frequencies, shares, atol=1e-8)
    assert np.allclose(found.counts, 10**9 * shares, atol=10)
    assert found.of("b") == found.frequencies[1]
    assert [name for name, _ in found.top(2)] == ["a", "b"]
    assert found.top(0) == []
    assert len(found.top(99)) == 6
    assert found.loss == ORACLE.privacy_loss


def test_intervals_cover_as_they_say() -> None:
    many, truth = simulated(2000, times=100), COUNTS / COUNTS.sum()
    for method in ("score", "exact"):
        ends = [estimate.interval(0.95, method=method) for estimate in many]
        held = np.sum([(end.lower <= truth) & (truth <= end.upper) for end in ends], axis=0)
        covers(held, len(many))
        if method == "score":
            accepts_only(at_most(int(held.max()), len(many)), 0.96, as_of_90=0.9)
    bands = [estimate.bands(0.9) for estimate in many]
    all_held = sum(bool(((end.lower <= truth) & (truth <= end.upper)).all()) for end in bands)
    covers(all_held, len(many), 0.9, claimed=0.97)


@pytest.mark.parametrize("n", [1, 2, 5, 30])
def test_exact_intervals_cover_few_reports(n: int) -> None:
    # Every count's law is a convolution of two binomials; its coverage is summed up, for every share.
    support = RandomizedResponse(epsilon=3.0, domain=Domain(["no", "yes"])).support
    p, q = float(support.true), float(support.other)
    for level in (0.5, 0.95):
        counts = np.arange(n + 1)
        ends = support.interval(support.shares(counts, n), n, 1 - level, "exact")
        for true in range(n + 1):
            law = np.convolve(
                binom.pmf(np.arange(true + 1), true, p), binom.pmf(np.arange(n - true + 1), n - true, q)
            )
            held = law[(ends.lower <= true / n) & (true / n <= ends.upper)].sum()
            assert held >= level - 1e-9


@pytest.mark.parametrize("level", [0.6, 0.95])
def test_each_exact_end_is_missed_as_rarely_as_it_says(level: float) -> None:
    # Where nearly everything is supported, the binomial law alone would miss an end too often.
    p, q, n = 0.99, 0.8, 2
    zero = Fraction(0)
    support = Support(true=Fraction(99, 100), other=Fraction(4, 5), with_true=zero, both_others=zero)
    ends = support.interval(support.shares(np.arange(n + 1), n), n, 1 - level, "exact")
    for true in range(n + 1):
        law = np.convolve(
            binom.pmf(np.arange(true + 1), true, p), binom.pmf(np.arange(n - true + 1), n - true, q)
        )
        for missed in (ends.upper < true / n, ends.lower > true / n):
            assert law[missed].sum() <= (1 - level) / 2


def test_ends_of_scores_solve_their_equation() -> None:
    support, n, z = ORACLE.support, 10_000, 1.7
    raw = np.array([0.02, 0.3, 0.9])
    found = support.score(raw, n, z)
    half = 0.5 / (n * float(support.gap))
    for end, side in ((found.lower, -1), (found.upper, 1)):
        away = side * (end - raw) - half
        assert np.allclose(away, z * np.sqrt(support.variance(end) / n), rtol=1e-9)


def test_nobody_reported() -> None:
    found = ORACLE.aggregator().estimate()
    assert np.isnan(found.frequencies).all()
    assert np.isinf(found.variances).all()
    assert np.isnan(found.covariance()).all()
    for method in ("score", "exact"):
        lower, upper, _ = found.interval(method=method)
        assert (lower == 0).all()
        assert (upper == 1).all()
    with pytest.raises(ParameterError, match="reports must be at least 1"):
        found.consistent("norm-sub")


def test_a_table_and_its_rows() -> None:
    found = simulated(1)[0]
    table = found.to_dict()
    assert list(table) == ["category", "frequency", "lower", "upper", "stddev", "below_detection"]
    assert table["category"] == list("abcdef")
    assert {len(column) for column in table.values()} == {6}
    assert np.allclose(found.covariance([4, 1]), found.covariance()[[4, 1]])
    assert np.allclose(np.diag(found.covariance()), found.variances)


@cases("step", STEPS)
def test_steps_are_named_and_keep_the_raw_estimate(step: str) -> None:
    raw = simulated(1)[0]
    found = raw.consistent(step)
    assert found.steps == (step,)
    assert found.raw is raw.frequencies
    assert found.interval().lower.tolist() == raw.interval().lower.tolist()
    if step.startswith("norm-") or step == "simplex":
        assert found.frequencies.min() >= 0
        assert found.frequencies.sum() <= 1 + 1e-12


def test_refuses_odd_questions() -> None:
    found = simulated(1)[0]
    with pytest.raises(ParameterError, match="step must be one of base-pos"):
        found.consistent("magic")
    with pytest.raises(ParameterError, match="method must be 'score'"):
        found.interval(method="wald")
    with pytest.raises(ParameterError, match="level must be"):
        found.interval(1.0)
    large = RandomizedResponse(epsilon=1.0, domain=Domain(range(5000))).simulate(np.ones(5000, int))
    with pytest.raises(ParameterError, match="rows must be given"):
        large.covariance()
    assert large.covariance([3]).shape == (1, 5000)
    for odd in ([1, 2], COUNTS * 1.0, -COUNTS):
        with pytest.raises(ParameterError, match="true_counts must be"):
            ORACLE.simulate_counts(odd)


def test_base_cut_keeps_nothing_of_nobody() -> None:
    """The noise is that of a share of 0: where it falls with the share, the estimate's is too small."""
    oracle, runs = OneBitHadamard(epsilon=4.0, domain=Domain(range(1000))), 400
    counts = np.bincount([0] * 100, minlength=1000)
    many = [oracle.simulate(counts, rng=run) for run in range(runs)]
    kept = sum(bool((each.consistent("base-cut").frequencies[1:] > 0).any()) for each in many)
    # Those alone whose interval, of each share and not of all together, is above 0 are many more.
    single = sum(bool((each.interval(0.95).lower[1:] > 0).any()) for each in many)
    accepts_only(lambda wrong: at_most(wrong, runs)(0.05), kept, of_each_alone=single)


@cases("kind", [OptimizedUnaryEncoding, OptimalLocalHashing, HadamardResponse])
@cases("epsilon", [8.0, 12.0])
def test_intervals_of_few_reports_with_a_large_epsilon_hold_shares_of_0(kind: Any, epsilon: float) -> None:
    """Half a count is far beside the noise: a root of the quadratic then lies inside of the estimate."""
    oracle = kind(epsilon=epsilon, domain=Domain(range(20)))
    counts = np.array([50, 25, 25] + [0] * 17)
    held = []
    for seed in range(150):
        lower, upper, _ = oracle.simulate(counts, rng=seed).interval(0.95)
        held.append((lower <= counts / 100) & (counts / 100 <= upper))
    covers(int(np.sum(held)), np.size(held), claimed=1.0)


def test_what_lies_too_far_below_0_is_below_detection() -> None:
    support = ORACLE.support
    counts = 10**6 * (float(support.other) + np.array([1.0, 0.0, 0.0, -0.1, 0.05, 0.05]) * float(support.gap))
    found = ORACLE.estimate(counts.astype(np.int64), 10**6)
    assert found.below_detection().tolist() == [False, False, False, True, False, False]
    assert found.interval().upper[3] == 0.0
    assert found.to_dict()["below_detection"].tolist() == found.below_detection().tolist()


def test_estimates_are_frames_and_pictures() -> None:
    (found,) = simulated(1)
    frame = pytest.importorskip("pandas").DataFrame(found.to_dict(0.9))
    assert found.to_pandas(0.9).equals(frame)
    axes = pytest.importorskip("matplotlib.figure").Figure().subplots()
    assert found.plot(axes, most=4) is axes
    heights = [patch.get_height() for patch in axes.patches]
    assert heights == sorted(found.frequencies, reverse=True)[:4]
    with pytest.raises(ParameterError, match="most must be"):
        found.plot(axes, most=0)
