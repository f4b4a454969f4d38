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
    from sfumato.learning.clipping.adaptive import AdaptiveQuantile
    from sfumato.learning.clipping.automatic import Automatic
    from sfumato.learning.clipping.clipping import Clipping
    from sfumato.learning.clipping.flat import Flat
    from sfumato.learning.clipping.per_group import PerGroup
    from sfumato.learning.clipping.per_layer import PerLayer
    from sfumato.learning.clipping.per_user import clipped_by_user
    from sfumato.learning.noise.correlated import CorrelatedNoise
    from sfumato.learning.noise.grid import GridNoise
    from sfumato.learning.noise.keyed import KeyedNoise, SimulatedNoise
    from sfumato.learning.noise.noise import Noise
    from sfumato.learning.noise.strategies import choose_strategy

__all__ = [
    "AdaptiveQuantile",
    "Automatic",
    "Clipping",
    "CorrelatedNoise",
    "Flat",
    "GridNoise",
    "KeyedNoise",
    "LeakReport",
    "ModuleValidator",
    "Noise",
    "PerGroup",
    "PerLayer",
    "SelfTest",
    "SimulatedNoise",
    "batch_of",
    "choose_strategy",
    "clipped_by_user",
    "fix_module",
    "leak_probe",
    "self_test",
]

__getattr__, __dir__ = attach(
    __name__,
    {
        "AdaptiveQuantile": "sfumato.learning.clipping.adaptive",
        "Automatic": "sfumato.learning.clipping.automatic",
        "Clipping": "sfumato.learning.clipping.clipping",
        "CorrelatedNoise": "sfumato.learning.noise.correlated",
        "Flat": "sfumato.learning.clipping.flat",
        "GridNoise": "sfumato.learning.noise.grid",
        "KeyedNoise": "sfumato.learning.noise.keyed",
        "LeakReport": "sfumato.learning.checks.leaks",
        "ModuleValidator": "sfumato.learning.checks.validator",
        "Noise": "sfumato.learning.noise.noise",
        "PerGroup": "sfumato.learning.clipping.per_group",
        "PerLayer": "sfumato.learning.clipping.per_layer",
        "SelfTest": "sfumato.learning.checks.selftest",
        "SimulatedNoise": "sfumato.learning.noise.keyed",
        "batch_of": "sfumato.learning.checks.shapes",
        "choose_strategy": "sfumato.learning.noise.strategies",
        "clipped_by_user": "sfumato.learning.clipping.per_user",
        "fix_module": "sfumato.learning.checks.fixing",
        "leak_probe": "sfumato.learning.checks.leaks",
        "self_test": "sfumato.learning.checks.selftest",
    },
    extras={"torch": "torch", "sklearn": "scikit-learn"},
)
