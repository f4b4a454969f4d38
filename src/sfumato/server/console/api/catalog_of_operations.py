"""All operations of the interface; one that is not here has no route, and is in no document."""

from __future__ import annotations

from typing import Final

from sfumato.server.console.api import (
    job_calls,
    log_calls,
    own_calls,
    question_calls,
    release_calls,
    review_calls,
)

__all__ = ["OPERATIONS"]

OPERATIONS: Final = (
    *question_calls.OPERATIONS,
    *job_calls.OPERATIONS,
    *own_calls.OPERATIONS,
    *release_calls.OPERATIONS,
    *review_calls.OPERATIONS,
    *log_calls.OPERATIONS,
)
"""In the order of the document."""
