"""Designs: laws from who answers what, exact prices, closed forms of the literature."""

from __future__ import annotations

from fractions import Fraction
from itertools import permutations
from typing import Any

import mpmath
import numpy as np
import pytest
from scipy.special import chdtri

from sfumato.errors import ParameterError
from sfumato.local.surveys import (
    BinaryDesign,
    Crosswise,
    Design,
    ForcedCategory,
    ForcedResponse,
    Kind,
    TwoCoins,
    UnrelatedQuestion,
    UnrelatedQuestionTwoSamples,
    Warner,
)
from sfumato.privacy import Neighboring, PrivacyLoss, PureDP, RandomizedResponse, loss_from_json
from tests.cases import cases
from tests.chance import accepts_only, rate
from tests.local.surveys.catalogue import BINARY, DESIGNS, SEVERAL

ALL = cases("design", DESIGNS.values(), ids=DESIGNS)
TWO = cases("design", BINARY.values(), ids=BINARY)


def told(design: Design, truth: int) -> list[Fraction]:
    """The law of the answers of somebody who does what the tasks say."""
    law = [Fraction(0)] * len(design.answers)
    harmless = Fraction(getattr(design, "innocuous", 0))
    for chance, kind, answer in design.tasks:
        match kind:
            case Kind.TRUTH:
                law[truth] += chance
            case Kind.OPPOSITE:
                law[1 - truth] += chance
            case Kind.SAY:
                law[design.answers.index(answer)] += chance
            case Kind.OTHER:
                law[1] += chance * harmless
                law[0] += chance * (1 - harmless)
            case Kind.COMPARE:
                law[1] += chance * (harmless if truth else 1 - harmless)
                law[0] += chance * (1 - harmless if truth else harmless)
    return law


@ALL
def test_the_law_is_that_of_who_answers_what(design: Design) -> None:
    assert sum(task.chance for task in design.tasks) == 1
    for truth, row in enumerate(design.transition):
        assert list(row) == told(design, truth)
        assert sum(row) == 1


@ALL
def test_each_answer_tells_of_its_own_category_alone(design: Design) -> None:
    for i, row in enumerate(design.transition):
        assert list(row) == [b + design.slope * (i == j) for j, b in enumerate(design.floor)]


@ALL
def test_epsilon_is_the_log_of_the_greatest_exact_ratio(design: Design) -> None:
    worst = max(
        q / p for one, other in permutations(design.transition, 2) for p, q in zip(one, other, strict=True)
    )
    with mpmath.workdps(40):
        exact = mpmath.log(mpmath.mpf(worst.numerator) / worst.denominator)
        assert exact <= mpmath.mpf(design.epsilon) <= exact * (1 + mpmath.mpf(1e-13))
    assert design.odds == worst
    assert design.privacy_loss.neighboring is Neighboring.REPLACE_ONE


def worst_delta(transitions: Any, epsilon: float) -> float:
    """The greatest hockey-stick divergence between the answers of two truths."""
    return float(
        max(
            sum(max(0.0, float(q) - np.exp(epsilon) * float(p)) for p, q in zip(one, other, strict=True))
            for transition in transitions
            for one, other in permutations(transition, 2)
        )
    )


@ALL
@cases("share", [0.0, 0.3, 0.7, 0.95])
def test_the_loss_is_the_worst_of_all_pairs_of_truths(design: Design, share: float) -> None:
    loss, epsilon = design.privacy_loss, share * design.epsilon
    assert worst_delta([design.transition], epsilon) == pytest.approx(
        loss.delta(epsilon), rel=1e-9, abs=1e-12
    )
    assert worst_delta([design.transition], epsilon) <= loss.delta(epsilon) + 1e-15


@ALL
def test_a_loss_is_a_part_of_the_common_accountant(design: Design) -> None:
    loss = design.privacy_loss
    assert loss_from_json(loss.to_json()).epsilon(0.0) == loss.epsilon(0.0)
    plain = PureDP(loss.epsilon(0.0), neighboring=Neighboring.REPLACE_ONE)
    assert (loss * 20).epsilon(1e-6) <= (plain * 20).epsilon(1e-6) * (1 + 1e-9)


def test_an_uneven_design_composes_to_less_than_its_epsilon_does() -> None:
    loss = BINARY["forced unevenly"].privacy_loss
    plain = PureDP(loss.epsilon(0.0), neighboring=Neighboring.REPLACE_ONE)
    assert (loss * 200).epsilon(1e-6) < 0.95 * (plain * 200).epsilon(1e-6)


def test_designs_of_warners_law_have_the_leaf_of_randomized_response() -> None:
    for design in (TwoCoins(), Warner(truth="1/4"), Crosswise(innocuous="3/4"), SEVERAL["three"]):
        assert isinstance(design.privacy_loss, RandomizedResponse)


