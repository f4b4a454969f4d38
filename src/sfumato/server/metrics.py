"""What a shuffler tells its operator in numbers, in the text format of OpenMetrics 1.0.

The numbers are for the operator alone: how many reports wait, read often enough, is who sent when.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from sfumato.server.counters import Counters
from sfumato.server.shuffler import Shuffler

__all__ = ["CONTENT_TYPE", "openmetrics"]

CONTENT_TYPE: Final = b"application/openmetrics-text; version=1.0.0; charset=utf-8"

_REFUSED: Final = (
    ("envelopes", ("shape", "seal"), "Envelopes of another length, or with no seal of this collection."),
    ("requests", ("large", "unfinished", "waiting", "rate"), "Requests beyond a limit, by limit."),
    ("connections", ("connections", "address", "late"), "Connections beyond a limit or cut, by limit."),
)


def openmetrics(shuffler: Shuffler, counters: Counters) -> bytes:
    """Return the numbers of a service.

    Parameters
    ----------
    shuffler : Shuffler
        Its reports and batches follow from what is stored, and so are those of all time.
    counters : Counters
        Of the service.

    Returns
    -------
    bytes
        One page.
    """
    batches, waiting = shuffler.progress
    taken = batches * shuffler.collection.batch_size + waiting
    lines = [
        *_family("reports_taken", "counter", "Reports that are stored or released.", {"_total": taken}),
        *_family("reports_waiting", "gauge", "Reports that wait for their batch.", {"": waiting}),
        *_family("batches", "counter", "Batches that were filled.", {"_total": batches}),
    ]
    for what, reasons, text in _REFUSED:
        numbers: dict[str, int | str] = {
            f'_total{{reason="{reason}"}}': counters[reason] for reason in reasons
        }
        lines += _family(f"{what}_refused", "counter", text, numbers)
    stored: dict[str, int | str] = {"_count": counters["stored"], "_sum": _seconds(counters["nanoseconds"])}
    lines += _family(
        "store_seconds", "summary", "Transactions of the store, and their time.", stored, "seconds"
    )
    failures = {"_total": counters["failed"]}
    lines += _family("store_failures", "counter", "Transactions that failed.", failures)
    return "\n".join([*lines, "# EOF", ""]).encode()


def _family(
    name: str, kind: str, text: str, numbers: Mapping[str, int | str], unit: str | None = None
) -> Iterator[str]:
    yield f"# TYPE sfumato_{name} {kind}"
    if unit is not None:
        yield f"# UNIT sfumato_{name} {unit}"
    yield f"# HELP sfumato_{name} {text}"
    for suffix, number in numbers.items():
        yield f"sfumato_{name}{suffix} {number}"


def _seconds(nanoseconds: int) -> str:
    whole, part = divmod(nanoseconds, 10**9)
    return f"{whole}.{part:09d}"
