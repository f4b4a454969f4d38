"""Which processes of a console are alive: each holds a lock, which ends with it, in whatever way it ends."""

from __future__ import annotations

import os
import secrets
from pathlib import Path
from typing import final

from sfumato._check import refuse_state
from sfumato._durable import lock_beside

__all__ = ["WorkerLock"]


@final
class WorkerLock:
    """The lock of this process, and a look at those of others.

    Parameters
    ----------
    folder : Path
        Where the processes' locks lie; made if there is none.

    Attributes
    ----------
    name : str
        Random: the process's own.

    Raises
    ------
    ParameterError
        If there can be no file in the folder.
    """

    def __init__(self, folder: Path) -> None:
        self.name = secrets.token_hex(8)
        self._folder = folder
        try:
            for each in (folder.parent, folder):
                each.mkdir(mode=0o700, parents=True, exist_ok=True)
            self._held: int | None = lock_beside(folder / self.name)
        except OSError as error:
            found = f"{(error.strerror or 'a failure').lower()}"
            refuse_state("folder", "be one that can be written to", found, "choose another")

    def is_dead(self, name: str) -> bool:
        """Return whether the process of a name has ended.

        Parameters
        ----------
        name : str
        """
        if name == self.name or not (self._folder / f"{name}.lock").exists():
            return name != self.name
        try:
            held = lock_beside(self._folder / name)
        except OSError:
            return False
        os.close(held)
        return True

    def close(self) -> None:
        """Let go of the lock."""
        if self._held is not None:
            os.close(self._held)
            self._held = None
            (self._folder / f"{self.name}.lock").unlink(missing_ok=True)
