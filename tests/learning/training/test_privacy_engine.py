"""Training through Opacus's names: what each step computes, adds and costs, however a loop is written."""

from __future__ import annotations

import io
import math
import sys
import warnings
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from typing import Any

import pytest
from scipy.special import chdtr, chdtrc

from sfumato.errors import BudgetExceeded, ParameterError, RunExhausted, SimulatedCharge, UnfitModule
from sfumato.learning.sampling.balls_in_bins import BallsInBinsSampler
from sfumato.learning.sampling.epoch_sampler import CyclicSampler
from sfumato.learning.sampling.poisson import PoissonSampler
from sfumato.ledger import Ledger
from sfumato.mechanisms import BandedToeplitz
from sfumato.privacy import BallsInBins, Gaussian, Neighboring, PoissonSubsampled
from tests.cases import cases
from tests.chance import FALSE_ALARM, accepts_only
from tests.run_time import run_time

if run_time(__name__):
    import torch
    from torch import nn
    from torch.utils.data import DataLoader, Dataset, IterableDataset

    from sfumato.learning.clipping.adaptive_quantile import AdaptiveQuantile
    from sfumato.learning.noise.correlated import CorrelatedNoise
    from sfumato.learning.noise.grid import GridNoise
    from sfumato.learning.noise.keyed import KeyedNoise, SimulatedNoise
    from sfumato.learning.training.learning_curve import LearningCurve, progress
    from sfumato.learning.training.loop.private_optimizer import BatchMemoryManager
    from sfumato.learning.training.privacy_engine import PrivacyEngine
    from sfumato.learning.training.setup.options import GradientOptions, RecordOptions
    from tests.learning.training.conftest import Made, clipped_mean, make_data, make_module

    Make = Callable[..., Made]

ZEROED = Gaussian(1.0, neighboring=Neighboring.ZERO_OUT)


def test_a_step_is_the_clipped_sum_over_the_expected_batch_size(make: Make) -> None:
    made = make(noise_multiplier=0.0, lr=1.0)
    assert made.same
    for x, y in made.loader:
        start = made.weights
        made.optimizer.zero_grad()
        made.loss(x, y).backward()
        assert all(parameter.grad is None for parameter in made.module.parameters())
        made.optimizer.step()
        expected = clipped_mean(make_module_like(start), x, y, 10.0)
        for old, new, gradient in zip(start, made.weights, expected, strict=True):
            torch.testing.assert_close(old - new, gradient, rtol=1e-4, atol=1e-6)


def make_module_like(weights: list[torch.Tensor]) -> nn.Module:
    module = make_module()
    with torch.no_grad():
        for parameter, value in zip(module.parameters(), weights, strict=True):
            parameter.copy_(value)
    return module


def test_noise_is_added_once_a_logical_batch_at_its_stated_scale(make: Make) -> None:
    with torch.no_grad():
        still, noisy = make(noise_multiplier=0.0, lr=1.0), make(noise_multiplier=50.0, lr=1.0)
    for made in (still, noisy):
        x, y = next(iter(made.loader))
        made.loss(x, y).backward()
        made.optimizer.step()
    moved = torch.cat([(a - b).flatten() for a, b in zip(still.weights, noisy.weights, strict=True)])

    def check(stddev: float) -> None:
        """The sum of the squares of 21 normal numbers has a chi-square law."""
        squares = float(moved.double().square().sum()) / stddev**2
        assert min(chdtr(len(moved), squares), chdtrc(len(moved), squares)) > FALSE_ALARM / 2

    accepts_only(check, 50 / 10, not_of_the_mean=50.0, four_times=20.0, third=50 / 30)


def test_epsilon_is_that_of_the_sampler_that_ran(make: Make) -> None:
    made = make()
    assert made.engine.get_epsilon(1e-5) == 0.0
    assert made.epoch() == 4
    step = PoissonSubsampled(ZEROED, sampling_probability=0.25)
    assert made.engine.accountant.loss == step * 4
    assert made.engine.get_epsilon(1e-5) == (step * 4).epsilon(1e-5)
    assert (len(made.engine.accountant), made.engine.accountant.history) == (4, [(1.0, 0.25, 4)])
    with pytest.raises(ParameterError, match="delta must be strictly between"):
        made.engine.get_epsilon(0.0)


