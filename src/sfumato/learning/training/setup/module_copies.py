"""Copies and pickles of a module in a run, which are of the module alone."""

from __future__ import annotations

import weakref
from typing import Any, Final, final

from torch import nn

from sfumato.learning.engine.engine import Engine
from sfumato.learning.training.loop.forward_checks import ForwardChecks
from sfumato.learning.training.loop.logical_batch import BatchReuseCheck
from sfumato.learning.training.setup.deferred_self_test import FirstForward

__all__ = ["copy_with_all", "copy_without_run"]

_OF_RUN: Final = (Engine, BatchReuseCheck, ForwardChecks, FirstForward)
_STATE: Final = "__getstate__"
_HOOKS: Final = (
    "_forward_pre_hooks",
    "_forward_pre_hooks_with_kwargs",
    "_forward_hooks",
    "_forward_hooks_with_kwargs",
    "_forward_hooks_always_called",
)


@final
class _StateWithoutRun:
    """What `copy.deepcopy` and `pickle` take of a module: all but the hooks that belong to its run.

    With them a copy would have the engine, and with it the gradients of single examples.
    """

    def __init__(self, module: nn.Module) -> None:
        self._module = weakref.ref(module)

    def __call__(self) -> Any:
        module = self._module()
        if module is None:
            return {}
        state: Any = type(module).__getstate__(module)
        if not isinstance(state, dict):
            return state
        state = {name: value for name, value in state.items() if name != _STATE}
        of_run = {
            place
            for hooks in ("_forward_pre_hooks", "_forward_hooks")
            for place, hook in state.get(hooks, {}).items()
            if isinstance(getattr(hook, "__self__", None), _OF_RUN)
        }
        for hooks in _HOOKS:
            if hooks in state:
                rest = [(place, value) for place, value in state[hooks].items() if place not in of_run]
                state[hooks] = type(state[hooks])(rest)
        return state


def copy_without_run(module: nn.Module) -> None:
    """Have copies and pickles of a module, from now on, leave the run's hooks out."""
    vars(module)[_STATE] = _StateWithoutRun(module)


def copy_with_all(module: nn.Module) -> None:
    """Have them made as before."""
    vars(module).pop(_STATE, None)
