"""Opacus's import paths: write ``sfumato.learning.opacus`` where a script has ``opacus``.

>>> from sfumato.learning.opacus import PrivacyEngine
>>> from sfumato.learning.opacus.utils.batch_memory_manager import BatchMemoryManager
>>> from sfumato.learning.opacus.validators import ModuleValidator
>>> from sfumato.learning.opacus.schedulers import StepNoise

The names are those of `sfumato.learning`. What sfumato does otherwise has no class of Opacus's name, and its
import raises an error that says what to use.

>>> from sfumato.learning.opacus.optimizers import DPOptimizer
Traceback (most recent call last):
    ...
sfumato.errors.ParameterError: DPOptimizer must ...
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sfumato._lazy import attach
from sfumato.learning.opacus.grad_sample import __getattr__ as _grad_sample

if TYPE_CHECKING:
    from sfumato.learning.opacus import (
        accountants,
        data_loader,
        distributed,
        grad_sample,
        layers,
        optimizers,
        schedulers,
        utils,
        validators,
    )
    from sfumato.learning.training.privacy_engine import PrivacyEngine

__all__ = [
    "PrivacyEngine",
    "accountants",
    "data_loader",
    "distributed",
    "grad_sample",
    "layers",
    "optimizers",
    "schedulers",
    "utils",
    "validators",
]

_MODULES = [name for name in __all__ if name.islower()]

_face, __dir__ = attach(
    __name__,
    {
        "PrivacyEngine": "sfumato.learning.training.privacy_engine",
        **dict.fromkeys(_MODULES, ""),
    },
    extras={"torch": "torch"},
)


def __getattr__(name: str) -> Any:
    return _grad_sample(name) if name == "GradSampleModule" else _face(name)