def test_two_fair_coins_say_yes_for_a_quarter_and_half_of_the_prevalence() -> None:
    design = TwoCoins()
    assert (design.yes_if_false, design.slope) == (Fraction(1, 4), Fraction(1, 2))
    for theta in (0.0, 0.1, 0.5, 1.0):
        assert design.yes_rate(theta) == 0.25 + theta / 2
    said = design.respond(np.arange(400_000) < 80_000, rng=7)
    accepts_only(rate(int(said.sum()), 400_000), 0.35, of_the_truth=0.2, of_the_coins=0.25, off=0.357)


def test_the_closed_forms_of_the_literature() -> None:
    n, yes = 1000, 400
    rate, p, q = yes / n, 0.7, 0.25
    counts = {"no": n - yes, "yes": yes}
    warner = Warner(truth="7/10").estimate(counts)
    assert warner.prevalence == pytest.approx((rate - (1 - p)) / (2 * p - 1))
    # Warner (1965): sampling, and what the spinner adds.
    theta = 0.2
    added = theta * (1 - theta) / n + p * (1 - p) / (n * (2 * p - 1) ** 2)
    assert Warner(truth="7/10").variance(n, theta) == pytest.approx(added)
    greenberg = UnrelatedQuestion(sensitive="7/10", innocuous="1/4").estimate(counts)
    assert greenberg.prevalence == pytest.approx((rate - (1 - p) * q) / p)
    assert greenberg.variance == pytest.approx(rate * (1 - rate) / ((n - 1) * p * p))
    forced = ForcedResponse(yes="1/6", no="1/6").estimate(counts)
    assert forced.prevalence == pytest.approx((rate - 1 / 6) / (4 / 6))
    crosswise = Crosswise(innocuous="1/4").estimate({"same": yes, "different": n - yes})
    assert crosswise.prevalence == pytest.approx((rate + q - 1) / (2 * q - 1))


@ALL
def test_respondents_draw_the_exact_law(design: Design) -> None:
    size = 60_000
    for row, truth in zip(design.transition, design.categories, strict=True):
        counts = design.counts(design.respond([truth] * size, rng=11))
        expected = size * np.array([float(mass) for mass in row])
        statistic = float(((counts - expected) ** 2 / expected).sum())
        assert statistic < chdtri(len(row) - 1, 1e-9 / 50)


def test_answers_come_in_the_form_of_the_truths() -> None:
    assert TwoCoins().respond(True, rng=1) in {True, False}
    assert isinstance(TwoCoins().respond(True), bool)
    assert TwoCoins().respond(np.array([True, False])).dtype == bool
    assert set(SEVERAL["three"].respond(["never"] * 100, rng=1).tolist()) == {"never", "once", "often"}
    assert SEVERAL["uneven"].respond(3) in {1, 2, 3, 4}


def test_fresh_answers_differ_and_seeded_ones_do_not() -> None:
    truths = np.zeros(200, bool)
    assert (TwoCoins().respond(truths, rng=3) == TwoCoins().respond(truths, rng=3)).all()
    assert (TwoCoins().respond(truths) != TwoCoins().respond(truths)).any()


@cases(
    "answers",
    [
        ["yes", "no", "yes", "yes"],
        np.array(["yes", "no", "yes", "yes"]),
        np.array(["yes", "no", "yes", "yes"], dtype=object),
        [True, False, True, True],
        np.array([1, 0, 1, 1]),
        np.array([1.0, 0.0, 1.0, 1.0]),
        {"yes": 3, "no": 1},
        {"yes": np.int64(3), "no": 1},
    ],
)
def test_answers_are_read_in_many_forms(answers: Any) -> None:
    found = TwoCoins().estimate(answers)
    assert (found.yes, found.respondents) == (3, 4)


def test_a_column_of_a_frame_is_read() -> None:
    frame = pytest.importorskip("pandas").DataFrame({"said": ["same", "different", "same"]})
    assert Crosswise(innocuous="1/4").estimate(frame["said"]).yes == 2


@cases(
    "answers",
    [
        ["yes", "maybe: 4711"],
        [1, 4711],
        [None, "yes"],
        [float("nan"), 1.0],
        {"maybe 4711": 4},
        "yes",
        [["yes"]],
    ],
)
def test_other_values_are_refused_and_not_shown(answers: Any) -> None:
    with pytest.raises(ParameterError) as error:
        TwoCoins().estimate(answers)
    assert "4711" not in str(error.value)


def test_a_truth_that_is_no_category_is_refused_and_not_shown() -> None:
    with pytest.raises(ParameterError, match="truth must each be") as error:
        SEVERAL["three"].respond(["never", "4711"])
    assert "4711" not in str(error.value)


