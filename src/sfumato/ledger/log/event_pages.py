"""The events of a log in pages, the newest first: as much work as the page is long, however long the log."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, final

from sfumato import _check
from sfumato.ledger.failures import corrupt
from sfumato.ledger.log.event_log import COLUMNS, EventLog
from sfumato.ledger.log.hash_chain import Event

__all__ = ["EventPages"]

_MOST: Final = 1000


@final
class EventPages:
    """Reads the last events of a ledger; `Ledger.events` is one.

    Parameters
    ----------
    log : EventLog
        The ledger's.

    Notes
    -----
    Each event is checked by itself, and not the chain that it is in: `Ledger.verify` does that.

    Examples
    --------
    >>> from sfumato.ledger import Budget, Dataset, Ledger
    >>> from sfumato.privacy import Laplace, Neighboring
    >>> ledger = Ledger.open(
    ...     None,
    ...     budget=Budget.pure(epsilon=1.0),
    ...     privacy_unit="person_id",
    ...     neighboring=Neighboring.ADD_REMOVE,
    ...     dataset=Dataset(schema="people(age BIGINT)", fingerprint=lambda key: "0" * 64),
    ... )
    >>> receipt = ledger.charge(Laplace(2.0), delta=0.0)
    >>> [event.kind for event in ledger.events.newest(10)], ledger.events.count(without=["charge"])
    (['charge', 'opened'], 1)
    >>> ledger.close()
    """

    def __init__(self, log: EventLog) -> None:
        self._log = log

    def count(self, *, without: Sequence[str] = ()) -> int:
        """Return how many events there are.

        Parameters
        ----------
        without : sequence of str
            Kinds that are not counted.

        Returns
        -------
        int

        Raises
        ------
        LedgerUnavailable, LedgerCorrupt
            As for `Ledger.entries`.
        """
        where, kinds = _other_than(without)
        with self._log.transaction(write=False) as snapshot:
            statement = f"SELECT count(*) FROM event{where}"  # noqa: S608
            (found,) = snapshot.connection.execute(statement, kinds).fetchone()
        return int(found)

    def newest(self, limit: int, *, offset: int = 0, without: Sequence[str] = ()) -> tuple[Event, ...]:
        """Return some events, the newest first.

        Parameters
        ----------
        limit : int
            How many, at most 1,000.
        offset : int
            How many of the newest are left out.
        without : sequence of str
            Kinds that are left out.

        Returns
        -------
        tuple of Event

        Raises
        ------
        LedgerUnavailable, LedgerCorrupt
            As for `Ledger.entries`.
        """
        if _check.integer("limit", limit, minimum=1) > _MOST:
            _check.refuse("limit", f"be at most {_MOST}", limit, "read page after page")
        where, kinds = _other_than(without)
        place = {"limit": limit, "offset": _check.integer("offset", offset)}
        with self._log.transaction(write=False) as snapshot:
            rows = snapshot.connection.execute(
                f"{COLUMNS}{where} ORDER BY position DESC LIMIT :limit OFFSET :offset", {**kinds, **place}
            )
            found = tuple(Event(*row) for row in rows)
        for event in found:
            if not event.intact:
                raise corrupt("hold unaltered events", f"an altered event {event.position}")
        return found


def _other_than(kinds: Sequence[str]) -> tuple[str, dict[str, str]]:
    """Return the condition of events that are of none of these kinds, and its parameters."""
    named = {f"kind_{place}": kind for place, kind in enumerate(kinds)}
    return f" WHERE kind NOT IN ({', '.join(f':{name}' for name in named)})" if named else "", named
