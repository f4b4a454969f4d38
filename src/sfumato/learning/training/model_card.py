"""The privacy card of a run."""

from __future__ import annotations

from importlib.metadata import version

import torch

from sfumato import _check
from sfumato.learning.reports.card import PrivacyCard, public_sampling
from sfumato.learning.sampling.epoch_sampler import EpochSampler
from sfumato.learning.sampling.sampler import Sampler
from sfumato.learning.sampling.users import UserRecordsSampler, UserSampler
from sfumato.learning.training.identity import sampler_kind
from sfumato.learning.training.setup.assembly import RunParts
from sfumato.numerics.decimals import outward

__all__ = ["card_of"]


def card_of(parts: RunParts, *, delta: float, unit: str | None) -> PrivacyCard:
    """Return the card of a run as it stands; of the whole run that was charged, where there is a ledger."""
    run, reservation = parts.run, parts.reservation
    whole = run.steps.durable
    if whole and reservation.run is None:
        remedy = "call card() where the ledger is"
        _check.refuse_state("card", "be requested in the first process", "this process is another", remedy)
    loss = run.loss_of(run.sampler.steps) if whole else run.loss_so_far()
    steps = run.sampler.steps if whole else run.cursor
    if unit is None:
        unit = "user" if isinstance(run.sampler, UserSampler | UserRecordsSampler) else "example"
    ledger: dict[str, str | int] = {}
    epsilon = loss.epsilon(delta)
    if whole and reservation.run is not None:
        # A charge is at least the decimal that the float is written as.
        epsilon = min(outward(epsilon), reservation.run.epsilon_charged(steps=steps, delta=delta))
    if reservation.ledger is not None and reservation.run is not None:
        ledger = {
            "id": reservation.run.ledger_id,
            "run": reservation.run.number,
            "privacy_unit": reservation.ledger.privacy_unit,
        }
    return PrivacyCard(
        epsilon=epsilon,
        delta=delta,
        neighboring=run.neighboring,
        unit=unit,
        loss=loss,
        steps=steps,
        sampler=sampler_kind(run.sampler),
        sampling=public_sampling(run.sampler),
        participation=_max_participation(run.sampler, steps) + run.foreign_steps,
        noise=parts.identity.noise,
        noise_multiplier=run.noise_multiplier,
        clipping=parts.identity.clipping,
        float_safe=run.noise.float_safe,
        simulated=run.simulated,
        foreign_steps=run.foreign_steps,
        ledger=ledger,
        software={"sfumato": version("sfumato"), "torch": str(torch.__version__)},
    )


def _max_participation(sampler: Sampler, steps: int) -> int:
    """Return the most steps, of the first so many, that one unit is in."""
    if isinstance(sampler, EpochSampler):
        return sampler.epochs(steps)
    if isinstance(sampler, UserSampler | UserRecordsSampler):
        return steps
    return sampler.participation.max_steps(steps)
