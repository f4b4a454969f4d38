"""Federated rounds: what one client can move, what is added, what is charged, and what comes out."""

from __future__ import annotations

import copy
import os
import random
from collections.abc import Callable, Iterable, Sequence
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from sfumato.errors import BudgetExceeded, ParameterError, SimulatedCharge
from sfumato.learning.sampling.balls_in_bins import BallsInBinsSampler
from sfumato.learning.sampling.epoch_sampler import CyclicSampler
from sfumato.learning.sampling.fixed_size import WithReplacementSampler
from sfumato.learning.sampling.full_batch import FullBatchSampler
from sfumato.learning.sampling.poisson import PoissonSampler
from sfumato.learning.sampling.sampler import Sampler
from sfumato.learning.sampling.users import UserSampler
from sfumato.ledger import Budget, Dataset, Ledger
from sfumato.mechanisms.factorization.strategies.banded import BandedToeplitz
from sfumato.mechanisms.factorization.strategies.binary_tree import BinaryTree
from sfumato.mechanisms.factorization.strategies.participation import Participation
from sfumato.privacy import Gaussian, Neighboring, PoissonSubsampled
from tests.cases import cases
from tests.chance import accepts_only, moments
from tests.run_time import run_time

if run_time(__name__):
    import torch
    from torch import Tensor, nn

    from sfumato.learning.clipping.adaptive_quantile import AdaptiveQuantile
    from sfumato.learning.clipping.flat import Flat
    from sfumato.learning.federated.aggregation import TrustedAggregator, UpdateAggregator
    from sfumato.learning.federated.client_training import local_sgd
    from sfumato.learning.federated.federation import FederatedTraining
    from sfumato.learning.noise.correlated import CorrelatedNoise
    from sfumato.learning.noise.grid import GridNoise
    from sfumato.learning.noise.keyed import SimulatedNoise

    Data = tuple[Tensor, Tensor]
TINY = 1e-9
EVERY = Participation(max_participations=None)


class _Recorded:
    """Keeps the sums of all rounds."""

    def __init__(self) -> None:
        self.sums: list[Tensor] = []
        self.counts: list[int] = []

    def total(self, contributions: Iterable[Sequence[Tensor]], like: Sequence[Tensor]) -> list[Tensor]:
        sent = list(contributions)
        sums = TrustedAggregator().total(sent, like)
        self.counts.append(len(sent))
        self.sums.append(torch.cat([part.flatten() for part in sums]).clone())
        return sums


def _clients(count: int, seed: int = 0) -> list[Data]:
    made = torch.Generator().manual_seed(seed)
    sizes = [1 + i % 5 for i in range(count)]
    return [(torch.randn(n, 3, generator=made), torch.randn(n, 2, generator=made)) for n in sizes]


def _module(seed: int = 0) -> nn.Module:
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Dropout(0.3), nn.Linear(4, 2))


if run_time(__name__):
    LOCAL = local_sgd(nn.functional.mse_loss, learning_rate=0.3, epochs=2, batch_size=2)


def _training(clients: Sequence[Any], **changes: Any) -> FederatedTraining[Any]:
    parameters: dict[str, Any] = {
        "module": _module(),
        "local": LOCAL,
        "sampler": FullBatchSampler(population=max(1, len(clients)), steps=4, seed=5),
        "clipping": Flat(clip_norm=0.5),
        "noise_multiplier": TINY,
        "noise": SimulatedNoise(1),
    } | changes
    module, local = parameters.pop("module"), parameters.pop("local")
    return FederatedTraining(module, clients, local, **parameters)


def _flat(module: nn.Module) -> Tensor:
    return torch.cat([parameter.detach().flatten().double() for parameter in module.parameters()])


