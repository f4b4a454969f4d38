"""The mod that runs in each of Flower's client apps."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final, final

from sfumato import _check
from sfumato.errors import MissingExtra
from sfumato.federated.flower.client_steps import ClientLimits, answer

__all__ = [
    "CONFIG",
    "FlowerSecureAggregationMod",
    "flower",
    "flower_request",
    "is_training",
    "reply_to",
]

Answering = Callable[[Mapping[str, Any]], tuple[dict[str, Any], dict[str, Any]]]
"""From the state to the reply and the state that takes its place."""

CONFIG: Final = "sfumato.secure_aggregation"
"""The configuration record of requests, replies and state."""
_PARAMETERS: Final = "get_parameters"
"""What a server asks a client for that is to say where training starts."""


def flower() -> Any:
    """Import Flower, which only those need who run the adapter."""
    try:
        import flwr.app  # noqa: PLC0415 - an optional library
        import flwr.compat.common.recorddict_compat  # noqa: PLC0415
        import flwr.server.workflow.constant  # noqa: PLC0415
    except ImportError as missing:
        raise MissingExtra("the Flower adapter needs flwr; pip install 'sfumato[flower]'") from missing
    return flwr


def is_training(message: Any) -> bool:
    """Return whether a message asks to train; refuse one that asks for plain parameters."""
    kind = message.metadata.message_type
    if kind == _PARAMETERS:
        remedy = "pass initial_parameters to the strategy"
        _check.refuse_state("a request", "be for no plain parameters", "it is for them", remedy)
    return str(kind).partition(".")[0] == "train"  # "train.default" is "train" under another name


def flower_request(message: Any) -> tuple[Any, dict[str, Any]]:
    """Return Flower, and the workflow's request that a message to train carries, which is taken out of it."""
    records = message.content.config_records
    if CONFIG not in records:
        _check.refuse_state(
            "a training",
            "be aggregated securely",
            "the request asks for plain parameters",
            "use the workflow",
        )
    return flower(), dict(records.pop(CONFIG))


def reply_to(message: Any, context: Any, answering: Answering, app: Any) -> Any:
    """Return the message of a reply, and put the state that follows into the context."""
    state = context.state.config_records.get(CONFIG, {})
    reply, following = answering(dict(state))
    context.state.config_records[CONFIG] = app.ConfigRecord(following)
    return app.Message(app.RecordDict({CONFIG: app.ConfigRecord(reply)}), reply_to=message)


@final
class FlowerSecureAggregationMod:
    """A mod for Flower's ``ClientApp(mods=[...])`` that sends masked parameters, and nothing else.

    Parameters
    ----------
    minimum_survivors : int
        A client takes part in no round that could end with fewer vectors in the sum.
    minimum_degree : int, default 2
        A client takes part in no round with fewer neighbors.

    Notes
    -----
    Guarantee: that of `SecureAggregation` in the semi-honest mode. A request to train, under whatever action,
    that is not of `FlowerSecureAggregationWorkflow` is refused, and so is one for the client's parameters:
    give the strategy initial ones. Evaluations and queries go on to the app, which must not answer them with
    parameters.
    Flower has no register of identities, so the server can invent clients; and the client's keys are in
    Flower's context while a round lasts. Metrics and the number of examples are not sent. It is no
    differential privacy.

    Examples
    --------
    >>> FlowerSecureAggregationMod(minimum_survivors=20).limits.minimum_survivors
    20
    """

    __slots__ = ("limits",)

    def __init__(self, *, minimum_survivors: int, minimum_degree: int = 2) -> None:
        self.limits = ClientLimits(
            minimum_survivors=_check.integer("minimum_survivors", minimum_survivors, minimum=2),
            minimum_degree=_check.integer("minimum_degree", minimum_degree, minimum=2),
        )

    def __call__(self, message: Any, context: Any, call_next: Any) -> Any:
        """Answer a message of the server; what is no training goes on to the app.

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
            If the message asks for plain parameters, for a training without secure aggregation, or is refused
            by the client.
        """
        if not is_training(message):
            return call_next(message, context)
        flwr, request = flower_request(message)

        def train() -> tuple[list[Any], int]:
            reply = flwr.compat.common.recorddict_compat.recorddict_to_fitres(
                call_next(message, context).content, keep_input=False
            )
            return flwr.common.parameters_to_ndarrays(reply.parameters), int(reply.num_examples)

        return reply_to(message, context, lambda state: answer(self.limits, state, request, train), flwr.app)
