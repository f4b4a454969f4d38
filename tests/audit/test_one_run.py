"""One run: its p-value against every mechanism there is, for few coins, and what it says of known ones."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from scipy.optimize import linprog
from scipy.sparse import lil_matrix
from scipy.stats import binom, norm

from sfumato.audit import (
    audit_one_run,
    best_guesses,
    one_run_bound,
    one_run_p_value,
    one_run_trade_off_p_value,
)
from sfumato.errors import ParameterError
from sfumato.privacy.conversion import gdp_delta
from tests.cases import cases
from tests.chance import accepts_only, at_most, rate, unrefuted

Bits = tuple[int, ...]


def worst_chance(coins: int, guesses: int, correct: int, *points: tuple[float, float]) -> float:
    """The greatest chance of so many right guesses over all mechanisms with these points: a linear program.

    A mechanism is a distribution of the guesses for each outcome of the coins. (epsilon, delta)-DP for
    neighbors s, s' is: the sum over t of the excess of M(t | s) over e^epsilon M(t | s') is at most delta.
    """
    worlds: list[Bits] = list(itertools.product((-1, 1), repeat=coins))
    released = [t for t in itertools.product((-1, 0, 1), repeat=coins) if sum(map(abs, t)) == guesses]
    place = {(s, t): k for k, (s, t) in enumerate(itertools.product(worlds, released))}
    pairs = [(s, u) for s in worlds for u in worlds if sum(x != y for x, y in zip(s, u, strict=True)) == 1]
    claims = list(itertools.product(range(len(pairs)), points))
    excess = {key: len(place) + k for k, key in enumerate(itertools.product(range(len(claims)), released))}
    size = len(place) + len(excess)
    upper = lil_matrix((len(excess) + len(claims), size))
    bounds = np.zeros(len(excess) + len(claims))
    for row, ((claim, t), column) in enumerate(excess.items()):
        (s, u), epsilon = pairs[claims[claim][0]], claims[claim][1][0]
        upper[row, place[s, t]], upper[row, place[u, t]], upper[row, column] = 1, -math.exp(epsilon), -1
        upper[len(excess) + claim, column] = 1
    bounds[len(excess) :] = [delta for _, (_, delta) in claims]
    sums = lil_matrix((len(worlds), size))
    won = np.zeros(size)
    for (s, t), column in place.items():
        sums[worlds.index(s), column] = 1
        if sum(x == y for x, y in zip(s, t, strict=True)) >= correct:
            won[column] = -1 / len(worlds)
    ones = np.ones(len(worlds))
    best = linprog(won, upper.toarray(), bounds, sums.toarray(), ones, (0, 1), method="highs")
    assert best.success
    return -float(best.fun or 0.0)


@cases("delta", [0.0, 0.01, 0.1])
@cases(("coins", "guesses"), [(1, 1), (2, 1), (2, 2), (3, 2), (3, 3)])
def test_no_mechanism_at_all_guesses_better(coins: int, guesses: int, delta: float) -> None:
    for correct in range(1, guesses + 1):
        for epsilon in (0.0, 0.7, 2.0):
            worst = worst_chance(coins, guesses, correct, (epsilon, delta))
            bound = one_run_p_value(correct, guesses, canaries=coins, epsilon=epsilon, delta=delta)
            assert worst <= bound + 1e-7
            # Randomized response attains it; and delta is priced as some mechanism spends it.
            if not delta or (correct == guesses == coins and worst < 1):
                assert worst == pytest.approx(bound, rel=1e-5)


CURVE = [(epsilon, gdp_delta(1.5, epsilon)) for epsilon in (0.0, 0.5, 1.0, 2.0, 3.0)]


@cases("points", [[(0.7, 0.0)], [(0.7, 0.05)], CURVE])
@cases(("coins", "guesses"), [(1, 1), (2, 1), (2, 2), (3, 2), (3, 3)])
def test_no_mechanism_with_all_points_of_a_claim_guesses_better(
    coins: int, guesses: int, points: list[tuple[float, float]]
) -> None:
    for correct in range(1, guesses + 1):
        worst = worst_chance(coins, guesses, correct, *points)
        bound = one_run_trade_off_p_value(correct, guesses, canaries=coins, points=points)
        assert worst <= bound + 1e-7
        if correct == guesses == coins == 1:
            assert worst == pytest.approx(bound, rel=1e-5)


def test_a_whole_curve_refutes_what_none_of_its_points_does() -> None:
    points = [(k / 4, gdp_delta(0.5, k / 4)) for k in range(30)]
    chance = one_run_trade_off_p_value(785, 1000, canaries=1000, points=points)
    single = min(one_run_p_value(785, 1000, canaries=1000, epsilon=e, delta=d) for e, d in points)
    assert chance < 0.05 < single
    # Independent guesses, each as good as 1/2-GDP allows, are within it at every count.
    for correct in range(500, 1000, 200):
        truth = binom(1000, norm.cdf(0.25)).sf(correct - 1)
        assert truth <= one_run_trade_off_p_value(correct, 1000, canaries=1000, points=points)
    assert one_run_trade_off_p_value(0, 5, canaries=5, points=points) == 1.0


def test_delta_is_dearer_than_the_published_bound_says() -> None:
    """Randomized response of two coins, that moves a mass from "both wrong" to "both right".

    With e^epsilon = 7, neighbors exceed each other by 8 times the mass: one eighth of delta is gained. The
    published 2 m delta max_i P[v > W >= v - i] / i says a sixteenth.
    """
    delta = Fraction(1, 100)
    moved = delta / 8
    distribution = {
        0: Fraction(49, 64) + moved,
        1: Fraction(7, 64),
        2: Fraction(1, 64) - moved,
    }  # by wrong guesses
    released = list(itertools.product((0, 1), repeat=2))
    wrong = {(s, t): sum(x != y for x, y in zip(s, t, strict=True)) for s in released for t in released}
    for s, u in itertools.product(released, repeat=2):
        if wrong[s, u] == 1:
            assert (
                sum(
                    max(Fraction(0), distribution[wrong[s, t]] - 7 * distribution[wrong[u, t]])
                    for t in released
                )
                == delta
            )
    chance = 1 - distribution[2]
    assert chance == Fraction(63, 64) + delta / 8
    assert chance > Fraction(63, 64) + 2 * 2 * delta * Fraction(1, 64)
    found = one_run_p_value(1, 2, canaries=2, epsilon=math.log(7), delta=float(delta))
    assert float(chance) <= found <= float(chance) + delta / 64 + 2e-6


@cases(("guesses", "correct"), [(1, 1), (7, 5), (7, 7), (60, 31), (60, 59)])
@cases("epsilon", [0.0, 0.5, 3.0])
def test_delta_costs_the_sum_of_the_peaks(guesses: int, correct: int, epsilon: float) -> None:
    share = 1 / (1 + math.exp(-epsilon))
    edges = 100.0 - guesses
    for k in range(guesses):
        turning = np.arange(max(0, correct - guesses + k), min(correct - 1, k) + 1)
        edges += binom(k, share).pmf(turning).max()
    exact = binom(guesses, share).sf(correct - 1) + 1e-4 * (1 - share) * edges
    found = one_run_p_value(correct, guesses, canaries=100, epsilon=epsilon, delta=1e-4)
    assert min(1.0, exact) <= found <= min(1.0, exact) * (1 + 1e-5)


def test_the_bound_is_where_the_p_value_is_the_risk() -> None:
    for correct, guesses, delta in ((95, 100, 0.0), (480, 500, 1e-5), (1000, 1000, 1e-6), (1, 1, 0.0)):
        bound = one_run_bound(correct, guesses, canaries=1000, delta=delta, confidence=0.9)
        if bound:
            at = one_run_p_value(correct, guesses, canaries=1000, epsilon=bound, delta=delta)
            assert 0.0999 < at <= 1 - 0.9 + 1e-15
        else:
            assert one_run_p_value(correct, guesses, canaries=1000, epsilon=0.0, delta=delta) > 0.1


def response(epsilon: float, delta: float, seed: int) -> Any:
    """Each coin is released with delta, else by randomized response: (epsilon, delta)-DP, and little less."""
    generator = np.random.default_rng(seed)

    def train(included: np.ndarray) -> np.ndarray:
        count = len(included)
        truly = generator.random(count) < delta + (1 - delta) / (1 + math.exp(-epsilon))
        return np.where(truly, included, ~included).astype(float)

    return train


def test_the_bound_fails_as_seldom_as_it_says() -> None:
    """At confidence 0.8, in 400 audits."""
    proved = [
        audit_one_run(
            response(1.0, 0.0, seed), canaries=50, epsilon=1.0, confidence=0.8, guesses=50, rng=seed
        ).epsilon_lower
        for seed in range(400)
    ]

    def check(epsilon: float) -> None:
        at_most(sum(bound > epsilon for bound in proved), 400)(0.2)

    accepts_only(check, 1.0, part=0.6)


def test_it_is_nearly_tight_on_randomized_response() -> None:
    found = audit_one_run(response(2.0, 1e-6, 1), canaries=20_000, epsilon=2.0, delta=1e-6, rng=2)
    assert not found.violated
    accepts_only(unrefuted(found.epsilon_lower), 2.0, nearly=1.85)
    found = audit_one_run(response(2.0, 0.0, 1), canaries=20_000, epsilon=1.8, rng=2)
    assert found.violated
    assert "VIOLATED" in str(found)


def test_scores_are_guessed_at_both_ends() -> None:
    coins = np.arange(100) % 2 == 0
    # Only the ends are right; the middle is all wrong.
    scores = np.where(coins, -1.0, 1.0)
    scores[:10], scores[90:] = (
        np.where(coins[:10], 9.0, -9.0),
        np.where(coins[90:], 9.0, -9.0),
    )
    found = best_guesses(scores, coins, guesses=[20, 100])
    assert (found.guesses, found.correct) == (20, 20)
    assert found.epsilon_lower == one_run_bound(20, 20, canaries=100, confidence=0.975)
    assert best_guesses(scores, coins, guesses=100).correct == 20


@pytest.mark.parametrize("included", [[False] * 500 + [True] * 500, [True] * 500 + [False] * 500])
def test_ties_are_not_broken_by_where_the_included_ones_are_listed(included: list[bool]) -> None:
    for guesses in (50, 200, 1000):
        found = best_guesses(np.zeros(1000), included, guesses=guesses)
        # By places, all or none would be right.
        accepts_only(rate(found.correct, guesses), 0.5, listed_first=1.0, listed_last=0.0)
        assert found.epsilon_lower < 0.5


def test_a_seed_that_the_trainer_uses_too_guesses_nothing() -> None:
    def train(included: np.ndarray) -> np.ndarray:
        return -np.random.default_rng(5).random(len(included))  # what coins of default_rng(5) follow

    assert audit_one_run(train, canaries=500, epsilon=0.0, rng=5, confidence=1 - 1e-9).epsilon_lower == 0.0


def test_the_trainer_cannot_change_the_coins() -> None:
    def train(included: np.ndarray) -> np.ndarray:
        included[:] = True
        return np.arange(200.0)

    assert not audit_one_run(train, canaries=200, epsilon=0.0, rng=1, confidence=1 - 1e-9).violated


def train_none(included: np.ndarray) -> np.ndarray:
    return np.zeros(len(included))


@cases(
    ("call", "says"),
    [
        (lambda: one_run_trade_off_p_value(1, 2, canaries=4, points=[]), "points must be one or more"),
        (
            lambda: one_run_trade_off_p_value(1, 2, canaries=4, points=[(-1.0, 0.1)]),
            "points must be non-negative",
        ),
        (lambda: one_run_p_value(3, 2, canaries=4, epsilon=1.0), "correct must be at most the 2 guesses"),
        (lambda: one_run_p_value(3, 5, canaries=4, epsilon=1.0), "guesses must be at most the 4 canaries"),
        (lambda: one_run_p_value(3, 4, canaries=4, epsilon=-1.0), "epsilon must be non-negative"),
        (lambda: one_run_bound(3, 4, canaries=4, delta=1.0), "delta must be in"),
        (lambda: one_run_bound(3, 4, canaries=4, confidence=0.0), "confidence must be strictly"),
        (lambda: best_guesses([0.0, np.nan], [True, False]), "none of them NaN"),
        (lambda: best_guesses([0.0, 1.0], [1, 0]), "included must be one bool"),
        (lambda: best_guesses([0.0, 1.0], [True, False], guesses=[]), "guesses must name"),
        (lambda: audit_one_run(train_none, canaries=0, epsilon=1.0), "canaries must be an integer"),
        (lambda: audit_one_run(train_none, canaries=9, epsilon=1.0, guesses=10), "at most the 9 canaries"),
        (lambda: audit_one_run(lambda c: c[:3], canaries=9, epsilon=1.0), "train must return 9 scores"),
        (lambda: audit_one_run(lambda c: None, canaries=9, epsilon=1.0), "scores must be one number"),
        (lambda: audit_one_run(train_none, canaries=9, epsilon=math.nan), "epsilon must be"),
    ],
)
def test_bad_input_is_released(call: Any, says: str) -> None:
    with pytest.raises(ParameterError, match=says):
        call()
