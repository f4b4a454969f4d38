"""Run many collections in one process, whose settings may change while it runs."""

from __future__ import annotations

import queue
import signal
import threading
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Final, final

from sfumato import _check
from sfumato._durable import sync_folder
from sfumato.errors import SfumatoError
from sfumato.server.hosting.collection_settings import CollectionSettings
from sfumato.server.hosting.collections_front import CollectionsFront
from sfumato.server.hosting.configuration import Configuration
from sfumato.server.hosting.hosted_collection import HostedCollection
from sfumato.server.hosting.reload_changes import reload_changes, reload_message
from sfumato.server.hosting.service_settings import SETTINGS, ServiceSettings
from sfumato.server.http_process import opened_sockets
from sfumato.server.monitoring.counters import Counters
from sfumato.server.monitoring.operator_log import OperatorLog
from sfumato.server.shared_limits import SharedLimits
from sfumato.server.store_file import refuse_folder

__all__ = ["serve_collections"]

_COUNTERS: Final = "counters"


def serve_collections(configuration: Configuration, say: Callable[[str], None] = print) -> None:
    """Run many collections until the process is asked to end (SIGINT or SIGTERM); SIGHUP reads them again.

    Parameters
    ----------
    configuration : Configuration
    say : callable
        Receives lines for the operator.

    Raises
    ------
    ParameterError
        If a setting breaks its rule, or a collection cannot be opened. While it runs, a file that breaks a
        rule is said to the operator, and nothing changes.

    Notes
    -----
    What SIGHUP changes: which collections there are, their times and keys, and ``default``; no connection is
    lost. Everything else takes a restart. A collection that is left out of the file is not served any more;
    its folder stays as it is.
    """
    service, collections = configuration.read()
    listening = service.listening(say)
    log = OperatorLog(say, structured=listening.structured_log)
    folder = _made(service.folder or Path())
    with ExitStack() as stack:
        process = stack.enter_context(Counters(folder / _COUNTERS))
        sockets = stack.enter_context(opened_sockets(listening))
        shared = SharedLimits(listening.limits)
        running = _Running(
            configuration,
            lambda settings: HostedCollection(settings, folder, listening.limits, shared, log),
            log,
        )
        stack.callback(running.close)
        running.change(collections)
        app = CollectionsFront(running.hosted, service.default, process, sockets.operator_port)
        stack.enter_context(running.reloading(app, service))
        sockets.run(app, log, lambda url: _say_started(log, running, url), process.add)


def _made(folder: Path) -> Path:
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        sync_folder(folder.parent)
    except OSError as error:
        refuse_folder(folder, error)
    return folder


@final
class _Running:
    """The open collections, which one thread at a time changes."""

    def __init__(
        self,
        configuration: Configuration,
        opened: Callable[[CollectionSettings], HostedCollection],
        log: OperatorLog,
    ) -> None:
        self._configuration, self._opened, self._log = configuration, opened, log
        self.hosted: Mapping[str, HostedCollection] = {}
        self._asked: queue.SimpleQueue[bool] = queue.SimpleQueue()

    def change(self, wanted: Mapping[str, CollectionSettings]) -> list[HostedCollection]:
        """Open and renew collections; return those that are not served any more, which are still open.

        If one cannot be opened, nothing has changed.
        """
        before, new = self.hosted, {}
        names = {each.settings.identity[0]: name for name, each in before.items()}
        for name, settings in wanted.items():
            known = before.get(name)
            if known is not None and known.settings.identity != settings.identity:
                rule = "stay the same collection while the process runs"
                remedy = "give the new one a name of its own"
                _check.refuse_state(f"collections.{name}", rule, "another one is stated", remedy)
            old = names.get(settings.identity[0], name)
            if old != name:  # a new folder knows none of the nonces that were taken
                _check.refuse("name of the collection", f"stay {old}", name, "leave the name as it is")
        try:
            for name, settings in wanted.items():
                if name not in before:
                    new[name] = self._opened(settings)
        except BaseException:
            for each in new.values():
                each.close()
            raise
        for name in wanted.keys() & before.keys():
            before[name].renew(wanted[name])
        self.hosted = {name: new[name] if name in new else before[name] for name in wanted}
        return [each for name, each in before.items() if name not in wanted]

    def reloading(self, app: CollectionsFront, service: ServiceSettings) -> ExitStack:
        """Read the settings again at each SIGHUP, in a thread, until what is returned is closed."""
        thread = threading.Thread(
            target=self._reload_when_asked, args=(app, service), name="sfumato-reloader", daemon=True
        )
        thread.start()
        # To put something into such a queue is allowed in a signal's handler, whatever it interrupts.
        handler = signal.signal(signal.SIGHUP, lambda *_: self._asked.put(True))
        stack = ExitStack()
        stack.callback(thread.join)
        stack.callback(self._asked.put, False)
        stack.callback(signal.signal, signal.SIGHUP, handler)
        return stack

    def _reload_when_asked(self, app: CollectionsFront, service: ServiceSettings) -> None:
        while self._asked.get():
            try:
                self._reload(app, service)
            except SfumatoError as error:
                self._log("reload-failed", f"nothing was changed: {error}", level="error")
            except Exception as error:  # such as a disk that is full; the next reload may succeed
                why = f"{type(error).__name__}: {error}"
                self._log("reload-failed", f"nothing was changed: {why}", level="error")

    def _reload(self, app: CollectionsFront, service: ServiceSettings) -> None:
        fresh, collections = self._configuration.read()
        old = {name: each.settings for name, each in self.hosted.items()}
        gone = self.change(collections)
        app.hosted, app.default = self.hosted, fresh.default
        for each in gone:
            each.close()
        facts = reload_changes(old, collections)
        self._log("reloaded", reload_message(facts), **facts)
        fixed = [name for name in SETTINGS if name != "default"]
        changed = [name for name in fixed if fresh.values[name] != service.values[name]]
        rates = [n for n, each in collections.items() if n in old and each.rate != old[n].rate]
        if changed := [*changed, *(f"collections.{name}.rate" for name in rates)]:
            text = f"a restart is needed for: {', '.join(changed)}"
            self._log("restart-needed", text, level="warning", settings=changed)

    def close(self) -> None:
        """Close all collections, and say what they released."""
        for name, each in self.hosted.items():
            each.close()
            refused = dict(each.collector.refused)
            counts = ", ".join(f"{count} by {reason}" for reason, count in refused.items())
            message = f"{name}: {each.collector.batches} batches released; refused envelopes: {counts}"
            self._log("stopped", message, name=name, batches=each.collector.batches, refused=refused)


def _say_started(log: OperatorLog, running: _Running, url: str) -> None:
    count = len(running.hosted)
    log("started", f"{count} collection{'s' if count > 1 else ''} at {url}", url=url)
    for name, each in running.hosted.items():
        place, known = f"{url}/{name}", each.collector.id.hex()
        log("collection", f"collection {known} at {place}", name=name, collection=known, url=place)
