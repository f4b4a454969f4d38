"""Noise and clip norms by step: what is drawn, what it costs, and that nothing is chosen on the way."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from sfumato.errors import LedgerMismatch, ParameterError
from sfumato.learning import FullBatchSampler, Schedule, ShuffledSampler
from sfumato.ledger import Ledger
from sfumato.privacy import Gaussian, Neighboring, PoissonSubsampled, compose
from tests.run_time import run_time

if run_time(__name__):
    import torch

    from sfumato.learning import (
        AdaptiveQuantile,
        IndividualObserver,
        NoiseOptions,
        PerGroup,
        PrivacyEngine,
    )
    from tests.learning.training.conftest import Made

    Make = Callable[..., Made]


def deviations(made: Made) -> dict[int, list[float]]:
    """Return, once steps are made, the deviations of each step's noise."""
    found: dict[int, list[float]] = {}
    add = made.engine.run.noise.add_

    def watched(gradients: Any, *, step: int, stddevs: Any, **more: Any) -> None:
        found[step] = list(stddevs)
        add(gradients, step=step, stddevs=stddevs, **more)

    made.engine.run.noise.add_ = watched  # type: ignore[method-assign]
    return found


def gradients(made: Made) -> list[torch.Tensor]:
    """Return each step's gradient of an epoch."""
    found = []
    for batch in made.loader:
        made.optimizer.zero_grad()
        (1e3 * made.loss(*batch)).backward()  # so large that every example is clipped
        made.optimizer.step()
        found.append(torch.cat([p.grad.ravel() for p in made.module.parameters() if p.grad is not None]))
    return found


def test_each_step_has_its_own_noise_and_is_priced_by_it(make: Make) -> None:
    factors = (1.0, 2.0, 0.5)
    made = make(noise_multiplier=1.5, schedule=Schedule(factors), epochs=2)
    drawn = deviations(made)
    made.epoch()
    made.epoch()
    sensitivity = made.engine.run.clipping.sensitivity
    for step, stddevs in drawn.items():
        factor = factors[min(step, 2)]
        assert stddevs == pytest.approx([1.5 * factor * sensitivity] * 4, rel=1e-12)
        assert min(stddevs) >= 1.5 * factor * sensitivity
    steps = made.engine.run.cursor
    assert sorted(drawn) == list(range(steps)) == list(range(8))
    one = {
        factor: PoissonSubsampled(Gaussian(1.5 * factor, neighboring=Neighboring.ZERO_OUT), 0.25)
        for factor in factors
    }
    expected = compose([one[1.0], one[2.0], one[0.5] * 6])
    assert made.engine.get_epsilon(1e-3) == pytest.approx(expected.epsilon(1e-3), rel=1e-9)
    assert made.engine.accountant.history == [(1.5, 0.25, 1), (3.0, 0.25, 1), (0.75, 0.25, 6)]
    assert "schedule factors [1.0, 2.0, 0.5], every 1" in str(made.engine.card(1e-3))


@pytest.mark.parametrize("clipping", ["flat", "per_layer", "automatic"])
def test_each_step_clips_by_its_own_norm_and_noise_follows(make: Make, clipping: str) -> None:
    still: dict[str, Any] = {"noise_multiplier": 0.0, "lr": 0.0, "clipping": clipping}
    plain = gradients(make(**still))
    scheduled = gradients(make(**still, clip_schedule=Schedule((1.0, 0.5, 2.0), every=1)))
    for step, (one, other) in enumerate(zip(plain, scheduled, strict=True)):
        assert torch.allclose(other, one * (1.0, 0.5, 2.0, 2.0)[step], rtol=1e-3)
    made, usual = make(clip_schedule=Schedule((1.0, 0.5, 2.0)), clipping=clipping), make(clipping=clipping)
    drawn, before = deviations(made), deviations(usual)
    gradients(made)
    gradients(usual)
    for step, stddevs in drawn.items():
        assert stddevs == pytest.approx([each * (1.0, 0.5, 2.0, 2.0)[step] for each in before[step]])
    # Noise is relative to the norm: it costs the same.
    assert made.engine.get_epsilon(1e-3) == usual.engine.get_epsilon(1e-3)


