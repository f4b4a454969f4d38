"""Opacus's schedulers: the noise that is drawn is the noise that is priced, and was fixed before step 1."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from sfumato.errors import ParameterError
from sfumato.ledger import Ledger
from tests.learning.training.conftest import open_ledger  # noqa: F401 - a fixture
from tests.run_time import run_time

if run_time(__name__):
    import torch

    from sfumato.learning import IndividualObserver, Schedule
    from sfumato.learning.opacus import PrivacyEngine, schedulers
    from tests.learning.training.conftest import Made, make_data, make_module


def spied(made: Made) -> list[list[float]]:
    """Return what deviations the noise of each step is drawn with, from now on."""
    noise, drawn = made.engine.run.noise, list[list[float]]()
    add = noise.add_

    def add_(values: Any, *, step: int, stddevs: Any, **more: Any) -> Any:
        drawn.append([round(stddev, 4) for stddev in stddevs])
        return add(values, step=step, stddevs=stddevs, **more)

    vars(noise)["add_"] = add_
    return drawn


def test_each_scheduler_scales_what_is_drawn_and_what_it_costs() -> None:
    for make, noises, norms in (
        (lambda o: schedulers.ExponentialNoise(o, gamma=0.5), [1, 0.5, 0.25], [1, 1, 1]),
        (lambda o: schedulers.StepNoise(o, step_size=2, gamma=0.5), [1, 1, 0.5], [1, 1, 1]),
        (lambda o: schedulers.LambdaNoise(o, noise_lambda=lambda e: 2 + e), [2, 3, 4], [1, 1, 1]),
        (lambda o: schedulers.ExponentialGradClip(o, gamma=0.5), [1, 1, 1], [1, 0.5, 0.25]),
        (lambda o: schedulers.StepGradClip(o, step_size=2, gamma=0.5), [1, 1, 1], [1, 1, 0.5]),
        (lambda o: schedulers.LambdaGradClip(o, scheduler_function=lambda e: 2.0**e), [1, 1, 1], [1, 2, 4]),
    ):
        made = Made(epochs=3)
        scheduler, drawn, stated = make(made.optimizer), spied(made), []
        for epoch in range(3):
            stated.append(
                scheduler.get_noise_multiplier()
                if hasattr(scheduler, "get_noise_multiplier")
                else scheduler.get_max_grad_norm()
            )
            optimizer = made.optimizer
            assert (optimizer.noise_multiplier, optimizer.max_grad_norm) == (noises[epoch], norms[epoch])
            made.epoch()
            assert (optimizer.noise_multiplier, optimizer.max_grad_norm) == (noises[epoch], norms[epoch])
            scheduler.step()
        assert stated == (noises if hasattr(scheduler, "get_noise_multiplier") else norms)
        by_step = [n * c for n, c in zip(noises, norms, strict=True) for _ in range(4)]
        assert [each[0] for each in drawn] == pytest.approx(by_step, rel=1e-3), make
        # The same as a schedule that was passed to make_private.
        schedule = Schedule([float(factor) for factor in noises], every=4)
        before = Made(epochs=3, schedule=schedule)
        assert made.engine.run.loss_of(12) == before.engine.run.loss_of(12)
        card = made.engine.card(1e-3)
        named = dict(card.noise if noises != [1, 1, 1] else card.clipping)
        assert named["schedule"]["every"] == 4
        assert scheduler.state_dict() == {"last_epoch": 3}


def test_a_scheduler_of_steps_and_one_of_each_kind() -> None:
    made = Made(epochs=1)
    noise = schedulers.ExponentialNoise(made.optimizer, gamma=0.5, every=1)
    norm = schedulers.StepGradClip(made.optimizer, step_size=1, gamma=2.0, every=2)
    drawn = spied(made)
    for index, (x, y) in enumerate(made.loader):
        made.optimizer.zero_grad()
        made.loss(x, y).backward()
        made.optimizer.step()
        noise.step()
        if index % 2:
            norm.step()
    assert [each[0] for each in drawn] == pytest.approx([1, 0.5, 0.5, 0.25], rel=1e-3)
    assert made.engine.run.loss_so_far() == Made(
        epochs=1, schedule=Schedule((1.0, 0.5, 0.25, 0.125))
    ).engine.run.loss_of(4)


def test_what_no_price_knows_of_is_refused_when_the_scheduler_is_made(
    open_ledger: Callable[..., Ledger],  # noqa: F811
) -> None:
    begun = Made(epochs=2)
    begun.epoch()
    twice = Made(epochs=2)
    schedulers.StepNoise(twice.optimizer, step_size=1, gamma=0.9)
    charged = Made(epochs=2, ledger=open_ledger(), delta=1e-3)
    module, engine = make_module(), PrivacyEngine()
    _, target, _ = engine.make_private_with_epsilon(
        module=module,
        optimizer=torch.optim.SGD(module.parameters(), lr=0.1),
        data_loader=torch.utils.data.DataLoader(make_data(), batch_size=10),
        target_epsilon=2.0,
        target_delta=1e-3,
        max_grad_norm=1.0,
        epochs=2,
    )
    plain = torch.optim.SGD(module.parameters(), lr=0.1)
    for optimizer, options, message in (
        (begun.optimizer, {}, "before the first step, but it has taken 4 steps; pass noise=NoiseOptions"),
        (twice.optimizer, {}, "run must have one schedule of its noise"),
        (charged.optimizer, {}, "no ledger where a scheduler is made, but it was charged; pass noise="),
        (target, {}, "chosen for a target epsilon; pass .* to make_private_with_epsilon"),
        (plain, {}, "optimizer must be the one that make_private returned"),
        (Made(epochs=2).optimizer, {"last_epoch": 3}, "last_epoch must be -1"),
        (Made(epochs=2).optimizer, {"gamma": 0.0}, "gamma must be positive"),
        (Made(epochs=2).optimizer, {"every": 0}, "every must be an integer"),
    ):
        with pytest.raises(ParameterError, match=message):
            schedulers.ExponentialNoise(optimizer, **({"gamma": 0.9} | options))
    schedulers.ExponentialGradClip(target, gamma=0.9)  # costs nothing
    observed = Made(epochs=2)
    IndividualObserver(observed.engine.run)
    schedulers.ExponentialNoise(observed.optimizer, gamma=0.5)
    with pytest.raises(ParameterError, match="one noise and one clip norm, but it has a schedule"):
        observed.epoch()


def test_a_step_at_another_time_is_refused() -> None:
    made = Made(epochs=2)
    scheduler = schedulers.ExponentialNoise(made.optimizer, gamma=0.5)
    with pytest.raises(ParameterError, match=r"after each 4 steps, but 0 .* pass every= to ExponentialNoise"):
        scheduler.step()
    made.epoch()
    scheduler.step()
    with pytest.raises(ParameterError, match="but 4 steps were taken, and the next factor holds from step 8"):
        scheduler.step()


def test_a_run_without_a_planned_length_has_the_factors_that_are_positive() -> None:
    made = Made()
    scheduler = schedulers.LambdaNoise(made.optimizer, noise_lambda=lambda epoch: 1.0 - 0.5 * epoch)
    made.epoch()
    scheduler.step()
    assert scheduler.get_noise_multiplier() == 0.5
    made.epoch()
    with pytest.raises(ParameterError, match=r"state the length by SamplingOptions\(epochs=\)"):
        scheduler.step()
    assert made.engine.run.loss_so_far() == Made(schedule=Schedule((1.0, 0.5), every=4)).engine.run.loss_of(8)
    with pytest.raises(ParameterError, match="positive"):
        schedulers.LambdaNoise(Made(epochs=3).optimizer, noise_lambda=lambda epoch: 1.0 - 0.5 * epoch)
