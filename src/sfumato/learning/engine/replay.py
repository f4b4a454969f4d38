"""The fallbacks: per-example gradients from a forward that is run again, some examples at a time.

The forward's output comes from the same chunks, each with its generators' states noted, so that the second
run draws what the first one drew. The gradient of the loss with respect to the output is all that the
backward takes from the user's loss, so any loss will do.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any, Protocol, final

import torch
import torch.utils._pytree as pytree
from torch import Tensor, nn
from torch.autograd.function import once_differentiable

from sfumato.errors import UnfitModule
from sfumato.learning.clipping.clipping import Clipping
from sfumato.learning.clipping.precision import in_full
from sfumato.learning.engine.batching import over_examples
from sfumato.learning.engine.calls import called, tensors_in
from sfumato.learning.engine.layout import Layout
from sfumato.learning.engine.passes import Pass
from sfumato.learning.engine.uses import squares, wide

__all__ = ["Replay", "tied"]


@final
class Replay(Pass):
    """A forward whose examples are told apart by running each alone, or several under vmap.

    Parameters
    ----------
    module : torch.nn.Module
    args, kwargs
        Of the forward.
    parameters : mapping of str to Tensor
        Those that require a gradient.
    batch_dim : int
        Where the examples lie in the arguments.
    outputs : sequence
        Where they lie in the outputs.
    memory : int
        Bytes that the gradients of one chunk may take.
    vmap : bool
        Whether the examples of a chunk run together.
    alone : callable
        Makes contexts in which the module's call has no hooks of the engine.
    clipping, groups, scale
        As in `Pass.totals`.
    """

    def __init__(
        self,
        module: nn.Module,
        args: Sequence[Any],
        kwargs: Mapping[str, Any],
        *,
        count: int,
        parameters: Mapping[str, Tensor],
        batch_dim: int,
        outputs: Sequence[Layout | bool | None],
        memory: int,
        vmap: bool,
        alone: Callable[[], AbstractContextManager[object]],
        clipping: Clipping,
        groups: Mapping[str, int],
        scale: float,
    ) -> None:
        super().__init__(count)
        self._module, self._args, self._kwargs = module, args, kwargs
        self._parameters, self._outputs, self._vmap, self._alone_with = parameters, outputs, vmap, alone
        self._tensors = tensors_in(args, kwargs)
        self._layout = Layout(batch_dim)
        self._places = [
            k for k, t in enumerate(self._tensors) if t.dim() > batch_dim and t.shape[batch_dim] == count
        ]
        size = sum(math.prod(p.shape) * p.element_size() for p in parameters.values())
        self._few = max(1, min(count, memory // max(1, 2 * size))) if vmap else 1
        self._states: list[Tensor] = []
        self._clipping, self._groups, self._scale = clipping, groups, scale
        self._result: tuple[Mapping[str, Tensor], Tensor] | None = None

    def forward(self) -> Any:
        """Return the module's output, its tensors tied to this replay."""
        made = []
        with torch.no_grad():
            for start in range(0, self.count, self._few):
                self._states.append(torch.get_rng_state())
                made.append(self._chunk_outputs(start))
        tensors = [
            layout.together(torch.cat([chunk[place] for chunk in made]))
            if isinstance(layout, Layout)
            else made[-1][place]
            for place, layout in enumerate(self._outputs)
        ]
        return tied(self, self._form, tensors, self._outputs, [self._tensors[k] for k in self._places])

    def check(self) -> None:
        """Take the gradients of one chunk, in vain: what vmap cannot do is known before the backward."""
        values = self._values(0)
        with torch.no_grad(), torch.random.fork_rng([]):
            made = self._chunk_outputs(0)
            kept = [isinstance(layout, Layout) for layout in self._outputs]
            chunk = [torch.zeros_like(m) for m, k in zip(made, kept, strict=True) if k]
            self._chunk_gradients(0, chunk, kept, [False] * len(values))

    def _call(self, parameters: Mapping[str, Tensor], values: Sequence[Tensor]) -> list[Tensor]:
        """Return the outputs' tensors, of the parameters and inputs given."""
        tensors = list(self._tensors)
        for place, value in zip(self._places, values, strict=True):
            tensors[place] = value

        def run(*args: Any, **kwargs: Any) -> Any:
            return torch.func.functional_call(self._module, dict(parameters), args, kwargs)

        with self._alone_with():
            self._form = called(run, self._args, self._kwargs, tensors)
        return [leaf for leaf in pytree.tree_leaves(self._form) if isinstance(leaf, Tensor)]

    def _values(self, start: int) -> list[Tensor]:
        stop = min(start + self._few, self.count)
        return [
            self._layout.examples(self._tensors[k], self.count)[start:stop].detach() for k in self._places
        ]

    def _chunk_outputs(self, start: int) -> list[Tensor]:
        """Return the outputs of one chunk, each of shape (examples, ...)."""
        values, fixed = self._values(start), self._detached()
        if not self._vmap:
            return [tensor[None] for tensor in self._call(fixed, [value[0] for value in values])]
        made: list[Tensor] = over_examples(lambda *v: self._call(fixed, v), *values, randomness="different")
        return made

    def _detached(self) -> dict[str, Tensor]:
        return {name: parameter.detach() for name, parameter in self._parameters.items()}

    def backward(self, gradients: Sequence[Tensor | None], needed: Sequence[bool]) -> list[Tensor | None]:
        """Take the output's gradient; return the inputs'."""
        self.begin()
        outputs = [
            layout.examples(gradient, self.count)
            for layout, gradient in zip(self._outputs, gradients, strict=True)
            if gradient is not None and isinstance(layout, Layout)
        ]
        present = [
            g is not None and isinstance(w, Layout) for w, g in zip(self._outputs, gradients, strict=True)
        ]
        sums = {name: torch.zeros_like(wide(p.detach())) for name, p in self._parameters.items()}
        norms, found = [], []
        state = torch.get_rng_state()
        try:
            for place, start in enumerate(range(0, self.count, self._few)):
                torch.set_rng_state(self._states[place])
                chunk = [output[start : start + self._few] for output in outputs]
                own, of_inputs = self._chunk_gradients(start, chunk, present, needed)
                with in_full(next(iter(sums.values())).device):
                    norms.append(self._add(sums, own))
                found.append(of_inputs)
        finally:
            torch.set_rng_state(state)
        self._result = (sums, torch.cat(norms, 1))
        return [
            self._layout.together(torch.cat([chunk[k] for chunk in found])) if need else None
            for k, need in enumerate(needed)
        ]

    def _chunk_gradients(
        self, start: int, outputs: Sequence[Tensor], present: Sequence[bool], needed: Sequence[bool]
    ) -> tuple[Mapping[str, Tensor], Sequence[Any]]:
        """Return per-example gradients of the parameters, and of the inputs that need them."""
        values, fixed = self._values(start), self._detached()

        def one(values: Sequence[Tensor], outputs: Sequence[Tensor]) -> tuple[Any, Any]:
            def forward(parameters: Mapping[str, Tensor], inputs: Sequence[Tensor]) -> list[Tensor]:
                chosen = iter(inputs)
                mixed = [next(chosen) if n else v for n, v in zip(needed, values, strict=True)]
                made = self._call(parameters, mixed)
                return [tensor for tensor, wanted in zip(made, present, strict=True) if wanted]

            inputs = [value for value, need in zip(values, needed, strict=True) if need]
            pulled: tuple[Any, Any] = torch.func.vjp(forward, fixed, inputs)[1](list(outputs))
            return pulled

        if self._vmap:
            own, asked = over_examples(one, values, list(outputs), randomness="different")
        else:
            own, asked = self._alone([v[0] for v in values], [o[0] for o in outputs], present, needed)
        rest = iter(asked)
        return own, [next(rest) if need else None for need in needed]

    def _alone(
        self,
        values: Sequence[Tensor],
        outputs: Sequence[Tensor],
        present: Sequence[bool],
        needed: Sequence[bool],
    ) -> tuple[Mapping[str, Tensor], Sequence[Tensor]]:
        """Return one example's gradients, by the plainest way there is."""
        fixed = {name: tensor.requires_grad_() for name, tensor in self._detached().items()}
        inputs = [value.requires_grad_(n) for value, n in zip(values, needed, strict=True)]
        with torch.enable_grad():
            made = [t for t, wanted in zip(self._call(fixed, inputs), present, strict=True) if wanted]
        pairs = [(m, g) for m, g in zip(made, outputs, strict=True) if m.requires_grad]
        asked = [*fixed.values(), *(value for value, n in zip(inputs, needed, strict=True) if n)]
        found = torch.autograd.grad(
            [m for m, _ in pairs], asked, [g for _, g in pairs], allow_unused=True, materialize_grads=True
        )
        own = {name: gradient[None] for name, gradient in zip(fixed, found, strict=False)}
        return own, [gradient[None] for gradient in found[len(fixed) :]]

    def _add(self, sums: Mapping[str, Tensor], own: Mapping[str, Tensor]) -> Tensor:
        """Add a chunk's clipped gradients to the sums; return its norms."""
        flat = {name: wide(gradient).reshape(len(gradient), -1) for name, gradient in own.items()}
        few = len(next(iter(flat.values())))
        kinds = {gradient.dtype for gradient in flat.values()}
        kind = torch.float64 if torch.float64 in kinds else torch.float32
        device = next(iter(flat.values())).device
        squared = torch.zeros(max(self._groups.values()) + 1, few, dtype=kind, device=device)
        for name, gradient in flat.items():
            squared[self._groups[name]] += squares(gradient)
        squared *= self._scale * self._scale
        bad = ~squared.isfinite().all(0)
        factors = self._clipping.factors(squared) * self._scale
        for name, gradient in flat.items():
            good = gradient.masked_fill(bad[:, None], 0) if bad.any() else gradient
            total = factors[self._groups[name]].to(good.dtype) @ good
            sums[name].add_(total.view(sums[name].shape))
        return squared.sqrt()

    def totals(
        self, clipping: Clipping, groups: Mapping[str, int], scale: float
    ) -> tuple[Mapping[str, Tensor], Tensor]:
        """Return what the backward has summed."""
        if self._result is None:
            raise UnfitModule("backward must come before its sums are taken, got none; call loss.backward()")
        return self._result


