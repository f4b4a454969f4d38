"""The client's side of the Flower adapter without Flower: request and state in, reply and state out."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from sfumato import _check
from sfumato._wire import parse
from sfumato.federated.flower.weighted_vectors import WeightedVectors
from sfumato.federated.secure_aggregation.client import SecureAggregationClient
from sfumato.federated.secure_aggregation.client_state import client_from_bytes, client_to_bytes
from sfumato.federated.secure_aggregation.parameters import SecureAggregation

__all__ = ["ClientLimits", "Train", "answer", "take_step"]

Train = Callable[[], tuple[list[Any], int]]
"""Trains, and returns the parameters with the number of examples."""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class ClientLimits:
    """What a client takes part in, whatever the server asks for.

    Parameters
    ----------
    minimum_survivors : int
        The least number of vectors in a sum.
    minimum_degree : int
        The least number of neighbors.
    """

    minimum_survivors: int
    minimum_degree: int

    def check(self, plan: SecureAggregation, last_round: int) -> None:
        """Refuse a round that is smaller than this client allows, or whose number was used before."""
        if plan.minimum_survivors < self.minimum_survivors:
            rule = f"be at least {self.minimum_survivors}, as this client asks"
            _check.refuse("minimum_survivors", rule, plan.minimum_survivors, "sample more clients")
        if plan.neighbors < self.minimum_degree:
            rule = f"be at least {self.minimum_degree}, as this client asks"
            _check.refuse("degree", rule, plan.neighbors, "plan more neighbors")
        if plan.round_number <= last_round:
            rule = f"be above {last_round}, the last one of this client"
            _check.refuse("round_number", rule, plan.round_number, "number the rounds in ascending order")


def answer(
    limits: ClientLimits, state: Mapping[str, Any], request: Mapping[str, Any], train: Train
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the reply to a request of the workflow, and the state that takes the old one's place.

    Parameters
    ----------
    limits : ClientLimits
    state : mapping
        What the last call returned; empty at first.
    request : mapping
        ``step`` and what it needs.
    train : callable
        Called in the step of vectors only.

    Returns
    -------
    tuple of dict
        The reply, and the state.

    Raises
    ------
    ParameterError
        If the request is malformed, out of order, or below the client's limits; the state stands.
    """

    def vector() -> NDArray[np.int64]:
        encoding = WeightedVectors(
            clip_value=float(request.get("clip_value", 0)),
            levels=int(request.get("levels", 0)),
            max_weight=int(request.get("max_weight", 0)),
        )
        return encoding.encode(*train())

    return take_step(limits, state, request, vector)


def take_step(
    limits: ClientLimits,
    state: Mapping[str, Any],
    request: Mapping[str, Any],
    vector: Callable[[], NDArray[np.int64]],
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return what `answer` does, for a vector of integers that is made in the step of vectors only."""
    step, last = request.get("step"), int(state.get("last_round", -1))
    if step == "keys":
        plan = SecureAggregation.from_json(parse("plan", str(request.get("plan"))))
        limits.check(plan, last)
        client = SecureAggregationClient(plan, int(request.get("client", -1)))
        message, last = client.advertise(), plan.round_number
    else:
        held, given = state.get("client"), request.get("message")
        if not isinstance(held, bytes) or not isinstance(given, bytes) or not held:
            _check.refuse_state(
                "a request", "come in a round with a message", "it does not", "start with keys"
            )
        client = client_from_bytes(held)
        message = _step(client, str(step), given, vector)
    return {"message": message}, {"client": client_to_bytes(client), "last_round": last}


def _step(
    client: SecureAggregationClient, step: str, given: bytes, vector: Callable[[], NDArray[np.int64]]
) -> bytes:
    if step == "shares":
        return client.share(given)
    if step == "unmask":
        return client.unmask(given)
    if step != "vector":
        _check.refuse("step", "be keys, shares, vector or unmask", step, "use the workflow of this version")
    return client.mask(given, vector())
