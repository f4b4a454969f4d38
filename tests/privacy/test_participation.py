"""Sensitivities over participation patterns against all patterns."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

from sfumato.errors import ParameterError
from sfumato.privacy import Gaussian, Neighboring, matrix_mechanism, participation_sensitivity
from sfumato.privacy.conversion import gdp_delta
from tests.cases import cases
from tests.chance import accepts_only, mean_at_most


def truth(strategy: np.ndarray, separation: int, most: int) -> float:
    """Over every pattern, and all equal or opposite directions: exact for non-negative products."""
    steps, best = strategy.shape[1], 0.0
    for size in range(1, most + 1):
        for pattern in itertools.combinations(range(steps), size):
            if all(b - a >= separation for a, b in itertools.pairwise(pattern)):
                for signs in itertools.product([1.0, -1.0], repeat=size):
                    best = max(best, float(np.linalg.norm(strategy[:, pattern] @ np.array(signs))))
    return best


GENERATOR = np.random.default_rng(7)
PREFIX = np.tril(np.ones((9, 9)))
ROOT = np.array([math.comb(2 * k, k) / 4**k for k in range(9)])
SQUARE_ROOT = np.array([[ROOT[i - j] if i >= j else 0.0 for j in range(9)] for i in range(9)])
BANDED = np.tril(np.triu(GENERATOR.normal(size=(9, 9)), -1))
ANY = GENERATOR.normal(size=(6, 9))


@cases("strategy", [PREFIX, SQUARE_ROOT, BANDED, ANY])
@cases(("separation", "most"), [(1, 2), (2, 3), (3, 2), (4, 5), (20, 3)])
def test_every_pattern_is_below(strategy: np.ndarray, separation: int, most: int) -> None:
    lower, upper, _ = participation_sensitivity(strategy, separation=separation, max_participations=most)
    exact = truth(strategy, separation, most)
    assert exact <= upper * (1 + 1e-12)
    assert lower <= exact * (1 + 1e-12)
    if strategy is BANDED and separation >= 2:
        # Columns that far apart are orthogonal: the dynamic program is exact.
        assert upper <= exact * (1 + 1e-9)
        assert lower >= exact * (1 - 1e-6)
    if strategy is PREFIX:
        assert lower >= exact * (1 - 1e-6)
        assert upper <= exact * 1.2


@cases("strategy", [PREFIX, SQUARE_ROOT, ANY])
@cases("separation", [2, 3, 9])
def test_epochs_of_one_order_are_exact_for_non_negative_strategies(
    strategy: np.ndarray, separation: int
) -> None:
    lower, upper, _ = participation_sensitivity(strategy, separation=separation, fixed_order=True)
    patterns = [list(range(start, 9, separation)) for start in range(separation)]
    exact = max(
        float(np.linalg.norm(strategy[:, p] @ np.array(signs)))
        for p in patterns
        for signs in itertools.product([1.0, -1.0], repeat=len(p))
    )
    assert lower <= exact * (1 + 1e-12)
    assert exact <= upper * (1 + 1e-12)
    if strategy is not ANY:
        assert upper <= lower * (1 + 1e-9)
        loose = participation_sensitivity(strategy, separation=separation).upper
        assert upper <= loose * (1 + 1e-9)


@pytest.mark.parametrize("scale", [1e-200, 1e200])
def test_squares_neither_vanish_nor_overflow(scale: float) -> None:
    one = participation_sensitivity(ANY, separation=2, max_participations=3)
    other = participation_sensitivity(scale * ANY, separation=2, max_participations=3)
    assert other[:2] == pytest.approx((one.lower * scale, one.upper * scale), rel=1e-12)


def test_one_participation_is_the_largest_column() -> None:
    interval = participation_sensitivity(ANY, separation=1, max_participations=1)
    assert interval.upper == pytest.approx(float(np.linalg.norm(ANY, axis=0).max()), rel=1e-12)


def test_the_mechanism_is_one_gaussian() -> None:
    # Without correlation, a unit that takes part k times composes k Gaussians.
    plain = matrix_mechanism(np.eye(12), 3.0, separation=3)
    assert plain.epsilon(1e-6) == pytest.approx((Gaussian(3.0) * 4).epsilon(1e-6), rel=1e-12)
    assert plain.epsilon(1e-6) >= (Gaussian(3.0) * 4).epsilon(1e-6)
    moved = matrix_mechanism(PREFIX, 3.0, separation=5, neighboring=Neighboring.ZERO_OUT)
    assert moved.neighboring is Neighboring.ZERO_OUT
    assert moved.noise_multiplier <= 3.0 / truth(PREFIX, 5, 2)


def test_an_adaptive_simulation_has_the_loss_that_is_claimed() -> None:
    generator = np.random.default_rng(17)
    strategy, runs = SQUARE_ROOT, 40_000
    mu = matrix_mechanism(strategy, 4.0, separation=4, fixed_order=True).gdp().mu
    loss = np.zeros(runs)
    noise = 4.0 * generator.normal(size=(9, runs))
    moves = np.zeros((9, runs))
    for t in range(9):
        if t % 4 == 0:
            # The move depends on the noise that was seen before.
            moves[t] = np.where(noise[:t].sum(axis=0) > 0, 1.0, -1.0) if t else 1.0
        shift = strategy[t] @ moves
        loss += shift * noise[t] / 16 + shift**2 / 32

    def check(claimed: float) -> None:
        """A fixed-order unit starting at 0 loses no more than the Gaussian pair."""
        for x in (0.0, 0.5 * mu, mu, 2 * mu):
            mean_at_most(np.maximum(0, 1 - np.exp(x - loss)))(gdp_delta(claimed, x))

    accepts_only(check, mu, part=0.8 * mu)


def test_what_needs_later_inputs_or_makes_no_sense_is_refused() -> None:
    with pytest.raises(ParameterError, match="lower triangular"):
        matrix_mechanism(PREFIX.T, 1.0, separation=1)
    assert matrix_mechanism(PREFIX.T, 1.0, separation=1, adaptive=False).noise_multiplier > 0
    wrong: list[tuple[object, dict[str, object]]] = [
        (PREFIX, {"separation": 0}),
        (PREFIX, {"separation": 1, "max_participations": 0}),
        (PREFIX, {"separation": 1, "max_participations": 2, "fixed_order": True}),
        (PREFIX * math.nan, {"separation": 1}),
        (PREFIX * 0, {"separation": 1}),
        ([1.0, 2.0], {"separation": 1}),
    ]
    for strategy, schema in wrong:
        with pytest.raises(ParameterError, match="must be"):
            participation_sensitivity(strategy, **schema)  # type: ignore[arg-type]


@cases("size", [1e-300, 1e-200, 1.0, 1e200, 1e300])
def test_strategies_of_any_size_have_their_sensitivity(size: float) -> None:
    lower, upper, _ = participation_sensitivity(size * np.eye(6), separation=2)
    assert lower < size * math.sqrt(3) < upper < lower * (1 + 1e-9)
