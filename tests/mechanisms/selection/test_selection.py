"""What holds for every choice among scored candidates: the exact distribution against the loss."""

from __future__ import annotations

import math
from collections import Counter
from fractions import Fraction
from typing import Any

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sfumato.errors import ParameterError, UnboundedSensitivity
from sfumato.mechanisms import Exponential, Grid, NoisyMax, PermuteAndFlip, TopK
from sfumato.mechanisms.selection.selection import Selection
from sfumato.privacy import loss_from_json
from sfumato.privacy.neighboring import Neighboring
from tests.cases import cases
from tests.chance import accepts_only, frequencies
from tests.mechanisms.selection import distributions
from tests.numerics.enumeration import WORDS, enumerated, pieces, residues
from tests.numerics.sources import ListedSource

KINDS: dict[str, tuple[Any, dict[str, Any], distributions.Law]] = {
    "exponential": (Exponential, {}, distributions.exponential),
    "permute-and-flip": (PermuteAndFlip, {}, distributions.permute_and_flip),
    "laplace": (NoisyMax, {"noise": "laplace"}, distributions.laplace_max),
    "exponential noise": (NoisyMax, {"noise": "exponential"}, distributions.permute_and_flip),
    "gumbel noise": (NoisyMax, {"noise": "gumbel"}, distributions.exponential),
    "top one": (TopK, {"count": 1}, distributions.exponential),
}
SCORES = [0, 3, 1, 3, -4]
kinds = pytest.mark.parametrize("kind", KINDS)
each_kind = cases("kind", KINDS)


def index_of(release: Any) -> int:
    return int(release.value[0] if isinstance(release.value, tuple) else release.value)


@each_kind
@cases(("monotone", "sensitivity"), [(False, 1), (True, 1), (False, 2), (True, 2)])
@cases("scale", [Fraction(3, 2), Fraction(5)])
def test_the_loss_covers_the_exact_distribution(
    kind: str, monotone: bool, sensitivity: int, scale: Fraction
) -> None:
    make, parameters, distribution = KINDS[kind]
    mechanism = make(sensitivity=sensitivity, scale=scale, monotone=monotone, **parameters)
    loss, worst = mechanism.privacy_loss, 0.0
    claimed = loss.epsilon(0.0)
    bounds = {epsilon: loss.delta(epsilon) for epsilon in (0.0, 0.3 * claimed, 0.8 * claimed)}
    for scores in ([0, 0, 0], [0, 2, 5], [0, 30, 30], [-1, 0, 40]):
        here = distribution(scores, float(scale))
        assert here.sum() == pytest.approx(1, abs=1e-12)
        for move in distributions.moves(3, monotone=monotone, sensitivity=sensitivity):
            there = distribution([int(score) for score in scores + move], float(scale))
            losses = np.log(here / there)
            worst = max(worst, float(np.abs(losses).max()))
            for epsilon, bound in bounds.items():
                assert distributions.hockey_stick(here, there, epsilon) <= bound * (1 + 1e-9) + 1e-12
                assert distributions.hockey_stick(there, here, epsilon) <= bound * (1 + 1e-9) + 1e-12
    # What is claimed is needed: a tenth less would not do.
    assert 0.9 * claimed < worst <= claimed * (1 + 1e-9)


@pytest.mark.parametrize("kind", ["exponential", "gumbel noise"])
def test_all_words_together_choose_by_the_distribution(kind: str) -> None:
    """One word tells the choice; where it lies next to a border, further ones do."""
    make, parameters, distribution = KINDS[kind]
    mechanism = make(sensitivity=1, scale=Fraction(7, 4), **parameters)

    def chosen(word: int) -> int:
        return index_of(mechanism.release(SCORES, rng=ListedSource([word, *[1 << 63] * 4])))

    found = enumerated(chosen, pieces(chosen))
    assert [float(found[i]) for i in range(5)] == pytest.approx(
        distribution(SCORES, 1.75).tolist(), rel=1e-12
    )


