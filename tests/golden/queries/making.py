"""Makes the golden files of queries: keys, releases, a ledger that holds them, and a counter that was killed.

``keys.json`` and ``releases.zip`` follow from a seed. ``ledger.zip`` does not, for a ledger has an id and a
key of its own: it holds the file of a ledger with every query of `QUERIES`, the state of a counter whose
process was killed after some periods, and what both released.
"""

from __future__ import annotations

import contextlib
import datetime as dt
import hashlib
import io
import json
import tempfile
import zipfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa

import sfumato as sf
from sfumato.cli.output.writing import Format, content
from sfumato.frames.sources import open_source
from sfumato.queries.continual.counter import Counter
from sfumato.queries.engines.duckdb.fingerprint import fingerprint
from sfumato.queries.plan.query_key import query_key

SEED, PERIODS, COUNTED = 20261123, 6, 3
START = dt.date(2026, 1, 1)
STATES = ("CA", "NY", "TX")
DAY = dt.timedelta(days=1)
SECOND = dt.datetime(2026, 1, 1, 12, 30, 5)

DATA = pa.table(
    {
        "person": pa.array([i // 2 for i in range(1200)], pa.int64()),
        "state": [STATES[i // 2 % 3] for i in range(1200)],
        "age": pa.array([None if i % 37 == 0 else 18 + i * 7 % 60 for i in range(1200)], pa.int64()),
        "income": [float(i * 7919 % 90000) / 3 for i in range(1200)],
        "married": [i // 2 % 2 == 0 for i in range(1200)],
        "born": [dt.date(1960, 1, 1) + i * DAY for i in range(1200)],
        "seen": pa.array([SECOND + i % 90 * DAY for i in range(1200)], pa.timestamp("us")),
        "day": [START + i % PERIODS * DAY for i in range(1200)],
    }
)
VISITS = pa.table({"person": [i % 500 for i in range(1000)], "cost": [i % 50 for i in range(1000)]})
REGIONS = pa.table(
    {"state": ["CA", "NY", "VT"], "region": ["west", "east", "east"], "size": [39.0, 19.6, 0.6]}
)

_OPTIONS = "SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS("
_ONE = f"{_OPTIONS}epsilon=2, delta=1e-6, max_groups_contributed=1) "
_ALL = f"{_OPTIONS}epsilon=2, delta=1e-6) "
_ROWS = f"{_OPTIONS}epsilon=2, delta=1e-6, max_groups_contributed=2, max_rows_per_group=2) "
_PER_GROUP = "contribution_bounds_per_group => "
_PER_ROW = "contribution_bounds_per_row => "
_COUNT = f"{_ALL}COUNT(*) AS n FROM data WHERE "
_PUBLIC = f"{_OPTIONS}epsilon=2, delta=0, max_groups_contributed=1, group_selection_strategy=PUBLIC_GROUPS) "
_NOISE = f"{_OPTIONS}epsilon=2, delta=1e-6, max_groups_contributed=1, group_selection_strategy="
_BY_STATE = "state, COUNT(*) AS n FROM data GROUP BY state"

QUERIES: tuple[str, ...] = (
    f"{_ALL}COUNT(*) AS n FROM data",
    f"{_ALL}COUNT(*, {_PER_GROUP}(0, 3)) AS n FROM data",
    f"{_ALL}COUNT(age) AS n FROM data",
    f"{_ALL}COUNT(age, {_PER_GROUP}(1, 2)) AS n FROM data",
    f"{_ALL}COUNT(DISTINCT person) AS n FROM data",
    f"{_ALL}APPROX_COUNT_DISTINCT(age, max_contributions_per_group => 2) AS n FROM data",
    f"{_ALL}SUM(age, {_PER_GROUP}(0, 150)) AS s FROM data",
    f"{_ROWS}state, SUM(income, {_PER_ROW}(0, 30000)) AS s FROM data GROUP BY state",
    f"{_ROWS}state, SUM(age, {_PER_ROW}(0, 80), {_PER_GROUP}(0, 150)) AS s FROM data GROUP BY state",
    f"{_ALL}AVG(income, {_PER_GROUP}(0, 30000)) AS a FROM data",
    f"{_ROWS}state, PERCENTILE_CONT(income, 0.25, {_PER_ROW}(0, 30000)) AS q FROM data GROUP BY state",
    f"{_ROWS}state, APPROX_QUANTILES(age, 4, {_PER_ROW}(0, 100)) AS q FROM data GROUP BY state",
    f"{_ROWS}state, MEDIAN(age, {_PER_ROW}(0, 100)) AS m FROM data GROUP BY state",
    (
        f"{_ROWS}state, VAR_POP(age, {_PER_ROW}(0, 100)) AS v, VAR_SAMP(age, {_PER_ROW}(0, 100)) AS w "
        "FROM data GROUP BY state"
    ),
    (
        f"{_ROWS}state, STDDEV_POP(age, {_PER_ROW}(0, 100)) AS v, STDDEV_SAMP(age, {_PER_ROW}(0, 100)) AS w "
        "FROM data GROUP BY state"
    ),
    (
        f"{_ROWS}state, COVAR_POP(age, income, {_PER_ROW}((0, 100), (0, 30000))) AS c, "
        f"COVAR_SAMP(age, income, {_PER_ROW}((0, 100), (0, 30000))) AS d FROM data GROUP BY state"
    ),
    f"{_ROWS}state, CORR(age, income, {_PER_ROW}((0, 100), (0, 30000))) AS c FROM data GROUP BY state",
    f"{_ALL}SUM(income) AS s FROM data",
    f"{_ROWS}state, AVG(age) AS a FROM data GROUP BY state",
    f"{_ALL}COUNT(*, report_format => 'JSON') AS n FROM data",
    f"{_ALL}COUNT(*, epsilon => 0.5) AS n, SUM(age, {_PER_GROUP}(0, 150)) AS s FROM data",
    f"{_ONE}{_BY_STATE}",
    f"{_NOISE}LAPLACE_THRESHOLD) {_BY_STATE}",
    f"{_NOISE}GAUSSIAN_THRESHOLD) {_BY_STATE}",
    f"{_NOISE}TRUNCATED_GEOMETRIC) {_BY_STATE}",
    f"{_OPTIONS}epsilon=2, delta=1e-6, max_groups_contributed=1, group_selection_epsilon=0.5) {_BY_STATE}",
    f"{_OPTIONS}epsilon=2, delta=1e-6, max_groups_contributed=1, min_privacy_units_per_group=5) {_BY_STATE}",
    f"{_OPTIONS}epsilon=2, delta=1e-6, max_rows_contributed=3) {_BY_STATE}",
    (
        f"{_PUBLIC}data.state, COUNT(*) AS n FROM data RIGHT JOIN (SELECT DISTINCT state FROM regions) AS r "
        "ON data.state = r.state GROUP BY data.state"
    ),
    f"{_PUBLIC}WIDTH_BUCKET(age, 0, 100, 4) AS b, COUNT(*) AS n FROM data GROUP BY b",
    f"{_ONE}state, COUNT(*) AS n FROM data GROUP BY state HAVING COUNT(*) > 10 AND n < 1000",
    f"{_ONE}state, COUNT(*) AS n, COUNT(*) * 2 + 1 AS m, UPPER(state) AS u FROM data GROUP BY state",
    f"{_ONE}state, COUNT(*) AS n FROM data GROUP BY state ORDER BY n DESC NULLS LAST, state LIMIT 2 OFFSET 1",
    f"{_ONE}state, COUNT(*) AS n FROM data GROUP BY state ORDER BY COUNT(DISTINCT person) / 3 ASC",
    f"{_ONE}state FROM data GROUP BY state",
    f"{_COUNT}age > 20 AND age <= 60 OR NOT married",
    f"{_COUNT}state IN ('CA', 'NY') AND age NOT BETWEEN 30 AND 40",
    f"{_COUNT}state LIKE 'C%' AND age IS NOT NULL AND income <> 3.5",
    f"{_COUNT}CASE WHEN age > 50 THEN 'old' WHEN age > 30 THEN 'middle' ELSE NULL END = 'old'",
    f"{_COUNT}CASE state WHEN 'CA' THEN 1 ELSE 2 END = 1 AND IF(married, 1, 0) = 1",
    f"{_COUNT}COALESCE(age, 0) + NULLIF(age, 3) - GREATEST(age, 5) * LEAST(age, 9) > MOD(age, 4)",
    f"{_COUNT}ABS(income) + SIGN(income) + SQRT(income) + LN(income) + LOG10(income) + EXP(0.5) > -1",
    f"{_COUNT}FLOOR(income) + CEIL(income) + POWER(income, 2) + ROUND(income, 2) + ROUND(income) >= 2 / 3",
    f"{_COUNT}LOWER(state) || UPPER(state) || TRIM(state) = 'caCACA' AND LENGTH(state) = 2",
    f"{_COUNT}SUBSTR(state, 1, 1) = 'C' AND SUBSTR(state, 2) < 'B' AND STARTS_WITH(state, 'C')",
    f"{_COUNT}RIGHT(state, 1) = 'A' AND LEFT(state, 1) = 'C' AND REPLACE(state, 'C', 'K') = 'KA'",
    f"{_COUNT}CAST(age AS FLOAT64) = 30.0 OR CAST(born AS STRING) = 'x' OR CAST(seen AS DATE) IS NULL",
    f"{_COUNT}EXTRACT(YEAR FROM born) = 1960 AND DATE_TRUNC(born, MONTH) >= DATE '1960-02-01'",
    f"{_COUNT}DATE_ADD(born, INTERVAL 3 DAY) > DATE_SUB(DATE '1962-01-01', INTERVAL 1 MONTH)",
    f"{_COUNT}DATE_DIFF(DATE '1963-01-01', born, DAY) < 400",
    f"{_COUNT}TIMESTAMP_ADD(seen, INTERVAL 3 HOUR) > TIMESTAMP_SUB(seen, INTERVAL 30 SECOND)",
    f"{_COUNT}TIMESTAMP_DIFF(TIMESTAMP '2026-03-01 00:00:00', seen, HOUR) > 5",
    f"{_COUNT}TIMESTAMP_TRUNC(seen, DAY) = TIMESTAMP '2026-01-05 00:00:00'",
    f"{_ALL}COUNT(*) AS n FROM (SELECT person, age * 2 AS twice FROM data) WHERE twice > -70",
    f"{_ONE}region, COUNT(*) AS n FROM data JOIN regions USING (state) GROUP BY region",
    (
        f"{_ONE}state, AVG(size, {_PER_GROUP}(0, 50)) AS a FROM data "
        "LEFT JOIN regions USING (state) GROUP BY state"
    ),
    f"{_COUNT}state NOT IN (SELECT state FROM regions)",
    f"{_ALL}SUM(cost, {_PER_GROUP}(0, 90)) AS s FROM data JOIN visits USING (person)",
    (
        f"{_ALL}COUNT(*, {_PER_GROUP}(0, 4)) AS n FROM (SELECT person FROM data "
        "UNION ALL SELECT person FROM visits)"
    ),
    f"{_ALL}COUNT(*, {_PER_GROUP}(0, 2)) AS n FROM (SELECT DISTINCT person, state FROM data)",
    (
        f"{_ALL}SUM(most, {_PER_GROUP}(0, 90)) AS s FROM (SELECT person, MAX(age) AS most, "
        "COUNT(*) AS rows_, "
        "AVG(age) AS middle, MIN(age) AS fewest, SUM(age) AS total, COUNT(DISTINCT state) AS states "
        "FROM data GROUP BY person) WHERE rows_ > 1"
    ),
    (
        f"{_ALL}COUNT(*) AS n FROM (SELECT person, "
        "ROW_NUMBER() OVER (PARTITION BY person ORDER BY age DESC) AS r, "
        "RANK() OVER (PARTITION BY person, state ORDER BY income) AS k FROM data) WHERE r = 1 AND k < 3"
    ),
)

EXTRA: tuple[tuple[str, Mapping[str, Any]], ...] = (
    (f"{_PUBLIC}{_BY_STATE}", {"state": ["CA", "NY", None]}),
    (f"{_PUBLIC}born, COUNT(*) AS n FROM data GROUP BY born", {"born": [dt.date(1960, 1, 1)]}),
    (
        f"{_PUBLIC}age, married, COUNT(*) AS n FROM data GROUP BY age, married",
        {"age": [20], "married": [True]},
    ),
    (f"{_PUBLIC}income, COUNT(*) AS n FROM data GROUP BY income", {"income": [0.5, 1.0]}),
    (f"{_PUBLIC}seen, COUNT(*) AS n FROM data GROUP BY seen", {"seen": [SECOND]}),
)
"""Queries with groups that the caller lists."""

ANSWER = pa.table(
    {
        "state": ["CA", None],
        "n": [3, -1],
        "mean": [0.5, float("nan")],
        "day": [START, None],
        "seen": pa.array([SECOND, None], pa.timestamp("us")),
        "quantiles": [[1.0, 2.5], None],
    }
)

POLICY = {
    "differential_privacy_policy": {
        "privacy_unit_column": "person",
        "max_epsilon_per_query": 1,
        "delta_per_query": 1e-6,
        "epsilon_budget": 10,
        "delta_budget": 1e-5,
        "max_groups_contributed": 2,
    }
}


def asked() -> list[tuple[str, Mapping[str, Any] | None]]:
    """Return every query, with the groups that are passed beside it."""
    return [*((text, None) for text in QUERIES), *EXTRA]


def session(**given: Any) -> sf.Session:
    """Connect to the tables."""
    tables = {"data": DATA, "visits": VISITS}
    terms = {"privacy_unit": "person", "epsilon": 500, "delta": 1e-3, "public": {"regions": REGIONS}, **given}
    return sf.connect(tables, **terms)


def counter(opened: sf.Session, state: Path) -> Counter:
    """Open the counter."""
    rows = opened.table("data").group_by("state", public_groups={"state": STATES})
    query = rows.agg(n=sf.count(), spent=sf.sum("income", bounds=(0, 30000))).options(
        max_groups_contributed=1
    )
    terms: Any = {"moment": "day", "start": START, "every": "day", "steps": PERIODS, "max_periods": 2}
    return opened.counter(
        query.options(max_groups_contributed=1), **terms, epsilon=2.0, delta=1e-7, state=state
    )


def stated(payload: bytes) -> tuple[Any, ...]:
    """Return what the bytes of a release say: facts, columns, values. Arrow's versions differ around them."""
    with pa.ipc.open_stream(payload) as reader:
        table = reader.read_all()
    columns = [(field.name, str(field.type), field.nullable) for field in table.schema]
    return sorted(table.schema.metadata.items()), columns, table.to_pydict()


def outline(payload: bytes) -> tuple[Any, ...]:
    """Return the names in a release, and its columns: what is the same however its noise was calibrated."""
    metadata, columns, _ = stated(payload)
    facts = json.loads(dict(metadata)[b"sfumato.release"])
    parts = [[sorted(part) for part in facts[kind]] for kind in ("columns", "measures")]
    return sorted(facts), parts, columns


def digest(payload: bytes) -> str:
    """Return what stands for what a release says."""
    return hashlib.sha256(repr(stated(payload)).encode()).hexdigest()


def counted(release: Any) -> dict[str, list[list[float]]]:
    """Return the values that a counter released, by column, period and group."""
    return {name: [list(map(float, each.value)) for each in sums] for name, sums in release.sums.items()}


def keys() -> list[str]:
    """Return the key of each query, as a session computes it."""
    with session(rng=SEED) as opened:
        return [query_key(opened.read(text, groups)) for text, groups in asked()]


def releases() -> list[bytes]:
    """Return the record of each query's answer, with noise that follows from the seed."""
    with session(rng=SEED) as opened:
        return [opened.sql(text, public_groups=groups).record.to_bytes() for text, groups in asked()]


def limits() -> bytes:
    """Return the noisy histograms that limits are suggested by, with noise that follows from the seed."""
    text = f"{_ROWS}state, SUM(age, {_PER_ROW}(0, 80)) AS s, COUNT(*) AS n FROM data GROUP BY state"
    with session(rng=SEED) as opened:
        return opened.suggest_limits(text, epsilon=1.0).record.to_bytes()


def fingerprints() -> dict[str, str]:
    """Return the keyed content of frames, under a fixed key."""
    key = bytes(range(32))
    return {"frames": fingerprint(open_source({"data": DATA, "regions": REGIONS}), key)}


def archive(members: Mapping[str, bytes]) -> bytes:
    """Return a zip archive that depends on nothing but its members."""
    sink = io.BytesIO()
    with zipfile.ZipFile(sink, "w") as whole:
        for name, member in sorted(members.items()):
            whole.writestr(zipfile.ZipInfo(name), member, zipfile.ZIP_DEFLATED, 9)
    return sink.getvalue()


@contextlib.contextmanager
def _ledger() -> Iterator[Mapping[str, bytes]]:
    with tempfile.TemporaryDirectory() as folder:
        path, state = Path(folder, "people.ledger"), Path(folder, "counter.npz")
        digests = []
        with session(ledger=path) as opened:
            for text, groups in asked():
                digests.append(digest(opened.sql(text, public_groups=groups).record.to_bytes()))
            with counter(opened, state) as counting:
                released = counted(counting.refresh(START + COUNTED * DAY))
        members = {"people.ledger": path.read_bytes(), "counter.npz": state.read_bytes()}
        yield {
            **members,
            "counter.json": json.dumps(released).encode(),
            "digests.json": json.dumps(digests).encode(),
        }


def files() -> dict[str, bytes]:
    """Return the bytes of each golden file."""
    with _ledger() as members:
        ledger = archive(members)
    return {
        "answer.json": content(ANSWER, Format.JSON),
        "fingerprints.json": json.dumps(fingerprints(), indent=1).encode(),
        "limits.json": limits(),
        "keys.json": json.dumps(keys(), indent=1).encode(),
        "ledger.zip": ledger,
        "policy.json": json.dumps(POLICY, indent=1).encode(),
        "releases.zip": archive({f"{i:02}.arrow": each for i, each in enumerate(releases())}),
    }
