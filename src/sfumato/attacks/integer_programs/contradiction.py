"""Which tables contradict each other: a minimal set of an infeasible program's tables without a solution."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from sfumato import _check
from sfumato.attacks.integer_programs.integer_program import Infeasible, IntegerProgram

__all__ = ["contradiction"]


def contradiction(
    program: IntegerProgram, tables: Sequence[str], *, time_limit: float | None = None
) -> tuple[str, ...]:
    r"""Return tables that contradict each other, of which none can be left out; none if there is a solution.

    Parameters
    ----------
    program : IntegerProgram
    tables : sequence of str, one for each row
        The table that each row comes from; rows of an empty name always count.
    time_limit : float, optional
        Seconds for each solve.

    Returns
    -------
    tuple of str
        In the order of the program. All tables but one of these have a solution together, with the rows
        that always count.

    Raises
    ------
    ParameterError
        If there is not one table for each row, or the rows that always count have no solution.
    Unsolved
        If the time limit came first.

    Notes
    -----
    Junker's QuickXplain (AAAI 2004): the tables are halved, so that few solves find a few of many.

    Examples
    --------
    >>> from sfumato.attacks import contradiction, parse_lp
    >>> program = parse_lp("Minimize a\nSubject To\n a + b = 2\n a = 3\n b <= 1\nEnd")
    >>> contradiction(program, ["total", "men", "women"])
    ('total', 'men')
    """
    if len(tables) != len(program.rows):
        _check.refuse(
            "tables",
            f"name one table for each of {len(program.rows)} rows",
            len(tables),
            "pass an empty name for rows that always count",
        )
    names = np.asarray(tables, dtype=object)
    always = names == ""

    def solvable(chosen: Sequence[str]) -> bool:
        chosen_rows = always | np.isin(names, np.asarray(list(chosen), dtype=object))
        constraints = program.only_rows(chosen_rows.astype(bool))
        try:
            constraints.with_objective(np.zeros(len(program.variables))).solve(time_limit=time_limit)
        except Infeasible:
            return False
        return True

    every = tuple(dict.fromkeys(name for name in tables if name))
    if solvable(every):
        return ()
    if not solvable(()):
        _check.refuse_state(
            "tables",
            "be of rows that contradict",
            "the rows that always count do so alone",
            "name their tables too",
        )
    found = set(_explain((), every, solvable, changed=False))
    return tuple(name for name in every if name in found)


def _explain(
    background: tuple[str, ...],
    tables: tuple[str, ...],
    solvable: Callable[[Sequence[str]], bool],
    *,
    changed: bool,
) -> tuple[str, ...]:
    if changed and not solvable(background):
        return ()
    if len(tables) == 1:
        return tables
    half = len(tables) // 2
    left, right = tables[:half], tables[half:]
    second = _explain(background + left, right, solvable, changed=True)
    first = _explain(background + second, left, solvable, changed=bool(second))
    return first + second
