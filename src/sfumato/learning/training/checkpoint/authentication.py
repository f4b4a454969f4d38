"""A keyed hash of all that is in a checkpoint: one that was altered, or is another ledger's, has another."""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor

from sfumato.learning.training.loop.step_digest import bytes_of

__all__ = ["tag_of"]


def tag_of(key: bytes, content: Mapping[str, Any]) -> str:
    """Return the hash (HMAC-SHA256) of a checkpoint's entries, in hexadecimal.

    Parameters
    ----------
    key : bytes
        The key that seals the secrets of the ledger's runs.
    content : mapping
        Tensors, and plain values in dicts, lists and tuples. Of an object of another class its class alone
        is hashed.

    Returns
    -------
    str

    Examples
    --------
    >>> one = tag_of(b"key", {"weights": torch.zeros(2)})
    >>> one == tag_of(b"key", {"weights": torch.zeros(2)})
    True
    >>> one == tag_of(b"key", {"weights": torch.zeros(1, 2)})
    False
    """
    own = hashlib.sha256(b"sfumato learning checkpoint: " + key).digest()
    mac = hmac.new(own, digestmod="sha256")
    _add(mac, content)
    return mac.hexdigest()


def _add(mac: hmac.HMAC, value: Any) -> None:
    """Add a value with its kind and size, so that no two values give the same bytes."""
    if isinstance(value, Tensor):
        dense = value.to_dense() if value.layout is not torch.strided else value
        _head(mac, "tensor", f"{value.dtype} {list(value.shape)}")
        mac.update(bytes_of(dense))
    elif isinstance(value, Mapping):
        _head(mac, "mapping", len(value))
        for name, entry in value.items():
            _add(mac, name)
            _add(mac, entry)
    elif isinstance(value, list | tuple):
        _head(mac, "list" if isinstance(value, list) else "tuple", len(value))
        for entry in value:
            _add(mac, entry)
    elif isinstance(value, str | bytes):
        content = value.encode("utf-8", "surrogatepass") if isinstance(value, str) else value
        _head(mac, type(value).__name__, len(content))
        mac.update(content)
    elif value is None or isinstance(value, bool | int | float | complex | torch.dtype | torch.device):
        _head(mac, type(value).__name__, repr(value))
    else:
        _head(mac, "object", type(value).__name__)


def _head(mac: hmac.HMAC, kind: str, content: object) -> None:
    mac.update(f"{kind} {content};".encode())
