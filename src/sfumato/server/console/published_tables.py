"""The tables of published releases as files for other programs: Parquet, and one DuckDB file of all of them.

They are post-processing of what was published, so whatever is computed from them is free. Nothing else goes
into them: no private table, and no release before its publication or after its withdrawal.

Notes
-----
A file is made anew when what is published has changed, and not whenever the ledger has grown: how long an
answer takes, and the tag that a cache compares, would else show the public when a release is stored, which
depends on the rows.
"""

from __future__ import annotations

import hashlib
import secrets
import threading
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, Final, NamedTuple, final

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq

from sfumato.errors import ParameterError
from sfumato.ledger import Ledger, Review
from sfumato.queries.release.table import TableRelease

__all__ = ["PublishedFiles", "PublishedTable", "published_table"]

_LEVEL: Final = 0.95
_STORED: Final = 8
"""Files of each kind that stay: those that somebody may be reading still."""
_RELEASES: Final = """CREATE TABLE releases (number BIGINT, "table" TEXT, question TEXT, purpose TEXT,
    published TEXT, epsilon DOUBLE, delta DOUBLE, loss TEXT, privacy_unit TEXT, neighboring TEXT,
    level DOUBLE, ledger TEXT, receipt TEXT, digest TEXT)"""
_INTERVALS: Final = """CREATE TABLE intervals
    (number BIGINT, "table" TEXT, "column" TEXT, lower TEXT, upper TEXT, level DOUBLE)"""


class PublishedTable(NamedTuple):
    """A published table with the ends of its intervals, and what is said of it."""

    number: int
    table: pa.Table
    facts: Mapping[str, Any]


def published_table(ledger: Ledger, review: Review) -> PublishedTable | None:
    """Return the table of a published release; None where it is of another kind.

    Parameters
    ----------
    ledger : Ledger
    review : Review
    """
    try:
        release = ledger.release(review.number)
    except ParameterError:
        return None
    if not isinstance(release, TableRelease) or release.receipt is None:
        return None
    entry, table = ledger.entry(review.number), release.to_arrow(intervals=True)
    names = set(table.column_names)
    bounded = [name for name in table.column_names if {f"{name}_lower", f"{name}_upper"} <= names]
    facts = {
        "number": review.number,
        "table": f"release_{review.number}",
        "question": entry.description,
        "purpose": entry.purpose,
        "published": review.steps[-1].time.isoformat(),
        "epsilon": entry.epsilon,
        "delta": entry.delta,
        "loss": str(entry.loss),
        "privacy_unit": release.privacy_unit,
        "neighboring": str(ledger.neighboring),
        "level": _LEVEL,
        "intervals": bounded,
        "ledger": release.receipt.ledger,
        "receipt": f"receipt {review.number} of ledger {release.receipt.ledger}",
        "digest": release.receipt.digest,
    }
    return PublishedTable(review.number, table, facts)


@final
class PublishedFiles:
    """Files of published tables, made when they are asked for; safe to use from several threads.

    Parameters
    ----------
    ledger : Ledger
    folder : Path
        Where they lie.
    """

    def __init__(self, ledger: Ledger, folder: Path) -> None:
        self._ledger, self._folder, self._lock = ledger, folder, threading.Lock()
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)

    def parquet(self, review: Review) -> Path | None:
        """Return a published table as a file of Parquet, with what is said of it in its metadata.

        Parameters
        ----------
        review : Review

        Returns
        -------
        Path or None
            None where the release is no table.
        """
        path = self._folder / f"{_state([review])}.parquet"
        with self._lock:
            if path.exists():
                return path
            found = published_table(self._ledger, review)
            if found is None:
                return None
            facts = {name: str(value) for name, value in found.facts.items()}
            self._put(path, lambda draft: pq.write_table(found.table.replace_schema_metadata(facts), draft))
        return path

    def database(self) -> Path:
        """Return one DuckDB file of all published tables.

        Returns
        -------
        Path
        """
        reviews = self._ledger.reviews.all("published")
        path = self._folder / f"{_state(reviews)}.duckdb"
        with self._lock:
            if not path.exists():
                found = [published_table(self._ledger, review) for review in reviews]
                tables = [each for each in found if each is not None]
                self._put(path, lambda draft: _write_database(draft, tables))
        return path

    def _put(self, path: Path, write: Any) -> None:
        """Write a file in one step, and remove what was there long before."""
        draft = path.with_name(f"{secrets.token_hex(8)}.draft")
        try:
            write(draft)
            draft.chmod(0o600)
            draft.replace(path)
        finally:
            with suppress(FileNotFoundError):
                draft.unlink()
        others = sorted(self._folder.glob(f"*{path.suffix}"), key=lambda each: each.stat().st_mtime)
        for each in others[: -_STORED * (1 if path.suffix == ".duckdb" else 32)]:
            each.unlink(missing_ok=True)


def _state(reviews: tuple[Review, ...] | list[Review]) -> str:
    """Return what names the content of a file: which releases, by whose signature, since which step."""
    stated = [f"{each.number} {each.signature} {each.steps[-1].time.isoformat()}" for each in reviews]
    return hashlib.sha256("\n".join(("1", *stated)).encode()).hexdigest()


def _write_database(path: Path, tables: list[PublishedTable]) -> None:
    with duckdb.connect(":memory:", config={"threads": 1}) as connection:
        place = str(path).replace("'", "''")
        # readable by every DuckDB from 1.0 on
        connection.execute(f"ATTACH '{place}' AS made (STORAGE_VERSION 'v1.0.0')")
        connection.execute("USE made")
        connection.execute(_RELEASES)
        connection.execute(_INTERVALS)
        for each in tables:
            _write_table(connection, each)
        connection.execute("USE memory")
        connection.execute("DETACH made")


def _write_table(connection: duckdb.DuckDBPyConnection, found: PublishedTable) -> None:
    facts, name = found.facts, str(found.facts["table"])
    connection.register("given", found.table.rename_columns(_distinct(found.table.column_names)))
    connection.execute(f"CREATE TABLE {name} AS SELECT * FROM given")  # noqa: S608 - our name
    connection.unregister("given")
    row = [value for key, value in facts.items() if key != "intervals"]
    connection.execute(f"INSERT INTO releases VALUES ({', '.join('?' * len(row))})", row)  # noqa: S608
    for column in facts["intervals"]:
        ends = [found.number, name, column, f"{column}_lower", f"{column}_upper", facts["level"]]
        connection.execute("INSERT INTO intervals VALUES (?, ?, ?, ?, ?, ?)", ends)


def _distinct(names: list[str]) -> list[str]:
    """Return names of which no two differ in case alone, which DuckDB takes for one."""
    taken: set[str] = set()
    made = []
    for name in names:
        free, count = name or "column", 1
        while free.casefold() in taken:
            count += 1
            free = f"{name}_{count}"
        taken.add(free.casefold())
        made.append(free)
    return made
