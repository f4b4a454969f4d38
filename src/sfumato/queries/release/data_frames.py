"""Released tables as data frames, of libraries that are optional."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa

from sfumato.errors import MissingExtra

if TYPE_CHECKING:
    import pandas as pd
    import polars as pl

__all__ = ["as_pandas", "as_polars"]


def as_pandas(table: pa.Table) -> pd.DataFrame:
    """Return a table as a pandas DataFrame.

    Parameters
    ----------
    table : pyarrow.Table

    Returns
    -------
    pandas.DataFrame

    Raises
    ------
    MissingExtra
        If pandas is not installed.

    Examples
    --------
    >>> as_pandas(pa.table({"n": [950, 12000]})).n.tolist()
    [950, 12000]
    """
    try:
        import pandas as pd  # noqa: F401, PLC0415 - an optional library
    except ImportError as missing:
        raise MissingExtra("to_pandas needs pandas; pip install 'sfumato[pandas]'") from missing
    frame: pd.DataFrame = table.to_pandas()
    return frame


def as_polars(table: pa.Table) -> pl.DataFrame:
    """Return a table as a Polars DataFrame.

    Parameters
    ----------
    table : pyarrow.Table

    Returns
    -------
    polars.DataFrame

    Raises
    ------
    MissingExtra
        If Polars is not installed.

    Examples
    --------
    >>> as_polars(pa.table({"n": [950, 12000]}))["n"].to_list()
    [950, 12000]
    """
    try:
        import polars as pl  # noqa: PLC0415 - an optional library
    except ImportError as missing:
        raise MissingExtra("to_polars needs Polars; pip install 'sfumato[polars]'") from missing
    return pl.DataFrame(table)
