"""Tables that contradict each other: a set with no solution, all of whose parts have one."""

from __future__ import annotations

import numpy as np
import pytest

from sfumato.attacks import Infeasible, contradiction, parse_lp
from sfumato.errors import ParameterError
from tests.attacks.bureau import program


def test_one_wrong_count_of_the_bureau_is_found_with_the_tables_that_it_contradicts() -> None:
    sound = program("29183980000")
    wrong = np.flatnonzero(sound.row_lower > 0)[3]
    broken = sound.only_rows(np.ones(len(sound.rows), dtype=bool))
    broken.row_lower[wrong] += 1
    broken.row_upper[wrong] += 1
    tables = list(broken.rows)
    found = contradiction(broken, tables)
    assert broken.rows[wrong] in found
    assert len(found) >= 2
    for left_out in (None, *found):
        kept = np.array([name in found and name != left_out for name in tables])
        part = broken.only_rows(kept)
        if left_out is None:
            with pytest.raises(Infeasible):
                part.solve()
        else:
            part.solve()


def test_a_program_with_a_solution_has_no_contradiction() -> None:
    assert contradiction(parse_lp("min a\nst\n a >= 1\nend"), ["one"]) == ()


def test_rows_without_a_table_always_count() -> None:
    found = parse_lp("min a\nst\n a >= 3\n a <= 5\n a <= 2\nend")
    assert contradiction(found, ["", "women", "men"]) == ("men",)
    with pytest.raises(ParameterError, match="the rows that always count do so alone"):
        contradiction(found, ["", "women", ""])
    with pytest.raises(ParameterError, match="tables must name one table for each of 3 rows"):
        contradiction(found, ["men"])
