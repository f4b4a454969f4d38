"""Cheating detection and the stochastic lie detector: by enumeration, against a grid, and covering."""

from __future__ import annotations

import math
from itertools import product
from typing import Any

import numpy as np
import pytest
from scipy.special import chdtri
from scipy.stats import binom

from sfumato.errors import ParameterError
from sfumato.local.surveys import CheatingDetection, StochasticLieDetector
from tests.cases import cases

CDM = CheatingDetection(yes=("1/4", "3/4"))
SYMMETRIC = CheatingDetection(yes=("1/4", "1/2"), no=("1/4", "1/8"))
SLD = StochasticLieDetector(truth=("1/6", "5/6"))


def rates(design: Any, shares: Any) -> list[float]:
    return [
        float(np.asarray(shares) @ np.array(rows, dtype=float)[:, 1]) for rows in design.class_transitions
    ]


def pairs(design: Any, shares: Any, sizes: tuple[int, int]) -> Any:
    """All pairs of counts with their probabilities, and the estimate of each."""
    both = zip(sizes, rates(design, shares), strict=True)
    one, two = (np.asarray(binom.pmf(range(n + 1), n, rate)).tolist() for n, rate in both)
    for first, second in product(range(sizes[0] + 1), range(sizes[1] + 1)):
        if one[first] * two[second] > 1e-12:
            said = ({"yes": hits, "no": n - hits} for hits, n in zip((first, second), sizes, strict=True))
            yield one[first] * two[second], design.estimate(*said)


@cases("design", [CDM, SYMMETRIC])
def test_the_three_shares_and_their_deviations_are_unbiased(design: CheatingDetection) -> None:
    true = np.array([0.25, 0.6, 0.15])
    mean, second, stated = np.zeros(3), np.zeros(3), np.zeros(3)
    for mass, found in pairs(design, true, (12, 9)):
        shares = np.array([found.honest_yes, found.honest_no, found.cheaters])
        mean += mass * shares
        second += mass * (shares - true) ** 2
        stated += mass * found.stddev**2
    np.testing.assert_allclose(mean, true, atol=1e-9)
    np.testing.assert_allclose(stated, second, rtol=1e-8)


def test_published_formulas_of_both_designs() -> None:
    found = CDM.estimate({"yes": 325, "no": 675}, {"yes": 575, "no": 425})
    beta = (0.575 - 0.325) / (0.75 - 0.25)
    assert found.honest_no == pytest.approx(beta)
    assert found.honest_yes == pytest.approx((0.75 * 0.325 - 0.25 * 0.575) / 0.5)
    assert found.cheaters == pytest.approx(1 - beta - 0.2)
    lying = SLD.estimate({"yes": 860, "no": 140}, {"yes": 380, "no": 620})
    whole = 1 - (0.86 - 0.38) / (5 / 6 - 1 / 6)
    assert lying.prevalence == pytest.approx(whole)
    assert lying.honesty == pytest.approx((0.86 - (1 - whole) * 5 / 6) / whole)
    assert lying.maximum_likelihood == pytest.approx([whole, lying.honesty], abs=1e-6)
    step = np.array([1e-6, 0.0])
    errors = np.sqrt([0.86 * 0.14 / 999, 0.38 * 0.62 / 999])

    def honesty(rate: Any) -> float:
        share = 1 - (rate[0] - rate[1]) * 1.5
        return float((rate[0] - (1 - share) * 5 / 6) / share)

    at = np.array([0.86, 0.38])
    slopes = [(honesty(at + d) - honesty(at - d)) / 2e-6 for d in (step, step[::-1])]
    assert lying.stddev[1] == pytest.approx(math.hypot(*(np.array(slopes) * errors)), rel=1e-6)
    assert lying.stddev[0] == pytest.approx(1.5 * math.hypot(*errors), rel=1e-9)


def grid(design: Any, counts: Any) -> tuple[Any, Any]:
    """Shares in steps of 1/200, and their log likelihoods."""
    shares = np.array([(a, b, 200 - a - b) for a in range(201) for b in range(201 - a)]) / 200
    height = np.zeros(len(shares))
    for rows, (no, yes) in zip(design.class_transitions, counts, strict=True):
        rate = shares @ np.array(rows, dtype=float)[:, 1]
        with np.errstate(divide="ignore", invalid="ignore"):
            height += np.where(yes > 0, yes * np.log(rate), 0) + np.where(no > 0, no * np.log1p(-rate), 0)
    return shares, height


