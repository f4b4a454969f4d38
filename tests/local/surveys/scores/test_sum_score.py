"""Sum scores: unbiased for any dependence of the truths, by enumeration of all sets of answers."""

from __future__ import annotations

import math
from itertools import product
from typing import Any

import numpy as np
import pytest

from sfumato.errors import ParameterError
from sfumato.local.surveys import Crosswise, ForcedResponse, Kuk, Mangat, SumScore, TwoCoins, Warner
from tests.cases import cases
from tests.chance import accepts_only, frequencies

COINS, WARNER, DIE = TwoCoins(), Warner(truth="1/5"), ForcedResponse(yes="1/6", no="1/12")
MIXED = SumScore(designs=[COINS, DIE, WARNER, COINS])
SAME = SumScore(designs=[DIE] * 3)
WORD: Any = "coins"
EVERY = cases("score", [MIXED, SAME], ids=["mixed", "same"])


def chances(score: SumScore, truth: Any) -> dict[tuple[bool, ...], float]:
    """The probability of each set of answers of somebody of whom these are true."""
    return {
        said: math.prod(
            float(design.transition[int(true)][int(answer)])
            for design, true, answer in zip(score.designs, truth, said, strict=True)
        )
        for said in product((False, True), repeat=len(score.designs))
    }


def one(score: SumScore, said: Any) -> Any:
    return score.estimate(np.array([said]))


@EVERY
def test_shares_and_mean_are_unbiased_for_every_set_of_truths(score: SumScore) -> None:
    for truth in product((False, True), repeat=len(score.designs)):
        shares, mean = 0.0, 0.0
        for said, mass in chances(score, truth).items():
            found = one(score, said)
            shares = shares + mass * found.shares
            mean += mass * found.mean
        expected = np.eye(len(truth) + 1)[sum(truth)]
        np.testing.assert_allclose(shares, expected, atol=1e-12)
        assert mean == pytest.approx(sum(truth), abs=1e-12)


def expected_counts(score: SumScore, mixture: dict[tuple[bool, ...], float], total: int) -> Any:
    """The answers of as many as give each set of answers just as often as expected, rounded."""
    rates: dict[tuple[bool, ...], float] = {}
    for truth, share in mixture.items():
        for said, mass in chances(score, truth).items():
            rates[said] = rates.get(said, 0.0) + share * mass
    return np.repeat(
        np.array(list(rates)), np.rint(np.array(list(rates.values())) * total).astype(int), axis=0
    )


@EVERY
def test_the_likeliest_shares_are_the_truth_where_answers_are_as_expected(score: SumScore) -> None:
    first, every = (True, True, *[False] * (len(score.designs) - 2)), (True,) * len(score.designs)
    none = (False,) * len(score.designs)
    answers = expected_counts(score, {none: 0.5, first: 0.3, every: 0.2}, 50_000)
    found = score.estimate(answers)
    wanted = 0.5 * np.eye(len(every) + 1)[0] + 0.3 * np.eye(len(every) + 1)[2]
    wanted[-1] += 0.2
    assert found.shares == pytest.approx(wanted, abs=2e-3)
    assert found.maximum_likelihood == pytest.approx(wanted, abs=2e-2)
    assert found.maximum_likelihood.sum() == pytest.approx(1)
    assert found.mean == pytest.approx(0.6 + 0.2 * len(every), abs=2e-3)
    assert found.mean == pytest.approx(sum(part.prevalence for part in found.prevalences))
    assert found.mean == pytest.approx(float(found.shares @ np.arange(len(every) + 1)))


def test_with_one_design_the_inverse_of_the_convolution_gives_the_same_shares() -> None:
    """Cruyff, van den Hout, van der Heijden (2008): the observed sums have a matrix of their own."""
    rng = np.random.default_rng(2)
    answers = SAME.respond(rng.random((4000, 3)) < [0.2, 0.4, 0.1], rng=3)
    matrix = np.zeros((4, 4))
    for true, said in product(product((0, 1), repeat=3), repeat=2):
        mass = math.prod(float(DIE.transition[t][a]) for t, a in zip(true, said, strict=True))
        matrix[sum(true), sum(said)] += mass / math.comb(3, sum(true))
    rates = np.bincount(answers.sum(axis=1), minlength=4) / 4000
    found = SAME.estimate(answers)
    assert found.shares == pytest.approx(rates @ np.linalg.inv(matrix))
    # Multinomial counts of sums have this covariance.
    inverse = np.linalg.inv(matrix)
    stated = inverse.T @ (np.diag(rates) - np.outer(rates, rates)) @ inverse / 3999
    np.testing.assert_allclose(found.covariance, stated, atol=1e-12)
    assert found.share_stddev == pytest.approx(np.sqrt(np.diag(stated)))


