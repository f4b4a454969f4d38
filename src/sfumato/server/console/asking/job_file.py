"""The file of a console's jobs: one SQLite database that several processes share.

Every change is one transaction that decides by what is stored. The file holds questions and released tables,
no private row; it is its owner's alone, since it also has when jobs truly ended, up to a step of the grid.
"""

from __future__ import annotations

import json
import sqlite3
import stat
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final, final

from sfumato import _check
from sfumato.server.console.asking.job import Job, JobState
from sfumato.server.console.asking.time_grid import TimeGrid
from sfumato.server.store_file import store_connection, whole_transaction

__all__ = ["ACTIVE", "JobFile"]

_FORMAT: Final = 1
_SETTING: Final = """CREATE TABLE setting (
    step REAL NOT NULL, first INTEGER NOT NULL, doublings INTEGER NOT NULL, ledger TEXT NOT NULL)"""
_JOB: Final = """CREATE TABLE job (
    number INTEGER PRIMARY KEY AUTOINCREMENT, id TEXT NOT NULL UNIQUE, analyst TEXT NOT NULL,
    request TEXT NOT NULL, question TEXT NOT NULL, proposal TEXT NOT NULL, passes INTEGER NOT NULL,
    submitted INTEGER NOT NULL, state TEXT NOT NULL, worker TEXT NOT NULL, attempts INTEGER NOT NULL,
    begun INTEGER, cancel INTEGER, ends INTEGER, message TEXT NOT NULL, facts TEXT, answer BLOB,
    UNIQUE (analyst, request))"""
_CHARGE: Final = """CREATE TABLE charge (
    job INTEGER NOT NULL, digest TEXT NOT NULL, number INTEGER, PRIMARY KEY (job, digest)) WITHOUT ROWID"""
_TABLES: Final = (
    _SETTING,
    _JOB,
    _CHARGE,
    "CREATE INDEX charge_digest ON charge (digest)",
    "CREATE INDEX job_state ON job (state)",
    "CREATE INDEX job_begun ON job (begun)",
    "CREATE INDEX job_ends ON job (ends)",
    "CREATE INDEX job_history ON job (analyst, number)",
)
_PRAGMAS: Final = (
    "PRAGMA busy_timeout = 30000",
    "PRAGMA journal_mode = WAL",
    "PRAGMA synchronous = FULL",
    "PRAGMA secure_delete = ON",
    "PRAGMA trusted_schema = OFF",
)
_COLUMNS: Final = """number, id, analyst, request, question, proposal, passes, submitted, state, worker,
    attempts, begun, cancel, ends, message"""
_PAID: Final = "SELECT digest, number FROM charge WHERE job = ? AND number IS NOT NULL"

ACTIVE: Final = "(state IN ('charging', 'queued', 'running') OR (ends > ? AND state <> 'refused'))"
"""Which jobs have not ended as they are shown, as one that was refused has at once.

It takes the last step that has ended. Beside it a column is written with a plus, so that SQLite takes the few
jobs by the indices of these, and not the long history of an analyst; a cross join begins with the table that
is named first."""


@final
class JobFile:
    """The file with its lock, and its rows as jobs.

    Parameters
    ----------
    path : Path
        Made with its folder if there is none.
    grid : TimeGrid
        The same in all processes that share the file.
    ledger : str
        The ledger's id.

    Raises
    ------
    ParameterError
        If the file is another console's, of another grid, or none of these, or others may read it.
    """

    def __init__(self, path: Path, *, grid: TimeGrid, ledger: str) -> None:
        self.grid = grid
        self.lock = threading.RLock()
        self._connection = store_connection(path)
        try:
            for pragma in _PRAGMAS:
                self._connection.execute(pragma)
            with self.transaction():
                self._open(path.name, ledger)
            if path.stat().st_mode & (stat.S_IRWXG | stat.S_IRWXO):
                rule, found = "be its owner's alone", "others may read or write it"
                _check.refuse_state(path.name, rule, found, f"run chmod 600 {path.name}")
        except sqlite3.Error as error:
            self._connection.close()
            found = f"SQLite says {str(error)!r}"
            _check.refuse_state(path.name, "be a console's store of jobs", found, "use another folder")
        except BaseException:
            self._connection.close()
            raise

    def _open(self, name: str, ledger: str) -> None:
        grid = self.grid
        wanted = (grid.step, grid.first, grid.doublings, ledger)
        (version,) = self._connection.execute("PRAGMA user_version").fetchone()
        (tables,) = self._connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
        if not version and not tables:
            for table in _TABLES:
                self._connection.execute(table)
            self._connection.execute("INSERT INTO setting VALUES (?, ?, ?, ?)", wanted)
            self._connection.execute(f"PRAGMA user_version = {_FORMAT}")
            return
        known = None if version != _FORMAT else self._connection.execute("SELECT * FROM setting").fetchone()
        if known is None or known[3] != ledger:
            found = "it is of another ledger, or of another kind"
            _check.refuse_state(name, "be the store of this ledger's jobs", found, "use another folder")
        if known != wanted:
            found = f"it was made with step {known[0]}, first {known[1]} and doublings {known[2]}"
            remedy = "state these, or use another folder once all jobs have ended"
            _check.refuse_state("grid", "stay as it is while there are jobs", found, remedy)

    def close(self) -> None:
        """Let go of the file."""
        with self.lock:
            self._connection.close()

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """Do something as a whole or not at all, while nobody else writes."""
        with self.lock, whole_transaction(self._connection):
            yield

    def rows(self, statement: str, *values: object) -> list[Any]:
        """Return the rows of a statement."""
        with self.lock:
            return self._connection.execute(statement, values).fetchall()

    def insert(self, statement: str, *values: object) -> int | None:
        """Write a row, within a transaction, and return its number."""
        return self._connection.execute(statement, values).lastrowid

    def jobs(self, where: str, *values: object) -> list[Job]:
        """Return the jobs that meet a condition."""
        with self.lock:
            select = f"SELECT {_COLUMNS} FROM job WHERE {where}"  # noqa: S608 - texts of our own
            return [self._job(row) for row in self.rows(select, *values)]

    def _job(self, row: Sequence[Any]) -> Job:
        return Job(
            number=row[0],
            id=row[1],
            analyst=row[2],
            request=row[3],
            question=row[4],
            proposal=json.loads(row[5]),
            passes=row[6],
            submitted=row[7],
            state=JobState(row[8]),
            worker=row[9],
            attempts=row[10],
            begun=row[11],
            cancel=row[12],
            ends=row[13],
            message=row[14],
            charges=dict(self.rows(_PAID, row[0])),
        )

    def set(self, job: Job, **columns: object) -> None:
        """Change columns of a job, within a transaction."""
        names = ", ".join(f"{name} = ?" for name in columns)
        self._connection.execute(
            f"UPDATE job SET {names} WHERE number = ?",  # noqa: S608 - names of this module
            (*columns.values(), job.number),
        )
