"""Individual losses: against closed forms, the run's own loss, and laws that are summed up on a grid."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from scipy.stats import norm

from sfumato.errors import NeighboringMismatch, ParameterError
from sfumato.learning import (
    FullBatchSampler,
    IndividualLosses,
    PoissonSampler,
    Sampler,
    ShuffledSampler,
)
from sfumato.learning.reports.individual_losses import IndividualSummary
from sfumato.privacy import Composed, Neighboring
from sfumato.privacy.conversion import gdp_delta, gdp_epsilon
from tests.cases import cases
from tests.chance import accepts_only, at_most


def full(population: int = 3, steps: int = 100, **changes: Any) -> FullBatchSampler:
    return FullBatchSampler(population=population, steps=steps, **changes)


def poisson(population: int = 3, steps: int = 100) -> PoissonSampler:
    return PoissonSampler(population=population, sampling_probability=0.3, steps=steps)


@pytest.mark.parametrize("sampler", [full(), poisson(), full(neighboring=Neighboring.ZERO_OUT)])
def test_whoever_has_the_greatest_norm_pays_exactly_what_the_run_does(sampler: Sampler) -> None:
    account = IndividualLosses(sampler=sampler, noise_multiplier=1.7)
    for _ in range(7):
        account.observe([1.0, 0.97, 0.0])
    account.bound(2)
    assert account.steps == 9
    assert account.loss_of(0) == account.run_loss() == sampler.loss_of(1.7, 9)
    # Rounded up to a 32nd.
    assert account.loss_of(1) == account.loss_of(0)
    assert account.loss_of(2) == sampler.loss_of(1.7, 2)
    found = account.epsilons(1e-5)
    assert found[0] == found[1] == account.run_loss().epsilon(1e-5)
    assert 0 < found[2] < found[0]


def test_full_batches_cost_by_the_sum_of_squares() -> None:
    generator = np.random.default_rng(1)
    norms = generator.integers(0, 33, (50, 5)) / 32
    account = IndividualLosses(sampler=full(5), noise_multiplier=3.0)
    for row in norms:
        account.observe(row)
    for example in range(5):
        exact = gdp_epsilon(math.sqrt((norms[:, example] ** 2).sum()) / 3, 1e-6)
        assert account.loss_of(example).epsilon(1e-6) == pytest.approx(exact, rel=1e-9)
        assert account.epsilons(1e-6)[example] == pytest.approx(exact, rel=1e-9)
    # Norms between are rounded up, never down.
    between = IndividualLosses(sampler=full(5), noise_multiplier=3.0)
    for row in norms:
        between.observe(np.maximum(0, row - 1 / 64))
    assert between.epsilons(1e-6).tolist() == account.epsilons(1e-6).tolist()


def test_two_sampled_steps_lose_what_their_laws_do() -> None:
    """The second gradient's sign follows from the first answer; its norm does not. Sums on a grid."""
    noise, q, first, second = 0.8, 0.3, 1.0, 0.5
    account = IndividualLosses(sampler=poisson(1, 2), noise_multiplier=noise)
    account.observe([first])
    account.observe([second])
    grid = np.arange(-7.0, 8.0, 0.01)

    def laws(shift: Any) -> tuple[Any, Any]:
        absent = norm.pdf(grid[None, :], 0, noise)
        return (1 - q) * absent + q * norm.pdf(grid[None, :], np.reshape(shift, (-1, 1)), noise), absent

    with_first, without_first = laws(first)
    with_second, without_second = laws(np.where(grid > 0.4, second, -second))
    there = with_first.T * with_second * 1e-4
    gone = without_first.T * without_second * 1e-4
    for epsilon in (0.1, 0.5, 1.0):
        both = [np.maximum(0, p - math.exp(epsilon) * r).sum() for p, r in ((there, gone), (gone, there))]
        assert max(both) == pytest.approx(account.loss_of(0).delta(epsilon), rel=2e-3)


@pytest.mark.parametrize("sampler", [full(40), poisson(40)])
def test_examples_that_share_a_class_pay_at_least_their_own(sampler: Sampler) -> None:
    generator = np.random.default_rng(2)
    account = IndividualLosses(sampler=sampler, noise_multiplier=1.5)
    scale = generator.random(40)
    for _ in range(30):
        account.observe(np.minimum(1, scale * generator.random(40) * 1.5))
    own = np.array([account.loss_of(example).epsilon(1e-5) for example in range(40)])
    run = account.run_loss().epsilon(1e-5)
    for classes in (1, 4, 12):
        shared = account.epsilons(1e-5, classes=classes)
        assert (shared >= own - 1e-4 * own).all()
        assert (shared <= run).all()
        assert len(np.unique(shared)) <= classes
    assert (account.epsilons(1e-5, classes=12) < 1.6 * own + 0.1).all()
    assert account.epsilons(1e-5, classes=40) == pytest.approx(own, rel=1e-3)