def test_parts_of_a_batch_are_one_step(make: Make) -> None:
    whole, parts, managed = (
        make(batch_size=20),
        make(batch_size=20, max_physical_batch_size=3),
        make(batch_size=20),
    )
    whole.epoch()
    assert parts.epoch() > 8
    with BatchMemoryManager(
        data_loader=managed.loader, max_physical_batch_size=4, optimizer=managed.optimizer
    ) as loader:
        sizes = []
        for x, y in loader:
            sizes.append(len(x))
            managed.optimizer.zero_grad()
            managed.loss(x, y).backward()
            managed.optimizer.step()
    assert max(sizes) == 4
    for made in (parts, managed):
        assert made.engine.accountant.loss == whole.engine.accountant.loss
        for a, b in zip(whole.weights, made.weights, strict=True):
            torch.testing.assert_close(a, b)
    assert len(next(iter(managed.loader))[0]) > 4
    with pytest.raises(ParameterError, match="be a PrivateLoader"):
        BatchMemoryManager(
            data_loader=whole.data_loader, max_physical_batch_size=4, optimizer=whole.optimizer
        )


def test_batches_that_are_accumulated_are_steps_of_their_own(make: Make) -> None:
    made = make(noise_multiplier=0.0, lr=1.0)
    start, given = made.weights, []
    for x, y in made.loader:
        given.append((x, y))
        made.loss(x, y).backward()
    made.optimizer.step()
    x, y = (torch.cat(parts) for parts in zip(*given, strict=True))
    expected = clipped_mean(make_module_like(start), x, y, 40.0)
    for old, new, gradient in zip(start, made.weights, expected, strict=True):
        torch.testing.assert_close(old - new, gradient, rtol=1e-4, atol=1e-6)
    assert len(made.engine.accountant) == 4


def test_each_accumulated_batch_brings_its_own_noise(make: Make) -> None:
    still, noisy = make(noise_multiplier=0.0, lr=1.0), make(noise_multiplier=50.0, lr=1.0)
    for made in (still, noisy):
        for x, y in made.loader:
            made.loss(x, y).backward()
        made.optimizer.step()
    expected = [torch.zeros_like(weight) for weight in still.weights]
    for step in range(4):
        SimulatedNoise(7).add_(expected, step=step, stddevs=[50 * (1 + 2**-12)] * 4)
    for a, b, noise in zip(still.weights, noisy.weights, expected, strict=True):
        torch.testing.assert_close(a - b, noise / 40, rtol=1e-4, atol=1e-5)


def test_the_usual_ways_to_write_a_loop_agree(make: Make) -> None:
    usual, late, closed, scheduled = make(), make(), make(), make()
    usual.epoch()
    for x, y in late.loader:
        loss = late.loss(x, y)
        late.optimizer.zero_grad()
        loss.backward()
        late.optimizer.step()
    for x, y in closed.loader:

        def closure(made: Made = closed, x: torch.Tensor = x, y: torch.Tensor = y) -> torch.Tensor:
            made.optimizer.zero_grad()
            loss = made.loss(x, y)
            loss.backward()
            return loss

        assert closed.optimizer.step(closure) is not None
    schedule = torch.optim.lr_scheduler.StepLR(scheduled.optimizer, 1000)
    for x, y in scheduled.loader:
        scheduled.loss(x, y).backward()
        scheduled.optimizer.step()
        scheduled.optimizer.zero_grad()
        schedule.step()
    for made in (late, closed, scheduled):
        for a, b in zip(usual.weights, made.weights, strict=True):
            assert torch.equal(a, b)


def test_a_scheduler_and_groups_made_before_work_on(make: Make) -> None:
    module: Any = make_module()
    groups: list[dict[str, Any]] = [
        {"params": module[0].parameters(), "lr": 0.0},
        {"params": module[2].parameters()},
    ]
    optimizer = torch.optim.AdamW(groups, lr=0.5)
    schedule = torch.optim.lr_scheduler.ExponentialLR(optimizer, 0.5)
    made = make(module=module, optimizer=optimizer)
    before = made.weights
    made.epoch()
    schedule.step()
    assert [group["lr"] for group in optimizer.param_groups] == [0.0, 0.25]
    assert torch.equal(before[0], made.weights[0])
    assert not torch.equal(before[2], made.weights[2])
    assert optimizer.state_dict()["state"]
    assert optimizer.noise_multiplier == 1.0  # type: ignore[attr-defined]


