from __future__ import annotations

from dataclasses import replace

import pytest

from sfumato.errors import NeighboringMismatch, ParameterError
from sfumato.privacy import Gaussian
from sfumato.pufferfish import MarkovChain, MarkovQuilt, PufferfishGuarantee

CHAIN = MarkovChain(transition=[[0.9, 0.1], [0.4, 0.6]])
ONE = MarkovQuilt(chain=CHAIN, length=100, lipschitz=1, epsilon=1.0)


def test_same_quilts_add_as_the_theorem_has_it() -> None:
    other = MarkovQuilt(chain=CHAIN, length=100, lipschitz=7, epsilon=2.0, quilts=ONE.active_quilts)
    total = ONE.guarantee + other.guarantee + ONE.guarantee
    assert (total.releases, total.largest_epsilon, total.epsilon) == (3, 2.0, 6.0)
    assert (ONE.guarantee + ONE.guarantee).epsilon == 2.0


def test_all_other_sums_are_refused() -> None:
    cases = [
        (MarkovQuilt(chain=CHAIN, length=100, lipschitz=1, epsilon=2.0), "the active quilts differ"),
        (MarkovQuilt(chain=CHAIN, length=101, lipschitz=1, epsilon=1.0), "they are about two"),
    ]
    for mechanism, message in cases:
        with pytest.raises(NeighboringMismatch, match=message):
            ONE.guarantee + mechanism.guarantee
    plain = PufferfishGuarantee(largest_epsilon=1, secrets="s", models="m", digest="d", theorem="t")
    with pytest.raises(NeighboringMismatch, match="one has no quilts"):
        plain + plain


def test_a_delta_or_an_order_is_not_lost_in_a_sum() -> None:
    for other in (replace(ONE.guarantee, delta=1e-6), replace(ONE.guarantee, order=2.0)):
        for first, second in ((ONE.guarantee, other), (other, ONE.guarantee)):
            with pytest.raises(NeighboringMismatch, match="one has a delta or an order"):
                first + second


def test_nothing_is_mixed_with_differential_privacy() -> None:
    for other in (Gaussian(1.0), 0, None):
        with pytest.raises(NeighboringMismatch, match="protect different things"):
            ONE.guarantee + other
    with pytest.raises(NeighboringMismatch, match="protect different things"):
        Gaussian(1.0) + ONE.guarantee


def test_json_keeps_it() -> None:
    guarantee = ONE.guarantee
    assert PufferfishGuarantee.from_json(guarantee.to_json()) == guarantee
    for bad in (
        "",
        "[]",
        "[" * 100_000,
        "{}",
        '{"format": "other"}',
        guarantee.to_json().replace('"delta": 0.0', '"delta": 2'),
    ):
        with pytest.raises(ParameterError, match="be a guarantee's to_json"):
            PufferfishGuarantee.from_json(bad)


def test_words_say_what_it_is() -> None:
    text = str(ONE.guarantee)
    assert "epsilon=1" in text
    assert "a Markov chain of 2 states with the stationary start" in text
    gaussian = PufferfishGuarantee(
        largest_epsilon=1, secrets="s", models="m", digest="d", theorem="t", delta=1e-6, order=3.0
    )
    assert str(gaussian) == "Pufferfish(order=3, epsilon=1, delta=1e-06) for s, under m"
