"""Where the chain stood when the log was last exported, as the budget's screen shows it."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple, final

from sfumato._durable import write_whole
from sfumato.ledger import ChainHead

__all__ = ["ExportedHead", "HeadFile"]


class ExportedHead(NamedTuple):
    """A head, and when it was taken away."""

    head: ChainHead
    time: datetime


@final
class HeadFile:
    """A file with the last head that somebody took away; it is a reminder, and proves nothing by itself.

    Parameters
    ----------
    path : Path
    """

    def __init__(self, path: Path) -> None:
        self._path = path

    def store(self, head: ChainHead) -> None:
        """Store a head.

        Parameters
        ----------
        head : ChainHead
        """
        write_whole(self._path, head.to_json().encode(), mode=0o600)

    def last(self) -> ExportedHead | None:
        """Return the last one; None before the first."""
        try:
            content = self._path.read_text(encoding="utf-8")
            time = self._path.stat().st_mtime
        except FileNotFoundError:
            return None
        return ExportedHead(ChainHead.from_json(content), datetime.fromtimestamp(time, UTC))
