"""A console: one ledger, what was configured, and what it stores beside the ledger."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from typing import Any, Self, final

import sfumato
from sfumato.ledger import Ledger
from sfumato.server.console.access.failed_logins import FailedLogins
from sfumato.server.console.access.member_roles import MemberRoles
from sfumato.server.console.access.token_store import TokenStore
from sfumato.server.console.asking.service import AskingService, AskingSettings
from sfumato.server.console.forecasts import Forecasts
from sfumato.server.console.head_file import HeadFile
from sfumato.server.console.page_cache import PageCache
from sfumato.server.console.published_tables import PublishedFiles
from sfumato.server.console.settings import ConsoleSettings

__all__ = ["Console"]


@final
class Console:
    """What all screens work with; safe to use from several threads.

    Parameters
    ----------
    settings : ConsoleSettings
    report_failure : callable
        Receives what went wrong in a run, for the operator alone.

    Raises
    ------
    SourceError, SchemaError, ParameterError
        If the data cannot be opened.
    LedgerUnavailable, LedgerCorrupt, LedgerMismatch
        If the ledger cannot be used.

    Notes
    -----
    Without data it shows what the ledger holds, and nobody asks.
    """

    def __init__(
        self, settings: ConsoleSettings, report_failure: Callable[[str], None] = lambda message: None
    ) -> None:
        self.settings = settings
        settings.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        self.ledger: Ledger
        self.asking: AskingService | None = None
        with ExitStack() as stack:
            if settings.dataset:
                self._open_data(stack, report_failure)
            else:
                self.ledger = stack.enter_context(Ledger.manage(settings.ledger))
            self.release_pages = PageCache(self.ledger)
            self.published = PublishedFiles(self.ledger, settings.folder / "published")
            self.forecasts = Forecasts(self.ledger)
            self.heads = HeadFile(settings.folder / "exported-head.json")
            self.tokens = TokenStore(settings.tokens)
            self.roles = MemberRoles(self.ledger.members)
            self.failed_logins = FailedLogins(self.ledger.members.record_failed_login)
            self._open = stack.pop_all()

    def _open_data(self, stack: ExitStack, report_failure: Callable[[str], None]) -> None:
        settings = self.settings
        about: dict[str, Any] = {**settings.dataset, "ledger": settings.ledger, "progress": False}
        session = stack.enter_context(sfumato.connect(**about))
        planning = None
        if "postgresql://" in str(about["source"]):  # whose tables have no copy without rows here
            planning = stack.enter_context(sfumato.connect(**about))
        asking = AskingSettings(
            grid=settings.grid,
            limits=settings.jobs,
            domains=settings.domains,
            on_failure=lambda job, error: report_failure(f"a run failed with {type(error).__name__}"),
        )
        self.asking = stack.enter_context(
            AskingService(session, settings.folder / "jobs", planning=planning, settings=asking)
        )
        self.ledger = session.ledger

    def start(self) -> None:
        """Begin to answer what is asked, in threads of this process."""
        if self.asking is not None:
            self.asking.start()

    def close(self) -> None:
        """Close the ledger and the data; everything is already on the disk."""
        self._open.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
