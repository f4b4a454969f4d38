"""Attacks: membership inference against trained models, with certified error rates.

:func:`lira`, :func:`rmia` and :func:`loss_threshold` score examples; :func:`membership_report` says how well
scores tell members from others, with exact intervals, and what that proves of the epsilon that was claimed.

What an attack on real members tells is the curator's: it is an answer from their data that nobody paid for.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from sfumato._lazy import attach

if TYPE_CHECKING:
    from sfumato.attacks.membership.lira import lira
    from sfumato.attacks.membership.report import MembershipReport, OperatingPoint, membership_report
    from sfumato.attacks.membership.rmia import rmia
    from sfumato.attacks.membership.signals import loss_threshold, scaled_confidence

__all__ = [
    "MembershipReport",
    "OperatingPoint",
    "lira",
    "loss_threshold",
    "membership_report",
    "rmia",
    "scaled_confidence",
]

__getattr__, __dir__ = attach(
    __name__,
    {
        "MembershipReport": "sfumato.attacks.membership.report",
        "OperatingPoint": "sfumato.attacks.membership.report",
        "lira": "sfumato.attacks.membership.lira",
        "loss_threshold": "sfumato.attacks.membership.signals",
        "membership_report": "sfumato.attacks.membership.report",
        "rmia": "sfumato.attacks.membership.rmia",
        "scaled_confidence": "sfumato.attacks.membership.signals",
    },
)