@cases("value", [1.0, 1e-3, 1e6, 1e30, float("nan"), float("inf")])
def test_one_client_moves_a_rounds_sum_by_at_most_the_sensitivity(value: float) -> None:
    """Shuffled batches and dropout draw from global generators: no client may shift what others draw."""
    clients = _clients(6)
    odd = (torch.full((7, 3), value), torch.full((7, 2), -value))
    sums = []
    for data in (clients, [*clients, odd]):
        recorded = _Recorded()
        training = _training(data, aggregation=recorded)
        training.run(1)
        sums.append(recorded.sums[0])
    moved = float((sums[1].double() - sums[0].double()).norm())
    assert moved <= training.clipping.sensitivity + 1e-6
    assert sums[1].isfinite().all()
    if not np.isfinite(value):
        assert moved == 0
    if value == 1e6:
        assert moved == pytest.approx(0.5, rel=1e-3)


def test_a_client_is_the_same_whoever_else_is_there() -> None:
    """The last client's contribution is the difference of sums, with others before it or not."""
    clients, own = _clients(5), _Recorded()
    sums: dict[int, Tensor] = {}
    for count in (4, 5):
        recorded = _Recorded()
        sampler = FullBatchSampler(population=count, steps=1, seed=5)
        _training(clients[:count], sampler=sampler, aggregation=recorded).run()
        sums[count] = recorded.sums[0]

    def only_last(module: nn.Module, data: Data | None) -> None:
        if data is not None:
            LOCAL(module, data)

    sampler = FullBatchSampler(population=5, steps=1, seed=5)
    _training([None] * 4 + clients[4:5], local=only_last, sampler=sampler, aggregation=own).run()
    assert torch.allclose(sums[5] - sums[4], own.sums[0], atol=1e-6)


def test_global_generators_are_left_as_they_were() -> None:
    def local(module: nn.Module, data: Data) -> None:
        torch.rand(3)
        np.random.rand(3)
        random.random()
        LOCAL(module, data)

    torch.manual_seed(3)
    np.random.seed(3)
    random.seed(3)
    expected = [torch.rand(1).item(), np.random.rand(), random.random()]
    torch.manual_seed(3)
    np.random.seed(3)
    random.seed(3)
    _training(_clients(3), local=local).run(2)
    assert [torch.rand(1).item(), np.random.rand(), random.random()] == expected


def test_clients_have_random_numbers_of_their_own() -> None:
    drawn: list[tuple[float, float, float]] = []

    def local(module: nn.Module, data: Data) -> None:
        drawn.append((torch.rand(1).item(), np.random.rand(), random.random()))

    for _ in range(2):
        _training(_clients(3), local=local).run(2)
    assert drawn[:6] == drawn[6:]
    for column in zip(*drawn[:6], strict=True):
        assert len(set(column)) == 6


