"""The fallbacks: per-example gradients from a forward that is run again, some examples at a time.

The forward's output comes from the same chunks, each with its generators' states noted, so that the second
run draws what the first one drew. The gradient of the loss with respect to the output is all that the
backward takes from the user's loss, so any loss will do.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from typing import Any, final

import torch
import torch.utils._pytree as pytree
from torch import Tensor

from sfumato.errors import UnfitModule
from sfumato.learning.clipping.precision import in_full
from sfumato.learning.engine.gradients.per_example import squares, wide
from sfumato.learning.engine.gradients.summation import by_group
from sfumato.learning.engine.recompute.recomputation import ForwardCall, Recomputation
from sfumato.learning.engine.trace.batch_layout import BatchLayout
from sfumato.learning.engine.trace.decompositions import UnfusedRecurrence
from sfumato.learning.engine.vmap import over_examples

__all__ = ["MicrobatchRecomputation", "replayed"]


@final
class MicrobatchRecomputation(Recomputation):
    """A forward whose examples are separated by running each alone, or several under vmap.

    Parameters
    ----------
    of : Forward
    parameters : mapping of str to Tensor
        Those that require a gradient.
    views : int
        How many rows in a row are one example.
    memory : int
        Bytes that the gradients of one chunk may take.
    vmap : bool
        Whether the examples of a chunk run together.
    """

    def __init__(
        self, of: ForwardCall, *, parameters: Mapping[str, Tensor], views: int, memory: int, vmap: bool
    ) -> None:
        size = sum(math.prod(p.shape) * p.element_size() for p in parameters.values())
        super().__init__(
            of, views * max(1, min(of.count, memory // max(1, 2 * size)) // views) if vmap else 1
        )
        self._parameters, self._vmap = parameters, vmap
        self._views, self._held = views, dict[str, Tensor]()

    def forward(self) -> Any:
        """Return the module's output, its tensors tied to this replay."""
        made = []
        with torch.no_grad():
            for start in range(0, self.count, self._few):
                self._states.append(torch.get_rng_state())
                made.append(self._chunk_outputs(start))
        tensors = [
            layout.together(torch.cat([chunk[index] for chunk in made]))
            if isinstance(layout, BatchLayout)
            else made[-1][index]
            for index, layout in enumerate(self._of.outputs)
        ]
        return self._tied(self._form, tensors)

    def check(self) -> None:
        """Take the gradients of one chunk, in vain: what vmap cannot do is known before the backward.

        Raises
        ------
        UnfitModule
            If vmap cannot run the module: a RuntimeError too, as torch's own is.
        """
        values = self._values(0)
        try:
            with torch.no_grad(), torch.random.fork_rng([]):
                made = self._chunk_outputs(0)
                present = [isinstance(layout, BatchLayout) for layout in self._of.outputs]
                chunk = [torch.zeros_like(m) for m, k in zip(made, present, strict=True) if k]
                self._chunk_gradients(0, chunk, present, [False] * len(values))
        except torch.OutOfMemoryError:
            raise
        except RuntimeError as error:
            raise _Unmapped(
                "module must run under torch.func.vmap for mode 'vmap', got one that cannot; use 'auto'"
            ) from error

    def _call(self, parameters: Mapping[str, Tensor], values: Sequence[Tensor]) -> list[Tensor]:
        """Return the outputs' tensors, of the parameters and inputs given."""

        def run(*args: Any, **kwargs: Any) -> Any:
            return torch.func.functional_call(self._of.module, dict(parameters), args, kwargs)

        with UnfusedRecurrence() if self._vmap else nullcontext():
            self._form = self._run(run, values)
        return [leaf for leaf in pytree.tree_leaves(self._form) if isinstance(leaf, Tensor)]

    def _values(self, start: int) -> list[Tensor]:
        few = slice(start, start + self._few)  # or those that are left
        return [self._layout.examples(self._tensors[k], self.count)[few].detach() for k in self._indices]

    def _chunk_outputs(self, start: int) -> list[Tensor]:
        """Return the outputs of one chunk, each of shape (examples, ...)."""
        values, fixed = self._values(start), self._detached()
        if not self._vmap:
            # Its own gradients, as an energy's, are part of what a forward may give.
            with torch.enable_grad():
                made = self._call(fixed, [value[0] for value in values])
            return [tensor.detach()[None] for tensor in made]
        mapped: list[Tensor] = over_examples(lambda *v: self._call(fixed, v), *values, randomness="different")
        return mapped

    def _detached(self) -> dict[str, Tensor]:
        return {name: parameter.detach() for name, parameter in self._parameters.items()}

    def backward(self, gradients: Sequence[Tensor | None], needed: Sequence[bool]) -> list[Tensor | None]:
        """Take the output's gradient; return the inputs'."""
        self.begin()
        outputs = [
            layout.examples(gradient, self.count)
            for layout, gradient in zip(self._of.outputs, gradients, strict=True)
            if gradient is not None and isinstance(layout, BatchLayout)
        ]
        present = [
            g is not None and isinstance(w, BatchLayout)
            for w, g in zip(self._of.outputs, gradients, strict=True)
        ]
        sums = {name: torch.zeros_like(wide(p.detach())) for name, p in self._parameters.items()}
        norms, found = [], []
        state = torch.get_rng_state()
        try:
            for index, start in enumerate(range(0, self.count, self._few)):
                torch.set_rng_state(self._states[index])
                chunk = [output[start : start + self._few] for output in outputs]
                own, of_inputs = self._chunk_gradients(start, chunk, present, needed)
                with in_full(next(iter(sums.values())).device):
                    examples = self._of_examples(own, last=(start + self._few) % self._views == 0)
                    if examples is not None:
                        norms.append(self._add(sums, examples))
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
        own = {name: gradient.to_dense()[None] for name, gradient in zip(fixed, found, strict=False)}
        return own, [gradient[None] for gradient in found[len(fixed) :]]

    def _of_examples(self, own: Mapping[str, Tensor], *, last: bool) -> Mapping[str, Tensor] | None:
        """Return the rows' gradients added up for each example; None before the last of its rows."""
        flat = {name: wide(gradient).reshape(len(gradient), -1) for name, gradient in own.items()}
        if self._vmap:
            return {name: rows.unflatten(0, (-1, self._views)).sum(1) for name, rows in flat.items()}
        held = self._held
        self._held = {name: held[name] + row for name, row in flat.items()} if held else flat
        if not last:
            return None
        whole, self._held = self._held, {}
        return whole

    def _add(self, sums: Mapping[str, Tensor], flat: Mapping[str, Tensor]) -> Tensor:
        """Add a chunk's clipped gradients to the sums; return its norms."""
        few = len(next(iter(flat.values())))
        kinds = {gradient.dtype for gradient in flat.values()}
        kind = torch.float64 if torch.float64 in kinds else torch.float32
        device = next(iter(flat.values())).device
        squared = torch.zeros(max(self._of.groups.values()) + 1, few, dtype=kind, device=device)
        norms = {name: squares(gradient).to(kind) for name, gradient in flat.items()}
        for group, own in by_group(norms, self._of.groups).items():
            squared[group] = own
        squared *= self._of.scale * self._of.scale
        bad = ~squared.isfinite().all(0)
        factors = self._of.clipping.factors(squared) * self._of.scale
        for name, gradient in flat.items():
            good = gradient.masked_fill(bad[:, None], 0) if bad.any() else gradient
            total = factors[self._of.groups[name]].to(good.dtype) @ good
            sums[name].add_(total.view(sums[name].shape))
        return squared.sqrt()


