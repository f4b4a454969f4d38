"""What the clients of the active mode sign: their keys, and the list of survivors."""

from __future__ import annotations

from collections.abc import Mapping

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

from sfumato import _check
from sfumato.federated.secure_aggregation.messages import KEY
from sfumato.federated.secure_aggregation.parameters import SecureAggregation

__all__ = ["advertised", "agreed_list", "check_identities", "shared_list", "verify_signature"]


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


def verify_signature(
    register: Mapping[int, bytes] | None, signer: int, signature: bytes, signed: bytes, *, remedy: str
) -> None:
    """Refuse a signature that is not that of the client in the register; without a register take any."""
    if register is None:
        return
    try:
        Ed25519PublicKey.from_public_bytes(register[signer]).verify(signature, signed)
    except InvalidSignature:
        _check.refuse_state("a signature", "be that of the client in the register", "it is not", remedy)


def advertised(plan: SecureAggregation, client: int, keys: bytes) -> bytes:
    """Return what a client signs to vouch for its keys in a round."""
    return b"sfumato secure aggregation 1 keys " + plan.digest + client.to_bytes(4, "big") + keys


def shared_list(plan: SecureAggregation, transcript: bytes, sharers: bytes) -> bytes:
    """Return what a client signs to say whom it masked against: its neighbors among those who shared."""
    return b"sfumato secure aggregation 1 sharers " + plan.digest + transcript + sharers


def agreed_list(plan: SecureAggregation, transcript: bytes, sharers: bytes, survivors: bytes) -> bytes:
    """Return what a client signs to agree to a list of survivors, of those who shared, of a roster."""
    return b"sfumato secure aggregation 1 survivors " + plan.digest + transcript + sharers + survivors
