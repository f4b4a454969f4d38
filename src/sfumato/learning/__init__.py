"""Private learning: training of PyTorch modules, classical models, votes of teachers, paid tuning.

Only the parts that train PyTorch modules load torch, and only on first use.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from sfumato._lazy import attach

if TYPE_CHECKING:
    from sfumato.learning.checks.fixing import fix_module
    from sfumato.learning.checks.leaks import LeakReport, leak_probe
    from sfumato.learning.checks.selftest import SelfTest, self_test
    from sfumato.learning.checks.shapes import batch_of
    from sfumato.learning.checks.validator import ModuleValidator
    from sfumato.learning.clipping.flat import Flat

__all__ = [
    "Flat",
    "LeakReport",
    "ModuleValidator",
    "SelfTest",
    "batch_of",
    "fix_module",
    "leak_probe",
    "self_test",
]

__getattr__, __dir__ = attach(
    __name__,
    {
        "Flat": "sfumato.learning.clipping.flat",
        "LeakReport": "sfumato.learning.checks.leaks",
        "ModuleValidator": "sfumato.learning.checks.validator",
        "SelfTest": "sfumato.learning.checks.selftest",
        "batch_of": "sfumato.learning.checks.shapes",
        "fix_module": "sfumato.learning.checks.fixing",
        "leak_probe": "sfumato.learning.checks.leaks",
        "self_test": "sfumato.learning.checks.selftest",
    },
    extras={"torch": "torch", "sklearn": "scikit-learn"},
)
