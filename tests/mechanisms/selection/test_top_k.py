"""One-shot top-k: its distribution is peeling, its loss covers it, and k must fit the domain."""

from __future__ import annotations

import math
from collections import Counter
from fractions import Fraction

import numpy as np
import pytest

from sfumato.errors import ParameterError
from sfumato.mechanisms import TopK
from tests.cases import cases
from tests.chance import accepts_only, frequencies
from tests.mechanisms.selection import distributions


@pytest.mark.parametrize("monotone", [False, True])
@pytest.mark.parametrize("count", [2, 3])
def test_the_loss_covers_the_exact_distribution(monotone: bool, count: int) -> None:
    mechanism = TopK(sensitivity=1, scale=Fraction(5, 2), count=count, monotone=monotone)
    loss, worst = mechanism.privacy_loss, 0.0
    claimed = loss.epsilon(0.0)
    assert claimed == pytest.approx(count * (1 if monotone else 2) / 2.5)
    for scores in ([0, 1, 3, 3], [0, 0, 20, 40]):
        here = np.array(list(distributions.peeling(scores, 2.5, count).values()))
        assert here.sum() == pytest.approx(1)
        for move in distributions.moves(4, monotone=monotone):
            there = np.array(
                list(distributions.peeling([int(x) for x in scores + move], 2.5, count).values())
            )
            worst = max(worst, float(np.abs(np.log(here / there)).max()))
            for epsilon in (0.0, 0.5 * claimed, 0.9 * claimed):
                assert (
                    distributions.hockey_stick(here, there, epsilon)
                    <= loss.delta(epsilon) * (1 + 1e-9) + 1e-12
                )
    assert 0.9 * claimed < worst <= claimed * (1 + 1e-9)


def test_releases_follow_peeling() -> None:
    scores = [4, 0, 3, 3]
    mechanism = TopK(sensitivity=1, scale=2, count=2)
    source = np.random.default_rng(7)
    observed = Counter(mechanism.release(scores, rng=source).value for _ in range(8_000))
    right = distributions.peeling(scores, 2.0, 2)
    accepts_only(
        frequencies(observed),
        right,
        flatter=distributions.peeling(scores, 4.0, 2),
        steeper=distributions.peeling(scores, 1.2, 2),
        backwards={order[::-1]: chance for order, chance in right.items()},
    )


@pytest.mark.parametrize("beta", [0.4, 0.05])
def test_every_place_is_close_to_its_best(beta: float) -> None:
    bound = int(TopK(sensitivity=1, scale=2, count=3).utility_bound(beta, candidates=6))
    for scores in ([bound + 1] * 3 + [0] * 3, [2 * bound + 2, bound + 1, bound + 1, 0, 0, 0]):
        best = sorted(scores, reverse=True)
        far = sum(
            chance
            for order, chance in distributions.peeling(scores, 2.0, 3).items()
            if any(best[place] - scores[index] > bound for place, index in enumerate(order))
        )
        assert 0.1 * beta < far <= beta


def test_a_delta_buys_a_smaller_scale() -> None:
    pure = TopK.calibrated(sensitivity=1, epsilon=1.0, count=50)
    approximate = TopK.calibrated(sensitivity=1, epsilon=1.0, delta=1e-6, count=50)
    assert 100 <= pure.scale < 100.000001  # a fiftieth is no float
    assert approximate.scale < 0.5 * pure.scale
    assert approximate.privacy_loss.epsilon(1e-6) <= 1.0


def test_all_candidates_can_be_ordered() -> None:
    mechanism = TopK(sensitivity=1.0, scale=1e-3, count=3, candidates=["a", "b", "c"])
    assert mechanism.release([1.0, 3.0, 2.0], rng=1).value == ("b", "c", "a")
    assert sorted(mechanism.release([math.nan] * 3, rng=1).value) == ["a", "b", "c"]


@cases("count", [0, -1, 1.5, True, 4])
def test_k_must_fit_the_domain(count: int) -> None:
    with pytest.raises(ParameterError, match="count must be"):
        TopK(sensitivity=1, scale=1, count=count, candidates=range(3))
    if count == 4:
        with pytest.raises(ParameterError, match="count must be at most 3, the number of candidates"):
            TopK(sensitivity=1, scale=1, count=count).release([1, 2, 3])
