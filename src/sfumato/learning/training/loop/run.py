"""One run of private training: its logical batch, what a step releases, and what that has lost so far."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from typing import Any, final

from torch import Tensor

from sfumato import _check
from sfumato.learning.clipping.clipping import Clipping
from sfumato.learning.engine.engine import Engine
from sfumato.learning.noise.noise import Noise
from sfumato.learning.sampling.independent import IndependentSampler
from sfumato.learning.sampling.sampler import Sampler
from sfumato.learning.training.distributed.ranks import Ranks
from sfumato.learning.training.distributed.shards import Shards
from sfumato.learning.training.loop.data_free import DataFreeRows
from sfumato.learning.training.loop.foreign_steps import admit_foreign
from sfumato.learning.training.loop.forward_checks import ForwardChecks
from sfumato.learning.training.loop.logical_batch import BatchReuseCheck, LogicalBatch, empty_sums
from sfumato.learning.training.loop.private_loader import GivenBatch
from sfumato.learning.training.loop.run_loss import priced
from sfumato.learning.training.loop.schedules import ScheduledClipping, Schedules
from sfumato.learning.training.loop.step_digest import StepDigest
from sfumato.learning.training.loop.steps import CountedSteps, Steps
from sfumato.privacy.loss import PrivacyLoss
from sfumato.privacy.neighboring import Neighboring

__all__ = ["TrainingRun", "Watcher"]

Watcher = Callable[[Sequence[int], Tensor], None]


@final
class TrainingRun:
    """What the loader, the optimizer and the engine of one run share.

    Parameters
    ----------
    engine : Engine
        Attached to the module.
    sampler : Sampler
    noise : Noise
    noise_multiplier : float
        Relative to the clipping's sensitivity.
    mean : bool
        Whether gradients are divided by the expected batch size, or are sums.
    ranks : Ranks
    shards : Shards
        What this process holds of the parameters.
    digest : Digest, optional
        Of what a step computes, where steps are replayed.
    schedules : Schedules, optional
        How noise and clip norm change by step.

    Notes
    -----
    Guarantee: `loss_so_far`, for the released gradients and all that is computed from them. Conditions:
    those of the sampler, the clipping and the noise; every use of examples that is released goes through
    the module's gradients; the number of steps does not follow from the data, or the whole run was reserved.
    """

    def __init__(
        self,
        *,
        engine: Engine,
        sampler: Sampler,
        noise: Noise,
        noise_multiplier: float,
        mean: bool,
        ranks: Ranks,
        shards: Shards,
        digest: StepDigest | None = None,
        schedules: Schedules | None = None,
    ) -> None:
        self.scheduled = ScheduledClipping(engine, schedules or Schedules())
        self._engine, self._sampler, self._noise = engine, sampler, noise
        self._noise_multiplier = noise_multiplier
        self._steps: Steps = CountedSteps(planned=sampler.steps)
        self._cursor = self._foreign_steps = self._released = 0
        self._ranks, self._shards = ranks, shards
        self._watchers: list[Watcher] = []
        self._mean, self._digest = mean, digest
        self._batch = LogicalBatch()
        self._data_free = DataFreeRows(engine, ranks)
        self._alone: dict[str, Tensor] | None = None
        self._checks = ForwardChecks()
        self._reuse = BatchReuseCheck(self._batch.__contains__, lambda: self._data_free.open)

    @property
    def engine(self) -> Engine:
        """What clips each example's gradient."""
        return self._engine

    @property
    def sampler(self) -> Sampler:
        """What draws the batches."""
        return self._sampler

    @property
    def noise(self) -> Noise:
        """What draws the noise."""
        return self._noise

    @property
    def noise_multiplier(self) -> float:
        """A step's standard deviation over the clipping's sensitivity, before its schedule."""
        return self._noise_multiplier

    @property
    def schedules(self) -> Schedules:
        """How noise and clip norm change by step."""
        return self.scheduled.schedules

    @property
    def steps(self) -> Steps:
        """Who numbers the steps."""
        return self._steps

    @property
    def cursor(self) -> int:
        """One more than the highest step that has drawn noise."""
        return self._cursor

    @property
    def foreign_steps(self) -> int:
        """How many steps were on batches that did not come from the run's loader."""
        return self._foreign_steps

    @property
    def released(self) -> int:
        """How many steps have drawn noise in this process."""
        return self._released

    @property
    def ranks(self) -> Ranks:
        """The processes that train together."""
        return self._ranks

    @property
    def shards(self) -> Shards:
        """What this process holds of the parameters."""
        return self._shards

    def watch(self, watcher: Watcher) -> None:
        """Have a function called before each step's noise, with its numbers and its examples' norms.

        Parameters
        ----------
        watcher : callable
            The curator's: norms follow from private rows.
        """
        self._watchers.append(watcher)

    @property
    def mean(self) -> bool:
        """Whether gradients are divided by the expected batch size."""
        return self._mean

    def data_free(self, rows: int) -> AbstractContextManager[None]:
        """Take the module's forwards as of rows that hold no data; see `PrivacyEngine.data_free`.

        Parameters
        ----------
        rows : int
            A public number.
        """
        return self._data_free.of(rows, complete=self._batch.ended)

    def take_module(self) -> None:
        """Take the module's parameters, and look from now on at what its forwards are called with."""
        self._shards.take()
        self._reuse.watch(self._engine.module)
        self._checks.watch(self._engine.module)

    def attach_engine(self) -> None:
        """Attach the engine to the module, whose parameters it must see whole."""
        self._shards.whole()
        self._engine.attach()
        self._shards.apart()

    def release_module(self) -> None:
        """Give the module back as it was: the run has ended."""
        self._engine.detach()
        self._shards.release()
        self._reuse.release()
        self._checks.release()

    def begin(self, steps: Steps) -> None:
        """Have steps numbered otherwise than by this process alone, before the first one.

        Parameters
        ----------
        steps : int
            How many steps.
        """
        if self._cursor or self._released:
            rule = "be numbered by one ledger from the first on"
            _check.refuse_state("steps", rule, f"{self._cursor} were already taken", "begin another run")
        self._steps = steps

    def go_on(self, *, cursor: int, foreign_steps: int, clip_norm: float | None = None) -> None:
        """Count the steps of a checkpoint beside those that were run here.

        Parameters
        ----------
        cursor, foreign_steps : int
            As in the checkpoint; neither count ever becomes less.
        clip_norm : float, optional
            Of the next step, where clipping adapts.
        """
        if clip_norm is not None and self.clipping.adapts:
            clipping: Any = self.clipping
            self.engine.clipping = replace(clipping, clip_norm=clip_norm)
        self._cursor = max(self._cursor, cursor)
        self._foreign_steps = max(self._foreign_steps, foreign_steps)

    def restart(self) -> None:
        """Forget batches that were given and not stepped with: a rewound one would be in a sum twice."""
        self._batch.restart()
        if self.engine.attached:
            self.engine.forget()

    def give(self, given: GivenBatch, batch: Any = None) -> None:
        """Learn of a batch that is about to be used, and clip as its step does."""
        self._batch.give(given)
        self.scheduled.clip(given.step, pending=self._batch.begun or self.engine.pending)
        self._reuse.note(given.step, batch)

    def forget(self) -> None:
        """Drop gradients that were computed since the last step was asked for, as `zero_grad` does."""
        self._batch.forget(self.engine.forget() if self.engine.attached else 0)

    def ready(self) -> bool:
        """Take in what was computed; return whether the last logical batch is whole, for a step."""
        self._alone = self._data_free.alone()
        if self._alone is not None:
            return True
        fresh = self._batch.take_fresh()
        attached = self.engine.attached
        sums = self.engine.clipped_sums() if attached else empty_sums(self._shards, self.clipping)
        self._data_free.take()
        foreign = not fresh and not self._batch.begun and sums.examples > 0
        if not foreign:
            self._batch.match(fresh, sums.examples)
        self._batch.add(sums)
        if foreign:
            if self.steps.durable:
                self._batch.drop()
            admit_foreign(self.steps, self.noise, self.schedules, first=not self.foreign_steps)
            self._foreign_steps += 1
            return True
        if not self._batch.begun:
            remedy = "iterate over the loader that make_private returned"
            rule = "come after a batch"
            _check.refuse_state("step", rule, "no batch was taken since the last step", remedy)
        return self._batch.complete

    def gradients(self) -> dict[str, Tensor] | None:
        """Return the noisy gradients of the batches since the last step; None to leave the step out.

        Of parameters that are cut up, what belongs to this process's part.

        Each logical batch gets noise of its own, under its own number: two that are accumulated are two
        steps, of which one example may be in both. A step on rows that hold no data alone gets none.
        """
        if self._alone is not None:
            return self._alone
        self._batch.refuse_fork()
        numbers = self._batch.numbers if self._batch.begun else [self.steps.take()]
        sums, norms = self._batch.take_sums()
        if len(numbers) > 1 and self.clipping.adapts:
            # One count, of which an example would be in two.
            remedy = "make a step for each, or use max_physical_batch_size"
            rule = "not be accumulated with clipping that adapts"
            _check.refuse_state("batches", rule, f"{len(numbers)} were", remedy)
        if not self._ranks.alike([*numbers, self.foreign_steps], next(iter(sums.values())).device):
            # One sum would be of several samples, with some examples twice, and get several noises.
            remedy = "begin again, and take a batch in all processes or in none"
            rule = "belong to the same step in all processes"
            _check.refuse_state("batch", rule, "the processes are at different steps", remedy)
        self._ranks.sum_(sums.values())
        if self.steps.needs_digest and self._digest is not None:
            # Deviations too: one noise at two scales on one sum reveals the sum.
            multiplier = self.schedules.multiplier(self.noise_multiplier, numbers[0])
            scale = {"clipping": self.scheduled.document(), "noise_multiplier": multiplier}
            if not self._digest.confirmed(self.steps, numbers, [*sums.values(), norms], scale):
                return None
        for watch in self._watchers:
            watch(numbers, norms)
        sums = self._noisy(sums, numbers)
        self._adapt(norms, numbers[-1])
        self.scheduled.stepped()
        self._cursor, self._released = max(self._cursor, numbers[-1] + 1), self._released + len(numbers)
        if self._mean:
            divisor = self.sampler.expected_batch_size * len(numbers)
            for total in sums.values():
                total.div_(divisor)
        self._data_free.add_to(sums)
        return sums

    def _noisy(self, sums: dict[str, Tensor], numbers: Iterable[int]) -> dict[str, Tensor]:
        """Return this process's parts of the sums, each entry with the noise that it has in the whole."""
        runs, parts = self._shards.own(sums)
        if self.noise_multiplier:
            sizes = [part.whole for part in parts]
            for number in numbers:
                multiplier = self.schedules.multiplier(self.noise_multiplier, number)
                stddevs = self.scheduled.stddevs(multiplier, list(sums), sizes)
                self.noise.add_(runs, step=number, stddevs=stddevs, parts=parts)
        return dict(zip(sums, runs, strict=True))

    def _adapt(self, norms: Tensor, number: int) -> None:
        after = self.clipping.after(
            self._ranks.gathered(norms).square(),
            noise_multiplier=self.schedules.multiplier(self.noise_multiplier, number),
            expected_batch_size=self.sampler.expected_batch_size,
            step=number,
            noise=self.noise,
        )
        if after is not self.clipping:
            self.engine.clipping = after

    @property
    def clipping(self) -> Clipping:
        """How the next step clips."""
        return self.engine.clipping

    @property
    def adapted_norm(self) -> float | None:
        """The clip norm of the next step where clipping adapts, which follows from releases; else None."""
        return getattr(self.clipping, "clip_norm", None) if self.clipping.adapts else None

    @property
    def simulated(self) -> bool:
        """Whether batches or noise follow from a number, and protect nobody."""
        return self.noise.simulated or self.sampler.simulated

    @property
    def neighboring(self) -> Neighboring:
        """Under which relation the run is priced."""
        return Neighboring.ZERO_OUT if self.foreign_steps else self.sampler.neighboring

    def loss_of(self, steps: int) -> PrivacyLoss:
        """Return the loss of the first steps, on batches of the sampler.

        Parameters
        ----------
        steps : int
            How many of the first steps.

        Returns
        -------
        PrivacyLoss
        """
        entries = sum(p.numel() for p in self.engine.module.parameters() if p.requires_grad)
        by, multiplier, schedule = self._priced_by, self.noise_multiplier, self.schedules.noise
        return priced(self.noise, by, multiplier, steps, entries=entries, schedule=schedule)

    @property
    def _priced_by(self) -> Sampler:
        """The sampler, under the run's relation."""
        if self.foreign_steps and isinstance(self.sampler, IndependentSampler):
            return self.sampler.zeroing_out()
        return self.sampler

    def loss_so_far(self) -> PrivacyLoss:
        """Return the loss of the steps up to the last that drew noise, and of those on foreign batches.

        Steps on foreign batches are whole Gaussians, under zero-out, as then all of the run is.

        Returns
        -------
        PrivacyLoss
        """
        own = self.loss_of(self.cursor)
        if not self.foreign_steps:
            return own
        entries = sum(p.numel() for p in self.engine.module.parameters() if p.requires_grad)
        charged = self.noise.charged(self.noise_multiplier, entries)
        return own + self._priced_by.step_loss(charged) * self.foreign_steps

    def epsilon(self, delta: float) -> float:
        """Return what the run has spent so far at a delta, rounded up.

        Parameters
        ----------
        delta : float
            Where epsilon is read.

        Returns
        -------
        float
        """
        delta = _check.unit_interval("delta", delta, "use 1e-5, say: below one over the number of examples")
        return 0.0 if not self.cursor else self.loss_so_far().epsilon(delta)
