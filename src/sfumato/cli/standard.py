"""Standard output that may fail: a full disk behind it, or a reader that has gone away."""

from __future__ import annotations

import io
import sys
from typing import Any, final

from sfumato.errors import ParameterError

__all__ = ["OutputFailed", "watch"]


class OutputFailed(ParameterError):
    """Standard output did not take what was printed."""


@final
class _Watched(io.FileIO):
    """A file that reports its first failure in words, and swallows what comes after it.

    Python flushes standard output once more when it ends, and would then print a traceback of its own.
    """

    _failed = False

    def write(self, data: Any, /) -> int:
        if self._failed:
            return memoryview(data).nbytes
        try:
            return super().write(data)
        except OSError as error:
            self._failed = True
            why = (error.strerror or "a failure").lower()
            raise OutputFailed(
                f"standard output must take what is printed, got {why!r}; free the disk, or keep the pipe's "
                "reader running"
            ) from None


def watch() -> None:
    """Put a watched standard output in place of this process's own."""
    own = sys.stdout
    if not isinstance(own, io.TextIOWrapper):
        return
    own.flush()
    raw = _Watched(own.fileno(), "w", closefd=False)
    sys.stdout = io.TextIOWrapper(
        io.BufferedWriter(raw), encoding=own.encoding, errors=own.errors, line_buffering=own.line_buffering
    )
