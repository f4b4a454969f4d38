"""The workflow that runs in Flower's server app, in the place of its own one for secure aggregation."""

from __future__ import annotations

import math
from typing import Any, final

from sfumato import _check
from sfumato.federated.flower.mod import CONFIG, flower
from sfumato.federated.flower.server_round import ServerRound
from sfumato.federated.flower.weighted_vectors import WeightedVectors
from sfumato.federated.secure_aggregation.parameters import SecureAggregation

__all__ = ["FlowerSecureAggregationWorkflow"]


@final
class FlowerSecureAggregationWorkflow:
    """A fit workflow for Flower's ``DefaultWorkflow``; its clients need `FlowerSecureAggregationMod`.

    Parameters
    ----------
    minimum_share : float, default 0.8
        Share of the sampled clients without which a round is aborted.
    clip_value : float, default 8.0
        Parameters are clipped to this magnitude.
    levels : int, default 2^21
        Steps from 0 to ``clip_value``.
    max_weight : int, default 1000
        A client counts for at most so many examples.
    degree, threshold : int or None, default None
        As `plan_neighbors` plans them; None for all other clients as neighbors.
    timeout : float or None, default None
        Seconds that each of the four steps waits for replies.

    Notes
    -----
    Guarantee: that of `SecureAggregation` in the semi-honest mode. The strategy sees one result for each
    survivor, all with the same mean and weight 1, and no metrics.

    Examples
    --------
    >>> FlowerSecureAggregationWorkflow(clip_value=4.0).encoding.bits(clients=100)
    39
    """

    __slots__ = ("degree", "encoding", "minimum_share", "threshold", "timeout")

    def __init__(
        self,
        *,
        minimum_share: float = 0.8,
        clip_value: float = 8.0,
        levels: int = 1 << 21,
        max_weight: int = 1000,
        degree: int | None = None,
        threshold: int | None = None,
        timeout: float | None = None,
    ) -> None:
        self.minimum_share = _check.probability("minimum_share", minimum_share)
        self.encoding = WeightedVectors(clip_value=clip_value, levels=levels, max_weight=max_weight)
        self.degree, self.threshold, self.timeout = degree, threshold, timeout

    def plan(self, clients: int, length: int, round_number: int) -> SecureAggregation:
        """Return the parameters of a round.

        Parameters
        ----------
        clients : int
            How many were sampled.
        length : int
            Parameters of the model.
        round_number : int

        Returns
        -------
        SecureAggregation

        Examples
        --------
        >>> FlowerSecureAggregationWorkflow().plan(10, 100, 1).minimum_survivors
        8
        """
        return SecureAggregation(
            clients=clients,
            length=length + 1,
            bounds=(-self.encoding.bound, self.encoding.bound),
            bits=self.encoding.bits(clients),
            minimum_survivors=max(2, math.ceil(self.minimum_share * clients)),
            degree=self.degree,
            threshold=self.threshold,
            round_number=round_number,
        )

    def __call__(self, grid: Any, context: Any) -> None:
        """Run one round of training, and store the new parameters in the context.

        Parameters
        ----------
        grid : flwr.serverapp.Grid
        context : flwr.server.LegacyContext

        Raises
        ------
        ParameterError
            If fewer clients than the minimum are left in some step.
        """
        flwr = flower()
        compat, names = flwr.compat.common.recorddict_compat, flwr.server.workflow.constant
        current = int(context.state.config_records[names.MAIN_CONFIGS_RECORD][names.Key.CURRENT_ROUND])
        arrays = context.state.array_records[names.MAIN_PARAMS_RECORD]
        parameters = compat.arrayrecord_to_parameters(arrays, keep_input=True)
        shapes = [array.shape for array in flwr.common.parameters_to_ndarrays(parameters)]
        sampled = context.strategy.configure_fit(current, parameters, context.client_manager)
        fit = {
            proxy.node_id: compat.fitins_to_recorddict(instructions, True) for proxy, instructions in sampled
        }
        proxies = {proxy.node_id: proxy for proxy, _ in sampled}
        length = sum(math.prod(shape) for shape in shapes)
        work = ServerRound(self.plan(len(fit), length, current), list(fit), self.encoding)
        for step in work.steps:
            messages = []
            for node, request in work.requests(step).items():
                content = fit[node] if step == "vector" else flwr.app.RecordDict()
                content.config_records[CONFIG] = flwr.app.ConfigRecord(request)
                messages.append(flwr.app.Message(content, node, message_type="train", group_id=str(current)))
            replies = grid.send_and_receive(messages, timeout=self.timeout)
            work.take(
                {
                    reply.metadata.src_node_id: dict(reply.content.config_records[CONFIG])
                    for reply in replies
                    if not reply.has_error()
                }
            )
        means, survivors = work.means(shapes)
        mean = flwr.common.ndarrays_to_parameters([array.astype("float32") for array in means])
        status = flwr.common.Status(flwr.common.Code.OK, "")
        results = [(proxies[node], flwr.common.FitRes(status, mean, 1, {})) for node in survivors]
        failed = [RuntimeError(f"node {node} dropped out") for node in fit if node not in survivors]
        aggregated, metrics = context.strategy.aggregate_fit(current, results, failed)
        if aggregated:
            record = compat.parameters_to_arrayrecord(aggregated, True)
            context.state.array_records[names.MAIN_PARAMS_RECORD] = record
            context.history.add_metrics_distributed_fit(server_round=current, metrics=metrics)
