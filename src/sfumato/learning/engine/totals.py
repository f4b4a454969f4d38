"""From the uses of one forward to norms over all uses of each parameter, and to weighted sums."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from sfumato.learning.clipping.clipping import Clipping
from sfumato.learning.engine.gather import Gather, inner
from sfumato.learning.engine.outer import Outer
from sfumato.learning.engine.uses import Use, squares, wide

if TYPE_CHECKING:
    from sfumato.learning.engine.tape import Followed, Tape

__all__ = ["clipped_totals"]


def clipped_totals(
    tape: Tape, clipping: Clipping, groups: Mapping[str, int], scale: float
) -> tuple[Mapping[str, Tensor], Tensor]:
    """Return the sums of clipped gradients, and the norms of shape (groups, examples).

    Parameters
    ----------
    tape : Tape
        Of a complete backward.
    clipping : Clipping
        Gives the factors.
    groups : mapping of str to int
        The clipping group of each parameter.
    scale : float
        What the loss was divided by.
    """
    kinds = [wide(parameter).dtype for parameter in tape.parameters.values()]
    kind = torch.float64 if torch.float64 in kinds else torch.float32
    device = next(iter(tape.parameters.values())).device
    squared = torch.zeros(max(groups.values()) + 1, tape.count, dtype=kind, device=device)
    several = _Several(tape)
    for name, norms in (tape.norms | several.squared_norms()).items():
        squared[groups[name]] += norms
    squared *= scale * scale
    bad = ~squared.isfinite().all(0)
    if bad.any():
        for uses in tape.uses.values():
            for use in uses:
                use.drop(bad)
    factors = clipping.factors(squared) * scale
    sums = {name: tape.uses[name][0].weighted(factors[groups[name]]) for name in tape.norms}
    return sums | several.weighted(factors, groups), squared.clamp(min=0).sqrt()


class _Several:
    """The parameters whose uses must be summed before their norms: reused, tied, or followed from.

    Parameters
    ----------
    tape : Tape
    """

    def __init__(self, tape: Tape) -> None:
        self._tape = tape
        self._direct = {
            name: tape.uses[name]
            for name in tape.parameters
            if tape.uses.get(name) and name not in tape.norms
        }
        keys = {key for key in tape.uses if key not in tape.parameters}
        self._made: list[tuple[Followed, list[Use]]] = [
            (followed, tape.uses[followed.key]) for followed in tape.followed.values() if followed.key in keys
        ]
        made = {root for followed, _ in self._made for root in followed.roots}
        self.names = sorted({*self._direct, *made})

    def squared_norms(self) -> dict[str, Tensor]:
        """Return the squared norms of each parameter's summed gradient, some examples at a time."""
        if not self.names:
            return {}
        tape = self._tape
        found = {
            name: _norms_of(uses) for name, uses in self._direct.items() if _of_rows(uses, name, self._made)
        }
        rest = [name for name in self.names if name not in found]
        if not rest:
            return found
        entries = sum(math.prod(tape.parameters[name].shape) for name in rest)
        entries += sum(math.prod(followed.tensor.shape) for followed, _ in self._made)
        few = max(1, min(tape.count, tape.kept // max(1, entries)))
        parts: dict[str, list[Tensor]] = {name: [] for name in rest}
        for start in range(0, tape.count, few):
            summed = self._summed(start, min(start + few, tape.count))
            for name, gradients in summed.items():
                if name not in parts:
                    continue
                parts[name].append(squares(gradients.reshape(len(gradients), -1)))
        return found | {name: torch.cat(part) for name, part in parts.items() if part}

    def _summed(self, start: int, stop: int) -> dict[str, Tensor]:
        found = {name: _sum([use.per_example(start, stop) for use in u]) for name, u in self._direct.items()}
        for followed, uses in self._made:
            gradients = _sum([use.per_example(start, stop) for use in uses])
            for name, pulled in self._pulled(followed, gradients, batched=True).items():
                found[name] = found[name] + pulled if name in found else pulled
        return found

    def _pulled(self, followed: Followed, gradients: Tensor, *, batched: bool) -> dict[str, Tensor]:
        """Return gradients with respect to the parameters that a tensor follows from."""
        roots = sorted(followed.roots)
        found = torch.autograd.grad(
            followed.tensor,
            [self._tape.parameters[name] for name in roots],
            gradients.to(followed.tensor.dtype),
            retain_graph=True,
            allow_unused=True,
            is_grads_batched=batched,
        )
        return {name: wide(g) for name, g in zip(roots, found, strict=True) if g is not None}  # type: ignore[redundant-expr]

    def weighted(self, factors: Tensor, groups: Mapping[str, int]) -> dict[str, Tensor]:
        """Return the weighted sums; what is made from parameters of several groups is summed for each."""
        found = {
            name: _sum([use.weighted(factors[groups[name]]) for use in uses])
            for name, uses in self._direct.items()
        }
        for followed, uses in self._made:
            for group in sorted({groups[root] for root in followed.roots}):
                total = _sum([use.weighted(factors[group]) for use in uses])
                for name, pulled in self._pulled(followed, total, batched=False).items():
                    if groups[name] == group:
                        found[name] = found[name] + pulled if name in found else pulled
        return found


def _sum(tensors: Sequence[Tensor]) -> Tensor:
    total = tensors[0]
    for tensor in tensors[1:]:
        total = total + tensor
    return total


def _of_rows(uses: Sequence[Use], name: str, made: Sequence[tuple[Followed, object]]) -> bool:
    """Tell whether all uses of a parameter are sums over rows, so that no gradient need be made whole."""
    plain = all(isinstance(use, Outer | Gather) for use in uses)
    return plain and not any(name in followed.roots for followed, _ in made)


def _norms_of(uses: Sequence[Use]) -> Tensor:
    """Return the squared norms of sums of outer products and of looked-up rows, cross terms included."""
    outers = [use for use in uses if isinstance(use, Outer)]
    gathers = [use for use in uses if isinstance(use, Gather)]
    joined: list[Use] = []
    if outers:
        joined.append(outer := Outer.joined(outers))
    if gathers:
        joined.append(gather := Gather.joined(gathers))
    cross = [2 * inner(gather, outer)] if len(joined) == 2 else []  # before norms give up the rows
    return _sum([*cross, *(use.squared_norms() for use in joined)])
