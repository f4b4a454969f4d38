"""Randomized response for surveys: designs, estimates, risks, plans, tests and sheets to print.

Every design states the exact chance of each answer for each truth; all else follows from that.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from sfumato._lazy import attach

if TYPE_CHECKING:
    from sfumato.local.surveys.binary import BinaryDesign
    from sfumato.local.surveys.birthdays import birthday_share
    from sfumato.local.surveys.categories import ForcedCategory
    from sfumato.local.surveys.crosswise import Crosswise
    from sfumato.local.surveys.design import Design
    from sfumato.local.surveys.forced_response import ForcedResponse
    from sfumato.local.surveys.planning import (
        Plan,
        SamplesPlan,
        power,
        power_between,
        respondents_between,
        respondents_for_margin,
        respondents_to_tell,
        samples_for_margin,
    )
    from sfumato.local.surveys.prevalence import Prevalence
    from sfumato.local.surveys.risk import CategoryRisk, RespondentRisk
    from sfumato.local.surveys.shares import Shares
    from sfumato.local.surveys.sheets.sheet import LANGUAGES, Sheet, instruction_sheet
    from sfumato.local.surveys.tasks import Kind, Task
    from sfumato.local.surveys.testing import (
        Finding,
        chi_square_power,
        goodness_of_fit,
        independence,
        two_sample,
    )
    from sfumato.local.surveys.two_coins import TwoCoins
    from sfumato.local.surveys.two_samples import TwoSamplePrevalence, UnrelatedQuestionTwoSamples
    from sfumato.local.surveys.unrelated_question import UnrelatedQuestion
    from sfumato.local.surveys.warner import Warner
    from sfumato.local.surveys.weighting import Stratified, Weighted, stratified, weighted

__all__ = [
    "LANGUAGES",
    "BinaryDesign",
    "CategoryRisk",
    "Crosswise",
    "Design",
    "Finding",
    "ForcedCategory",
    "ForcedResponse",
    "Kind",
    "Plan",
    "Prevalence",
    "RespondentRisk",
    "SamplesPlan",
    "Shares",
    "Sheet",
    "Stratified",
    "Task",
    "TwoCoins",
    "TwoSamplePrevalence",
    "UnrelatedQuestion",
    "UnrelatedQuestionTwoSamples",
    "Warner",
    "Weighted",
    "birthday_share",
    "chi_square_power",
    "goodness_of_fit",
    "independence",
    "instruction_sheet",
    "power",
    "power_between",
    "respondents_between",
    "respondents_for_margin",
    "respondents_to_tell",
    "samples_for_margin",
    "stratified",
    "two_sample",
    "weighted",
]

__getattr__, __dir__ = attach(
    __name__,
    {
        "LANGUAGES": "sfumato.local.surveys.sheets.sheet",
        "BinaryDesign": "sfumato.local.surveys.binary",
        "CategoryRisk": "sfumato.local.surveys.risk",
        "Crosswise": "sfumato.local.surveys.crosswise",
        "Design": "sfumato.local.surveys.design",
        "Finding": "sfumato.local.surveys.testing",
        "ForcedCategory": "sfumato.local.surveys.categories",
        "ForcedResponse": "sfumato.local.surveys.forced_response",
        "Kind": "sfumato.local.surveys.tasks",
        "Plan": "sfumato.local.surveys.planning",
        "Prevalence": "sfumato.local.surveys.prevalence",
        "RespondentRisk": "sfumato.local.surveys.risk",
        "SamplesPlan": "sfumato.local.surveys.planning",
        "Shares": "sfumato.local.surveys.shares",
        "Sheet": "sfumato.local.surveys.sheets.sheet",
        "Stratified": "sfumato.local.surveys.weighting",
        "Task": "sfumato.local.surveys.tasks",
        "TwoCoins": "sfumato.local.surveys.two_coins",
        "TwoSamplePrevalence": "sfumato.local.surveys.two_samples",
        "UnrelatedQuestion": "sfumato.local.surveys.unrelated_question",
        "UnrelatedQuestionTwoSamples": "sfumato.local.surveys.two_samples",
        "Warner": "sfumato.local.surveys.warner",
        "Weighted": "sfumato.local.surveys.weighting",
        "birthday_share": "sfumato.local.surveys.birthdays",
        "chi_square_power": "sfumato.local.surveys.testing",
        "goodness_of_fit": "sfumato.local.surveys.testing",
        "independence": "sfumato.local.surveys.testing",
        "instruction_sheet": "sfumato.local.surveys.sheets.sheet",
        "power": "sfumato.local.surveys.planning",
        "power_between": "sfumato.local.surveys.planning",
        "respondents_between": "sfumato.local.surveys.planning",
        "respondents_for_margin": "sfumato.local.surveys.planning",
        "respondents_to_tell": "sfumato.local.surveys.planning",
        "samples_for_margin": "sfumato.local.surveys.planning",
        "stratified": "sfumato.local.surveys.weighting",
        "two_sample": "sfumato.local.surveys.testing",
        "weighted": "sfumato.local.surveys.weighting",
    },
)
