"""The user's own optimizer, whose step releases noisy gradients first."""

from __future__ import annotations

import types
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple, final

import torch
from torch import nn
from torch.optim import LBFGS, Optimizer

from sfumato import _check
from sfumato.learning.training.distributed.shards import apart_as
from sfumato.learning.training.loop.private_loader import PrivateLoader
from sfumato.learning.training.loop.run import TrainingRun

__all__ = ["BatchMemoryManager", "is_private", "make_optimizer_private", "restore_optimizer", "run_of"]


_RUN = "_private_run"
_COUNTED = "_wrapped_by_lr_sched"
_SCALED = "_step_supports_amp_scaling"
_STATED = (
    "noise_multiplier",
    "max_grad_norm",
    "expected_batch_size",
    "loss_reduction",
    "generator",
    "secure_mode",
    "step_hook",
)


class _Private(NamedTuple):
    """The run that steps an optimizer, and what the optimizer had in the places of its methods."""

    run: TrainingRun
    own_attributes: dict[str, Any]


def run_of(optimizer: Optimizer) -> TrainingRun:
    """Return the run that steps an optimizer, or refuse one that none does."""
    if not is_private(optimizer):
        remedy = "pass that one"
        _check.refuse_type("optimizer", "be the one that make_private returned", optimizer, remedy)
    private: _Private = vars(optimizer)[_RUN]
    return private.run


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


def make_optimizer_private(optimizer: Optimizer, run: TrainingRun, *, max_grad_norm: Any) -> None:
    """Let ``step`` and ``zero_grad`` of the user's own optimizer object go through a run.

    Its class, ``state_dict``, parameter groups and hooks stay; schedulers may have been made before or after.
    What it states of the run by Opacus's names is to be read, and is that of the current step: a step is
    refused where one was set anew.
    """
    named, stated = run.shards.named, _Stated(optimizer, run, max_grad_norm)
    own_step, own_zero = optimizer.step, optimizer.zero_grad

    def step(self: Optimizer, closure: Callable[[], Any] | None = None) -> Any:
        _refuse_scaler(self)
        stated.refuse_changed()
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
    setattr(patched, _RUN, _Private(run, own_attributes))
    stated.show(run.cursor)
    run.scheduled.watch(stated.show)


@final
class _Stated:
    """What an optimizer states of its run by Opacus's names.

    Parameters
    ----------
    optimizer : Optimizer
    run : TrainingRun
    max_grad_norm : object
        What was passed, for a clipping that has no single norm.

    Notes
    -----
    The current step is the one whose batch was given last, until a scheduler's ``step`` says that the next
    one has come. Clipping that adapts has its next norm as soon as a step has released it.
    """

    def __init__(self, optimizer: Optimizer, run: TrainingRun, max_grad_norm: Any) -> None:
        self._optimizer, self._run, self._max_grad_norm = optimizer, run, max_grad_norm
        self._shown: dict[str, tuple[Any, str]] = {}

    def show(self, step: int) -> None:
        """State what holds in a step, but for what was set by hand, which the next step refuses."""
        if not is_private(self._optimizer):
            return
        attributes, before = vars(self._optimizer), self._shown
        self._shown = _stated(self._run, self._max_grad_norm, step)
        for name, (value, _) in self._shown.items():
            if name not in before or _unchanged(attributes.get(name, value), before[name][0]):
                attributes[name] = value

    def refuse_changed(self) -> None:
        """Refuse what was set in the middle of a run: it would be in no price, and in no step."""
        for name, (value, remedy) in self._shown.items():
            if not _unchanged(vars(self._optimizer).get(name, value), value):
                rule = f"have the {name} of its run, {value}"
                _check.refuse_state("optimizer", rule, "another was set", remedy)


def _unchanged(found: Any, value: Any) -> bool:
    return found is value or bool(found == value)


def _stated(run: TrainingRun, max_grad_norm: Any, step: int) -> dict[str, tuple[Any, str]]:
    """Return what Opacus's optimizers state in a step, each with what to do instead of setting it anew."""
    schedule = "pass {}=Schedule(...)), which is there before the first step; or make a scheduler before it"
    multiplier = run.schedules.multiplier(run.noise_multiplier, step)
    norm = getattr(run.scheduled.clipping_at(step), "clip_norm", max_grad_norm)
    return {
        "noise_multiplier": (multiplier, schedule.format("NoiseOptions(schedule")),
        "max_grad_norm": (norm, schedule.format("GradientOptions(clip_schedule")),
        "expected_batch_size": (run.sampler.expected_batch_size, "pass a loader of that batch_size"),
        "loss_reduction": ("mean" if run.mean else "sum", "pass loss_reduction to make_private"),
        "generator": (None, "pass noise_generator to make_private, for a simulation"),
        "secure_mode": (not run.simulated, "leave it out: noise is secure unless it is simulated"),
        "step_hook": (None, "use the optimizer's register_step_post_hook, and the engine's own accounting"),
    }


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
    private = vars(optimizer).pop(_RUN, None)
    for name in ("step", "zero_grad", _SCALED, *_STATED):
        vars(optimizer).pop(name, None)
    vars(optimizer).update({} if private is None else private.own_attributes)


@final
class BatchMemoryManager:
    """Lets a private loader give batches in parts; the optimizer steps with the last part of each.

    Parameters
    ----------
    data_loader : PrivateLoader
        As `PrivacyEngine.make_private` returned it.
    max_physical_batch_size : int
        The most examples of a part.
    optimizer : Optimizer
        Of the same run.

    Examples
    --------
    >>> import torch
    >>> from torch.utils.data import DataLoader, TensorDataset
    >>> from sfumato.learning import PrivacyEngine
    >>> module = torch.nn.Linear(3, 1)
    >>> module, optimizer, loader = PrivacyEngine().make_private(
    ...     module=module,
    ...     optimizer=torch.optim.SGD(module.parameters()),
    ...     data_loader=DataLoader(TensorDataset(torch.zeros(40, 3), torch.zeros(40, 1)), batch_size=20),
    ...     noise_multiplier=1.0,
    ...     max_grad_norm=1.0,
    ... )
    >>> with BatchMemoryManager(data_loader=loader, max_physical_batch_size=4, optimizer=optimizer) as parts:
    ...     max(len(x) for x, y in parts) <= 4
    True
    """

    def __init__(self, *, data_loader: Any, max_physical_batch_size: int, optimizer: Optimizer) -> None:
        _check.instance("data_loader", data_loader, PrivateLoader, "pass the one that make_private returned")
        run_of(optimizer)
        self._loader: PrivateLoader = data_loader
        self._largest = _check.integer("max_physical_batch_size", max_physical_batch_size, minimum=1)
        self._before: int | None = None

    def __enter__(self) -> PrivateLoader:
        """Return the loader, which now gives parts."""
        self._before = self._loader.largest
        self._loader.limit(self._largest)
        return self._loader

    def __exit__(self, *_: object) -> None:
        """Let it give what it gave before."""
        self._loader.limit(self._before)
