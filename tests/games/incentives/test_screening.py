"""Screening from a poor start finds what plain enumeration finds, in any blocks."""

from __future__ import annotations

import numpy as np
import pytest

from sfumato.games import ExponentialChoice, Game, GapMechanism, SocialChoice, price_list
from sfumato.games.incentives import screening
from sfumato.games.incentives.gains import Found, Gains
from sfumato.games.incentives.profiles import count_tables, multisets, number_of_multisets
from sfumato.games.incentives.screening import reach, screened

RNG = np.random.default_rng(4)
START = Found(-np.inf, 0, 0, (), 0.0)
SALE = price_list((1, 2, 3, 4, 5), (0.5, 1.5, 2.5, 3.5, 4.5), agents=5)
GAME = Game(
    types=range(5),
    alternatives=range(3),
    utilities=3 * RNG.random((5, 3)) - 1,
    agents=5,
    utility_range=(-1, 2),
)


@pytest.mark.parametrize("block", [3, 512])
@pytest.mark.parametrize(
    "mechanism",
    [
        ExponentialChoice(game=GAME, epsilon=3),
        GapMechanism(game=SALE, epsilon=3, probability=0.3),
        GapMechanism(game=SALE, epsilon=1, probability=0.9),
    ],
    ids=["choice", "small lottery", "large lottery"],
)
def test_screening_finds_the_largest_gain(
    monkeypatch: pytest.MonkeyPatch, block: int, mechanism: SocialChoice
) -> None:
    monkeypatch.setattr(screening, "_BLOCK", block)
    gains = Gains(mechanism, mechanism.game, 0)
    (rows,) = multisets(4, 5, 1000)
    expected = gains.largest(rows)
    found = screened(gains, START)
    assert found.gain == pytest.approx(expected.gain, abs=1e-12)
    assert (found.type, found.report) == (expected.type, expected.report)
    assert sorted(found.others) == sorted(expected.others)
    assert found.truth_utility == pytest.approx(expected.truth_utility, abs=1e-12)


@pytest.mark.parametrize(
    "mechanism",
    [GapMechanism(game=SALE, epsilon=3, probability=0.3), ExponentialChoice(game=GAME, epsilon=3)],
)
def test_a_screen_lets_through_what_may_be_the_largest_and_little_else(mechanism: SocialChoice) -> None:
    gains = Gains(mechanism, mechanism.game, 0)
    screen = screening._Screen(gains)
    (rows,) = multisets(4, 5, 1000)
    logs = gains.mechanism.log_factors
    assert logs is not None
    table = gains.table(rows)
    own = np.arange(5)
    each = (table - table[:, own, own][:, :, None]).reshape(len(rows), 5, 5)
    each[:, own, own] = -np.inf
    largest = each.max(axis=(1, 2))
    level = float(np.median(largest))
    passed = set(screen.close(logs[rows].sum(axis=1), level).tolist())
    assert set(np.flatnonzero(largest >= level).tolist()) <= passed
    assert passed <= set(np.flatnonzero(largest > level - 2 * screen.tolerance).tolist())
    assert 1e-6 < screen.tolerance < 1e-4


def test_the_reach_is_that_of_the_widest_report() -> None:
    assert reach(np.array([[0.0, 1.0, -1.0], [5.0, 2.0, 4.0]])) == 3.0


def test_every_multiset_is_there_once() -> None:
    for size, kinds in ((0, 3), (4, 1), (4, 3), (3, 5)):
        rows = np.concatenate(list(multisets(size, kinds, 4)))
        assert len(rows) == len(np.unique(rows, axis=0)) == number_of_multisets(size, kinds)
        table = count_tables(size, kinds)[size]
        assert len(table) == len(np.unique(table, axis=0)) == number_of_multisets(size, kinds)
        assert (table.sum(axis=1) == size).all()
    assert [len(part) for part in count_tables(2, 0)] == [1, 0, 0]
