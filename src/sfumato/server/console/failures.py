"""What is said of an error that sfumato raised on purpose: by a page, or by the interface for programs."""

from __future__ import annotations

from typing import Final

from sfumato.errors import (
    LedgerCorrupt,
    LedgerUnavailable,
    ParameterError,
    QueryError,
    SfumatoError,
    SourceError,
)
from sfumato.server.console.asking.job_store import TooManyJobs

__all__ = ["OPERATORS", "OPERATOR_KNOWS", "status_of"]

OPERATORS: Final = (LedgerUnavailable, LedgerCorrupt, SourceError)
"""Errors whose messages name files and servers: the operator's, and nobody's who visits."""
OPERATOR_KNOWS: Final = "the ledger or the data cannot be read; whoever runs this console knows why"


def status_of(error: SfumatoError) -> int:
    """Return the status of HTTP that an error is answered with.

    Parameters
    ----------
    error : SfumatoError

    Examples
    --------
    >>> status_of(ParameterError("page must be at least 1, got 0")), status_of(LedgerCorrupt("it is damaged"))
    (400, 503)
    """
    if isinstance(error, OPERATORS):
        return 503
    if isinstance(error, TooManyJobs):
        return 429
    return 400 if isinstance(error, ParameterError | QueryError) else 409
