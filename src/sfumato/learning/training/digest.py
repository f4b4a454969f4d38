"""A keyed hash of all that a step computes: where it is equal, the same noise tells nothing new."""

from __future__ import annotations

import hashlib
import hmac
import platform
from collections.abc import Iterable, Sequence
from typing import final

import torch
from torch import Tensor, nn

from sfumato.learning.sampling.sampler import Sampler

__all__ = ["Digest"]


@final
class Digest:
    """Hashes parameters, buffers, batch, device, kernels and the sums themselves, under a secret key.

    Parameters
    ----------
    key : bytes
        The noise's key: a hash of sums of gradients without a key would tell of them.
    module : torch.nn.Module
    sampler : Sampler
    """

    def __init__(self, key: bytes, module: nn.Module, sampler: Sampler) -> None:
        self._key = hashlib.sha256(b"sfumato learning replay: " + key).digest()
        self._module, self._sampler = module, sampler

    def of(self, steps: Sequence[int], sums: Iterable[Tensor], scale: str = "") -> str:
        """Return the hash of one step, in hexadecimal; ``scale`` tells the noise's deviations."""
        mac = hmac.new(self._key, digestmod="sha256")
        kernels = (
            torch.__version__,
            platform.machine(),
            torch.get_num_threads(),
            torch.backends.cpu.get_cpu_capability(),
        )
        mac.update(repr((kernels, list(steps), scale)).encode())
        for step in steps:
            mac.update(self._sampler.batch(step).tobytes())
        for name, tensor in self._module.state_dict(keep_vars=True).items():
            mac.update(repr((name, str(tensor.device), str(tensor.dtype), tuple(tensor.shape))).encode())
            mac.update(_bytes(tensor))
        for total in sums:
            mac.update(_bytes(total))
        return mac.hexdigest()


def _bytes(tensor: Tensor) -> bytes:
    flat = tensor.detach().cpu().contiguous().view(-1)
    return flat.view(torch.uint8).numpy().tobytes() if flat.numel() else b""
