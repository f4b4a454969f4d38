"""Noise for a guarantee, and plans all of whose rows keep it."""

from __future__ import annotations

import math
from typing import Any

import pytest

from sfumato.errors import ParameterError
from sfumato.learning.sampling.epoch_sampler import ShuffledSampler
from sfumato.learning.sampling.fixed_size import FixedSizeSampler
from sfumato.learning.sampling.full_batch import FullBatchSampler
from sfumato.learning.sampling.poisson import PoissonSampler
from sfumato.learning.sampling.sampler import Sampler
from sfumato.learning.sampling.training_plan import noise_for, plan_training
from sfumato.privacy import analytic_gaussian_stddev


@pytest.mark.parametrize(
    "sampler",
    [
        PoissonSampler(population=5000, sampling_probability=0.02, steps=100),
        ShuffledSampler(population=5000, batch_size=100, steps=100),
    ],
)
def test_noise_keeps_the_guarantee_and_little_less_does_not(sampler: Sampler) -> None:
    noise = noise_for(sampler, epsilon=1.5, delta=1e-5, tolerance=1e-2)
    assert sampler.loss(noise).epsilon(1e-5) <= 1.5
    assert sampler.loss(noise / 1.02).epsilon_interval(1e-5).lower > 1.5


def test_full_batches_need_the_noise_of_one_release_times_the_root_of_the_steps() -> None:
    one = analytic_gaussian_stddev(sensitivity=1.0, epsilon=2.0, delta=1e-6)
    noise = noise_for(FullBatchSampler(population=10, steps=400), epsilon=2.0, delta=1e-6)
    assert one * 20 <= noise <= one * 20 * (1 + 1e-4)


def test_shuffled_batches_need_as_much_noise_as_epochs_of_full_ones() -> None:
    shuffled = ShuffledSampler(population=1000, batch_size=10, steps=400)
    full = FullBatchSampler(population=1000, steps=4)
    wanted = {"epsilon": 1.0, "delta": 1e-6}
    assert noise_for(shuffled, **wanted) == pytest.approx(noise_for(full, **wanted))


@pytest.fixture(scope="module")
def plan() -> object:
    return plan_training(
        10_000, epsilon=2.0, delta=1e-5, max_epochs=50, steps=[50, 200], batch_sizes=[100, 800, 2500, 10_000]
    )


def test_every_row_keeps_the_guarantee(plan) -> None:  # type: ignore[no-untyped-def]
    assert [(row.batch_size, row.steps) for row in plan.rows] == [
        (100, 50),
        (800, 50),
        (2500, 50),
        (10_000, 50),
        (100, 200),
        (800, 200),
        (2500, 200),
    ]
    for row in plan.rows:
        sampler = PoissonSampler.of_batch_size(
            population=10_000, batch_size=int(row.batch_size), steps=row.steps
        )
        assert sampler.loss(row.noise_multiplier).epsilon(1e-5) <= 2.0
        assert row.step_noise == row.noise_multiplier / row.batch_size
        assert row.total_noise == pytest.approx(row.step_noise / math.sqrt(row.steps))
        assert row.epochs == row.batch_size * row.steps / 10_000 <= 50


def test_efficiency_grows_with_the_batch_up_to_one(plan) -> None:  # type: ignore[no-untyped-def]
    for steps in (50, 200):
        shares = [row.efficiency for row in plan.rows if row.steps == steps]
        assert shares == sorted(shares)
        assert 0 < shares[0] < 0.5 < shares[-1] <= 1 + 2e-3
    assert plan.rows[3].efficiency == pytest.approx(1, abs=2e-3)


def test_the_recommended_row_is_the_one_that_the_rule_names(plan) -> None:  # type: ignore[no-untyped-def]
    near = [row for row in plan.rows if row.efficiency >= 0.8]
    most = max(row.steps for row in near)
    assert plan.recommended == min((r for r in near if r.steps == most), key=lambda r: r.batch_size)
    assert str(plan).count("*") == 1
    assert len(str(plan).splitlines()) == 8
    small = plan_training(10_000, epsilon=2.0, delta=1e-5, max_epochs=1, steps=[50], batch_sizes=[50, 200])
    assert small.recommended is small.rows[1]


def test_sizes_are_chosen_where_none_are_given() -> None:
    plan = plan_training(1000, epsilon=3.0, delta=1e-5, max_epochs=30, steps=[60])
    assert [row.batch_size for row in plan.rows] == [64, 256, 500]


def test_other_samplers_can_be_planned() -> None:
    plan = plan_training(
        1000,
        epsilon=2.0,
        delta=1e-5,
        max_epochs=1000,
        steps=[10],
        batch_sizes=[1000],
        sampler=lambda size, steps: FixedSizeSampler(population=1000, batch_size=size, steps=steps),
    )
    # A replaced example moves sums twice as far, in one release as in many.
    assert plan.rows[0].efficiency == pytest.approx(1, abs=2e-3)
    one = analytic_gaussian_stddev(sensitivity=2.0, epsilon=2.0, delta=1e-5)
    assert plan.rows[0].noise_multiplier == pytest.approx(one * math.sqrt(10), rel=2e-3)


def test_bad_plans_are_refused() -> None:
    good: dict[str, Any] = {"epsilon": 1.0, "delta": 1e-5, "max_epochs": 5.0}
    for changes, message in (
        ({"max_epochs": 0}, "max_epochs must"),
        ({"steps": [0]}, "steps must"),
        ({"batch_sizes": [2.5]}, "batch_sizes must"),
        ({"epsilon": -1}, "epsilon must"),
        ({"slack": 0}, "slack must"),
        ({"steps": [1000], "batch_sizes": [50]}, "max_epochs must allow at least one"),
    ):
        with pytest.raises(ParameterError, match=message):
            plan_training(100, **(good | changes))
    with pytest.raises(ParameterError, match="population must"):
        plan_training(0, **good)
