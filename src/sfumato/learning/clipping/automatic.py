"""Automatic clipping: every gradient scaled to nearly the same norm."""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

from torch import Tensor

from sfumato import _check
from sfumato.learning.clipping.clipping import finite_only, norms_of
from sfumato.learning.clipping.flat import SingleNorm

__all__ = ["Automatic"]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Automatic(SingleNorm):
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
        SingleNorm.__post_init__(self)
        gamma = _check.positive("gamma", self.gamma)
        if gamma < 2.0**-40:
            _check.refuse("gamma", "be at least 2**-40", self.gamma, "0.01 is usual")
        object.__setattr__(self, "gamma", gamma)

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
