"""What the observer counts of a run, against gradients that are taken one example at a time."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from sfumato.errors import ParameterError
from sfumato.ledger import IndividualFilter
from sfumato.numerics.rounding import fraction_down
from sfumato.privacy import compose
from tests.cases import cases
from tests.run_time import run_time

if run_time(__name__):
    import torch
    from torch import nn

    from sfumato.learning import (
        AdaptiveQuantile,
        Automatic,
        Clipping,
        Flat,
        FullBatchSampler,
        IndividualObserver,
        PerLayer,
        clipped_grad,
    )
    from sfumato.learning.training.individual_observer import contributions
    from tests.learning.training.conftest import EXAMPLES, Made, make_data, make_module

    Make = Callable[..., Made]


def whole(**numbers: Any) -> FullBatchSampler:
    return FullBatchSampler(population=numbers["population"], steps=numbers["steps"], seed=numbers["seed"])


def moved(trained: nn.Module, clipping: Clipping) -> np.ndarray:
    """How far each example moves the noisy sum, in deviations of a noise multiplier of 1."""
    module = make_module()  # without hooks
    module.load_state_dict(trained.state_dict())
    names = [name for name, _ in module.named_parameters()]
    groups = torch.tensor(clipping.groups(names))
    stddevs = clipping.stddevs(1.0, names, [p.numel() for p in module.parameters()])
    found = []
    for x, y in zip(*make_data().tensors, strict=True):
        loss = nn.functional.mse_loss(module(x[None]), y[None])
        gradients = torch.autograd.grad(loss, list(module.parameters()))
        squares = torch.stack([g.square().sum() for g in gradients])
        by_group = torch.zeros(int(groups.max()) + 1).index_add(0, groups, squares)
        factors = clipping.factors(by_group[:, None])[:, 0]
        parts = [f * g / s for f, g, s in zip(factors[groups], gradients, stddevs, strict=True)]
        found.append(math.sqrt(sum(float(part.square().sum()) for part in parts)))
    return np.array(found)


@cases(
    "clipping",
    lambda: [
        Flat(clip_norm=2.0),
        Automatic(clip_norm=2.0),
        PerLayer(clip_norm=2.0, layers=("0", "2"), allocation="equal"),
        PerLayer(clip_norm=2.0, layers=("0", "2")),
    ],
)
def test_full_batches_are_counted_as_their_gradients_are(make: Make, clipping: Clipping) -> None:
    made = make(sampler=whole, steps=4, clipping=clipping)
    observer = IndividualObserver(made.engine.run)
    told, levels = [], np.zeros((EXAMPLES, 33))
    for x, y in made.loader:
        told.append(moved(made.module, clipping))
        made.optimizer.zero_grad()
        made.loss(x, y).backward()
        made.optimizer.step()
        level = np.ceil(np.minimum(1, told[-1] * (1 + 2.0**-12)) * 32).astype(int)
        levels[np.arange(EXAMPLES), level] += 1
    losses = observer.losses
    assert losses.steps == len(told) == made.engine.run.cursor
    for example in range(EXAMPLES):
        squares = (levels[example] * (np.arange(33) / 32) ** 2).sum()
        assert losses.loss_of(example).gdp().mu == pytest.approx(math.sqrt(squares), rel=1e-9)
    # Some are below what the run costs, none above it.
    spread = losses.epsilons(1e-3, classes=EXAMPLES)
    assert spread.max() <= made.engine.get_epsilon(1e-3)
    assert spread.min() < 0.98 * made.engine.get_epsilon(1e-3)


def test_gradients_that_are_all_clipped_cost_exactly_what_the_run_does(make: Make) -> None:
    for options in ({"sampler": whole, "steps": 4}, {}):
        made = make(max_grad_norm=1e-3, **options)
        observer = IndividualObserver(made.engine.run)
        made.epoch()
        for example in range(EXAMPLES):
            assert observer.losses.loss_of(example) == made.engine.run.loss_so_far()


@pytest.mark.parametrize("physical", [None, 3])
@pytest.mark.parametrize("unseen", ["bound", "last"])
def test_of_samples_only_those_drawn_are_seen(make: Make, unseen: Any, physical: int | None) -> None:
    made = make(max_grad_norm=20.0, max_physical_batch_size=physical)
    run = made.engine.run
    observer = IndividualObserver(run, unseen=unseen)
    paid: list[np.ndarray] = []
    last = np.ones(EXAMPLES)
    clipping = Flat(clip_norm=20.0)
    for x, y in made.loader:
        before = moved(made.module, clipping)
        if run.cursor == len(paid):
            batch = run.sampler.batch(run.cursor)
            step = last.copy() if unseen == "last" else np.ones(EXAMPLES)
            step[batch] = last[batch] = before[batch] * (1 + 2.0**-12)
            paid.append(step)
        made.optimizer.zero_grad()
        made.loss(x, y).backward()
        made.optimizer.step()
    assert len(paid) == run.cursor == 4
    for example in range(EXAMPLES):
        noises = [fraction_down(Fraction(32, math.ceil(step[example] * 32))) for step in paid]
        expected = compose([run.sampler.loss_of(noise, 1) for noise in noises])
        assert observer.losses.loss_of(example) == expected


def test_steps_that_were_not_seen_whole_are_paid_in_full(make: Make) -> None:
    made = make(sampler=whole, steps=8, max_grad_norm=1e3)
    observer = IndividualObserver(made.engine.run)
    steps = iter(made.loader)
    x, y = next(steps)
    made.loss(x, y).backward()
    made.optimizer.zero_grad()  # dropped: its number counts as run
    x, y = next(steps)
    made.loss(x, y).backward()
    made.optimizer.step()
    assert made.engine.run.cursor == 2
    counts = dict(observer.losses.loss_of(0).terms)
    assert counts[made.engine.run.sampler.step_loss(1.0)] == 1
    assert sum(counts.values()) == 2


def test_a_batch_from_elsewhere_ends_what_can_be_told(make: Make) -> None:
    made = make(sampler=whole, steps=8)
    observer = IndividualObserver(made.engine.run)
    made.epoch()
    made.loss(*make_data().tensors).backward()
    with pytest.warns(UserWarning, match="did not come from the loader"):
        made.optimizer.step()
    with pytest.raises(ParameterError, match="batches must come from the run's own loader"):
        _ = observer.losses


def test_a_gradient_that_is_not_finite_contributes_nothing() -> None:
    norms = torch.tensor([[1.0, math.inf, math.nan, 1e30, 0.0]])
    told = contributions(Flat(clip_norm=2.0), norms, {"w": 1})
    assert told.tolist() == [pytest.approx(0.5, rel=1e-9), 0.0, 0.0, 1.0, 0.0]
    # Its own float32 square would not be finite, and 1e30 would count as nothing.
    assert not torch.isfinite(norms[0, 3].square())


@cases(
    ("options", "says"),
    lambda: [
        (
            {"float_safe": True},
            "noise must be independent in each step, and not on a grid, got a value of type GridNoise",
        ),
        ({"clipping": AdaptiveQuantile(clip_norm=1.0, count_stddev=5.0)}, "clipping must not adapt"),
    ],
)
def test_what_has_other_losses_is_refused(make: Make, options: dict[str, Any], says: str) -> None:
    made = make(**options)
    with pytest.raises(ParameterError, match=says):
        IndividualObserver(made.engine.run)


def test_a_run_that_has_begun_and_another_word_are_refused(make: Make) -> None:
    made = make()
    with pytest.raises(ParameterError, match="unseen must be"):
        IndividualObserver(made.engine.run, unseen="none")  # type: ignore[arg-type]
    made.epoch()
    with pytest.raises(ParameterError, match="observed from its first step, but it has taken 4 steps"):
        IndividualObserver(made.engine.run)


def squared_error(parameters: Any, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    error: torch.Tensor = x @ parameters["w"] - y[0]
    return error.square().sum()


def descent(x: torch.Tensor, y: torch.Tensor, *, steps: int, seed: int) -> tuple[IndividualFilter, list[Any]]:
    """Full-batch descent in which an example is left out before it has paid more than rho."""
    account = IndividualFilter(records=len(x), rho=0.5)
    of_all = clipped_grad(squared_error, clip_norm=1.0, batch_argnums=(1, 2))
    weights, told, stddev = torch.zeros(x.shape[1]), [], 4.0
    generator = torch.Generator().manual_seed(seed)
    for _ in range(steps):
        norms = of_all({"w": weights}, x, y).norms[0].double().clamp(max=1) * (1 + 2.0**-12)
        admitted = torch.from_numpy(account.admit(norms.numpy(), stddev=stddev))
        total = torch.zeros_like(weights)
        if bool(admitted.any()):
            total = of_all({"w": weights}, x[admitted], y[admitted]).gradients["w"]
        total = total + stddev * torch.randn(len(weights), generator=generator)
        weights = weights - 0.05 * total
        told.append((admitted.numpy(), norms.numpy(), total.numpy()))
    return account, told


def test_a_filter_keeps_each_example_within_its_own_limit() -> None:
    """Feldman and Zrnic's: who contributes less takes part for longer, and nobody passes the limit."""
    x, y = make_data().tensors
    x = x * torch.linspace(0.01, 1, len(x))[:, None]
    account, told = descent(x, y * torch.linspace(0.01, 1, len(x))[:, None], steps=60, seed=1)
    paid = sum((admitted * norms) ** 2 / (2 * 4.0**2) for admitted, norms, _ in told)
    assert (paid <= 0.5).all()
    assert account.spent_by_record() == pytest.approx(paid, rel=1e-12)
    took_part = sum(admitted.astype(int) for admitted, _, _ in told)
    # By the worst norm, 15 steps would have been all.
    assert 15 < took_part.min() < 20
    assert took_part.max() == 60
    # Without one example, given the same answers, all others take part in the same steps.
    alone = IndividualFilter(records=len(x) - 1, rho=0.5)
    for admitted, norms, _ in told:
        assert alone.admit(norms[1:], stddev=4.0).tolist() == admitted[1:].tolist()