@cases("design", [CDM, SYMMETRIC])
@cases("hits", [(65, 115), (90, 100), (20, 60), (150, 190), (0, 0)])
def test_profiles_and_maxima_are_those_of_a_grid(design: CheatingDetection, hits: tuple[int, int]) -> None:
    said = [{"yes": yes, "no": 200 - yes} for yes in hits]
    found = design.estimate(*said)
    shares, height = grid(design, found.counts)
    best = found.maximum_likelihood
    assert best.min() >= 0
    assert best.sum() == pytest.approx(1)
    assert best == pytest.approx(shares[np.argmax(height)], abs=0.02)
    names: tuple[Any, ...] = ("honest_yes", "honest_no", "cheaters")
    for index, name in enumerate(names):
        lower, upper, _ = found.interval(name, 0.9)
        inside = shares[2 * (height.max() - height) <= chdtri(1, 0.1)][:, index]
        assert (lower, upper) == pytest.approx((inside.min(), inside.max()), abs=0.012)


@cases("hits", [(172, 76), (150, 60), (160, 20)])
def test_intervals_of_the_lie_detector_are_those_of_a_grid(hits: tuple[int, int]) -> None:
    found = SLD.estimate(*({"yes": yes, "no": 200 - yes} for yes in hits))
    shares, height = grid(SLD, found.counts)
    inside = shares[2 * (height.max() - height) <= chdtri(1, 0.1)]
    lower, upper, _ = found.interval("prevalence", 0.9)
    whole = inside[:, 0] + inside[:, 2]
    assert (lower, upper) == pytest.approx((whole.min(), whole.max()), abs=0.012)
    lower, upper, _ = found.interval("honesty", 0.9)
    honest = inside[:, 0] / whole
    assert (lower, upper) == pytest.approx((honest.min(), honest.max()), abs=0.03)


def test_intervals_cover_by_enumeration() -> None:
    true, held = (0.3, 0.5, 0.2), 0.0
    for mass, found in pairs(CDM, true, (11, 11)):
        if mass > 2e-3:
            lower, upper, _ = found.interval("cheaters", 0.9)
            held += mass * (lower <= 0.2 <= upper)
    assert 0.85 < held < 0.98


def test_epsilon_is_that_of_who_follows_and_infinite_without_a_forced_no() -> None:
    assert CDM.epsilon == SLD.epsilon == CDM.odds == math.inf
    # In the samples "yes" has the chances 3/4 and 1/4, then 7/8 and 1/2.
    assert SYMMETRIC.odds == 4
    assert SYMMETRIC.epsilon == pytest.approx(math.log(4))
    assert SYMMETRIC.privacy_loss.delta(0.5) == pytest.approx(0.75 - math.exp(0.5) / 4)


def test_without_a_forced_no_only_those_without_the_trait_and_cheaters_say_it() -> None:
    made = CheatingDetection(yes=("1/4", "3/4"))
    assert [[row[1] for row in rows] for rows in made.class_transitions] == [[1, 0.25, 0], [1, 0.75, 0]]
    assert made == CDM
    assert made.no is None


def test_empty_samples_and_other_names() -> None:
    empty = CDM.estimate([], {"yes": 5, "no": 5})
    assert math.isnan(empty.honest_yes)
    assert np.isnan(empty.stddev).all()
    assert empty.interval("cheaters")[:2] == (0.0, 1.0)
    assert np.isnan(SLD.estimate([], []).maximum_likelihood).all()
    assert SLD.estimate([], []).interval("honesty")[:2] == (0.0, 1.0)
    wrong: Any = "trait"
    for found in (CDM.estimate([1, 0], [1, 0]), SLD.estimate([1, 0], [1, 0])):
        with pytest.raises(ParameterError, match="share must be"):
            found.interval(wrong)
    with pytest.raises(ParameterError, match="level must be"):
        CDM.estimate([1, 0], [1, 0]).interval("cheaters", 1)
