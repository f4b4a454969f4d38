from __future__ import annotations

from math import comb

import numpy as np
import pytest

from sfumato.anonymity.risk.population_models import population_uniqueness, zayatz_uniques
from sfumato.errors import ParameterError


def sample(fraction: float) -> tuple[np.ndarray, int, int]:
    """Class sizes of a sample, the people of its population, and how many of them are unique."""
    rng = np.random.default_rng(10)
    people = 1 + rng.negative_binomial(0.6, 0.25, 20_000)
    sampled = rng.binomial(people, fraction)
    return sampled[sampled > 0], int(people.sum()), int(np.count_nonzero(people == 1))


def test_zayatz_estimate_is_bayes_rule() -> None:
    sizes, people = np.array([1, 1, 1, 2, 2, 6, 30]), 60
    rows = int(sizes.sum())
    single = {size: size * comb(people - size, rows - 1) / comb(people, rows) for size in set(sizes.tolist())}
    chance = 3 * single[1] / sum(single[size] for size in sizes.tolist())
    assert zayatz_uniques(sizes, people) == pytest.approx(3 * chance * people / rows, rel=1e-10)


def test_the_rule_chooses_by_the_fraction_that_is_sampled() -> None:
    small = population_uniqueness(*sample(0.05)[:2])
    assert small.chosen == "pitman"
    assert small.uniques == small.pitman
    large = population_uniqueness(*sample(0.4)[:2])
    assert large.chosen == "slide_negative_binomial"
    assert large.slide_negative_binomial is not None
    assert large.uniques == large.slide_negative_binomial < large.zayatz
    for fraction in (0.05, 0.4):
        sizes, people, unique = sample(fraction)
        found = population_uniqueness(sizes, people)
        assert found.fraction == found.uniques / people
        assert found.uniques == pytest.approx(unique, rel=0.25)


def test_where_pitman_does_not_fit_zayatz_is_taken() -> None:
    found = population_uniqueness(np.ones(20, np.int64), 1000)
    assert (found.pitman, found.slide_negative_binomial, found.chosen) == (None, None, "zayatz")
    assert found.uniques == pytest.approx(1000)


def test_a_whole_population_and_one_without_uniques_are_exact() -> None:
    assert population_uniqueness(np.array([1, 1, 3]), 5).uniques == 2
    assert population_uniqueness(np.array([2, 3]), 50).uniques == 0
    with pytest.raises(ParameterError, match="population_size must be an integer of at least 5"):
        population_uniqueness(np.array([2, 3]), 4)