if run_time(__name__):

    class Words(Dataset[dict[str, Any]]):
        """Examples as Hugging Face has them."""

        def __len__(self) -> int:
            return 6

        def __getitem__(self, place: int) -> dict[str, Any]:
            return {"ids": torch.full((4,), place), "label": place % 2, "text": str(place)}


def test_a_batch_of_nobody_is_a_step_of_noise_only() -> None:
    module = nn.Sequential(nn.Embedding(6, 3), nn.Flatten(), nn.Linear(12, 2))
    optimizer = torch.optim.SGD(module.parameters(), lr=1.0)
    engine = PrivacyEngine()
    module, optimizer, loader = engine.make_private(
        module=module,
        optimizer=optimizer,
        data_loader=DataLoader(Words(), batch_size=1, num_workers=0),
        noise_multiplier=1.0,
        max_grad_norm=1.0,
        noise_generator=3,
    )
    empty = 0
    for _ in range(3):
        for batch in loader:
            before = [parameter.detach().clone() for parameter in module.parameters()]
            optimizer.zero_grad()
            nn.functional.cross_entropy(module(batch["ids"]), batch["label"]).backward()
            optimizer.step()
            after = list(module.parameters())
            assert all(
                bool((a != b).any()) and bool(b.isfinite().all()) for a, b in zip(before, after, strict=True)
            )
            if not len(batch["label"]):
                assert (batch["ids"].shape, batch["text"]) == ((0, 4), [])
                empty += 1
    assert empty
    assert len(engine.accountant) == 18


def test_no_epoch_of_a_shuffled_run_is_amplified(make: Make) -> None:
    with pytest.warns(UserWarning, match="a whole unamplified step"):
        made = make(poisson_sampling=False)
    made.epoch()
    made.epoch()
    assert made.engine.accountant.loss == ZEROED * 2


def test_any_sampler_is_accounted_by_its_own_theorem(make: Make) -> None:
    def bins(*, population: int, steps_per_epoch: int, steps: int, seed: Any, **_: Any) -> BallsInBinsSampler:
        return BallsInBinsSampler(population=population, bins=steps_per_epoch, steps=steps, seed=seed)

    made = make(sampler=bins, steps=8)
    made.epoch()
    made.epoch()
    assert made.engine.accountant.loss == BallsInBins(ZEROED, 4, 2)
    with pytest.raises(ParameterError, match="sampler must draw from 40 examples"):
        make(sampler=lambda **_: "all")


def test_batches_from_elsewhere_are_not_amplified_and_said_once(make: Make) -> None:
    made = make()
    made.epoch()
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        for x, y in made.data_loader:
            made.loss(x, y).backward()
            made.optimizer.step()
    assert ["without amplification" in str(warning.message) for warning in told] == [True]
    step = PoissonSubsampled(ZEROED, sampling_probability=0.25)
    assert made.engine.accountant.loss == step * 8 + ZEROED * 4
    assert made.engine.run.neighboring is Neighboring.ZERO_OUT


def test_a_batch_that_is_not_what_was_given_is_refused(make: Make) -> None:
    made = make()
    batches = iter(made.loader)
    x, y = next(batches)
    made.loss(torch.cat([x, x]), torch.cat([y, y])).backward()
    with pytest.raises(ParameterError, match="whole and once"):
        made.optimizer.step()
    with pytest.raises(ParameterError, match="step must come after a batch"):
        made.optimizer.step()
    x, y = next(batches)
    made.loss(x, y).backward()
    made.optimizer.step()


def test_a_forward_that_fails_leaves_a_clean_state(make: Make) -> None:
    clean, failed = make(), make()
    batches = [iter(made.loader) for made in (clean, failed)]
    for made, own in zip((clean, failed), batches, strict=True):
        x, y = next(own)
        made.loss(x, y).backward()
        made.optimizer.step()
    x, y = next(batches[1])
    out = failed.module(x)
    out.register_hook(lambda gradient: (_ for _ in ()).throw(MemoryError))
    with pytest.raises(MemoryError):
        nn.functional.mse_loss(out, y).backward()
    next(batches[0])
    for made, own in zip((clean, failed), batches, strict=True):
        x, y = next(own)
        made.optimizer.zero_grad()
        made.loss(x, y).backward()
        made.optimizer.step()
    for a, b in zip(clean.weights, failed.weights, strict=True):
        assert torch.equal(a, b)
    assert len(failed.engine.accountant) == 3


