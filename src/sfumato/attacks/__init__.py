"""Attacks: what an attacker gets out of a release, and what differential privacy leaves of it.

An :class:`Attack` states its :class:`Knowledge`; ``run(release)`` returns :class:`Findings`: what was
guessed, against the same attack on people who are not in the release, and the bound that the release's
privacy loss puts on the difference. :func:`compare` runs one on a raw release and on its private counterpart.

Of trained models, :func:`lira`, :func:`rmia` and :func:`loss_threshold` score examples;
:func:`membership_report` says how well scores tell members from others, and what that proves of the epsilon
that was claimed.

What an attack on real members tells is the curator's: it is an answer from their data that nobody paid for.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from sfumato._lazy import attach

if TYPE_CHECKING:
    from sfumato.attacks.base.attack import Attack
    from sfumato.attacks.base.attack_curve import AttackCurve
    from sfumato.attacks.base.comparison import Comparison, compare
    from sfumato.attacks.base.findings import Findings
    from sfumato.attacks.base.knowledge import Knowledge
    from sfumato.attacks.base.loss_bounds import AttackBound
    from sfumato.attacks.base.target_guesses import TargetGuesses
    from sfumato.attacks.membership.lira import lira
    from sfumato.attacks.membership.membership_attack import MembershipAttack
    from sfumato.attacks.membership.report import MembershipReport, OperatingPoint, membership_report
    from sfumato.attacks.membership.rmia import rmia
    from sfumato.attacks.membership.signals import loss_threshold, scaled_confidence
    from sfumato.attacks.reconstruction.differencing import Differencing, DifferencingPair, differencing_pairs
    from sfumato.attacks.reconstruction.linear_reconstruction import (
        LinearReconstruction,
        random_subset_queries,
        reconstruction_accuracy,
    )
    from sfumato.attacks.tracing.attribute_rows import PackedBits
    from sfumato.attacks.tracing.fingerprinting import (
        Codebook,
        FingerprintingReport,
        TardosCode,
        fingerprinting_experiment,
    )
    from sfumato.attacks.tracing.predicted_power import PredictedPower, tracing_power
    from sfumato.attacks.tracing.tracing_attack import Tracing
    from sfumato.attacks.tracing.worst_case_tracing import worst_case_tracing

__all__ = [
    "Attack",
    "AttackBound",
    "AttackCurve",
    "Codebook",
    "Comparison",
    "Differencing",
    "DifferencingPair",
    "Findings",
    "FingerprintingReport",
    "Knowledge",
    "LinearReconstruction",
    "MembershipAttack",
    "MembershipReport",
    "OperatingPoint",
    "PackedBits",
    "PredictedPower",
    "TardosCode",
    "TargetGuesses",
    "Tracing",
    "compare",
    "differencing_pairs",
    "fingerprinting_experiment",
    "lira",
    "loss_threshold",
    "membership_report",
    "random_subset_queries",
    "reconstruction_accuracy",
    "rmia",
    "scaled_confidence",
    "tracing_power",
    "worst_case_tracing",
]

__getattr__, __dir__ = attach(
    __name__,
    {
        "Attack": "sfumato.attacks.base.attack",
        "AttackBound": "sfumato.attacks.base.loss_bounds",
        "AttackCurve": "sfumato.attacks.base.attack_curve",
        "Codebook": "sfumato.attacks.tracing.fingerprinting",
        "Comparison": "sfumato.attacks.base.comparison",
        "Differencing": "sfumato.attacks.reconstruction.differencing",
        "DifferencingPair": "sfumato.attacks.reconstruction.differencing",
        "Findings": "sfumato.attacks.base.findings",
        "FingerprintingReport": "sfumato.attacks.tracing.fingerprinting",
        "Knowledge": "sfumato.attacks.base.knowledge",
        "LinearReconstruction": "sfumato.attacks.reconstruction.linear_reconstruction",
        "MembershipAttack": "sfumato.attacks.membership.membership_attack",
        "MembershipReport": "sfumato.attacks.membership.report",
        "OperatingPoint": "sfumato.attacks.membership.report",
        "PackedBits": "sfumato.attacks.tracing.attribute_rows",
        "PredictedPower": "sfumato.attacks.tracing.predicted_power",
        "TardosCode": "sfumato.attacks.tracing.fingerprinting",
        "TargetGuesses": "sfumato.attacks.base.target_guesses",
        "Tracing": "sfumato.attacks.tracing.tracing_attack",
        "compare": "sfumato.attacks.base.comparison",
        "differencing_pairs": "sfumato.attacks.reconstruction.differencing",
        "fingerprinting_experiment": "sfumato.attacks.tracing.fingerprinting",
        "lira": "sfumato.attacks.membership.lira",
        "loss_threshold": "sfumato.attacks.membership.signals",
        "membership_report": "sfumato.attacks.membership.report",
        "random_subset_queries": "sfumato.attacks.reconstruction.linear_reconstruction",
        "reconstruction_accuracy": "sfumato.attacks.reconstruction.linear_reconstruction",
        "rmia": "sfumato.attacks.membership.rmia",
        "scaled_confidence": "sfumato.attacks.membership.signals",
        "tracing_power": "sfumato.attacks.tracing.predicted_power",
        "worst_case_tracing": "sfumato.attacks.tracing.worst_case_tracing",
    },
)
