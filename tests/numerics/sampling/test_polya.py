"""Parts of geometric noise: their law against mpmath, their sums against the law that is priced."""

from __future__ import annotations

import itertools
from collections import Counter
from fractions import Fraction

import mpmath
import pytest

from sfumato.errors import ParameterError
from sfumato.numerics.certified.fixed_point import polya_magnitude, thresholds
from sfumato.numerics.distributions.discrete import DiscreteLaplaceDistribution
from sfumato.numerics.randomness.source import SimulatedSource
from sfumato.numerics.sampling.integer_noise import LARGEST_POLYA, polya
from sfumato.numerics.sampling.plans import polya_plan
from tests.cases import cases
from tests.chance import accepts_only, frequencies, moments
from tests.numerics.sources import ListedSource

CASES = [
    (Fraction(1, 3), 1),
    (Fraction(5, 2), 3),
    (Fraction(40), 7),
    (Fraction(300), 10**6),
    (Fraction(3), 2**40),
]


def masses(scale: Fraction, parts: int, count: int) -> list[mpmath.mpf]:
    """The law as binomial coefficients of a real number, with 400 bits."""
    with mpmath.workprec(400):
        r, q = mpmath.mpf(1) / parts, mpmath.exp(-mpmath.mpf(scale.denominator) / scale.numerator)
        start = (1 - q) ** r
        return [start * mpmath.rf(r, k) / mpmath.factorial(k) * q**k for k in range(count)]


@cases(("scale", "parts"), CASES)
def test_tables_are_those_of_the_law(scale: Fraction, parts: int) -> None:
    table = thresholds(polya_magnitude(scale, parts), 63)
    found = masses(scale, parts, 40)
    with mpmath.workprec(400):
        for k in range(1, 40):
            left = 1 - mpmath.fsum(found[:k])
            assert (table[k - 1] if k <= len(table) else 0) == int(mpmath.floor(left * 2**63))
    assert table == sorted(table, reverse=True)
    # The kernel holds a million thresholds, and the largest scale needs no more.
    assert len(table) <= 44 * scale + 45 <= 44 * LARGEST_POLYA + 45 <= 2**20


@pytest.mark.parametrize(("scale", "parts"), CASES[:3])
def test_parts_add_up_to_geometric_noise_and_differences_to_laplace(scale: Fraction, parts: int) -> None:
    with mpmath.workprec(400):
        size = 60 * int(scale + 1)
        one = masses(scale, parts, size)
        whole = [mpmath.mpf(1), *[mpmath.mpf(0)] * (size - 1)]
        for _ in range(parts):
            whole = [mpmath.fsum(whole[j] * one[k - j] for j in range(k + 1)) for k in range(min(size, 30))]
        q = mpmath.exp(-mpmath.mpf(scale.denominator) / scale.numerator)
        for k, mass in enumerate(whole):
            assert abs(mass / ((1 - q) * q**k) - 1) < 1e-80
        # Of two geometric numbers the difference d has mass (1-q) q^|d| / (1+q).
        for d in range(3):
            assert float((1 - q) * q**d / (1 + q)) == pytest.approx(
                DiscreteLaplaceDistribution(scale).pmf(d).upper
            )