def test_a_batch_that_is_taken_before_the_step_does_not_shrink_its_noise(make: Make) -> None:
    """What was clipped to 1 gets the noise of 1, though the batch that is taken next clips to a tenth."""

    def full(**given: Any) -> FullBatchSampler:
        return FullBatchSampler(population=given["population"], steps=given["steps"], seed=given["seed"])

    made = make(clip_schedule=Schedule((1.0, 0.1)), sampler=full, steps=4, noise_multiplier=2.0)
    drawn = deviations(made)
    batches = iter(made.loader)
    made.loss(*next(batches)).backward()
    next(batches)
    made.optimizer.step()
    assert next(iter(drawn.values())) == pytest.approx([2.0] * 4, rel=1e-3)
    made.loss(*next(batches)).backward()
    made.optimizer.step()
    assert list(drawn.values())[-1] == pytest.approx([0.2] * 4, rel=1e-3)


def test_the_smallest_noise_is_found_for_a_schedule(make: Make) -> None:
    data = make().data_loader
    engine, module = PrivacyEngine(), torch.nn.Linear(3, 1)
    engine.make_private_with_epsilon(
        module=module,
        optimizer=torch.optim.SGD(module.parameters()),
        data_loader=data,
        target_epsilon=2.0,
        target_delta=1e-3,
        max_grad_norm=1.0,
        epochs=3,
        noise=NoiseOptions(schedule=Schedule.exponential(0.5, steps=12, every=4)),
    )
    run = engine.run
    assert 1.99 < run.loss_of(12).epsilon(1e-3) <= 2.0
    assert run.schedules.noise is not None
    assert run.schedules.noise.counts(12) == {1.0: 4, 0.5: 4, 0.25: 4}


def test_noise_or_norms_set_in_the_middle_of_a_run_are_refused(make: Make) -> None:
    """As Opacus's schedulers set them, and as who looks at the loss would."""
    of_run = {
        "noise_multiplier": (1.0, 0.1),
        "max_grad_norm": (1.0, 5.0),
        "expected_batch_size": (10.0, 1),
        "loss_reduction": ("mean", "sum"),
        "generator": (None, torch.Generator()),
        "secure_mode": (False, True),  # it is a simulation
        "step_hook": (None, print),
    }
    for name, (begun_with, value) in of_run.items():
        made = make()
        made.epoch()
        assert getattr(made.optimizer, name) == begun_with
        before = made.engine.get_epsilon(1e-3)
        batch = next(iter(made.loader))
        loss = made.loss(*batch)
        loss.backward()
        if loss.item() < 1e6:  # a choice by a loss
            setattr(made.optimizer, name, value)
        with pytest.raises(ParameterError, match=f"optimizer must have the {name} of its run"):
            made.optimizer.step()
        assert made.engine.get_epsilon(1e-3) == before
        setattr(made.optimizer, name, begun_with)
        made.optimizer.step()
        assert made.engine.get_epsilon(1e-3) > before


def test_the_optimizer_states_what_holds_in_the_current_step(make: Make, tmp_path: Path) -> None:
    scheduled: dict[str, Any] = {
        "noise_multiplier": 1.5,
        "schedule": Schedule((2.0, 1.0, 0.5)),
        "clip_schedule": Schedule((1.0, 0.5), every=2),
        "epochs": 2,
    }
    made = make(**scheduled)
    stated = [(made.optimizer.noise_multiplier, made.optimizer.max_grad_norm)]
    for index, (x, y) in enumerate(made.loader):
        within = made.optimizer.noise_multiplier, made.optimizer.max_grad_norm
        made.optimizer.zero_grad()
        made.loss(x, y).backward()
        if index == 2:
            made.optimizer.noise_multiplier = 1.5  # that of another step
            with pytest.raises(ParameterError, match=r"must have the noise_multiplier of its run, 0\.75"):
                made.optimizer.step()
            made.optimizer.noise_multiplier = 0.75
        made.optimizer.step()
        assert within == (made.optimizer.noise_multiplier, made.optimizer.max_grad_norm)
        stated.append(within)
    assert stated == [(3.0, 1.0), (3.0, 1.0), (1.5, 1.0), (0.75, 0.5), (0.75, 0.5)]
    made.optimizer.noise_multiplier = 2.0  # between two steps: the next batch does not hide it
    with pytest.raises(ParameterError, match="must have the noise_multiplier of its run"):
        made.epoch()
    made.optimizer.noise_multiplier = 0.75
    made.engine.save_checkpoint(path=tmp_path / "at.pt")
    again = make(**scheduled)
    again.engine.load_checkpoint(path=tmp_path / "at.pt", module=again.module, optimizer=again.optimizer)
    assert (again.optimizer.noise_multiplier, again.optimizer.max_grad_norm) == (0.75, 0.5)


