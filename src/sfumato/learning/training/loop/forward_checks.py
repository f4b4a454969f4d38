"""What is looked at in the forwards of a run: layers and inputs that make examples depend on one another."""

from __future__ import annotations

from typing import Any, Final, final

import torch
from torch import Tensor, nn
from torch.nn.modules.batchnorm import _BatchNorm

from sfumato.errors import UnfitModule
from sfumato.learning.checks.batch_tensors import leaves
from sfumato.learning.checks.replacements import normalises_over_batch

__all__ = ["ForwardChecks", "standardised"]

_ROWS: Final = 8
_MEAN, _DEVIATION = 1e-5, 1e-3


@final
class ForwardChecks:
    """Refuses batch normalisation that is back in train mode, and inputs standardised over their batch.

    Notes
    -----
    The latter are looked for in the first forward of at least eight examples, by a mean of 0 and a deviation
    of 1 over the batch: other statistics of a batch that a loop computes cannot be recognised.
    """

    def __init__(self) -> None:
        self._handle: Any = None
        self._layers: list[tuple[str, nn.Module]] = []
        self._looked = False

    def watch(self, module: nn.Module) -> None:
        """Look at each forward in training.

        Parameters
        ----------
        module : torch.nn.Module
        """
        self._layers = [(name, m) for name, m in module.named_modules() if isinstance(m, _BatchNorm)]
        self._handle = module.register_forward_pre_hook(self._before, with_kwargs=True)

    def release(self) -> None:
        """Look no more."""
        if self._handle is not None:
            self._handle.remove()
        self._handle = None

    def _before(self, module: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        del module
        if not torch.is_grad_enabled():
            return
        for name, layer in self._layers:
            if normalises_over_batch(layer):
                raise UnfitModule(
                    f"layers must keep examples apart, got {name} in train mode; call its eval() after each "
                    "train() of the module, or replace it by fix_module"
                )
        if self._looked:
            return
        for path, tensor in leaves((args, kwargs)):
            if tensor.ndim and len(tensor) >= _ROWS and tensor.is_floating_point():
                self._looked = True
                if standardised(tensor):
                    raise UnfitModule(
                        f"inputs must not be standardised over their batch, got argument {path} with mean 0 "
                        "and deviation 1; use a mean and a deviation that are public, or those of one example"
                    )


def standardised(batch: Tensor) -> bool:
    """Return whether entries have mean 0 and deviation 1 over the examples: of each feature, channel or all.

    Parameters
    ----------
    batch : Tensor of shape (examples, ...)

    Notes
    -----
    Entries that have it within each example are that example's own, and features of one absolute value, such
    as signs, may have it by chance: neither counts.
    """
    values = batch.detach().double()
    features = values.reshape(len(values), -1)
    features = features[:, (features.abs() != features[:1].abs()).any(0)]
    if features.shape[1] and bool(_is_standard(features, [0]).all()):
        return True
    rest = list(range(1, values.ndim))
    if not rest or features.shape[1] < 2:
        return False
    channels = [dim for dim in rest if dim != 1]
    groups = ([0, *channels], channels), ([0, *rest], rest)
    return any(
        bool(_is_standard(values, [*over]).all()) and not bool(_is_standard(values, [*alone]).all())
        for over, alone in groups
        if alone
    )


def _is_standard(values: Tensor, dims: list[int]) -> Tensor:
    near = values.mean(dims).abs() < _MEAN
    deviations = [(values.std(dims, correction=k) - 1).abs() < _DEVIATION for k in (0, 1)]
    return near & (deviations[0] | deviations[1])