@pytest.mark.parametrize(("scale", "parts"), [(Fraction(5, 2), 3), (Fraction(40), 7)])
def test_draws_follow_the_table(scale: Fraction, parts: int) -> None:
    drawn = polya(scale, parts, 200_000, rng=4)
    assert drawn.min() == 0

    def part(scale: Fraction, parts: int) -> dict[int, float]:
        return {k: float(mass) for k, mass in enumerate(masses(scale, parts, 12))}

    accepts_only(
        frequencies(Counter(drawn.tolist())),
        part(scale, parts),
        wider=part(scale * Fraction(6, 5), parts),
        one_part_fewer=part(scale, parts - 1),
        one_part_more=part(scale, parts + 1),
    )
    # parts draws at a time: a geometric number, twice: the discrete Laplace law.
    sums = drawn[: drawn.size // (2 * parts) * 2 * parts].reshape(-1, 2, parts).sum(axis=2)

    def difference(scale: Fraction) -> dict[int, float]:
        return {d: DiscreteLaplaceDistribution(scale).pmf(d).upper for d in range(-5, 6)}

    accepts_only(
        frequencies(Counter((sums[:, 0] - sums[:, 1]).tolist())),
        difference(scale),
        wider=difference(scale * Fraction(5, 4)),
        narrower=difference(scale * Fraction(4, 5)),
    )


def test_the_largest_scale_is_drawn() -> None:
    drawn = polya(LARGEST_POLYA, 1, 100_000, rng=5)
    # A geometric number: mean and deviation are nearly the scale, and its kurtosis is 9.
    accepts_only(
        moments(drawn / LARGEST_POLYA, kurtosis=9.0), (1, 1), wider=(1.05, 1.05**2), a_half_off=(0.97, 1)
    )


def test_work_does_not_depend_on_what_is_drawn() -> None:
    asked = []
    for size, seed in itertools.product((1, 2, 200), (5, 6)):
        source = ListedSource(SimulatedSource(seed).words(4096).tolist())
        polya(30, 10, size, source)
        asked.append(source.requests)
    assert asked == [[256]] * 6


def test_an_open_draw_is_decided_with_more_bits() -> None:
    scale, parts = Fraction(5), 4
    plan = polya_plan(scale, parts)
    first, longer = (thresholds(plan.tail, bits)[0] for bits in (63, 127))
    more = longer - (first << 64)
    assert 0 < more < 2**64 - 1
    for word, expected in ((more + 1, 0), (more - 1, 1)):
        assert plan.resolve([first << 1], ListedSource([word])) == expected


@cases(("scale", "parts"), [(0, 1), (2**14 + 1, 1), (3, 0), (3, 2**41), (3, 1.5)])
def test_what_cannot_be_is_refused(scale: float, parts: int) -> None:
    with pytest.raises(ParameterError):
        polya(scale, parts, 3, rng=1)


def tail_of(q: mpmath.mpf, parts: int, k: int) -> mpmath.mpf:
    """P(K >= k) at a ratio q."""
    r = mpmath.mpf(1) / parts
    return 1 - (1 - q) ** r * mpmath.fsum(mpmath.rf(r, j) / mpmath.factorial(j) * q**j for j in range(k))


def ratio_of(tail: mpmath.mpf, parts: int, k: int) -> mpmath.mpf:
    """The ratio q at which P(K >= k) is that."""
    if k == 1:
        return 1 - (1 - tail) ** parts
    if parts == 1:
        return tail ** (mpmath.mpf(1) / k)
    ends = (mpmath.mpf(2) ** -30, 1 - mpmath.mpf(2) ** -20)
    return mpmath.findroot(lambda q: tail_of(q, parts, k) - tail, ends, solver="anderson")


@cases(
    ("bits", "parts", "k", "entry"),
    [(63, 1, 30, 5), (63, 1, 38, 2), *itertools.product([16], [2, 7], [1, 2], range(5, 4005, 500))],
)
def test_bounds_hold_where_the_tail_all_but_meets_a_whole_number(
    bits: int, parts: int, k: int, entry: int
) -> None:
    """The scale puts the tail 2^-72 units of the table beside a whole number, above it and below."""
    for side in (1, -1):
        with mpmath.workprec(400):
            wanted = (entry + side * mpmath.mpf(2) ** -72) / 2**bits
            q = ratio_of(wanted, parts, k)
            scale = Fraction(int(-(2**300) / mpmath.log(q)), 2**300)
            q = mpmath.exp(-mpmath.mpf(scale.denominator) / scale.numerator)
            truth = tail_of(q, parts, k) * 2**bits
            assert abs(truth - wanted * 2**bits) < 1e-30
            low, high = next(itertools.islice(polya_magnitude(scale, parts)(bits), k - 1, None))
            assert low <= truth <= high
            assert high - low <= 2
    # So the table is right there too: more bits are taken until both bounds agree.
    assert thresholds(polya_magnitude(scale, parts), bits)[k - 1] == entry - 1


def test_bounds_hold_where_the_tail_is_far_below_a_unit() -> None:
    # Of so many parts each is 0 but for a chance of 2^-198 or so.
    for bounds in itertools.islice(polya_magnitude(Fraction(5), 2**200)(16), 200):
        assert bounds == (0, 1)
