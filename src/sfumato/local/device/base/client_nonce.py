"""The nonce by which a client is counted once: one for each collection, from one secret of the device."""

from __future__ import annotations

import hashlib
import hmac
from typing import Final

from sfumato import _check

__all__ = ["NONCE", "check_bytes", "client_nonce"]

NONCE: Final = 16
"""Bytes that identify a client's reports to one collection."""

_MIN_SECRET: Final = 16


def client_nonce(secret: bytes, context: bytes) -> bytes:
    """Return the nonce that follows from a device's secret and a collection: the first bytes of an HMAC.

    Raises
    ------
    ParameterError
        If the secret is not at least 16 bytes; the message does not show it.

    Examples
    --------
    >>> client_nonce(bytes(16), b"this week") == client_nonce(bytes(16), b"next week")
    False
    """
    check_bytes("secret", secret, None, "draw os.urandom(32) once and store it")
    return hmac.new(secret, context, hashlib.sha256).digest()[:NONCE]


def check_bytes(name: str, given: object, width: int | None, remedy: str) -> None:
    """Refuse what is not so many bytes (None: enough for a secret), without showing it."""
    rule = f"be {width} bytes" if width is not None else f"be at least {_MIN_SECRET} bytes"
    if not isinstance(given, bytes):
        _check.refuse_type(name, rule, given, remedy)
    if len(given) != width if width is not None else len(given) < _MIN_SECRET:
        _check.refuse_state(name, rule, f"{len(given)} were given", remedy)
