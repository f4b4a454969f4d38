"""Private school choice: no justified envy, enough seats, and deferred acceptance without noise."""

from typing import Any, TypeAlias

import numpy as np
import pytest
from numpy.typing import NDArray

from sfumato.errors import ParameterError
from sfumato.games.joint.school_choice import SchoolChoice

_Integers: TypeAlias = NDArray[np.int64]


def instance(
    students: int, schools: int, seed: int, choices: int | None = None
) -> tuple[_Integers, _Integers]:
    rng = np.random.default_rng(seed)
    orders = np.array([rng.permutation(students) for _ in range(schools)])
    lists = np.array([rng.permutation(schools)[:choices] for _ in range(students)])
    return orders, lists


def envy_by_loops(orders: _Integers, lists: _Integers, schools: _Integers) -> int:
    ranks, found = np.argsort(orders, axis=1), 0
    for student, own in enumerate(schools):
        for better in lists[student]:
            if better == own or better < 0:
                break
            found += any(
                ranks[better, student] < ranks[better, other] for other in np.flatnonzero(schools == better)
            )
    return found


def school_proposing(orders: _Integers, lists: _Integers, seats: tuple[int, ...]) -> _Integers:
    """Return the matching of deferred acceptance in which schools propose."""
    held, asked, matched = [0] * len(orders), [0] * len(orders), np.full(len(lists), -1)
    place = [{school: at for at, school in enumerate(row) if school >= 0} for row in lists]
    moving = True
    while moving:
        moving = False
        for school, order in enumerate(orders):
            while held[school] < seats[school] and asked[school] < len(order):
                student = order[asked[school]]
                asked[school] += 1
                moving = True
                now = place[student].get(matched[student], len(orders))
                if place[student].get(school, len(orders)) < now:
                    if matched[student] >= 0:
                        held[matched[student]] -= 1
                    matched[student], held[school] = school, held[school] + 1
    return matched


def test_no_justified_envy_and_never_too_many() -> None:
    for seed in range(2):
        orders, lists = instance(1200, 4, seed)
        choice = SchoolChoice(priorities=orders, seats=(280,) * 4, batch=40, epsilon=8.0, delta=1e-6)
        release = choice.release(lists, rng=seed)
        schools = release.parts(lists)
        assert choice.justified_envy(schools, lists) == 0 == envy_by_loops(orders, lists, schools)
        sizes = np.bincount(schools[schools >= 0], minlength=4)
        assert (sizes <= 280).all()
        cutoffs, full = choice.cutoffs(release.value), choice.unfinished(release.value)
        error = choice.counter.error(0.05)
        for school in range(4):
            finished = school not in full and cutoffs[school] < 1200
            assert not finished or sizes[school] > 280 - choice.reserve - error
        assert choice.reserve == error + 40
        assert not len(full)


def test_without_noise_worth_the_name_it_is_deferred_acceptance() -> None:
    orders, lists = instance(60, 3, 7)
    choice = SchoolChoice(
        priorities=orders, seats=(20,) * 3, batch=1, epsilon=1e9, delta=0.5, beta=0.5, rounds=400
    )
    near = choice.release(lists, rng=1).parts(lists)
    # The reserve is some seats of each school; the match is that of deferred acceptance with as many fewer.
    seats = int(20 - choice.reserve + 1)
    assert np.array_equal(near, school_proposing(orders, lists, (seats,) * 3))


def test_envy_is_found_where_there_is_some() -> None:
    orders, lists = instance(50, 3, 1)
    choice = SchoolChoice(priorities=orders, seats=(40,) * 3, batch=5, epsilon=60.0, delta=1e-2)
    random = np.random.default_rng(2).integers(-1, 3, 50)
    found = choice.justified_envy(random, lists)
    pairs = envy_by_loops(orders, lists, random)
    assert found == pairs > 10


def test_short_lists_and_absent_students() -> None:
    orders, lists = instance(400, 3, 3, choices=2)
    lists[:50] = -1
    lists[50:90, 1] = -1
    choice = SchoolChoice(priorities=orders, seats=(150,) * 3, batch=10, epsilon=20.0, delta=1e-3, choices=2)
    release = choice.release(lists, rng=4)
    schools = release.parts(lists)
    assert (schools[:50] == -1).all()
    assert choice.counter.turns == 2
    rest = np.flatnonzero(schools >= 0)
    assert (schools[rest, None] == lists[rest]).any(axis=1).all()
    assert release.part(399, lists[399]) == schools[399]
    brief = SchoolChoice(priorities=orders, seats=(150,) * 3, batch=10, epsilon=20.0, delta=1e-3, rounds=2)
    assert brief.unfinished(brief.release(lists, rng=1).value).tolist() == [0, 1, 2]
    assert brief.cutoffs(brief.release(lists, rng=1).value).tolist() == [20, 20, 20]
    assert choice.rounds == 80


def test_what_is_refused() -> None:
    orders, lists = instance(30, 3, 1)
    given: dict[str, Any] = {
        "priorities": orders,
        "seats": (25,) * 3,
        "epsilon": 60.0,
        "delta": 1e-2,
        "batch": 2,
    }
    for change, message in (
        ({"priorities": orders[0]}, "priorities must be whole numbers with two axes"),
        ({"priorities": orders * 1.0}, "priorities must be whole numbers with two axes"),
        ({"priorities": orders // 2}, "priorities must be orders of all students"),
        ({"seats": (25, 25)}, "seats must be positive whole numbers"),
        ({"seats": (25, 25, 0)}, "seats must be positive whole numbers"),
        ({"seats": (25, 25, 3)}, "seats must be at least the reserve"),
        ({"batch": 0}, "batch must be"),
        ({"choices": 4}, "choices must be at most 3"),
        ({"choices": 0}, "choices must be"),
        ({"beta": 0.0}, "beta must be"),
        ({"rounds": -1}, "rounds must be"),
    ):
        with pytest.raises(ParameterError, match=message):
            SchoolChoice(**given | change)
    choice = SchoolChoice(**given)
    for reports, message in (
        (lists[:29], "reports must be lists of schools"),
        (lists * 1.0, "reports must be lists of schools"),
        ([[0]] * 29 + [[0, 1]], "reports must be an array"),
        ([[0, 0, 1]] * 30, "reports must list distinct schools"),
        ([[-1, 0, 1]] * 30, "reports must list distinct schools"),
        ([[0, 1, 3]] * 30, "reports must list distinct schools"),
        ([[0, 1, -2]] * 30, "reports must list distinct schools"),
    ):
        with pytest.raises(ParameterError, match=message):
            choice.release(reports)