@pytest.mark.parametrize("kind", ["permute-and-flip", "exponential noise"])
def test_all_coins_together_choose_by_the_distribution(kind: str) -> None:
    """A word for each candidate's coin, and one for which of the heads."""
    make, parameters, distribution = KINDS[kind]
    mechanism, scale = make(sensitivity=1, scale=Fraction(7, 4), **parameters), Fraction(7, 4)

    def chosen(*words: int) -> int:
        return index_of(mechanism.release(SCORES, rng=ListedSource(words)))

    coins = []
    for score in SCORES:
        gap = max(SCORES) - score
        with mpmath.workdps(60):
            border = int(
                mpmath.exp(-mpmath.mpf(gap) / scale.numerator * scale.denominator) * mpmath.mpf(WORDS)
            )
        heads, tails = (
            ((0, border - 1), Fraction(border, WORDS)),
            ((border + 1, WORDS - 1), 1 - Fraction(border, WORDS)),
        )
        coins.append([heads, tails] if gap else [((0, WORDS - 1), Fraction(1))])
    found = enumerated(chosen, *coins, residues(math.lcm(1, 2, 3, 4, 5)))
    assert [float(found[i]) for i in range(5)] == pytest.approx(
        distribution(SCORES, 1.75).tolist(), rel=1e-12
    )


@pytest.mark.parametrize("kind", ["top one", "laplace"])
def test_choices_of_many_words_follow_the_distribution(kind: str) -> None:
    make, parameters, distribution = KINDS[kind]
    mechanism = make(sensitivity=1, scale=Fraction(7, 4), **parameters)
    source = np.random.default_rng(20261121)
    draws = Counter(index_of(mechanism.release(SCORES, rng=source)) for _ in range(4_500))

    def choices(scale: float) -> dict[int, float]:
        return dict(enumerate(distribution(SCORES, scale)))

    accepts_only(frequencies(draws), choices(1.75), flatter=choices(2.5), steeper=choices(1.25))


@each_kind
@cases("beta", [0.5, 0.05, 1e-9])
@cases("others", [1, 4])
def test_the_utility_bound_holds_for_the_exact_distribution(kind: str, beta: float, others: int) -> None:
    make, parameters, distribution = KINDS[kind]
    scale = Fraction(7, 4)
    mechanism = make(sensitivity=1, scale=scale, **parameters)
    bound = mechanism.utility_bound(beta, candidates=1 + others)
    assert bound == int(bound)

    def too_far(gap: int) -> float:
        return float(distribution([0] * others + [gap], float(scale))[:-1].sum())

    assert too_far(int(bound) + 1) <= beta * (1 + 1e-9)
    if bound and kind != "laplace":  # a union bound is not sharp
        assert too_far(int(bound)) > beta * (1 - 1e-9)
    near = distribution([0] * others + [int(bound) + 1, int(bound)], float(scale))
    assert near[:others].sum() <= beta * (1 + 1e-9)
    assert mechanism.utility_bound(beta, candidates=1) == 0


@pytest.mark.parametrize("beta", [0.3, 0.02])
def test_the_utility_bound_of_laplace_noise_is_nearly_sharp_for_two(beta: float) -> None:
    bound = int(NoisyMax(sensitivity=1, scale=15).utility_bound(beta, candidates=2))
    assert (
        distributions.laplace_max([0, bound + 1], 15.0)[0]
        <= beta
        < distributions.laplace_max([0, bound - 1], 15.0)[0]
    )


@cases("size", range(2, 9))
def test_permute_and_flip_errs_less_than_the_exponential_mechanism(size: int) -> None:
    generator = np.random.default_rng(size)
    tries = [generator.integers(0, 12, size) for _ in range(4 if size == 8 else 12)]
    for scores in [*tries, np.array([0] * (size - 1) + [2]), np.zeros(size, int)]:
        for scale in (0.7, 3.0):
            listed = scores.tolist()
            gaps = max(listed) - np.array(listed)
            flips, weights = (
                distributions.permute_and_flip(listed, scale),
                distributions.exponential(listed, scale),
            )
            assert (flips * gaps).sum() <= (weights * gaps).sum() * (1 + 1e-12) + 1e-15
            for far in range(1, gaps.max() + 1):
                assert flips[gaps >= far].sum() <= weights[gaps >= far].sum() * (1 + 1e-12)