@cases(
    "make",
    [
        lambda: Warner(truth="1/2"),
        lambda: Warner(truth=1),
        lambda: Warner(truth=0),
        lambda: Warner(truth="half"),
        lambda: Warner(truth="1/0"),
        lambda: Warner(truth=True),
        lambda: Warner(truth=0.7),  # a binary fraction that nobody means
        lambda: Crosswise(innocuous=0.5),
        lambda: ForcedResponse(yes="1/2", no="1/2"),
        lambda: ForcedResponse(yes=0, no="1/2"),
        lambda: TwoCoins(yes=1),
        lambda: UnrelatedQuestion(sensitive=1, innocuous="1/2"),
        lambda: ForcedCategory(names="abc", truth="1/2"),
        lambda: ForcedCategory(names=("a", "a"), truth="1/2"),
        lambda: ForcedCategory(names=range(33), truth="1/2"),
        lambda: ForcedCategory(names=("a", "b"), truth="1/2", forced=("1/2", "1/3")),
        lambda: ForcedCategory(names=("a", "b"), truth="1/2", forced=("1/2", "1/4", "1/4")),
        lambda: UnrelatedQuestionTwoSamples(first="1/3", second="1/3", between=("1/4", "3/4")),
        lambda: UnrelatedQuestionTwoSamples(first="1/3", second="2/3", between=("3/4", "1/4")),
    ],
)
def test_designs_that_tell_nothing_or_betray_somebody_are_refused(make: Any) -> None:
    with pytest.raises(ParameterError, match=" must "):
        make()


@TWO
def test_the_risk_is_bayes_and_no_worse_than_epsilon(design: BinaryDesign) -> None:
    risk = design.risk("1/10")
    before = Fraction(1, 9)
    for answer, chance in risk.posterior.items():
        assert chance / (1 - chance) == before * risk.odds[answer]
    chances = [row[1] for row in design.transition]
    told_yes = Fraction(9, 10) * chances[0] + Fraction(1, 10) * chances[1]
    assert risk.posterior[design.answers[1]] == Fraction(1, 10) * chances[1] / told_yes
    assert float(risk.most) == pytest.approx(np.exp(design.epsilon))
    assert "10.0 % before the answer" in str(risk)


def two_sample_loss(between: tuple[str, str]) -> PrivacyLoss:
    return UnrelatedQuestionTwoSamples(first="7/10", second="3/10", between=between).privacy_loss


@pytest.mark.parametrize("between", [("1/4", "3/5"), ("2/5", "4/5")])
def test_the_price_of_two_samples_covers_every_harmless_share_within_the_bounds(
    between: tuple[str, str],
) -> None:
    loss = two_sample_loss(between)
    low, high = map(Fraction, between)
    inner = [low + (high - low) * Fraction(step, 10) for step in range(11)]
    laws = [
        UnrelatedQuestion(sensitive=p, innocuous=share).transition
        for p in (Fraction(7, 10), Fraction(3, 10))
        for share in inner
    ]
    for epsilon in (0.0, 0.5, 1.0, 1.5, 2.0, 2.3):
        assert worst_delta(laws, epsilon) <= loss.delta(epsilon) + 1e-14
        assert worst_delta(laws, epsilon) == pytest.approx(loss.delta(epsilon), rel=1e-9, abs=1e-12)
    assert loss.epsilon(0.0) < two_sample_loss(("1/6", "5/6")).epsilon(0.0)


def test_answers_in_two_samples_follow_the_question_that_was_drawn() -> None:
    design = UnrelatedQuestionTwoSamples(first="7/10", second="3/10", between=("1/4", "3/4"))
    size = 40_000
    for sample, p in enumerate((0.7, 0.3), 1):
        said = design.respond(np.ones(size, bool), np.zeros(size, bool), sample=sample, rng=5)
        accepts_only(rate(int(said.sum()), size), p, of_the_other=1 - p, off=p + 0.03)
    assert design.respond(True, True, sample=1) is True
    with pytest.raises(ParameterError, match="sample must be 1 or 2"):
        design.respond(True, True, sample=0)


def test_the_risk_of_categories_is_bayes_and_no_worse_than_epsilon() -> None:
    design = ForcedCategory(names=("never", "once", "often"), truth="3/5", forced=("1/2", "1/4", "1/4"))
    prior = Fraction(7, 10), Fraction(2, 10), Fraction(1, 10)
    risk = design.risk(prior)
    assert risk.prior == dict(zip(design.names, prior, strict=True))
    for place, answer in enumerate(design.names):
        said = [design.transition[i][place] for i in range(3)]
        whole = sum(a * b for a, b in zip(prior, said, strict=True))
        expected = [a * b / whole for a, b in zip(prior, said, strict=True)]
        assert list(risk.posterior[answer].values()) == expected
        moved = [expected[i] / prior[i] for i in range(3)]
        assert max(moved) / min(moved) <= risk.most
    assert float(risk.most) == pytest.approx(np.exp(design.epsilon))
    assert str(risk).startswith(
        '70.0 % "never", 20.0 % "once", 10.0 % "often" before the answer; of what was'
    )
    wrong: Any
    for wrong in (("1/2", "1/2"), ("1/2", "1/4", "1/8"), "1/2", (0, "1/2", "1/2"), None):
        with pytest.raises(ParameterError, match="prior must be"):
            design.risk(wrong)


@cases("names", [(["a"], ["b"]), ("a", {"b": 1}), 5, None, {"a", "b"}])
def test_names_that_are_no_list_of_hashables_are_refused(names: Any) -> None:
    with pytest.raises(ParameterError, match="names must be from 2 to 32 categories, none twice"):
        ForcedCategory(names=names, truth="1/2")
