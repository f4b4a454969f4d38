"""Guess and check: failures add up to beta over the whole tree, and intervals hold under an adversary."""

from __future__ import annotations

import math
import threading
from fractions import Fraction
from operator import itemgetter
from typing import Any

import numpy as np
import pytest
from scipy.stats import binom

from sfumato.adaptive import GuessAndCheck
from sfumato.adaptive.holdout.mean_interval import mean_interval
from sfumato.errors import ParameterError


def test_the_parts_of_beta_add_up_to_no_more() -> None:
    """Walk the counts of the tree: after i questions, f of them refuted, there are C(i, f) g**f histories."""
    checks = GuessAndCheck(np.zeros(10), beta=0.05, outcomes=3)
    total = 0.0
    for asked in range(60):
        for refuted in range(asked + 1):
            checks.asked, checks.refuted = asked, refuted
            histories = math.comb(asked, refuted) * 3**refuted
            total += histories * math.exp(checks._log_failure())
    assert 0.045 < total <= 0.05


def test_intervals_of_means_are_chernoffs() -> None:
    n, log_failure = 200, math.log(0.01)
    for hits in (0, 1, 20, 100, 199, 200):
        low, high = mean_interval(hits / n, n, log_failure)
        assert 0 <= low <= hits / n <= high <= 1
        # No coin outside of it shows so extreme a mean often: it is wider than Clopper and Pearson's.
        assert binom.cdf(hits, n, high) <= 0.005 or high == 1
        assert binom.sf(hits - 1, n, low) <= 0.005 or low == 0
    assert mean_interval(0.0, n, log_failure)[1] == pytest.approx(1 - math.exp(-math.log(200) / n), rel=1e-6)


def test_guesses_that_stand_are_returned_and_others_are_replaced() -> None:
    rows = np.repeat([0.0, 1.0], [7000, 3000])
    checks = GuessAndCheck(rows, outcomes=101)
    stands = checks.ask(lambda values: values, guess=0.32, width=0.06)
    assert (stands.value, stands.stands) == (0.32, True)
    assert (stands.lower, stands.upper) == pytest.approx((0.26, 0.38))
    refuted = checks.ask(lambda values: values, guess=0.5, width=0.1)
    assert refuted.value == pytest.approx(0.3)
    assert not refuted.stands
    low, high = mean_interval(0.3, 10_000, math.log(0.05) - math.log(2 * 3 * 2))
    assert refuted.lower == pytest.approx(low - 0.005, abs=1e-4)
    assert refuted.upper == pytest.approx(high + 0.005, abs=1e-4)
    assert refuted.lower <= low < high <= refuted.upper
    narrow = checks.ask(lambda values: values, guess=0.3, width=0.001)
    assert not narrow.stands
    assert repr(checks) == "GuessAndCheck(3 asked, 2 refuted)"
    edge = checks.ask(lambda values: values * 0, guess=0.0, width=0.2)
    assert (edge.lower, edge.upper) == (0.0, 0.2)


def test_an_adversary_who_reads_every_answer_finds_no_wrong_interval() -> None:
    """Queries are sums of the coins whose told means were high: the way to overfit a holdout that talks."""
    rng = np.random.default_rng(4)
    n, d = 500, 60
    rows = (rng.random((n, d)) < 0.5).astype(float)
    checks = GuessAndCheck(rows, beta=0.05, outcomes=512)
    told = [checks.ask(itemgetter((slice(None), j)), guess=0.5, width=0.001) for j in range(d)]
    for answer in told:
        assert answer.lower <= 0.5 <= answer.upper
    high = np.array([answer.value > 0.5 for answer in told])
    chosen = checks.ask(lambda x: np.where(high, x, 1 - x).mean(axis=1), guess=0.5, width=0.001)
    assert (
        chosen.lower <= 0.5 <= chosen.upper
    )  # the sample's own mean is above by one deviation of a single coin
    assert chosen.value > 0.51
    assert Fraction(chosen.value).limit_denominator(511).denominator <= 511


def test_bad_parameters_are_refused() -> None:
    checks = GuessAndCheck(np.zeros(5))
    for call, message in (
        (lambda: GuessAndCheck(np.zeros(0)), "holdout"),
        (lambda: GuessAndCheck(np.zeros(2), beta=1.0), "beta"),
        (lambda: GuessAndCheck(np.zeros(2), outcomes=1), "outcomes"),
        (lambda: checks.ask(lambda rows: rows, guess=1.1, width=0.1), "guess"),
        (lambda: checks.ask(lambda rows: rows, guess=0.5, width=0.0), "width"),
        (lambda: checks.ask(lambda rows: rows[0], guess=0.5, width=0.1), "one number for each row"),
    ):
        with pytest.raises(ParameterError, match=message):
            call()
    assert checks.asked == 0


def test_one_question_waits_for_another() -> None:
    checks, later = GuessAndCheck(np.ones(100), beta=0.05), []

    def other() -> None:
        later.append(checks.ask(lambda rows: rows, guess=0.1, width=0.1))

    thread = threading.Thread(target=other)

    def query(rows: Any) -> Any:
        thread.start()
        thread.join(timeout=0.1)
        assert thread.is_alive()
        return rows

    first = checks.ask(query, guess=0.1, width=0.1)
    thread.join()
    assert (checks.asked, checks.refuted) == (2, 2)
    assert later[0].lower < first.lower  # a smaller part of beta
