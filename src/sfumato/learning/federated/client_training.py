"""What happens at a client: training of its own copy of the module, and the clipped change."""

from __future__ import annotations

import copy
import random
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple, TypeAlias, TypeVar

import numpy as np
import torch
from torch import Tensor, nn

from sfumato import _check
from sfumato.learning.clipping.clipping import Clipping

__all__ = ["ClippedChange", "LocalTraining", "clipped", "local_change", "local_sgd", "own_randomness"]

T = TypeVar("T")

LocalTraining: TypeAlias = Callable[[nn.Module, T], object]
"""Trains a module in place on one client's data; what it returns is not looked at."""


class ClippedChange(NamedTuple):
    """What a client sends.

    Attributes
    ----------
    parts : tuple of Tensor
        The clipped change of each parameter.
    squared_norms : Tensor of shape (groups, 1)
        Of the change before; for what clips adaptively.
    """

    parts: tuple[Tensor, ...]
    squared_norms: Tensor


def trained(module: nn.Module) -> dict[str, nn.Parameter]:
    """Return the parameters that are trained, by name."""
    return {name: parameter for name, parameter in module.named_parameters() if parameter.requires_grad}


def local_change(module: nn.Module, local: LocalTraining[T], data: T) -> list[Tensor]:
    """Return what training on one client's data changes of each parameter that is trained.

    Parameters
    ----------
    module : nn.Module
        The server's; a copy of it is trained, with its buffers, and thrown away.
    local : callable
    data
        The client's.

    Raises
    ------
    ParameterError
        If the training leaves parameters of other names or shapes.
    """
    worker = copy.deepcopy(module)
    local(worker, data)
    before, after = trained(module), dict(worker.named_parameters())
    changes = []
    with torch.no_grad():
        for name, parameter in before.items():
            other = after.get(name)
            if other is None or other.shape != parameter.shape:
                remedy = "train the module's parameters in place"
                rule = "keep the module's parameters"
                _check.refuse_state("local", rule, f"{name!r} was replaced or has another shape", remedy)
            changes.append(other.detach().to(parameter) - parameter.detach())
    return changes


def clipped(changes: Sequence[Tensor], clipping: Clipping, groups: Sequence[int]) -> ClippedChange:
    """Return a client's change, clipped as one example's gradient would be.

    Parameters
    ----------
    changes : sequence of Tensor
    clipping : Clipping
    groups : sequence of int
        Of each parameter, as ``clipping.groups`` says.

    Notes
    -----
    Guarantee: see `Clipping`; norms are summed in double precision. A change that is not finite is zero.
    """
    squared = torch.zeros(1 + max(groups, default=0), 1, dtype=torch.float64)
    for group, change in zip(groups, changes, strict=True):
        squared[group] += change.double().square().sum().cpu()
    factors = clipping.factors(squared)
    parts = tuple(
        change * float(factors[group]) if float(factors[group]) > 0 else torch.zeros_like(change)
        for group, change in zip(groups, changes, strict=True)
    )
    return ClippedChange(parts, squared)


def local_sgd(
    loss: Callable[[Any, Any], Tensor],
    *,
    learning_rate: float,
    epochs: int = 1,
    batch_size: int | None = None,
) -> LocalTraining[tuple[Tensor, Tensor]]:
    """Return plain SGD on a client's inputs and targets.

    Parameters
    ----------
    loss : callable
        From outputs and targets to a scalar, such as ``torch.nn.functional.cross_entropy``.
    learning_rate : float
    epochs : int
        How often all examples of the client are used.
    batch_size : int, optional
        In shuffled batches of that size; all at once unless given.

    Returns
    -------
    callable
        Trains a module in place on one client's ``(inputs, targets)``; `FederatedTraining` takes it.

    Examples
    --------
    >>> module = nn.Linear(1, 1, bias=False)
    >>> _ = nn.init.zeros_(module.weight)
    >>> train = local_sgd(nn.functional.mse_loss, learning_rate=0.5)
    >>> local_change(module, train, (torch.ones(2, 1), torch.ones(2, 1)))[0].tolist()
    [[1.0]]
    """
    rate = _check.positive("learning_rate", learning_rate)
    _check.integer("epochs", epochs, minimum=1)
    if batch_size is not None:
        _check.integer("batch_size", batch_size, minimum=1)

    def train(module: nn.Module, data: tuple[Tensor, Tensor]) -> None:
        inputs, targets = data
        parameters = list(module.parameters())
        for _ in range(epochs):
            for batch in _batches(len(inputs), batch_size):
                for parameter in parameters:
                    parameter.grad = None
                loss(module(inputs[batch]), targets[batch]).backward()
                with torch.no_grad():  # an optimizer for each client would take as long as all the rest
                    for parameter in parameters:
                        if parameter.grad is not None:
                            parameter.add_(parameter.grad, alpha=-rate)

    return train


def _batches(size: int, batch_size: int | None) -> Sequence[Tensor]:
    """Return the places of each batch's examples in an epoch; there is no batch of no examples."""
    order = torch.arange(size) if batch_size is None else torch.randperm(size)
    return order.split(batch_size or size) if size else ()


@contextmanager
def own_randomness(words: np.ndarray[tuple[int], np.dtype[np.uint64]]) -> Iterator[None]:
    """Let the global generators of torch, numpy and Python begin anew, and put them back afterwards.

    Parameters
    ----------
    words : ndarray of uint64, shape (3,)
        What they begin from.

    Notes
    -----
    If all clients drew from one stream, how much the first draws would shift what the next ones do: with a
    known seed, removing one client would change the contributions of all after it.
    """
    python, legacy = random.getstate(), np.random.get_state()
    torch_state, number = torch.get_rng_state(), int(words[0] >> np.uint64(1))
    devices = torch.cuda.get_rng_state_all() if torch.cuda.is_initialized() else []
    # torch.manual_seed would queue a call for every device that is not in use, with a traceback each.
    torch.default_generator.manual_seed(number)
    if devices:
        torch.cuda.manual_seed_all(number)
    np.random.seed([int(words[1]) & 0xFFFFFFFF, int(words[1]) >> 32])
    random.seed(int(words[2]))
    try:
        yield
    finally:
        torch.set_rng_state(torch_state)
        if devices:
            torch.cuda.set_rng_state_all(devices)
        random.setstate(python)
        np.random.set_state(legacy)
