"""Draws that their own words leave open: crafted words force each path, and the reference decides."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction

import mpmath as mp
import numpy as np
import pytest

from sfumato.numerics import _kernels
from sfumato.numerics.randomness.source import SimulatedSource
from sfumato.numerics.sampling.plans import SamplingPlan, gaussian_plan, laplace_plan
from tests.cases import cases
from tests.numerics import reference
from tests.numerics.sources import ListedSource

PLANS = {"laplace": laplace_plan, "gaussian": gaussian_plan}
DIRECT = [
    ("laplace", Fraction(7, 2)),
    ("laplace", Fraction(128)),
    ("gaussian", Fraction(10)),
    ("gaussian", Fraction(5, 2)),
]
CELLS = [("laplace", Fraction(10**6)), ("gaussian", Fraction(10**6)), ("gaussian", Fraction(2**40))]
TOP = 2**64 - 1


@pytest.fixture(params=_kernels.variants(), autouse=True)
def variant(request: pytest.FixtureRequest) -> Iterator[None]:
    _kernels.use(request.param)
    yield
    _kernels.use(_kernels.variants()[-1])


def floor_of(probability: mp.mpf, bits: int) -> int:
    return int(mp.floor(probability * mp.mpf(2) ** bits))


def check(distribution: str, scale: Fraction, own: list[int], further: list[int], reads: int) -> int | None:
    """Draw own words amid ordinary ones; both ways must agree on the value and on the words they read."""
    plan: SamplingPlan = PLANS[distribution](scale)
    tail = [*further, *SimulatedSource(1).words(8).tolist()]
    supply = iter(tail)
    expected = reference.draw(distribution, scale, own, supply)
    assert len(tail) - len(list(supply)) == reads
    ordinary = SimulatedSource(2).words(600 * len(own)).tolist()
    before, after = ordinary[: 300 * len(own)], ordinary[300 * len(own) :]
    source = ListedSource([*before, *own, *after, *tail])
    out = np.empty(601, np.int64)
    made = plan.fill(out, source)
    assert source.requests == [601 * len(own)] + [1] * reads
    usual = np.empty(600, np.int64)
    usual_made = plan.fill(usual, ListedSource(ordinary))
    front = np.empty(300, np.int64)
    at = plan.fill(front, ListedSource(before))
    inserted = [] if expected is None else [expected]
    assert out[:made].tolist() == [*usual[:at].tolist(), *inserted, *usual[at:usual_made].tolist()]
    return expected


@pytest.mark.parametrize(("distribution", "scale"), DIRECT)
@pytest.mark.parametrize("sign", [0, 1])
@pytest.mark.parametrize("k", [1, 9])
def test_a_uniform_at_a_threshold_reads_more_bits(
    distribution: str, scale: Fraction, sign: int, k: int
) -> None:
    with mp.workdps(reference.DIGITS):
        probability = reference.magnitude_tail(distribution, scale, k, folded=True)
        start = floor_of(probability, 63)
        exact = floor_of(probability, 127) - (start << 64)
    assert start
    word = start << 1 | sign
    signed = -1 if sign else 1
    # Just below the probability, K >= k; just above it, K < k; at it, one more word decides.
    assert signed * (check(distribution, scale, [word], [exact - 1], 1) or 0) >= k
    assert signed * (check(distribution, scale, [word], [exact + 1], 1) or 0) == k - 1
    check(distribution, scale, [word], [exact, 0], 2)
    check(distribution, scale, [word], [exact, TOP], 2)


@cases(("distribution", "scale"), [*DIRECT, *CELLS])
@cases("low", [0, 1, 2, 3, 6, 100, 65535, 65536])
def test_the_far_tail_is_exact(distribution: str, scale: Fraction, low: int) -> None:
    own = [low << 1, 0][: reference.words_per_draw(distribution, scale)]
    plan: SamplingPlan = PLANS[distribution](scale)
    tail = [2**63 + 12345, 2**62 + 77, *SimulatedSource(3).words(4).tolist()]
    supply, source = iter(tail), ListedSource([*own, *tail])
    expected = reference.draw(distribution, scale, own, supply)
    out = np.empty(1, np.int64)
    assert out[: plan.fill(out, source)].tolist() == [expected]
    assert len(source.requests) - 1 == len(tail) - len(list(supply))


@cases(("distribution", "scale"), CELLS)
@cases("sign", [0, 1])
@cases("fraction", [0.001, 0.5, 0.999])
def test_a_uniform_at_an_acceptance_probability_reads_more_bits(
    distribution: str, scale: Fraction, sign: int, fraction: float
) -> None:
    low = reference.low_bits(distribution, scale)
    first = (2**61 + 12345) << 1 | sign
    place = int(fraction * 2**low)
    with mp.workdps(reference.DIGITS):
        cell = reference.look_up(distribution, scale / 2**low, False, first >> 1, iter(()))
        x = (cell << low) + place
        quotient = reference.weight(distribution, scale, x) / reference.weight(
            distribution, scale, cell << low
        )
        width = 64 - low
        start = floor_of(quotient, width)
        exact = floor_of(quotient, width + 64) - (start << 64)
    second = start << low | place
    value = -x if sign else x
    assert check(distribution, scale, [first, second], [exact - 1], 1) == value
    assert check(distribution, scale, [first, second], [exact + 1], 1) is None
    check(distribution, scale, [first, second], [exact, 5], 2)
    # One unit away the words decide by themselves, whether or not the float filter could.
    assert check(distribution, scale, [first, (start - 1) << low | place], [], 0) == value
    assert check(distribution, scale, [first, (start + 1) << low | place], [], 0) is None


@cases(("distribution", "scale"), CELLS)
def test_both_uniforms_open(distribution: str, scale: Fraction) -> None:
    low = reference.low_bits(distribution, scale)
    with mp.workdps(reference.DIGITS):
        probability = reference.magnitude_tail(distribution, scale / 2**low, 5, folded=False)
        start = floor_of(probability, 63)
        exact = floor_of(probability, 127) - (start << 64)
        place = 2**low - 1
        quotient = reference.weight(distribution, scale, (5 << low) + place) / reference.weight(
            distribution, scale, 5 << low
        )
        second = floor_of(quotient, 64 - low)
    own = [start << 1, second << low | place]
    check(distribution, scale, own, [exact - 1, 0], 2)
    check(distribution, scale, own, [exact - 1, TOP], 2)


@cases(("distribution", "scale"), CELLS)
@cases("sign", [0, 1])
def test_zero_has_one_sign_when_open(distribution: str, scale: Fraction, sign: int) -> None:
    with mp.workdps(reference.DIGITS):
        quotient = scale / 2 ** reference.low_bits(distribution, scale)
        start = floor_of(reference.magnitude_tail(distribution, quotient, 1, folded=False), 63)
    assert check(distribution, scale, [start << 1 | sign, 0], [TOP], 1) == (None if sign else 0)


@cases(("distribution", "scale"), CELLS)
def test_zero_has_one_sign(distribution: str, scale: Fraction) -> None:
    low = reference.low_bits(distribution, scale)
    zero = TOP >> 1
    for second in (0, TOP - (2**low - 1)):
        assert check(distribution, scale, [zero << 1, second], [], 0) == 0
        assert check(distribution, scale, [zero << 1 | 1, second], [], 0) is None
