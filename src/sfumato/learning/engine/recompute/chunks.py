"""Less memory for another forward: the rules run for some examples at a time."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, final

import torch
import torch.utils._pytree as pytree
from torch import Tensor

from sfumato.errors import UnfitModule
from sfumato.learning.engine.gradients.collector import GradientCollector
from sfumato.learning.engine.recompute.recomputation import ForwardCall, Recomputation
from sfumato.learning.engine.rules.dispatch import RuleDispatch
from sfumato.learning.engine.trace.batch_layout import BatchLayout
from sfumato.learning.engine.trace.plan import ForwardPlan

__all__ = ["ChunkedRecomputation"]


@final
class ChunkedRecomputation(Recomputation):
    """A forward without a graph; its backward runs it again by chunks, each with a collector of its own.

    Parameters
    ----------
    of : Forward
    few : int
        How many rows run at a time.
    plan : Plan
    collector : callable
        Makes the collector of so many rows.
    """

    def __init__(
        self, of: ForwardCall, few: int, *, plan: ForwardPlan, collector: Callable[[int], GradientCollector]
    ) -> None:
        super().__init__(of, few)
        self._plan, self._collector = plan, collector

    def forward(self, given: Any = None) -> Any:
        """Return the module's output, its tensors tied to this pass.

        Parameters
        ----------
        given : object, optional
            The output of a forward that drew nothing at random: it need not be run again.
        """
        if given is not None:
            self._states = [torch.get_rng_state()] * -(-self.count // self._few)
            leaves = [leaf for leaf in pytree.tree_leaves(given) if isinstance(leaf, Tensor)]
            return self._tied(given, leaves)
        made: list[list[Tensor]] = []
        with torch.no_grad():
            for start in range(0, self.count, self._few):
                self._states.append(torch.get_rng_state())
                form = self._run(self._of.module.forward, self._values(start))
                made.append([leaf for leaf in pytree.tree_leaves(form) if isinstance(leaf, Tensor)])
        sizes = [min(self._few, self.count - start) for start in range(0, self.count, self._few)]
        tensors = []
        for index, layout in enumerate(self._of.outputs):
            if isinstance(layout, BatchLayout):
                pairs = zip(made, sizes, strict=True)
                parts = [layout.examples(chunk[index], size) for chunk, size in pairs]
                tensors.append(layout.together(torch.cat(parts)))
            else:
                tensors.append(made[-1][index])
        return self._tied(form, tensors)

    def _values(self, start: int) -> list[Tensor]:
        size = min(self._few, self.count - start)
        return [self._tensors[k].detach().narrow(self._layout.dim, start, size) for k in self._indices]

    def backward(self, gradients: Sequence[Tensor | None], needed: Sequence[bool]) -> list[Tensor | None]:
        """Take the output's gradient; return the inputs'."""
        self.begin()
        sums: dict[str, Tensor] = {}
        norms: list[Tensor] = []
        found: list[list[Tensor | None]] = []
        state = torch.get_rng_state()
        try:
            for index, start in enumerate(range(0, self.count, self._few)):
                torch.set_rng_state(self._states[index])
                values = self._values(start)
                for value, need in zip(values, needed, strict=True):
                    value.requires_grad_(need)
                sums_and_norms, sizes = self._chunk(start, values, gradients)
                for name, total in sums_and_norms.items():
                    sums[name] = sums[name].add_(total) if name in sums else total
                norms.append(sizes)
                found.append([value.grad for value in values])
        finally:
            torch.set_rng_state(state)
        self._result = (sums, torch.cat(norms, 1))
        return [
            torch.cat([chunk[k] for chunk in found if chunk[k] is not None], self._layout.dim)  # type: ignore[misc]
            if need
            else None
            for k, need in enumerate(needed)
        ]

    def _chunk(
        self, start: int, values: Sequence[Tensor], gradients: Sequence[Tensor | None]
    ) -> tuple[Mapping[str, Tensor], Tensor]:
        """Run one chunk forward and back; return its sums and norms."""
        size = min(self._few, self.count - start)
        collector = self._collector(size)
        with torch.enable_grad(), RuleDispatch(self._plan, collector):
            form = self._run(self._of.module.forward, values)
        if collector.broken:
            raise UnfitModule(
                "forward must take the same way for all parts of a batch, got one that does not; "
                "leave chunk out"
            )
        outputs = [leaf for leaf in pytree.tree_leaves(form) if isinstance(leaf, Tensor)]
        pairs = [
            (output, layout.together(layout.examples(gradient, self.count)[start : start + size]))
            for output, layout, gradient in zip(outputs, self._of.outputs, gradients, strict=True)
            if gradient is not None and isinstance(layout, BatchLayout) and output.requires_grad
        ]
        torch.autograd.backward([output for output, _ in pairs], [gradient for _, gradient in pairs])
        with torch.no_grad():
            return collector.sums_and_norms(self._of.clipping, self._of.groups, self._of.scale)
