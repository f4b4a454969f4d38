"""What the ledger's errors say of a charge, and the errors of a damaged log; every other module is above."""

from __future__ import annotations

from sfumato.errors import LedgerCorrupt, LedgerUnavailable

__all__ = ["NOTHING_CHARGED", "PERHAPS_CHARGED", "corrupt", "unavailable", "unreadable"]

NOTHING_CHARGED = "nothing was charged"
PERHAPS_CHARGED = "it may have been charged all the same"


def corrupt(rule: str, got: str) -> LedgerCorrupt:
    """Return the error of a log that breaks a rule."""
    return LedgerCorrupt(
        f"ledger must {rule}, got {got}; {NOTHING_CHARGED}; restore the file from a backup and compare it "
        "with the latest exported head"
    )


def unreadable(position: int) -> LedgerCorrupt:
    """Return the error of an event that is not what any version of sfumato writes."""
    return corrupt("hold readable events", f"an unreadable event {position}")


def unavailable(rule: str, got: str, name: str, remedy: str) -> LedgerUnavailable:
    """Return the error of a store that cannot be used now."""
    return LedgerUnavailable(f"ledger must {rule}, got {got} at {name}; {NOTHING_CHARGED}; {remedy}")
