"""Lightning's Trainer with a guarantee: a callback that makes the run private, and the batches it draws."""

from __future__ import annotations

import math
import os
import secrets
from collections.abc import Iterator
from pathlib import Path
from typing import Any, final

from lightning.pytorch import Callback, LightningModule, Trainer
from lightning.pytorch.callbacks import BatchSizeFinder, GradientAccumulationScheduler, LearningRateFinder
from lightning.pytorch.strategies import SingleDeviceStrategy
from torch import nn
from torch.utils.data import DataLoader

from sfumato import _check
from sfumato.learning.adapters.logical_batches import until_exhausted
from sfumato.learning.adapters.privacy_arguments import PrivacyArguments
from sfumato.learning.training.privacy_engine import PrivacyEngine
from sfumato.learning.training.setup.batches import epoch_of

__all__ = ["PrivacyCallback"]

_KEY = "sfumato"


@final
class _Batches:
    """What Lightning iterates over: bound to the private loader when the fit begins."""

    def __init__(self, loader: DataLoader[Any], population: int | None) -> None:
        self._given = self.whole = loader
        self.population = population
        self.private: Any = None

    def gather(self, times: int) -> None:
        """Let a logical batch be of so many of the given loader's."""
        given = self._given
        if times > 1:
            self.whole = DataLoader(
                given.dataset,
                batch_size=(given.batch_size or 1) * times,
                collate_fn=given.collate_fn,
                drop_last=given.drop_last,
                num_workers=given.num_workers,
                pin_memory=given.pin_memory,
                worker_init_fn=given.worker_init_fn,
                persistent_workers=given.persistent_workers,
                prefetch_factor=given.prefetch_factor,
            )

    def __len__(self) -> int:
        return epoch_of(self.whole, self.population).steps

    def __iter__(self) -> Iterator[Any]:
        # Lightning asks for an iterator before the fit has begun, and for its first item afterwards.
        if self.private is None:
            remedy = "put the callback that made it into Trainer(callbacks=[...])"
            rule = "be used in a private fit"
            _check.refuse_state("loader", rule, "no private fit has begun with it", remedy)
        yield from until_exhausted(self.private)


