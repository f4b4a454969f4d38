"""GANs: rows of a generator beside a run's examples, in five shapes of the loop."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from sfumato.errors import ParameterError
from tests.run_time import run_time

if run_time(__name__):
    import torch
    import torch.nn.functional as F  # noqa: N812
    from torch import nn
    from torch.utils.data import DataLoader, TensorDataset

    from sfumato.learning import GradientOptions, PrivacyEngine, SamplingOptions
    from sfumato.learning.training.loop.data_free import DataFreeRows

ROWS, NOISE = 8, 2


class Gan:
    """A private discriminator of points in a plane, and a generator of such points.

    Parameters
    ----------
    **options
        Of `make_private`.
    """

    def __init__(self, data: Any = None, *, batch_size: int = ROWS, **options: Any) -> None:
        torch.manual_seed(3)
        self.d = nn.Sequential(nn.Linear(3, 5), nn.LeakyReLU(0.2), nn.Linear(5, 1))
        self.g = nn.Sequential(nn.Linear(NOISE, 4), nn.BatchNorm1d(4), nn.Tanh(), nn.Linear(4, 3))
        self.engine = PrivacyEngine()
        self.data = points() if data is None else data
        self.d, self.d_step, self.loader = self.engine.make_private(
            module=self.d,
            optimizer=torch.optim.SGD(self.d.parameters(), lr=1.0),
            data_loader=DataLoader(TensorDataset(self.data), batch_size=batch_size),
            **{"noise_multiplier": 0.0, "max_grad_norm": 0.1, "noise_generator": 5} | options,
        )
        self.g_step = torch.optim.SGD(self.g.parameters(), lr=0.1)

    def fakes(self) -> torch.Tensor:
        made: torch.Tensor = self.g(torch.randn(ROWS, NOISE))
        return made


def points() -> torch.Tensor:
    return torch.randn(40, 3, generator=torch.Generator().manual_seed(1)) + 2


def judged(scores: torch.Tensor, label: float) -> torch.Tensor:
    return F.binary_cross_entropy_with_logits(scores, torch.full_like(scores, label))


def as_dcgan(gan: Gan, real: torch.Tensor) -> None:
    """Opacus's example: a step on fakes, a step on the batch, then the generator's, never frozen."""
    gan.d_step.zero_grad()
    fake = gan.fakes()
    with gan.engine.data_free(ROWS):
        judged(gan.d(fake.detach()), 0.0).backward()
    gan.d_step.step()
    gan.d_step.zero_grad()
    judged(gan.d(real), 1.0).backward()
    gan.d_step.step()
    gan.g_step.zero_grad()
    with gan.engine.data_free(ROWS):
        judged(gan.d(fake), 1.0).backward()
    gan.g_step.step()


def in_one_step(gan: Gan, real: torch.Tensor) -> None:
    """PyTorch's example: two backwards and one step."""
    gan.d_step.zero_grad()
    judged(gan.d(real), 1.0).backward()
    fake = gan.fakes()
    with gan.engine.data_free(ROWS):
        judged(gan.d(fake.detach()), 0.0).backward()
    gan.d_step.step()
    gan.g_step.zero_grad()
    with gan.engine.data_free(ROWS):
        judged(gan.d(fake), 1.0).backward()
    gan.g_step.step()


def as_wasserstein(gan: Gan, real: torch.Tensor) -> None:
    """A critic: one backward through both forwards, weights clamped, the generator in each second step."""
    gan.d_step.zero_grad()
    with torch.no_grad():
        fake = gan.fakes()
    with gan.engine.data_free(ROWS):
        of_fake = gan.d(fake)
    (of_fake.mean() - gan.d(real).mean()).backward()
    gan.d_step.step()
    with torch.no_grad():
        for parameter in gan.d.parameters():
            parameter.clamp_(-0.5, 0.5)
    if gan.engine.run.cursor % 2 == 0:
        gan.g_step.zero_grad()
        with gan.engine.data_free(ROWS):
            (-gan.d(gan.fakes()).mean()).backward()
        gan.g_step.step()


def with_frozen_critic(gan: Gan, real: torch.Tensor) -> None:
    """The generator first, through a discriminator that is frozen meanwhile."""
    gan.d.requires_grad_(False)
    gan.g_step.zero_grad()
    with gan.engine.data_free(ROWS):
        judged(gan.d(gan.fakes()), 1.0).backward()
    gan.g_step.step()
    gan.d.requires_grad_(True)
    gan.d_step.zero_grad()
    with gan.engine.data_free(ROWS):
        fake = judged(gan.d(gan.fakes().detach()), 0.0)
    (judged(gan.d(real), 1.0) + fake).backward()
    gan.d_step.step()


