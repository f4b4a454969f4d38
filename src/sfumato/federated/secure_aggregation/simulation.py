"""A whole round in one process: to try a plan, and for tests."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import partial

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from numpy.typing import ArrayLike

from sfumato import _check
from sfumato.federated.secure_aggregation.client import SecureAggregationClient
from sfumato.federated.secure_aggregation.parameters import SecureAggregation
from sfumato.federated.secure_aggregation.server import AggregatedSum, SecureAggregationServer

__all__ = ["simulate_round"]


def simulate_round(
    plan: SecureAggregation,
    vectors: Iterable[ArrayLike],
    *,
    dropped: Callable[[int, str], bool] = lambda client, message: False,
) -> AggregatedSum:
    """Run a round with all its messages and keys in this process.

    Parameters
    ----------
    plan : SecureAggregation
    vectors : iterable of array_like of int
        One for each client.
    dropped : callable, default none
        Called as ``dropped(client, message)`` before a client sends one of ``"keys"``, ``"shares"``,
        ``"vector"``, ``"consent"`` and ``"unmask"``; True ends the client.

    Returns
    -------
    AggregatedSum

    Raises
    ------
    ParameterError
        If vectors do not fit the plan, or too few clients survive.

    Notes
    -----
    One process sees every vector here: this protects nobody.

    Examples
    --------
    >>> plan = SecureAggregation(clients=5, length=1, bounds=(0, 9), bits=6, minimum_survivors=3)
    >>> simulate_round(plan, [[1], [2], [3], [4], [5]], dropped=lambda client, _: client == 4).total.tolist()
    [10]
    """
    values = list(vectors)
    if len(values) != plan.clients:
        _check.refuse_state(
            "vectors", f"be {plan.clients}, one for each client", "they are not", "give each one"
        )
    keys = [Ed25519PrivateKey.generate() if plan.active else None for _ in values]
    known = {client: key.public_key().public_bytes_raw() for client, key in enumerate(keys) if key}
    register = known if plan.active else None
    server = SecureAggregationServer(plan, identities=register)
    alive = {
        client: SecureAggregationClient(plan, client, identity=key, identities=register)
        for client, key in enumerate(keys)
    }
    staying = partial(_staying, alive, dropped)
    for _, client in staying("keys"):
        server.receive(client.advertise())
    rosters = server.rosters()
    for number, client in staying("shares"):
        server.receive(client.share(rosters[number]))
    deliveries = server.deliveries()
    for number, client in staying("vector"):
        server.receive(client.mask(deliveries[number], values[number]))
    request = server.survivors()
    if plan.active:
        for _, client in staying("consent"):
            server.receive(client.consent(request))
        request = server.evidence()
    for _, client in staying("unmask"):
        server.receive(client.unmask(request))
    return server.aggregate()


def _staying(
    alive: dict[int, SecureAggregationClient], dropped: Callable[[int, str], bool], message: str
) -> Iterator[tuple[int, SecureAggregationClient]]:
    """Yield the clients that send a message; the others are removed."""
    for client in list(alive):
        if dropped(client, message):
            del alive[client]
        else:
            yield client, alive[client]
