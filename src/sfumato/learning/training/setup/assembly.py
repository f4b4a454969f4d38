"""Putting a run together: engine, sampler, noise, steps, loader and optimizer, from what a user passes."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, final

import torch
from torch import nn
from torch.optim import Optimizer
from torch.utils.data import DataLoader

from sfumato import _check
from sfumato.learning.checks.criterion import check_criterion, watch_criterion
from sfumato.learning.checks.validator import ModuleValidator
from sfumato.learning.clipping.clipping import Clipping
from sfumato.learning.engine.engine import Engine, Mode, Reduction
from sfumato.learning.noise.noise import Noise
from sfumato.learning.noise.single_use_keys import bind_to_run
from sfumato.learning.recipes.augmentation import Views
from sfumato.learning.sampling.sampler import Sampler
from sfumato.learning.training.checkpoint.checkpoint import Checkpoint, RunIdentity
from sfumato.learning.training.checkpoint.reservation import Reservation
from sfumato.learning.training.distributed.data_parallel import inner_module, is_together
from sfumato.learning.training.distributed.ranks import Ranks
from sfumato.learning.training.distributed.shards import Shards
from sfumato.learning.training.identity import clipping_to_json, noise_to_json, sampler_to_json
from sfumato.learning.training.loop.private_loader import PrivateLoader
from sfumato.learning.training.loop.private_optimizer import check_optimizer, make_stepping_private
from sfumato.learning.training.loop.run import TrainingRun
from sfumato.learning.training.loop.run_loss import check_fresh
from sfumato.learning.training.loop.step_digest import StepDigest
from sfumato.learning.training.setup import arguments, batches
from sfumato.learning.training.setup.deferred_self_test import attach_after_test
from sfumato.ledger.ledger import Ledger
from sfumato.ledger.view import LedgerView

__all__ = ["Assembly", "PrivateRun"]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class PrivateRun:
    """The parts of a run."""

    module: nn.Module
    optimizer: Optimizer
    loader: PrivateLoader
    run: TrainingRun
    booking: Reservation
    identity: RunIdentity


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Assembly:
    """The arguments of `PrivacyEngine.make_private`, which says what they mean."""

    module: nn.Module
    optimizer: Optimizer
    data_loader: DataLoader[Any]
    population: int | None
    noise_multiplier: float
    max_grad_norm: float | Sequence[float]
    criterion: Any
    batch_dim: int
    loss_reduction: Reduction
    poisson_sampling: bool
    clipping: str | Clipping
    seed: int | None
    float_safe: bool
    mode: Mode
    ledger: Ledger | LedgerView | None
    epochs: int | None
    steps: int | None
    delta: float | None
    description: str
    sampler: Callable[..., Sampler] | None
    noise: Callable[..., Noise] | None
    max_physical_batch_size: int | None
    memory: int | None
    chunk: int | None
    views: Views | None
    loss_scale: float
    self_test: bool
    replayable: bool
    resume_from: str | os.PathLike[str] | None
    key_file: str | os.PathLike[str] | None

    def wired(self) -> PrivateRun:
        """Check everything, charge the ledger, and only then change module and optimizer."""
        multiplier = _check.non_negative("noise_multiplier", self.noise_multiplier)
        self._check_kinds()
        together = is_together(self.module)
        inner = self._checked_module()
        booking = Reservation(
            ledger=self.ledger,
            delta=None if self.delta is None else _check.unit_interval("delta", self.delta),
            description=self.description,
            key_file=None if self.key_file is None else Path(self.key_file),
            replay=self.replayable,
            ranks=Ranks(together=together),
        )
        kept = None if self.resume_from is None else Checkpoint.read(self.resume_from)
        key, seed = booking.ranks.share(self._secrets(booking, kept))
        sampler = batches.drawn_for(
            self.data_loader,
            population=self.population,
            sampler=self.sampler,
            poisson=self.poisson_sampling,
            steps=self._planned(),
            seed=seed if self.seed is None else self.seed,
        )
        noise = arguments.noise_for_run(
            self.noise, sampler, seed=self.seed, key=key, float_safe=self.float_safe
        )
        engine = Engine(
            inner,
            arguments.clipping_for(self.clipping, self.max_grad_norm, inner),
            loss_reduction=self.loss_reduction,
            mode=self.mode,
            memory=self.memory,
            chunk=self.chunk,
            views=1 if self.views is None else self.views.count,
            loss_scale=self.loss_scale,
            batch_dim=self.batch_dim,
        )
        identity = RunIdentity(
            noise_multiplier=multiplier,
            noise=noise_to_json(noise),
            clipping=clipping_to_json(engine.clipping),
            sampler=sampler_to_json(sampler),
            simulated=noise.simulated,
        )
        booking.ranks.require_alike(
            identity.to_json() | {"loss_reduction": self.loss_reduction, "loss_scale": self.loss_scale}
        )
        if kept is not None:
            kept.identity.require(identity)
            kept.require_shapes(self.module, self.optimizer)
            if not booking.ranks.share(self.ledger is not None):
                check_fresh(noise, sampler, kept.cursor)
        run = TrainingRun(
            engine=engine,
            sampler=sampler,
            noise=noise,
            noise_multiplier=multiplier,
            mean=self.loss_reduction == "mean",
            ranks=booking.ranks,
            shards=Shards(inner),
            digest=StepDigest(key, inner, sampler) if self.replayable else None,
        )
        run.begin(booking.begin(run) if kept is None else booking.resume(kept, sampler))
        bind_to_run(booking.owner, noise=noise, sampler=sampler)
        wired = PrivateRun(
            module=self.module,
            optimizer=self.optimizer,
            loader=self._loader(run),
            run=run,
            booking=booking,
            identity=identity,
        )
        self._changed(wired, kept)
        return wired

    def _check_kinds(self) -> None:
        """Refuse what is of another kind than its name says."""
        kinds: dict[str, tuple[object, tuple[type, ...], str]] = {
            "module": (self.module, (nn.Module,), "a torch.nn.Module"),
            "views": (self.views, (Views, type(None)), "Views(count=, transform=)"),
            "ledger": (
                self.ledger,
                (Ledger, LedgerView, type(None)),
                "Ledger.open(...), say",
            ),
        }
        for name, (given, allowed, told) in kinds.items():
            if not isinstance(given, allowed):
                _check.refuse(name, "be of its kind", type(given).__name__, f"pass {told}")

    def _checked_module(self) -> nn.Module:
        """Return the user's module itself, or refuse what cannot be trained so."""
        named = getattr(self.criterion, "reduction", self.loss_reduction)
        if named != self.loss_reduction:
            remedy = "pass loss_reduction as the criterion has it"
            _check.refuse("loss_reduction", f"be {named!r} as the criterion's", self.loss_reduction, remedy)
        check_criterion(self.criterion)
        inner = inner_module(self.module)
        check_optimizer(self.optimizer, [p for p in inner.parameters() if p.requires_grad])
        hooks = inner._forward_pre_hooks.values()  # noqa: SLF001
        if any(isinstance(getattr(hook, "__self__", None), Engine) for hook in hooks):
            _check.refuse("module", "belong to one run", "that of another run", "detach that engine first")
        ModuleValidator.validate(inner, strict=True)
        return inner

    def _planned(self) -> int | None:
        """Return how many steps the run has; None if nobody said."""
        planned = batches.steps_of(
            self.data_loader, population=self.population, epochs=self.epochs, steps=self.steps
        )
        if planned is None and self.ledger is not None:
            _check.refuse("epochs", "be given where a ledger is charged", None, "pass epochs= or steps=")
        return planned

    def _secrets(self, booking: Reservation, kept: Checkpoint | None) -> tuple[bytes, bytes]:
        """Return the noise key and the seed: those of the checkpoint's run if it goes on, or fresh ones."""
        resumed = kept is not None and self.ledger is not None and self.seed is None and booking.ranks.first
        if resumed and kept is not None and self.resume_from is not None:
            return booking.kept_secrets(os.fspath(self.resume_from), kept)
        return os.urandom(32), os.urandom(32)

    def _loader(self, run: TrainingRun) -> PrivateLoader:
        if self.replayable and self.data_loader.num_workers:
            remedy = "use num_workers=0"
            _check.refuse("replayable", "load in this process", self.data_loader.num_workers, remedy)
        loader = PrivateLoader(
            self.data_loader,
            sampler=run.sampler,
            steps=run.steps,
            taker=run,
            ranks=run.ranks,
            steps_per_epoch=batches.epoch_of(self.data_loader, self.population).steps,
            views=self.views,
        )
        loader.limit(self.max_physical_batch_size)
        return loader

    def _changed(self, wired: PrivateRun, kept: Checkpoint | None) -> None:
        run, engine = wired.run, wired.run.engine
        run.shards.take()
        run.seen.watch(engine.module)
        if kept is not None:
            kept.restore(self.module, self.optimizer)
            torch.set_rng_state(kept.random_state)
            run.go_on(cursor=kept.cursor, foreign_steps=kept.foreign_steps)
        if self.self_test:
            watch_criterion(self.criterion, loss_reduction=self.loss_reduction)
            attach_after_test(engine.module, engine, loss_reduction=self.loss_reduction, mode=self.mode)
        else:
            run.shards.whole()
            engine.attach()
            run.shards.apart()
        make_stepping_private(self.optimizer, run)
        vars(self.optimizer)["max_grad_norm"] = self.max_grad_norm
