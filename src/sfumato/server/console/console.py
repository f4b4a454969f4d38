"""A console: one ledger, what was configured, and what it keeps beside the ledger."""

from __future__ import annotations

from contextlib import ExitStack
from typing import Self, final

from sfumato.ledger import Ledger
from sfumato.server.console.access.failed_logins import FailedLogins
from sfumato.server.console.access.member_roles import MemberRoles
from sfumato.server.console.access.token_store import TokenStore
from sfumato.server.console.head_file import HeadFile
from sfumato.server.console.screens.releases import PageCache
from sfumato.server.console.settings import ConsoleSettings

__all__ = ["Console"]


@final
class Console:
    """What all screens work with; safe to use from several threads.

    Parameters
    ----------
    settings : ConsoleSettings

    Raises
    ------
    LedgerUnavailable, LedgerCorrupt
        If the ledger cannot be used.
    """

    def __init__(self, settings: ConsoleSettings) -> None:
        self.settings = settings
        settings.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        with ExitStack() as stack:
            self.ledger = stack.enter_context(Ledger.manage(settings.ledger))
            self.release_pages = PageCache(self.ledger)
            self.heads = HeadFile(settings.folder / "exported-head.json")
            self.tokens = TokenStore(settings.tokens)
            self.roles = MemberRoles(self.ledger.members)
            self.failed_logins = FailedLogins(self.ledger.members.record_failed_login)
            self._open = stack.pop_all()

    def close(self) -> None:
        """Close the ledger; everything is already on the disk."""
        self._open.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