def test_nothing_in_the_module_passes_from_client_to_client() -> None:
    class Stateful(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.inner = nn.Linear(3, 2)
            self.norm = nn.BatchNorm1d(2)
            self.seen = 0

        def forward(self, x: Tensor) -> Tensor:
            self.seen += 1
            return torch.as_tensor(self.norm(self.inner(x)))

    found: list[tuple[Any, Any]] = []

    def local(module: Any, data: Data) -> None:
        found.append((module.seen, module.norm.num_batches_tracked.item()))
        module(torch.ones(4, 3))

    module = Stateful()
    _training(_clients(4), module=module, local=local).run(2)
    assert found == [(0, 0)] * 8
    assert module.seen == 0
    assert module.norm.running_mean is not None
    assert module.norm.running_mean.abs().sum() == 0


def test_the_mean_is_over_the_expected_number_of_clients() -> None:
    def local(module: nn.Module, data: float) -> None:
        with torch.no_grad():
            next(module.parameters()).add_(data)

    module = nn.Linear(1, 1, bias=False)
    with torch.no_grad():
        module.weight.zero_()
    recorded = _Recorded()
    sampler = PoissonSampler(population=40, sampling_probability=0.25, steps=5, seed=2)
    training = _training([0.125] * 40, module=module, local=local, sampler=sampler, aggregation=recorded)
    training.run()
    assert recorded.counts == [batch.size for batch in sampler.batches()]
    assert len(set(recorded.counts)) > 1
    assert module.weight.item() == pytest.approx(sum(recorded.counts) * 0.125 / 10, rel=1e-6)


def test_a_round_without_clients_is_noise_alone() -> None:
    sampler = PoissonSampler(population=3, sampling_probability=1e-9, steps=2, seed=1)
    module = nn.Linear(100, 100)
    before = _flat(module)
    training = _training(_clients(3), module=module, sampler=sampler, noise_multiplier=2.0)
    training.run(1)
    moved = (_flat(module) - before) * sampler.expected_batch_size
    expected = 2.0 * training.clipping.sensitivity
    accepts_only(
        moments(moved.numpy() / expected),
        (0, 1),
        wider=(0, 1.08**2),
        narrower=(0, 0.92**2),
        shifted=(0.1, 1),
    )
    before = _flat(module)
    training.run(1)
    again = (_flat(module) - before) * sampler.expected_batch_size
    # The products of two normal numbers with a correlation r have mean r and variance 1 + r^2.
    products = (moved * again).numpy() / expected**2
    accepts_only(
        moments(products, kurtosis=9), (0, 1), the_same=(1, 2), alike=(0.12, 1.01), against=(-0.12, 1.01)
    )


def test_frozen_parameters_stay() -> None:
    module = _module()
    parameters = list(module.parameters())
    parameters[0].requires_grad_(False)
    frozen, last = parameters[0].clone(), parameters[2].clone()
    _training(_clients(3), module=module).run(1)
    assert torch.equal(parameters[0], frozen)
    assert not torch.equal(parameters[2], last)


def _momentum(parameters: Iterable[nn.Parameter]) -> torch.optim.Optimizer:
    return torch.optim.SGD(parameters, lr=0.5, momentum=0.9)


def _adam(parameters: Iterable[nn.Parameter]) -> torch.optim.Optimizer:
    return torch.optim.Adam(parameters, lr=0.05)


@pytest.mark.parametrize("server", [_momentum, _adam])
def test_the_server_takes_the_negative_mean_for_a_gradient(
    server: Callable[[Iterable[nn.Parameter]], torch.optim.Optimizer],
) -> None:
    clients, recorded, module = _clients(5), _Recorded(), _module()
    by_hand = _module()
    optimizer = server(by_hand.parameters())
    _training(clients, module=module, server=server, aggregation=recorded).run(3)
    for total in recorded.sums:
        at = 0
        for parameter in by_hand.parameters():
            parameter.grad = -total[at : at + parameter.numel()].reshape(parameter.shape) / 5
            at += parameter.numel()
        optimizer.step()
    assert torch.allclose(_flat(module), _flat(by_hand), atol=1e-6)


def test_the_clip_norm_follows_a_quantile() -> None:
    """Clients move by 0.04 to 1: half of them by about 0.5 at most."""

    def local(module: nn.Module, data: float) -> None:
        with torch.no_grad():
            next(module.parameters()).add_(data)

    training = _training(
        [(i + 1) / 25 for i in range(25)],
        module=nn.Linear(1, 1, bias=False),
        local=local,
        sampler=FullBatchSampler(population=25, steps=50),
        clipping=AdaptiveQuantile(clip_norm=0.2, count_stddev=2.0),
        noise_multiplier=1.0,
    )
    training.run()
    assert isinstance(training.clipping, AdaptiveQuantile)
    assert 0.4 < training.clipping.clip_norm < 0.62
    assert training.privacy_loss == Gaussian(1.0, neighboring=Neighboring.ZERO_OUT) * 50


def test_the_loss_is_the_samplers() -> None:
    clients = _clients(20)
    sampler = PoissonSampler(population=20, sampling_probability=0.2, steps=6)
    training = _training(clients, sampler=sampler, noise_multiplier=1.5)
    zeroed = PoissonSubsampled(Gaussian(1.5, neighboring=Neighboring.ZERO_OUT), 0.2)
    assert training.privacy_loss == zeroed * 6
    assert training.epsilon(1e-5) == 0
    training.run(2)
    assert training.rounds == 2
    assert training.epsilon(1e-5) == (zeroed * 2).epsilon(1e-5)


def test_how_many_clients_there_are_is_public_or_declared() -> None:
    sampler = PoissonSampler(population=20, sampling_probability=0.2, steps=6, public_batch_size=4.0)
    for clients in (0, 19, 21):
        training = _training(_clients(clients), sampler=sampler, noise_multiplier=1.5)
        training.run(2)
        assert training.privacy_loss == PoissonSubsampled(Gaussian(1.5), 0.2) * 6
        assert training.sampler.expected_batch_size == 4.0
        sampler = PoissonSampler(population=20, sampling_probability=0.2, steps=6, public_batch_size=4.0)


@pytest.mark.parametrize("kind", ["bins", "cyclic", "replaced"])
def test_correlated_noise_is_priced_for_the_participation(kind: str) -> None:
    clients = _clients(12)
    sampler: Sampler
    if kind == "bins":
        sampler = BallsInBinsSampler(population=12, bins=4, steps=8)
    else:
        relation = Neighboring.REPLACE_ONE if kind == "replaced" else Neighboring.ZERO_OUT
        sampler = CyclicSampler(population=12, batch_size=3, steps=8, neighboring=relation)
    strategy = BandedToeplitz(steps=8, bands=[1.0, 0.6, 0.2])
    noise = CorrelatedNoise(strategy, participation=sampler.participation)
    training = _training(clients, sampler=sampler, noise=noise, noise_multiplier=2.0)
    matrix = strategy.matrix()
    worst = max(float(np.linalg.norm(matrix[:, first::4].sum(axis=1))) for first in range(4))
    mu = worst / 2.0 * (2 if kind == "replaced" else 1)
    assert training.privacy_loss.gdp().mu == pytest.approx(mu)
    assert training.privacy_loss.neighboring is training.sampler.neighboring is not Neighboring.ADD_REMOVE
    assert training.epsilon(1e-5) == 0
    training.run(3)
    assert training.epsilon(1e-5) == training.privacy_loss.epsilon(1e-5)


@pytest.mark.parametrize("strategy", [BinaryTree(steps=9), BandedToeplitz(steps=9, bands=[1.0, 0.5, 0.3])])
def test_correlated_noise_is_the_strategys_on_the_prefix_sums(strategy: Any) -> None:
    """With nothing to learn the module walks by noise alone."""
    module = nn.Linear(40, 5)
    start, walk, spread = _flat(module), [], 1.5 * Flat(clip_norm=0.5).sensitivity
    sampler = CyclicSampler(population=6, batch_size=2, steps=9)
    training = _training(
        _clients(6),
        module=module,
        local=lambda module, data: None,
        sampler=sampler,
        noise=CorrelatedNoise(strategy, participation=sampler.participation, seed=8),
        noise_multiplier=1.5,
    )
    training.run(progress=lambda _: walk.append((_flat(module) - start).numpy() * 2))
    assert training.simulated
    noise = CorrelatedNoise(strategy, participation=sampler.participation, seed=8)
    prefix = np.zeros(start.numel())
    for step in range(9):
        parts = [torch.zeros(parameter.shape, dtype=torch.float64) for parameter in module.parameters()]
        noise.add_(parts, step=step, stddevs=[spread] * len(parts))
        prefix += torch.cat([part.flatten() for part in parts]).numpy()
        assert np.allclose(walk[step], prefix, atol=1e-4)
    accepts_only(
        moments(np.transpose(walk) / spread),
        (0, strategy.variances()),
        independent=(0, np.arange(1, 10)),
        half=(0, strategy.variances() / 2),
        none_kept=(0, np.ones(9)),
    )


def test_what_the_noise_says_is_charged() -> None:
    """On a grid, noise of more than 64 sensitivities is charged as a little less."""
    noise = GridNoise(seed=1)
    training = _training(_clients(4), module=nn.Linear(1000, 1000), noise=noise, noise_multiplier=1e5)
    charged = noise.charged(1e5, 1001 * 1000)
    assert charged < 1e5
    assert training.privacy_loss == Gaussian(charged, neighboring=Neighboring.ZERO_OUT) * 4


def _ledger(epsilon: float, neighboring: Neighboring = Neighboring.ZERO_OUT) -> Ledger:
    return Ledger.open(
        None,
        budget=Budget.approximate(epsilon=epsilon, delta=1e-5),
        privacy_unit="client",
        neighboring=neighboring,
        dataset=Dataset(schema="clients(x DOUBLE)", fingerprint=lambda key: "0" * 64),
    )


def test_all_rounds_are_charged_before_the_first() -> None:
    asked: list[int] = []

    def local(module: nn.Module, data: Data) -> None:
        asked.append(ledger.entries()[-1].sequence)

    clients = _clients(10)
    sampler = PoissonSampler(population=10, sampling_probability=0.5, steps=5)
    changes = {"sampler": sampler, "local": local, "noise": None, "noise_multiplier": 4.0}
    with _ledger(8.0) as ledger:
        training = _training(clients, ledger=ledger, delta=5e-6, **changes)
        assert not ledger.entries()
        training.run(2)
        assert asked
        assert len(ledger.entries()) == 1
        assert ledger.entries()[0].loss == training.privacy_loss
        assert ledger.run(1).claimed == 2
        training.run()
        assert ledger.run(1).left == 0
        assert len(ledger.entries()) == 1


def test_a_training_that_does_not_fit_asks_no_client() -> None:
    asked: list[int] = []
    sampler = PoissonSampler(population=10, sampling_probability=0.5, steps=5)
    changes: dict[str, Any] = {"sampler": sampler, "local": lambda module, data: asked.append(1)}
    with _ledger(0.1) as ledger:
        training = _training(
            _clients(10), ledger=ledger, delta=5e-6, noise=None, **changes, noise_multiplier=1.0
        )
        with pytest.raises(BudgetExceeded):
            training.run()
        assert not asked
        assert training.rounds == 0
    with _ledger(100.0) as ledger:
        training = _training(_clients(10), ledger=ledger, delta=5e-6, **changes | {"noise_multiplier": 4.0})
        assert training.simulated
        with pytest.raises(SimulatedCharge):
            training.run()
        assert not asked


def test_a_failed_round_counts() -> None:
    def fails(module: nn.Module, data: Data) -> None:
        raise RuntimeError("out of memory")

    plain = _training(_clients(3), local=fails)
    with pytest.raises(RuntimeError):
        plain.run()
    assert plain.rounds == 1
    with pytest.raises(RuntimeError):
        plain.run(1)
    assert plain.rounds == 2


def test_wrong_use_is_refused() -> None:
    clients = _clients(4)
    wrong: list[tuple[dict[str, Any], str]] = [
        ({"sampler": FullBatchSampler(population=5, steps=4)}, "sampler must have a population of 4"),
        (
            {"sampler": WithReplacementSampler(population=4, batch_size=2, steps=4)},
            "sampler must draw each client once",
        ),
        ({"sampler": 0.5}, "sampler must be a Sampler"),
        ({"clipping": "flat"}, "clipping must be a Clipping"),
        ({"local": None}, "local must be a function"),
        ({"ledger": "x.ledger", "delta": 1e-5}, "ledger must be an open ledger"),
        ({"noise_multiplier": 0.0}, "noise_multiplier must"),
        (
            {"noise": CorrelatedNoise(BinaryTree(steps=5), participation=EVERY)},
            "noise must be for the sampler's 4 steps",
        ),
        ({"noise": CorrelatedNoise(BinaryTree(steps=4))}, "noise must be for Participation"),
        (
            {
                "noise": CorrelatedNoise(BinaryTree(steps=4), participation=EVERY),
                "clipping": AdaptiveQuantile(clip_norm=1.0, count_stddev=5.0),
            },
            "clipping must not adapt with correlated noise",
        ),
        (
            {"sampler": UserSampler(user_ids=[1, 1, 2, 3], sampling_probability=0.5, steps=4)},
            "sampler must be priced for clipping each client",
        ),
        ({"module": nn.ReLU()}, "module must have parameters"),
        ({"ledger": SimpleNamespace(charge=print)}, "delta must"),
    ]
    for changes, message in wrong:
        with pytest.raises(ParameterError, match=message):
            _training(clients, **changes)
    training = _training(clients)
    with pytest.raises(ParameterError, match="rounds must be at most the 4 that are left"):
        training.run(5)
    training.run()
    with pytest.raises(ParameterError, match="rounds must be at most the 0 that are left"):
        training.run(1)
    training.run()


def test_a_module_that_is_changed_under_it_is_refused() -> None:
    def other_shape(module: nn.Module, data: Data) -> None:
        module[3] = nn.Linear(4, 3)  # type: ignore[operator]

    with pytest.raises(ParameterError, match="local must keep the module's parameters"):
        _training(_clients(3), local=other_shape).run()
    training = _training(_clients(3))
    training.run(1)
    training.module[3].requires_grad_(False)  # type: ignore[index]
    with pytest.raises(ParameterError, match="module must have the parameters that the training began with"):
        training.run(1)


def test_aggregators_are_held_to_shapes() -> None:
    assert isinstance(TrustedAggregator(), UpdateAggregator)
    with pytest.raises(ParameterError, match="contributions must have the parameters' shapes"):
        TrustedAggregator().total([[torch.ones(3)]], like=[torch.zeros(2)])
    sums = TrustedAggregator().total([], like=[torch.zeros(2, dtype=torch.float16)])
    assert sums[0].dtype is torch.float32
    assert sums[0].tolist() == [0, 0]


def test_bad_local_training_is_refused() -> None:
    loss = nn.functional.mse_loss
    for changes in ({"learning_rate": 0}, {"epochs": 0}, {"batch_size": 0}):
        with pytest.raises(ParameterError, match=f"{next(iter(changes))} must"):
            local_sgd(loss, **({"learning_rate": 0.1} | changes))  # type: ignore[arg-type]
    empty = (torch.zeros(0, 3), torch.zeros(0, 2))
    recorded = _Recorded()
    for batch_size in (None, 2):
        local = local_sgd(loss, learning_rate=0.1, batch_size=batch_size)
        _training([empty], local=local, aggregation=recorded).run(1)
    assert all(not total.any() for total in recorded.sums)


def test_a_training_goes_on_in_one_place_only() -> None:
    training = FederatedTraining(
        nn.Linear(3, 2),
        _clients(4),
        local_sgd(nn.functional.mse_loss, learning_rate=0.1),
        sampler=PoissonSampler(population=4, sampling_probability=0.5, steps=2),
        clipping=Flat(clip_norm=1.0),
        noise_multiplier=1.0,
    )
    with pytest.raises(TypeError, match="would draw its noise again"):
        copy.deepcopy(training)
    reading, writing = os.pipe()
    child = os.fork()
    if not child:
        try:
            training.run(1)
            os.write(writing, b"ran")
        except ParameterError:
            os.write(writing, b"refused")
        finally:
            os._exit(0)
    os.waitpid(child, 0)
    assert os.read(reading, 16) == b"refused"
    os.close(reading)
    os.close(writing)
