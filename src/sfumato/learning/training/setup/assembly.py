"""Putting a run together: engine, sampler, noise, steps, loader and optimizer, from what a user passes."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
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
from sfumato.learning.engine.engine import Engine, Reduction
from sfumato.learning.noise.noise import Noise
from sfumato.learning.noise.single_use_keys import bind_to_run
from sfumato.learning.sampling.sampler import Sampler
from sfumato.learning.training.checkpoint.checkpoint import Checkpoint, RunIdentity
from sfumato.learning.training.checkpoint.reservation import Reservation
from sfumato.learning.training.distributed.data_parallel import inner_module, is_together
from sfumato.learning.training.distributed.ranks import Ranks
from sfumato.learning.training.distributed.shards import Shards
from sfumato.learning.training.identity import clipping_to_json, noise_to_json, sampler_to_json
from sfumato.learning.training.loop.logical_batch import BatchReuseCheck
from sfumato.learning.training.loop.private_loader import PrivateLoader
from sfumato.learning.training.loop.private_optimizer import (
    check_optimizer,
    make_optimizer_private,
    restore_optimizer,
)
from sfumato.learning.training.loop.run import TrainingRun
from sfumato.learning.training.loop.run_loss import check_fresh
from sfumato.learning.training.loop.schedules import Schedules
from sfumato.learning.training.loop.step_digest import StepDigest
from sfumato.learning.training.setup import arguments, batches
from sfumato.learning.training.setup.deferred_self_test import attach_after_test
from sfumato.learning.training.setup.module_copies import copy_with_all, copy_without_run
from sfumato.learning.training.setup.options import (
    GradientOptions,
    NoiseOptions,
    RecordOptions,
    SamplingOptions,
)

__all__ = ["Assembly", "RunParts"]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class RunParts:
    """The parts of a run."""

    module: nn.Module
    optimizer: Optimizer
    loader: PrivateLoader
    run: TrainingRun
    reservation: Reservation
    begun_as: RunIdentity
    cancel_self_test: Callable[[], None]

    @property
    def identity(self) -> RunIdentity:
        """What must be the same when the run goes on, with the schedules that it was given since."""
        begun, schedules = self.begun_as, self.run.schedules
        return replace(
            begun,
            noise=schedules.noise_document(dict(begun.noise)),
            clipping=schedules.clipping_document(dict(begun.clipping)),
        )

    def release(self) -> None:
        """Give module and optimizer their own ways back: the run has ended."""
        self.cancel_self_test()
        self.run.release_module()
        copy_with_all(self.run.engine.module)
        restore_optimizer(self.optimizer)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Assembly:
    """The arguments of `PrivacyEngine.make_private`, which says what they are, and the run that they mean."""

    module: nn.Module
    optimizer: Optimizer
    data_loader: DataLoader[Any]
    noise_multiplier: float
    max_grad_norm: float | Sequence[float]
    criterion: Any
    batch_first: bool
    loss_reduction: Reduction
    poisson_sampling: bool
    clipping: str | Clipping
    noise_generator: torch.Generator | int | None
    grad_sample_mode: str
    sampling: SamplingOptions
    gradients: GradientOptions
    noise: NoiseOptions
    record: RecordOptions

    def __post_init__(self) -> None:
        object.__setattr__(self, "data_loader", batches.public_part(self.data_loader, self.sampling))

    def assembled(self) -> RunParts:
        """Check everything, charge the ledger, and only then change module and optimizer."""
        multiplier = _check.non_negative("noise_multiplier", self.noise_multiplier)
        module: object = self.module
        _check.instance("module", module, nn.Module, "pass a torch.nn.Module")
        ranks = Ranks(together=is_together(self.module))
        inner = self._checked_module()
        reservation = self._reservation(ranks)
        resume_from = self.record.resume_from
        saved = None if resume_from is None else Checkpoint.read(resume_from)
        key, seed = ranks.share(self._secrets(reservation, saved))
        sampler = self._sampler(seed)
        noise = arguments.noise_for_run(self.noise, sampler, seed=self._seed, key=key)
        engine = self._engine(inner)
        schedules = Schedules(noise=self.noise.schedule, clip_norm=self.gradients.clip_schedule)
        schedules.check(noise, sampler, engine.clipping, multiplier)
        identity = RunIdentity(
            noise_multiplier=multiplier,
            noise=schedules.noise_document(noise_to_json(noise)),
            clipping=schedules.clipping_document(clipping_to_json(engine.clipping)),
            sampler=sampler_to_json(sampler),
            simulated=noise.simulated,
        )
        self._check_alike(ranks, identity)
        if saved is not None:
            self._check_resumed(saved, identity, noise, sampler, ranks)
        run = TrainingRun(
            engine=engine,
            sampler=sampler,
            noise=noise,
            noise_multiplier=multiplier,
            mean=self.loss_reduction == "mean",
            ranks=ranks,
            shards=Shards(inner),
            digest=StepDigest(key, inner, sampler) if self.record.replayable else None,
            schedules=schedules,
        )
        run.begin(reservation.begin(run) if saved is None else reservation.resume(saved, run))
        bind_to_run(reservation.owner, noise=noise, sampler=sampler)
        loader = self._loader(run)
        run.scheduled.steps_per_epoch = len(loader)
        return RunParts(
            module=self.module,
            optimizer=self.optimizer,
            loader=loader,
            run=run,
            reservation=reservation,
            begun_as=identity,
            cancel_self_test=self._attach(run, saved),
        )

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
        if any(isinstance(getattr(hook, "__self__", None), Engine | BatchReuseCheck) for hook in hooks):
            remedy = "call detach() of that engine first"
            _check.refuse_state("module", "belong to one run", "an engine is attached to it", remedy)
        ModuleValidator.validate(inner, strict=True)
        return inner

    @property
    def _seed(self) -> int | None:
        """The number that a simulation is drawn from; None for noise that protects."""
        return arguments.seed_of(self.noise_generator)

    def _reservation(self, ranks: Ranks) -> Reservation:
        record = self.record
        if record.replayable and (workers := self.data_loader.num_workers):
            remedy = "load batches in this process"
            _check.refuse("num_workers", "be 0 where steps are replayable", workers, remedy)
        return Reservation(
            ledger=record.ledger,
            delta=record.delta,
            description=record.description,
            key_file=None if record.key_file is None else Path(record.key_file),
            replay=record.replayable,
            ranks=ranks,
        )

    def _sampler(self, seed: bytes) -> Sampler:
        simulated = self._seed
        planned = batches.steps_of(self.data_loader, self.sampling)
        if planned is None and self.record.ledger is not None:
            _check.refuse("epochs", "be given where a ledger is charged", None, "pass epochs= or steps=")
        return batches.sampler_for(
            self.data_loader,
            self.sampling,
            poisson=self.poisson_sampling,
            steps=planned,
            seed=seed if simulated is None else simulated,
        )

    def _engine(self, module: nn.Module) -> Engine:
        gradients, views = self.gradients, self.sampling.views
        return Engine(
            module,
            arguments.clipping_for(self.clipping, self.max_grad_norm, module),
            loss_reduction=self.loss_reduction,
            mode=arguments.mode_for(self.grad_sample_mode),
            memory=gradients.memory,
            chunk=gradients.chunk,
            views=1 if views is None else views.count,
            loss_scale=gradients.loss_scale,
            batch_dim=0 if self.batch_first else 1,
        )

    def _check_alike(self, ranks: Ranks, identity: RunIdentity) -> None:
        """Refuse processes that were given other arguments."""
        more = {"loss_reduction": self.loss_reduction, "loss_scale": self.gradients.loss_scale}
        ranks.require_alike(identity.to_json() | more)

    def _check_resumed(
        self, saved: Checkpoint, identity: RunIdentity, noise: Noise, sampler: Sampler, ranks: Ranks
    ) -> None:
        """Refuse to go on otherwise than the checkpoint's run began."""
        saved.identity.require(identity)
        saved.require_shapes(self.module, self.optimizer)
        if not ranks.share(self.record.ledger is not None):
            check_fresh(noise, sampler, saved.cursor)

    def _secrets(self, reservation: Reservation, saved: Checkpoint | None) -> tuple[bytes, bytes]:
        """Return the noise key and the seed: those of the checkpoint's run if it goes on, or fresh ones."""
        resume_from, real = self.record.resume_from, self._seed is None
        known = self.record.ledger is not None and real and reservation.ranks.first
        if saved is not None and resume_from is not None and known:
            return reservation.saved_secrets(os.fspath(resume_from), saved)
        return os.urandom(32), os.urandom(32)

    def _loader(self, run: TrainingRun) -> PrivateLoader:
        data_loader, sampling = self.data_loader, self.sampling
        loader = PrivateLoader(
            data_loader,
            sampler=run.sampler,
            steps=run.steps,
            receiver=run,
            ranks=run.ranks,
            steps_per_epoch=batches.epoch_of(data_loader, sampling.population).steps,
            views=sampling.views,
        )
        loader.limit(sampling.max_physical_batch_size)
        return loader

    def _attach(self, run: TrainingRun, saved: Checkpoint | None) -> Callable[[], None]:
        """Change module and optimizer, which from here on are the run's; return what ends its test."""
        engine, cancel = run.engine, _nothing
        run.take_module()
        copy_without_run(engine.module)
        if saved is not None:
            saved.restore(self.module, self.optimizer)
            torch.set_rng_state(saved.random_state)
            run.go_on(cursor=saved.cursor, foreign_steps=saved.foreign_steps, clip_norm=saved.clip_norm)
        if self.gradients.self_test:
            watch_criterion(self.criterion, loss_reduction=self.loss_reduction)
            cancel = attach_after_test(
                engine.module,
                engine,
                loss_reduction=self.loss_reduction,
                mode=arguments.mode_for(self.grad_sample_mode),
                random_batch=self.gradients.random_batch,
            )
        else:
            run.attach_engine()
        make_optimizer_private(self.optimizer, run, max_grad_norm=self.max_grad_norm)
        return cancel


def _nothing() -> None:
    """End no test."""
