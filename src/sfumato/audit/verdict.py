"""What every audit says first, in words: the claim, whether it is refuted, and what is certified."""

from __future__ import annotations

from typing import Protocol

from sfumato.privacy._outward import text_below

__all__ = ["Verdict", "verdict_facts"]


class Verdict(Protocol):
    """What `verdict_facts` reads of an audit."""

    @property
    def epsilon(self) -> float:
        """The claim."""

    @property
    def delta(self) -> float:
        """The claim's delta."""

    @property
    def violated(self) -> bool:
        """Whether it is refuted."""

    @property
    def epsilon_lower(self) -> float:
        """Below which epsilon it is not, with ``confidence``."""

    @property
    def confidence(self) -> float:
        """Of the whole audit."""


def verdict_facts(found: Verdict) -> dict[str, str]:
    """Return the claim, the verdict and the bound, each by its name.

    Parameters
    ----------
    found : Audit, PrecisionAudit or OneRunAudit
    """
    minimum = text_below(found.epsilon_lower, 4)
    return {
        "claim": f"epsilon {found.epsilon:g} at delta {found.delta:g}",
        "verdict": "VIOLATED" if found.violated else "not refuted: nothing is proved",
        "epsilon is at least": f"{minimum}, with confidence {found.confidence:.12g}",
    }