class _Unmapped(UnfitModule, RuntimeError):
    """The module does not run under vmap."""


def replayed(
    of: ForwardCall,
    *,
    parameters: Mapping[str, Tensor],
    views: int,
    memory: int,
    mode: str,
    vmap: bool | None,
) -> tuple[Any, MicrobatchRecomputation, bool]:
    """Run a forward by vmap if it can be, else one row at a time.

    Parameters
    ----------
    of, parameters, views, memory
        As in `MicrobatchRecomputation`.
    mode : str
        The engine's: "vmap" and "microbatch" leave no choice.
    vmap : bool, optional
        What was found before; None if this is the first time.

    Returns
    -------
    tuple
        The output, what waits for its backward, and whether it is by vmap.
    """
    alone = mode == "microbatch" or vmap is False
    ways = (False,) if alone else (True,) if mode == "vmap" else (True, False)
    for way in ways[:-1]:
        replay = MicrobatchRecomputation(of, parameters=parameters, views=views, memory=memory, vmap=way)
        try:
            if vmap is None:
                replay.check()
            return replay.forward(), replay, way
        except RuntimeError:
            continue
    replay = MicrobatchRecomputation(of, parameters=parameters, views=views, memory=memory, vmap=ways[-1])
    if ways[-1] and vmap is None:
        replay.check()
    return replay.forward(), replay, ways[-1]
