"""Noisy histograms: the law of their numbers, its price, and numbers that nobody sends."""

from __future__ import annotations

from collections import Counter
from fractions import Fraction

import mpmath
import numpy as np
import pytest

from sfumato.errors import ParameterError
from sfumato.local.device import Domain, NoisyHistogramRandomizer
from tests.chance import accepts_only, frequencies
from tests.local.laws import within


def law(made: NoisyHistogramRandomizer, true: bool) -> dict[int, mpmath.mpf]:
    """The law of one number, beyond the limit gathered there."""
    ratio = mpmath.exp(-mpmath.mpf(made.scale.denominator) / made.scale.numerator)
    shift = made.steps if true else 0
    found = {
        k: (1 - ratio) / (1 + ratio) * ratio ** abs(k - shift) for k in range(-made.limit, made.limit + 1)
    }
    for end, away in ((made.limit, made.limit - shift), (-made.limit, made.limit + shift)):
        found[end] = ratio**away / (1 + ratio)
    return found


@pytest.mark.parametrize("epsilon", [1.0, 4.0, 40.0])
def test_two_numbers_have_the_odds_of_epsilon(epsilon: float) -> None:
    made = NoisyHistogramRandomizer(epsilon=epsilon, domain=Domain(range(4)))
    assert made.scale == Fraction(128) / Fraction(epsilon)
    with mpmath.workprec(300):
        one, none = law(made, True), law(made, False)
        assert abs(sum(one.values()) - 1) < mpmath.mpf(2) ** -250
        up, down = max(one[k] / none[k] for k in one), max(none[k] / one[k] for k in one)
        # Of the four numbers two are those of the same zeros; the others are independent.
        assert abs(up * down / mpmath.exp(epsilon) - 1) < mpmath.mpf(2) ** -250
        assert one[made.limit] < mpmath.exp(-63)


def test_what_is_drawn_is_the_law() -> None:
    made, n = NoisyHistogramRandomizer(epsilon=12.0, domain=Domain(range(3))), 60_000
    numbers = made.numbers(made.randomize_batch(np.full(n, 1), 5).records)
    for place in range(3):
        chances = {k: float(p) for k, p in law(made, place == 1).items()}
        seen = Counter(numbers[:, place].tolist())
        other = {k: float(p) for k, p in law(made, place != 1).items()}
        more = NoisyHistogramRandomizer(epsilon=9.0, domain=made.domain)
        wider = {k: float(p) for k, p in law(more, place == 1).items()}
        accepts_only(frequencies(seen), chances, of_another=other, of_epsilon_9=wider)
    for one, two in ((0, 1), (0, 2), (1, 2)):
        shared = within(np.corrcoef(numbers[:, one], numbers[:, two])[0, 1], 1 / np.sqrt(n))
        accepts_only(shared, 0.0, a_twentieth_is_shared=0.05)


@pytest.mark.parametrize(("epsilon", "size"), [(1.0, 2), (0.01, 4)])
def test_records_hold_numbers_of_a_size_that_fits(epsilon: float, size: int) -> None:
    made = NoisyHistogramRandomizer(epsilon=epsilon, domain=Domain(range(5)))
    assert made.width == 5 * size + 4
    kind = f"<i{size}"
    numbers = np.zeros((4, 5), kind)
    numbers[:, 2] = [made.limit, -made.limit, made.limit + 1, -made.limit - 1]
    records = np.zeros((4, made.width), np.uint8)
    records[:, :-4] = numbers.view(np.uint8)
    made.layout.stamp(records)
    assert made.well_formed(records).tolist() == [True, True, False, False]
    assert made.numbers(records).tolist() == numbers.tolist()


def test_refuses_what_does_not_fit() -> None:
    with pytest.raises(ParameterError, match="epsilon must be greater"):
        NoisyHistogramRandomizer(epsilon=1e-7, domain=Domain(range(3)))
    with pytest.raises(ParameterError, match="domain must have at most"):
        NoisyHistogramRandomizer(epsilon=1.0, domain=Domain(range(1 << 21)))