@each_kind
def test_odd_scores_are_answered_at_the_usual_cost(kind: str) -> None:
    make, parameters, _ = KINDS[kind]
    mechanism = make(sensitivity=1.0, scale=2.0, **parameters)
    usual = mechanism.release([1.0, 2.0, 3.0], rng=1).loss
    rows = ([math.nan] * 3, [0.0] * 3, [math.inf] * 3, [-math.inf] * 3, [1e300, math.nan, -1e-300])
    for row in rows:
        for scores in (row, np.array(row)):
            release = mechanism.release(scores, rng=3)
            assert release.loss == usual
            assert index_of(release) in (0, 1, 2)
    drawn = {index_of(mechanism.release([math.nan] * 3, rng=seed)) for seed in range(60)}
    assert drawn == {0, 1, 2}
    # NaN is the worst of all, and infinity the best.
    odd: Any
    for odd in (
        [np.float32(math.nan), np.float32(0), math.nan],
        [math.nan, 0.0, math.nan],
        [-math.inf, 0.0, math.nan],
        [0.0, math.inf, 1e9],
    ):
        assert index_of(mechanism.release(odd, rng=5)) == 1
    assert index_of(mechanism.release([7.0], rng=1)) == 0


@each_kind
@settings(max_examples=12, deadline=None)
@given(scores=st.lists(st.floats(), min_size=1, max_size=6), seed=st.integers(0, 2**32))
def test_any_floats_are_answered(kind: str, scores: list[float], seed: int) -> None:
    make, parameters, _ = KINDS[kind]
    mechanism = make(sensitivity=0.1, scale=3.0, **parameters)
    chosen = mechanism.release(scores, rng=seed)
    assert 0 <= index_of(chosen) < len(scores)
    assert index_of(mechanism.release(np.array(scores), rng=seed)) == index_of(chosen)


@each_kind
def test_rounding_is_in_the_loss(kind: str) -> None:
    make, parameters, _ = KINDS[kind]
    mechanism = make(sensitivity=1.0, scale=8.0, grid=Grid(exponent=0), **parameters)
    # An odd number of steps may be rounded to one more.
    assert mechanism.privacy_loss.epsilon(0.0) == 0.5
    fine = make(sensitivity=0.7, scale=8.0, **parameters)
    assert 0.175 < fine.privacy_loss.epsilon(0.0) < 0.175 * (1 + 3e-6)
    assert make(sensitivity=1, scale=8, **parameters).privacy_loss.epsilon(0.0) == 0.25
    assert mechanism.utility_bound(0.5, candidates=1) == 1.0


@each_kind
@given(st.floats(1e-3, 20.0), st.sampled_from([1, 3, 0.7]), st.booleans())
@settings(max_examples=8, deadline=None)
def test_calibration_is_tight(kind: str, epsilon: float, sensitivity: Any, monotone: bool) -> None:
    make, parameters, _ = KINDS[kind]
    mechanism = make.calibrated(sensitivity=sensitivity, epsilon=epsilon, monotone=monotone, **parameters)
    assert epsilon * (1 - 1e-5) < mechanism.privacy_loss.epsilon(0.0) <= epsilon


@each_kind
@cases("neighboring", list(Neighboring))
def test_relation_and_randomness_are_declared(kind: str, neighboring: Neighboring) -> None:
    make, parameters, _ = KINDS[kind]
    mechanism = make(sensitivity=1, scale=2.0**30, neighboring=neighboring, **parameters)
    assert mechanism.neighboring is mechanism.privacy_loss.neighboring is neighboring
    scores = np.zeros(10**4, int)
    seeded = mechanism.release(scores, rng=3)
    assert seeded.simulated
    assert seeded.value == mechanism.release(scores, rng=3).value
    assert seeded.neighboring is neighboring
    assert loss_from_json(seeded.loss.to_json()) == mechanism.privacy_loss
    real = [mechanism.release(scores) for _ in range(6)]
    assert not real[0].simulated
    assert len({index_of(release) for release in real}) > 1  # all equal with probability 1e-20


