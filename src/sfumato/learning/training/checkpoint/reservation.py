"""Where a run's steps are counted: on a ledger that charges them all beforehand, or in this process only."""

from __future__ import annotations

import secrets
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import final

import torch

from sfumato import _check
from sfumato.errors import LedgerCorrupt, LedgerUnavailable, NeighboringMismatch, SfumatoError
from sfumato.learning.training.checkpoint.checkpoint import Checkpoint, read_secrets
from sfumato.learning.training.checkpoint.sealing import key_file_of, read_key
from sfumato.learning.training.distributed.ranks import Ranks
from sfumato.learning.training.loop.run import TrainingRun
from sfumato.learning.training.loop.steps import CountedSteps, ReplayedSteps, ReservedSteps, Steps
from sfumato.ledger.ledger import Ledger
from sfumato.ledger.runs import Run
from sfumato.ledger.view import LedgerView
from sfumato.privacy.neighboring import Neighboring

__all__ = ["Reservation", "sealing_key"]


@final
@dataclass(slots=True, kw_only=True)
class Reservation:
    """A ledger, and what a run needs of it.

    Attributes
    ----------
    ledger : Ledger or LedgerView or None
        None counts in this process only.
    delta : float or None
        Where the run's own guarantee is read.
    description : str
    key_file : Path or None
    replay : bool
        Whether each step is claimed with a digest.
    """

    ledger: Ledger | LedgerView | None
    delta: float | None
    description: str
    key_file: Path | None
    replay: bool
    ranks: Ranks
    run: Run | None = None

    def __post_init__(self) -> None:
        if self.replay and (self.ledger is None or self.ranks.together):
            _check.refuse("replayable", "be of one process with a ledger", True, "pass ledger=")
        if self.replay and not torch.are_deterministic_algorithms_enabled():
            remedy = "call torch.use_deterministic_algorithms(True)"
            _check.refuse("replayable", "be on in deterministic mode only", True, remedy)

    def begin(self, run: TrainingRun) -> Steps:
        """Charge a run, or count it."""
        if not self.ranks.share(self.ledger is not None):
            return CountedSteps(planned=run.sampler.steps)
        self._in_first(lambda ledger: self._reserved(ledger, run))
        return self._steps(0)

    def resume(self, saved: Checkpoint, run: TrainingRun) -> Steps:
        """Go on with the next steps that nobody claimed, or, bit for bit, with the checkpoint's."""
        if not self.ranks.share(self.ledger is not None):
            warnings.warn(
                "without a ledger a run goes on with a fresh key and fresh batches: steps that were run "
                "after the checkpoint are not counted",
                UserWarning,
                stacklevel=4,
            )
            return CountedSteps(saved.cursor, planned=run.sampler.steps)
        self._in_first(lambda ledger: self._found(ledger, saved, run))
        return self._steps(saved.cursor)

    @property
    def owner(self) -> str:
        """Which run this is, the same when it goes on; every process must ask."""
        run = self.run
        own = secrets.token_hex(16) if run is None else f"{run.ledger_id} {run.number} {run.digest}"
        return str(self.ranks.share(own))

    def _in_first(self, make: Callable[[Ledger | LedgerView], Run]) -> None:
        """Have the first process find the run; what it is refused, all are."""
        refused: SfumatoError | None = None
        if self.ledger is not None and self.ranks.first:
            try:
                self.run = make(self.ledger)
            except SfumatoError as error:
                refused = error
        # The error itself may not travel: the others get its message.
        message = self.ranks.share(None if refused is None else str(refused))
        if refused is not None:
            raise refused
        if message is not None:
            raise LedgerUnavailable(f"the first process was refused: {message}")

    def _reserved(self, ledger: Ledger | LedgerView, run: TrainingRun) -> Run:
        if self.delta is None:
            remedy = "pass delta=, at most half of an (epsilon, delta) budget's"
            _check.refuse("delta", "be given where a ledger is charged", None, remedy)
        if run.neighboring is Neighboring.ZERO_OUT and ledger.neighboring is Neighboring.ADD_REMOVE:
            raise NeighboringMismatch(
                "population must be given where the ledger is about add/remove, got None: the number of "
                "examples would be taken for public; pass a public one, such as a noisy count, or charge a "
                "ledger about zero-out"
            )
        return ledger.reserve(
            run.loss_of(run.sampler.steps),
            steps=run.sampler.steps,
            delta=self.delta,
            description=self.description,
            simulated=run.simulated,
        )

    def _steps(self, start: int) -> Steps:
        if self.replay and self.run:
            return ReplayedSteps(self.run, start)
        return ReservedSteps(self.run, self.ranks)

    def _found(self, ledger: Ledger | LedgerView, saved: Checkpoint, training: TrainingRun) -> Run:
        """Return the checkpoint's run, on a ledger that still knows all that it knew then."""
        position = saved.position
        if position is None:
            rule = "be the checkpoint of a run on a ledger"
            _check.refuse_state("resume_from", rule, "its run has no ledger", "leave ledger= out")
        if ledger.ledger_id != position.ledger:
            rule = f"have the id {position.ledger}, under which the run was charged"
            _check.refuse("ledger", rule, ledger.ledger_id, "open the ledger that charged the run")
        run = ledger.run(position.run, digest=position.charge)
        # The checkpoint's word for noise and sampling is not enough: it may have been altered.
        run.require(training.loss_of, simulated=training.simulated)
        if run.claimed < position.claimed:
            raise LedgerCorrupt(
                f"ledger must hold the {position.claimed} steps that the checkpoint saw claimed, got "
                f"{run.claimed}: it was rolled back, and noise would be drawn twice; restore the latest one"
            )
        if run.record(position.claimed) != position.claims:
            raise LedgerCorrupt(
                f"ledger must hold the {position.claimed} steps as the checkpoint saw them claimed, got "
                "others: it was rolled back and went on, and noise would be drawn twice; restore the latest "
                "one"
            )
        if position.head is not None and isinstance(ledger, Ledger):
            ledger.require(*position.head)
        return run

    def saved_secrets(self, path: str, saved: Checkpoint) -> tuple[bytes, bytes]:
        """Return the noise key and the seed that were sealed with a checkpoint."""
        if saved.position is None:
            raise LedgerUnavailable("checkpoint must be of a run on a ledger, got another; leave ledger out")
        key = sealing_key(self.key_file, self.ledger, make=False)
        if saved.tag is not None:
            saved.require_authentic(key)
        return read_secrets(path, key, saved.position)


def sealing_key(key_file: Path | None, ledger: Ledger | LedgerView | None, *, make: bool) -> bytes:
    """Return the key that seals secrets: in a file that was named, or beside the ledger's."""
    if key_file is None and ledger is not None and ledger.path is not None:
        key_file = key_file_of(ledger.path)
    if key_file is None:
        raise LedgerUnavailable(
            "training key must lie in a file, got a ledger that is none; pass RecordOptions(key_file=)"
        )
    return read_key(key_file, make=make)
