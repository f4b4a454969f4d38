"""Lightning's Trainer trains as a loop over PrivacyEngine does, and goes on from its checkpoints."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from sfumato.errors import LedgerUnavailable, ParameterError
from tests.cases import cases
from tests.run_time import run_time

if run_time(__name__):
    import lightning.pytorch as pl
    import torch
    from lightning.pytorch.callbacks import GradientAccumulationScheduler, LearningRateFinder, ModelCheckpoint
    from torch import distributed as dist
    from torch import nn
    from torch.utils.data import DataLoader, IterableDataset, TensorDataset, WeightedRandomSampler

    from sfumato.learning.adapters.lightning_callback import PrivacyCallback
    from sfumato.learning.training.privacy_engine import PrivacyEngine
    from sfumato.learning.training.setup.options import GradientOptions, SamplingOptions
    from tests.learning.adapters.tiny import open_ledger, privacy, same, weights


pytestmark = [  # lightning's own
    pytest.mark.filterwarnings("ignore:.isinstance.treespec, LeafSpec:FutureWarning"),
    pytest.mark.filterwarnings("ignore::lightning.fabric.utilities.warnings.PossibleUserWarning"),
    pytest.mark.filterwarnings("ignore:Be aware that when using `ckpt_path`"),
]


def rows(count: int = 40) -> TensorDataset:
    generator = torch.Generator().manual_seed(1)
    x = torch.randn(count, 3, generator=generator)
    return TensorDataset(x, x.sum(1, keepdim=True))


def loader(**changes: Any) -> DataLoader[Any]:
    return DataLoader(rows(), **({"batch_size": 5} | changes))


def net() -> nn.Module:
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 1))


if run_time(__name__):

    class Line(pl.LightningModule):  # type: ignore[misc]
        """What a user writes."""

        def __init__(self) -> None:
            super().__init__()
            self.net: Any = net()
            self.stop_at = -1

        def forward(self, x: torch.Tensor) -> Any:
            return self.net(x)

        def training_step(self, batch: Any, batch_idx: int) -> Any:
            if self.global_step == self.stop_at:
                raise Stopped
            return nn.functional.mse_loss(self(batch[0]), batch[1])

        def validation_step(self, batch: Any, batch_idx: int) -> None:
            self.log("error", nn.functional.mse_loss(self(batch[0]), batch[1]))

        def configure_optimizers(self) -> Any:
            optimizer = torch.optim.SGD(self.parameters(), lr=0.1, momentum=0.5)
            schedule = torch.optim.lr_scheduler.ExponentialLR(optimizer, 0.9)
            return {"optimizer": optimizer, "lr_scheduler": {"scheduler": schedule, "interval": "step"}}


class Stopped(Exception):
    pass


def fit(
    folder: Path, module: pl.LightningModule | None = None, *, ckpt_path: Any = None, **changes: Any
) -> tuple[PrivacyCallback, pl.Trainer, Any]:
    asked = changes.pop("privacy", privacy())
    callback = PrivacyCallback(asked, **changes.pop("callback", {}))
    validated = changes.pop("validated", None)
    batches = changes.pop("loader", None) or loader()
    usual: dict[str, Any] = {
        "max_epochs": 2,
        "accelerator": "cpu",
        "logger": False,
        "enable_progress_bar": False,
        "enable_model_summary": False,
        "enable_checkpointing": "callbacks" in changes,
        "log_every_n_steps": 1,
        "accumulate_grad_batches": 2,
    }
    more = changes.pop("callbacks", [])
    trainer = pl.Trainer(default_root_dir=folder, callbacks=[callback, *more], **(usual | changes))
    made = Line() if module is None else module
    trainer.fit(
        made, train_dataloaders=callback.loader(batches), val_dataloaders=validated, ckpt_path=ckpt_path
    )
    return callback, trainer, made


def by_hand(*, bf16: bool = False) -> nn.Module:
    """The same run: eight steps, of ten examples expected, of which the engine takes five at a time."""
    module, engine = net(), PrivacyEngine()
    optimizer = torch.optim.SGD(module.parameters(), lr=0.1, momentum=0.5)
    schedule = torch.optim.lr_scheduler.ExponentialLR(optimizer, 0.9)
    _, _, batches = engine.make_private(
        module=module,
        optimizer=optimizer,
        data_loader=loader(batch_size=10),
        noise_multiplier=0.8,
        max_grad_norm=0.5,
        noise_generator=7,
        sampling=SamplingOptions(steps=8),
        gradients=GradientOptions(self_test=False, chunk=5),
    )
    for _ in range(2):
        for x, y in batches:
            optimizer.zero_grad()
            with torch.autocast("cpu", torch.bfloat16, enabled=bf16):
                loss = nn.functional.mse_loss(module(x), y)
            loss.backward()
            optimizer.step()
            schedule.step()
    return module


def test_it_trains_as_a_loop_by_hand_bit_by_bit(tmp_path: Path) -> None:
    callback, trainer, module = fit(tmp_path)
    assert same(weights(module), weights(by_hand()))
    assert not same(weights(module), weights(net()))
    run = callback.privacy_engine.run
    assert run.released == run.cursor == trainer.global_step == 8
    assert run.sampler.expected_batch_size == 10
    assert trainer.accumulate_grad_batches == 2


def test_it_trains_so_in_bfloat16_too(tmp_path: Path) -> None:
    _, _, module = fit(tmp_path, precision="bf16-mixed")
    assert same(weights(module), weights(by_hand(bf16=True)))
    assert not same(weights(module), weights(by_hand()))


def test_validation_is_no_training(tmp_path: Path) -> None:
    watched, trainer, module = fit(tmp_path, validated=loader(), val_check_interval=1)
    plain, _, other = fit(tmp_path)
    trainer.validate(module, loader(), verbose=False)
    assert "error" in trainer.callback_metrics
    assert same(weights(module), weights(other))
    assert watched.get_epsilon() == plain.get_epsilon()


def test_epsilon_is_logged(tmp_path: Path) -> None:
    seen: list[float] = []

    class Read(pl.Callback):  # type: ignore[misc]
        def on_train_batch_end(self, trainer: Any, *_: Any) -> None:
            seen.append(float(trainer.callback_metrics["epsilon"]))

    callback, trainer, _ = fit(tmp_path, callbacks=[Read()], enable_checkpointing=False)
    assert seen == sorted(set(seen))
    assert seen[-1] == pytest.approx(callback.get_epsilon())
    assert "epsilon" in trainer.callback_metrics


def test_noise_is_found_for_the_epsilon_that_is_asked(tmp_path: Path) -> None:
    asked = privacy(noise_multiplier=None, target_epsilon=2.0, options={"gradients": GradientOptions()})
    callback, trainer, _ = fit(tmp_path, privacy=asked, max_epochs=9, max_steps=7)
    assert trainer.global_step == 7
    assert 1.99 < callback.get_epsilon() <= 2.0


def test_fewer_batches_are_a_shorter_run(tmp_path: Path) -> None:
    callback, trainer, _ = fit(tmp_path, limit_train_batches=3)
    assert callback.privacy_engine.run.sampler.steps == trainer.global_step == 6


def test_a_submodule_can_be_what_is_called(tmp_path: Path) -> None:
    class Inner(Line):
        def training_step(self, batch: Any, batch_idx: int) -> Any:
            return nn.functional.mse_loss(self.net(batch[0]), batch[1])

    _, _, module = fit(tmp_path, Inner(), callback={"module": "net"})
    assert same(weights(module), weights(by_hand()))
    with pytest.raises(ParameterError):
        fit(tmp_path, Inner())


def stopped(folder: Path, **changes: Any) -> Path:
    module = Line()
    module.stop_at = 5
    saving = ModelCheckpoint(folder / "saved", save_top_k=-1, every_n_train_steps=3, filename="{step}")
    with pytest.raises(Stopped):
        fit(folder, module, callbacks=[saving], **changes)
    return folder / "saved" / "step=3.ckpt"


def test_it_goes_on_as_if_it_had_not_been_stopped(tmp_path: Path) -> None:
    path = stopped(tmp_path)
    with pytest.warns(UserWarning, match="without a ledger a run goes on"):
        callback, trainer, module = fit(tmp_path, ckpt_path=path)
    assert same(weights(module), weights(by_hand()))
    assert trainer.global_step == callback.privacy_engine.run.cursor == 8


def test_a_ledger_is_charged_once(tmp_path: Path) -> None:
    with open_ledger(tmp_path / "a.ledger") as ledger:
        asked = privacy(ledger=ledger, options={"noise_generator": None})
        path = stopped(tmp_path, privacy=asked)
        assert [charge.steps for charge in ledger.entries()] == [8]
        with pytest.warns(UserWarning, match="training stops here"):
            callback, trainer, _ = fit(tmp_path, privacy=asked, ckpt_path=path)
        assert [charge.steps for charge in ledger.entries()] == [8]
        # The step that was broken off had been claimed: of eight, two are left.
        assert trainer.global_step == 3 + 2
        assert callback.privacy_engine.run.cursor == 8
        (secret,) = (tmp_path / "_privacy").glob("*.secrets")
        assert callback.privacy_engine.run.noise.key not in path.read_bytes()  # type: ignore[attr-defined]
        assert secret.stat().st_mode & 0o777 == 0o600


def test_no_checkpoint_goes_on_without_its_part(tmp_path: Path) -> None:
    path = stopped(tmp_path)
    plain = torch.load(path, weights_only=False)
    (tmp_path / "_privacy" / plain.pop("sfumato")).unlink()
    with pytest.raises(LedgerUnavailable, match="checkpoint must be a readable file"):
        fit(tmp_path, ckpt_path=path)
    torch.save(plain, tmp_path / "plain.ckpt")
    with pytest.raises(ParameterError, match="ckpt_path must be the checkpoint of a private run"):
        fit(tmp_path, ckpt_path=tmp_path / "plain.ckpt")


def test_a_callback_is_of_one_fit(tmp_path: Path) -> None:
    callback, trainer, module = fit(tmp_path, max_steps=1)
    with pytest.raises(ParameterError, match="callback must be used for one fit only"):
        trainer.fit(module, callback.loader(loader()))


@pytest.fixture
def no_group_left() -> Iterator[None]:
    """Take down the process group that Lightning's strategies leave standing after an error.

    They also leave variables in the environment, from which the next library's trainer makes another group.
    """
    before = dict(os.environ)
    yield
    os.environ.clear()
    os.environ.update(before)
    if dist.is_initialized():
        dist.destroy_process_group()


@pytest.mark.usefixtures("no_group_left")
@cases(
    ("changes", "told"),
    lambda: [
        ({"gradient_clip_val": 1.0}, "gradient_clip_val must be left out"),
        ({"max_epochs": -1}, "max_epochs must end the run"),
        ({"precision": "16-true"}, "precision must be 32 bits or bfloat16"),
        (
            {"callbacks": [GradientAccumulationScheduler({0: 1, 1: 2})]},
            "callbacks must accumulate as many batches in every epoch",
        ),
        (
            {"callbacks": [LearningRateFinder()]},
            "callbacks must not choose settings by measuring private rows",
        ),
        ({"strategy": "ddp", "devices": 1}, "strategy must run on one device"),
    ],
)
def test_trainers_that_would_break_it(changes: dict[str, Any], told: str, tmp_path: Path) -> None:
    with pytest.raises(ParameterError, match=told):
        fit(tmp_path, **({"accumulate_grad_batches": 1} | changes))


if run_time(__name__):

    class Several(Line):
        def configure_optimizers(self) -> Any:
            return [
                torch.optim.SGD(self.net[0].parameters(), lr=0.1),
                torch.optim.SGD(self.net[2].parameters(), lr=0.1),
            ]

    class Manual(Line):
        def __init__(self) -> None:
            super().__init__()
            self.automatic_optimization = False

    class Clips(Line):
        def configure_gradient_clipping(self, *_: Any, **__: Any) -> None:
            pass

    class Follows(Line):
        """Its rate, and so its weights, would follow from private rows, beside their gradients."""

        def training_step(self, batch: Any, batch_idx: int) -> Any:
            loss = super().training_step(batch, batch_idx)
            self.log("loss", loss, on_step=False, on_epoch=True)
            return loss

        def configure_optimizers(self) -> Any:
            optimizer = torch.optim.SGD(self.parameters(), lr=0.1)
            schedule = torch.optim.lr_scheduler.ReduceLROnPlateau(optimizer, patience=0, threshold=10.0)
            return {"optimizer": optimizer, "lr_scheduler": {"scheduler": schedule, "monitor": "loss"}}


@cases(
    ("kind", "told"),
    lambda: [
        (Follows, "lr_scheduler must depend on the step alone"),
        (Several, "multiple optimizers"),  # Lightning's own
        (Manual, "automatic_optimization must be on"),
        (Clips, "module must not override configure_gradient_clipping"),
    ],
)
def test_modules_that_would_break_it(kind: Any, told: str, tmp_path: Path) -> None:
    with pytest.raises((ParameterError, RuntimeError), match=told):
        fit(tmp_path, kind(), accumulate_grad_batches=1)


def test_a_module_without_forward_must_be_told(tmp_path: Path) -> None:
    class NoForward(Line):
        forward = pl.LightningModule.forward

    with pytest.raises(ParameterError, match="module must have a forward that training_step calls"):
        fit(tmp_path, NoForward())


if run_time(__name__):

    class Rows(IterableDataset[Any]):
        def __iter__(self) -> Any:
            return iter(rows())


@cases(
    ("given", "told"),
    lambda: [
        (loader(sampler=WeightedRandomSampler([1.0] * 40, 40)), "have torch's RandomSampler or Seq"),
        (DataLoader(Rows(), batch_size=5), "IterableDataset"),
        ([1, 2], "data_loader must be a DataLoader"),
    ],
)
def test_loaders_that_cannot_be_drawn_from(given: Any, told: str) -> None:
    with pytest.raises(ParameterError, match=told):
        PrivacyCallback(privacy()).loader(given)


def test_other_batches_are_refused(tmp_path: Path) -> None:
    callback = PrivacyCallback(privacy())
    trainer = pl.Trainer(
        default_root_dir=tmp_path,
        callbacks=[callback],
        max_epochs=1,
        accelerator="cpu",
        logger=False,
        enable_progress_bar=False,
        enable_model_summary=False,
        enable_checkpointing=False,
    )
    with pytest.raises(ParameterError, match="train_dataloaders must be one that the callback's loader"):
        trainer.fit(Line(), loader())
    mine = callback.loader(loader())
    with pytest.raises(ParameterError, match="loader must be used in a private fit"):
        next(iter(mine))
    with pytest.raises(ParameterError, match="train_dataloaders must be what the callback's loader"):
        trainer.fit(Line(), loader())


def test_steps_and_card_follow_from_a_declared_number_of_examples(tmp_path: Path) -> None:
    told = []
    for count in (40, 41):
        asked = privacy(options={"sampling": SamplingOptions(population=40)})
        callback, loop, _ = fit(tmp_path, privacy=asked, loader=DataLoader(rows(count), batch_size=5))
        engine = callback.privacy_engine
        told.append((engine.card(1e-3).to_json(), engine.parts.identity, loop.global_step))
    assert told[0] == told[1]
    assert "add-remove" in told[0][0]
