"""Flat clipping: one norm over all parameters."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import final

from torch import Tensor

from sfumato.learning.clipping.clipping import Clipping, bounded, clip_norm_of, finite_only, norms_of

__all__ = ["Flat", "SingleNorm"]


@dataclass(frozen=True, slots=True, kw_only=True)
class SingleNorm(Clipping):
    """Clipping by one norm over all parameters together.

    Parameters
    ----------
    clip_norm : float
        The L2 bound on an example's whole gradient.
    """

    clip_norm: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "clip_norm", clip_norm_of("clip_norm", self.clip_norm))

    def groups(self, names: Sequence[str]) -> tuple[int, ...]:
        """Return 0 for each parameter.

        Parameters
        ----------
        names : sequence of str
            The parameters' names.

        Returns
        -------
        tuple of int
            The group of each parameter, from 0.
        """
        return (0,) * len(names)

    def factors(self, squared_norms: Tensor) -> Tensor:
        """Return the clip norm over the norm, at most 1.

        Parameters
        ----------
        squared_norms : Tensor of shape (groups, examples)
            Of each example's gradient.

        Returns
        -------
        Tensor of shape (groups, examples)
            At most what keeps each example within its bound; 0 where a norm is not finite.
        """
        return finite_only((self.clip_norm / norms_of(squared_norms)).clamp(max=1), squared_norms)

    @property
    def sensitivity(self) -> float:
        """The clip norm, and what floats may add."""
        return bounded(self.clip_norm)

    @property
    def group_sensitivities(self) -> tuple[float, ...]:
        """One group has it all."""
        return (self.sensitivity,)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Flat(SingleNorm):
    """Scale an example's gradient down to a norm, over all parameters together.

    Parameters
    ----------
    clip_norm : float
        Between 2**-40 and 2**40.

    Notes
    -----
    Guarantee: see `Clipping`, with the clip norm as the bound.

    References
    ----------
    Abadi et al. (2016), "Deep learning with differential privacy", Algorithm 1.

    Examples
    --------
    >>> import torch
    >>> Flat(clip_norm=1.0).factors(torch.tensor([[0.25, 4.0, float("nan")]])).tolist()
    [[1.0, 0.5, 0.0]]
    """
