"""Per-example gradients of one forward and backward, by parameter, and the norms known so far."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping

import torch
from torch import Tensor

from sfumato.learning.clipping.clipping import Clipping
from sfumato.learning.clipping.precision import in_full
from sfumato.learning.engine.gradients.augmented_views import of_examples
from sfumato.learning.engine.gradients.forward_backward import ForwardBackward
from sfumato.learning.engine.gradients.memory_pool import MemoryPool
from sfumato.learning.engine.gradients.per_example import PerExampleGradients
from sfumato.learning.engine.gradients.summation import Collected, TrackedTensor, sum_clipped

__all__ = ["GradientCollector"]


class GradientCollector(ForwardBackward):
    """The uses of one forward.

    Parameters
    ----------
    parameters : mapping of str to Tensor
        Those that require a gradient.
    count : int
        How many rows there are: as many as examples without views.
    max_entries : int
        How many entries of gradients one use may store.
    pool : Arena
        Where they are stored.
    views : int
        How many rows in a row are one example: uses speak of rows until they are collected, then of examples.
    """

    def __init__(
        self,
        parameters: Mapping[str, Tensor],
        count: int,
        max_entries: int,
        pool: MemoryPool,
        *,
        views: int = 1,
    ) -> None:
        super().__init__(count)
        self.examples, self._views = count // views, views
        self.max_entries, self.pool = max_entries, pool
        self.parameters = parameters
        self.followed = {id(p): TrackedTensor(name, p, frozenset({name})) for name, p in parameters.items()}
        self.gradients: defaultdict[str, list[PerExampleGradients]] = defaultdict(list)
        self.norms: dict[str, Tensor] = {}
        self.expected: Counter[str] = Counter()
        self.anchor = torch.zeros((), requires_grad=True)
        self.broken = False

    def follow(self, tensor: Tensor, key: str, roots: frozenset[str]) -> None:
        """Follow a tensor that is made from parameters alone."""
        self.followed.setdefault(id(tensor), TrackedTensor(key, tensor, roots))

    def expect(self, tensor: Tensor) -> None:
        """Count a use in the forward."""
        followed = self.followed[id(tensor)]
        self.expected[followed.key] += 1
        if followed.key not in followed.roots:
            self.expected.update(dict.fromkeys(followed.roots, 2))  # never alone

    def collect(self, tensor: Tensor, found: PerExampleGradients) -> None:
        """Take what the backward of one use leaves; a parameter used once gets its norms right away."""
        key = self.followed[id(tensor)].key
        if self._views > 1:
            found = of_examples(found, self._views, max_entries=self.max_entries)
        self.gradients[key].append(found)
        if self.expected[key] == 1 and key in self.parameters:
            with in_full(tensor.device):
                self.norms[key] = found.squared_norms()

    def sums_and_norms(
        self, clipping: Clipping, groups: Mapping[str, int], scale: float
    ) -> tuple[Mapping[str, Tensor], Tensor]:
        """Return the sums of clipped gradients, and the norms."""
        with in_full(next(iter(self.parameters.values())).device):
            found = sum_clipped(self._collected(), clipping, groups, scale)
        self.pool.release()
        return found

    def _collected(self) -> Collected:
        return Collected(
            parameters=self.parameters,
            tracked=tuple(self.followed.values()),
            gradients=self.gradients,
            norms=self.norms,
            examples=self.examples,
            max_entries=self.max_entries,
        )
