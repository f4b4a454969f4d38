"""Names and texts as each dialect writes them: sqlglot, which knows the dialect, reads the same ones back."""

from __future__ import annotations

import pytest
import sqlglot
from hypothesis import example, given
from hypothesis import strategies as st
from sqlglot import exp

from sfumato.queries.engines.dialects.base import Dialect
from sfumato.queries.engines.dialects.bigquery import BIGQUERY
from sfumato.queries.engines.dialects.snowflake import SNOWFLAKE
from sfumato.queries.engines.duckdb.dialect import DUCKDB
from sfumato.queries.engines.postgres.dialect import PostgreSQL

# Spark is not among them: it writes names in letters of their bytes, and texts as expressions.
DIALECTS = {
    "bigquery": BIGQUERY,
    "snowflake": SNOWFLAKE,
    "duckdb": DUCKDB,
    "postgres": PostgreSQL(),
}
# What ends a literal or begins an escape somewhere, and letters that sort beside them.
ODD = st.text(alphabet="'\"`\\%_;-/*\n\ta$Ω ", max_size=12)


@pytest.mark.sharpest(*DIALECTS)
@pytest.mark.parametrize("name", DIALECTS)
def test_a_text_is_read_back_as_it_was(name: str) -> None:
    made: Dialect = DIALECTS[name]

    @given(ODD)
    @example("'; DROP TABLE people; --")
    @example("\\")
    @example("\\'")
    def read_back(value: str) -> None:
        (tree,) = sqlglot.parse(f"SELECT {made.string(value)} AS t", read=name)
        assert isinstance(tree, exp.Select)
        (column,) = tree.expressions
        assert isinstance(column, exp.Alias)
        assert isinstance(column.this, exp.Literal)
        assert column.this.this == value

    read_back()


@pytest.mark.sharpest(*DIALECTS)
@pytest.mark.parametrize("name", DIALECTS)
def test_a_name_is_read_back_as_it_was(name: str) -> None:
    made: Dialect = DIALECTS[name]

    @given(st.text(alphabet="'\";-*a$Ω ", min_size=1, max_size=12))
    @example('a" FROM secret; --')
    @example("select")
    def read_back(value: str) -> None:
        (tree,) = sqlglot.parse(f"SELECT {made.identifier(value)} FROM t", read=name)
        assert isinstance(tree, exp.Select)
        (column,) = tree.expressions
        assert column.name == value

    read_back()
