"""Automatic clipping: every gradient scaled to nearly the same norm."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import final

from torch import Tensor

from sfumato import _check
from sfumato.learning.clipping.clipping import Clipping, bounded, clip_norm_of, finite_only, norms_of

__all__ = ["Automatic"]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Automatic(Clipping):
    r"""Scale an example's gradient by :math:`R/(\|g\| + \gamma)`: no clip norm is to be tuned.

    Parameters
    ----------
    clip_norm : float
        R, below which every norm stays; it only rescales the learning rate.
    gamma : float
        Positive: keeps small gradients small, so that training converges.

    Notes
    -----
    Guarantee: see `Clipping`, with the clip norm as the bound, as :math:`\|g\|/(\|g\| + \gamma) < 1`.

    References
    ----------
    Bu, Wang, Zha, Karypis (2023), "Automatic clipping: differentially private deep learning made easier and
    stronger", AUTO-S.

    Examples
    --------
    >>> import torch
    >>> Automatic(clip_norm=1.0, gamma=0.5).factors(torch.tensor([[0.0, 2.25]])).tolist()
    [[2.0, 0.5]]
    """

    clip_norm: float = 1.0
    gamma: float = 0.01

    def __post_init__(self) -> None:
        object.__setattr__(self, "clip_norm", clip_norm_of("clip_norm", self.clip_norm))
        gamma = _check.positive("gamma", self.gamma)
        if gamma < 2.0**-40:
            _check.refuse("gamma", "be at least 2**-40", self.gamma, "0.01 is usual")
        object.__setattr__(self, "gamma", gamma)

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
        """Return the clip norm over the norm and gamma.

        Parameters
        ----------
        squared_norms : Tensor of shape (groups, examples)
            Of each example's gradient.

        Returns
        -------
        Tensor of shape (groups, examples)
            At most what keeps each example within its bound; 0 where a norm is not finite.
        """
        return finite_only(self.clip_norm / (norms_of(squared_norms) + self.gamma), squared_norms)

    @property
    def sensitivity(self) -> float:
        """The clip norm, and what floats may add."""
        return bounded(self.clip_norm)

    @property
    def group_sensitivities(self) -> tuple[float, ...]:
        """One group has it all."""
        return (self.sensitivity,)