def test_a_sum_is_not_divided(make: Make) -> None:
    mean, total = make(noise_multiplier=0.0, lr=1.0), make(noise_multiplier=0.0, lr=0.1, loss_reduction="sum")
    for made, reduction in ((mean, "mean"), (total, "sum")):
        x, y = next(iter(made.loader))
        nn.functional.mse_loss(made.module(x), y, reduction=reduction).backward()
        made.optimizer.step()
    for a, b in zip(mean.weights, total.weights, strict=True):
        torch.testing.assert_close(a, b)


def test_the_whole_run_is_charged_before_its_first_batch(
    make: Make, open_ledger: Callable[..., Ledger]
) -> None:
    ledger = open_ledger()
    made = make(ledger=ledger, epochs=2, delta=1e-3, description="regression")
    (entry,) = ledger.entries()
    assert entry.loss == PoissonSubsampled(ZEROED, sampling_probability=0.25) * 8
    assert (entry.steps, entry.description) == (8, "regression")
    made.epoch()
    made.epoch()
    assert made.engine.accountant.loss == entry.loss
    with pytest.raises(RunExhausted):
        made.epoch()
    assert ledger.run(1).claimed == 8


def test_what_does_not_fit_is_refused_before_anything_is_changed(
    make: Make, open_ledger: Callable[..., Ledger]
) -> None:
    ledger, module = open_ledger(), make_module()
    optimizer = torch.optim.SGD(module.parameters(), lr=0.1)
    step = optimizer.step
    for options, error in (
        ({"epochs": 1000, "delta": 1e-3}, BudgetExceeded),
        ({"epochs": 1}, ParameterError),
        ({"delta": 1e-3}, ParameterError),
    ):
        with pytest.raises(error):
            make(module=module, optimizer=optimizer, ledger=ledger, **options)
    with pytest.raises(SimulatedCharge):
        make(module=module, optimizer=optimizer, ledger=open_ledger(simulated=False), epochs=1, delta=1e-3)
    assert optimizer.step == step
    assert not module._forward_pre_hooks
    assert not ledger.entries()


def test_batches_from_elsewhere_are_refused_where_a_ledger_was_charged(
    make: Make, open_ledger: Callable[..., Ledger]
) -> None:
    made = make(ledger=open_ledger(), epochs=1, delta=1e-3)
    x, y = next(iter(made.data_loader))
    before = made.weights
    made.loss(x, y).backward()
    with pytest.raises(ParameterError, match="come from the private loader"):
        made.optimizer.step()
    assert all(torch.equal(a, b) for a, b in zip(before, made.weights, strict=True))
    assert made.epoch() == 4


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"target_delta": 0}, "target_delta must be strictly between 0 and 1, got 0; use 1e-5"),
        ({"target_delta": 1.0}, "target_delta must be strictly between 0 and 1"),
        ({"target_epsilon": 0.0}, "epsilon must be positive"),
        (
            {"noise_multiplier": 2.0},
            "noise_multiplier must be left out, got 2.0; it follows",
        ),
        ({"module": 3}, "module must be a Module, got a value of type int; pass the model itself"),
        ({"epochs": None}, "epochs must be given"),
    ],
)
def test_what_gives_no_wanted_epsilon_is_refused_uncharged(
    open_ledger: Callable[..., Ledger], options: dict[str, Any], message: str
) -> None:
    module, ledger = make_module(), open_ledger(simulated=False)
    usual: dict[str, Any] = {
        "module": module,
        "optimizer": torch.optim.SGD(module.parameters(), lr=0.1),
        "data_loader": DataLoader(make_data(), batch_size=10),
        "target_epsilon": 3.0,
        "target_delta": 1e-3,
        "epochs": 2,
        "max_grad_norm": 1.0,
        "record": RecordOptions(ledger=ledger),
    }
    with pytest.raises(ParameterError, match=message):
        PrivacyEngine().make_private_with_epsilon(**(usual | options))
    assert not ledger.entries()