def with_evaluation(gan: Gan, real: torch.Tensor) -> None:
    """Scores are looked at between forward and backward; the generator's gradient is taken by hand."""
    gan.d_step.zero_grad()
    loss = judged(gan.d(real), 1.0)
    with torch.no_grad():
        gan.d(real), gan.d(gan.fakes())
    loss.backward()
    with gan.engine.data_free(ROWS):
        judged(gan.d(gan.fakes().detach()), 0.0).backward()
    gan.d_step.step()
    with gan.engine.data_free(ROWS):
        wanted = torch.autograd.grad(judged(gan.d(gan.fakes()), 1.0), [*gan.g.parameters()])
    for parameter, gradient in zip(gan.g.parameters(), wanted, strict=True):
        parameter.grad = gradient
    gan.g_step.step()


SHAPES = (as_dcgan, in_one_step, as_wasserstein, with_frozen_critic, with_evaluation)
Shape = Callable[[Gan, Any], None]


def weights(module: nn.Module) -> torch.Tensor:
    return torch.cat([parameter.detach().reshape(-1) for parameter in module.parameters()])


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.sharpest("as_dcgan", "in_one_step", "as_wasserstein", "with_frozen_critic", "with_evaluation")
def test_steps_and_costs_are_those_of_the_loader_alone(shape: Shape) -> None:
    gan, plain = Gan(noise_multiplier=1.0), Gan(noise_multiplier=1.0)
    before = weights(gan.d), weights(gan.g)
    for _ in range(2):
        for (real,) in gan.loader:
            shape(gan, real)
    assert gan.engine.run.cursor == gan.engine.run.released == 10
    assert gan.engine.run.foreign_steps == 0
    for _ in range(2):
        for (real,) in plain.loader:
            judged(plain.d(real), 1.0).backward()
            plain.d_step.step()
    assert gan.engine.get_epsilon(1e-3) == plain.engine.get_epsilon(1e-3)
    assert not torch.equal(weights(gan.d), before[0])
    assert not torch.equal(weights(gan.g), before[1])


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.sharpest("as_dcgan", "in_one_step", "as_wasserstein", "with_frozen_critic", "with_evaluation")
def test_one_example_moves_a_step_by_at_most_a_clip_norm(shape: Shape) -> None:
    """And without that example the step is bit for bit the same where it is not in the batch."""
    _, (drawn,), *_ = Gan().loader
    other = points()
    other[(other == drawn[0]).all(1)] = torch.tensor([50.0, -80.0, 30.0])
    one, two = (Gan(data, gradients=GradientOptions(self_test=False)) for data in (None, other))
    torch.manual_seed(0)
    state = torch.get_rng_state()
    for (real,), (changed,) in zip(one.loader, two.loader, strict=True):
        for gan, batch in ((one, real), (two, changed)):
            torch.set_rng_state(state)
            shape(gan, batch)
        apart = (weights(one.d) - weights(two.d)).norm().item()
        if not torch.equal(real, changed):
            assert 0 < apart <= 2 * 0.1 / ROWS * (1 + 1e-4)  # out with one, in with the other
            return
        assert apart == 0
        assert torch.equal(weights(one.g), weights(two.g))
        state = torch.get_rng_state()
    pytest.fail("the example was in no batch")


def test_fakes_add_the_mean_of_their_clipped_gradients() -> None:
    gan = Gan(max_grad_norm=1e6)
    (real,) = next(iter(gan.loader))
    fake = gan.fakes().detach()
    before = weights(gan.d)
    judged(gan.d(real), 1.0).backward()
    with gan.engine.data_free(ROWS):
        judged(gan.d(fake), 0.0).backward()
    gan.d_step.step()
    moved = before - weights(gan.d)
    gan.engine.detach()
    with torch.no_grad():
        position = 0
        for parameter in gan.d.parameters():
            parameter.copy_(before[position : position + parameter.numel()].view_as(parameter))
            position += parameter.numel()
    gan.d.zero_grad()
    (judged(gan.d(real), 1.0) * len(real) / ROWS + judged(gan.d(fake), 0.0)).backward()
    plain = torch.cat([parameter.grad.reshape(-1) for parameter in gan.d.parameters()])  # type: ignore[union-attr]
    assert torch.allclose(moved, plain, rtol=1e-4, atol=1e-6)


def test_a_step_on_fakes_alone_has_no_noise_and_leaves_the_batch() -> None:
    gan = Gan(noise_multiplier=1e6)
    batches = iter(gan.loader)
    (real,) = next(batches)
    before = weights(gan.d)
    with gan.engine.data_free(ROWS):
        judged(gan.d(gan.fakes()), 0.0).backward()
    gan.d_step.step()
    assert 0 < (weights(gan.d) - before).norm() <= 0.1 * (1 + 1e-5)
    assert gan.engine.run.cursor == 0
    judged(gan.d(real), 1.0).backward()
    gan.d_step.step()
    assert (weights(gan.d) - before).norm() > 100
    assert gan.engine.run.cursor == 1


