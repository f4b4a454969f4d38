"""One open collection of a process: its collector, its counters, its thread and its HTTP interface."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Final, final

from sfumato.server.group_commit import GroupCommit
from sfumato.server.hosting.collection_settings import CollectionSettings
from sfumato.server.limits import Limits
from sfumato.server.monitoring.counters import Counters
from sfumato.server.monitoring.operator_log import OperatorLog
from sfumato.server.shared_limits import SharedLimits
from sfumato.server.web import Front

__all__ = ["HostedCollection"]

_COUNTERS: Final = "counters"


@final
class HostedCollection:
    """A collection that is served until it is closed.

    Parameters
    ----------
    settings : CollectionSettings
    folder : Path
        Of all collections; this one's has its name.
    limits : Limits
        Of the service; the collection may have a rate of its own.
    shared : SharedLimits
        Those of all collections.
    log : OperatorLog

    Attributes
    ----------
    settings : CollectionSettings
        The newest.
    collector : Collector
    counters : Counters
    front : Front
    """

    def __init__(
        self,
        settings: CollectionSettings,
        folder: Path,
        limits: Limits,
        shared: SharedLimits,
        log: OperatorLog,
    ) -> None:
        own = folder / settings.name
        if settings.rate is not None:
            limits = dataclasses.replace(limits, rate=settings.rate)
        self.settings = settings
        self.collector = settings.open(own)
        try:
            self.counters = Counters(own / _COUNTERS)
        except BaseException:
            self.collector.close()
            raise
        failed = log.failure("store-failed")
        self._taker = GroupCommit(self.collector, limits, failed, self.counters, shared)
        self.front = Front(
            self.collector,
            self._taker,
            limits,
            settings.document,
            log.failure("request-failed"),
            counters=self.counters,
            window=settings.window,
        )

    def renew(self, settings: CollectionSettings) -> None:
        """Go on with other times and keys."""
        settings.renew(self.collector)
        self.front.window = settings.window
        self.settings = settings

    def close(self) -> None:
        """Store what waits, and let go of the folder; what comes later is answered 503.

        The counters stay mapped: a request that is still being read may count until it is answered.
        """
        self._taker.stop()
        self.collector.close()
