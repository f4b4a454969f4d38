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
    from sfumato.attacks.census.blocks import BlockReconstruction, reconstruct_blocks
    from sfumato.attacks.census.census_attack import CensusReconstruction
    from sfumato.attacks.census.person_types import PersonTypes
    from sfumato.attacks.census.published_tables import (
        PublishedCounts,
        PublishedMean,
        PublishedMedian,
        PublishedTable,
    )
    from sfumato.attacks.census.table_reconstruction import (
        ContradictoryTables,
        TableReconstruction,
        all_reconstructions,
        reconstruct_tables,
    )
    from sfumato.attacks.inference.attribute_inference import AttributeInference
    from sfumato.attacks.inference.canary_exposure import CanaryExposure
    from sfumato.attacks.inference.linkability import Linkability
    from sfumato.attacks.inference.model_inversion import LabeledExamples, ModelInversion
    from sfumato.attacks.inference.singling_out import SinglingOut
    from sfumato.attacks.integer_programs.contradiction import contradiction
    from sfumato.attacks.integer_programs.integer_program import (
        Infeasible,
        IntegerProgram,
        ProgramSolution,
        Unsolved,
    )
    from sfumato.attacks.integer_programs.lp_format import parse_lp, read_lp
    from sfumato.attacks.integer_programs.variability import (
        SolutionVariability,
        group_counts,
        iterate_solutions,
        solution_variability,
    )
    from sfumato.attacks.linkage.comparison_levels import ComparisonLevels
    from sfumato.attacks.linkage.equality_join import EqualityLinkage
    from sfumato.attacks.linkage.fellegi_sunter import ProbabilisticLinkage
    from sfumato.attacks.linkage.scoreboard import KnownRatings, RatingMatrix, ScoreboardLinkage
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
    from sfumato.attacks.syntactic.downcoding import DowncodingAttack
    from sfumato.attacks.syntactic.homogeneity import HomogeneityAttack
    from sfumato.attacks.syntactic.intersection import IntersectionAttack
    from sfumato.attacks.syntactic.minimality import MinimalityAttack
    from sfumato.attacks.syntactic.skewness import SkewnessAttack
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
    "AttributeInference",
    "BlockReconstruction",
    "CanaryExposure",
    "CensusReconstruction",
    "Codebook",
    "Comparison",
    "ComparisonLevels",
    "ContradictoryTables",
    "Differencing",
    "DifferencingPair",
    "DowncodingAttack",
    "EqualityLinkage",
    "Findings",
    "FingerprintingReport",
    "HomogeneityAttack",
    "Infeasible",
    "IntegerProgram",
    "IntersectionAttack",
    "Knowledge",
    "KnownRatings",
    "LabeledExamples",
    "LinearReconstruction",
    "Linkability",
    "MembershipAttack",
    "MembershipReport",
    "MinimalityAttack",
    "ModelInversion",
    "OperatingPoint",
    "PackedBits",
    "PersonTypes",
    "PredictedPower",
    "ProbabilisticLinkage",
    "ProgramSolution",
    "PublishedCounts",
    "PublishedMean",
    "PublishedMedian",
    "PublishedTable",
    "RatingMatrix",
    "ScoreboardLinkage",
    "SinglingOut",
    "SkewnessAttack",
    "SolutionVariability",
    "TableReconstruction",
    "TardosCode",
    "TargetGuesses",
    "Tracing",
    "Unsolved",
    "all_reconstructions",
    "compare",
    "contradiction",
    "differencing_pairs",
    "fingerprinting_experiment",
    "group_counts",
    "iterate_solutions",
    "lira",
    "loss_threshold",
    "membership_report",
    "parse_lp",
    "random_subset_queries",
    "read_lp",
    "reconstruct_blocks",
    "reconstruct_tables",
    "reconstruction_accuracy",
    "rmia",
    "scaled_confidence",
    "solution_variability",
    "tracing_power",
    "worst_case_tracing",
]

