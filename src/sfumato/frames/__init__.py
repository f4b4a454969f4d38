"""Tables in every form that people have, as Arrow: files, folders, and frames of other libraries.

`open_source` recognises a path (Parquet, CSV, a DuckDB file, a folder of Parquet files), a list of them, a
frame, a dataset of files (of pyarrow, Delta or Iceberg), or several of them by name. `as_arrow` turns a frame
of pandas, Polars, Arrow or a library that narwhals knows into an Arrow table, by the types of its columns and
never by their values. `Delimited` reads a CSV file row by row as text, so that no row changes how another one
is read.

>>> import pandas as pd
>>> from sfumato.frames import as_arrow, open_source
>>> people = pd.DataFrame({"person": [1, 2], "age": [30.0, None]})
>>> as_arrow("people", people).schema.names
['person', 'age']
>>> list(open_source({"people": people, "visits": people}))
['people', 'visits']
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from sfumato._lazy import attach

if TYPE_CHECKING:
    from sfumato.frames.arrow import as_arrow
    from sfumato.frames.datasets import DatasetSource
    from sfumato.frames.delimited import Delimited
    from sfumato.frames.sources import FileKind, FileSource, FrameSource, open_source

__all__ = ["DatasetSource", "Delimited", "FileKind", "FileSource", "FrameSource", "as_arrow", "open_source"]

__getattr__, __dir__ = attach(
    __name__,
    {
        "DatasetSource": "sfumato.frames.datasets",
        "Delimited": "sfumato.frames.delimited",
        "FileKind": "sfumato.frames.sources",
        "FileSource": "sfumato.frames.sources",
        "FrameSource": "sfumato.frames.sources",
        "as_arrow": "sfumato.frames.arrow",
        "open_source": "sfumato.frames.sources",
    },
)
