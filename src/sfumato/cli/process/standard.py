"""Standard output that may fail: a full disk behind it, or a reader that has gone away."""

from __future__ import annotations

import errno
import io
import sys
from typing import Any, Final, final

from sfumato.errors import ParameterError

__all__ = ["READER_GONE", "OutputFailed", "reader_gone", "watch"]

READER_GONE: Final = 141
"""Exit code where the reader of standard output went away, as shells count signals (``| head``)."""


class OutputFailed(ParameterError):
    """Standard output did not take what was printed."""


@final
class _Watched(io.FileIO):
    """A file that reports its first failure in words, and swallows what comes after it.

    Python flushes standard output once more when it ends, and would then print a traceback of its own. A
    reader that has gone away, such as ``head``, has what it wanted: nothing is said of that.
    """

    failed = False
    unread = False

    def write(self, data: Any, /) -> int:
        if self.failed:
            return memoryview(data).nbytes
        try:
            return super().write(data)
        except OSError as error:
            self.failed = True
            if error.errno == errno.EPIPE:
                self.unread = True
                return memoryview(data).nbytes
            why = (error.strerror or "a failure").lower()
            raise OutputFailed(
                f"standard output must take what is printed, got {why!r}; free the disk, or name another file"
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


def reader_gone() -> bool:
    """Flush standard output, and return whether its reader has gone away."""
    if sys.stdout is not None:
        sys.stdout.flush()
    raw = getattr(getattr(sys.stdout, "buffer", None), "raw", None)
    return isinstance(raw, _Watched) and raw.unread
