"""Folders whose names give columns: ``sales/year=2026/month=3/part-0.parquet``.

Each file's columns are those in it and those of the folders that it lies in, as texts unless a type is
declared: the types of columns never follow from values. What a name cannot hold is written with per cent
signs, and ``__HIVE_DEFAULT_PARTITION__`` is NULL.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from sfumato.errors import SourceError

__all__ = ["partition_names", "partitioned_files"]

_HIDDEN = (".", "_")


def partitioned_files(folder: Path) -> list[Path]:
    """Return the Parquet files below a folder, in order; files and folders that begin with . or _ are none.

    Parameters
    ----------
    folder : Path
    """
    return sorted(
        path
        for path in folder.rglob("*.parquet")
        if not any(part.startswith(_HIDDEN) for part in path.relative_to(folder).parts)
    )


def partition_names(folder: Path, files: Sequence[Path]) -> tuple[str, ...]:
    """Return the columns that the folders between a folder and its files name, the same for all files.

    Parameters
    ----------
    folder : Path
    files : sequence of Path
        Below it.

    Raises
    ------
    SourceError
        If a folder names no column, or the files lie in folders that name others.

    Examples
    --------
    >>> partition_names(Path("sales"), [Path("sales/year=2026/month=3/a.parquet")])
    ('year', 'month')
    """
    found = {tuple(part.partition("=")[:2] for part in file.relative_to(folder).parts[:-1]) for file in files}
    if len(found) > 1 or any("" in (name, mark) for parts in found for name, mark in parts):
        raise SourceError(
            "the folders of a partitioned table must all be called column=value, by the same columns in one "
            f"order, got others in {str(folder)!r}; pass a list of the files, or the folder that holds them"
        )
    return tuple(name for parts in found for name, _ in parts)
