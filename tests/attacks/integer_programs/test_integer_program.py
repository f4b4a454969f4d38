"""Solutions of integer programs: the Bureau's three, and what has none."""

from __future__ import annotations

import itertools
from collections import Counter

import numpy as np
import pytest
from scipy.sparse import csr_array

from sfumato.attacks import Infeasible, IntegerProgram, Unsolved, parse_lp
from sfumato.errors import ParameterError
from tests.attacks.bureau import TRACTS, bureau, person_types, program
from tests.cases import cases


@pytest.mark.parametrize("tract", TRACTS)
@pytest.mark.sharpest(*TRACTS)
def test_the_bureaus_programs_have_as_many_persons_as_it_found(tract: str) -> None:
    found = program(tract).solve()
    assert found.status == "optimal"
    groups, types = person_types(program(tract).variables)
    persons = Counter[str]()
    for value, group in zip(found.x, groups, strict=True):
        if value and group >= 0:
            persons[types[group]] += round(value)
    assert persons.total() == TRACTS[tract] == bureau(tract).total()
    if tract != "02198000300":
        assert persons == bureau(tract)


def test_values_are_those_of_an_enumeration() -> None:
    rng = np.random.default_rng(3)
    for _ in range(20):
        coefficients = rng.integers(-3, 4, (3, 4)).astype(float)
        limit = rng.integers(0, 9, 3).astype(float)
        objective = rng.integers(-5, 6, 4).astype(float)
        built = IntegerProgram(
            objective=objective,
            matrix=csr_array(coefficients),
            row_lower=np.full(3, -np.inf),
            row_upper=limit,
            lower=np.zeros(4),
            upper=np.full(4, 3.0),
            integer=np.ones(4, dtype=bool),
            variables=tuple("abcd"),
            rows=tuple("123"),
            maximize=True,
        )
        best = max(
            objective @ np.array(point)
            for point in itertools.product(range(4), repeat=4)
            if (coefficients @ np.array(point) <= limit).all()
        )
        assert built.solve().objective == best


def test_a_program_that_the_solvers_presolve_takes_for_infeasible_is_solved() -> None:
    text = "min a\nst\n 2 a + b + 2 c + 2 d = 1\n a + 2 b + 2 c = 2\nbounds\n"
    found = parse_lp(text + " a <= 2\n b <= 2\n c <= 2\n d <= 2\ngenerals\n a b c d\nend").solve()
    assert found.values == {"a": 0, "b": 1, "c": 0, "d": 0}


def test_rows_that_force_zeros_leave_the_others() -> None:
    found = parse_lp(
        "max a + b + c\nst\n z: a + b = 0\n y: b + c <= 2\nbounds\n a <= 4\n b <= 4\nend"
    ).solve()
    assert found.values == {"a": 0, "b": 0, "c": 2}
    assert found.chosen() == {"c": 2}


def test_a_negative_coefficient_forces_no_zero() -> None:
    found = parse_lp("max a\nst\n z: a - b = 0\nbounds\n a <= 4\n b <= 3\nend").solve()
    assert found.values == {"a": 3, "b": 3}


@cases(
    "text",
    [
        "min x\nst\n a: x + y = 0\n b: x >= 1\nend",
        "min x\nst\n a: x + y <= -1\nend",
        "min x\nst\n a: 2 x = 3\nbounds\n x <= 9\ngenerals\n x\nend",
        "min x\nst\n a: x - y >= 3\nbounds\n x <= 2\nend",
        "min x\nst\n a: x >= 0\nbounds\n 3 <= x <= 2\nend",
    ],
)
def test_programs_without_solutions_are_refused(text: str) -> None:
    with pytest.raises(Infeasible, match="program must have a solution"):
        parse_lp(text).solve()


def test_objectives_without_a_bound_are_not_solved() -> None:
    with pytest.raises((Unsolved, Infeasible)):
        parse_lp("max x\nst\n x - y <= 3\nend").solve()


def test_shapes_that_do_not_fit_are_refused() -> None:
    sound = parse_lp("min x\nst\n x >= 1\nend")
    with pytest.raises(ParameterError, match="row_lower must have 1 entries"):
        IntegerProgram(
            objective=sound.objective,
            matrix=sound.matrix,
            row_lower=np.zeros(2),
            row_upper=sound.row_upper,
            lower=sound.lower,
            upper=sound.upper,
            integer=sound.integer,
            variables=sound.variables,
            rows=sound.rows,
        )
    with pytest.raises(ParameterError, match="objective must hold numbers"):
        sound.with_objective(np.array([np.nan]))
    with pytest.raises(ParameterError, match="time_limit must be positive"):
        sound.solve(time_limit=0)
