"""The generic holdout: thresholds by counting strategies, few false confirmations, budgets."""

from __future__ import annotations

import copy
import itertools
import math
from typing import Any

import numpy as np
import pytest

from sfumato.adaptive import GenericHoldout
from sfumato.adaptive.holdout.query_mean import ROUNDING
from sfumato.errors import ParameterError, RunExhausted

ROWS = np.arange(4000) % 2


def test_the_threshold_counts_all_tests_that_a_strategy_can_ask() -> None:
    for hypotheses, discoveries in ((1, 1), (3, 1), (3, 2), (6, 1), (6, 2), (6, 4), (6, 6)):
        paths = {
            answers[:i]
            for answers in itertools.product((False, True), repeat=hypotheses)
            for i in range(hypotheses)
            if sum(answers[:i]) < discoveries
        }
        holdout = GenericHoldout(ROWS, level=0.1, hypotheses=hypotheses, discoveries=discoveries)
        assert holdout.threshold == pytest.approx(0.1 / len(paths), rel=1e-12)
        assert holdout.threshold * len(paths) <= 0.1


def test_it_confirms_by_the_threshold_and_ends_with_its_discoveries() -> None:
    holdout = GenericHoldout(ROWS, level=0.05, hypotheses=10, discoveries=2)
    limit = 0.05 / 55
    assert holdout.threshold == pytest.approx(limit)
    values = iter((limit * 1.01, math.nan, 1, limit * 0.99))
    answers = [holdout.confirm(lambda rows: next(values)) for _ in range(4)]
    assert answers == [False, False, False, True]
    assert holdout.confirm(lambda rows: np.float64(0.0 * len(rows)))
    assert repr(holdout) == "GenericHoldout(5 of 10 asked, 2 of 2 confirmed)"
    with pytest.raises(RunExhausted, match="all 2 discoveries are used up"):
        holdout.confirm(lambda rows: 0.0)


def test_it_ends_with_its_hypotheses() -> None:
    holdout = GenericHoldout(ROWS, hypotheses=2)
    assert not holdout.confirm(lambda rows: 0.5)
    assert not holdout.confirm_mean(lambda rows: rows, above=0.5)
    with pytest.raises(RunExhausted, match="all 2 hypotheses are used up"):
        holdout.confirm_mean(lambda rows: rows, above=0.1)
    assert (holdout.asked, holdout.confirmed) == (2, 0)


def test_means_are_confirmed_by_chernoff_s_bound() -> None:
    """The mean is a half; Chernoff's p-values of two claims are just below and above the threshold."""
    low, high = 0.0, 0.5
    for _ in range(60):
        claim = (low + high) / 2
        exponent = 4000 * (0.5 * math.log(0.5 / claim) + 0.5 * math.log(0.5 / (1 - claim)))
        low, high = (claim, high) if math.exp(-exponent) < 0.05 / 100 else (low, claim)
    for shift, wanted in ((-ROUNDING - 2e-7, True), (2e-7 - ROUNDING, False)):
        holdout = GenericHoldout(ROWS, hypotheses=100)
        assert holdout.confirm_mean(lambda rows: rows, above=low + shift) is wanted
    holdout = GenericHoldout(ROWS, hypotheses=100)
    assert 0.5 - low < holdout.mean_gap < 1.05 * (0.5 - low)
    assert holdout.confirm_mean(lambda rows: rows, above=0.5 - holdout.mean_gap)
    assert not GenericHoldout(ROWS).confirm_mean(lambda rows: np.ones(len(rows)), above=1.0)
    assert GenericHoldout(ROWS).confirm_mean(lambda rows: np.ones(len(rows)), above=0.9)


def test_false_hypotheses_are_confirmed_rarely_though_chosen_by_answers() -> None:
    """Column after column of noise; the next sign is chosen by whether the last one was confirmed."""
    rng, runs, wrong = np.random.default_rng(2), 300, 0
    for _ in range(runs):
        columns = rng.normal(size=(60, 12))
        holdout = GenericHoldout(columns, level=0.2, hypotheses=12, discoveries=2)
        sign, found = 1, False
        for column in range(12):
            if holdout.confirmed == 2:
                break

            def one_sided(rows: Any, sign: int = sign, column: int = column) -> float:
                return math.erfc(sign * rows[:, column].mean() * math.sqrt(60 / 2)) / 2

            confirmed = holdout.confirm(one_sided)
            found, sign = found or confirmed, sign if confirmed else -sign
        wrong += found
    # At most the level; six deviations of a share of 300 runs.
    assert 0 < wrong <= runs * 0.2 + 6 * math.sqrt(runs * 0.2 * 0.8)


def test_bad_parameters_and_tests_are_refused() -> None:
    holdout: Any = GenericHoldout(ROWS)
    make: Any = GenericHoldout
    refused: list[tuple[Any, str]] = [
        (lambda: make(3), "holdout must have rows"),
        (lambda: make(ROWS, level=0.0), "level"),
        (lambda: make(ROWS, hypotheses=0), "hypotheses"),
        (lambda: make(ROWS, discoveries=0), "discoveries"),
        (lambda: make(ROWS, hypotheses=2, discoveries=3), "be at most hypotheses"),
        (lambda: make(ROWS, hypotheses=10**6, discoveries=10**5), "leave a threshold above 0"),
        (lambda: holdout.confirm(lambda rows: "0.01"), "test must return a p-value"),
        (lambda: holdout.confirm(lambda rows: rows), "test must return a p-value"),
        (lambda: holdout.confirm_mean(lambda rows: rows, above=1.1), "above"),
        (lambda: holdout.confirm_mean(lambda rows: 1.0, above=0.1), "one number for each row"),
    ]
    for call, message in refused:
        with pytest.raises(ParameterError, match=message):
            call()
    assert holdout.asked == 3  # each test that saw the rows is counted
    assert copy.deepcopy(holdout) is holdout
