"""Pages of releases as they were last made.

A page follows from its release, which never changes, and from its review. It is made anew when the review
has gone on, and not whenever the ledger has grown: how long the public waits for it would else show when a
release is stored, which depends on the rows.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from typing import Final, final

from sfumato import report
from sfumato.ledger import Ledger, ReviewStep

__all__ = ["PageCache"]

_PAGES: Final = 256


@final
class PageCache:
    """Pages of releases as they were last made; each is made anew once its review has gone on.

    Parameters
    ----------
    ledger : Ledger
    """

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger
        self._made: OrderedDict[tuple[int, str], tuple[tuple[ReviewStep, ...], bytes]] = OrderedDict()
        self._lock = threading.Lock()

    def page(self, number: int, language: str) -> bytes:
        """Return a release's page.

        Parameters
        ----------
        number : int
            Of its charge.
        language : str
        """
        steps = self._ledger.reviews.of(number).steps
        key = (number, language)
        with self._lock:
            found = self._made.get(key)
        if found is not None and found[0] == steps:
            return found[1]
        page = report.stored_release(self._ledger, number, language=language).to_bytes()
        with self._lock:
            self._made[key] = (steps, page)
            self._made.move_to_end(key)
            while len(self._made) > _PAGES:
                self._made.popitem(last=False)
        return page
