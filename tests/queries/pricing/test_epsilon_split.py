"""Shares of epsilon: they sum to one, stated parts are kept, and what is shared is paid once."""

from __future__ import annotations

from fractions import Fraction

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import sfumato as sf
from sfumato.errors import BudgetExceeded, OptionError
from sfumato.queries.pricing.epsilon_split import Claimant, split_epsilon


@st.composite
def _parties(draw: st.DrawFn) -> tuple[list[Claimant], int]:
    measures = draw(st.integers(1, 5))
    found = [
        Claimant(f"p{i}", tuple(draw(st.lists(st.integers(0, measures - 1), min_size=1, unique=True))), part)
        for i, part in enumerate(draw(st.lists(st.one_of(st.none(), st.floats(1e-6, 1)), max_size=4)))
    ]
    return [*found, Claimant("rest", tuple(range(measures)))], measures


@given(_parties())
def test_shares_sum_to_one_and_hold_what_was_stated(made: tuple[list[Claimant], int]) -> None:
    parties, measures = made
    shares = split_epsilon(parties, measures, 5.0)
    assert sum(shares.weights) == 1
    assert shares.epsilon <= 5
    for party in parties:
        if party.epsilon is not None:
            held = sum(shares.weights[m] for m in party.measures) * Fraction(5)
            assert held >= Fraction(repr(party.epsilon))


def test_without_stated_parts_all_measures_have_the_same_share() -> None:
    shares = split_epsilon([Claimant("a", (0, 1)), Claimant("b", (1, 2))], 3, 0.1)
    assert shares.weights == (Fraction(1, 3),) * 3
    assert shares.epsilon == 0.1


def test_a_shared_measure_has_the_parts_of_all_that_read_it() -> None:
    shares = split_epsilon(
        [Claimant("a", (0,), 0.1), Claimant("b", (0,), 0.2), Claimant("c", (1,), 0.3)], 2, 1.0
    )
    assert shares.weights == (Fraction(1, 2), Fraction(1, 2))
    assert shares.epsilon == pytest.approx(0.6)
    assert Fraction(shares.epsilon) <= Fraction("0.6")


def test_what_states_no_part_must_have_some_left() -> None:
    with pytest.raises(OptionError, match=r"leave some of 0\.3 for b"):
        split_epsilon([Claimant("a", (0,), 0.3), Claimant("b", (1,))], 2, 0.3)


@pytest.mark.parametrize("selection", ["", ", group_selection_epsilon=0.3"])
@pytest.mark.parametrize("more", ["", ", SUM(x, contribution_bounds_per_group => (0, 1)) AS s"])
def test_what_is_offered_for_a_query_with_stated_parts_fits_with_its_parts_in_proportion(
    selection: str, more: str
) -> None:
    table = pa.table({"id": range(60), "g": ["a"] * 60, "x": [0.5] * 60})

    def text(whole: float, part: float, chosen: str) -> str:
        return (
            f"SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(epsilon={whole!r}, delta=1e-8, "
            f"max_groups_contributed=1{chosen}) g, COUNT(x, epsilon => {part!r}) AS n{more} "
            "FROM data GROUP BY g"
        )

    with sf.connect(table, privacy_unit="id", epsilon=1, delta=1e-6, rng=1) as session:
        with pytest.raises(BudgetExceeded, match="and for its parts in proportion") as refused:
            session.sql(text(4.0, 2.0, selection))
        offered = refused.value.remaining.answerable_epsilon
        assert offered is not None
        assert 0.1 < offered < 4
        ratio = offered / 4 * (1 - 1e-9)
        chosen = f", group_selection_epsilon={0.3 * ratio!r}" if selection else ""
        session.sql(text(offered, 2.0 * ratio, chosen))
        assert len(session.ledger.entries()) == 1
