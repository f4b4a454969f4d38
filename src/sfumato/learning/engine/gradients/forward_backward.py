"""One forward and its one backward."""

from __future__ import annotations

import functools
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch import Tensor

from sfumato.errors import UnfitModule
from sfumato.learning.clipping.clipping import Clipping

__all__ = ["ForwardBackward", "first_order"]


def first_order(backward: Callable[..., Any]) -> Callable[..., Any]:
    """Refuse a backward that is to be differentiated itself, as by ``create_graph=True``.

    The parameters are no inputs of the engine's nodes: the gradient of such a gradient would not reach them.

    Parameters
    ----------
    backward : callable
        Of an autograd function.

    Returns
    -------
    callable
    """

    @functools.wraps(backward)
    def once(ctx: Any, *gradients: Any) -> Any:
        if torch.is_grad_enabled():
            raise UnfitModule(
                "gradients must not be differentiated again outside of the module's forward, got "
                "create_graph=True; wrap a critic in GradientPenalty, or take the gradient in the forward"
            )
        return backward(ctx, *gradients)

    return once


class ForwardBackward(ABC):
    """A forward that waits for its backward.

    Parameters
    ----------
    count : int
        How many examples there are.
    """

    def __init__(self, count: int) -> None:
        self.count = count
        self.begun = self.complete = self.superseded = False

    def begin(self) -> None:
        """Note that a backward has come to this forward.

        Raises
        ------
        UnfitModule
            If another forward came between, or the backward is the second: which examples are one, and what
            norm a sum of both has, would be unknown.
        """
        if self.superseded:
            raise UnfitModule(
                "forward must be followed by its own backward, got a backward through two forwards; "
                "call backward after each forward, or put all inputs into one"
            )
        if self.complete:
            raise UnfitModule(
                "backward must run once for each forward, got a second one; add the losses up first"
            )
        if not self.begun:
            self.begun = True
            torch.autograd.Variable._execution_engine.queue_callback(self._end)  # noqa: SLF001

    def _end(self) -> None:
        self.complete = True

    @abstractmethod
    def sums_and_norms(
        self, clipping: Clipping, groups: Mapping[str, int], scale: float
    ) -> tuple[Mapping[str, Tensor], Tensor]:
        """Return the sums of clipped gradients, and the norms of shape (groups, examples).

        Parameters
        ----------
        clipping : Clipping
            Gives the factors.
        groups : mapping of str to int
            The clipping group of each parameter.
        scale : float
            What the loss was divided by.
        """