@each_kind
def test_bad_parameters_are_refused(kind: str) -> None:
    make, given_parameters, _ = KINDS[kind]

    def build(**parameters: Any) -> Selection:
        made: Selection = make(**{"sensitivity": 1, "scale": 1} | given_parameters | parameters)
        return made

    table: list[tuple[dict[str, Any], str]] = [
        ({"sensitivity": 0}, "sensitivity must be positive"),
        ({"sensitivity": -1.0}, "sensitivity must be positive"),
        ({"sensitivity": math.nan}, "sensitivity must be positive"),
        ({"scale": 0}, "scale must be positive .*calibrated"),
        ({"scale": math.inf}, "scale must be positive"),
        ({"scale": 2**41}, r"scale must be from 2\*\*-40 to 2\*\*40 steps"),
        ({"candidates": []}, "must (hold|be)"),
        ({"candidates": 5}, "candidates must be a sequence"),
        ({"candidates": "abc"}, "candidates must be a sequence"),
        ({"candidates": {"a", "b"}}, "candidates must be a sequence"),
        ({"monotone": 1}, "monotone must be True or False"),
        ({"monotone": True, "neighboring": Neighboring.REPLACE_ONE}, "monotone must be False under replace"),
        ({"neighboring": "add"}, "neighboring must be a Neighboring"),
        ({"grid": Grid(exponent=1), "integral": True}, "grid must be left out"),
    ]
    for parameters, message in table:
        with pytest.raises(ParameterError, match=message):
            build(**parameters)
    with pytest.raises(UnboundedSensitivity):
        build(sensitivity=math.inf)
    mechanism = build(candidates=["a", "b"])
    for scores, message in (
        ([], "must"),
        ([1], "scores must be 2, one for each candidate"),
        ([[1, 2]], "scores must"),
        (np.zeros((2, 2), int), "scores must have one axis, but they have 2"),
        ([1.5, 2.5], "scores must be an int .*float sensitivity"),
        (["secret", "x"], "scores must be an int"),
        (None, "scores must"),
    ):
        with pytest.raises(ParameterError, match=message) as caught:
            mechanism.release(scores)
        assert "secret" not in str(caught.value)
    with pytest.raises(ParameterError, match="must"):
        build().release([])
    for beta in (0.0, 1.0, math.nan, 1e-300):
        with pytest.raises(ParameterError, match="beta must"):
            mechanism.utility_bound(beta)
    with pytest.raises(ParameterError, match=r"candidates must be an integer .*say how many"):
        build().utility_bound(0.1)


def test_candidates_are_named() -> None:
    names = ["red", "green", "blue"]
    mechanism = Exponential(sensitivity=1, scale=Fraction(1, 100), candidates=names)
    names.append("late")
    assert mechanism.release([1, 9, 2], rng=1).value == "green"
    assert mechanism.candidates == ("red", "green", "blue")
    wide = PermuteAndFlip(sensitivity=1, scale=Fraction(1, 100), candidates=range(10, 10**6))
    assert wide.release(np.arange(10**6 - 10), rng=1).value == 10**6 - 1
    assert hash(wide) == hash(wide)
    assert Exponential(sensitivity=1, scale=1).release(np.array([2, 3], np.uint8), rng=1).value in (0, 1)


def test_exact_numbers_of_any_size_are_scores() -> None:
    mechanism = Exponential(sensitivity=1.0, scale=1.0)
    assert mechanism.release([Fraction(1, 3), 10**400, 2.5], rng=1).value == 1
    whole = Exponential(sensitivity=1, scale=1)
    assert whole.release([10**400, -(10**400), 5], rng=1).value == 0


def test_probabilities_agree_with_forty_digits() -> None:
    generator = np.random.default_rng(5)
    scores = np.append(generator.integers(0, 2_000, 500), [2_000, 2_000])
    found = Exponential(sensitivity=1, scale=Fraction(31, 7)).probabilities(scores)
    with mpmath.workdps(40):
        weights = [mpmath.exp(mpmath.mpf(7 * int(score)) / 31) for score in scores]
        whole = mpmath.fsum(weights)
        for probability, weight in zip(found.tolist(), weights, strict=True):
            truth = weight / whole
            assert abs(probability - truth) <= 1e-12 * truth + mpmath.mpf(10) ** -70


@pytest.mark.parametrize("size", [1, 2, 7, 40])
def test_probabilities_are_exact(size: int) -> None:
    scores = np.random.default_rng(size).integers(0, 30, size)
    scale = Fraction(17, 5)
    found = Exponential(sensitivity=1, scale=scale).probabilities(scores)
    np.testing.assert_allclose(found, distributions.exponential(scores.tolist(), 3.4), rtol=1e-12)
    if size <= 7:
        flips = PermuteAndFlip(sensitivity=1, scale=scale).probabilities(scores)
        np.testing.assert_allclose(flips, distributions.permute_and_flip(scores.tolist(), 3.4), rtol=1e-12)
    else:
        flips = PermuteAndFlip(sensitivity=1, scale=scale).probabilities(scores)
        assert flips.sum() == pytest.approx(1, abs=1e-12)
