"""The workflow that runs in Flower's server app, in the place of its own one for secure aggregation."""

from __future__ import annotations

import math
from typing import Any, final

from sfumato import _check
from sfumato.federated.flower.fit_round import FitRound
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
        fit = FitRound(context)
        work = ServerRound(self.plan(len(fit.nodes), fit.length, fit.number), fit.nodes, self.encoding)
        fit.exchange(grid, work, self.timeout)
        fit.store(*work.means(fit.shapes))