class _Again(Protocol):
    def backward(self, gradients: Sequence[Tensor | None], needed: Sequence[bool]) -> list[Tensor | None]: ...


def tied(
    again: _Again,
    form: Any,
    tensors: Sequence[Tensor],
    layouts: Sequence[Layout | bool | None],
    inputs: Sequence[Tensor],
) -> Any:
    """Return an output of a given form, whose backward is that of the pass.

    Raises
    ------
    UnfitModule
        If a tensor in it could pass a gradient on without belonging to single examples.
    """
    for tensor, layout in zip(tensors, layouts, strict=True):
        if not isinstance(layout, Layout) and tensor.is_floating_point():
            raise UnfitModule(
                "outputs must each belong to one example, got one that does not; "
                "compute the loss outside of the module"
            )
    leaves, spec = pytree.tree_flatten(form)
    apply: Any = _Replayed.apply
    fresh = iter(apply(again, torch.zeros((), requires_grad=True), len(tensors), *tensors, *inputs))
    return pytree.tree_unflatten([next(fresh) if isinstance(x, Tensor) else x for x in leaves], spec)


class _Replayed(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, again: _Again, anchor: Tensor, count: int, *tensors: Tensor) -> Any:
        outputs = tuple(tensor.detach() for tensor in tensors[:count])
        ctx.again, ctx.count = again, count
        ctx.set_materialize_grads(False)
        ctx.mark_non_differentiable(*(o for o in outputs if not o.is_floating_point()))
        return outputs

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *gradients: Any) -> Any:
        found = ctx.again.backward(gradients, ctx.needs_input_grad[3 + ctx.count :])
        return (None,) * (3 + ctx.count) + tuple(found)
