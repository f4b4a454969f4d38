"""Histograms: the buckets of WIDTH_BUCKET are public groups where that is asked for."""

from __future__ import annotations

import pyarrow as pa
import pytest

import sfumato as sf
from sfumato.errors import OptionError
from sfumato.queries.plan.query import PublicValues
from sfumato.queries.sql.analysis import read
from tests.queries.canonical_sql import canonical_text
from tests.queries.people import CATALOG

DP = "SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(epsilon={}, delta=0, max_groups_contributed=1, {}) "
PUBLIC = "group_selection_strategy=PUBLIC_GROUPS"


def test_every_bucket_is_in_the_answer_also_the_empty_ones() -> None:
    xs = [-5.0, 0.0, 0.5, 3.0, 9.99, 10.0, 70.0, None, float("nan")]
    table = pa.table({"id": list(range(len(xs))), "x": pa.array(xs, pa.float64())})
    text = (
        DP.format(50, PUBLIC) + "WIDTH_BUCKET(x, 0, 10, 5) AS bucket, COUNT(*) AS n FROM data GROUP BY bucket"
    )
    with sf.connect(table, privacy_unit="id", epsilon=60, rng=1) as session:
        answer = session.sql(text).to_arrow().to_pydict()
        again = session.sql(text, public_groups=None)
    assert answer == {"bucket": list(range(7)), "n": [1, 2, 1, 0, 0, 1, 2]}
    assert again.replayed


def test_the_buckets_are_part_of_what_the_query_is() -> None:
    read_as = [
        read(DP.format(1, PUBLIC) + f"WIDTH_BUCKET(age, 0, 100, {n}), COUNT(*) FROM data GROUP BY 1", CATALOG)
        for n in (10, 20)
    ]
    assert [len(q.public_groups.rows) for q in read_as if isinstance(q.public_groups, PublicValues)] == [
        12,
        22,
    ]
    assert canonical_text(read_as[0]) != canonical_text(read_as[1])


@pytest.mark.parametrize(
    "rest",
    [
        "age, COUNT(*) FROM data GROUP BY age",
        "WIDTH_BUCKET(age, 0, 9, 3) + 1 AS b, COUNT(*) FROM data GROUP BY b",
        "WIDTH_BUCKET(age, 0, 9, 3) AS b, sex, COUNT(*) FROM data GROUP BY b, sex",
    ],
)
def test_other_keys_need_a_list(rest: str) -> None:
    with pytest.raises(OptionError, match="the groups"):
        read(DP.format(1, PUBLIC) + rest, CATALOG)


def test_without_that_strategy_buckets_are_unknown_groups() -> None:
    text = (
        "SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(epsilon=1, delta=1e-8, max_groups_contributed=1) "
        "WIDTH_BUCKET(age, 0, 9, 3) AS b, COUNT(*) FROM data GROUP BY b"
    )
    assert read(text, CATALOG).public_groups is None
    given = read(text, CATALOG, public_groups={"b": [1, 2]}).public_groups
    assert isinstance(given, PublicValues)
    assert len(given.rows) == 2
