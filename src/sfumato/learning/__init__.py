"""Private learning: training of PyTorch modules, classical models, votes of teachers, paid tuning.

Only the parts that train PyTorch modules load torch, and only on first use.
"""

from __future__ import annotations

from sfumato._lazy import attach

__all__: list[str] = []

__getattr__, __dir__ = attach(__name__, {}, extras={"torch": "torch", "sklearn": "scikit-learn"})
