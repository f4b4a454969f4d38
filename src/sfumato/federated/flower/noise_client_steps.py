"""The client's side of Flower with distributed noise: it counts what its rounds cost, and stops in time."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from sfumato import _check
from sfumato._wire import parse
from sfumato.federated.distributed_noise.mechanism import DistributedMechanism
from sfumato.federated.flower.client_steps import ClientLimits, take_step
from sfumato.federated.flower.noisy_changes import read_noise, round_loss
from sfumato.federated.secure_aggregation.parameters import SecureAggregation
from sfumato.privacy.catalog import loss_from_json
from sfumato.privacy.loss import PrivacyLoss

__all__ = ["NoiseLimits", "answer_with_noise"]

Change = Callable[[], NDArray[np.float64]]
"""Trains, and returns how all parameters changed."""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class NoiseLimits:
    """What a client takes part in, and what all its rounds may cost.

    Parameters
    ----------
    rounds : ClientLimits
    epsilon, delta : float
        Of all rounds together; a round that would exceed them is refused.
    colluders : int
        So many other clients may collude with the server, as this client believes.
    """

    rounds: ClientLimits
    epsilon: float
    delta: float
    colluders: int

    def check(self, plan: SecureAggregation, noise: DistributedMechanism, spent: str) -> PrivacyLoss:
        """Return the loss of this round and the earlier ones, or refuse the round."""
        loss = round_loss(plan, noise, self.colluders)
        total = loss_from_json(spent) + loss if spent else loss
        if total.epsilon(self.delta) > self.epsilon:
            rule = f"leave this client's rounds within epsilon {self.epsilon} at delta {self.delta}"
            _check.refuse_state("a round", rule, "it does not", "plan more noise, or fewer rounds")
        return total


def answer_with_noise(
    limits: NoiseLimits, state: Mapping[str, Any], request: Mapping[str, Any], change: Change
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the reply to a request of the workflow, and the state that takes the old one's place.

    Parameters
    ----------
    limits : NoiseLimits
    state : mapping
        What the last call returned; empty at first.
    request : mapping
        ``step`` and what it needs.
    change : callable
        Called in the step of vectors only.

    Returns
    -------
    tuple of dict
        The reply, and the state, in which a round is charged from its vector on, whatever becomes of it.

    Raises
    ------
    ParameterError
        If the request is malformed, out of order, or beyond the client's limits; the state stands.
    """
    step, spent = request.get("step"), str(state.get("spent", ""))
    if step == "keys":  # no key exists before the noise is found to be enough
        plan = SecureAggregation.from_json(parse("plan", str(request.get("plan"))))
        text, seed = str(request.get("noise")), request.get("seed")
        if not isinstance(seed, bytes) or not seed:
            _check.refuse_type("seed", "be public bytes", seed, "use the workflow of this version")
        following = limits.check(plan, read_noise(text), spent).to_json()
        held: dict[str, Any] = {"noise": text, "seed": seed, "following": following}
    else:
        held = {name: state[name] for name in ("noise", "seed", "following") if name in state}

    def vector() -> NDArray[np.int64]:
        return read_noise(held["noise"]).encode(change(), held["seed"])

    reply, after = take_step(limits.rounds, state, request, vector)
    if step == "vector":
        spent = held["following"]
    return reply, {**after, **held, "spent": spent}