def test_the_optimizer_states_the_norm_that_clipping_has_adapted_to(make: Make) -> None:
    made = make(clipping=AdaptiveQuantile(clip_norm=0.5, count_stddev=5.0), max_grad_norm=1.0, epochs=1)
    assert made.optimizer.max_grad_norm == 0.5  # max_grad_norm is ignored beside an object
    made.epoch()
    assert made.optimizer.max_grad_norm == made.engine.run.adapted_norm != 0.5


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (lambda: {"schedule": (1.0, 2.0)}, "noise schedule must be a Schedule"),
        (lambda: {"clip_schedule": 0.5}, "clip_norm schedule must be a Schedule"),
        (
            lambda: {
                "clip_schedule": Schedule((1.0, 2.0)),
                "clipping": AdaptiveQuantile(clip_norm=1.0, count_stddev=5.0),
            },
            "clipping must have one clip norm that does not adapt",
        ),
        (
            lambda: {
                "clip_schedule": Schedule((1.0, 2.0)),
                "clipping": PerGroup(clip_norms=(("0.", 1.0), ("2.", 1.0))),
            },
            "clipping must have one clip norm",
        ),
        (
            lambda: {
                "schedule": Schedule((1.0, 100.0)),
                "clipping": AdaptiveQuantile(clip_norm=1.0, count_stddev=5.0),
            },
            "noise_multiplier must be below twice count_stddev",
        ),
    ],
)
def test_schedules_that_cannot_be_priced_are_refused(
    make: Make, options: Callable[[], dict[str, Any]], message: str
) -> None:
    with pytest.raises(ParameterError, match=message):
        make(**options(), steps=8)


def test_other_samplers_draw_too_few_steps_independently(make: Make) -> None:
    def shuffled(**given: Any) -> ShuffledSampler:
        given.pop("steps_per_epoch")
        return ShuffledSampler(**given)

    with pytest.raises(ParameterError, match="sampler must draw each"):
        make(schedule=Schedule((1.0, 2.0)), sampler=shuffled, steps=8)


def test_batches_from_elsewhere_and_observers_are_refused(make: Make) -> None:
    made = make(schedule=Schedule((1.0, 2.0)), steps=8)
    made.loss(torch.ones(10, 3), torch.ones(10, 1)).backward()
    with pytest.raises(ParameterError, match="batch must come from the private loader where noise"):
        made.optimizer.step()
    with pytest.raises(ParameterError, match="run must have one noise and one clip norm"):
        IndividualObserver(made.engine.run)


def test_a_run_goes_on_with_its_own_schedule_only(
    make: Make, open_ledger: Callable[..., Ledger], tmp_path: Path
) -> None:
    options: dict[str, Any] = {
        "noise_generator": None,
        "delta": 1e-3,
        "epochs": 3,
        "key_file": tmp_path / "key",
        "schedule": Schedule((1.0, 2.0)),
        "clip_schedule": Schedule((1.0, 0.5)),
    }
    ledger = open_ledger(tmp_path / "of.ledger", simulated=False)
    made = make(**options, ledger=ledger)
    made.epoch()
    path = tmp_path / "at.pt"
    made.engine.save_checkpoint(path=path)
    for name, other in (("schedule", Schedule((1.0, 3.0))), ("clip_schedule", None)):
        with pytest.raises(LedgerMismatch, match="must be the one that the run began with"):
            make(**(options | {name: other}), ledger=ledger, resume_from=path)
    again = make(**options, ledger=ledger, resume_from=path)
    drawn = deviations(again)
    again.epoch()
    sensitivity = again.engine.run.clipping.sensitivity
    assert sensitivity == pytest.approx(0.5, rel=1e-3)
    assert all(stddevs == pytest.approx([2.0 * sensitivity] * 4) for stddevs in drawn.values())
