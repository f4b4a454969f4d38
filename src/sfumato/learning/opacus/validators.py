"""What is known against a module, by Opacus's name."""

from __future__ import annotations

from sfumato.learning.checks.validator import ModuleValidator

__all__ = ["ModuleValidator"]
