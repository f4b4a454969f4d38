"""Several statements in one message to a PostgreSQL server: one answer to wait for, not one for each.

The server runs them one after the other, as if each had been sent by itself: in a transaction that is READ
COMMITTED each sees what was committed before it began, and after COMMIT the transaction is over. The first
that fails ends the message. They have no parameters: integers are written into them.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, final

if TYPE_CHECKING:
    import sqlalchemy

__all__ = ["FetchedRows", "collect_batches", "run_batch", "with_integers"]

OPTION = "sfumato_batch"
PARAMETER = re.compile(r":([a-z_]+)")


@final
class FetchedRows(Iterable[Any]):
    """Rows that were fetched before they are asked for."""

    __slots__ = ("_rows",)

    def __init__(self, rows: Iterable[Any]) -> None:
        self._rows = iter(rows)

    def __iter__(self) -> Iterator[Any]:
        return self._rows

    def fetchone(self) -> Any:
        """Return the next row, or None."""
        return next(self._rows, None)


def with_integers(statement: str, parameters: Mapping[str, int]) -> str:
    """Return a statement with its parameters, ``:name``, written into it."""
    return PARAMETER.sub(lambda found: str(int(parameters[found[1]])), statement)


def collect_batches(event: Any, engine: sqlalchemy.Engine) -> None:
    """Let an engine's connections run batches; ``event`` is SQLAlchemy's module of that name."""
    event.listen(engine, "after_cursor_execute", _collect)


def run_batch(connection: sqlalchemy.Connection, *statements: str) -> list[list[Any]]:
    """Run statements without parameters in one message, and return the rows of each.

    Errors are those of one statement: SQLAlchemy's, with the server's code.
    """
    results: list[list[Any]] = []
    connection.exec_driver_sql("; ".join(statements), execution_options={OPTION: results}).close()
    return results


def _collect(
    _connection: Any, cursor: Any, _statement: str, _parameters: Any, context: Any, _many: bool
) -> None:
    """Fetch what all statements of a batch returned, before SQLAlchemy looks at the cursor's last result."""
    results = context.execution_options.get(OPTION)
    while results is not None:
        results.append([] if cursor.description is None else cursor.fetchall())
        if not cursor.nextset():
            return