def test_a_wanted_epsilon_is_kept_to_the_last_step_and_not_passed(open_ledger: Callable[..., Ledger]) -> None:
    module = make_module()
    engine = PrivacyEngine()
    ledger = open_ledger(simulated=False)
    module, optimizer, loader = engine.make_private_with_epsilon(
        module=module,
        optimizer=torch.optim.SGD(module.parameters(), lr=0.1),
        data_loader=DataLoader(make_data(), batch_size=10),
        target_epsilon=3.0,
        target_delta=1e-3,
        epochs=2,
        max_grad_norm=1.0,
        record=RecordOptions(ledger=ledger),
    )
    for _ in range(2):
        for x, y in loader:
            optimizer.zero_grad()
            nn.functional.mse_loss(module(x), y).backward()
            optimizer.step()
    assert 2.99 < engine.get_epsilon(1e-3) <= 3.0
    with pytest.raises(RunExhausted):
        next(iter(loader))


def test_a_module_that_mixes_examples_is_refused_at_its_first_forward(make: Make) -> None:
    class Centred(nn.Linear):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            x = super().forward(x)
            return x - x.mean(0)

    made = make(module=Centred(3, 1), self_test=True)
    x, y = next(iter(made.loader))
    for _ in range(2):
        with pytest.raises(UnfitModule):
            made.loss(x, y)
    with pytest.raises(UnfitModule, match="BatchNorm"):
        make(module=nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4)))
    tested = make(self_test=True)
    plain = make()
    assert (tested.epoch(), plain.epoch()) == (4, 4)
    for a, b in zip(tested.weights, plain.weights, strict=True):
        assert torch.equal(a, b)


if run_time(__name__):

    class Endless(IterableDataset[int]):
        """Examples without a number."""

        def __iter__(self) -> Iterator[int]:
            return iter(range(3))


@cases(
    ("options", "message"),
    lambda: [
        ({"noise_multiplier": -1.0}, "noise_multiplier must be non-negative"),
        ({"max_grad_norm": 0.0}, "clip_norm must be positive"),
        ({"clipping": "round"}, "clipping must be 'flat'"),
        ({"grad_sample_mode": "magic"}, "grad_sample_mode must be one of"),
        ({"criterion": nn.MSELoss(reduction="sum")}, "loss_reduction must be 'sum'"),
        ({"epochs": 1, "steps": 1}, "without epochs"),
        ({"epochs": 0}, "epochs must be an integer of at least 1"),
        ({"max_physical_batch_size": 0}, "max_physical_batch_size must be"),
        ({"data_loader": DataLoader(Endless())}, "IterableDataset"),
        ({"data_loader": [1]}, "be a DataLoader"),
        ({"data_loader": DataLoader(make_data(), batch_size=None)}, "have a batch_size"),
        (
            {"optimizer": torch.optim.SGD(nn.Linear(1, 1).parameters(), lr=1)},
            "hold the module's parameters only",
        ),
        ({"optimizer": torch.optim.LBFGS(nn.Linear(1, 1).parameters())}, "use each batch once"),
        ({"replayable": True}, "be of one process with a ledger"),
        (
            {"module": 3, "optimizer": 3},
            "module must be a Module, got a value of type int; pass a torch.nn.Module",
        ),
        ({"views": 3}, "views must be Views, got a value of type int; pass Views"),
        (
            {"ledger": "kept.ledger", "epochs": 1},
            "ledger must be an open ledger, got a value of type str; pass Ledger.open",
        ),
        ({"sampler": "poisson"}, "sampler must be a function of population"),
        ({"sampler": PoissonSampler}, "sampler must be a function of population"),
        ({"noise": "tree"}, "noise must be a function of sampler, key and seed"),
        ({"noise": GridNoise}, "noise must be a function of sampler, key and seed"),
    ],
)
def test_bad_arguments_are_named(make: Make, options: dict[str, Any], message: str) -> None:
    with pytest.raises(ParameterError, match=message):
        make(**options)


