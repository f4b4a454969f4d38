"""A durable budget of Pufferfish guarantees about one set of secrets and one class of models."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any, Final, final

from sfumato import _check
from sfumato.errors import LedgerCorrupt, LedgerError, LedgerMismatch, LedgerUnavailable, ParameterError
from sfumato.numerics.rounding import sub_down
from sfumato.pufferfish.release.guarantee import PufferfishGuarantee
from sfumato.pufferfish.release.mechanism import PufferfishMechanism, PufferfishRelease

__all__ = ["PufferfishAccountant"]

_TABLES: Final = (
    "CREATE TABLE IF NOT EXISTS budget (one INTEGER PRIMARY KEY CHECK (one = 1), digest TEXT, epsilon REAL)",
    "CREATE TABLE IF NOT EXISTS charges (number INTEGER PRIMARY KEY, guarantee TEXT)",
)


@final
class PufferfishAccountant:
    """A budget of epsilon for one Pufferfish notion, in a file that outlives the process.

    Parameters
    ----------
    path : str or Path
        Its SQLite file; made unless there.
    notion : PufferfishMechanism or PufferfishGuarantee
        What is protected: its secrets, pairs and class of models. Charges about others are refused.
    epsilon : float
        The budget. Reopening the file with another budget or notion is refused.

    Raises
    ------
    ParameterError
        If a parameter breaks its rule.
    LedgerMismatch
        If the file holds another notion or budget.
    LedgerUnavailable, LedgerCorrupt
        If the file cannot be opened, or is no such file.

    Notes
    -----
    Guarantee: all charged releases together are epsilon-Pufferfish private for the notion. It adds only what
    a theorem adds (see `PufferfishGuarantee`): a second charge that does not compose with the first is
    refused, whatever the budget. Nothing is converted into a differential privacy loss or from one, which is
    why this is no part of `sfumato.ledger`. A charge is on the disk before anything is drawn, and stays. That
    the file was deleted, or an older copy put in its place, is not detected.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from sfumato import pufferfish
    >>> chain = pufferfish.MarkovChain(transition=[[0.9, 0.1], [0.4, 0.6]])
    >>> quilt = pufferfish.MarkovQuilt(chain=chain, length=100, lipschitz=1, epsilon=0.5)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     budget = pufferfish.PufferfishAccountant(Path(folder) / "activity.db", notion=quilt, epsilon=1.0)
    ...     released = [budget.release(quilt, 31), budget.release(quilt, 12)]
    ...     budget.remaining
    0.0
    """

    def __init__(
        self, path: str | Path, *, notion: PufferfishMechanism | PufferfishGuarantee, epsilon: float
    ) -> None:
        self._path = Path(path)
        self._digest = _guarantee("notion", notion).digest
        self._epsilon = _check.positive("epsilon", epsilon)
        with closing(self._connect()) as connection:
            self._begin(connection)
            try:
                for table in _TABLES:
                    connection.execute(table)
                new = (self._digest, self._epsilon)
                connection.execute("INSERT OR IGNORE INTO budget VALUES (1, ?, ?)", new)
                row = connection.execute("SELECT digest, epsilon FROM budget").fetchone()
                connection.execute("COMMIT")
            except sqlite3.DatabaseError as error:
                raise LedgerCorrupt(
                    "the file must be an accountant's that can be written, but it is not"
                ) from error
        if tuple(row) != (self._digest, self._epsilon):
            found = "it holds another notion" if row[0] != self._digest else f"it holds epsilon={row[1]!r}"
            remedy = "open it as it was made, or use another file"
            _refuse("the file", "hold this notion and budget", found, remedy, LedgerMismatch)

    def __repr__(self) -> str:
        return f"PufferfishAccountant(epsilon={self._epsilon!r}, spent={self.spent!r})"

    @property
    def epsilon(self) -> float:
        """The budget."""
        return self._epsilon

    @property
    def spent(self) -> float:
        """Epsilon of all charged releases together, rounded up."""
        with closing(self._connect()) as connection:
            total = self._total(connection)
        return 0.0 if total is None else total.epsilon

    @property
    def remaining(self) -> float:
        """What is left of the budget, at most; a charge that does not compose is refused even so."""
        return max(0.0, sub_down(self._epsilon, self.spent))

    def charge(self, mechanism: PufferfishMechanism | PufferfishGuarantee) -> PufferfishGuarantee:
        """Record a release, or refuse it and leave no trace.

        Parameters
        ----------
        mechanism : PufferfishMechanism or PufferfishGuarantee

        Returns
        -------
        PufferfishGuarantee
            Of all releases charged so far; returned once it is on the disk.

        Raises
        ------
        NeighboringMismatch
            If it is about another notion, or does not compose with what was charged.
        LedgerError
            If it exceeds the budget.
        """
        guarantee = _guarantee("mechanism", mechanism)
        if guarantee.digest != self._digest or guarantee.delta or guarantee.order is not None:
            remedy = "open an accountant for its notion; nothing is converted"
            found = "it is about another notion"
            _check.refuse_state("mechanism", "be about the accountant's notion", found, remedy)
        with closing(self._connect()) as connection:
            self._begin(connection)
            before = self._total(connection)
            total = guarantee if before is None else before + guarantee
            if total.epsilon > self._epsilon:
                found = f"all releases would cost {total.epsilon:.6g}"
                remedy = "lower the mechanism's epsilon, or stop; nothing was charged"
                _refuse("the charge", f"fit into epsilon={self._epsilon!r}", found, remedy, LedgerError)
            connection.execute("INSERT INTO charges (guarantee) VALUES (?)", (guarantee.to_json(),))
            connection.execute("COMMIT")
        return total

    def release(self, mechanism: PufferfishMechanism, value: Any) -> PufferfishRelease:
        """Charge a mechanism, then run it with the operating system's randomness.

        Parameters
        ----------
        mechanism : PufferfishMechanism
        value : int, float, Fraction or numpy array
            The exact answer.

        Returns
        -------
        PufferfishRelease

        Raises
        ------
        LedgerError, NeighboringMismatch
            As `charge`.
        """
        _check.instance("mechanism", mechanism, PufferfishMechanism, "pass a mechanism of this room")
        self.charge(mechanism)
        return mechanism.release(value)

    def _connect(self) -> sqlite3.Connection:
        connection: sqlite3.Connection | None = None
        try:
            connection = sqlite3.connect(self._path, isolation_level=None, timeout=30.0)
            connection.execute("PRAGMA synchronous = FULL")
        except sqlite3.DatabaseError as error:
            if connection is not None:
                connection.close()
            kind = LedgerUnavailable if isinstance(error, sqlite3.OperationalError) else LedgerCorrupt
            raise kind("the accountant's file must be a readable SQLite file, but it is not") from error
        return connection

    def _begin(self, connection: sqlite3.Connection) -> None:
        try:
            connection.execute("BEGIN IMMEDIATE")
        except sqlite3.DatabaseError as error:
            kind = LedgerUnavailable if isinstance(error, sqlite3.OperationalError) else LedgerCorrupt
            raise kind("the accountant's file must be a writable SQLite file, but it is not") from error

    def _total(self, connection: sqlite3.Connection) -> PufferfishGuarantee | None:
        total: PufferfishGuarantee | None = None
        try:
            rows = connection.execute("SELECT guarantee FROM charges ORDER BY number").fetchall()
            for (text,) in rows:
                guarantee = PufferfishGuarantee.from_json(text)
                total = guarantee if total is None else total + guarantee
        except (ParameterError, sqlite3.DatabaseError) as error:
            raise LedgerCorrupt("the accountant's charges must be readable, but one is not") from error
        return total


def _guarantee(name: str, value: object) -> PufferfishGuarantee:
    if isinstance(value, PufferfishMechanism):
        return value.guarantee
    if not isinstance(value, PufferfishGuarantee):
        remedy = "charge a differential privacy loss to sfumato.ledger; the two are never converted"
        _check.refuse_type(name, "be a Pufferfish mechanism or guarantee", value, remedy)
    return value


def _refuse(name: str, rule: str, found: str, remedy: str, kind: type[LedgerError]) -> None:
    raise kind(f"{name} must {rule}, but {found}; {remedy}")
