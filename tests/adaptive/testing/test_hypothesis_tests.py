"""Adaptive tests: thresholds of the whole tree add up to the level, and no strategy does better than that."""

from __future__ import annotations

import math

import numpy as np
import pytest

from sfumato.adaptive import AdaptiveTests
from sfumato.errors import ParameterError, RunExhausted


def test_the_thresholds_of_all_histories_add_up_to_the_level() -> None:
    for rejections in (1, 2, 4):
        tests = AdaptiveTests(level=0.05, rejections=rejections)
        total = 0.0
        for tested in range(400):
            for rejected in range(min(tested, rejections - 1) + 1):
                tests.tested, tests.rejected = tested, rejected
                total += math.comb(tested, rejected) * tests.threshold
        assert 0.037 < total <= 0.05


def test_a_stream_decides_by_its_threshold_and_ends() -> None:
    tests = AdaptiveTests(level=0.1, rejections=2)
    assert tests.threshold == pytest.approx(0.1 / 2 / 2)
    assert tests.test(0.0251) is False
    assert tests.threshold == pytest.approx(0.1 / 2 / 6)
    assert tests.test(0.1 / 2 / 6 * 0.999)
    assert tests.threshold == pytest.approx(0.1 * 2 / 2 / 12 / 2)
    assert tests.test(0.0)
    assert (tests.tested, tests.rejected, tests.threshold) == (3, 2, 0.0)
    with pytest.raises(RunExhausted, match="all 2 are used up"):
        tests.test(0.0)
    assert repr(tests) == "AdaptiveTests(3 tested, 2 of 2 rejections)"


def test_true_hypotheses_are_rejected_rarely() -> None:
    """Means of columns of noise, one after another."""
    level, runs, wrong = 0.2, 400, 0
    rng = np.random.default_rng(2)
    for _ in range(runs):
        columns = rng.normal(size=(50, 12))
        tests = AdaptiveTests(level=level, rejections=1)
        for column in range(12):
            z = columns[:, column].mean() * math.sqrt(50)
            if tests.test(math.erfc(abs(z) / math.sqrt(2))):
                wrong += 1
                break
    # At most the level; six deviations of a fair share of 400 runs.
    assert wrong <= runs * level + 6 * math.sqrt(runs * level * (1 - level))
    assert wrong > 0


def test_bad_parameters_are_refused() -> None:
    for call, message in (
        (lambda: AdaptiveTests(level=0.0), "level"),
        (lambda: AdaptiveTests(rejections=0), "rejections"),
        (lambda: AdaptiveTests().test(1.2), "p must"),
    ):
        with pytest.raises(ParameterError, match=message):
            call()
