"""A gradient penalty, clipped with its example's score: beside autograd of each example, and in a run."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from sfumato.errors import ParameterError, UnfitModule
from tests.cases import cases
from tests.run_time import run_time

if run_time(__name__):
    import torch
    from torch import nn
    from torch.utils.data import DataLoader, TensorDataset

    from sfumato.learning import (
        Engine,
        Flat,
        GradientOptions,
        GradientPenalty,
        PrivacyEngine,
    )

WEIGHT = 10.0


def perceptron(activation: str) -> Any:
    return nn.Sequential(nn.Linear(3, 5), getattr(nn, activation)(), nn.Linear(5, 1))


def convolution() -> Any:
    return nn.Sequential(
        nn.Conv2d(1, 3, 3, padding=1), nn.GroupNorm(1, 3), nn.LeakyReLU(0.2), nn.Flatten(), nn.Linear(48, 1)
    )


def conditional() -> Any:
    class Conditional(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.table, self.inner = nn.Embedding(4, 3), perceptron("SiLU")

        def forward(self, rows: Any, labels: Any) -> Any:
            return self.inner(rows * self.table(labels))

    return Conditional()


def loss_of(found: Any) -> Any:
    scores, penalties = found
    return WEIGHT * penalties.mean() - scores.mean()


def alone(module: Any, rows: Any, further: tuple[Any, ...], points: Any) -> Any:
    """Each example's gradient by itself: the critic's, and by double backward that of the penalty."""
    found = []
    parameters = list(module.parameters())
    for k in range(len(rows)):
        one = [part[k : k + 1] for part in further]
        where = points[k : k + 1].clone().requires_grad_()
        (slope,) = torch.autograd.grad(module.critic(where, *one).sum(), where, create_graph=True)
        beyond = slope.norm() - module.target
        penalty = (beyond.clamp_min(0) if module.one_sided else beyond).square()
        value = WEIGHT * penalty - module.critic(rows[k : k + 1], *one).sum()
        gradients = torch.autograd.grad(value, parameters, allow_unused=True, materialize_grads=True)
        found.append([gradient.double() for gradient in gradients])
    return [torch.stack(parts) for parts in zip(*found, strict=True)]


@cases(
    ("critic", "shape", "labelled", "options"),
    [
        (lambda: perceptron("LeakyReLU"), (3,), False, {}),
        (lambda: perceptron("Softplus"), (3,), False, {"one_sided": True, "target": 0.3}),
        (lambda: perceptron("Tanh"), (3,), False, {"target": 0.0}),
        (convolution, (1, 4, 4), False, {}),
        (conditional, (3,), True, {}),
    ],
)
def test_each_example_adds_its_score_and_penalty_clipped_as_a_whole(
    critic: Callable[[], Any], shape: tuple[int, ...], labelled: bool, options: dict[str, Any]
) -> None:
    torch.manual_seed(4)
    module = GradientPenalty(critic(), **options)
    rows, points = torch.randn(7, *shape), torch.randn(7, *shape)
    further = (torch.randint(4, (7,)),) if labelled else ()
    gradients = alone(module, rows, further, points)
    norms = torch.stack([g.flatten(1).square().sum(1) for g in gradients]).sum(0).sqrt()
    clip_norm = float(norms.median())
    factors = (clip_norm / norms).clamp(max=1)
    engine = Engine(module, Flat(clip_norm=clip_norm))
    engine.attach()
    for _ in range(2):  # the second time with generated rows between, which have a form of their own
        loss_of(module(rows, *further, points=points)).backward()
        sums = engine.clipped_sums(7)
        assert torch.allclose(sums.norms[0].double(), norms, rtol=1e-4)
        for (name, _), gradient in zip(module.named_parameters(), gradients, strict=True):
            wanted = torch.einsum("e,e...->...", factors, gradient)
            assert torch.allclose(sums.gradients[name].double(), wanted, rtol=1e-3, atol=1e-5), name
        assert "vmap of the whole module" in engine.explain()
        with engine.data_free(5):
            module(torch.randn(5, *shape), *(part[:5] for part in further)).mean().backward()
        assert engine.data_free_sums()
        assert "linear" in engine.explain()
    engine.detach()


def test_without_a_run_it_is_the_usual_penalty() -> None:
    torch.manual_seed(0)
    module = GradientPenalty(perceptron("Softplus"))
    rows, points = torch.randn(6, 3), torch.randn(6, 3)
    loss_of(module(rows, points=points)).backward()
    for parameter, gradient in zip(module.parameters(), alone(module, rows, (), points), strict=True):
        assert torch.allclose(parameter.grad.double(), gradient.mean(0), rtol=1e-3, atol=1e-5)  # type: ignore[union-attr]
    with torch.no_grad():
        scores, penalties = module(rows, points=points)
    assert torch.equal(scores, module.critic(rows))
    assert penalties.shape == (6,)
    assert module(rows).shape == (6, 1)


def test_a_gradient_of_zero_has_a_penalty_and_no_nan() -> None:
    first = nn.Linear(2, 3)
    nn.init.constant_(first.bias, -100.0)
    module = GradientPenalty(nn.Sequential(first, nn.ReLU(), nn.Linear(3, 1)))
    scores, penalties = module(torch.randn(4, 2), points=torch.randn(4, 2))
    assert torch.equal(penalties, torch.ones(4))
    (scores.mean() + penalties.mean()).backward()
    assert all(parameter.grad.isfinite().all() for parameter in module.parameters())  # type: ignore[union-attr]


def test_points_lie_between_a_row_and_a_generated_one() -> None:
    torch.manual_seed(1)
    rows, generated = torch.zeros(500, 2), torch.eye(2) * torch.tensor([[1.0], [3.0]])
    points = GradientPenalty.between(rows, generated)
    along, sizes = points.argmax(1), points.sum(1)
    assert (points.min(1).values == 0).all()
    assert ((sizes > 0) & (sizes < torch.tensor([1.0, 3.0])[along])).all()
    assert 150 < int(along.sum()) < 350  # of 500 coins: chance of less under 1e-18
    assert GradientPenalty.between(torch.zeros(0, 2), generated).shape == (0, 2)
    for wrong in (torch.zeros(3, 4), torch.zeros(0, 2)):
        with pytest.raises(ParameterError, match="generated must be one row or more of the examples' shape"):
            GradientPenalty.between(rows, wrong)


def test_bad_parameters() -> None:
    with pytest.raises(ParameterError, match="critic must be"):
        GradientPenalty(3)  # type: ignore[arg-type]
    with pytest.raises(ParameterError, match="target must be"):
        GradientPenalty(nn.Identity(), target=-1.0)


ROWS = 8


class Run:
    """A private critic of points in three dimensions, and a generator of them."""

    def __init__(
        self, data: Any = None, *, wrapped: bool = True, batch_size: int = ROWS, **options: Any
    ) -> None:
        torch.manual_seed(3)
        critic = perceptron("LeakyReLU")
        self.data = (
            torch.randn(40, 3, generator=torch.Generator().manual_seed(1)) + 2 if data is None else data
        )
        self.engine = PrivacyEngine()
        self.critic: Any = GradientPenalty(critic) if wrapped else critic
        self.critic, self.step, self.loader = self.engine.make_private(
            module=self.critic,
            optimizer=torch.optim.SGD(self.critic.parameters(), lr=1.0),
            data_loader=DataLoader(TensorDataset(self.data), batch_size=batch_size),
            **{"noise_multiplier": 0.0, "max_grad_norm": 0.1, "noise_generator": 5} | options,
        )
        self.generator = nn.Sequential(nn.Linear(2, 4), nn.BatchNorm1d(4), nn.Tanh(), nn.Linear(4, 3))

    def fakes(self) -> Any:
        return self.generator(torch.randn(ROWS, 2))

    def improve(self, real: Any) -> None:
        self.step.zero_grad()
        fake = self.fakes().detach()
        loss_of(self.critic(real, points=GradientPenalty.between(real, fake))).backward()
        with self.engine.data_free(ROWS):
            self.critic(fake).mean().backward()
        self.step.step()

    def weights(self) -> Any:
        return torch.cat([parameter.detach().reshape(-1) for parameter in self.critic.parameters()])


@pytest.mark.parametrize("layers", [False, True])
def test_one_example_moves_a_step_by_at_most_a_clip_norm(layers: bool) -> None:
    """With a neighbor whose penalty is huge; and where the example is not drawn, bit for bit the same."""
    _, (drawn,), *_ = Run().loader
    other = Run().data.clone()
    other[(other == drawn[0]).all(1)] = torch.tensor([50.0, -80.0, 30.0])
    options: dict[str, Any] = {"gradients": GradientOptions(self_test=False)}
    if layers:
        options["clipping"] = "per_layer"
    one, two = (Run(data, **options) for data in (None, other))
    torch.manual_seed(0)
    state = torch.get_rng_state()
    for (real,), (changed,) in zip(one.loader, two.loader, strict=True):
        for run, batch in ((one, real), (two, changed)):
            torch.set_rng_state(state)
            run.improve(batch)
        apart = (one.weights() - two.weights()).norm().item()
        if not torch.equal(real, changed):
            assert 0 < apart <= 2 * 0.1 / ROWS * (1 + 1e-4)
            return
        assert apart == 0
        state = torch.get_rng_state()
    pytest.fail("the example was in no batch")


def test_a_run_costs_what_its_steps_cost_and_lets_the_critic_learn() -> None:
    run = Run(noise_multiplier=0.5, max_grad_norm=1.0)
    of_generator = torch.optim.SGD(run.generator.parameters(), lr=0.05)
    for _ in range(2):
        for (real,) in run.loader:
            run.improve(real)
            of_generator.zero_grad()
            with run.engine.data_free(ROWS):
                (-run.critic(run.fakes()).mean()).backward()
            of_generator.step()
    assert run.engine.run.cursor == run.engine.run.released == 10
    assert run.engine.run.foreign_steps == 0
    plain = Run(noise_multiplier=0.5, max_grad_norm=1.0)
    for _ in range(2):
        for (real,) in plain.loader:
            plain.critic(real).mean().backward()
            plain.step.step()
    assert run.engine.get_epsilon(1e-3) == plain.engine.get_epsilon(1e-3)
    assert {name.split(".")[0] for name in run.engine.export_model()} == {"critic"}


def test_an_empty_batch_is_a_step() -> None:
    run = Run(batch_size=1, noise_multiplier=1.0, gradients=GradientOptions(self_test=False))
    empty = 0
    for steps, (real,) in enumerate(run.loader, 1):
        run.improve(real)
        empty += not len(real)
        assert run.engine.run.cursor == steps
    assert 5 < empty < 30


def outside(run: Run, real: Any, *, free: bool, joined: bool) -> None:
    """The loop of the paper: the penalty by a gradient of the critic's own."""
    fake = run.fakes().detach()
    points = torch.lerp(fake[: len(real)], real[:ROWS], 0.5).requires_grad_()
    loss = -run.critic(real).mean()
    if not joined:
        loss.backward()
    if free:
        with run.engine.data_free(len(points)):
            scores = run.critic(points)
    else:
        scores = run.critic(points)
    (slopes,) = torch.autograd.grad(scores.sum(), points, create_graph=True)
    penalty = WEIGHT * (slopes.norm(dim=1) - 1).square().mean()
    (loss + penalty if joined else penalty).backward()
    run.step.step()