def test_an_adversary_who_stops_in_time_passes_them_more_often_than_delta() -> None:
    """So these numbers are no guarantee: norm 1 until the loss exceeds what was read, then 0 for good."""
    delta, noise, paths, generator = 0.01, 4.0, 4000, np.random.default_rng(3)
    loss, passed = np.zeros(paths), np.zeros(paths, dtype=bool)
    account = IndividualLosses(sampler=full(1, 200), noise_multiplier=noise)
    for _ in range(200):
        account.observe([1.0])
        # What an epsilon at delta lets happen with a probability of delta only.
        mu = math.sqrt(account.steps) / noise
        read = mu * norm.isf(delta) + mu * mu / 2
        assert gdp_delta(mu, read) < delta
        loss = np.where(passed, loss, loss + generator.normal(0.5 / noise**2, 1 / noise, paths))
        passed |= loss > read
    accepts_only(at_most(int(passed.sum()), paths), 1.0, delta=delta, five_times=5 * delta)


def test_the_summary_is_of_all_examples_and_of_each_group() -> None:
    account = IndividualLosses(sampler=full(4), noise_multiplier=2.0)
    account.observe([1.0, 0.5, 0.25, 0.0])
    told = account.summary(1e-5, groups=["a", "a", "b", "b"])
    found = account.epsilons(1e-5)
    assert told.run == found[0] == told.quantiles[1.0]
    assert told.quantiles[0.0] == 0 == found[3]
    assert list(told.groups["a"]) == pytest.approx([found[:2].mean(), found[0]])
    assert list(told.groups["b"]) == pytest.approx([found[2:].mean(), found[2]])
    assert "curator only" in str(told)
    assert "group b" in str(told)


def test_nothing_about_examples_is_in_texts_that_end_up_in_logs() -> None:
    accounts = [IndividualLosses(sampler=full(2), noise_multiplier=2.0) for _ in range(2)]
    accounts[0].observe([1.0, 0.25])
    accounts[1].observe([0.0, 0.75])
    assert repr(accounts[0]) == repr(accounts[1])
    assert repr(accounts[0].summary(1e-5)) == repr(accounts[1].summary(1e-5))
    told = set()
    for bad in ([1.5, 0.2], [0.7, -0.1], [math.nan, 0.0], [0.1], [[0.1, 0.2]]):
        with pytest.raises(ParameterError) as refused:
            accounts[0].observe(bad)
        told.add(str(refused.value))
    assert len(told) == 1
    assert accounts[0].steps == 1


def test_nobody_has_paid_before_the_first_step() -> None:
    account = IndividualLosses(sampler=poisson(), noise_multiplier=1.0)
    assert account.loss_of(0) == Composed(())
    assert account.epsilons(1e-5).tolist() == [0.0, 0.0, 0.0]


@cases(
    ("call", "says"),
    [
        (
            lambda: IndividualLosses(
                sampler=ShuffledSampler(population=3, batch_size=1, steps=3), noise_multiplier=1.0
            ),
            "sampler must draw each step independently",
        ),
        (lambda: IndividualLosses(sampler=full(), noise_multiplier=-1.0), "noise_multiplier must be"),
        (
            lambda: IndividualLosses(sampler=full(), noise_multiplier=1.0).loss_of(3),
            "example must be below 3",
        ),
        (
            lambda: IndividualLosses(sampler=full(), noise_multiplier=1.0).bound(101),
            "at most the planned 100",
        ),
        (
            lambda: IndividualLosses(sampler=full(), noise_multiplier=1.0).summary(1e-5, groups=["a"]),
            "groups must have one entry for each",
        ),
        (lambda: IndividualLosses(sampler=full(), noise_multiplier=1.0).epsilons(1.0), "delta must be"),
    ],
)
def test_bad_input_is_told(call: Any, says: str) -> None:
    with pytest.raises(ParameterError, match=says):
        call()


def test_replace_one_is_refused() -> None:
    with pytest.raises(NeighboringMismatch, match="only one has norms"):
        IndividualLosses(sampler=full(neighboring=Neighboring.REPLACE_ONE), noise_multiplier=1.0)


def test_a_summary_shows_no_less_than_it_tells() -> None:
    shown = str(
        IndividualSummary(delta=1e-5, run=1.00001, quantiles={0.5: 0.300001}, groups={"a": (0.1, 0.20001)})
    )
    assert "the run's is 1.001" in shown
    assert "at most 0.3001" in shown
    assert "at most 0.2001" in shown
