"""One-shot top-k: its distribution is peeling, its loss covers it, and k must fit the domain."""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

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
    observed = Counter(mechanism.release(scores, rng=source).value for _ in range(3_000))
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


def ordered(scores: Sequence[int], mechanism: TopK, reach: int) -> dict[tuple[int, ...], float]:
    """The exact distribution with noise on all of three scores: those that tie are in random order."""
    noise = mechanism.as_additive(Fraction(mechanism.scale)).distribution
    mass = np.array([noise.pmf(z).upper for z in range(-reach, reach + 1)])
    axes = np.meshgrid(*(score + np.arange(-reach, reach + 1) for score in scores), indexing="ij")
    weights = mass[:, None, None] * mass[None, :, None] * mass[None, None, :]
    found: dict[tuple[int, ...], float] = {}
    for order in itertools.permutations(range(3)):
        first, second, third = (axes[index] for index in order)
        fits = weights * ((first >= second) & (second >= third))
        ties = np.where(first == third, 6, np.where((first == second) | (second == third), 2, 1))
        found[order[: mechanism.count]] = found.get(order[: mechanism.count], 0.0) + float(
            (fits / ties).sum()
        )
    return found


@pytest.mark.parametrize(("noise", "scale"), [("laplace", Fraction(3, 2)), ("gaussian", Fraction(2))])
def test_noise_on_all_scores_costs_what_one_unit_moves(noise: Any, scale: Fraction) -> None:
    mechanism = TopK(sensitivity=1, scale=scale, count=2, l0=1, noise=noise)
    loss, worst, reach = mechanism.privacy_loss, 0.0, 22
    claimed = loss.epsilon(0.0 if noise == "laplace" else 1e-3)
    for scores in ([0, 1, 3], [2, 2, 2], [0, 3, 6]):
        here = ordered(scores, mechanism, reach)
        assert sum(here.values()) == pytest.approx(1, abs=1e-6)
        for moved, by in itertools.product(range(3), (-1, 1)):
            there = ordered(
                [score + by * (index == moved) for index, score in enumerate(scores)], mechanism, reach
            )
            pairs = [np.array([one[order] for order in here]) for one in (here, there)]
            worst = max(worst, float(np.log(pairs[0] / pairs[1]).max()))
            for epsilon in (0.0, 0.5 * claimed, 0.9 * claimed):
                far = distributions.hockey_stick(pairs[0], pairs[1], epsilon)
                assert far <= loss.delta(epsilon) * (1 + 1e-6) + 1e-6
    assert 0.6 * claimed < worst <= claimed * (1 + 1e-6)
    source = np.random.default_rng(11)
    observed = Counter(map(tuple, mechanism.outputs([4, 0, 3], 3_000, rng=source)))
    right = ordered([4, 0, 3], mechanism, reach)
    accepts_only(frequencies(observed), right, another=ordered([0, 4, 3], mechanism, reach))


@cases(
    ("count", "l0", "delta", "noise"),
    [
        (10, 1, 0.0, "laplace"),
        (10, 5, 0.0, "laplace"),
        (10, 20, 0.0, "gumbel"),
        (10, None, 0.0, "gumbel"),
        (10, 1, 1e-6, "laplace"),
        (1, 1, 1e-6, "gumbel"),
        (60, 20, 1e-6, "gaussian"),
    ],
)
def test_the_noise_that_orders_best_is_taken(count: int, l0: int | None, delta: float, noise: str) -> None:
    asked: dict[str, Any] = {"sensitivity": 1, "epsilon": 1.0, "delta": delta, "count": count, "l0": l0}
    found = TopK.calibrated(**asked, monotone=True)
    assert found.noise == noise
    assert found.privacy_loss.epsilon(delta) <= 1.0
    noises: list[Any] = ["gumbel", *(["laplace"] if l0 else []), *(["gaussian"] if l0 and delta else [])]
    others = [TopK.calibrated(**asked, monotone=True, noise=each) for each in noises]
    least = min(other.utility_bound(0.05, candidates=100) for other in others)
    assert found.utility_bound(0.05, candidates=100) <= 1.06 * least


@pytest.mark.parametrize("noise", ["laplace", "gaussian"])
def test_noise_on_all_scores_seldom_puts_a_bad_one_first(noise: Any) -> None:
    mechanism = TopK(sensitivity=1, scale=2, count=2, l0=1, noise=noise)
    bound, beta = int(mechanism.utility_bound(0.3, candidates=3)), 0.3
    scores = [bound + 1, bound + 1, 0]
    bad = sum(chance for order, chance in ordered(scores, mechanism, 40).items() if 2 in order)
    assert 0.02 * beta < bad <= beta


def test_what_noise_on_all_scores_needs() -> None:
    with pytest.raises(ParameterError, match="l0 must be given for laplace noise, but it is None"):
        TopK(sensitivity=1, scale=1, count=2, noise="laplace")
    with pytest.raises(ParameterError, match="noise must be 'gumbel', 'laplace' or 'gaussian'"):
        TopK(sensitivity=1, scale=1, count=2, noise="normal")  # type: ignore[arg-type]
    with pytest.raises(ParameterError, match="delta must be strictly between 0 and 1"):
        TopK.calibrated(sensitivity=1, epsilon=1.0, count=2, l0=1, noise="gaussian")
