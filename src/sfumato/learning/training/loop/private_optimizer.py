"""The user's own optimizer, whose step releases noisy gradients first."""

from __future__ import annotations

import types
from collections.abc import Callable, Iterable
from typing import Any

import torch
from torch import nn
from torch.optim import LBFGS, Optimizer

from sfumato import _check
from sfumato.learning.training.distributed.shards import apart_as
from sfumato.learning.training.loop.run import TrainingRun

__all__ = ["is_private", "make_optimizer_private", "restore_optimizer"]

_RUN = "_private_run"
_COUNTED = "_wrapped_by_lr_sched"
_SCALED = "_step_supports_amp_scaling"


def is_private(optimizer: Optimizer) -> bool:
    """Whether an optimizer is one that a run steps."""
    return hasattr(optimizer, _RUN)


def check_optimizer(optimizer: Optimizer, parameters: Iterable[nn.Parameter]) -> None:
    """Refuse an optimizer that cannot be stepped once per batch, or that steps other parameters."""
    _check.instance("optimizer", optimizer, Optimizer, "pass one of torch.optim")
    if isinstance(optimizer, LBFGS):
        remedy = "use one that needs the gradient of a batch once"
        _check.refuse_state("optimizer", "use each batch once", "LBFGS uses it several times", remedy)
    if is_private(optimizer):
        _check.refuse_state("optimizer", "belong to one run", "it belongs to another run", "make a new one")
    check_parameters(optimizer, parameters)


def check_parameters(optimizer: Optimizer, parameters: Iterable[nn.Parameter]) -> None:
    """Refuse an optimizer that steps other parameters."""
    known = {id(parameter) for parameter in parameters}
    stepped = [p for group in optimizer.param_groups for p in group["params"] if p.requires_grad]
    if any(id(p) not in known for p in stepped):
        remedy = "make the optimizer from module.parameters(), after the module is final"
        _check.refuse_state("optimizer", "hold the module's parameters only", "it holds others", remedy)


def make_optimizer_private(optimizer: Optimizer, run: TrainingRun) -> None:
    """Let ``step`` and ``zero_grad`` of the user's own optimizer object go through a run.

    Its class, ``state_dict``, parameter groups and hooks stay; schedulers may have been made before or after.
    """
    named = run.shards.named
    own_step, own_zero = optimizer.step, optimizer.zero_grad

    def step(self: Optimizer, closure: Callable[[], Any] | None = None) -> Any:
        _refuse_scaler(self)
        # What is no parameter of the run would be stepped with a gradient that has no noise.
        check_parameters(self, named.values())
        loss = None
        if closure is not None:
            with torch.enable_grad():
                loss = closure()
        if not run.ready():
            return loss
        gradients = run.gradients()
        if gradients is None:
            return loss
        run.shards.apart()
        for name, gradient in gradients.items():
            parameter = named[name]
            parameter.grad = apart_as(parameter, gradient.to(parameter.dtype))
        own_step()
        return loss

    def zero_grad(self: Optimizer, set_to_none: bool = True) -> None:
        del self
        run.forget()
        own_zero(set_to_none=set_to_none)

    patched: Any = optimizer
    own_attributes = {
        name: vars(optimizer)[name] for name in ("step", "zero_grad", _SCALED) if name in vars(optimizer)
    }
    if hasattr(own_step, _COUNTED):
        setattr(step, _COUNTED, True)  # a scheduler that was made before still counts the steps
    patched.step = types.MethodType(step, optimizer)
    setattr(patched, _SCALED, True)  # so that a GradScaler gets as far as the step
    patched.zero_grad = types.MethodType(zero_grad, optimizer)
    setattr(patched, _RUN, own_attributes)
    patched.noise_multiplier = run.noise_multiplier
    patched.expected_batch_size = run.sampler.expected_batch_size


def _refuse_scaler(optimizer: Any) -> None:
    """Refuse the step of a gradient scaler: what it skips and how it scales reveals single examples."""
    if getattr(optimizer, "grad_scale", None) is None:
        return
    del optimizer.grad_scale, optimizer.found_inf
    remedy = "multiply the loss by a fixed power of two, and pass that as loss_scale="
    rule = "be stepped without a GradScaler, whose skipped steps reveal single examples"
    _check.refuse_state("optimizer", rule, "a GradScaler steps it", remedy)


def restore_optimizer(optimizer: Optimizer) -> None:
    """Give the optimizer its own methods back."""
    own_attributes = vars(optimizer).pop(_RUN, {})
    for name in ("step", "zero_grad", _SCALED, "noise_multiplier", "expected_batch_size", "max_grad_norm"):
        vars(optimizer).pop(name, None)
    vars(optimizer).update(own_attributes)