def test_an_empty_batch_is_a_step_of_noise_in_every_shape() -> None:
    for shape in SHAPES:
        options = GradientOptions(self_test=False)
        gan = Gan(batch_size=1, noise_multiplier=1e6, gradients=options)
        empty = 0
        for steps, (real,) in enumerate(gan.loader, 1):
            before = weights(gan.d)
            shape(gan, real)
            if not len(real):
                empty += 1
                assert shape is as_wasserstein or (weights(gan.d) - before).norm() > 100
            assert gan.engine.run.cursor == steps
            if empty == 2:
                break
        assert empty == 2


def test_labels_of_the_batch_are_refused_beside_fakes() -> None:
    class Conditional(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.scores = nn.Linear(3, 2)

        def forward(self, x: Any, label: Any) -> Any:
            return self.scores(x).gather(1, label[:, None])

    torch.manual_seed(0)
    module, engine = Conditional(), PrivacyEngine()
    data = TensorDataset(points(), torch.zeros(40, dtype=torch.int64))
    module, optimizer, loader = engine.make_private(
        module=module,
        optimizer=torch.optim.SGD(module.parameters(), lr=1.0),
        data_loader=DataLoader(data, batch_size=ROWS),
        noise_multiplier=1.0,
        max_grad_norm=1.0,
        noise_generator=2,
    )
    real, labels = next(iter(loader))
    judged(module(real, labels), 1.0).backward()
    fake = torch.randn(len(real), 3)
    with engine.data_free(len(real)):
        with pytest.raises(ParameterError, match="rows must hold no data"):
            module(fake, labels)
        judged(module(fake, torch.randint(2, (len(real),))), 0.0).backward()
    optimizer.step()
    assert engine.run.cursor == 1


def test_wrong_use_is_refused() -> None:
    gan = Gan()
    batches = iter(gan.loader)
    (real,) = next(batches)
    for part in (real, real[:].view(-1, 3)):
        with gan.engine.data_free(len(real)), pytest.raises(ParameterError, match="rows must hold no data"):
            gan.d(part)
    with (
        gan.engine.data_free(ROWS),
        pytest.raises(ParameterError, match=r"rows must be as many as a forward"),
    ):
        gan.d(torch.zeros(ROWS + 1, 3))
    judged(gan.d(real), 1.0).backward()
    judged(gan.d(gan.fakes()), 0.0).backward()
    with pytest.raises(ParameterError, match=r"batch must be what .*with engine.data_free\(rows="):
        gan.d_step.step()
    with pytest.raises(ParameterError, match="rows must be an integer of at least 1"):
        gan.engine.data_free(0).__enter__()
    gan = Gan()
    for rows in (1, 2, 3, ROWS):
        with gan.engine.data_free(rows):
            gan.d(torch.zeros(rows, 3))
    with pytest.raises(ParameterError, match="rows must be a public number"):
        gan.engine.data_free(4).__enter__()


def test_real_and_generated_rows_in_one_forward_are_refused() -> None:
    """They would be clipped as examples, and a loss of both together may mix them."""
    gan = Gan()
    (real,) = next(iter(gan.loader))
    scores = gan.d(torch.cat([real, gan.fakes().detach()]))
    labels = torch.cat([torch.ones(len(real), 1), torch.zeros(ROWS, 1)])
    F.binary_cross_entropy_with_logits(scores, labels).backward()
    with pytest.raises(ParameterError, match=r"batch must be what .*with engine.data_free\(rows="):
        gan.d_step.step()
    gan = Gan()
    (real,) = next(iter(gan.loader))
    with gan.engine.data_free(ROWS), pytest.raises(ParameterError, match="rows must be as many"):
        gan.d(torch.cat([real, gan.fakes().detach()]))


def test_a_generator_that_is_not_declared_is_refused() -> None:
    gan = Gan()
    batches = iter(gan.loader)
    (real,) = next(batches)
    judged(gan.d(real), 1.0).backward()
    gan.d_step.step()
    judged(gan.d(gan.fakes()), 1.0).backward()
    (real,) = next(batches)
    gan.d_step.zero_grad()
    with pytest.raises(ParameterError, match="data_free"):
        gan.d(real)


def test_fakes_come_with_the_last_part_of_a_batch() -> None:
    gan = Gan(sampling=SamplingOptions(max_physical_batch_size=2))
    real = next(batch for (batch,) in gan.loader if not gan.loader.ended)
    judged(gan.d(real), 1.0).backward()
    with pytest.raises(ParameterError, match="rows must come with the last part"):
        gan.engine.data_free(ROWS).__enter__()
    gan = Gan(sampling=SamplingOptions(max_physical_batch_size=2))
    for (real,) in gan.loader:
        judged(gan.d(real), 1.0).backward()
        if gan.loader.ended:
            with gan.engine.data_free(ROWS):
                judged(gan.d(gan.fakes().detach()), 0.0).backward()
        gan.d_step.step()
    assert gan.engine.run.cursor == 5


def test_several_processes_are_refused() -> None:
    class Two:
        size = 2

    with pytest.raises(ParameterError, match="rows must be given in one process, but there are 2"):
        DataFreeRows(Gan().engine.run.engine, Two()).of(ROWS, complete=True).__enter__()  # type: ignore[arg-type]
