"""A module's state, restored after a check; parameters that its forward changes are reported."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import numpy as np
import torch
from torch import Tensor, nn

from sfumato.errors import UnfitModule
from sfumato.learning.engine.seeding import seed_torch

__all__ = ["Buffers", "checksum", "parameters_of", "preserved_state", "seeded"]

_WHOLE = {1: torch.uint8, 2: torch.int16, 4: torch.int32, 8: torch.int64}


def checksum(tensor: Tensor) -> int:
    """Return the sum of a tensor's bits read as integers, modulo 2**64; the order of adding has no say."""
    plain = tensor.detach()
    if plain.is_complex():
        plain = torch.view_as_real(plain)
    return int(plain.contiguous().view(_WHOLE[plain.element_size()]).sum(dtype=torch.int64))


def parameters_of(module: nn.Module) -> dict[str, nn.Parameter]:
    """Return a module's parameters by name, each once.

    Raises
    ------
    UnfitModule
        If one has no shape yet.
    """
    found = dict(module.named_parameters())
    for name, parameter in found.items():
        if isinstance(parameter, nn.parameter.UninitializedParameter):
            raise UnfitModule(f"{name} must have a shape, got a lazy one; run the module once on a batch")
    return found


@contextmanager
def seeded(module: nn.Module, seed: int) -> Iterator[None]:
    """Fix torch's, numpy's and Python's global generators, and put them back as they were."""
    python, legacy = random.getstate(), np.random.get_state()
    devices = sorted({p.device.index or 0 for p in module.parameters() if p.device.type == "cuda"})
    with torch.random.fork_rng(devices):
        seed_torch(seed)
        random.seed(seed)
        np.random.seed(seed)
        try:
            yield
        finally:
            random.setstate(python)
            np.random.set_state(legacy)


class Buffers:
    """The buffers of a module as they are now.

    Parameters
    ----------
    module : torch.nn.Module
    """

    def __init__(self, module: nn.Module) -> None:
        self._held = [(name, owner, dict(owner._buffers)) for name, owner in module.named_modules()]  # noqa: SLF001
        self._values = {id(b): b.clone() for _, _, held in self._held for b in held.values() if b is not None}

    def restore(self) -> None:
        """Put them back, objects and values."""
        with torch.no_grad():
            for _, owner, held in self._held:
                for name, buffer in held.items():
                    owner._buffers[name] = buffer  # noqa: SLF001
                    if buffer is not None:
                        buffer.copy_(self._values[id(buffer)])

    def sums(self) -> dict[tuple[str, str], int]:
        """Return the checksum of each buffer as it is now, by the names of its module and of itself."""
        return {
            (path, name): checksum(buffer)
            for path, owner, _ in self._held
            for name, buffer in owner._buffers.items()  # noqa: SLF001
            if buffer is not None
        }


@contextmanager
def preserved_state(module: nn.Module) -> Iterator[Callable[[], None]]:
    """Put back buffers, gradients and modes afterwards; parameters must come out as they went in.

    Yields
    ------
    callable
        Checks the parameters at once.

    Raises
    ------
    UnfitModule
        If a parameter was changed or replaced meanwhile.
    """
    parameters = parameters_of(module)
    sums = {name: checksum(parameter) for name, parameter in parameters.items()}
    gradients = {name: parameter.grad for name, parameter in parameters.items()}
    buffers = Buffers(module)
    modes = [(owner, owner.training) for owner in module.modules()]
    for parameter in parameters.values():
        parameter.grad = None
    try:
        yield lambda: _hold_still(module, parameters, sums)
    finally:
        for owner, mode in modes:
            owner.training = mode
        buffers.restore()
        for name, parameter in parameters.items():
            parameter.grad = gradients[name]
    _hold_still(module, parameters, sums)


def _hold_still(module: nn.Module, before: dict[str, nn.Parameter], sums: dict[str, int]) -> None:
    after = dict(module.named_parameters())
    for name, parameter in before.items():
        if after.get(name) is not parameter:
            raise UnfitModule(
                f"{name} must stay the same object, got one that is replaced in the forward; "
                "leave parameters alone there"
            )
        if checksum(parameter) != sums[name]:
            raise UnfitModule(
                f"{name} must change in the optimizer's step only, got one that changes in the forward; "
                "leave parameters alone there"
            )
    if added := sorted(set(after) - set(before)):
        raise UnfitModule(
            f"parameters must stay the same, got {', '.join(added)} made in the module's forward"
        )
