"""The functional door: clipped gradients of a loss that is a function of parameters and one example."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, final

import torch
from torch import Tensor

from sfumato import _check
from sfumato.learning.clipping.clipping import Clipping
from sfumato.learning.clipping.flat import Flat
from sfumato.learning.clipping.precision import in_full
from sfumato.learning.engine.clipped_sums import ClippedSums
from sfumato.learning.engine.gradients.per_example import squares, wide
from sfumato.learning.engine.vmap import over_examples

__all__ = ["ClippedGrad", "clipped_grad"]

_MEMORY = 2**28


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class ClippedGrad:
    """A function of parameters and a batch that returns sums of clipped gradients; see `clipped_grad`.

    Parameters
    ----------
    loss : callable
        Of the parameters and one example's part of each argument of the batch.
    clipping : Clipping
    batch_argnums : tuple of int
        The arguments with a row for each example.
    memory : int
        Bytes of per-example gradients to hold at a time.
    randomness : str
        What ``torch.func.vmap`` does with random numbers.

    Examples
    --------
    >>> import torch
    >>> from sfumato.learning import clipped_grad
    >>> def loss(parameters, x):
    ...     return parameters["w"] @ x
    >>> grad = clipped_grad(loss, clip_norm=1.0, batch_argnums=(1,))
    >>> isinstance(grad, ClippedGrad), grad({"w": torch.zeros(2)}, torch.ones(3, 2)).examples
    (True, 3)
    """

    loss: Callable[..., Tensor]
    clipping: Clipping
    batch_argnums: tuple[int, ...]
    memory: int
    randomness: str

    @property
    def sensitivity(self) -> float:
        """The most by which adding or removing one example moves the sums, in the L2 norm over all."""
        return self.clipping.sensitivity

    def __call__(self, parameters: Mapping[str, Tensor], *batch: Any) -> ClippedSums:
        """Return the sums, without noise: the curator's.

        Parameters
        ----------
        parameters : mapping of str to Tensor
            What the loss is differentiated by.
        *batch
            The other arguments of the loss, those of `batch_argnums` with one row for each example.

        Raises
        ------
        ParameterError
            If the rows of the batch's arguments are not equally many.
        """
        names = list(parameters)
        groups = dict(zip(names, self.clipping.groups(names), strict=True))
        fixed = {name: tensor.detach() for name, tensor in parameters.items()}
        sums = {name: torch.zeros_like(wide(tensor)) for name, tensor in fixed.items()}
        size = sum(math.prod(tensor.shape) * tensor.element_size() for tensor in fixed.values())
        few = max(1, self.memory // max(1, 2 * size))
        norms = [torch.zeros(max(groups.values(), default=0) + 1, 0)]
        count = self._count(batch)
        for start in range(0, count, few):
            gradients = self._gradients(fixed, batch, slice(start, min(start + few, count)))
            with in_full(next(iter(sums.values()), torch.empty(0)).device):
                norms.append(self._add(sums, gradients, groups))
        return ClippedSums(gradients=sums, examples=count, norms=torch.cat(norms, 1))

    def _count(self, batch: Sequence[Any]) -> int:
        counts = {len(batch[index - 1]) for index in self.batch_argnums}
        if len(counts) != 1:
            remedy = "pass one row for each example in every argument"
            rule = "have as many rows in each of its arguments"
            _check.refuse_state("batch", rule, f"the arguments have {sorted(counts)} rows", remedy)
        return counts.pop()

    def _gradients(
        self, fixed: Mapping[str, Tensor], batch: Sequence[Any], part: slice
    ) -> Mapping[str, Tensor]:
        rows = [batch[index - 1][part] for index in self.batch_argnums]

        def one(*examples: Tensor) -> Any:
            arguments = list(batch)
            for index, example in zip(self.batch_argnums, examples, strict=True):
                arguments[index - 1] = example
            return torch.func.grad(self.loss)(dict(fixed), *arguments)

        found: Mapping[str, Tensor] = over_examples(one, *rows, randomness=self.randomness)
        return found

    def _add(
        self, sums: Mapping[str, Tensor], gradients: Mapping[str, Tensor], groups: Mapping[str, int]
    ) -> Tensor:
        flat = {name: wide(g).reshape(len(g), -1) for name, g in gradients.items()}
        kind = max((g.dtype for g in flat.values()), key=lambda dtype: dtype.itemsize)
        first = next(iter(flat.values()))
        squared = torch.zeros(max(groups.values()) + 1, len(first), dtype=kind, device=first.device)
        for name, gradient in flat.items():
            squared[groups[name]] += squares(gradient)
        bad = ~squared.isfinite().all(0)
        factors = self.clipping.factors(squared)
        for name, gradient in flat.items():
            good = gradient.masked_fill(bad[:, None], 0)
            total = factors[groups[name]].to(good.dtype) @ good
            sums[name].add_(total.view(sums[name].shape))
        return squared.clamp(min=0).sqrt().to(torch.float32)


def clipped_grad(
    loss_fn: Callable[..., Tensor],
    *,
    clip_norm: float | None = None,
    clipping: Clipping | None = None,
    batch_argnums: int | Sequence[int] = 1,
    memory: int = _MEMORY,
    randomness: str = "error",
) -> ClippedGrad:
    """Make the function that sums the clipped gradients of a loss over the examples of a batch.

    Parameters
    ----------
    loss_fn : callable
        Takes a mapping of parameters and one example, and returns its loss as a scalar.
    clip_norm : float, optional
        For flat clipping; otherwise pass `clipping`.
    clipping : Clipping, optional
        Any other way.
    batch_argnums : int or sequence of int
        Which arguments hold the batch, one row for each example; the first, 0, are the parameters.
    memory : int
        Bytes of per-example gradients to hold at a time.
    randomness : {"error", "different", "same"}
        What ``torch.func.vmap`` does where the loss draws at random.

    Returns
    -------
    ClippedGrad
        Call it with the parameters and a batch; its ``sensitivity`` is what noise is scaled by.

    Raises
    ------
    ParameterError
        If not one of `clip_norm` and `clipping` is given, or a position is no argument of a batch.

    Notes
    -----
    Guarantee: as `Engine`. An example's loss sees no other example, since it is a function of one.

    Examples
    --------
    >>> import torch
    >>> def loss(parameters, x, y):
    ...     return (parameters["w"] @ x - y) ** 2 / 2
    >>> grad = clipped_grad(loss, clip_norm=1.0, batch_argnums=(1, 2))
    >>> batch = torch.tensor([[3.0, 4.0], [0.5, 0.0]]), torch.tensor([1.0, -1.0])
    >>> grad({"w": torch.zeros(2)}, *batch).gradients["w"]
    tensor([-0.1000, -0.8000])
    >>> grad.sensitivity < 1.001
    True
    """
    if (clip_norm is None) == (clipping is None):
        _check.refuse("clip_norm", "be given unless clipping is", clip_norm, "pass one of the two")
    indices = (batch_argnums,) if isinstance(batch_argnums, int) else tuple(batch_argnums)
    if not indices or min(indices) < 1 or len(set(indices)) < len(indices):
        rule = "name different arguments after the parameters"
        _check.refuse("batch_argnums", rule, batch_argnums, "count from 1")
    if randomness not in ("error", "different", "same"):
        remedy = "use 'different' for dropout"
        _check.refuse("randomness", "be 'error', 'different' or 'same'", randomness, remedy)
    return ClippedGrad(
        loss=loss_fn,
        clipping=Flat(clip_norm=clip_norm) if clipping is None else clipping,  # type: ignore[arg-type]
        batch_argnums=indices,
        memory=_check.integer("memory", memory, minimum=1),
        randomness=randomness,
    )
