"""A file of the levels that are done, so that a run that was ended goes on below them."""

from __future__ import annotations

import io
import os
import zipfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self, final

import numpy as np

from sfumato import _check
from sfumato._durable import write_whole
from sfumato.synthetic.topdown.estimation import LevelEstimate
from sfumato.synthetic.topdown.unit_counts import LevelCounts

__all__ = ["StateFile"]


@final
@dataclass(frozen=True, slots=True)
class StateFile:
    """Released and noisy counts by level, in one file of numpy arrays for each level.

    Parameters
    ----------
    folder : Path
        It is made where it is not there.
    digest : str
        Of the mechanism's parameters: a file of other ones is refused.

    Notes
    -----
    It holds what may be published, and nothing of rows. A level is written as a whole after it was measured:
    one that was not is measured again, with fresh noise, and nobody saw the former.
    """

    folder: Path
    digest: str

    @classmethod
    def begun(cls, folder: object, digest: str) -> Self:
        """Return the file of a run that begins or goes on, before anything is measured.

        Parameters
        ----------
        folder : str or path
        digest : str

        Returns
        -------
        StateFile

        Raises
        ------
        ParameterError
            If levels could not be written there.
        """
        if not isinstance(folder, str | os.PathLike):
            _check.refuse_type("state", "be a path", folder, "name a folder")
        path = Path(os.fsdecode(folder))
        try:
            path.mkdir(parents=True, exist_ok=True)
            able = os.access(path, os.W_OK)
        except (OSError, ValueError):
            able = False
        if not able:
            _check.refuse("state", "be a folder that can be written", str(path), "name another folder")
        return cls(path, digest)

    def read(self, depth: int) -> tuple[LevelEstimate, bool] | None:
        """Return a level that is done and whether its noise was simulated; None if it is not done.

        Parameters
        ----------
        depth : int

        Returns
        -------
        tuple of LevelEstimate and bool, or None

        Raises
        ------
        ParameterError
            If the file is of other parameters, or damaged.
        """
        path = self._path(depth)
        if not path.exists():
            return None
        try:
            with np.load(io.BytesIO(path.read_bytes()), allow_pickle=False) as file:
                arrays = {name: file[name] for name in file.files}
            digest, simulated = str(arrays.pop("digest")), bool(arrays.pop("simulated"))
            unfinished, every = int(arrays.pop("unfinished")), bool(arrays.pop("every"))
            counts = LevelCounts(arrays.pop("starts"), arrays.pop("cells"), arrays.pop("counts"))
        except (OSError, ValueError, KeyError, zipfile.BadZipFile, EOFError):
            _check.refuse("state", "be a folder of whole files", str(self.folder), "take another folder")
        if digest != self.digest:
            remedy = "take another folder, or the mechanism that it was begun with"
            found = "it was begun with other parameters"
            _check.refuse_state("state", "be of this mechanism", found, remedy)
        noisy = {int(name): array for name, array in arrays.items()} if every else None
        return LevelEstimate(counts, noisy, unfinished), simulated

    def write(self, depth: int, estimate: LevelEstimate, *, simulated: bool) -> None:
        """Write a level that is done.

        Parameters
        ----------
        depth : int
        estimate : LevelEstimate
        simulated : bool
        """
        held = io.BytesIO()
        noisy: dict[str, Any] = {str(i): array for i, array in (estimate.noisy or {}).items()}
        np.savez(
            held,
            digest=np.array(self.digest),
            simulated=np.array(simulated),
            unfinished=np.array(estimate.unfinished),
            every=np.array(estimate.noisy is not None),
            starts=estimate.counts.starts,
            cells=estimate.counts.cells,
            counts=estimate.counts.counts,
            **noisy,
        )
        write_whole(self._path(depth), held.getvalue(), mode=0o600)

    def _path(self, depth: int) -> Path:
        return self.folder / f"level-{depth}.npz"