def test_variance_is_unbiased_and_intervals_follow_their_formulas() -> None:
    pair = SumScore(designs=[COINS, WARNER])
    laws = [(0.7, chances(pair, (False, True))), (0.3, chances(pair, (True, True)))]
    rates = {said: sum(share * law[said] for share, law in laws) for said in laws[0][1]}
    second = stated = 0.0
    for three in product(rates, repeat=3):
        mass, found = math.prod(rates[said] for said in three), pair.estimate(np.array(three))
        second += mass * (found.mean - 1.3) ** 2
        stated += mass * found.variance
    assert stated == pytest.approx(second)
    found = pair.estimate(np.array(list(rates) * 500))
    width, log = 2 + 1 / 0.6, math.log(4 / 0.1)
    variance = found.variance * 2000
    halves = {
        "wald": 1.6448536 * found.stddev,
        "hoeffding": width * math.sqrt(math.log(2 / 0.1) / 4000),
        "bernstein": math.sqrt(2 * variance * log / 2000) + 7 * width * log / (3 * 1999),
    }
    for method, half in halves.items():
        lower, upper, _ = found.interval(0.9, method)  # type: ignore[arg-type]
        assert (found.mean - lower, upper - found.mean) == pytest.approx((half, half), rel=1e-6)


def test_epsilons_are_composed_by_the_accountant() -> None:
    assert SAME.epsilon == (DIE.privacy_loss * 3).epsilon(0.0)
    total = sum(design.epsilon for design in MIXED.designs)
    assert MIXED.epsilon == pytest.approx(total)
    assert MIXED.privacy_loss.epsilon(0.05) < total
    assert SumScore(designs=[COINS, Mangat(truth="1/2")]).epsilon == math.inf
    # The exact trade-off of the whole, from the sets of answers of opposite truths.
    pair = SumScore(designs=[COINS, WARNER])
    one_side, other = chances(pair, (False, False)), chances(pair, (True, True))
    delta = sum(max(0.0, other[said] - math.e * one_side[said]) for said in other)
    assert pair.privacy_loss.delta(1.0) == pytest.approx(delta, rel=1e-6)


def test_answers_are_drawn_for_each_question_by_itself() -> None:
    truth = (True, False, True, True)
    said = [tuple(row) for row in MIXED.respond([list(truth)] * 40_000, rng=4).tolist()]
    check = frequencies({pattern: said.count(pattern) for pattern in set(said)})
    accepts_only(check, chances(MIXED, truth), others=chances(MIXED, (False, True, True, True)))


def test_tables_mappings_and_lists_of_columns_are_the_same_answers() -> None:
    crossed = SumScore(designs=[COINS, Crosswise(innocuous="1/4"), Kuk(true="4/5", false="1/5")])
    columns = [["yes", "no", "yes"], ["same", "same", "different"], ["red", "black", "red"]]
    wanted = crossed.estimate(columns)
    assert wanted.patterns.tolist() == [[False, True, False], [True, False, True], [True, True, True]]
    matrix = np.array([[1, 0, 1], [1, 1, 0], [1, 0, 1]]).T.astype(bool)
    for given in (dict(zip("abc", columns, strict=True)), matrix):
        found = crossed.estimate(given)
        assert (found.patterns == wanted.patterns).all()
        assert found.counts.tolist() == wanted.counts.tolist()
    assert str(wanted).endswith("from 3 respondents")


def test_few_respondents_and_many_questions() -> None:
    none = MIXED.estimate([[], [], [], []])
    for values in (none.shares, none.maximum_likelihood, none.share_stddev):
        assert np.isnan(values).all()
    assert math.isnan(none.mean)
    assert none.interval()[:2] == (0.0, 4.0) == one(MIXED, [True] * 4).interval()[:2]
    many = SumScore(designs=[Warner(truth=f"{n}/100") for n in range(60, 92)])
    found = many.estimate(np.ones((3, 32), bool))
    assert found.shares.sum() == pytest.approx(1, abs=1e-6)
    with pytest.raises(ParameterError, match="designs must have at most 512 classes"):
        found.maximum_likelihood  # noqa: B018


@cases(
    ("make", "part"),
    [
        (lambda: SumScore(designs=[COINS]), "designs must be from 2 to 32"),
        (lambda: SumScore(designs=[COINS, WORD]), "designs must be from 2 to 32"),
        (lambda: SumScore(designs=[COINS] * 33), "designs must be from 2 to 32"),
        (lambda: SAME.estimate([[1], [0]]), "answers must be 3 columns"),
        (lambda: SAME.estimate(np.zeros(3)), "answers must be 3 columns"),
        (lambda: SAME.estimate("yes"), "answers must be 3 columns"),
        (lambda: SAME.estimate([[1], [0], [0, 1]]), "answers must have columns of one length"),
        (lambda: SAME.estimate([[1], [0], [None]]), "answers[2] must each be one of"),
        (lambda: SAME.respond([[1, 0, 1]]), "truth must be rows of 3 booleans"),
        (lambda: SAME.respond([[True, False]]), "truth must be rows of 3 booleans"),
        (lambda: one(SAME, [True] * 3).interval(2), "level must be"),
    ],
)
def test_what_cannot_be_scored_is_refused(make: Any, part: str) -> None:
    with pytest.raises(ParameterError) as error:
        make()
    assert part in str(error.value)
