"""Charges whose noise was not drawn: an identical request is answered under such a charge, once.

A charge pays for one run of a mechanism, whose answer is a function of noise. A session draws no noise before
it has written, durably, that it is about to (`Drawn`), and of one charge that is written once. So where a
charge that works in this way has no such event, nothing was drawn for it, and nothing that depends on noise
can have left any process, however it ended: with an error, interrupted, or killed. Then the next identical
request goes on under that charge. Of several processes that do so at once, one writes the event and draws;
the others are charged anew. These have read the data by then, under the first charge; nothing of it was drawn
or shown, and whether the new charge fits does not depend on it.

Where the event is there and no release was committed, noise may have been drawn. It was not delivered, since
a release is committed before; but a failure may have depended on it (a release too large to be stored, say),
and another draw for the same charge would be a choice between two answers. So that request is charged anew.

Guarantee: of each charge one answer is drawn at most, whichever processes die or race. What the guarantee of
the charge is, and that it was charged before data was read, is as it was. Whether a charge is gone on with
depends on the log and the request alone, never on data.
"""

from __future__ import annotations

import re
from collections import deque
from itertools import islice
from typing import Final

from sfumato.ledger.failures import corrupt
from sfumato.ledger.log.event_log import Snapshot, event_of_charge
from sfumato.ledger.log.events import Charged, Committed, Drawn, body_of
from sfumato.ledger.log.hash_chain import Event
from sfumato.ledger.store.base import Transaction
from sfumato.privacy.receipt import Receipt

__all__ = ["RecentRequests", "claim_draw", "paid_for"]

WINDOW: Final = 1000
"""How many of the last events count, so that a charge costs the same however long the log is."""
MOST: Final = 8
"""How many charges of one request are looked at, the last ones."""

CHARGES: Final = """SELECT position, charge, body FROM event WHERE position > :after AND kind = :kind
    ORDER BY position"""
REQUEST: Final = re.compile(r'"request":"([^"\\]*)"')
"""A charge's request in its body; a quotation mark within a text has a backslash before it."""


class RecentRequests:
    """The requests of the last charges, as far as this process has read them: each event is read once."""

    def __init__(self) -> None:
        self._position = 0
        self._charges: deque[tuple[int, int, str]] = deque()

    def undrawn_charge(self, snapshot: Snapshot, wanted: Charged) -> Event | None:
        """Return the last charge of the same request, loss and terms whose noise was not drawn, if any.

        Parameters
        ----------
        snapshot : Snapshot
            The log, in a transaction that has not written yet.
        wanted : Charged
            What would be charged.
        """
        if not (wanted.draws and wanted.request):
            return None
        self._read_on(snapshot)
        same = (number for _, number, request in reversed(self._charges) if request == wanted.request)
        for number in islice(same, MOST):
            event = event_of_charge(snapshot.connection, Charged.kind, number)
            body = None if event is None else body_of(event)
            if (
                isinstance(body, Charged)
                and _same(body, wanted)
                and _is_untouched(snapshot.connection, number)
            ):
                return event
        return None

    def _read_on(self, snapshot: Snapshot) -> None:
        """Take the charges among the last events that were not read before, and forget those before them."""
        last = snapshot.end.event.position
        while self._charges and self._charges[0][0] <= last - WINDOW:
            self._charges.popleft()
        after = max(self._position, last - WINDOW)
        rows = (
            snapshot.connection.execute(CHARGES, {"after": after, "kind": Charged.kind})
            if after < last
            else ()
        )
        for position, number, body in rows:
            self._charges.extend((position, number, found) for found in REQUEST.findall(body) if found)
        self._position = last


def claim_draw(snapshot: Snapshot, receipt: Receipt) -> Event | None:
    """Write that the noise of a charge is about to be drawn; None if that was written before.

    Parameters
    ----------
    snapshot : Snapshot
        The log, in a transaction that writes.
    receipt : Receipt
        Of the charge.
    """
    event = event_of_charge(snapshot.connection, Charged.kind, receipt.sequence)
    if event is None or event.digest != receipt.digest:
        raise corrupt("hold every charge that it gave a receipt for", f"none for receipt {receipt.sequence}")
    if not _is_untouched(snapshot.connection, receipt.sequence):
        return None
    return snapshot.append(Drawn(), charge=receipt.sequence)


def paid_for(snapshot: Snapshot, receipt: Receipt, wanted: Charged) -> bool:
    """Return whether a receipt is of a charge for exactly what is wanted, at today's costs or more.

    Parameters
    ----------
    snapshot : Snapshot
    receipt : Receipt
        Of a charge that was made before.
    wanted : Charged
        What would be charged now.
    """
    event = event_of_charge(snapshot.connection, Charged.kind, receipt.sequence)
    if event is None or event.digest != receipt.digest:
        return False
    body = body_of(event)
    return isinstance(body, Charged) and _same(body, wanted)


def _same(charged: Charged, wanted: Charged) -> bool:
    """Whether a charge paid for what is wanted, at today's costs or more."""

    def terms(body: Charged) -> tuple[object, ...]:
        asked = (body.request, body.loss, body.delta, body.dataset_version, body.simulated)
        return (*asked, body.analyst, body.period, body.steps, body.run, body.draws)

    cheaper = any(
        paid.amount < now.amount or paid.delta < now.delta
        for paid, now in zip(charged.costs, wanted.costs, strict=True)
    )
    return terms(charged) == terms(wanted) and not cheaper


def _is_untouched(connection: Transaction, number: int) -> bool:
    return all(event_of_charge(connection, kind, number) is None for kind in (Drawn.kind, Committed.kind))
