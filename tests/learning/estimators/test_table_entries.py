"""Tables of any library as numbers: what is no table is refused, and nothing of it is shown."""

from __future__ import annotations

import pytest

from sfumato.errors import ParameterError
from sfumato.learning.estimators.table_entries import numbers_of
from tests.run_time import run_time

if run_time(__name__):
    import pandas as pd


def test_a_single_column_of_pandas_is_no_table() -> None:
    for column in (pd.Series([1.0, 2.0]), pd.Series(["31", "secret"])):
        with pytest.raises(ParameterError, match="X must be a table: Expected 2D array") as told:
            numbers_of(column)
        assert "31" not in str(told.value)