class PrivacyCallback(Callback):
    """Makes ``Trainer.fit`` private, with automatic optimization, one optimizer and one device.

    The batches come from `loader`, which is passed to ``fit``. A step of the optimizer is one private step on
    one logical batch; with ``accumulate_grad_batches=k`` that has ``k`` times the loader's batch size, of
    which the engine works on one batch size at a time.

    Parameters
    ----------
    privacy : PrivacyArguments
    module : str, optional
        The name of the submodule that ``training_step`` calls, if that is not the module itself; it holds all
        parameters of the optimizer.
    directory : path, optional
        Where the run's part of checkpoints is stored, apart from what may be published;
        ``default_root_dir/_privacy`` by default.

    Raises
    ------
    ParameterError
        From ``fit``, before any row is read: a setting of the trainer or the module breaks the guarantee.

    Notes
    -----
    Guarantee: `get_epsilon`, for the model and all that is computed from it, as `PrivacyEngine` says.
    Conditions: those of `TrainingRun`; ``training_step`` returns the mean of losses that each follow from one
    example; what it logs besides is not in epsilon.

    Examples
    --------
    >>> privacy = PrivacyCallback(PrivacyArguments(target_epsilon=3.0, delta=1e-5))
    >>> trainer = Trainer(max_epochs=3, callbacks=[privacy])  # doctest: +SKIP
    >>> trainer.fit(module, train_dataloaders=privacy.loader(loader))  # doctest: +SKIP
    """

    def __init__(
        self,
        privacy: PrivacyArguments,
        *,
        module: str | None = None,
        directory: str | os.PathLike[str] | None = None,
    ) -> None:
        _check.instance("privacy", privacy, PrivacyArguments, "pass PrivacyArguments(...)")
        self._privacy, self._name = privacy, module
        self._directory = None if directory is None else Path(directory)
        self._batches: _Batches | None = None
        self._begun: PrivacyEngine | None = None
        self._resumed: Path | None = None
        self._accumulated = 1
        self._mark = secrets.token_hex(4)

    def loader(self, data_loader: DataLoader[Any]) -> Any:
        """Return what to pass to ``fit``: batches of the loader's dataset, as the run draws them.

        Parameters
        ----------
        data_loader : DataLoader
            Gives the dataset, the collate function and the expected batch size.

        Returns
        -------
        iterable of batches
            For ``Trainer.fit(model, train_dataloaders=...)``; batches are of different sizes.
        """
        _check.instance("data_loader", data_loader, DataLoader, "pass your own DataLoader")
        population = self._privacy.sampling.population
        epoch_of(data_loader, population)
        self._batches = _Batches(data_loader, population)
        return self._batches

    @property
    def privacy_engine(self) -> PrivacyEngine:
        """The engine of the run, once it has begun."""
        if self._begun is None:
            _check.refuse_state("trainer", "have begun to fit", "fit() has not begun a run", "call fit()")
        return self._begun

    def get_epsilon(self) -> float:
        """Return the epsilon of the steps so far, at the arguments' delta, rounded up.

        Returns
        -------
        float
        """
        return 0.0 if self._begun is None else self._begun.get_epsilon(self._privacy.delta)

    # Lightning's hooks

    def setup(self, trainer: Trainer, pl_module: LightningModule, stage: str) -> None:
        """Refuse what would break the guarantee, and take accumulation over.

        Parameters
        ----------
        trainer : lightning.Trainer
            Its accumulation of gradients becomes the size of logical batches.
        pl_module : lightning.LightningModule
        stage : str
            What begins: only "fit" is examined.
        """
        if stage != "fit":
            return
        if self._begun is not None:
            remedy = "make another PrivacyCallback, for another run"
            rule = "be used for one fit only"
            _check.refuse_state("callback", rule, "it was already used in another fit", remedy)
        if self._batches is None:
            remedy = "call fit(module, privacy.loader(loader))"
            rule = "be one that the callback's loader() returned"
            _check.refuse_state("train_dataloaders", rule, "loader() was never called", remedy)
        _check_trainer(trainer)
        _check_module(pl_module, self._name)
        self._accumulated = trainer.accumulate_grad_batches
        trainer.accumulate_grad_batches = 1
        self._batches.gather(self._accumulated)

    def on_load_checkpoint(
        self, trainer: Trainer, pl_module: LightningModule, checkpoint: dict[str, Any]
    ) -> None:
        """Find the run's part of a checkpoint that a fit goes on from.

        Parameters
        ----------
        trainer : lightning.Trainer
        pl_module : lightning.LightningModule
        checkpoint : dict
            What Lightning read; the run's part lies in a file beside it.
        """
        if trainer.state.fn != "fit":
            return
        if _KEY not in checkpoint:
            remedy = "load its weights with load_from_checkpoint, and begin a run"
            rule = "be the checkpoint of a private run"
            _check.refuse_state("ckpt_path", rule, "the checkpoint has no private run in it", remedy)
        self._resumed = self._folder(trainer) / checkpoint[_KEY]

    def on_fit_start(self, trainer: Trainer, pl_module: LightningModule) -> None:
        """Begin the run, or go on with it; it is charged here, if there is a ledger.

        Parameters
        ----------
        trainer : lightning.Trainer
        pl_module : lightning.LightningModule
            The model whose gradients are clipped from here on.
        """
        steps = trainer.estimated_stepping_batches
        if len(trainer.optimizers) != 1:
            remedy = "return one that has all parameters"
            rule = "return exactly one optimizer"
            _check.refuse("configure_optimizers", rule, len(trainer.optimizers), remedy)
        if any(schedule.reduce_on_plateau for schedule in trainer.lr_scheduler_configs):
            remedy = (
                "use a schedule of the step alone; what follows from measurements on rows is not in epsilon"
            )
            rule = "depend on the step alone"
            _check.refuse_state("lr_scheduler", rule, "it follows a measured value", remedy)
        if not math.isfinite(steps):
            _check.refuse("max_epochs", "end the run", trainer.max_epochs, "pass max_epochs= or max_steps=")
        batches = self._bound()
        self._begun = self._privacy.begin(
            module=_trained(pl_module, self._name),
            optimizer=trainer.optimizers[0],
            data_loader=batches.whole,
            steps=int(steps),
            resume_from=self._resumed,
            chunk=None if self._accumulated == 1 else batches.whole.batch_size // self._accumulated,
        )
        batches.private = self._begun.parts.loader

    def on_train_start(self, trainer: Trainer, pl_module: LightningModule) -> None:
        """Refuse to train on other batches than the run's.

        Parameters
        ----------
        trainer : lightning.Trainer
            Its training loader is compared with the one that `loader` returned.
        pl_module : lightning.LightningModule
        """
        if trainer.train_dataloader is not self._batches:
            remedy = "fit(module, train_dataloaders=privacy.loader(loader))"
            rule = "be what the callback's loader() returned"
            _check.refuse_state("train_dataloaders", rule, "fit() was given another one", remedy)

    def on_train_batch_end(
        self, trainer: Trainer, pl_module: LightningModule, outputs: Any, batch: Any, batch_idx: int
    ) -> None:
        """Log the epsilon spent so far, where Lightning logs.

        Parameters
        ----------
        trainer : lightning.Trainer
        pl_module : lightning.LightningModule
            Logs the epsilon.
        outputs, batch : object
            Not used: they follow from private rows.
        batch_idx : int
            The batch's number in its epoch.
        """
        if trainer.global_step % trainer.log_every_n_steps == 0 or trainer.is_last_batch:
            pl_module.log("epsilon", self.get_epsilon(), on_step=True, on_epoch=False, prog_bar=True)

    def on_save_checkpoint(
        self, trainer: Trainer, pl_module: LightningModule, checkpoint: dict[str, Any]
    ) -> None:
        """Write the run's part, and note in the checkpoint what it is called.

        Parameters
        ----------
        trainer : lightning.Trainer
        pl_module : lightning.LightningModule
        checkpoint : dict
            What Lightning is about to write; the name of the run's part is added.
        """
        if self._begun is None:
            return
        folder = self._folder(trainer)
        folder.mkdir(parents=True, exist_ok=True)
        checkpoint[_KEY] = f"{self._mark}-{trainer.global_step}.pt"
        self._begun.save_checkpoint(path=folder / checkpoint[_KEY])

    def on_exception(self, trainer: Trainer, pl_module: LightningModule, exception: BaseException) -> None:
        """End the run.

        Parameters
        ----------
        trainer : lightning.Trainer
        pl_module : lightning.LightningModule
        exception : BaseException
            What ended the fit; not used.
        """
        self._end(trainer)

    def teardown(self, trainer: Trainer, pl_module: LightningModule, stage: str) -> None:
        """End the run.

        Parameters
        ----------
        trainer : lightning.Trainer
        pl_module : lightning.LightningModule
        stage : str
            What ends, such as "fit".
        """
        self._end(trainer)

    def _end(self, trainer: Trainer) -> None:
        if self._begun is not None and self._bound().private is not None:
            self._begun.detach()
            self._bound().private = None
            trainer.accumulate_grad_batches = self._accumulated

    def _bound(self) -> Any:
        return self._batches

    def _folder(self, trainer: Trainer) -> Path:
        return Path(trainer.default_root_dir) / "_privacy" if self._directory is None else self._directory


