"""Adaptive analysis: valid answers from data that are looked at again and again.

What is private about the rows of a sample generalises from it. A `ReusableHoldout` answers queries that were
chosen by its own answers; bounds state how far from the population they can be, each with its theorem.

>>> from sfumato import adaptive
>>> adaptive.required_rows(error=0.3, queries=5, beta=0.05) < 5000
True
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from sfumato._lazy import attach

if TYPE_CHECKING:
    from sfumato.adaptive.generalization.adaptive_means import (
        AdaptiveMeans,
        best_noise,
        compare_bounds,
        required_rows,
    )
    from sfumato.adaptive.generalization.generalization_bound import GeneralizationBound
    from sfumato.adaptive.generalization.max_information import (
        corrected_p_value,
        max_information,
        max_information_bound,
    )
    from sfumato.adaptive.generalization.mutual_information import mutual_information, selection_bias
    from sfumato.adaptive.generalization.transcripts import (
        log_queries,
        sample_splitting_bound,
        transcript_bound,
    )
    from sfumato.adaptive.generalization.transfer import transfer_bound
    from sfumato.adaptive.holdout.generic_holdout import GenericHoldout
    from sfumato.adaptive.holdout.guess_and_check import CheckedGuess, GuessAndCheck
    from sfumato.adaptive.holdout.ladder import Ladder, ladder_bound
    from sfumato.adaptive.holdout.reusable_holdout import HoldoutAnswer, ReusableHoldout
    from sfumato.adaptive.holdout.reusable_scorer import ReusableScorer, TrainOnAll
    from sfumato.adaptive.holdout.thresholdout import Thresholdout
    from sfumato.adaptive.inference.count_posterior import multinomial_posterior, poisson_posterior
    from sfumato.adaptive.inference.parametric_bootstrap import BootstrapInterval, parametric_bootstrap
    from sfumato.adaptive.inference.posterior_draws import PosteriorDraws
    from sfumato.adaptive.inference.regression_posterior import regression_posterior
    from sfumato.adaptive.testing.ab_test import ABTest
    from sfumato.adaptive.testing.hypothesis_tests import AdaptiveTests

__all__ = [
    "ABTest",
    "AdaptiveMeans",
    "AdaptiveTests",
    "BootstrapInterval",
    "CheckedGuess",
    "GeneralizationBound",
    "GenericHoldout",
    "GuessAndCheck",
    "HoldoutAnswer",
    "Ladder",
    "PosteriorDraws",
    "ReusableHoldout",
    "ReusableScorer",
    "Thresholdout",
    "TrainOnAll",
    "best_noise",
    "compare_bounds",
    "corrected_p_value",
    "ladder_bound",
    "log_queries",
    "max_information",
    "max_information_bound",
    "multinomial_posterior",
    "mutual_information",
    "parametric_bootstrap",
    "poisson_posterior",
    "regression_posterior",
    "required_rows",
    "sample_splitting_bound",
    "selection_bias",
    "transcript_bound",
    "transfer_bound",
]

__getattr__, __dir__ = attach(
    __name__,
    {
        "ABTest": "sfumato.adaptive.testing.ab_test",
        "AdaptiveMeans": "sfumato.adaptive.generalization.adaptive_means",
        "AdaptiveTests": "sfumato.adaptive.testing.hypothesis_tests",
        "BootstrapInterval": "sfumato.adaptive.inference.parametric_bootstrap",
        "CheckedGuess": "sfumato.adaptive.holdout.guess_and_check",
        "GeneralizationBound": "sfumato.adaptive.generalization.generalization_bound",
        "GenericHoldout": "sfumato.adaptive.holdout.generic_holdout",
        "GuessAndCheck": "sfumato.adaptive.holdout.guess_and_check",
        "HoldoutAnswer": "sfumato.adaptive.holdout.reusable_holdout",
        "Ladder": "sfumato.adaptive.holdout.ladder",
        "PosteriorDraws": "sfumato.adaptive.inference.posterior_draws",
        "ReusableHoldout": "sfumato.adaptive.holdout.reusable_holdout",
        "ReusableScorer": "sfumato.adaptive.holdout.reusable_scorer",
        "Thresholdout": "sfumato.adaptive.holdout.thresholdout",
        "TrainOnAll": "sfumato.adaptive.holdout.reusable_scorer",
        "best_noise": "sfumato.adaptive.generalization.adaptive_means",
        "compare_bounds": "sfumato.adaptive.generalization.adaptive_means",
        "corrected_p_value": "sfumato.adaptive.generalization.max_information",
        "ladder_bound": "sfumato.adaptive.holdout.ladder",
        "log_queries": "sfumato.adaptive.generalization.transcripts",
        "max_information": "sfumato.adaptive.generalization.max_information",
        "max_information_bound": "sfumato.adaptive.generalization.max_information",
        "multinomial_posterior": "sfumato.adaptive.inference.count_posterior",
        "mutual_information": "sfumato.adaptive.generalization.mutual_information",
        "parametric_bootstrap": "sfumato.adaptive.inference.parametric_bootstrap",
        "poisson_posterior": "sfumato.adaptive.inference.count_posterior",
        "regression_posterior": "sfumato.adaptive.inference.regression_posterior",
        "required_rows": "sfumato.adaptive.generalization.adaptive_means",
        "sample_splitting_bound": "sfumato.adaptive.generalization.transcripts",
        "selection_bias": "sfumato.adaptive.generalization.mutual_information",
        "transcript_bound": "sfumato.adaptive.generalization.transcripts",
        "transfer_bound": "sfumato.adaptive.generalization.transfer",
    },
)
