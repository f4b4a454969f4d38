"""The file of an opening's state: one process has it at a time, and it is replaced as a whole."""

from __future__ import annotations

import os
from pathlib import Path
from typing import NoReturn, final

from sfumato._durable import lock_beside, replace_file
from sfumato.errors import SourceError

__all__ = ["OpeningFile"]


@final
class OpeningFile:
    """A file that this process holds until `close`.

    Parameters
    ----------
    path : str or path

    Attributes
    ----------
    size : int
        Bytes that were read or written last.

    Raises
    ------
    SourceError
        If another process holds it, or its folder cannot be written.
    """

    __slots__ = ("_lock", "_path", "size")

    def __init__(self, path: str | os.PathLike[str]) -> None:
        # Links are resolved, so that every name of the file has the same lock.
        self._path, self.size = Path(path), 0
        try:
            self._path = Path(os.path.realpath(path))
            self._lock: int | None = lock_beside(self._path)
        except BlockingIOError:
            self._refuse("be free", "wait until the other process is done, or merge its state")
        except (OSError, ValueError):  # a ValueError is a name that no file can have
            self._refuse("be in a folder that can be written", "name another")

    @property
    def closed(self) -> bool:
        """Whether it was let go of."""
        return self._lock is None

    def read(self) -> bytes:
        """Return its content, empty where there is no file yet."""
        try:
            content = self._path.read_bytes() if self._path.exists() else b""
        except OSError:
            self._refuse("be a file that can be read", "name another")
        self.size = len(content)
        return content

    def write(self, content: bytes) -> None:
        """Replace its content: on the disk when this returns, all of it or nothing."""
        try:
            replace_file(self._path, self._path.with_name(self._path.name + ".new"), content)
        except OSError:
            self._refuse("be written", "make room, and open the batches again")
        self.size = len(content)

    def close(self) -> None:
        """Let another process have it; calling it again does nothing."""
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None

    def _refuse(self, rule: str, remedy: str) -> NoReturn:
        raise SourceError(f"state must {rule}, got {str(self._path)!r}; {remedy}") from None
