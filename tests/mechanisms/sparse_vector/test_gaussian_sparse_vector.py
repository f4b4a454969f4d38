"""The Gaussian sparse vector technique: its distribution by quadrature against its loss, its sampler."""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any

import mpmath
import numpy as np
import pytest
from scipy.special import ndtr

from sfumato.errors import ParameterError, SfumatoError
from sfumato.mechanisms import GaussianSparseVector, Grid, SparseVector
from sfumato.numerics.sampling import normal_tail, rounded_noise
from sfumato.privacy.leaves import gaussian_sparse_vector as leaves
from sfumato.privacy.leaves.discrete_gaussian import DiscreteGaussian
from sfumato.privacy.neighboring import Neighboring
from tests.cases import cases
from tests.chance import accepts_only, frequencies, rate
from tests.numerics.enumeration import WORDS, enumerated
from tests.numerics.sources import ListedSource

Z = np.linspace(-9, 9, 1201)


def probability(mechanism: GaussianSparseVector, queries: Sequence[float], answers: Sequence[bool]) -> float:
    """The probability of answers to queries, by a sum over the threshold's noise."""
    product = np.exp(-Z * Z / 2) / math.sqrt(2 * math.pi) * (Z[1] - Z[0])
    threshold = float(mechanism.threshold) + float(mechanism.threshold_stddev) * Z
    for query, answer in zip(queries, answers, strict=False):
        x = (threshold - query) / float(mechanism.query_stddev)
        product = product * ndtr(-x if answer else x)
    return float(product.sum())


def runs(length: int, positives: int) -> Iterator[tuple[bool, ...]]:
    """Every run that ends with its last positive or with the queries."""
    for end in range(1, length + 1):
        for answers in itertools.product([False, True], repeat=end):
            places = [i for i, answer in enumerate(answers) if answer]
            last = len(places) == positives and answers[-1]
            if last or (end == length and len(places) < positives):
                yield answers


@pytest.mark.parametrize(("positives", "monotone"), [(1, False), (2, False), (1, True), (2, True)])
def test_the_loss_covers_the_distribution(positives: int, monotone: bool) -> None:
    mechanism = GaussianSparseVector(
        sensitivity=1,
        threshold_stddev=2,
        query_stddev=Fraction(7, 2),
        length=3,
        positives=positives,
        monotone=monotone,
    )
    queries = (1, -2, 0)
    here = np.array([probability(mechanism, queries, answers) for answers in runs(3, positives)])
    assert here.sum() == pytest.approx(1, abs=1e-12)
    moves = [m for m in itertools.product([-1, 0, 1], repeat=3) if not monotone or len({*m} - {0}) <= 1]
    for epsilon in (0.0, 0.2, 0.5):
        claimed, worst = mechanism.privacy_loss.delta(epsilon), 0.0
        for move in moves:
            moved = [query + step for query, step in zip(queries, move, strict=True)]
            there = np.array([probability(mechanism, moved, answers) for answers in runs(3, positives)])
            for a, b in ((here, there), (there, here)):
                worst = max(worst, float(np.maximum(0, a - math.exp(epsilon) * b).sum()))
        assert worst <= claimed * (1 + 1e-9)
        assert epsilon or worst > 0.2 * claimed


