"""Logical batches in parts, by Opacus's path."""

from __future__ import annotations

from sfumato.learning.training.loop.private_optimizer import BatchMemoryManager

__all__ = ["BatchMemoryManager"]
