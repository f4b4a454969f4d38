"""Randomized response for surveys: designs, estimates, risks, plans, tests and sheets to print.

Every design states the exact chance of each answer for each truth; all else follows from that.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from sfumato._lazy import attach

if TYPE_CHECKING:
    from sfumato.local.surveys.designs.binary import BinaryDesign
    from sfumato.local.surveys.designs.crosswise import Crosswise, birthday_share
    from sfumato.local.surveys.designs.design import Design
    from sfumato.local.surveys.designs.forced_category import ForcedCategory
    from sfumato.local.surveys.designs.kuk import Kuk
    from sfumato.local.surveys.designs.matrix import MatrixDesign
    from sfumato.local.surveys.designs.one_sided import Mangat, Triangular
    from sfumato.local.surveys.designs.tasks import Kind, Task
    from sfumato.local.surveys.designs.two_groups import CheatingDetection, StochasticLieDetector
    from sfumato.local.surveys.designs.two_samples import TwoSamplePrevalence, UnrelatedQuestionTwoSamples
    from sfumato.local.surveys.designs.unrelated_question import UnrelatedQuestion
    from sfumato.local.surveys.designs.yes_or_no import ForcedResponse, TwoCoins, Warner
    from sfumato.local.surveys.estimates.category_shares import Shares
    from sfumato.local.surveys.estimates.matrix_shares import MatrixShares
    from sfumato.local.surveys.estimates.noncompliance import CheatingEstimate, LyingEstimate
    from sfumato.local.surveys.estimates.prevalence import Prevalence
    from sfumato.local.surveys.estimates.prevalence_difference import PrevalenceDifference
    from sfumato.local.surveys.estimates.risk import CategoryRisk, RespondentRisk
    from sfumato.local.surveys.estimates.shares_difference import SharesDifference
    from sfumato.local.surveys.inference.correlation import RandomizedCorrelation, correlation
    from sfumato.local.surveys.inference.hypothesis_tests import (
        Finding,
        goodness_of_fit,
        independence,
        two_sample,
    )
    from sfumato.local.surveys.inference.power import (
        chi_square_power,
        power,
        power_between,
        respondents_between,
        respondents_to_tell,
    )
    from sfumato.local.surveys.inference.power_curve import PowerAnalysis, PowerCurve, warner_for_epsilon
    from sfumato.local.surveys.inference.sample_size import (
        Plan,
        SamplesPlan,
        respondents_for_margin,
        samples_for_margin,
    )
    from sfumato.local.surveys.inference.weighting import Stratified, Weighted, stratified, weighted
    from sfumato.local.surveys.quantitative.additive import AdditiveScrambling
    from sfumato.local.surveys.quantitative.mean_planning import respondents_for_mean
    from sfumato.local.surveys.quantitative.multiplicative import MultiplicativeScrambling
    from sfumato.local.surveys.quantitative.number_design import NumberDesign
    from sfumato.local.surveys.quantitative.number_estimate import NumberEstimate
    from sfumato.local.surveys.quantitative.unrelated_number import UnrelatedNumber
    from sfumato.local.surveys.regression.linear import LinearFit, linear_regression
    from sfumato.local.surveys.regression.logistic import LogisticFit, logistic_regression
    from sfumato.local.surveys.regression.mixed import MixedLogisticFit, mixed_logistic_regression
    from sfumato.local.surveys.regression.randomized_predictors import (
        PredictorModel,
        RandomizedPredictorFit,
        randomized_predictor_regression,
    )
    from sfumato.local.surveys.reports.survey_report import SurveyReport
    from sfumato.local.surveys.scores.score_estimate import ScoreEstimate
    from sfumato.local.surveys.scores.sum_score import SumScore
    from sfumato.local.surveys.sheets.sheet import Sheet, instruction_sheet
    from sfumato.local.surveys.sheets.words import LANGUAGES

__all__ = [
    "LANGUAGES",
    "AdditiveScrambling",
    "BinaryDesign",
    "CategoryRisk",
    "CheatingDetection",
    "CheatingEstimate",
    "Crosswise",
    "Design",
    "Finding",
    "ForcedCategory",
    "ForcedResponse",
    "Kind",
    "Kuk",
    "LinearFit",
    "LogisticFit",
    "LyingEstimate",
    "Mangat",
    "MatrixDesign",
    "MatrixShares",
    "MixedLogisticFit",
    "MultiplicativeScrambling",
    "NumberDesign",
    "NumberEstimate",
    "Plan",
    "PowerAnalysis",
    "PowerCurve",
    "PredictorModel",
    "Prevalence",
    "PrevalenceDifference",
    "RandomizedCorrelation",
    "RandomizedPredictorFit",
    "RespondentRisk",
    "SamplesPlan",
    "ScoreEstimate",
    "Shares",
    "SharesDifference",
    "Sheet",
    "StochasticLieDetector",
    "Stratified",
    "SumScore",
    "SurveyReport",
    "Task",
    "Triangular",
    "TwoCoins",
    "TwoSamplePrevalence",
    "UnrelatedNumber",
    "UnrelatedQuestion",
    "UnrelatedQuestionTwoSamples",
    "Warner",
    "Weighted",
    "birthday_share",
    "chi_square_power",
    "correlation",
    "goodness_of_fit",
    "independence",
    "instruction_sheet",
    "linear_regression",
    "logistic_regression",
    "mixed_logistic_regression",
    "power",
    "power_between",
    "randomized_predictor_regression",
    "respondents_between",
    "respondents_for_margin",
    "respondents_for_mean",
    "respondents_to_tell",
    "samples_for_margin",
    "stratified",
    "two_sample",
    "warner_for_epsilon",
    "weighted",
]

__getattr__, __dir__ = attach(
    __name__,
    {
        "LANGUAGES": "sfumato.local.surveys.sheets.words",
        "AdditiveScrambling": "sfumato.local.surveys.quantitative.additive",
        "BinaryDesign": "sfumato.local.surveys.designs.binary",
        "CategoryRisk": "sfumato.local.surveys.estimates.risk",
        "CheatingDetection": "sfumato.local.surveys.designs.two_groups",
        "CheatingEstimate": "sfumato.local.surveys.estimates.noncompliance",
        "Crosswise": "sfumato.local.surveys.designs.crosswise",
        "Design": "sfumato.local.surveys.designs.design",
        "Finding": "sfumato.local.surveys.inference.hypothesis_tests",
        "ForcedCategory": "sfumato.local.surveys.designs.forced_category",
        "ForcedResponse": "sfumato.local.surveys.designs.yes_or_no",
        "Kind": "sfumato.local.surveys.designs.tasks",
        "Kuk": "sfumato.local.surveys.designs.kuk",
        "LinearFit": "sfumato.local.surveys.regression.linear",
        "LogisticFit": "sfumato.local.surveys.regression.logistic",
        "LyingEstimate": "sfumato.local.surveys.estimates.noncompliance",
        "Mangat": "sfumato.local.surveys.designs.one_sided",
        "MatrixDesign": "sfumato.local.surveys.designs.matrix",
        "MatrixShares": "sfumato.local.surveys.estimates.matrix_shares",
        "MultiplicativeScrambling": "sfumato.local.surveys.quantitative.multiplicative",
        "NumberDesign": "sfumato.local.surveys.quantitative.number_design",
        "NumberEstimate": "sfumato.local.surveys.quantitative.number_estimate",
        "Plan": "sfumato.local.surveys.inference.sample_size",
        "PowerAnalysis": "sfumato.local.surveys.inference.power_curve",
        "PowerCurve": "sfumato.local.surveys.inference.power_curve",
        "MixedLogisticFit": "sfumato.local.surveys.regression.mixed",
        "PredictorModel": "sfumato.local.surveys.regression.randomized_predictors",
        "Prevalence": "sfumato.local.surveys.estimates.prevalence",
        "PrevalenceDifference": "sfumato.local.surveys.estimates.prevalence_difference",
        "RandomizedCorrelation": "sfumato.local.surveys.inference.correlation",
        "RandomizedPredictorFit": "sfumato.local.surveys.regression.randomized_predictors",
        "RespondentRisk": "sfumato.local.surveys.estimates.risk",
        "SamplesPlan": "sfumato.local.surveys.inference.sample_size",
        "ScoreEstimate": "sfumato.local.surveys.scores.score_estimate",
        "Shares": "sfumato.local.surveys.estimates.category_shares",
        "SharesDifference": "sfumato.local.surveys.estimates.shares_difference",
        "Sheet": "sfumato.local.surveys.sheets.sheet",
        "StochasticLieDetector": "sfumato.local.surveys.designs.two_groups",
        "Stratified": "sfumato.local.surveys.inference.weighting",
        "SumScore": "sfumato.local.surveys.scores.sum_score",
        "SurveyReport": "sfumato.local.surveys.reports.survey_report",
        "Task": "sfumato.local.surveys.designs.tasks",
        "Triangular": "sfumato.local.surveys.designs.one_sided",
        "TwoCoins": "sfumato.local.surveys.designs.yes_or_no",
        "TwoSamplePrevalence": "sfumato.local.surveys.designs.two_samples",
        "UnrelatedNumber": "sfumato.local.surveys.quantitative.unrelated_number",
        "UnrelatedQuestion": "sfumato.local.surveys.designs.unrelated_question",
        "UnrelatedQuestionTwoSamples": "sfumato.local.surveys.designs.two_samples",
        "Warner": "sfumato.local.surveys.designs.yes_or_no",
        "Weighted": "sfumato.local.surveys.inference.weighting",
        "birthday_share": "sfumato.local.surveys.designs.crosswise",
        "chi_square_power": "sfumato.local.surveys.inference.power",
        "correlation": "sfumato.local.surveys.inference.correlation",
        "goodness_of_fit": "sfumato.local.surveys.inference.hypothesis_tests",
        "independence": "sfumato.local.surveys.inference.hypothesis_tests",
        "instruction_sheet": "sfumato.local.surveys.sheets.sheet",
        "linear_regression": "sfumato.local.surveys.regression.linear",
        "logistic_regression": "sfumato.local.surveys.regression.logistic",
        "mixed_logistic_regression": "sfumato.local.surveys.regression.mixed",
        "power": "sfumato.local.surveys.inference.power",
        "power_between": "sfumato.local.surveys.inference.power",
        "randomized_predictor_regression": "sfumato.local.surveys.regression.randomized_predictors",
        "respondents_between": "sfumato.local.surveys.inference.power",
        "respondents_for_margin": "sfumato.local.surveys.inference.sample_size",
        "respondents_for_mean": "sfumato.local.surveys.quantitative.mean_planning",
        "respondents_to_tell": "sfumato.local.surveys.inference.power",
        "samples_for_margin": "sfumato.local.surveys.inference.sample_size",
        "stratified": "sfumato.local.surveys.inference.weighting",
        "two_sample": "sfumato.local.surveys.inference.hypothesis_tests",
        "warner_for_epsilon": "sfumato.local.surveys.inference.power_curve",
        "weighted": "sfumato.local.surveys.inference.weighting",
    },
)
