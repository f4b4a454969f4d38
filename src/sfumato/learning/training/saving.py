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
from sfumato.learning.training.checkpoint import Checkpoint, Place, write_secrets
from sfumato.learning.training.pricing import check_fresh
from sfumato.learning.training.reserving import sealing_key
from sfumato.learning.training.shards import gathered
from sfumato.learning.training.wiring import Wired
from sfumato.ledger.ledger import Ledger

__all__ = ["load", "save"]


def save(
    wired: Wired,
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
    run, booking = wired.run, wired.booking
    weights = gathered((wired.module if module is None else module).state_dict())
    state = gathered((wired.optimizer if optimizer is None else optimizer).state_dict())
    if not run.ranks.first:
        return
    place = place_of(wired)
    checkpoint = Checkpoint(
        plan=wired.plan,
        cursor=run.cursor,
        foreign_steps=run.foreign_steps,
        place=place,
        module=weights,
        optimizer=state,
        random_state=torch.get_rng_state(),
        extra=dict(extra),
    )
    secret = getattr(run.noise, "key", None)
    if place is not None and isinstance(secret, bytes) and not run.simulated:
        key = sealing_key(booking.key_file, booking.ledger, make=True)
        write_secrets(path, key, place, noise=secret, seed=Seed.of(run.sampler.seed).reveal())
    checkpoint.write(path, **options)


def load(
    wired: Wired,
    path: str | os.PathLike[str],
    *,
    module: nn.Module,
    optimizer: Optimizer | None,
    options: Mapping[str, Any],
) -> dict[str, Any]:
    """Load a checkpoint into a run without a ledger that has not begun; return what else was kept in it."""
    run = wired.run
    if run.steps.durable:
        _check.refuse("run", "have no ledger", "one that was charged", "pass resume_from= to make_private")
    if run.cursor:
        _check.refuse("run", "not have begun", f"{run.cursor} steps", "load before the first step")
    kept = Checkpoint.read(path, **options)
    kept.plan.require(wired.plan)
    check_fresh(run.noise, run.sampler, kept.cursor)
    kept.restore(module, optimizer)
    run.go_on(cursor=kept.cursor, foreign_steps=kept.foreign_steps)
    run.steps.skip(kept.cursor)
    return kept.extra


def place_of(wired: Wired) -> Place | None:
    """Return where the run stands on its ledger."""
    run, ledger = wired.booking.run, wired.booking.ledger
    if run is None or ledger is None:
        return None
    # Where the whole chain stands is the curator's to know.
    head = ledger.head() if isinstance(ledger, Ledger) else None
    claimed = run.claimed
    return Place(
        ledger=run.ledger_id,
        run=run.number,
        digest=run.digest,
        claimed=claimed,
        head=None if head is None else (head.position, head.digest),
        record=run.record(claimed),
    )
