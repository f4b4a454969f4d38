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
    from sfumato.attacks.inference.attribute_inference import AttributeInference
    from sfumato.attacks.inference.canary_exposure import CanaryExposure
    from sfumato.attacks.inference.linkability import Linkability
    from sfumato.attacks.inference.model_inversion import LabeledExamples, ModelInversion
    from sfumato.attacks.inference.singling_out import SinglingOut
    from sfumato.attacks.membership.lira import lira
    from sfumato.attacks.membership.membership_attack import MembershipAttack
    from sfumato.attacks.membership.report import MembershipReport, OperatingPoint, membership_report
    from sfumato.attacks.membership.rmia import rmia
    from sfumato.attacks.membership.signals import loss_threshold, scaled_confidence
    from sfumato.attacks.syntactic.downcoding import DowncodingAttack
    from sfumato.attacks.syntactic.homogeneity import HomogeneityAttack
    from sfumato.attacks.syntactic.intersection import IntersectionAttack
    from sfumato.attacks.syntactic.minimality import MinimalityAttack
    from sfumato.attacks.syntactic.skewness import SkewnessAttack

__all__ = [
    "Attack",
    "AttackBound",
    "AttackCurve",
    "AttributeInference",
    "CanaryExposure",
    "Comparison",
    "DowncodingAttack",
    "Findings",
    "HomogeneityAttack",
    "IntersectionAttack",
    "Knowledge",
    "LabeledExamples",
    "Linkability",
    "MembershipAttack",
    "MembershipReport",
    "MinimalityAttack",
    "ModelInversion",
    "OperatingPoint",
    "SinglingOut",
    "SkewnessAttack",
    "TargetGuesses",
    "compare",
    "lira",
    "loss_threshold",
    "membership_report",
    "rmia",
    "scaled_confidence",
]

__getattr__, __dir__ = attach(
    __name__,
    {
        "Attack": "sfumato.attacks.base.attack",
        "AttackBound": "sfumato.attacks.base.loss_bounds",
        "AttackCurve": "sfumato.attacks.base.attack_curve",
        "AttributeInference": "sfumato.attacks.inference.attribute_inference",
        "CanaryExposure": "sfumato.attacks.inference.canary_exposure",
        "Comparison": "sfumato.attacks.base.comparison",
        "DowncodingAttack": "sfumato.attacks.syntactic.downcoding",
        "Findings": "sfumato.attacks.base.findings",
        "HomogeneityAttack": "sfumato.attacks.syntactic.homogeneity",
        "IntersectionAttack": "sfumato.attacks.syntactic.intersection",
        "Knowledge": "sfumato.attacks.base.knowledge",
        "LabeledExamples": "sfumato.attacks.inference.model_inversion",
        "Linkability": "sfumato.attacks.inference.linkability",
        "MembershipAttack": "sfumato.attacks.membership.membership_attack",
        "MembershipReport": "sfumato.attacks.membership.report",
        "MinimalityAttack": "sfumato.attacks.syntactic.minimality",
        "ModelInversion": "sfumato.attacks.inference.model_inversion",
        "OperatingPoint": "sfumato.attacks.membership.report",
        "SinglingOut": "sfumato.attacks.inference.singling_out",
        "SkewnessAttack": "sfumato.attacks.syntactic.skewness",
        "TargetGuesses": "sfumato.attacks.base.target_guesses",
        "compare": "sfumato.attacks.base.comparison",
        "lira": "sfumato.attacks.membership.lira",
        "loss_threshold": "sfumato.attacks.membership.signals",
        "membership_report": "sfumato.attacks.membership.report",
        "rmia": "sfumato.attacks.membership.rmia",
        "scaled_confidence": "sfumato.attacks.membership.signals",
    },
)
