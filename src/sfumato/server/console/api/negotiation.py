"""Which of several types a client gets, by its ``Accept`` header.

>>> chosen("text/html;q=0.5, application/json", ("application/json", "text/html"))
'application/json'
>>> chosen("", ("application/json", "text/html")), chosen("image/*", ("application/json",))
('application/json', None)
"""

from __future__ import annotations

from collections.abc import Sequence

__all__ = ["chosen"]


def chosen(accept: str, offered: Sequence[str]) -> str | None:
    """Return the best of the types that are offered; None if none is accepted.

    Parameters
    ----------
    accept : str
        The header; empty accepts all.
    offered : sequence of str
        The usual one first, which is taken where several are as good.

    Notes
    -----
    As RFC 9110, section 12.5.1: of the ranges that match a type the most specific one says how good it is.
    """
    if not accept.strip():
        return offered[0]
    ranges = [_range(part) for part in accept.split(",") if part.strip()]
    best, quality = None, 0.0
    for kind in offered:
        found = _quality(kind, ranges)
        if found > quality:
            best, quality = kind, found
    return best


def _range(part: str) -> tuple[str, float]:
    name, *parameters = (each.strip().lower() for each in part.split(";"))
    quality = 1.0
    for each in parameters:
        key, _, value = each.partition("=")
        if key.strip() == "q":
            try:
                quality = min(max(float(value.strip()), 0.0), 1.0)
            except ValueError:
                quality = 0.0
    return name, quality if quality == quality else 0.0  # noqa: PLR0124 - a quality that is no number


def _quality(kind: str, ranges: Sequence[tuple[str, float]]) -> float:
    for pattern in (kind, f"{kind.partition('/')[0]}/*", "*/*"):
        found = [quality for name, quality in ranges if name == pattern]
        if found:
            return max(found)
    return 0.0
