"""No example twice in a sum, no noise twice on other sums, no step without noise."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from sfumato.errors import ParameterError
from sfumato.learning import PoissonSampler, ShuffledSampler
from sfumato.learning.sampling.users import UserRecordsSampler
from sfumato.ledger import Ledger
from sfumato.mechanisms.factorization.strategies.banded import BandedToeplitz
from tests.run_time import run_time

if run_time(__name__):
    import torch
    from torch import nn

    from sfumato.learning.clipping.adaptive_quantile import AdaptiveQuantile
    from sfumato.learning.noise.correlated import CorrelatedNoise
    from sfumato.learning.noise.grid import GridNoise
    from tests.learning.training.conftest import Made

    Make = Callable[..., Made]
Open = Callable[..., Ledger]
REAL: dict[str, Any] = {"noise_generator": None, "delta": 1e-3, "epochs": 3, "replayable": True}


@pytest.fixture
def deterministic() -> Iterator[None]:
    torch.use_deterministic_algorithms(mode=True)
    yield
    torch.use_deterministic_algorithms(mode=False)


@pytest.fixture
def ledger(open_ledger: Open, tmp_path: Path) -> Ledger:
    return open_ledger(tmp_path / "kept.ledger", simulated=False)


def step(made: Made, batch: Any) -> None:
    made.optimizer.zero_grad()
    made.loss(*batch).backward()
    made.optimizer.step()


def test_a_batch_that_was_begun_is_begun_anew_after_a_rewind(
    make: Make, ledger: Ledger, deterministic: None
) -> None:
    made = make(**REAL, ledger=ledger, max_physical_batch_size=2)
    step(made, next(iter(made.loader)))  # a part: nothing is released
    assert made.engine.run.released == 0
    sizes: list[int] = []
    gradients = made.engine.run.gradients

    def watched() -> Any:
        sizes.append(made.engine.run._batch.examples)
        return gradients()

    made.engine.run.gradients = watched  # type: ignore[method-assign]
    for batch in made.loader:
        step(made, batch)
        if sizes:
            break
    assert sizes == [len(made.engine.run.sampler.batch(0))]


def test_a_replay_that_clips_otherwise_gets_fresh_noise(
    make: Make, ledger: Ledger, deterministic: None, tmp_path: Path
) -> None:
    # So wide that nothing is clipped: the sums are the same whatever the norm has become.
    clipping = AdaptiveQuantile(clip_norm=1e4, count_stddev=5.0)
    made = make(**REAL, ledger=ledger, clipping=clipping, lr=0.0)
    step(made, next(iter(made.loader)))
    made.engine.save_checkpoint(path=tmp_path / "at.pt")
    assert made.engine.run.clipping != clipping
    batches = iter(made.loader)
    step(made, next(batches))
    again = make(**REAL, ledger=ledger, clipping=clipping, lr=0.0, resume_from=tmp_path / "at.pt")
    assert again.engine.run.clipping != clipping
    again.engine.run.engine.clipping = clipping  # as of another run, or of code that forgets the norm
    with pytest.warns(UserWarning, match="its noise is not drawn"):
        step(again, next(iter(again.loader)))


@pytest.mark.parametrize("how", ["resume", "load"])
@pytest.mark.parametrize("what", ["order", "noise"])
def test_steps_that_hang_together_do_not_go_on_with_fresh_secrets(
    make: Make, tmp_path: Path, how: str, what: str
) -> None:
    def shuffled(**given: Any) -> ShuffledSampler:
        return ShuffledSampler(
            **{name: given[name] for name in ("population", "batch_size", "steps", "seed")}
        )

    def correlated(*, sampler: Any, key: Any, seed: Any) -> CorrelatedNoise:
        strategy = BandedToeplitz(steps=sampler.steps, bands=[1.0, 0.5])
        return CorrelatedNoise(strategy, participation=sampler.participation, key=key, seed=seed)

    options: dict[str, Any] = {"noise_generator": None, "steps": 8}
    options |= {"sampler": shuffled} if what == "order" else {"noise": correlated}
    first = make(**options)
    step(first, next(iter(first.loader)))
    first.engine.save_checkpoint(path=tmp_path / "at.pt")
    if how == "resume":
        with pytest.raises(ParameterError, match="drawn independently"):
            make(**options, resume_from=tmp_path / "at.pt")
        return
    other = make(**options)
    with pytest.raises(ParameterError, match="drawn independently"):
        other.engine.load_checkpoint(path=tmp_path / "at.pt", module=other.module)


def test_records_of_users_go_on_with_fresh_secrets(make: Make, tmp_path: Path) -> None:
    def records(*, population: int, steps: int, seed: Any, **_: Any) -> UserRecordsSampler:
        return UserRecordsSampler(
            user_ids=[i // 2 for i in range(population)],
            sampling_probability=0.25,
            max_examples=2,
            steps=steps,
            seed=seed,
        )

    options: dict[str, Any] = {"noise_generator": None, "steps": 8, "sampler": records}
    first = make(**options)
    first.epoch()
    first.engine.save_checkpoint(path=tmp_path / "at.pt")
    other = make(**options)
    other.engine.load_checkpoint(path=tmp_path / "at.pt", module=other.module)
    assert other.engine.run.cursor == first.engine.run.cursor > 0


def test_a_batch_of_an_earlier_step_is_not_used_again(make: Make) -> None:
    def shuffled(**given: Any) -> ShuffledSampler:
        return ShuffledSampler(
            **{name: given[name] for name in ("population", "batch_size", "steps", "seed")}
        )

    made = make(sampler=shuffled, steps=8, max_physical_batch_size=5)
    batches = iter(made.loader)
    first = next(batches)
    step(made, first)
    x, y = next(batches)  # the second part of the same step
    step(made, (x.view(5, 3), y))
    later = next(batches)
    with pytest.raises(ParameterError, match="that the loader returned last, but it is an earlier one"):
        step(made, first)
    with torch.no_grad():
        made.loss(*first)
    step(made, later)
    step(made, next(batches))
    assert made.engine.run.released == 2
    made.engine.detach()
    made.loss(*first)


def test_a_parameter_that_was_added_is_not_stepped_without_noise(make: Make) -> None:
    made = make()
    other = nn.Linear(1, 1)
    made.optimizer.add_param_group({"params": other.parameters()})
    x, y = next(iter(made.loader))
    nn.functional.mse_loss(other(made.module(x)), y).backward()
    before = [parameter.detach().clone() for parameter in other.parameters()]
    with pytest.raises(ParameterError, match="hold the module's parameters only"):
        made.optimizer.step()
    assert all(torch.equal(a, b) for a, b in zip(before, other.parameters(), strict=True))


def test_a_batch_from_elsewhere_is_priced_as_its_noise_is_drawn(make: Make) -> None:
    def noise(*, sampler: Any, key: Any, seed: Any) -> GridNoise:
        del sampler
        return GridNoise(key) if seed is None else GridNoise(seed=seed)

    def poisson(**given: Any) -> PoissonSampler:
        steps, seed = given["steps"], given["seed"]
        return PoissonSampler(
            population=given["population"], sampling_probability=1.0, steps=steps, seed=seed
        )

    made = make(noise=noise, sampler=poisson, steps=4, noise_multiplier=1e6)
    x, y = made.data_loader.dataset.tensors
    with pytest.warns(UserWarning, match="did not come from the loader"):
        step(made, (x, y))
    run = made.engine.run
    entries = sum(p.numel() for p in made.module.parameters())
    charged = run.noise.charged(1e6, entries)
    assert charged < 1e6
    assert run.loss_so_far() == run.sampler.loss_of(charged, 1) + run.sampler.step_loss(charged)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="processes are not forked here")
@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")
def test_a_batch_from_before_a_fork_is_stepped_with_by_the_parent_only(make: Make) -> None:
    made = make(noise_generator=None)
    x, y = next(iter(made.loader))
    made.loss(x, y).backward()
    child = os.fork()
    if not child:  # both had the step's noise, for whatever sums
        try:
            made.optimizer.step()
        except ParameterError:
            os._exit(0)
        finally:
            os._exit(1)
    assert os.waitpid(child, 0)[1] == 0
    made.optimizer.step()
    assert made.engine.run.released == 1


@pytest.mark.skipif(not hasattr(os, "fork"), reason="processes are not forked here")
@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")
def test_a_run_without_a_ledger_is_refused_in_a_forked_process_by_its_parameter(make: Make) -> None:
    """No ledger is at fault: the run itself belongs to the parent, whose noise the child would draw."""
    made = make(noise_generator=None)
    reading, writing = os.pipe()
    child = os.fork()
    if not child:
        try:
            next(iter(made.loader))
        except Exception as error:
            os.write(writing, f"{type(error).__name__}: {error}".encode())
        finally:
            os._exit(0)
    os.waitpid(child, 0)
    said = os.read(reading, 400).decode()
    assert said.startswith("ParameterError: run must continue in the process that made it, but this process")
    next(iter(made.loader))
    for end in (reading, writing):
        os.close(end)