@cases(("free", "joined"), [(False, True), (False, False), (True, True), (True, False)])
def test_a_penalty_outside_of_the_module_is_refused(free: bool, joined: bool) -> None:
    run = Run(wrapped=False)
    real = next(batch for (batch,) in run.loader if 0 < len(batch) <= ROWS)
    before = run.weights()
    with pytest.raises(UnfitModule, match="create_graph=True; wrap a critic in GradientPenalty"):
        outside(run, real, free=free, joined=joined)
    assert torch.equal(run.weights(), before)


def test_a_penalty_on_the_batch_itself_is_refused_outside_too() -> None:
    """R1, also where the module has no plan and is run again."""

    class Own(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.inner = perceptron("Softplus")

        def forward(self, rows: Any) -> Any:
            return torch.func.vmap(self.inner)(rows)

    for critic in (perceptron("Softplus"), Own()):
        engine = Engine(critic, Flat(clip_norm=1.0))
        engine.attach()
        rows = torch.randn(4, 3, requires_grad=True)
        scores = critic(rows)
        with pytest.raises(UnfitModule, match="create_graph=True"):
            torch.autograd.grad(scores.sum(), rows, create_graph=True)
        engine.detach()


def test_points_may_be_the_rows_themselves_or_near_them() -> None:
    """R1, and the penalty of DRAGAN: without a generated row."""
    run = Run(max_grad_norm=1e6, noise_multiplier=0.0)
    for (real,), shift in zip(run.loader, (0.0, 0.1), strict=False):
        before, points = run.weights(), real + shift if shift else real
        gradients = alone(run.critic, real, (), points)
        loss_of(run.critic(real, points=points)).backward()
        run.step.step()
        wanted = torch.cat([gradient.sum(0).reshape(-1) for gradient in gradients]) / ROWS
        assert torch.allclose((before - run.weights()).double(), wanted, rtol=1e-3, atol=1e-5)
