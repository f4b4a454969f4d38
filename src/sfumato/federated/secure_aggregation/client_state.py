"""What a client of the semi-honest mode holds between two messages, as bytes.

For frameworks that start a process for each message. The bytes hold the client's keys: they belong to the
client alone, and only the newest may be used again, since older ones would answer a message twice.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import SimpleNamespace
from typing import Any, Final

from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey, X25519PublicKey

from sfumato import _check
from sfumato._wire import BYTES, INTEGER, TEXT, Format, Record, canonical, parse
from sfumato.crypto.mask_stream import SEED
from sfumato.federated.secure_aggregation.client import SecureAggregationClient
from sfumato.federated.secure_aggregation.messages import KEY, SHARE
from sfumato.federated.secure_aggregation.parameters import SecureAggregation

__all__ = ["client_from_bytes", "client_to_bytes"]

_FORMAT: Final = Format("sfumato.secure_aggregation.client", 1)
_FIELDS: Final[Mapping[str, Any]] = {
    "plan": TEXT,
    "client": INTEGER,
    "phase": INTEGER,
    "key": BYTES,
    "channel": BYTES,
    "seed": BYTES,
    "points": BYTES,
    "held": BYTES,
    "pair_seeds": BYTES,
}
_SLOTS: Final = ("phase", "key", "channel", "seed", "keys", "held", "pair_seeds")
_RECORD: Final[Record[Any]] = Record("the state of a client", dict, _FIELDS)


def client_to_bytes(client: SecureAggregationClient) -> bytes:
    """Return a client's state; a client that has answered its last message holds no secret any more.

    >>> plan = SecureAggregation(clients=3, length=1, bounds=(0, 9), bits=6, minimum_survivors=2)
    >>> client = SecureAggregationClient(plan, 1)
    >>> message = client.advertise()
    >>> client_from_bytes(client_to_bytes(client)).client
    1
    """
    if client.plan.active:
        _check.refuse_state(
            "a client", "be of the semi-honest mode", "it is of the other", "keep its process"
        )
    # A finished client has deleted its keys.
    slots: dict[str, Any] = {name: getattr(client, f"_{name}", None) for name in _SLOTS}
    rows = {n: one.public_bytes_raw() + two.public_bytes_raw() for n, (one, two) in slots["keys"].items()}
    fields = {
        "plan": canonical(client.plan.to_json()),
        "client": client.client,
        "phase": slots["phase"],
        "key": slots["key"].private_bytes_raw() if slots["key"] else b"",
        "channel": slots["channel"].private_bytes_raw() if slots["channel"] else b"",
        "seed": slots["seed"],
        "points": _rows(rows),
        "held": _rows(slots["held"]),
        "pair_seeds": _rows(slots["pair_seeds"]),
    }
    return canonical(_FORMAT.wrap(_RECORD.encode(SimpleNamespace(**fields)))).encode()


def client_from_bytes(data: bytes) -> SecureAggregationClient:
    """Return the client whose state `client_to_bytes` wrote."""
    fields = _RECORD.decode("data", _FORMAT.unwrap("data", parse("data", data))[1])
    plan = SecureAggregation.from_json(parse("plan", fields["plan"]))
    client = SecureAggregationClient(plan, fields["client"])
    points = {
        n: (X25519PublicKey.from_public_bytes(row[:KEY]), X25519PublicKey.from_public_bytes(row[KEY:]))
        for n, row in _read(fields["points"], 2 * KEY).items()
    }
    slots: dict[str, Any] = {
        "phase": fields["phase"],
        "seed": fields["seed"],
        "keys": points,
        "held": _read(fields["held"], 2 * SHARE),
        "pair_seeds": _read(fields["pair_seeds"], SEED),
    }
    for name in ("key", "channel"):
        slots[name] = X25519PrivateKey.from_private_bytes(fields[name]) if fields[name] else None
    for name in _SLOTS:
        setattr(client, f"_{name}", slots[name])
    return client


def _rows(values: Mapping[int, bytes]) -> bytes:
    return b"".join(number.to_bytes(4, "big") + value for number, value in values.items())


def _read(data: bytes, size: int) -> dict[int, bytes]:
    rows = [data[at : at + 4 + size] for at in range(0, len(data), 4 + size)]
    return {int.from_bytes(row[:4], "big"): row[4:] for row in rows}
