"""Memory for requests that are on their way, shared by all connections of a process.

>>> room = RequestRoom(1000)
>>> with room.reserved() as reserve:
...     reserve(1 << 14)  # which every connection may always send
...     reserve((1 << 20) + 5)  # one request is always allowed
...     with room.reserved() as other:
...         other((1 << 14) + 1)
Traceback (most recent call last):
...
sfumato.server.request_room.NoRoom
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final, final

__all__ = ["NoRoom", "RequestRoom"]

_SMALL: Final = 1 << 14
"""Bytes of a request that every connection may always send."""


class NoRoom(Exception):
    """More is on its way than is put up with."""


@final
class RequestRoom:
    """Counts the bytes of unfinished requests, beside the first 16 KiB of each.

    Parameters
    ----------
    size : int
        Maximum number of them; one request is always allowed.
    """

    def __init__(self, size: int) -> None:
        self._size, self._reserved = size, 0

    @contextmanager
    def reserved(self) -> Iterator[Callable[[int], None]]:
        """Reserve room for one request as it becomes longer, until it is answered.

        Raises
        ------
        NoRoom
            From what is given, when it is called with a length for which there is no room.
        """
        own = 0

        def reserve(length: int) -> None:
            nonlocal own
            more = length - _SMALL - own
            if more <= 0:
                return
            if self._reserved != own and self._reserved + more > self._size:
                raise NoRoom
            own += more
            self._reserved += more

        try:
            yield reserve
        finally:
            self._reserved -= own