def _trained(pl_module: LightningModule, name: str | None) -> nn.Module:
    trained: nn.Module = pl_module if name is None else pl_module.get_submodule(name)
    return trained


def _check_trainer(trainer: Trainer) -> None:
    """Refuse settings of a trainer that break the guarantee, each by its name."""
    if trainer.gradient_clip_val:
        remedy = "noisy gradients are not clipped a second time; pass PrivacyArguments(max_grad_norm=...)"
        _check.refuse("gradient_clip_val", "be left out", trainer.gradient_clip_val, remedy)
    if type(trainer.strategy) is not SingleDeviceStrategy or trainer.world_size > 1:
        remedy = "train on one device, or in a loop of your own with DPDDP"
        _check.refuse_type("strategy", "run on one device", trainer.strategy, remedy)
    if any(isinstance(callback, GradientAccumulationScheduler) for callback in trainer.callbacks):
        remedy = "pass Trainer(accumulate_grad_batches=...), which says how large a step's batch is"
        _check.refuse_state(
            "callbacks",
            "accumulate as many batches in every epoch",
            "a GradientAccumulationScheduler changes how many batches make a step",
            remedy,
        )
    if any(isinstance(callback, LearningRateFinder | BatchSizeFinder) for callback in trainer.callbacks):
        remedy = "choose settings on public data, or pay for the search with sfumato.learning.tune"
        _check.refuse_state(
            "callbacks",
            "not choose settings by measuring private rows",
            "a LearningRateFinder or BatchSizeFinder measures them",
            remedy,
        )
    if str(trainer.precision).startswith("16"):
        remedy = "gradient scalers change what is clipped: use 'bf16-mixed'"
        _check.refuse("precision", "be 32 bits or bfloat16", trainer.precision, remedy)


def _check_module(pl_module: LightningModule, name: str | None) -> None:
    """Refuse modules whose steps are not one backward of one loss."""
    kind = type(pl_module)
    if not pl_module.automatic_optimization:
        _check.refuse("automatic_optimization", "be on", False, "use PrivacyEngine in a loop of your own")
    for hook in ("configure_gradient_clipping", "optimizer_step", "optimizer_zero_grad", "backward"):
        if getattr(kind, hook) is not getattr(LightningModule, hook):
            remedy = "the private step takes its place"
            _check.refuse_state("module", f"not override {hook}", f"{kind.__name__} overrides it", remedy)
    if name is None and kind.forward is LightningModule.forward:
        remedy = "define forward() and call self(...), or pass module= the submodule's name"
        rule = "have a forward that training_step calls"
        _check.refuse_state("module", rule, f"{kind.__name__} has none of its own", remedy)
