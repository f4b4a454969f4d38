"""The mod that adds a client's part of the noise before its message is masked."""

from __future__ import annotations

import logging
from typing import Any, Final, final

import numpy as np
from numpy.typing import NDArray

from sfumato import _check
from sfumato.federated.flower.client_steps import ClientLimits
from sfumato.federated.flower.mod import flower_request, is_training, reply_to
from sfumato.federated.flower.noise_client_steps import NoiseLimits, answer_with_noise
from sfumato.federated.flower.weighted_vectors import flat_vector

__all__ = ["FlowerDistributedNoiseMod"]

_LOG: Final = logging.getLogger(__name__)


@final
class FlowerDistributedNoiseMod:
    """A mod for Flower's ``ClientApp(mods=[...])`` that sends masked changes with noise, and nothing else.

    Parameters
    ----------
    minimum_survivors : int
        A client takes part in no round that could end with fewer vectors in the sum.
    epsilon, delta : float
        What all rounds of a client in one run may cost together. Before a key is made, a round that would
        exceed it is refused, whatever the server asks for.
    colluders : int, default 0
        So many other clients may collude with the server, those that it invents included.
    minimum_degree : int, default 2
        A client takes part in no round with fewer neighbors.

    Raises
    ------
    ParameterError
        If a parameter is out of range.

    Notes
    -----
    Guarantee: (epsilon, delta)-DP under zero-out, of all messages that the client sends over all rounds of
    one run of Flower, against the server and ``colluders`` clients, who know their own noise, on the
    conditions of `DistributedDiscreteGaussian` and of `SecureAggregation` in the semi-honest mode: the server
    follows the protocol, and Flower has no register of identities, so that clients it invents count as
    colluders.
    Zero-out means: the client takes part and adds noise, and its change is exchanged for zeros. So whether a
    client is there, fails or is late must not depend on its data. What is counted is in Flower's context,
    which is one run's and one node's: the next run begins at zero, and so does a node that was started again.
    Runs over the same data add up; nobody counts that here.

    The client's change is what training returns less what it was given, clipped to the round's norm; the
    number of examples and metrics are not sent. Any request but to train is refused, since evaluations and
    queries would answer with data that has no noise: set ``fraction_evaluate=0`` and evaluate at the server.
    Where training raises an error, the server learns that it did; its text is in the client's own log only.

    Examples
    --------
    >>> mod = FlowerDistributedNoiseMod(minimum_survivors=80, epsilon=4.0, delta=1e-6, colluders=10)
    >>> mod.limits.rounds.minimum_survivors
    80
    """

    __slots__ = ("limits",)

    def __init__(
        self,
        *,
        minimum_survivors: int,
        epsilon: float,
        delta: float,
        colluders: int = 0,
        minimum_degree: int = 2,
    ) -> None:
        rounds = ClientLimits(
            minimum_survivors=_check.integer("minimum_survivors", minimum_survivors, minimum=2),
            minimum_degree=_check.integer("minimum_degree", minimum_degree, minimum=2),
        )
        if _check.integer("colluders", colluders) >= minimum_survivors:
            rule = f"be below the {minimum_survivors} survivors, so that an honest one is among them"
            _check.refuse("colluders", rule, colluders, "raise minimum_survivors")
        self.limits = NoiseLimits(
            rounds=rounds,
            epsilon=_check.positive("epsilon", epsilon),
            delta=_check.unit_interval("delta", delta),
            colluders=colluders,
        )

    def __call__(self, message: Any, context: Any, call_next: Any) -> Any:
        """Answer a message of the server.

        Parameters
        ----------
        message : flwr.app.Message
        context : flwr.app.Context
        call_next : callable

        Returns
        -------
        flwr.app.Message

        Raises
        ------
        ParameterError
            If the message asks for anything but a training with noise, or is refused by the client.
        """
        if not is_training(message):
            remedy = "set fraction_evaluate=0, and evaluate at the server"
            _check.refuse_state("a request", "be to train", "its answer would have no noise", remedy)
        flwr, request = flower_request(message)
        compat, common = flwr.compat.common.recorddict_compat, flwr.common

        def change() -> NDArray[np.float64]:
            given = compat.recorddict_to_fitins(message.content, keep_input=True).parameters
            before = flat_vector(common.parameters_to_ndarrays(given))
            try:
                reply = compat.recorddict_to_fitres(call_next(message, context).content, keep_input=False)
                after = flat_vector(common.parameters_to_ndarrays(reply.parameters))
            except Exception:
                _LOG.exception("training failed; the server does not see why")
                found, remedy = "an error was raised", "see the client's log"
                _check.refuse_state("training", "return parameters", found, remedy)
            if after.shape != before.shape:
                found = "it has another number of them"
                rule = "return as many parameters as it was given"
                _check.refuse_state("training", rule, found, "return those of the same model")
            with np.errstate(over="ignore", invalid="ignore"):  # what is not finite counts as zeros
                return after - before

        return reply_to(
            message, context, lambda state: answer_with_noise(self.limits, state, request, change), flwr.app
        )
