"""What the clients of the active mode sign: their keys, and the list of survivors."""

from __future__ import annotations

from collections.abc import Mapping

from sfumato import _check
from sfumato.federated.secure_aggregation.messages import KEY
from sfumato.federated.secure_aggregation.parameters import SecureAggregation

__all__ = ["advertised", "agreed_list", "check_identities"]


def check_identities(
    plan: SecureAggregation, identities: Mapping[int, bytes] | None
) -> dict[int, bytes] | None:
    """Return the register of a round: a distinct Ed25519 public key of every client in the active mode."""
    if not plan.active and identities is None:
        return None
    given: object = identities
    known = dict(given) if isinstance(given, Mapping) else {}
    keys = [known.get(client) for client in range(plan.clients)]
    whole = all(isinstance(key, bytes) and len(key) == KEY for key in keys) and len(set(keys)) == len(keys)
    if not plan.active or not whole or len(known) != plan.clients:
        rule = "be a distinct Ed25519 public key of every client in the active mode, and None in the other"
        _check.refuse_type("identities", rule, identities, "pass the register of the clients")
    return known


def advertised(plan: SecureAggregation, client: int, keys: bytes) -> bytes:
    """Return what a client signs to vouch for its keys in a round."""
    return b"sfumato secure aggregation 1 keys " + plan.digest + client.to_bytes(4, "big") + keys


def agreed_list(plan: SecureAggregation, transcript: bytes, survivors: bytes) -> bytes:
    """Return what a client signs to agree to a list of survivors, among the keys of a roster."""
    return b"sfumato secure aggregation 1 survivors " + plan.digest + transcript + survivors
