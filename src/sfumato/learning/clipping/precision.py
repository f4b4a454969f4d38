"""What norms and sums are computed in, whatever the user lets devices round."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from typing import Any

import torch

__all__ = ["in_full"]

_BACKENDS: tuple[tuple[Any, str], ...] = (
    (torch.backends.cuda, "matmul"),
    (torch.backends.cudnn, "conv"),
    (torch.backends.cudnn, "rnn"),
    (torch.backends.mkldnn, "matmul"),
    (torch.backends.mkldnn, "conv"),
)
"""What may round the factors of float32 products to fewer bits, besides the two older settings for it."""
_NEWER, _OLDER = "fp32_precision", "allow_tf32"
_FULL = {"none", "ieee"}
_NOTHING = nullcontext()


def in_full(device: torch.device) -> AbstractContextManager[None]:
    """Multiply float32 in float32: without autocast, and whatever the user lets devices round.

    Norms of gradients, and their products with the factors that clip them, must be as accurate as `Clipping`
    presupposes; gradients as such need not be.
    """
    return _NOTHING if _is_full(device) else _made_full(device)


def _is_full(device: torch.device) -> bool:
    """Return whether nothing on a device is set to round: seen at once for CPUs, where settings are few."""
    if device.type != "cpu" or torch.is_autocast_enabled("cpu"):
        return False
    if _or(torch.get_float32_matmul_precision, "") != "highest":
        return False
    backend = torch.backends.mkldnn
    return all(getattr(getattr(backend, n, None), _NEWER, "none") in _FULL for n in ("matmul", "conv"))


@contextmanager
def _made_full(device: torch.device) -> Iterator[None]:
    with ExitStack() as stack:
        if torch.is_autocast_enabled(device.type):
            stack.enter_context(torch.autocast(device.type, enabled=False))
        parts = [part for backend, name in _BACKENDS if hasattr(part := getattr(backend, name, None), _NEWER)]
        for part in parts:
            stack.callback(setattr, part, _NEWER, getattr(part, _NEWER))
        stack.callback(torch.set_float32_matmul_precision, _or(torch.get_float32_matmul_precision, "highest"))
        stack.callback(setattr, torch.backends.cudnn, _OLDER, _or(_convolutions, False))
        torch.set_float32_matmul_precision("highest")
        setattr(torch.backends.cudnn, _OLDER, False)
        for part in parts:
            setattr(part, _NEWER, "ieee")
        yield


def _convolutions() -> bool:
    return bool(getattr(torch.backends.cudnn, _OLDER))


def _or(setting: Callable[[], Any], other: Any) -> Any:
    """Return an older setting, or what it is left at where newer ones contradict it: then it is not read."""
    try:
        return setting()
    except RuntimeError:
        return other
