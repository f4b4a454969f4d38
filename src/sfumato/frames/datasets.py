"""Datasets of files that are scanned where they lie: pyarrow Datasets, Delta tables and Iceberg tables.

Only the columns and rows that a query needs are read: pyarrow takes projection and filter from the engine. A
Delta table is the version that its `DeltaTable` has loaded. An Iceberg table is its current snapshot: its
files are scanned where each has the table's very columns; where columns were renamed or rows deleted beside
the files, pyiceberg reads the table into memory instead.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, final
from urllib.parse import unquote, urlsplit

import pyarrow as pa
import pyarrow.parquet as pq
from pyarrow.fs import LocalFileSystem

from sfumato.errors import MissingExtra, SourceError

if TYPE_CHECKING:
    import pyarrow.dataset as ds

__all__ = ["DatasetSource", "as_dataset", "delta_table", "is_delta_table"]

_DELTA_LOG: Final = "_delta_log"


@final
@dataclass(frozen=True, slots=True)
class DatasetSource:
    """A pyarrow Dataset, which is scanned anew by each query.

    Parameters
    ----------
    dataset : pyarrow.dataset.Dataset
    files : tuple of Path
        Its files where they are local, which must not change while it is open.
    kind : str
        What it was given as, in words.

    Examples
    --------
    >>> import pyarrow.dataset as ds
    >>> DatasetSource(ds.dataset(pa.table({"person": [1, 2]}))).dataset.count_rows()
    2
    """

    dataset: ds.Dataset
    files: tuple[Path, ...] = ()
    kind: str = "a pyarrow Dataset"

    def batches(self) -> Iterator[pa.RecordBatch]:
        """Yield all rows, in the dataset's order.

        Yields
        ------
        pyarrow.RecordBatch

        Raises
        ------
        SourceError
            If the files cannot be read, or a batch is not what its type says, such as text in UTF-8.
        """
        batches = iter(self.dataset.to_batches())
        while True:
            batch = None
            try:
                batch = next(batches, None)
                if batch is None:
                    return
                batch.validate(full=True)
            except (pa.ArrowException, OSError):
                pass
            else:
                yield batch
                continue
            # outside of the handler: Arrow's message may quote the data
            raise SourceError(
                f"{self.kind} must hold valid data in files that can be read, got other; write it again"
            )


def as_dataset(name: str, source: Any) -> DatasetSource | pa.Table | None:
    """Return a pyarrow Dataset, or a table of Delta or Iceberg as one; None for anything else.

    No library is imported for it: a table of a library that was never imported cannot be there.

    Parameters
    ----------
    name : str
        What error messages call the table.
    source : object

    Returns
    -------
    DatasetSource, pyarrow.Table or None
        A table where the rows of an Iceberg table are not those of its files.

    Raises
    ------
    SourceError
        If its library cannot read it.
    """
    arrow = sys.modules.get("pyarrow.dataset")
    if arrow is not None and isinstance(source, arrow.Dataset):
        return _checked(name, DatasetSource(source, _local_files(source)))
    delta, iceberg = sys.modules.get("deltalake"), sys.modules.get("pyiceberg.table")
    if delta is not None and isinstance(source, delta.DeltaTable):
        return _checked(name, _delta(name, source))
    if iceberg is not None and isinstance(source, iceberg.Table):
        found = _iceberg(name, source)
        return found if isinstance(found, pa.Table) else _checked(name, found)
    return None


def is_delta_table(folder: Path) -> bool:
    """Return whether a folder holds a Delta table, whose log says which of its files count."""
    return (folder / _DELTA_LOG).is_dir()


def delta_table(name: str, folder: Path) -> DatasetSource:
    """Open the Delta table of a folder, in its last version.

    Raises
    ------
    MissingExtra
        If deltalake is not installed.
    SourceError
        If it cannot read the table.
    """
    try:
        deltalake = importlib.import_module("deltalake")
    except ImportError as missing:
        raise MissingExtra("a Delta table needs deltalake; pip install 'sfumato[lakehouse]'") from missing
    table = None
    with suppress(Exception):  # errors of deltalake, whose texts may quote the log
        table = deltalake.DeltaTable(str(folder))
    if table is None:
        raise SourceError(
            f"table {name!r} must be a Delta table that deltalake can open, got {str(folder)!r}; check its "
            "log"
        )
    return _checked(name, _delta(name, table))


def _delta(name: str, table: Any) -> DatasetSource:
    dataset, paths = None, []
    with suppress(Exception):  # errors of deltalake, whose texts may quote the log
        paths = [_local(uri) for uri in table.file_uris()]
        dataset = table.to_pyarrow_dataset()
    if dataset is None:
        raise SourceError(
            f"table {name!r} must be a Delta table that can be read as a pyarrow Dataset, got one with "
            "features that deltalake does not read so, such as deletion vectors; rewrite it, or pass "
            "table.to_pyarrow_table()"
        )
    known = tuple(path for path in paths if path is not None)
    return DatasetSource(_sorted(dataset), known if len(known) == len(paths) else (), "a Delta table")


def _arrow_datasets() -> Any:
    """Return the module, which loads pandas: only whoever has a dataset needs it."""
    return importlib.import_module("pyarrow.dataset")


def _sorted(dataset: Any) -> Any:
    """Return a dataset of files in the order of their names: the order in a log is no content."""
    if not isinstance(dataset, _arrow_datasets().FileSystemDataset):
        return dataset
    fragments = sorted(dataset.get_fragments(), key=lambda fragment: str(fragment.path))
    if not fragments:
        return dataset
    return _arrow_datasets().FileSystemDataset(fragments, dataset.schema, dataset.format, dataset.filesystem)


def _iceberg(name: str, table: Any) -> DatasetSource | pa.Table:
    found: DatasetSource | pa.Table | None = None
    with suppress(Exception):  # errors of pyiceberg and of its catalogs
        scan = table.scan()
        found = _scanned_files(list(scan.plan_files()), table.schema().as_arrow())
        if found is None:
            found = scan.to_arrow().replace_schema_metadata(None)
    if found is None:
        raise SourceError(
            f"table {name!r} must be an Iceberg table that pyiceberg can read, got one that it cannot; check "
            "its catalog and its files"
        )
    return found


def _scanned_files(tasks: list[Any], schema: pa.Schema) -> DatasetSource | None:
    """Return the files of a snapshot as a dataset, if their rows and columns are the table's as they are."""
    paths = [_local(task.file.file_path) for task in tasks]
    if not tasks or any(task.delete_files for task in tasks) or None in paths:
        return None
    files = sorted(path for path in paths if path is not None)
    if any(_columns(pq.read_schema(path)) != _columns(schema) for path in files):
        return None
    plain = pa.schema([pa.field(each.name, each.type) for each in pq.read_schema(files[0])])
    made = _arrow_datasets().dataset([str(path) for path in files], schema=plain, format="parquet")
    return DatasetSource(made, tuple(files), "an Iceberg table")


def _columns(schema: pa.Schema) -> list[tuple[str, str]]:
    """Return names and types, where the width of offsets makes no difference."""
    return [(each.name, str(each.type).replace("large_", "")) for each in schema]


def _checked(name: str, source: DatasetSource) -> DatasetSource:
    if not source.dataset.schema.names:
        raise SourceError(f"table {name!r} must have at least one column, got none; pass one with columns")
    return source


def _local_files(dataset: Any) -> tuple[Path, ...]:
    """Return the local files of a dataset; none where there are others too."""
    if isinstance(dataset, _arrow_datasets().UnionDataset):
        parts = [_local_files(child) for child in dataset.children]
        return tuple(path for part in parts for path in part) if all(parts) else ()
    if not isinstance(getattr(dataset, "filesystem", None), LocalFileSystem):
        return ()
    return tuple(Path(path) for path in dataset.files)


def _local(address: str) -> Path | None:
    """Return the path of a local file; None for one that lies elsewhere."""
    parts = urlsplit(address)
    if parts.scheme == "file":
        return Path(unquote(parts.path))
    return None if "://" in address else Path(address)
