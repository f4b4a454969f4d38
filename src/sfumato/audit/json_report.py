"""The JSON document that ``sfumato audit --json`` prints: a versioned format, field by field."""

from __future__ import annotations

from typing import Final

from sfumato._wire import NUMBER, Format, canonical, optional
from sfumato.audit.blackbox import Audit
from sfumato.audit.floating_point import PrecisionAudit

__all__ = ["FORMAT", "json_report"]

FORMAT: Final = Format("sfumato.audit-report", 1)


def json_report(found: Audit, floating_point: PrecisionAudit | None = None) -> str:
    """Return what an audit found as one JSON text.

    Parameters
    ----------
    found : Audit
    floating_point : PrecisionAudit, optional
        What a search for impossible floats found in the same mechanism.

    Returns
    -------
    str
        Infinite numbers are written as ``"inf"``; what does not apply is null. The event and the pair of
        inputs are texts for people, not to be parsed.
    """
    document = {
        "epsilon": NUMBER.encode(found.epsilon),
        "delta": NUMBER.encode(found.delta),
        "violated": found.violated,
        "epsilon_lower": NUMBER.encode(found.epsilon_lower),
        "mu_lower": NUMBER.encode(found.mu_lower),
        "epsilon_if_gaussian": optional(NUMBER).encode(found.epsilon_if_gaussian),
        "confidence": NUMBER.encode(found.confidence),
        "event": str(found.event),
        "pair": str(found.pair),
        "hits": list(found.hits),
        "tested": found.tested,
        "trials": found.trials,
        "floating_point": None if floating_point is None else _floating_point(floating_point),
    }
    return canonical(FORMAT.wrap(document))


def _floating_point(found: PrecisionAudit) -> dict[str, object]:
    return {
        "violated": found.violated,
        "epsilon_lower": NUMBER.encode(found.epsilon_lower),
        "impossible": found.impossible,
        "pair": str(found.pair),
        "tested": found.tested,
    }
