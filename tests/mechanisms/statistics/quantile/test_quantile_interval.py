"""Intervals for a population's quantile: coverage, the binomial bound, the loss, wrong arguments."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from scipy.stats import binom, norm

from sfumato.errors import ParameterError
from sfumato.mechanisms import Quantile, QuantileInterval
from sfumato.mechanisms.statistics.quantile.quantile_interval import _shortfall
from sfumato.privacy import Neighboring
from tests.cases import cases
from tests.chance import at_least


@cases("n", [1, 2, 5, 30, 1000, 10**6])
@cases("chance", [0.1, 0.5, 0.9])
@cases("error", [0.0225, 0.4])
def test_the_binomial_bound_holds_and_is_the_least(n: int, chance: float, error: float) -> None:
    found = float(_shortfall(np.array([n]), chance, error)[0])
    most = math.floor(chance * n - found)
    assert most < 0 or binom.cdf(most, n, chance) <= error
    assert binom.cdf(most + 1, n, chance) > error


def test_padding_hides_what_noise_and_sampling_may_do() -> None:
    mechanism = QuantileInterval(quantile=0.2, bounds=(0.0, 1.0), epsilon=1.0, level=0.9)
    rank = mechanism._end.rank_bound(0.1 / 40)
    low, high = mechanism.padding(800, 1200)
    for n in (800, 801, 1000, 1200):
        below, above = math.floor(0.2 * n - 0.8 * low + rank), math.ceil(0.2 * n + 0.2 * high - rank)
        assert binom.cdf(below, n, 0.2) <= 0.045
        assert binom.sf(above - 1, n, 0.2) <= 0.045
    # Nearly the least: a tenth less would hide too little.
    assert binom.cdf(math.floor(0.2 * 1200 - 0.8 * 0.9 * low + rank), 1200, 0.2) > 0.045


@cases(
    ("n", "relation"),
    [(0, Neighboring.ADD_REMOVE), (30, Neighboring.REPLACE_ONE), (1500, Neighboring.ADD_REMOVE)],
)
def test_the_quantile_is_held_as_often_as_promised(n: int, relation: Neighboring) -> None:
    rng, runs, held, naive = np.random.default_rng(n), 40, 0, 0
    mechanism = QuantileInterval(
        quantile=0.25, bounds=(-4.0, 4.0), epsilon=1.0, level=0.8, neighboring=relation
    )
    truth = float(norm.ppf(0.25))
    for _ in range(runs):
        data = rng.normal(size=n)
        lower, upper = mechanism.release(data, rng).value
        assert -4 <= lower <= upper <= 4
        held += lower <= truth <= upper
        ends = sorted(mechanism._end.release(data, rng).value for _ in range(2))
        naive += ends[0] <= truth <= ends[1]
    at_least(held, runs)(0.8)
    assert held > 0.9 * runs
    assert naive < 0.8 * runs  # two answers without padding are no interval


def test_many_records_make_it_narrow_and_discrete_populations_are_held() -> None:
    rng = np.random.default_rng(1)
    median = QuantileInterval(bounds=(-4.0, 4.0), epsilon=1.0)
    lower, upper = median.release(rng.normal(size=50_000), rng).value
    assert -0.03 < lower < 0 < upper < 0.03
    whole = QuantileInterval(quantile=0.75, bounds=(0, 10), epsilon=1.0)
    assert whole.release(rng.integers(0, 2, 2000) * 5, rng).value.tolist() == [5.0, 5.0]
    assert whole.release(np.full(9, np.nan), rng).value.tolist() == [0.0, 10.0]


def test_it_costs_what_was_asked_and_no_more() -> None:
    for epsilon in (0.1, 1.0, 3.0):
        for relation in Neighboring.ADD_REMOVE, Neighboring.REPLACE_ONE:
            mechanism = QuantileInterval(bounds=(0.0, 1.0), epsilon=epsilon, neighboring=relation)
            assert epsilon * (1 - 1e-9) < mechanism.privacy_loss.epsilon() <= epsilon
            end = Quantile(
                bounds=(0.0, 1.0), epsilon=0.45 * epsilon, grid=mechanism.grid, neighboring=relation
            )
            assert mechanism._end.rank_bound(0.01) == pytest.approx(end.rank_bound(0.01), abs=1)


def test_wrong_arguments_are_refused() -> None:
    wrong: list[tuple[dict[str, Any], str]] = [
        ({"level": 1.0}, "level must"),
        ({"quantile": 1.0}, "quantile must"),
        ({"epsilon": 1e-6}, "epsilon must be so large"),
        ({"epsilon": 0}, "epsilon must"),
        ({"bounds": (1.0, 1.0)}, "bounds must"),
    ]
    for options, message in wrong:
        with pytest.raises(ParameterError, match=message):
            QuantileInterval(**{"bounds": (0.0, 1.0), "epsilon": 1.0, **options})


def test_padding_is_for_the_numbers_that_the_noisy_one_leaves_possible(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked: list[tuple[int, int]] = []

    def padding(self: QuantileInterval, fewest: int, most: int) -> tuple[int, int]:
        asked.append((fewest, most))
        return 1, 1

    monkeypatch.setattr(QuantileInterval, "padding", padding)
    mechanism = QuantileInterval(quantile=0.5, bounds=(0.0, 1.0), epsilon=1.0)
    mechanism.release(np.full(5000, 0.5), 1)
    mechanism.release(np.zeros(0), 1)
    (fewest, most), (none, few) = asked
    assert 4700 < fewest < 5000 < most < 5300
    assert none == 0 <= few < 300
