"""What a step of the engine gives."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import final

from torch import Tensor

__all__ = ["ClippedSums"]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class ClippedSums:
    """Sums over examples of their clipped gradients, without noise: the curator's.

    Parameters
    ----------
    gradients : mapping of str to Tensor
        For each parameter that requires a gradient, the sum (not the mean); zeros where no example used it.
    examples : int
        How many examples were summed, those with gradients that are not finite included.
    norms : Tensor of shape (groups, examples)
        Norms before clipping, in the order in which the examples came; not finite where a gradient was not.

    Examples
    --------
    >>> import torch
    >>> sums = ClippedSums(gradients={"w": torch.zeros(2)}, examples=3, norms=torch.ones(1, 3))
    >>> sums.examples, tuple(sums.norms.shape)
    (3, (1, 3))
    """

    gradients: Mapping[str, Tensor]
    examples: int
    norms: Tensor
