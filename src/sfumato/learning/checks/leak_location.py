"""Which sub-module lets an example reach others: its inputs are apart, and its outputs are not."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, final

import torch
from torch import Tensor, nn

from sfumato.learning.checks.batch_tensors import leaves

__all__ = ["apart", "different", "leaking_module"]


def different(first: Tensor, second: Tensor) -> Tensor:
    """Return which entries differ; two NaN are the same."""
    return (first != second) & ~((first != first) & (second != second))  # noqa: PLR0124


def apart(first: Tensor, second: Tensor, example: int, size: int) -> bool:
    """Return whether two runs of a batch differ in one example only, in whatever dimension it may stand.

    Parameters
    ----------
    first, second : Tensor
        The same value in the two runs.
    example : int
        The place of the example that was changed.
    size : int
        The number of examples. A dimension of ``size`` entries, or of a multiple of it, may hold them: side
        by side, or in turns.
    """
    if first.shape != second.shape:
        return False
    first, second = first.detach(), second.detach()
    if first.ndim and first.shape[0] == size:
        others = (place for place in range(size) if place != example)
        return all(_same(first[place], second[place]) for place in others)
    changed = different(first, second)
    if not bool(changed.any()):
        return True
    for dimension, length in enumerate(changed.shape):
        if length and length % size == 0:
            lines = changed.movedim(dimension, 0).reshape(length, -1).any(1)
            blocks, turns = lines.view(size, -1).any(1), lines.view(-1, size).any(0)
            if _only(blocks, example) or _only(turns, example):
                return True
    return False


def _same(first: Tensor, second: Tensor) -> bool:
    """Return whether all entries are the same, without a tensor of answers where none is NaN."""
    return torch.equal(first, second) or not bool(different(first, second).any())


def _only(changed: Tensor, example: int) -> bool:
    return bool(changed[example]) and int(changed.sum()) == 1


@final
@dataclass(frozen=True, slots=True)
class _Call:
    name: str
    inputs: list[tuple[str, Tensor]]
    outputs: list[tuple[str, Tensor]]


@contextmanager
def _recorded(module: nn.Module) -> Iterator[list[_Call]]:
    calls: list[_Call] = []
    pending: list[list[tuple[str, Tensor]]] = []

    def enter(_: nn.Module, arguments: Any, named: Any) -> None:
        pending.append(_copied((arguments, named)))

    def leave(name: str) -> Callable[..., None]:
        def hook(_: nn.Module, arguments: Any, named: Any, outputs: Any) -> None:
            calls.append(_Call(name, pending.pop(), _copied(outputs)))

        return hook

    handles: list[Any] = []
    for name, inner in module.named_modules():
        handles.append(inner.register_forward_pre_hook(enter, with_kwargs=True))
        handles.append(inner.register_forward_hook(leave(name), with_kwargs=True))
    try:
        yield calls
    finally:
        for handle in handles:
            handle.remove()


def _copied(value: Any) -> list[tuple[str, Tensor]]:
    return [(path, tensor.detach().clone()) for path, tensor in leaves(value)]


def leaking_module(
    module: nn.Module, run: Callable[[Any], Any], batches: tuple[Any, Any], example: int, size: int
) -> str | None:
    """Name the innermost module in which an example reaches the others.

    Parameters
    ----------
    module : torch.nn.Module
    run : callable of a batch
        Runs the module in the same state of its buffers and of randomness every time.
    batches : tuple of two batches
        They differ in ``example`` only.
    example, size : int
        Its position, and the number of examples.

    Returns
    -------
    str or None
        The module's name; empty for ``module`` itself, None where it is in none of them.
    """
    recordings = []
    for batch in batches:
        with _recorded(module) as calls, torch.no_grad():
            run(batch)
        recordings.append(calls)
    counts: dict[str, int] = {}
    others: dict[tuple[str, int], _Call] = {}
    for call in recordings[1]:
        others[call.name, counts.setdefault(call.name, 0)] = call
        counts[call.name] += 1
    counts = {}
    for call in recordings[0]:  # in the order in which they ended: inner ones first
        other = others.get((call.name, counts.setdefault(call.name, 0)))
        counts[call.name] += 1
        if other is None:
            continue
        if _apart(call.inputs, other.inputs, example, size) and not _apart(
            call.outputs, other.outputs, example, size
        ):
            return call.name
    return None


def _apart(
    first: list[tuple[str, Tensor]], second: list[tuple[str, Tensor]], example: int, size: int
) -> bool:
    return len(first) == len(second) and all(
        apart(a, b, example, size) for (_, a), (_, b) in zip(first, second, strict=True)
    )