__getattr__, __dir__ = attach(
    __name__,
    {
        "Attack": "sfumato.attacks.base.attack",
        "AttackBound": "sfumato.attacks.base.loss_bounds",
        "AttackCurve": "sfumato.attacks.base.attack_curve",
        "AttributeInference": "sfumato.attacks.inference.attribute_inference",
        "BlockReconstruction": "sfumato.attacks.census.blocks",
        "CanaryExposure": "sfumato.attacks.inference.canary_exposure",
        "CensusReconstruction": "sfumato.attacks.census.census_attack",
        "Codebook": "sfumato.attacks.tracing.fingerprinting",
        "Comparison": "sfumato.attacks.base.comparison",
        "ComparisonLevels": "sfumato.attacks.linkage.comparison_levels",
        "ContradictoryTables": "sfumato.attacks.census.table_reconstruction",
        "Differencing": "sfumato.attacks.reconstruction.differencing",
        "DifferencingPair": "sfumato.attacks.reconstruction.differencing",
        "DowncodingAttack": "sfumato.attacks.syntactic.downcoding",
        "EqualityLinkage": "sfumato.attacks.linkage.equality_join",
        "Findings": "sfumato.attacks.base.findings",
        "FingerprintingReport": "sfumato.attacks.tracing.fingerprinting",
        "HomogeneityAttack": "sfumato.attacks.syntactic.homogeneity",
        "Infeasible": "sfumato.attacks.integer_programs.integer_program",
        "IntegerProgram": "sfumato.attacks.integer_programs.integer_program",
        "IntersectionAttack": "sfumato.attacks.syntactic.intersection",
        "Knowledge": "sfumato.attacks.base.knowledge",
        "KnownRatings": "sfumato.attacks.linkage.scoreboard",
        "LabeledExamples": "sfumato.attacks.inference.model_inversion",
        "LinearReconstruction": "sfumato.attacks.reconstruction.linear_reconstruction",
        "Linkability": "sfumato.attacks.inference.linkability",
        "MembershipAttack": "sfumato.attacks.membership.membership_attack",
        "MembershipReport": "sfumato.attacks.membership.report",
        "MinimalityAttack": "sfumato.attacks.syntactic.minimality",
        "ModelInversion": "sfumato.attacks.inference.model_inversion",
        "OperatingPoint": "sfumato.attacks.membership.report",
        "PackedBits": "sfumato.attacks.tracing.attribute_rows",
        "PersonTypes": "sfumato.attacks.census.person_types",
        "PredictedPower": "sfumato.attacks.tracing.predicted_power",
        "ProbabilisticLinkage": "sfumato.attacks.linkage.fellegi_sunter",
        "ProgramSolution": "sfumato.attacks.integer_programs.integer_program",
        "PublishedCounts": "sfumato.attacks.census.published_tables",
        "PublishedMean": "sfumato.attacks.census.published_tables",
        "PublishedMedian": "sfumato.attacks.census.published_tables",
        "PublishedTable": "sfumato.attacks.census.published_tables",
        "RatingMatrix": "sfumato.attacks.linkage.scoreboard",
        "ScoreboardLinkage": "sfumato.attacks.linkage.scoreboard",
        "SinglingOut": "sfumato.attacks.inference.singling_out",
        "SkewnessAttack": "sfumato.attacks.syntactic.skewness",
        "SolutionVariability": "sfumato.attacks.integer_programs.variability",
        "TableReconstruction": "sfumato.attacks.census.table_reconstruction",
        "TardosCode": "sfumato.attacks.tracing.fingerprinting",
        "TargetGuesses": "sfumato.attacks.base.target_guesses",
        "Tracing": "sfumato.attacks.tracing.tracing_attack",
        "Unsolved": "sfumato.attacks.integer_programs.integer_program",
        "all_reconstructions": "sfumato.attacks.census.table_reconstruction",
        "compare": "sfumato.attacks.base.comparison",
        "contradiction": "sfumato.attacks.integer_programs.contradiction",
        "differencing_pairs": "sfumato.attacks.reconstruction.differencing",
        "fingerprinting_experiment": "sfumato.attacks.tracing.fingerprinting",
        "group_counts": "sfumato.attacks.integer_programs.variability",
        "iterate_solutions": "sfumato.attacks.integer_programs.variability",
        "lira": "sfumato.attacks.membership.lira",
        "loss_threshold": "sfumato.attacks.membership.signals",
        "membership_report": "sfumato.attacks.membership.report",
        "parse_lp": "sfumato.attacks.integer_programs.lp_format",
        "random_subset_queries": "sfumato.attacks.reconstruction.linear_reconstruction",
        "read_lp": "sfumato.attacks.integer_programs.lp_format",
        "reconstruct_blocks": "sfumato.attacks.census.blocks",
        "reconstruct_tables": "sfumato.attacks.census.table_reconstruction",
        "reconstruction_accuracy": "sfumato.attacks.reconstruction.linear_reconstruction",
        "rmia": "sfumato.attacks.membership.rmia",
        "scaled_confidence": "sfumato.attacks.membership.signals",
        "solution_variability": "sfumato.attacks.integer_programs.variability",
        "tracing_power": "sfumato.attacks.tracing.predicted_power",
        "worst_case_tracing": "sfumato.attacks.tracing.worst_case_tracing",
    },
)