@pytest.mark.parametrize("by_one", [False, True])
@pytest.mark.parametrize("open_coins", [False, True])
def test_runs_come_as_often_as_the_distribution_says(
    by_one: bool, open_coins: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if open_coins:
        monkeypatch.setattr(normal_tail, "_MARGIN", 2.0)
        monkeypatch.setattr(rounded_noise, "_WORDS", 0)
    mechanism = GaussianSparseVector(
        sensitivity=1, threshold_stddev=2, query_stddev=3, length=3, positives=2, threshold=0.5
    )
    queries, count = np.array([0, -1, 2]), 1500
    rng = np.random.default_rng(8)
    seen: Counter[tuple[bool, ...]] = Counter()
    for _ in range(count):
        released = mechanism.answers(queries, rng=rng) if by_one else mechanism.release(queries, rng).value
        seen[tuple(bool(answer) for answer in released)] += 1
    assert set(seen) <= set(runs(3, 2))

    def distribution(query_stddev: int) -> dict[tuple[bool, ...], float]:
        other = replace(mechanism, query_stddev=query_stddev)
        return {answers: probability(other, queries.tolist(), answers) for answers in runs(3, 2)}

    accepts_only(frequencies(seen), distribution(3), steadier=distribution(1), noisier=distribution(9))


@pytest.mark.parametrize("by_one", [False, True])
@pytest.mark.parametrize(("sign", "signed"), [(1, 1), (0, -1)])
def test_all_coins_together_follow_the_distribution_given_the_threshold(
    by_one: bool, sign: int, signed: int
) -> None:
    """A threshold of known words; one word for each answer: every run, with its exact share."""
    mechanism = GaussianSparseVector(
        sensitivity=1, threshold_stddev=2, query_stddev=3, length=3, positives=2, threshold=0.5
    )
    queries, rest = np.array([0, -1, 2]), WORDS // 3
    # Sign; no whole part; the rest of the magnitude; both coins that accept it; then the answers.
    known = [sign, WORDS - 1, 0, rest, 0, 0, 0, 0, 0]

    def released(*coins: int) -> tuple[bool, ...]:
        source = ListedSource([*known, *coins, *[1 << 63] * 8])
        given = mechanism.answers(queries, rng=source) if by_one else mechanism.release(queries, source).value
        return tuple(bool(answer) for answer in given)

    noise = signed * rest / WORDS
    chances = [float(ndtr((query - 0.5 - 2 * noise) / 3)) for query in queries]
    found = enumerated(
        released,
        *(
            [
                ((0, int(p * WORDS) - (1 << 20)), Fraction(p)),
                ((int(p * WORDS) + (1 << 20), WORDS - 1), 1 - Fraction(p)),
            ]
            for p in chances
        ),
    )
    for answers, share in found.items():
        parts = [p if answer else 1 - p for p, answer in zip(chances, answers, strict=False)]
        assert float(share) == pytest.approx(math.prod(parts), rel=1e-12)
    assert set(found) == set(runs(3, 2))


@pytest.mark.parametrize(("step", "stddev"), [(1, Fraction(1, 50)), (1 << 60, 1 << 39)])
def test_far_and_fine_thresholds_are_compared_to_the_last_digit(step: int, stddev: Any) -> None:
    # Whether a query one standard deviation below is above: 24 times in 100, in any range.
    mechanism = GaussianSparseVector(
        sensitivity=1,
        threshold_stddev=stddev,
        query_stddev=stddev,
        length=10,
        threshold=step + stddev,
        integral=True,
    )
    hits = sum(next(mechanism.answers([step], rng=seed)) for seed in range(600))
    p = float(ndtr(-1 / math.sqrt(2)))
    accepts_only(rate(hits, 600), p, half_as_often=p / 2, even=0.5)


def test_a_run_ends_with_its_length() -> None:
    mechanism = GaussianSparseVector(
        sensitivity=1, threshold_stddev=1, query_stddev=1, length=70_000, threshold=1000, positives=3
    )
    values = np.zeros(100_000, np.int64)
    values[[10, 65_536, 70_000]] = 10_000
    released = mechanism.release(values).value
    assert len(released) == 70_000
    assert np.flatnonzero(released).tolist() == [10, 65_536]
    asked: list[int] = []

    def ask() -> Iterator[int]:
        while True:
            asked.append(1)
            yield 0

    short = GaussianSparseVector(sensitivity=1, threshold_stddev=1, query_stddev=1, length=5, threshold=1000)
    assert list(short.answers(ask())) == [False] * 5
    assert len(asked) == 5


@pytest.mark.parametrize(("positives", "monotone", "numbers"), [(1, False, False), (5, True, True)])
@pytest.mark.parametrize("sensitivity", [1, 0.1])
def test_calibration_meets_its_request_tightly(
    positives: int, monotone: bool, numbers: bool, sensitivity: Any
) -> None:
    mechanism = GaussianSparseVector.calibrated(
        sensitivity=sensitivity,
        epsilon=0.7,
        delta=1e-6,
        length=1000,
        positives=positives,
        monotone=monotone,
        numbers=numbers,
    )
    assert 0.7 * (1 - 1e-5) < mechanism.privacy_loss.quick_epsilon(1e-6) <= 0.7
    assert mechanism.privacy_loss.epsilon(1e-6) <= 0.7
    assert (mechanism.answer_stddev is not None) is numbers


def test_many_positives_cost_less_noise_than_with_laplace() -> None:
    request: dict[str, Any] = {"sensitivity": 1, "epsilon": 1.0, "positives": 200}
    gaussian = GaussianSparseVector.calibrated(delta=1e-6, length=1000, **request)
    laplace = SparseVector.calibrated(**request)
    assert gaussian.query_stddev < 0.5 * laplace.query_scale


def test_numbers_come_with_fresh_noise_near_the_value() -> None:
    mechanism = GaussianSparseVector(
        sensitivity=0.5,
        threshold_stddev=0.01,
        query_stddev=0.01,
        answer_stddev=0.25,
        length=9,
        threshold=10,
        positives=2,
    )
    values = np.array([1.0, 50.0, 2.0, 70.0, 90.0])
    release = mechanism.release(values, rng=3)
    assert np.isnan(release.value).tolist() == [True, False, True, False]
    assert np.abs(release.value[[1, 3]] - [50, 70]).max() < 3
    assert release.simulated
    one_by_one = list(mechanism.answers(values.tolist(), rng=3))
    assert one_by_one[0] is False
    assert abs(one_by_one[3] - 70) < 3


def test_what_is_no_number_counts_as_zero_or_is_clamped() -> None:
    mechanism = GaussianSparseVector(
        sensitivity=1.0, threshold_stddev=0.01, query_stddev=0.01, length=9, threshold=5, positives=2
    )
    values = np.array([math.nan, -math.inf, math.inf, 4.0, 6.0, 7.0])
    assert mechanism.release(values).value.tolist() == [False, False, True, False, True]
    assert mechanism.release(np.zeros(0)).value.tolist() == []
    for threshold in (1e300, -1e300):
        far = GaussianSparseVector(
            sensitivity=1.0, threshold_stddev=1, query_stddev=1, length=9, threshold=threshold
        )
        assert far.release(np.array([0.0])).value.tolist() == [threshold < 0]


@cases(
    ("change", "error", "message"),
    [
        ({"sensitivity": 0}, ParameterError, "sensitivity must"),
        ({"sensitivity": math.inf}, ParameterError, "sensitivity must be finite"),
        ({"threshold_stddev": 0}, ParameterError, "threshold_stddev must"),
        ({"query_stddev": -1}, ParameterError, "query_stddev must"),
        ({"answer_stddev": 0.0}, ParameterError, "answer_stddev must"),
        ({"query_stddev": 2**60}, ParameterError, "query_stddev must be from"),
        ({"length": 0}, ParameterError, "length must"),
        ({"length": 2**51}, ParameterError, "length must"),
        ({"length": 2.5}, ParameterError, "length must"),
        ({"positives": 0}, ParameterError, "positives must"),
        ({"threshold": math.nan}, ParameterError, "threshold must be a finite number"),
        ({"monotone": True, "neighboring": Neighboring.REPLACE_ONE}, SfumatoError, "monotone"),
    ],
)
def test_bad_parameters_are_refused(change: dict[str, Any], error: type[Exception], message: str) -> None:
    good: dict[str, Any] = {"sensitivity": 1, "threshold_stddev": 2, "query_stddev": 4, "length": 10}
    with pytest.raises(error, match=message):
        GaussianSparseVector(**good | change)


def test_bad_requests_and_values_are_refused() -> None:
    with pytest.raises(ParameterError, match="delta must"):
        GaussianSparseVector.calibrated(sensitivity=1, epsilon=1.0, delta=0.0, length=10)
    mechanism = GaussianSparseVector(sensitivity=1, threshold_stddev=2, query_stddev=4, length=10)
    with pytest.raises(ParameterError, match="integers"):
        mechanism.release(np.array([1.5]))
    with pytest.raises(ParameterError, match="one dimension"):
        mechanism.release(np.zeros((2, 2), np.int64))


@cases(
    ("threshold", "threshold_stddev", "query_stddev", "query"),
    [(3, 2, 5, 4), (0.5, 3, Fraction(7, 2), -9), (-1000, 40, 1000, 300), (2**40, 2, 2**30, 2**40 - 2**29)],
)
@cases(("sign", "magnitude"), [(1, 0x9E3779B97F4A7C15), (0, 0x9E3779B97F4A7C15), (0, 0)])
def test_coins_beside_their_chance_fall_as_the_exact_tail_says(
    threshold: Any, threshold_stddev: Any, query_stddev: Any, query: int, *, sign: int, magnitude: int
) -> None:
    """Words that make the noisy threshold known to 128 bits, and a coin's some units from its chance."""
    mechanism = GaussianSparseVector(
        sensitivity=1,
        threshold_stddev=threshold_stddev,
        query_stddev=query_stddev,
        length=3,
        threshold=threshold,
    )
    top = 2**64 - 1
    with mpmath.workdps(60):
        noise = (1 if sign else -1) * mpmath.mpf(magnitude) / 2**64 * mpmath.mpf(threshold_stddev)
        stddev = mpmath.mpf(Fraction(query_stddev).numerator) / Fraction(query_stddev).denominator
        distance = (mpmath.mpf(threshold) + noise - query) / stddev
        chance = mpmath.erfc(distance / mpmath.sqrt(2)) / 2
        exact = int(mpmath.floor(chance * 2**128))
    unit, rest = divmod(exact, 2**64)
    # A whole part of 0, the rest of the magnitude, and two coins that accept it.
    threshold_words = [sign, top, top, magnitude, 0, 0, 0, 0, 0]
    for coin, further, above in (
        (unit - 2**20, [], True),
        (unit - 1, [], True),
        (unit + 1, [], False),
        (unit + 2**20, [], False),
        (unit, [rest - 2**30, 0, 0, 0], True),
        (unit, [rest + 2**30, 0, 0, 0], False),
    ):
        source = ListedSource([*threshold_words, coin, *further])
        assert next(mechanism.answers([query], rng=source)) is above


@cases(("positives", "length", "numbers"), [(2, 9, 2), (9, 3, 3), (4, 4, 4)])
def test_numbers_are_priced_once_for_each_query_above(positives: int, length: int, numbers: int) -> None:
    given: dict[str, Any] = {
        "sensitivity": 3,
        "threshold_stddev": 20,
        "query_stddev": 40,
        "length": length,
        "positives": positives,
    }
    silent, telling = GaussianSparseVector(**given), GaussianSparseVector(**given, answer_stddev=30)
    assert telling.privacy_loss == silent.privacy_loss + DiscreteGaussian(30, 3) * numbers


@cases(("sensitivity", "exponent"), [(4, 0), (1024, 3), (4.0, -2)])
@cases("monotone", [False, True])
def test_the_loss_follows_the_noise_over_the_sensitivity(
    sensitivity: float, exponent: int, monotone: bool
) -> None:
    step = Fraction(2) ** exponent
    loss = GaussianSparseVector(
        sensitivity=sensitivity,
        threshold_stddev=7 * sensitivity,
        query_stddev=11 * sensitivity,
        answer_stddev=13 * sensitivity,
        length=9,
        positives=2,
        monotone=monotone,
        grid=Grid(exponent=exponent),
    ).privacy_loss
    comparisons = leaves.GaussianSparseVector(7.0, 11.0, 9, positives=2, monotone=monotone)
    assert (
        loss == comparisons + DiscreteGaussian(13 * Fraction(sensitivity) / step, int(sensitivity / step)) * 2
    )


@cases(("monotone", "factor"), [(False, 4), (True, 2)])
@cases("positives", [1, 9])
def test_calibrated_noise_is_shared_as_the_documentation_says(
    monotone: bool, factor: int, positives: int
) -> None:
    mechanism = GaussianSparseVector.calibrated(
        sensitivity=1,
        epsilon=1.0,
        delta=1e-5,
        length=50,
        positives=positives,
        monotone=monotone,
        numbers=True,
    )
    share = (Fraction(mechanism.query_stddev) / Fraction(mechanism.threshold_stddev)) ** 2
    assert float(share) == pytest.approx(factor * math.sqrt(positives), rel=2e-3)
    assert mechanism.answer_stddev == mechanism.query_stddev