def test_parts_of_one_run_are_refused_by_another(make: Make) -> None:
    made = make()
    with pytest.raises(ParameterError, match="optimizer must belong to one run"):
        make(module=made.module, optimizer=made.optimizer)
    with pytest.raises(ParameterError, match="module must belong to one run"):
        make(module=made.module)
    with pytest.raises(ParameterError, match="data_loader must be a plain DataLoader"):
        make(data_loader=made.loader)
    with pytest.raises(ParameterError, match="make only one run private"):
        made.engine.make_private(
            module=made.module,
            optimizer=made.optimizer,
            data_loader=made.data_loader,
            noise_multiplier=1.0,
            max_grad_norm=1.0,
        )
    made.engine.detach()
    again = make(module=made.module, optimizer=made.optimizer)
    assert again.epoch() == 4
    with pytest.raises(ParameterError, match="have made a run private"):
        PrivacyEngine().get_epsilon(1e-5)


def test_workers_give_the_same_batches(make: Make) -> None:
    one, many = make(), make(data_loader=DataLoader(make_data(), batch_size=10, num_workers=2))
    one.epoch()
    many.epoch()
    for a, b in zip(one.weights, many.weights, strict=True):
        assert torch.equal(a, b)


@cases("clipping", lambda: ["per_layer", "automatic", AdaptiveQuantile(clip_norm=0.5, count_stddev=1.0)])
def test_every_clipping_trains(make: Make, clipping: Any) -> None:
    made = make(clipping=clipping)
    made.epoch()
    assert all(bool(weight.isfinite().all()) for weight in made.weights)
    if isinstance(clipping, AdaptiveQuantile):
        assert made.engine.run.clipping != clipping


def test_noise_on_a_grid_is_charged_as_it_is(make: Make) -> None:
    made = make(noise=lambda sampler, key, seed: GridNoise(key, seed=seed))
    made.epoch()
    assert made.engine.accountant.loss == PoissonSubsampled(ZEROED, sampling_probability=0.25) * 4
    assert all(bool(weight.isfinite().all()) for weight in made.weights)


def test_correlated_noise_is_charged_for_its_own_schema(make: Make) -> None:
    def cyclic(*, population: int, batch_size: int, steps: int, seed: Any, **_: Any) -> CyclicSampler:
        return CyclicSampler(population=population, batch_size=batch_size, steps=steps, seed=seed)

    strategy = BandedToeplitz(steps=8, bands=[1.0, 0.5])

    def banded(sampler: CyclicSampler, key: Any, seed: Any) -> CorrelatedNoise:
        return CorrelatedNoise(strategy, participation=sampler.participation, key=key, seed=seed)

    made = make(sampler=cyclic, noise=banded, epochs=2)
    made.epoch()
    made.epoch()
    loss = made.engine.accountant.loss
    assert loss.gdp().mu > math.sqrt(2)
    assert loss.neighboring is Neighboring.ZERO_OUT
    for wrong in (
        {"epochs": 3, "noise": banded},
        {"epochs": 2, "noise": lambda sampler, key, seed: CorrelatedNoise(strategy, seed=seed)},
        {"epochs": 2, "noise": lambda sampler, key, seed: KeyedNoise()},
    ):
        with pytest.raises(ParameterError, match="noise must be"):
            make(sampler=cyclic, **wrong)


def test_an_adapting_clipping_takes_one_batch_a_step(make: Make) -> None:
    made = make(clipping=AdaptiveQuantile(clip_norm=0.5, count_stddev=1.0))
    for x, y in made.loader:
        made.loss(x, y).backward()
    with pytest.raises(ParameterError, match="not be accumulated with clipping that adapts"):
        made.optimizer.step()


def test_a_loader_is_iterated_once_at_a_time(make: Make) -> None:
    made = make()
    first = iter(made.loader)
    next(first)
    next(iter(made.loader))
    with pytest.raises(ParameterError, match="iterated once at a time"):
        next(first)


def test_half_precision_forwards_train(make: Make) -> None:
    made = make()
    for x, y in made.loader:
        made.optimizer.zero_grad()
        with torch.autocast("cpu", dtype=torch.bfloat16):
            loss = made.loss(x, y)
        loss.backward()
        made.optimizer.step()
    assert all(weight.dtype is torch.float32 and bool(weight.isfinite().all()) for weight in made.weights)


