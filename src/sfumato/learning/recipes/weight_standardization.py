"""Weights that are standardised before each use: with GroupNorm, what batch normalisation is missed for."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import final

import torch
from torch import Tensor, nn
from torch.nn.utils import parametrize

from sfumato import _check
from sfumato.errors import UnfitModule

__all__ = ["standardize_weights"]

_LAYERS: tuple[type[nn.Module], ...] = (nn.Conv1d, nn.Conv2d, nn.Conv3d)


@final
class Standardized(nn.Module):
    """Maps a weight to mean 0 and variance 1 over what feeds each output, divided by their number.

    Parameters
    ----------
    eps : float
        Added to the sum of squares, so that a constant weight has a finite value.
    """

    def __init__(self, eps: float) -> None:
        super().__init__()
        self.eps = eps

    def forward(self, weight: Tensor) -> Tensor:
        """Return the weight that the layer uses."""
        flat = weight.flatten(1)
        centred = flat - flat.mean(1, keepdim=True)
        squares = centred.square().sum(1, keepdim=True)
        standard: Tensor = (centred * torch.rsqrt(squares + self.eps)).view_as(weight)
        return standard

    def right_inverse(self, weight: Tensor) -> Tensor:
        """Return the weight itself: one whose standardised form an assignment means."""
        return weight


def standardize_weights(
    module: nn.Module, *, layers: Sequence[type[nn.Module]] = _LAYERS, eps: float = 1e-4
) -> nn.Module:
    """Return a copy whose convolutions use standardised weights.

    Each output's weights have their mean taken off and are scaled to the length 1 before every use. Put a
    `GroupNorm` behind each such layer, as `fix_module` does for batch normalisation: together they train
    about as well as batch normalisation without mixing examples.

    Parameters
    ----------
    module : torch.nn.Module
        Left as it is. Make the optimizer from the copy's parameters.
    layers : sequence of type
        Which layers: any with a ``weight`` whose first dimension is the outputs', such as `torch.nn.Linear`.
    eps : float
        Against dividing by zero.

    Returns
    -------
    torch.nn.Module
        ``state_dict`` has ``parametrizations.weight.original`` where ``weight`` was.

    Raises
    ------
    UnfitModule
        If no such layer is there, or one's weight is used elsewhere or made of other parameters already: it
        would be standardised in one position only.

    Notes
    -----
    Guarantee: none is touched. The weight that is used follows from the parameters alone, no example has a
    part in it, and the engine takes each example's gradient of the parameters through it before the norm.

    References
    ----------
    Qiao et al. (2019), "Micro-batch training with batch-channel normalization and weight standardization";
    De et al. (2022), section 3.

    Examples
    --------
    >>> net = standardize_weights(nn.Sequential(nn.Conv2d(3, 8, 3), nn.GroupNorm(2, 8)))
    >>> bool(net[0].weight.sum().abs() < 1e-5)
    True
    """
    eps = _check.positive("eps", eps)
    fresh = copy.deepcopy(module)
    found = [inner for inner in fresh.modules() if isinstance(inner, tuple(layers))]
    if not found:
        names = ", ".join(kind.__name__ for kind in layers)
        raise UnfitModule(f"module must have a layer to standardise, got none of {names}; pass layers=")
    holders = _holders(fresh)
    for inner in found:
        if parametrize.is_parametrized(inner, "weight"):
            raise UnfitModule(
                "weight must be a parameter of its own, got one made of others; remove that first"
            )
        if holders[id(inner.weight)] > 1:
            raise UnfitModule("weight must be used by one layer, got a shared one; leave that layer out")
    for inner in found:
        parametrize.register_parametrization(inner, "weight", Standardized(eps))
    return fresh


def _holders(module: nn.Module) -> dict[int, int]:
    """Return in how many positions each parameter is."""
    counts: dict[int, int] = {}
    for inner in module.modules():
        for parameter in inner._parameters.values():  # noqa: SLF001 - with repeated ones
            counts[id(parameter)] = counts.get(id(parameter), 0) + 1
    return counts
