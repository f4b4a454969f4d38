"""Utilities by Opacus's paths."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sfumato._lazy import attach

if TYPE_CHECKING:
    from sfumato.learning.opacus.utils import batch_memory_manager

__all__ = ["batch_memory_manager"]

__getattr__, __dir__ = attach(__name__, {"batch_memory_manager": ""}, extras={"torch": "torch"})