def test_a_curve_has_epsilon_on_its_axis(make: Make) -> None:
    made = make()
    curve = LearningCurve(made.engine.run, delta=1e-5)
    curve.add(accuracy=0.5)
    for x, y in progress(made.loader, made.engine.run, delta=1e-5):
        made.loss(x, y).backward()
        made.optimizer.step()
    curve.add(accuracy=0.75, loss=2.0)
    epsilon = made.engine.get_epsilon(1e-5)
    assert curve.curve("accuracy") == ([0.0, epsilon], [0.5, 0.75])
    assert curve.points[1] == (4, epsilon, {"accuracy": 0.75, "loss": 2.0})
    pytest.importorskip("matplotlib.figure")  # which keeps to itself what its import warns of
    assert curve.plot().get_xlabel() == "epsilon at delta 1e-05"


def test_a_curve_takes_a_loss_that_is_no_number_and_shows_no_value(make: Make) -> None:
    curve = LearningCurve(make().engine.run, delta=1e-5)
    if find_spec("matplotlib"):
        assert curve.plot().get_legend() is None  # of nothing, matplotlib warns
    assert math.isnan(curve.add(loss=math.nan).values["loss"])
    assert curve.add(loss=math.inf).values["loss"] == math.inf
    with pytest.raises(ParameterError, match="loss must be a number, got a value of type str"):
        curve.add(loss="secret")  # type: ignore[arg-type]


def test_progress_counts_steps_and_computes_epsilon_for_a_terminal_alone(
    make: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = make(max_physical_batch_size=3)
    asked: list[int] = []
    run = made.engine.run
    epsilon = run.epsilon

    def noted(delta: float) -> float:
        asked.append(run.released)
        return epsilon(delta)

    monkeypatch.setattr(run, "epsilon", noted)

    def epoch() -> None:
        for x, y in progress(made.loader, run, delta=1e-5, every=2):
            made.optimizer.zero_grad()
            made.loss(x, y).backward()
            made.optimizer.step()

    epoch()
    assert asked == []
    text = io.StringIO()
    monkeypatch.setattr(text, "isatty", lambda: True, raising=False)
    monkeypatch.setattr(sys, "stderr", text)
    epoch()
    assert asked == [4, 6, 8]
    assert "4/4" in text.getvalue()


def test_an_exported_model_is_the_weights_alone(make: Make) -> None:
    made = make()
    exported = made.engine.export_model()
    assert exported.keys() == made.module.state_dict().keys()
    assert all(exported[name] is not tensor for name, tensor in made.module.state_dict().items())


def test_a_criterion_comes_back_with_ghost_clipping_and_only_then() -> None:
    criterion = nn.MSELoss()
    for mode, given, returned in (
        ("ghost", criterion, [criterion]),
        ("ghost", None, []),
        ("auto", criterion, []),
    ):
        module = nn.Linear(3, 1)
        optimizer = torch.optim.SGD(module.parameters(), lr=0.1)
        first, second, *more = PrivacyEngine().make_private(
            module=module,
            optimizer=optimizer,
            data_loader=DataLoader(make_data(), batch_size=10),
            noise_multiplier=1.0,
            max_grad_norm=1.0,
            criterion=given,
            grad_sample_mode=mode,
            gradients=GradientOptions(self_test=False),
            noise_generator=7,
        )
        assert (first, second) == (module, optimizer)
        assert more[:-1] == returned


def test_no_count_of_a_run_becomes_less(make: Callable[..., Made]) -> None:
    parts = make().engine._parts
    assert parts is not None
    run = parts.run
    for told, known in (((3, 2), (3, 2)), ((1, 1), (3, 2)), ((5, 0), (5, 2)), ((0, 4), (5, 4))):
        run.go_on(cursor=told[0], foreign_steps=told[1])
        assert (run.cursor, run.foreign_steps) == known


def test_one_example_from_elsewhere_is_a_batch_from_elsewhere(make: Callable[..., Made]) -> None:
    made = make()
    made.loss(torch.ones(1, 3), torch.zeros(1, 1)).backward()
    with pytest.warns(UserWarning, match="did not come from the loader"):
        made.optimizer.step()
    parts = made.engine._parts
    assert parts is not None
    assert parts.run.foreign_steps == 1
