"""Federated computation: many clients and a server that learns a sum, and nothing of one client.

`SecureAggregation` states a round; a client and a server are state machines of messages, bytes in and bytes
out, so that any transport carries them.

>>> from sfumato.federated import SecureAggregation, simulate_round
>>> plan = SecureAggregation(clients=4, length=2, bounds=(0, 9), bits=8, minimum_survivors=3)
>>> simulate_round(plan, [[1, 2], [3, 4], [5, 6], [7, 8]]).total.tolist()
[16, 20]

`Prio3` splits measurements among aggregators, who verify that they are valid and add them up.

>>> from sfumato.federated import prio3_histogram
>>> prio3_histogram(length=4, chunk_length=2).rand_size
128
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from sfumato._lazy import attach

if TYPE_CHECKING:
    from sfumato.federated.secure_aggregation.client import SecureAggregationClient
    from sfumato.federated.secure_aggregation.degree import NeighborPlan, plan_neighbors
    from sfumato.federated.secure_aggregation.parameters import SecureAggregation
    from sfumato.federated.secure_aggregation.server import AggregatedSum, SecureAggregationServer
    from sfumato.federated.secure_aggregation.simulation import simulate_round

__all__ = [
    "AggregatedSum",
    "NeighborPlan",
    "SecureAggregation",
    "SecureAggregationClient",
    "SecureAggregationServer",
    "plan_neighbors",
    "simulate_round",
]

__getattr__, __dir__ = attach(
    __name__,
    {
        "AggregatedSum": "sfumato.federated.secure_aggregation.server",
        "NeighborPlan": "sfumato.federated.secure_aggregation.degree",
        "SecureAggregation": "sfumato.federated.secure_aggregation.parameters",
        "SecureAggregationClient": "sfumato.federated.secure_aggregation.client",
        "SecureAggregationServer": "sfumato.federated.secure_aggregation.server",
        "plan_neighbors": "sfumato.federated.secure_aggregation.degree",
        "simulate_round": "sfumato.federated.secure_aggregation.simulation",
    },
)
