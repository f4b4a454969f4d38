"""One round of training in Flower's server app: who was sampled, the four steps, and the new parameters."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from sfumato.federated.flower.mod import CONFIG, flower
from sfumato.federated.flower.server_round import ServerRound

__all__ = ["FitRound"]


@final
class FitRound:
    """A round that Flower's context is about to run.

    Parameters
    ----------
    context : flwr.server.LegacyContext

    Attributes
    ----------
    number : int
        Of the round.
    arrays : list of ndarray
        The parameters that it starts from.
    nodes : list of int
        Of the sampled clients, as the strategy chose them.
    """

    def __init__(self, context: Any) -> None:
        self._flwr, self._context = flower(), context
        self._compat = self._flwr.compat.common.recorddict_compat
        self._names = self._flwr.server.workflow.constant
        main = context.state.config_records[self._names.MAIN_CONFIGS_RECORD]
        self.number = int(main[self._names.Key.CURRENT_ROUND])
        record = context.state.array_records[self._names.MAIN_PARAMS_RECORD]
        parameters = self._compat.arrayrecord_to_parameters(record, keep_input=True)
        self.arrays: list[Any] = self._flwr.common.parameters_to_ndarrays(parameters)
        sampled = context.strategy.configure_fit(self.number, parameters, context.client_manager)
        self._fit = {
            proxy.node_id: self._compat.fitins_to_recorddict(instructions, True)
            for proxy, instructions in sampled
        }
        self._proxies = {proxy.node_id: proxy for proxy, _ in sampled}

    @property
    def nodes(self) -> list[int]:
        """The sampled clients."""
        return list(self._fit)

    @property
    def shapes(self) -> list[tuple[int, ...]]:
        """The shapes of the parameters."""
        return [array.shape for array in self.arrays]

    @property
    def length(self) -> int:
        """How many numbers the parameters have."""
        return sum(math.prod(shape) for shape in self.shapes)

    def exchange(self, grid: Any, work: ServerRound, timeout: float | None) -> None:
        """Send the requests of the four steps, and take the replies; one of another kind is none.

        Raises
        ------
        ParameterError
            If fewer clients than the minimum are left before the last step: nothing was unmasked.
        """
        app = self._flwr.app
        for step in work.steps:
            messages = []
            for node, request in work.requests(step).items():
                content = self._fit[node] if step == "vector" else app.RecordDict()
                content.config_records[CONFIG] = app.ConfigRecord(request)
                made = app.Message(content, node, message_type="train", group_id=str(self.number))
                messages.append(made)
            replies = grid.send_and_receive(messages, timeout=timeout)
            work.take(
                {
                    reply.metadata.src_node_id: dict(reply.content.config_records.get(CONFIG, {}))
                    for reply in replies
                    if not reply.has_error()
                }
            )

    def store(self, means: Sequence[NDArray[np.float64]], survivors: Sequence[int]) -> None:
        """Give the strategy the means as each survivor's result, and store what it makes of them."""
        flwr, context = self._flwr, self._context
        mean = flwr.common.ndarrays_to_parameters([array.astype("float32") for array in means])
        status = flwr.common.Status(flwr.common.Code.OK, "")
        results = [(self._proxies[node], flwr.common.FitRes(status, mean, 1, {})) for node in survivors]
        failed = [RuntimeError(f"node {node} dropped out") for node in self._fit if node not in survivors]
        aggregated, metrics = context.strategy.aggregate_fit(self.number, results, failed)
        if aggregated:
            record = self._compat.parameters_to_arrayrecord(aggregated, True)
            context.state.array_records[self._names.MAIN_PARAMS_RECORD] = record
            context.history.add_metrics_distributed_fit(server_round=self.number, metrics=metrics)
