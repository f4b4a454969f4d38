"""Published tables as files: DuckDB opens them, joins two, and nothing else is in them."""

from __future__ import annotations

from pathlib import Path

import duckdb
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from tests.server.console.api.calling import publish
from tests.server.console.office import COUNT, Office


def _opened(office: Office, folder: Path) -> duckdb.DuckDBPyConnection:
    """Open what a program downloads."""
    path = folder / "releases.duckdb"
    path.write_bytes(office.call("", "GET", "/releases.duckdb").content)
    return duckdb.connect(str(path), read_only=True)


def test_two_published_tables_are_joined(office: Office, key: Ed25519PrivateKey, tmp_path: Path) -> None:
    office.ask(COUNT.replace("0.25", "0.0625").replace("data", "data WHERE age >= 40"))
    office.ask(COUNT.replace("0.25", "0.0625").replace("n FROM", "secret FROM"))
    publish(office, 1, key)
    publish(office, 2, key)
    ledger = office.console.ledger
    with _opened(office, tmp_path) as opened:
        tables = {name for (name,) in opened.execute("SELECT table_name FROM duckdb_tables()").fetchall()}
        assert tables == {"releases", "intervals", "release_1", "release_2"}
        joined = """SELECT one.n - two.n, one.n_lower <= one.n AND one.n <= one.n_upper
            FROM release_1 AS one, release_2 AS two"""
        ((difference, inside),) = opened.execute(joined).fetchall()
        expected = [ledger.release(number).to_arrow().column("n")[0].as_py() for number in (1, 2)]
        assert (difference, inside) == (expected[0] - expected[1], True)
        stated = opened.execute(
            """SELECT number, epsilon, delta, privacy_unit, digest, lower, intervals.level
            FROM releases JOIN intervals USING (number) ORDER BY number"""
        ).fetchall()
        assert stated == [
            (1, 0.25, 0.0, "id", ledger.receipt(1).digest, "n_lower", 0.95),
            (2, 0.0625, 0.0, "id", ledger.receipt(2).digest, "n_lower", 0.95),
        ]
    content = (tmp_path / "releases.duckdb").read_bytes()
    assert b"DATA WHERE AGE" in content.upper()
    assert b"secret" not in content
    ledger.reviews.withdraw(2, by="carl", comment="an error")
    with _opened(office, tmp_path) as opened:
        assert opened.execute("SELECT number FROM releases").fetchall() == [(1,)]


def test_nothing_published_is_an_empty_file(office: Office, tmp_path: Path) -> None:
    with _opened(office, tmp_path) as opened:
        assert opened.execute("SELECT * FROM releases").fetchall() == []
    path = office.console.published.database()
    assert path.stat().st_mode & 0o777 == 0o600
    assert office.console.published.database() == path
    assert [each.suffix for each in path.parent.iterdir()] == [".duckdb"]
