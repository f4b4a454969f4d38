"""What collectors tell their operator in numbers, in the text format of OpenMetrics 1.0.

The numbers are for the operator alone: how many reports wait, read often enough, is who sent when.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

from sfumato.server.collector import Collector
from sfumato.server.monitoring.counters import Counters

__all__ = ["CONTENT_TYPE", "Watched", "openmetrics"]

CONTENT_TYPE: Final = b"application/openmetrics-text; version=1.0.0; charset=utf-8"

Watched = tuple[Collector, Counters]
"""A collector, and the counters of its envelopes, requests and transactions."""

_REQUESTS: Final = (
    "large", "unfinished", "waiting", "rate", "early", "expired", "total", "sender", "full",
)  # fmt: skip
_CONNECTIONS: Final = ("connections", "address", "late")


def openmetrics(collections: Mapping[str, Watched], process: Counters) -> bytes:
    """Return the numbers of a service.

    Parameters
    ----------
    collections : mapping of str to Watched
        By the name that labels their samples; an empty name is no label. Reports and batches follow from what
        is stored, and so are those of all time.
    process : Counters
        Of connections.

    Returns
    -------
    bytes
        One page.
    """
    page = _Page(collections)
    page.family("reports_taken", "counter", "Reports that are stored or released.", _taken)
    text = "Reports that wait for their batch."
    page.family("reports_waiting", "gauge", text, lambda one: {"": one.waiting})
    page.family("batches", "counter", "Batches that were filled.", lambda one: {"_total": one.batches})
    text = "Envelopes or reports of another length, or not of this collection."
    page.family(
        "envelopes_refused", "counter", text, lambda one: _reasons(one.counters, one.collector.reasons)
    )
    text = "Requests beyond a limit or outside of the collection's time, by reason."
    page.family("requests_refused", "counter", text, lambda one: _reasons(one.counters, _REQUESTS))
    page.samples(
        "connections_refused",
        "counter",
        "Connections beyond a limit or cut, by limit.",
        [("", _reasons(process, _CONNECTIONS))],
    )
    text = "Transactions of the store, and their time."
    page.family("store_seconds", "summary", text, lambda one: _store(one.counters), "seconds")
    text = "Transactions that failed."
    page.family("store_failures", "counter", text, lambda one: {"_total": one.counters["failed"]})
    return "\n".join([*page.lines, "# EOF", ""]).encode()


@dataclass(frozen=True, slots=True)
class _Seen:
    """A collector with its progress at one moment."""

    collector: Collector
    counters: Counters
    batches: int
    waiting: int


class _Page:
    """Lines, each family whole and in one place, as the format requires."""

    def __init__(self, collections: Mapping[str, Watched]) -> None:
        self.lines: list[str] = []
        self._seen = {
            label: _Seen(collector, counters, *collector.progress)
            for label, (collector, counters) in collections.items()
        }

    def family(
        self,
        name: str,
        kind: str,
        text: str,
        numbers: Callable[[_Seen], Mapping[str, int | str]],
        unit: str | None = None,
    ) -> None:
        """Add one family of samples of every collection."""
        each = [(label, numbers(seen)) for label, seen in self._seen.items()]
        self.samples(name, kind, text, each, unit)

    def samples(
        self,
        name: str,
        kind: str,
        text: str,
        each: list[tuple[str, Mapping[str, int | str]]],
        unit: str | None = None,
    ) -> None:
        """Add one family of samples, by their label and then by suffix and reason."""
        self.lines.append(f"# TYPE sfumato_{name} {kind}")
        if unit is not None:
            self.lines.append(f"# UNIT sfumato_{name} {unit}")
        self.lines.append(f"# HELP sfumato_{name} {text}")
        for label, numbers in each:
            self.lines += [f"sfumato_{name}{_labelled(key, label)} {at}" for key, at in numbers.items()]


def _labelled(key: str, label: str) -> str:
    """Return a suffix and the labels after it, of a key such as ``_total seal``."""
    suffix, _, reason = key.partition(" ")
    labels = [f'{name}="{text}"' for name, text in (("collection", label), ("reason", reason)) if text]
    return f"{suffix}{{{','.join(labels)}}}" if labels else suffix


def _taken(one: _Seen) -> dict[str, int | str]:
    return {"_total": one.batches * one.collector.batch_size + one.waiting}


def _reasons(counters: Counters, reasons: tuple[str, ...]) -> dict[str, int | str]:
    return {f"_total {reason}": counters[reason] for reason in reasons}


def _store(counters: Counters) -> dict[str, int | str]:
    return {"_count": counters["stored"], "_sum": _seconds(counters["nanoseconds"])}


def _seconds(nanoseconds: int) -> str:
    whole, part = divmod(nanoseconds, 10**9)
    return f"{whole}.{part:09d}"
