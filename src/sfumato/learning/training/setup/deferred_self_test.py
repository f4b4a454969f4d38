"""The self-test of a run, at the first forward: random ones take the form of the module's own inputs."""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Callable, Mapping
from typing import Any, final

import torch
from torch import nn

from sfumato.errors import UnfitModule
from sfumato.learning.checks.self_test import self_test
from sfumato.learning.engine.engine import Engine, Mode, Reduction

__all__ = ["FirstForward", "attach_after_test"]


def attach_after_test(
    module: nn.Module,
    engine: Engine,
    *,
    loss_reduction: Reduction,
    mode: Mode,
    random_batch: Callable[[int, int], Any] | None = None,
) -> Callable[[], None]:
    """Have the engine attached at the module's first forward in training, if it passes the self-test.

    Returns what cancels that, for a run that ends before.

    Raises
    ------
    UnfitModule
        At that forward, with what speaks against the module; nothing was released then.
    """
    first = FirstForward(engine, loss_reduction, mode, random_batch)
    first.watch(module)
    return first.cancel


@final
class FirstForward:
    """A test at the first forward in training, behind which the engine is attached."""

    def __init__(
        self,
        engine: Engine,
        loss_reduction: Reduction,
        mode: Mode,
        random_batch: Callable[[int, int], Any] | None = None,
    ) -> None:
        self._engine, self._loss_reduction, self._mode = engine, loss_reduction, mode
        self._random_batch = random_batch
        self._handle: Any = None

    def watch(self, module: nn.Module) -> None:
        """Wait for it."""
        self._handle = module.register_forward_pre_hook(self._first, with_kwargs=True)

    def cancel(self) -> None:
        """Wait no longer."""
        self._handle.remove()

    def _first(self, module: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        if not torch.is_grad_enabled() or _empty((*args, *kwargs.values())):
            return
        if not any(parameter.requires_grad for parameter in module.parameters()):
            return
        self._handle.remove()
        try:
            self._test(module, _called_with(module, args, kwargs))
        except UnfitModule:
            self.watch(module)
            raise
        self._engine.attach()
        # The hooks of this very call were gathered before the engine's was among them.
        self._engine._before(module, args, kwargs)  # noqa: SLF001

    def _test(self, module: nn.Module, batch: Any) -> None:
        if batch is None:
            warnings.warn("the module's inputs have no form that can be drawn: no self-test", stacklevel=5)
            return
        clipping = self._engine.clipping
        self_test(
            module,
            None,
            batch,
            clipping,
            loss_reduction=self._loss_reduction,
            mode=self._mode,
            random_batch=self._random_batch,
        ).check()


def _called_with(module: nn.Module, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
    if not kwargs:
        return args[0] if len(args) == 1 else args
    if not args:
        return dict(kwargs)
    try:
        bound = inspect.signature(module.forward).bind(*args, **kwargs)
    except (TypeError, ValueError):
        return None
    return dict(bound.kwargs) if not bound.args else {**_named(module, bound.args), **bound.kwargs}


def _named(module: nn.Module, args: tuple[Any, ...]) -> dict[str, Any]:
    return dict(zip(inspect.signature(module.forward).parameters, args, strict=False))


def _empty(values: tuple[Any, ...]) -> bool:
    tensors = [value for value in values if isinstance(value, torch.Tensor) and value.ndim]
    return bool(tensors) and not tensors[0].shape[0]
