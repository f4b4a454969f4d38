"""A keyed hash of all that a step computes: where it is equal, the same noise reveals nothing new."""

from __future__ import annotations

import hashlib
import hmac
import platform
import warnings
from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, Final, final

import torch
from torch import Tensor, nn

from sfumato import _check
from sfumato._wire import Format, canonical
from sfumato.learning.sampling.sampler import Sampler
from sfumato.learning.training.loop.steps import Steps

__all__ = ["StepDigest", "bytes_of"]

HASHED: Final = Format("sfumato.replayed-step", 1)
_NO_SCALE: Final[Mapping[str, Any]] = MappingProxyType({})


@final
class StepDigest:
    """Hashes parameters, buffers, batch, device, kernels and the sums themselves, under a secret key.

    Parameters
    ----------
    key : bytes
        The noise's key: a hash of sums of gradients without a key would reveal something of them.
    module : torch.nn.Module
    sampler : Sampler
    """

    def __init__(self, key: bytes, module: nn.Module, sampler: Sampler) -> None:
        self._key = hashlib.sha256(b"sfumato learning replay: " + key).digest()
        self._module, self._sampler = module, sampler

    def of(self, steps: Sequence[int], sums: Iterable[Tensor], scale: Mapping[str, Any] = _NO_SCALE) -> str:
        """Return the hash of one step, in hexadecimal.

        Parameters
        ----------
        steps : sequence of int
            The logical batches of the step.
        sums : iterable of Tensor
            What noise is added to.
        scale : mapping
            Plain values that the noise's standard deviations follow from.
        """
        mac = hmac.new(self._key, digestmod="sha256")
        computed = {
            "torch": str(torch.__version__),
            "machine": platform.machine(),
            "threads": torch.get_num_threads(),
            "capability": torch.backends.cpu.get_cpu_capability(),
            "steps": list(steps),
            "scale": dict(scale),
        }
        mac.update(canonical(HASHED.wrap(computed)).encode())
        for step in steps:
            mac.update(self._sampler.batch(step).tobytes())
        for name, tensor in self._module.state_dict(keep_vars=True).items():
            described = {
                "name": name,
                "device": str(tensor.device),
                "type": str(tensor.dtype),
                "shape": list(tensor.shape),
            }
            mac.update(canonical(described).encode())
            mac.update(bytes_of(tensor))
        for total in sums:
            mac.update(bytes_of(total))
        return mac.hexdigest()

    def confirmed(
        self, steps: Steps, numbers: Sequence[int], sums: Iterable[Tensor], scale: Mapping[str, Any]
    ) -> bool:
        """Claim a step with its hash; warn and return False if it was computed otherwise before.

        Parameters
        ----------
        steps : Steps
        numbers, sums, scale
            As for `of`; one number only.
        """
        digest = self.of(numbers, sums, scale)
        if len(numbers) != 1:
            rule, remedy = "have one logical batch in each step", "use max_physical_batch_size instead"
            _check.refuse_state("replay", rule, "several were accumulated", remedy)
        if steps.confirm(numbers[0], digest) >= 0:
            return True
        warnings.warn(
            "a step was computed otherwise than before the run was killed: its noise is not drawn again, and "
            "the run goes on with fresh steps",
            UserWarning,
            stacklevel=5,
        )
        return False


def bytes_of(tensor: Tensor) -> bytes:
    """Return the entries of a dense tensor as they lie in memory."""
    flat = tensor.detach().cpu().contiguous().view(-1)
    return flat.view(torch.uint8).numpy().tobytes() if flat.numel() else b""
