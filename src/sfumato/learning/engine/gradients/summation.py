"""Norms of per-example gradients over all uses of each parameter, and weighted sums of them."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import final

import torch
from torch import Tensor

from sfumato.learning.clipping.clipping import Clipping
from sfumato.learning.engine.gradients.gathered_rows import GatheredRows, inner
from sfumato.learning.engine.gradients.outer_products import OuterProducts
from sfumato.learning.engine.gradients.per_example import PerExampleGradients, faint, squares, wide

__all__ = ["Collected", "TrackedTensor", "by_group", "sum_clipped"]

_DOUBTFUL = 1e-2


@final
@dataclass(frozen=True, slots=True)
class TrackedTensor:
    """A tensor by which uses are distinguished: a parameter, or what follows from parameters alone.

    Parameters
    ----------
    key : str
        Its name in the plan.
    tensor : Tensor
        Held, so that its identity stays its own.
    roots : frozenset of str
        The parameters that it follows from; its own name only, if it is one.
    """

    key: str
    tensor: Tensor
    roots: frozenset[str]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Collected:
    """What a complete backward has left.

    Parameters
    ----------
    parameters : mapping of str to Tensor
        Those that require a gradient.
    tracked : sequence of TrackedTensor
        The parameters, and tensors that follow from them alone.
    gradients : mapping of str to list of PerExampleGradients
        By the key of what was used: one for each use. Uses that are one sum are joined in it.
    norms : dict of str to Tensor
        The squared norms that are known already, of parameters that were used once.
    examples : int
        How many there are.
    max_entries : int
        How many entries of gradients may be made at a time.
    """

    parameters: Mapping[str, Tensor]
    tracked: Sequence[TrackedTensor]
    gradients: dict[str, list[PerExampleGradients]]
    norms: dict[str, Tensor]
    examples: int
    max_entries: int


def sum_clipped(
    collected: Collected, clipping: Clipping, groups: Mapping[str, int], scale: float
) -> tuple[Mapping[str, Tensor], Tensor]:
    """Return the sums of clipped gradients, and the norms of shape (groups, examples).

    Parameters
    ----------
    collected : Collected
        Of a complete backward.
    clipping : Clipping
        Gives the factors.
    groups : mapping of str to int
        The clipping group of each parameter.
    scale : float
        What the loss was divided by.
    """
    kinds = [wide(parameter).dtype for parameter in collected.parameters.values()]
    kind = torch.float64 if torch.float64 in kinds else torch.float32
    device = next(iter(collected.parameters.values())).device
    squared = torch.zeros(max(groups.values()) + 1, collected.examples, dtype=kind, device=device)
    several = _Several(collected)
    for group, norms in by_group(collected.norms | several.squared_norms(), groups).items():
        squared[group] = norms
    squared *= scale * scale
    bad = ~squared.isfinite().all(0)
    if bad.any():
        for summands in collected.gradients.values():
            for summand in summands:
                summand.drop(bad)
    factors = clipping.factors(squared) * scale
    sums = {name: collected.gradients[name][0].weighted(factors[groups[name]]) for name in collected.norms}
    return sums | several.weighted(factors, groups), squared.clamp(min=0).sqrt()


def by_group(norms: Mapping[str, Tensor], groups: Mapping[str, int]) -> dict[int, Tensor]:
    """Return the sums of parameters' squared norms in each group.

    Added one after the other, those of some thousand parameters could each be lost beside the first:
    `torch.sum` adds in blocks.
    """
    parts: dict[int, list[Tensor]] = {}
    for name, own in norms.items():
        parts.setdefault(groups[name], []).append(own)
    return {group: own[0] if len(own) == 1 else torch.stack(own).sum(0) for group, own in parts.items()}


class _Several:
    """The parameters whose uses must be summed before their norms: reused, tied, or followed from.

    Parameters
    ----------
    collected : Collected
    """

    def __init__(self, collected: Collected) -> None:
        self._collected = collected
        self._direct = {
            name: collected.gradients[name]
            for name in collected.parameters
            if collected.gradients.get(name) and name not in collected.norms
        }
        keys = {key for key in collected.gradients if key not in collected.parameters}
        self._made: list[tuple[TrackedTensor, list[PerExampleGradients]]] = [
            (followed, collected.gradients[followed.key])
            for followed in collected.tracked
            if followed.key in keys
        ]
        made = {root for followed, _ in self._made for root in followed.roots}
        self.names = sorted({*self._direct, *made})
        self._rows: list[str] = []
        self._few = 0

    def squared_norms(self) -> dict[str, Tensor]:
        """Return the squared norms of each parameter's summed gradient, some examples at a time."""
        if not self.names:
            return {}
        collected = self._collected
        found = {}
        for name, summands in self._direct.items():
            if _of_rows(summands, name, self._made):
                collected.gradients[name] = _joined(summands)
                found[name] = _norms_of(collected.gradients[name])
        self._rows = list(found)
        rest = [name for name in self.names if name not in found]
        if not rest:
            return found
        entries = sum(math.prod(collected.parameters[name].shape) for name in rest)
        entries += sum(math.prod(followed.tensor.shape) for followed, _ in self._made)
        self._few = max(1, min(collected.examples, collected.max_entries // max(1, entries)))
        parts: dict[str, list[Tensor]] = {name: [] for name in rest}
        for name, _, gradients in self._parts():
            parts[name].append(squares(gradients))
        return found | {name: torch.cat(part) for name, part in parts.items() if part}

    def _parts(self) -> Iterator[tuple[str, int, Tensor]]:
        """Give the gradients of all but sums of rows, flat, some examples at a time."""
        for start in range(0, self._collected.examples, self._few) if self._few else ():
            for name, gradients in self._summed(
                start, min(start + self._few, self._collected.examples)
            ).items():
                yield name, start, gradients.reshape(len(gradients), -1)

    def _summed(self, start: int, stop: int) -> dict[str, Tensor]:
        found = {
            name: _sum([summand.per_example(start, stop) for summand in summands])
            for name, summands in self._direct.items()
            if name not in self._rows
        }
        for followed, summands in self._made:
            gradients = _sum([summand.per_example(start, stop) for summand in summands])
            for name, pulled in self._pulled(followed, gradients).items():
                found[name] = found[name] + pulled if name in found else pulled
        return found

    def _pulled(self, followed: TrackedTensor, gradients: Tensor) -> dict[str, Tensor]:
        """Return gradients with respect to the parameters that a tensor follows from."""
        roots = sorted(followed.roots)
        found = torch.autograd.grad(
            followed.tensor,
            [self._collected.parameters[name] for name in roots],
            gradients.to(followed.tensor.dtype),
            retain_graph=True,
            allow_unused=True,
            is_grads_batched=True,
        )
        return {name: wide(g) for name, g in zip(roots, found, strict=True) if g is not None}  # type: ignore[redundant-expr]

    def weighted(self, factors: Tensor, groups: Mapping[str, int]) -> dict[str, Tensor]:
        """Return the weighted sums; the uses of each example are summed before the examples are."""
        found = {
            name: _sum(
                [summand.weighted(factors[groups[name]]) for summand in self._collected.gradients[name]]
            )
            for name in self._rows
        }
        for name, start, gradients in self._parts():
            own = factors[groups[name], start : start + len(gradients)].to(gradients.dtype)
            total = own @ gradients.masked_fill((own == 0)[:, None], 0)
            total = total.view(self._collected.parameters[name].shape)
            found[name] = found[name] + total if name in found else total
        return found


def _sum(tensors: Sequence[Tensor]) -> Tensor:
    total = tensors[0]
    for tensor in tensors[1:]:
        total = total + tensor
    return total


def _of_rows(
    summands: Sequence[PerExampleGradients], name: str, made: Sequence[tuple[TrackedTensor, object]]
) -> bool:
    """Return whether all uses of a parameter are sums over rows, so that no gradient need be made whole."""
    plain = all(isinstance(summand, OuterProducts | GatheredRows) for summand in summands)
    return plain and not any(name in followed.roots for followed, _ in made)


def _joined(summands: Sequence[PerExampleGradients]) -> list[PerExampleGradients]:
    """Return at most one sum of outer products, and one of looked-up rows."""
    outers = [summand for summand in summands if isinstance(summand, OuterProducts)]
    gathers = [summand for summand in summands if isinstance(summand, GatheredRows)]
    joined: list[PerExampleGradients] = [GatheredRows.joined(gathers)] if gathers else []
    return [*joined, OuterProducts.joined(outers)] if outers else joined


def _norms_of(summands: Sequence[PerExampleGradients]) -> Tensor:
    """Return the squared norms of sums of outer products and of looked-up rows, cross terms included.

    Where both all but cancel out, the gradients decide; where they are `faint`, they are dropped.
    """
    if len(summands) == 1:
        return summands[0].squared_norms()
    gather, outer = summands
    cross = 2 * inner(gather, outer)  # type: ignore[arg-type]  # before norms give up the rows
    parts = [summand.squared_norms() for summand in summands]
    reach = _sum([part.clamp(min=0).sqrt() for part in parts]).square()
    norms = _sum([cross, *parts])
    doubtful = norms < reach * _DOUBTFUL
    for part in parts:
        doubtful |= (part == 0) & (cross != 0)  # dropped, and still in the cross terms
    for index in doubtful.nonzero()[:, 0].tolist():
        gradient = _sum([summand.per_example(index, index + 1) for summand in summands])
        norms[index] = squares(gradient.view(-1))
    lost = faint(norms, reach)
    for summand in summands if lost.any() else ():
        summand.drop(lost)
    return norms.masked_fill(lost, 0)
