"""Files that are on the disk when a call returns, whole or not at all."""

from __future__ import annotations

import fcntl
import os
import secrets
import stat
from pathlib import Path

__all__ = [
    "lock_beside", "new_file", "private_content", "replace_file", "sync_folder", "write_file", "write_whole",
]  # fmt: skip


def write_file(path: Path, content: bytes) -> None:
    """Write a file that its owner alone may read, and bring its content to the disk; follow no link."""
    _fill(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600), content)


def new_file(path: Path, content: bytes, *, mode: int = 0o600) -> None:
    """Write a file that was not there, and bring its content to the disk.

    Parameters
    ----------
    path : Path
    content : bytes
    mode : int
        Who may read it, less the process's mask: its owner alone, unless it is given.

    Raises
    ------
    FileExistsError
        If there is one.
    """
    _fill(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, mode), content)


def _fill(held: int, content: bytes) -> None:
    with os.fdopen(held, "wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())


def private_content(path: Path, longest: int) -> bytes | None:
    """Return the content of a file that its owner alone can read; None if others may.

    Parameters
    ----------
    path : Path
    longest : int
        Bytes that are read at most.

    Raises
    ------
    OSError
        If it cannot be read.
    """
    with path.open("rb") as file:
        mode = os.fstat(file.fileno()).st_mode
        return None if mode & (stat.S_IRWXG | stat.S_IRWXO) else file.read(longest)


def lock_beside(path: Path, *, wait: bool = False) -> int:
    """Hold the lock beside a file, which ends with the process, or when the descriptor is closed.

    Parameters
    ----------
    path : Path
        The file, which need not exist.
    wait : bool
        Wait while it is held elsewhere, as for one that is held for moments.

    Returns
    -------
    int
        A descriptor.

    Raises
    ------
    BlockingIOError
        If it is held already, here or in another process, and is not waited for.
    OSError
        If there can be no file in the folder.
    """
    held = os.open(path.with_name(path.name + ".lock"), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(held, fcntl.LOCK_EX if wait else fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(held)
        raise
    return held


def sync_folder(folder: Path) -> None:
    """Bring a folder's names to the disk."""
    held = os.open(folder, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(held)
    finally:
        os.close(held)


def replace_file(path: Path, draft: Path, content: bytes) -> None:
    """Put content in the place of what is there, in one step; killed at any moment, it is the old or the new.

    Parameters
    ----------
    path : Path
    draft : Path
        Another one in the same folder, which is overwritten.
    content : bytes
    """
    write_file(draft, content)
    draft.replace(path)
    sync_folder(path.parent)


def write_whole(path: Path, content: bytes, *, mode: int | None = None) -> None:
    """Put content in the place of what is there, in one step; after a failure or a crash, what was there is.

    Parameters
    ----------
    path : Path
    content : bytes
    mode : int, optional
        Who may read it, less the process's mask; left out, whoever might read what was there, or else all.
    """
    draft = path.with_name(f".sfumato-{secrets.token_hex(8)}.part")
    present = stat.S_IMODE(path.stat().st_mode) if mode is None and path.exists() else None
    try:
        new_file(draft, content, mode=0o600 if present is not None else 0o666 if mode is None else mode)
        if present is not None:
            draft.chmod(present)
        draft.replace(path)
    finally:
        draft.unlink(missing_ok=True)
