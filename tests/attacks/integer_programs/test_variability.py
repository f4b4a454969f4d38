"""What all solutions share, against all solutions by enumeration, and on the Bureau's third program."""

from __future__ import annotations

import itertools
from collections import Counter

import numpy as np
import pytest

from sfumato.attacks import (
    Infeasible,
    group_counts,
    iterate_solutions,
    parse_lp,
    solution_variability,
)
from sfumato.errors import ParameterError
from tests.attacks.bureau import bureau, person_types, program

TRACT = "02198000300"


def test_persons_certain_in_the_third_program_are_all_the_bureaus() -> None:
    groups, types = person_types(program(TRACT).variables)
    found = solution_variability(program(TRACT), groups)
    certain = Counter({types[place]: int(count) for place, count in enumerate(found.certain) if count})
    assert found.proven
    assert found.total == 87
    # 46 persons are in every solution; at least 53 of the first solution's 87 are in any other one
    assert certain.total() == 46
    assert certain <= bureau(TRACT)
    assert certain.total() <= found.shared < found.total


def small(seed: int) -> str:
    rng = np.random.default_rng(seed)
    rows = [
        " + ".join(f"{weight} x{place}" for place, weight in enumerate(rng.integers(0, 3, 4)) if weight)
        for _ in range(2)
    ]
    limits = "\n".join(f" x{place} <= 2" for place in range(4))
    body = "\n".join(f" {row} = {rng.integers(1, 6)}" for row in rows if row)
    return f"min x0\nst\n{body}\nbounds\n{limits}\ngenerals\n x0 x1 x2 x3\nend"


def test_certain_units_and_all_solutions_are_those_of_an_enumeration() -> None:
    groups = np.array([0, 1, 1, 2])
    several = 0
    for seed in range(14):
        found = parse_lp(small(seed))
        order = [found.variables.index(f"x{place}") for place in range(4) if f"x{place}" in found.variables]
        if len(order) < 4:
            continue
        columns = groups[[int(name[1]) for name in found.variables]]
        solutions = set()
        for point in itertools.product(range(3), repeat=4):
            x = np.array([float(point[int(name[1])]) for name in found.variables])
            sums = found.matrix @ x
            if (sums >= found.row_lower).all() and (sums <= found.row_upper).all():
                solutions.add(tuple(group_counts(x, columns).tolist()))
        if not solutions:
            with pytest.raises(Infeasible):
                solution_variability(found, columns)
            continue
        several += len(solutions) > 1
        listed = [tuple(counts.tolist()) for counts in iterate_solutions(found, columns)]
        assert len(listed) == len(set(listed))
        assert set(listed) == solutions
        seen = solution_variability(found, columns)
        first = seen.counts
        assert seen.certain.tolist() == np.minimum(np.min(list(solutions), axis=0), first).tolist()
        assert seen.shared == min(int(np.minimum(first, other).sum()) for other in solutions)
        assert seen.proven
    assert several >= 3


def test_what_groups_must_be() -> None:
    found = parse_lp("min a\nst\n a + b = 1\nbounds\n a <= 1\ngenerals\n a b\nend")
    with pytest.raises(ParameterError, match="groups must be of variables with bounds"):
        solution_variability(found, np.array([0, 1]))
    with pytest.raises(ParameterError, match="groups must be whole numbers"):
        solution_variability(found, np.array([0.0, 1.0]))
    loose = parse_lp("min a\nst\n a + b = 1\nbounds\n a <= 1\n b <= 1\ngenerals\n a\nend")
    with pytest.raises(ParameterError, match="groups must be of integer variables"):
        solution_variability(loose, np.array([0, 1]))
