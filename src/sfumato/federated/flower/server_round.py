"""The server's side of the Flower adapter without Flower: requests by node, and the replies to them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol, final

import numpy as np
from numpy.typing import NDArray

from sfumato._wire import canonical
from sfumato.errors import ParameterError
from sfumato.federated.secure_aggregation.parameters import SecureAggregation
from sfumato.federated.secure_aggregation.server import AggregatedSum, SecureAggregationServer

__all__ = ["RoundEncoding", "ServerRound"]


class RoundEncoding(Protocol):
    """How the clients of a round make integers of their parameters, and what their sum says."""

    def request_fields(self, step: str) -> Mapping[str, Any]:
        """Return what a client needs to know beside the protocol's message of a step."""

    def means(self, found: AggregatedSum, shapes: Sequence[tuple[int, ...]]) -> list[NDArray[np.float64]]:
        """Return the mean over the survivors, in the shapes of the parameters."""


@final
class ServerRound:
    """One round over named nodes; call `requests`, then `take` with the replies, for each of the four steps.

    Parameters
    ----------
    plan : SecureAggregation
    nodes : sequence of int
        Flower's numbers of the sampled nodes, in the order of the clients.
    encoding : RoundEncoding
    """

    steps = ("keys", "shares", "vector", "unmask")

    def __init__(self, plan: SecureAggregation, nodes: Sequence[int], encoding: RoundEncoding) -> None:
        self.plan, self.encoding, self.nodes = plan, encoding, list(nodes)
        self.server = SecureAggregationServer(plan)
        self.heard = list(range(plan.clients))
        self.refused: list[int] = []

    def requests(self, step: str) -> dict[int, dict[str, Any]]:
        """Return the request of a step for each node that is still in the round.

        Raises
        ------
        ParameterError
            If fewer than the minimum are left: the round is over, and nothing was unmasked.
        """
        if step == "keys":
            text = canonical(self.plan.to_json())
            made: dict[int, dict[str, Any]] = {n: {"plan": text, "client": n} for n in self.heard}
        elif step == "shares":
            made = {n: {"message": roster} for n, roster in self.server.rosters().items()}
        elif step == "vector":
            made = {n: {"message": delivery} for n, delivery in self.server.deliveries().items()}
        else:
            request = self.server.survivors()
            made = {n: {"message": request} for n in self.heard}
        more = self.encoding.request_fields(step)
        return {self.nodes[n]: {"step": step, **fields, **more} for n, fields in made.items()}

    def take(self, replies: Mapping[int, Mapping[str, Any]]) -> None:
        """Take the replies of a step; who did not reply, or is refused, has dropped out."""
        numbers, self.heard = {node: n for n, node in enumerate(self.nodes)}, []
        for node, reply in replies.items():
            message = reply.get("message")
            try:
                self.server.receive(message if isinstance(message, bytes) else b"")
            except ParameterError:
                self.refused.append(node)
            else:
                self.heard.append(numbers[node])

    def means(self, shapes: Sequence[tuple[int, ...]]) -> tuple[list[NDArray[np.float64]], list[int]]:
        """Return the encoding's means of the survivors' parameters, and the survivors' nodes."""
        found = self.server.aggregate()
        return self.encoding.means(found, shapes), [self.nodes[n] for n in found.survivors]
