"""Shares of epsilon: they sum to one, stated parts are kept, and what is shared is paid once."""

from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sfumato.errors import OptionError
from sfumato.queries.shares import Party, divided


@st.composite
def _parties(draw: st.DrawFn) -> tuple[list[Party], int]:
    measures = draw(st.integers(1, 5))
    found = [
        Party(f"p{i}", tuple(draw(st.lists(st.integers(0, measures - 1), min_size=1, unique=True))), part)
        for i, part in enumerate(draw(st.lists(st.one_of(st.none(), st.floats(1e-6, 1)), max_size=4)))
    ]
    return [*found, Party("rest", tuple(range(measures)))], measures


@given(_parties())
def test_shares_sum_to_one_and_hold_what_was_stated(made: tuple[list[Party], int]) -> None:
    parties, measures = made
    shares = divided(parties, measures, 5.0)
    assert sum(shares.weights) == 1
    assert shares.epsilon <= 5
    for party in parties:
        if party.epsilon is not None:
            held = sum(shares.weights[m] for m in party.measures) * Fraction(5)
            assert held >= Fraction(repr(party.epsilon))


def test_without_stated_parts_all_measures_have_the_same_share() -> None:
    shares = divided([Party("a", (0, 1)), Party("b", (1, 2))], 3, 0.1)
    assert shares.weights == (Fraction(1, 3),) * 3
    assert shares.epsilon == 0.1


def test_a_shared_measure_has_the_parts_of_all_that_read_it() -> None:
    shares = divided([Party("a", (0,), 0.1), Party("b", (0,), 0.2), Party("c", (1,), 0.3)], 2, 1.0)
    assert shares.weights == (Fraction(1, 2), Fraction(1, 2))
    assert shares.epsilon == pytest.approx(0.6)
    assert Fraction(shares.epsilon) <= Fraction("0.6")


def test_what_states_no_part_must_have_some_left() -> None:
    with pytest.raises(OptionError, match=r"leave some of 0\.3 for b"):
        divided([Party("a", (0,), 0.3), Party("b", (1,))], 2, 0.3)
