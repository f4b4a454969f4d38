"""Errors as a server answers them: problem documents (RFC 9457) with the draft's types."""

from __future__ import annotations

import json
from enum import Enum
from typing import Final

from sfumato.federated.dap.task import base64url

__all__ = ["PROBLEM_TYPE", "Problem", "ProblemType", "problem_in"]

PROBLEM_TYPE: Final = "application/problem+json"
"""The media type of problem documents."""

_PREFIX: Final = "urn:ietf:params:ppm:dap:error:"


class ProblemType(Enum):
    """What the draft has a name for, and the HTTP status that goes with it.

    Examples
    --------
    >>> ProblemType.UNRECOGNIZED_TASK.status
    404
    """

    INVALID_MESSAGE = ("invalidMessage", 400)
    UNRECOGNIZED_TASK = ("unrecognizedTask", 404)
    UNRECOGNIZED_AGGREGATION_JOB = ("unrecognizedAggregationJob", 404)
    BATCH_INVALID = ("batchInvalid", 400)
    INVALID_BATCH_SIZE = ("invalidBatchSize", 400)
    INVALID_AGGREGATION_PARAMETER = ("invalidAggregationParameter", 400)
    BATCH_MISMATCH = ("batchMismatch", 400)
    STEP_MISMATCH = ("stepMismatch", 400)
    BATCH_OVERLAP = ("batchOverlap", 400)
    UNSUPPORTED_EXTENSION = ("unsupportedExtension", 400)

    @property
    def status(self) -> int:
        """The HTTP status."""
        return self.value[1]


class Problem(Exception):
    """A request that is refused.

    Parameters
    ----------
    kind : ProblemType or int
        One of the draft's types, or an HTTP status alone.
    detail : str
        Depends on the request's form and on public numbers only.
    retry_after : int, optional
        Seconds after which the same request may be taken.

    Examples
    --------
    >>> Problem(401, "no such token").document(None)
    b'{"type": "about:blank", "status": 401, "detail": "no such token"}'
    """

    def __init__(self, kind: ProblemType | int, detail: str, *, retry_after: int | None = None) -> None:
        super().__init__(detail)
        self.kind, self.detail, self.retry_after = kind, detail, retry_after

    @property
    def status(self) -> int:
        """The HTTP status."""
        return self.kind.status if isinstance(self.kind, ProblemType) else self.kind

    def document(self, task_id: bytes | None) -> bytes:
        """Return the problem document; the task's id is in it where it is known."""
        name = _PREFIX + self.kind.value[0] if isinstance(self.kind, ProblemType) else "about:blank"
        fields: dict[str, object] = {"type": name, "status": self.status, "detail": self.detail}
        if task_id is not None:
            fields["taskid"] = base64url(task_id)
        return json.dumps(fields).encode()


def problem_in(status: int, body: bytes) -> Problem:
    """Return the problem that a server answered.

    Examples
    --------
    >>> problem_in(404, Problem(ProblemType.UNRECOGNIZED_TASK, "no such task").document(None)).kind
    <ProblemType.UNRECOGNIZED_TASK: ('unrecognizedTask', 404)>
    >>> problem_in(502, b"<html>").kind
    502
    """
    try:
        fields = json.loads(body)
    except (ValueError, RecursionError):
        fields = None
    name = fields.get("type") if isinstance(fields, dict) else None
    known = {_PREFIX + kind.value[0]: kind for kind in ProblemType}
    kind = known.get(name) if isinstance(name, str) else None
    return Problem(status if kind is None else kind, f"status {status}" if kind is None else kind.value[0])
