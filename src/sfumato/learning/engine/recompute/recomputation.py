"""A forward that is run again, some examples at a time: what the ways to do so share."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any, final

import torch
import torch.utils._pytree as pytree
from torch import Tensor, nn

from sfumato.errors import UnfitModule
from sfumato.learning.clipping.clipping import Clipping
from sfumato.learning.engine.gradients.forward_backward import ForwardBackward, first_order
from sfumato.learning.engine.out_of_memory import OutOfMemoryRemedy
from sfumato.learning.engine.trace.batch_layout import BatchLayout
from sfumato.learning.engine.trace.calls import called, tensors_in

__all__ = ["ForwardCall", "Recomputation"]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class ForwardCall:
    """One forward of the user's module, and what is made of its gradients.

    Parameters
    ----------
    module : torch.nn.Module
    args, kwargs
        Of the forward.
    count : int
        How many rows there are: as many as examples without views.
    batch_dim : int
        Where they lie in the arguments.
    outputs : sequence
        Where they lie in the outputs.
    alone : callable
        Makes contexts in which the module's call has no hooks of the engine.
    clipping, groups, scale
        As in `ForwardBackward.sums_and_norms`.
    """

    module: nn.Module
    args: Sequence[Any]
    kwargs: Mapping[str, Any]
    count: int
    batch_dim: int
    outputs: Sequence[BatchLayout | bool | None]
    alone: Callable[[], AbstractContextManager[object]]
    clipping: Clipping
    groups: Mapping[str, int]
    scale: float


class Recomputation(ForwardBackward):
    """A forward without a graph, whose backward runs it again, each time for a few rows.

    Parameters
    ----------
    of : Forward
    few : int
        How many rows run at a time.
    """

    def __init__(self, of: ForwardCall, few: int) -> None:
        super().__init__(of.count)
        self._of, self._few = of, few
        self._layout = BatchLayout(of.batch_dim)
        self._tensors = tensors_in(of.args, of.kwargs)
        self._indices = [k for k, t in enumerate(self._tensors) if self._holds(t)]
        self._states: list[Tensor] = []
        self._result: tuple[Mapping[str, Tensor], Tensor] | None = None

    def _holds(self, tensor: Tensor) -> bool:
        """Return whether an argument holds a position for each row."""
        dim = self._of.batch_dim
        return tensor.dim() > dim and tensor.shape[dim] == self.count

    def _run(self, run: Callable[..., Any], values: Sequence[Tensor]) -> Any:
        """Call a function with these in place of the arguments that hold all rows."""
        tensors = list(self._tensors)
        for index, value in zip(self._indices, values, strict=True):
            tensors[index] = value
        with self._of.alone():
            return called(run, self._of.args, self._of.kwargs, tensors)

    def _tied(self, form: Any, tensors: Sequence[Tensor]) -> Any:
        """Return an output of a given form, whose backward is that of the pass.

        Raises
        ------
        UnfitModule
            If a tensor in it could pass a gradient on without belonging to single examples.
        """
        for tensor, layout in zip(tensors, self._of.outputs, strict=True):
            if not isinstance(layout, BatchLayout) and tensor.is_floating_point():
                raise UnfitModule(
                    "outputs must each belong to one example, got one that does not; "
                    "compute the loss outside of the module"
                )
        inputs = [self._tensors[k] for k in self._indices]
        leaves, spec = pytree.tree_flatten(form)
        apply: Any = _Tied.apply
        fresh = iter(apply(self, torch.zeros((), requires_grad=True), len(tensors), *tensors, *inputs))
        return pytree.tree_unflatten([next(fresh) if isinstance(x, Tensor) else x for x in leaves], spec)

    @abstractmethod
    def backward(self, gradients: Sequence[Tensor | None], needed: Sequence[bool]) -> list[Tensor | None]:
        """Take the output's gradient; return the inputs'.

        Parameters
        ----------
        gradients : sequence
            One for each tensor in the output; None if the loss does not follow from it.
        needed : sequence of bool
            Which of the arguments that hold all rows want one.
        """

    def sums_and_norms(
        self, clipping: Clipping, groups: Mapping[str, int], scale: float
    ) -> tuple[Mapping[str, Tensor], Tensor]:
        """Return what the backward has summed."""
        if self._result is None:
            raise UnfitModule("backward must come before its sums are taken, got none; call loss.backward()")
        return self._result


class _Tied(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, again: Recomputation, anchor: Tensor, count: int, *tensors: Tensor) -> Any:
        outputs = tuple(tensor.detach() for tensor in tensors[:count])
        ctx.again, ctx.count = again, count
        ctx.set_materialize_grads(False)
        ctx.mark_non_differentiable(*(o for o in outputs if not o.is_floating_point()))
        return outputs

    @staticmethod
    @first_order
    def backward(ctx: Any, *gradients: Any) -> Any:
        with OutOfMemoryRemedy():
            found = ctx.again.backward(gradients, ctx.needs_input_grad[3 + ctx.count :])
        return (None,) * (3 + ctx.count) + tuple(found)
