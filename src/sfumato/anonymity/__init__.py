"""Syntactic anonymity: k-anonymity, l-diversity, t-closeness and re-identification risk of a table.

These notions describe a table. They are no differential privacy: nothing here has a ``privacy_loss``,
nothing can be charged to a ledger, and anonymising a table first never lowers the price of a private query on
it. What is computed here is the curator's own: a measure of real rows is an answer that nobody paid for, and
the chosen generalisation itself shows something of the rows.

>>> import pyarrow as pa
>>> from sfumato import anonymity
>>> people = pa.table({"age": [31, 34, 52, 58], "sex": ["F", "F", "M", "M"]})
>>> data = anonymity.Microdata(people, quasi_identifiers={"age": anonymity.Intervals((10, 50)), "sex": None})
>>> data.hierarchies["age"].labels[1]
('[30, 40)', '[50, 60)')
>>> anonymity.check(data, levels={"age": 1}).k
2
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from sfumato._lazy import attach

if TYPE_CHECKING:
    from sfumato.anonymity.generalization.full_domain import Generalization, generalize
    from sfumato.anonymity.generalization.lattice import NodeState
    from sfumato.anonymity.generalization.lattice_nodes import LatticeNodes
    from sfumato.anonymity.generalization.losses import (
        AverageClassSize,
        Discernibility,
        InformationLoss,
        NonUniformEntropy,
        Precision,
    )
    from sfumato.anonymity.hierarchies.dates import Dates
    from sfumato.anonymity.hierarchies.hierarchy import GeneralizationHierarchy
    from sfumato.anonymity.hierarchies.intervals import Intervals
    from sfumato.anonymity.hierarchies.prefixes import Prefixes
    from sfumato.anonymity.hierarchies.suppression import Suppression
    from sfumato.anonymity.privacy_models.base import KAnonymity, PrivacyModel
    from sfumato.anonymity.privacy_models.closeness import BetaLikeness, DeltaDisclosurePrivacy, TCloseness
    from sfumato.anonymity.privacy_models.diversity import (
        AlphaDeassociation,
        DistinctLDiversity,
        EntropyLDiversity,
        RecursiveLDiversity,
    )
    from sfumato.anonymity.recoding.choice_attack import ChoiceFindings, RecodingChoiceAttack
    from sfumato.anonymity.recoding.local_recoding import LocalRecoding, recode_locally
    from sfumato.anonymity.recoding.mondrian import MondrianRecoding, mondrian
    from sfumato.anonymity.report.check import check
    from sfumato.anonymity.report.report import Report
    from sfumato.anonymity.table.microdata import Microdata

__all__ = [
    "AlphaDeassociation",
    "AverageClassSize",
    "BetaLikeness",
    "ChoiceFindings",
    "Dates",
    "DeltaDisclosurePrivacy",
    "Discernibility",
    "DistinctLDiversity",
    "EntropyLDiversity",
    "Generalization",
    "GeneralizationHierarchy",
    "InformationLoss",
    "Intervals",
    "KAnonymity",
    "LatticeNodes",
    "LocalRecoding",
    "Microdata",
    "MondrianRecoding",
    "NodeState",
    "NonUniformEntropy",
    "Precision",
    "Prefixes",
    "PrivacyModel",
    "RecodingChoiceAttack",
    "RecursiveLDiversity",
    "Report",
    "Suppression",
    "TCloseness",
    "check",
    "generalize",
    "mondrian",
    "recode_locally",
]

__getattr__, __dir__ = attach(
    __name__,
    {
        "AlphaDeassociation": "sfumato.anonymity.privacy_models.diversity",
        "AverageClassSize": "sfumato.anonymity.generalization.losses",
        "BetaLikeness": "sfumato.anonymity.privacy_models.closeness",
        "ChoiceFindings": "sfumato.anonymity.recoding.choice_attack",
        "Dates": "sfumato.anonymity.hierarchies.dates",
        "DeltaDisclosurePrivacy": "sfumato.anonymity.privacy_models.closeness",
        "Discernibility": "sfumato.anonymity.generalization.losses",
        "DistinctLDiversity": "sfumato.anonymity.privacy_models.diversity",
        "EntropyLDiversity": "sfumato.anonymity.privacy_models.diversity",
        "Generalization": "sfumato.anonymity.generalization.full_domain",
        "GeneralizationHierarchy": "sfumato.anonymity.hierarchies.hierarchy",
        "InformationLoss": "sfumato.anonymity.generalization.losses",
        "Intervals": "sfumato.anonymity.hierarchies.intervals",
        "KAnonymity": "sfumato.anonymity.privacy_models.base",
        "LatticeNodes": "sfumato.anonymity.generalization.lattice_nodes",
        "LocalRecoding": "sfumato.anonymity.recoding.local_recoding",
        "Microdata": "sfumato.anonymity.table.microdata",
        "MondrianRecoding": "sfumato.anonymity.recoding.mondrian",
        "NodeState": "sfumato.anonymity.generalization.lattice",
        "NonUniformEntropy": "sfumato.anonymity.generalization.losses",
        "Precision": "sfumato.anonymity.generalization.losses",
        "Prefixes": "sfumato.anonymity.hierarchies.prefixes",
        "PrivacyModel": "sfumato.anonymity.privacy_models.base",
        "RecodingChoiceAttack": "sfumato.anonymity.recoding.choice_attack",
        "RecursiveLDiversity": "sfumato.anonymity.privacy_models.diversity",
        "Report": "sfumato.anonymity.report.report",
        "Suppression": "sfumato.anonymity.hierarchies.suppression",
        "TCloseness": "sfumato.anonymity.privacy_models.closeness",
        "check": "sfumato.anonymity.report.check",
        "generalize": "sfumato.anonymity.generalization.full_domain",
        "mondrian": "sfumato.anonymity.recoding.mondrian",
        "recode_locally": "sfumato.anonymity.recoding.local_recoding",
    },
)
