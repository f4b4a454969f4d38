"""Saving a run and taking it up again."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

import torch
from torch import nn
from torch.optim import Optimizer

from sfumato import _check
from sfumato.learning.sampling.seed import Seed
from sfumato.learning.training.checkpoint.checkpoint import Checkpoint, LedgerPosition, write_secrets
from sfumato.learning.training.checkpoint.reservation import sealing_key
from sfumato.learning.training.distributed.shards import gathered
from sfumato.learning.training.loop.run_loss import check_fresh
from sfumato.learning.training.setup.assembly import RunParts
from sfumato.ledger.ledger import Ledger

__all__ = ["load", "save"]


def save(
    parts: RunParts,
    path: str | os.PathLike[str],
    *,
    module: nn.Module | None,
    optimizer: Optimizer | None,
    extra: Mapping[str, Any],
    options: Mapping[str, Any],
) -> None:
    """Write a checkpoint, and beside it the secrets that a ledger's run goes on with.

    All processes must call this; the first one writes.
    """
    run, reservation = parts.run, parts.reservation
    weights = gathered((parts.module if module is None else module).state_dict())
    state = gathered((parts.optimizer if optimizer is None else optimizer).state_dict())
    if not run.ranks.first:
        return
    position = position_of(parts)
    checkpoint = Checkpoint(
        identity=parts.identity,
        cursor=run.cursor,
        foreign_steps=run.foreign_steps,
        position=position,
        module=weights,
        optimizer=state,
        random_state=torch.get_rng_state(),
        extra=dict(extra),
        clip_norm=run.adapted_norm,
    )
    secret, key = getattr(run.noise, "key", None), None
    if position is not None and isinstance(secret, bytes) and not run.simulated:
        key = sealing_key(reservation.key_file, reservation.ledger, make=True)
        write_secrets(path, key, position, noise=secret, seed=Seed.of(run.sampler.seed).reveal())
    checkpoint.write(path, key=key, **options)


def load(
    parts: RunParts,
    path: str | os.PathLike[str],
    *,
    module: nn.Module,
    optimizer: Optimizer | None,
    options: Mapping[str, Any],
) -> dict[str, Any]:
    """Load a checkpoint into a run without a ledger that has not begun; return what else is in it."""
    run = parts.run
    if run.steps.durable:
        remedy = "pass RecordOptions(resume_from=) to make_private"
        _check.refuse_state("run", "have no ledger", "it was charged on one", remedy)
    if run.cursor:
        remedy = "load before the first step"
        _check.refuse_state("run", "not have begun", f"it has taken {run.cursor} steps", remedy)
    saved = Checkpoint.read(path, **options)
    saved.identity.require(parts.identity)
    check_fresh(run.noise, run.sampler, saved.cursor)
    saved.restore(module, optimizer)
    run.go_on(cursor=saved.cursor, foreign_steps=saved.foreign_steps, clip_norm=saved.clip_norm)
    run.steps.skip(saved.cursor)
    run.scheduled.show(saved.cursor)
    return saved.extra


def position_of(parts: RunParts) -> LedgerPosition | None:
    """Return where the run stands on its ledger."""
    run, ledger = parts.reservation.run, parts.reservation.ledger
    if run is None or ledger is None:
        return None
    # Where the whole chain stands is the curator's to know.
    head = ledger.head() if isinstance(ledger, Ledger) else None
    claimed = run.claimed
    return LedgerPosition(
        ledger=run.ledger_id,
        run=run.number,
        charge=run.digest,
        claimed=claimed,
        head=None if head is None else (head.position, head.digest),
        claims=run.record(claimed),
    )
