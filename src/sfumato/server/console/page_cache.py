"""Pages of releases as they were last made."""

from __future__ import annotations

import threading
from collections import OrderedDict
from typing import Final, final

from sfumato import report
from sfumato.ledger import Ledger

__all__ = ["PageCache"]

_PAGES: Final = 256


@final
class PageCache:
    """Pages of releases as they were last made; each is made anew once the ledger has grown.

    Parameters
    ----------
    ledger : Ledger
    """

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger
        self._made: OrderedDict[tuple[int, str], tuple[str, bytes]] = OrderedDict()
        self._lock = threading.Lock()

    def page(self, number: int, language: str) -> bytes:
        """Return a release's page.

        Parameters
        ----------
        number : int
            Of its charge.
        language : str
        """
        head = self._ledger.head().digest
        key = (number, language)
        with self._lock:
            found = self._made.get(key)
        if found is not None and found[0] == head:
            return found[1]
        page = report.stored_release(self._ledger, number, language=language).to_bytes()
        with self._lock:
            self._made[key] = (head, page)
            self._made.move_to_end(key)
            while len(self._made) > _PAGES:
                self._made.popitem(last=False)
        return page
