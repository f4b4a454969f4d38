"""What the outer SQL reads: answers that nothing names cost nothing, and positions are those of the text."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa
import pytest

import sfumato as sf
from sfumato.errors import QueryError, SchemaError, UnsupportedSql
from sfumato.queries.outer.release import PostprocessedRelease
from tests.cases import cases
from tests.run_time import run_time

if run_time(__name__):
    PEOPLE = pa.table({"id": range(300), "g": ["a", "b", "c"] * 100})
OPTIONS = "SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(epsilon=0.5, delta=1e-8, max_groups_contributed=1) "
GROUPS = f"({OPTIONS} g, COUNT(*) AS n FROM data GROUP BY g)"
TOTAL = f"({OPTIONS} COUNT(*) AS total FROM data)"


@pytest.fixture(scope="module")
def session() -> Iterator[sf.Session]:
    with sf.connect(PEOPLE, privacy_unit="id", epsilon=100.0, delta=1e-3, rng=5) as opened:
        yield opened


@cases(
    ("text", "read"),
    [
        (f"WITH c AS {GROUPS}, unread AS {TOTAL} SELECT n FROM c", 1),
        (f"WITH unread AS {TOTAL}, also AS (SELECT * FROM unread), c AS {GROUPS} SELECT n FROM c", 1),
        (f"WITH unread AS {TOTAL} SELECT n FROM (WITH unread AS {GROUPS} SELECT n FROM unread)", 1),
        (f"WITH c AS {GROUPS} SELECT n FROM (WITH unread AS {TOTAL} SELECT * FROM c)", 1),
        (f"WITH c AS {GROUPS}, d AS (SELECT total FROM {TOTAL}) SELECT n, (SELECT total FROM d) FROM c", 2),
    ],
)
def test_what_nothing_reads_is_not_charged(session: sf.Session, text: str, read: int) -> None:
    words = session.explain(text)
    assert ("Not read, so neither answered nor charged: unread" in words) == (read == 1)
    assert f"epsilon {read / 2:g}, delta 1e-08, charged" in words
    assert [each.query.keys != () for each in session.priced(text)] == [True, False][:read]


def test_an_answer_without_what_nothing_reads() -> None:
    with sf.connect(PEOPLE, privacy_unit="id", epsilon=1.0, delta=1e-6) as session:
        found = session.sql(f"WITH unread AS {GROUPS}, c AS {TOTAL} SELECT total FROM c")
        assert isinstance(found, PostprocessedRelease)
        assert len(found.releases) == len(session.ledger.entries()) == 1
        assert (found.columns, found.epsilon, session.ledger.remaining().epsilon) == (("total",), 0.5, 0.5)


@cases(
    ("text", "error", "words"),
    [
        (f"WITH c AS {GROUPS} SELECT 1 AS one", UnsupportedSql, "must read an answer"),
        (f"WITH c AS {GROUPS}, c AS {TOTAL} SELECT * FROM c", SchemaError, "[Dd]uplicate"),
        (f"WITH c AS {GROUPS} SELECT g, n FROM c ORDER BY 3", SchemaError, "ORDER BY must be from 1 to 2"),
        (f"WITH c AS {GROUPS} SELECT g, n FROM c ORDER BY (4)", SchemaError, "ORDER BY must be from 1 to 2"),
        (f"{GROUPS} UNION ALL {GROUPS} ORDER BY 3", SchemaError, "ORDER BY must be from 1 to 2"),
        (f"SELECT n FROM {GROUPS} GROUP BY 2", SchemaError, "GROUP BY must be from 1 to 1"),
        (f"SELECT n FROM {GROUPS} ORDER BY '1'", SchemaError, "non-integer literal"),
        (f"{GROUPS[1:-1]} ORDER BY '1'", UnsupportedSql, "ORDER BY a constant has no effect"),
        (f"{GROUPS[1:-1]} LIMIT '1'", UnsupportedSql, "LIMIT must be a whole number"),
    ],
)
def test_what_names_nothing_is_refused(
    session: sf.Session, text: str, error: type[QueryError], words: str
) -> None:
    with pytest.raises(error, match=words):
        session.explain(text)
