"""Deadlines follow from public numbers, and a job has as many outcomes as the grid says."""

from __future__ import annotations

import itertools
from typing import Any

import pytest

from sfumato.errors import ParameterError
from sfumato.server.console.asking.time_grid import TimeGrid
from tests.cases import cases


def test_a_moment_is_put_on_the_first_end_of_a_step_at_or_after_it() -> None:
    for step in (0.1, 0.25, 1.0, 7.0, 86_400.0, 1e-3):
        grid = TimeGrid(step=step)
        for index in (0, 1, 3, 7, 1_000_003, 17_000_000_000):
            moment = grid.time_of(index)
            assert grid.next(moment) == grid.passed(moment) == index
            for after in (moment + step * 1e-3, moment + step * 0.999):
                if grid.time_of(index) < after < grid.time_of(index + 1):
                    assert (grid.passed(after), grid.next(after)) == (index, index + 1)


@pytest.mark.parametrize("doublings", [3, 0, 5])
def test_whatever_the_run_takes_there_are_no_more_outcomes_than_stated(doublings: int) -> None:
    grid = TimeGrid(step=1.0, first=2, doublings=doublings)
    last = grid.last(10, 3)
    times = [10 + n / 4 for n in range(4 * (last - 10) + 9)]
    for cancelled in (None, *range(10, last + 2)):
        stop = last if cancelled is None else grid.cancelled(10, 3, cancelled)
        outcomes = set()
        for moment in times:
            shown = grid.shown(10, 3, moment)
            late = shown is None or grid.next(moment) > stop
            outcomes.add((stop, False) if late else (min(shown or 0, stop), True))
        assert len(outcomes) <= grid.outcomes()
        assert cancelled is not None or len(outcomes) == grid.outcomes()
        allowed = {*grid.deadlines(10, 3), stop}
        assert {end for end, _ in outcomes} <= allowed, "an answer leaves at a deadline or a cancellation"
        assert min(end for end, _ in outcomes) >= grid.deadlines(10, 3)[0]


@cases("changes", [{"step": 0.0}, {"step": 1e-9}, {"step": float("nan")}, {"first": 0}, {"doublings": 21}])
def test_a_grid_that_is_none_is_refused(changes: dict[str, Any]) -> None:
    with pytest.raises(ParameterError, match=f"^{next(iter(changes))} must"):
        TimeGrid(**changes)


def test_deadlines_double() -> None:
    ends = TimeGrid(first=3, doublings=4).deadlines(100, 2)
    assert all(2 * (one - 100) == other - 100 for one, other in itertools.pairwise(ends))
    assert ends[0] == 106
