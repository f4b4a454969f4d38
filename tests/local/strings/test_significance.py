"""How often strings that nobody has are found, where supports are few and chance is far from normal."""

from __future__ import annotations

import numpy as np
import pytest

from sfumato.local.device.frequency.count_mean_sketch import CountMeanSketchRandomizer
from sfumato.local.device.strings.randomizer import FINGERPRINTS
from sfumato.local.strings.code_counts import answers_of
from sfumato.local.strings.significance import judged
from tests.chance import accepts_only, at_most


@pytest.mark.parametrize("epsilon", [4.0, 8.0])
def test_rarely_supported_codes_are_found_wrongly_no_more_often_than_stated(epsilon: float) -> None:
    """Each round is wrong with a chance of 0.05 at most, and would be more often without that judgement."""
    wrong = np.zeros(2, int)
    for seed in range(90):
        device = CountMeanSketchRandomizer(
            epsilon=epsilon, domain=FINGERPRINTS, size=256, hashes=64, key=seed
        )
        answers, codes = answers_of(device), np.arange(2000)
        told = answers.tally(device.randomize_batch(np.arange(5000, 5200), rng=seed).records)
        supports = answers.supports(told, 200, codes)
        wrong += [judged(answers, supports, 200, codes, level).found.any() for level in (0.05, 0.9)]
    accepts_only(lambda count: at_most(count, 90)(0.05), int(wrong[0]), at_nine_tenths=int(wrong[1]))
