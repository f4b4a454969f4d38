"""Designs in which an answer may be certain, or that are any matrix: exact losses, nothing averaged away."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import permutations, product
from typing import Any

import numpy as np
import pytest
from scipy.stats import binom, multinomial

from sfumato.errors import ParameterError
from sfumato.local.surveys import (
    BinaryDesign,
    CheatingDetection,
    Design,
    ForcedCategory,
    Kuk,
    Mangat,
    MatrixDesign,
    StochasticLieDetector,
    Triangular,
    TwoCoins,
    goodness_of_fit,
    independence,
    instruction_sheet,
    logistic_regression,
    respondents_for_margin,
)
from sfumato.privacy import loss_from_json
from tests.cases import cases
from tests.chance import accepts_only, rate

THREE = MatrixDesign(
    names=("never", "once", "often"),
    said=("never", "once", "often", "pass"),
    matrix=[["1/2", "1/8", "1/8", "1/4"], ["1/4", "1/2", 0, "1/4"], ["1/8", "1/8", "1/2", "1/4"]],
)
POSITIVE = MatrixDesign(
    names=("a", "b", "c"),
    said=(1, 2, 3),
    matrix=[["0.8", "0.1", "0.1"], ["0.2", "0.6", "0.2"], ["0.1", "0.2", "0.7"]],
)
CERTAIN: dict[str, Design] = {
    "mangat": Mangat(truth="2/3"),
    "triangular": Triangular(innocuous="1/4"),
    "matrix": THREE,
    "the truth itself": MatrixDesign(names=("a", "b"), said=("a", "b"), matrix=[[1, 0], ["0", "1"]]),
}
FINITE: dict[str, Design] = {
    "kuk": Kuk(true="4/5", false="1/5"),
    "kuk, uneven": Kuk(true="1/3", false="3/4"),
    "three cards": Kuk(true="2/3", false="1/4").repeated(3),
    "matrix": POSITIVE,
}


def worst_delta(design: Design, epsilon: float) -> float:
    return max(
        sum(max(0.0, float(q) - math.exp(epsilon) * float(p)) for p, q in zip(one, other, strict=True))
        for one, other in permutations(design.transition, 2)
    )


@cases("design", CERTAIN.values(), ids=CERTAIN)
def test_an_answer_that_rules_a_truth_out_has_no_finite_epsilon(design: Design) -> None:
    assert design.epsilon == math.inf
    assert design.odds == math.inf
    assert loss_from_json(design.privacy_loss.to_json()).epsilon(0.0) == math.inf
    # However seldom it is given: its chance is the delta that remains, and composition does not hide it.
    certain = worst_delta(design, 60.0)
    assert certain > 0
    assert design.privacy_loss.delta(60.0) == pytest.approx(certain, rel=1e-12)
    assert (design.privacy_loss * 3).epsilon(0.99 * certain) == math.inf
    with pytest.raises(ParameterError, match="leave every answer possible"):
        instruction_sheet(design, question="Have you ever?")


@cases(
    "design", [*CERTAIN.values(), *FINITE.values()], ids=[*CERTAIN, *(f"finite {name}" for name in FINITE)]
)
@cases("epsilon", [0.0, 0.2, 0.7, 1.5])
def test_the_loss_is_the_worst_of_all_pairs_of_truths(design: Design, epsilon: float) -> None:
    assert design.privacy_loss.delta(epsilon) == pytest.approx(
        worst_delta(design, epsilon), rel=1e-9, abs=1e-12
    )
    assert all(sum(row) == 1 for row in design.transition)


@cases("design", FINITE.values(), ids=FINITE)
def test_finite_epsilons_are_logs_of_the_greatest_ratio(design: Design) -> None:
    worst = max(max(column) / min(column) for column in zip(*design.transition, strict=True))
    assert design.odds == worst
    assert math.log(worst) <= design.epsilon <= math.log(worst) * (1 + 1e-12)


def test_cards_that_are_drawn_repeatedly_cost_each_the_same_and_are_binomial() -> None:
    once = Kuk(true="2/3", false="1/4")
    for cards in (1, 2, 5):
        many = once.repeated(cards)
        assert many.odds == once.odds**cards
        assert many.answers == tuple(range(cards + 1))
        for row, share in zip(many.transition, (0.25, 2 / 3), strict=True):
            np.testing.assert_allclose(
                [float(mass) for mass in row], binom.pmf(range(cards + 1), cards, share)
            )
    bad: Any
    for bad in (0, 17, True):
        with pytest.raises(ParameterError, match="cards must be"):
            once.repeated(bad)


@cases("design", [Mangat(truth="2/3"), Triangular(innocuous="1/3")])
def test_what_is_said_without_the_trait_alone_shows_that(design: BinaryDesign) -> None:
    no, yes = design.answers
    risk = design.risk("1/10")
    assert risk.odds[no] == risk.posterior[no] == 0
    assert risk.most == math.inf
    assert risk.odds[yes] == 3
    assert risk.posterior[yes] == Fraction(1, 4)
    assert "0.0 % after" in str(risk)
    said = design.respond([True] * 500, rng=1)
    assert said.all()
    quiet = design.respond([False] * 20_000, rng=1)
    accepts_only(rate(int(quiet.sum()), 20_000), 1 / 3, other=2 / 3, never=0.0)


def test_the_other_way_round_an_answer_betrays_the_trait() -> None:
    design = MatrixDesign(names=(False, True), said=("no", "yes"), matrix=[[1, 0], ["1/2", "1/2"]])
    assert design.odds == math.inf
    assert design.estimate({"no": 80, "yes": 20}).shares.tolist() == pytest.approx([0.6, 0.4])


@cases("design", [THREE, POSITIVE], ids=["more answers", "as many"])
def test_raw_shares_and_their_covariance_are_unbiased(design: MatrixDesign) -> None:
    theta, n = np.array([0.7, 0.25, 0.05]), 5
    rates = theta @ np.array(design.transition, dtype=float)
    mean, second, stated = np.zeros(3), np.zeros((3, 3)), np.zeros((3, 3))
    for counts in product(range(n + 1), repeat=len(rates)):
        if sum(counts) == n:
            mass = multinomial.pmf(counts, n, rates)
            found = design.estimate(dict(zip(design.answers, counts, strict=True)))
            mean += mass * found.shares
            second += mass * np.outer(found.shares - theta, found.shares - theta)
            stated += mass * found.covariance
            assert found.respondents == n
    np.testing.assert_allclose(mean, theta, atol=1e-12)
    np.testing.assert_allclose(stated, second, atol=1e-12)


def best_on_grid(counts: Any, matrix: Any) -> float:
    """The greatest log likelihood of shares in steps of a hundredth."""
    grid = [np.array([a, b, 100 - a - b]) / 100 for a in range(101) for b in range(101 - a)]
    rates = np.array(grid) @ matrix
    seen = np.asarray(counts) > 0
    with np.errstate(divide="ignore"):
        return float((np.log(rates[:, seen]) @ np.asarray(counts)[seen]).max())


@cases("counts", [(50, 300, 10), (500, 300, 200), (0, 0, 9), (1, 0, 0), (10, 0, 990), (200, 600, 200)])
def test_the_likeliest_shares_are_possible_and_above_all_others(counts: Any) -> None:
    for design in (POSITIVE, ForcedCategory(names=(1, 2, 3), truth="1/2")):
        found = design.estimate(dict(zip(design.answers, counts, strict=True)))
        likeliest, matrix = found.maximum_likelihood, np.array(design.transition, dtype=float)
        assert likeliest.min() >= 0
        assert likeliest.sum() == pytest.approx(1, abs=1e-12)
        # No shares are better: the derivative towards each category is at most 0.
        toward = (np.array(counts) / (likeliest @ matrix)) @ matrix.T
        assert toward.max() <= sum(counts) * (1 + 1e-7)
        with np.errstate(divide="ignore"):
            height = float(np.array(counts) @ np.log(likeliest @ matrix))
        assert height >= best_on_grid(counts, matrix) - 1e-9
        if found.shares.min() > 0:
            assert likeliest == pytest.approx(found.shares, abs=1e-6)
    assert np.isnan(POSITIVE.estimate([]).maximum_likelihood).all()


def test_a_prevalence_of_the_maximum_likelihood_is_cut_off_at_0_and_1() -> None:
    for yes, wanted in ((150, 0.0), (400, 0.3), (900, 1.0)):
        assert TwoCoins().estimate({"yes": yes, "no": 1000 - yes}).maximum_likelihood == pytest.approx(wanted)
    assert math.isnan(TwoCoins().estimate([]).maximum_likelihood)


def test_what_needs_one_slope_refuses_a_matrix() -> None:
    calls: tuple[Any, ...] = (
        lambda: THREE.slope,
        lambda: THREE.floor,
        lambda: respondents_for_margin(THREE, 0.1),
        lambda: goodness_of_fit(THREE.estimate([]), 0.1),  # type: ignore[arg-type]
    )
    for call in calls:
        with pytest.raises(ParameterError, match="must"):
            call()
    said = THREE.respond(["never"] * 200 + ["often"] * 200, rng=3)
    assert independence(said, [0] * 200 + [1] * 200, designs=(THREE, None)).p_value < 1e-6


def test_one_sided_designs_can_be_regressed() -> None:
    design = Mangat(truth="2/3")
    said = [1] * 50 + [0] * 50 + [1] * 60 + [0] * 40
    fit = logistic_regression(design, said, {"second": [0] * 100 + [1] * 100})
    assert fit.predict({"second": [0, 1]}) == pytest.approx([0.25, 0.4], abs=1e-7)


@cases(
    "make",
    [
        lambda: MatrixDesign(names=("a", "b"), said=("a", "b"), matrix=[["1/2", "1/2"], ["1/2", "1/2"]]),
        lambda: MatrixDesign(names=("a", "b"), said=("a", "b"), matrix=[["1/2", "1/3"], ["1/3", "2/3"]]),
        lambda: MatrixDesign(names=("a", "b"), said=("a", "b"), matrix=[["1/3", "2/3"]]),
        lambda: MatrixDesign(names=("a", "b"), said=("a", "b"), matrix="no"),
        lambda: MatrixDesign(names=("a", "b"), said=("a", "a"), matrix=[["1/3", "2/3"], ["2/3", "1/3"]]),
        lambda: MatrixDesign(names=("a", "b"), said=("x", "y", "z"), matrix=[[1, 0, 0], [0, 1, 0]]),
        lambda: MatrixDesign(names=("a", "b", "c"), said=("x", "y"), matrix=[[1, 0], [0, 1], ["1/2", "1/2"]]),
        lambda: Kuk(true="1/3", false="1/3"),
        lambda: Kuk(true=1, false="1/3"),
        lambda: Mangat(truth=1),
        lambda: Triangular(innocuous=0),
        lambda: CheatingDetection(yes=("1/4", "1/4")),
        lambda: CheatingDetection(yes=("1/4", "3/4"), no=("1/4", "1/4")),
        lambda: CheatingDetection(yes="1/4"),  # type: ignore[arg-type]
        lambda: StochasticLieDetector(truth=("1/4", "1/4")),
        lambda: StochasticLieDetector(truth=("1/4",)),  # type: ignore[arg-type]
    ],
)
def test_designs_that_say_nothing_are_refused(make: Any) -> None:
    with pytest.raises(ParameterError, match=" must "):
        make()
