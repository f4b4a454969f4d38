"""What all solutions of an integer program share: solution variability, and the list of all solutions."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import final

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from sfumato import _check
from sfumato.attacks.integer_programs.integer_program import Infeasible, IntegerProgram, Unsolved

__all__ = ["SolutionVariability", "group_counts", "iterate_solutions", "solution_variability"]

Whole = NDArray[np.int64]


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class SolutionVariability:
    r"""How far the solutions of a program may lie from each other.

    Parameters
    ----------
    counts : int64 array of shape (groups,)
        How often each group is in the solution that was compared.
    certain : int64 array of shape (groups,)
        How often each group is in every solution, if ``proven``; otherwise no solution is known that has
        it less often.
    shared : int
        How many of the solution's units the most different solution still has; an upper bound on it if it
        was not ``proven``.
    proven : bool
        Whether every solve ended with a proof.
    solves : int

    Examples
    --------
    >>> import numpy as np
    >>> from sfumato.attacks import parse_lp, solution_variability
    >>> program = parse_lp("Min a\nst\n a + b = 1\n c = 1\nBinaries\n a b c\nEnd")
    >>> found = solution_variability(program, np.array([0, 1, 2]))
    >>> found.certain.tolist(), found.total, found.share_variable
    ([0, 0, 1], 2, 0.5)
    """

    counts: Whole
    certain: Whole
    shared: int
    proven: bool
    solves: int

    @property
    def total(self) -> int:
        """How many units the solution has."""
        return int(self.counts.sum())

    @property
    def share_variable(self) -> float:
        """The share of units by which the most different solution differs: zero where there is only one."""
        return 1 - self.shared / self.total if self.total else 0.0


def group_counts(x: NDArray[np.float64], groups: Whole, count: int | None = None) -> Whole:
    """Return how many units of each group a solution has.

    Parameters
    ----------
    x : float64 array of shape (variables,)
    groups : int64 array of shape (variables,)
        The group of each variable; negative for variables that count no units.
    count : int, optional
        How many groups there are; one more than the largest if left out.

    Returns
    -------
    int64 array of shape (groups,)

    Examples
    --------
    >>> import numpy as np
    >>> group_counts(np.array([1.0, 2.0, 1.0]), np.array([0, 1, 0])).tolist()
    [2, 2]
    """
    count = int(groups.max(initial=-1)) + 1 if count is None else count
    inside = groups >= 0
    counts = np.bincount(groups[inside], weights=np.rint(x[inside]), minlength=count)
    return np.asarray(counts, dtype=np.int64)


def solution_variability(
    program: IntegerProgram,
    groups: Whole,
    *,
    first: NDArray[np.float64] | None = None,
    time_limit: float | None = None,
) -> SolutionVariability:
    r"""Return how often each group of variables is in every solution.

    Parameters
    ----------
    program : IntegerProgram
        Whose constraints count; its objective does not.
    groups : int array of shape (variables,)
        The group of each integer variable, such as the person type that it counts; -1 for none.
    first : float64 array of shape (variables,), optional
        The solution that others are compared with; solved for if left out.
    time_limit : float, optional
        Seconds for each solve.

    Returns
    -------
    SolutionVariability

    Raises
    ------
    Infeasible
        If there is no solution.
    ParameterError
        If a grouped variable is no integer with bounds.

    Notes
    -----
    The second solve is the Bureau's (Abowd et al. 2023, "The 2010 Census Confidentiality Protections Failed",
    section 3): of all solutions, one that shares the fewest units with the first, exactly. It proves the
    distance, and that every unit is certain where it is zero; of single units it proves that those which
    differ are not certain, and nothing of the others. So the solve is repeated with the units left, each
    time for the solution that lacks the most of them, until none lacks any: those left are in every
    solution. Each solve but the last removes at least one unit, and mostly many.

    Examples
    --------
    >>> import numpy as np
    >>> from sfumato.attacks import parse_lp, solution_variability
    >>> program = parse_lp("Min a\nst\n a + b = 1\n c = 1\nBinaries\n a b c\nEnd")
    >>> solution_variability(program, np.array([0, 0, 1])).certain.tolist()
    [1, 1]
    """
    groups = _checked_groups(program, groups)
    x = program.solve(time_limit=time_limit).x if first is None else first
    counts = group_counts(x, groups)
    certain, shared, proven, solves = counts.copy(), int(counts.sum()), True, 1 if first is None else 0
    while certain.any():
        differing, columns = _less_often(program, groups, certain)
        objective = np.zeros(len(differing.variables))
        objective[columns] = 1
        solves += 1
        try:
            found = differing.with_objective(objective, maximize=True).solve(time_limit=time_limit)
        except Unsolved:
            proven = False
            break
        proven &= found.status == "optimal"
        left = np.minimum(certain, group_counts(found.x[: len(groups)], groups, len(counts)))
        if shared == counts.sum() == certain.sum():
            shared = int(left.sum())
        if (left == certain).all():
            break
        certain = left
    return SolutionVariability(counts=counts, certain=certain, shared=shared, proven=proven, solves=solves)


def iterate_solutions(
    program: IntegerProgram, groups: Whole, *, time_limit: float | None = None
) -> Iterator[Whole]:
    r"""Yield every solution of a program, as counts of its groups, each once.

    Parameters
    ----------
    program : IntegerProgram
        Whose constraints count; its objective says which solutions come first.
    groups : int array of shape (variables,)
        The group of each integer variable; -1 for none.
    time_limit : float, optional
        Seconds for each solve.

    Yields
    ------
    int64 array of shape (groups,)

    Raises
    ------
    Unsolved
        If the time limit came before a solution, or before the proof that there is no other.
    ParameterError
        If a grouped variable is no integer with bounds.

    Notes
    -----
    Another solution has less of something, or nothing less and more in total. A row for each solution found
    says so, with a binary variable for each of its units; when no values are left, all solutions were found.

    Examples
    --------
    >>> import numpy as np
    >>> from sfumato.attacks import iterate_solutions, parse_lp
    >>> program = parse_lp("Min a\nst\n a + b = 2\nBounds\n a <= 2\n b <= 2\nIntegers\n a b\nEnd")
    >>> [counts.tolist() for counts in iterate_solutions(program, np.array([0, 1]))]
    [[0, 2], [1, 1], [2, 0]]
    """
    groups = _checked_groups(program, groups)
    count = int(groups.max(initial=-1)) + 1
    while True:
        try:
            found = program.solve(time_limit=time_limit)
        except Infeasible:
            return
        counts = group_counts(found.x[: len(groups)], groups, count)
        yield counts
        program = _without(program, groups, counts)


def _checked_groups(program: IntegerProgram, groups: Whole) -> Whole:
    groups = np.asarray(groups)
    if groups.shape != (len(program.variables),) or groups.dtype.kind not in "iu":
        _check.refuse_type(
            "groups",
            "be whole numbers, one for each variable of the program",
            groups,
            "pass -1 for variables that count nobody",
        )
    inside = groups >= 0
    if not program.integer[inside].all():
        _check.refuse_state("groups", "be of integer variables", "some are continuous", "pass -1 for these")
    if not (np.isfinite(program.lower[inside]) & np.isfinite(program.upper[inside])).all():
        _check.refuse_state("groups", "be of variables with bounds", "some have none", "give them bounds")
    return groups.astype(np.int64)


def _largest(program: IntegerProgram, groups: Whole, count: int) -> NDArray[np.float64]:
    inside = groups >= 0
    upper = program.upper[: len(groups)][inside]
    return np.asarray(np.bincount(groups[inside], weights=upper, minlength=count), dtype=np.float64)


def _less_often(program: IntegerProgram, groups: Whole, counts: Whole) -> tuple[IntegerProgram, Whole]:
    """Add a binary variable for each unit of some groups, which is 1 only where a solution has less of them.

    The k-th unit's variable d of a group with sum y means y <= count - k, by a row
    y + (largest - count + k) d <= largest.
    """
    units = np.repeat(np.arange(len(counts)), counts)
    step = np.concatenate([np.arange(count) for count in counts[counts > 0].tolist()] or [np.zeros(0)]) + 1
    largest = _largest(program, groups, len(counts))[units]
    width, new = len(program.variables), np.arange(len(units))
    members = np.argsort(groups, kind="stable")
    members = members[groups[members] >= 0]
    starts = np.searchsorted(groups[members], np.arange(len(counts) + 1))
    sizes = np.diff(starts)[units]
    offsets = np.repeat(starts[:-1][units] - np.cumsum(sizes) + sizes, sizes) + np.arange(sizes.sum())
    rows = np.concatenate([np.repeat(new, sizes), new])
    columns = np.concatenate([members[offsets], width + new])
    data = np.concatenate([np.ones(sizes.sum()), largest - counts[units] + step])
    matrix = csr_array((data, (rows, columns)), shape=(len(units), width + len(units)))
    less = program.with_rows(matrix, np.full(len(units), -np.inf), largest, columns=len(units), names="less")
    return less, width + new


def _without(program: IntegerProgram, groups: Whole, counts: Whole) -> IntegerProgram:
    """Return the program without one of its solutions."""
    total = counts.sum()
    once, binaries = _less_often(program, groups, counts)
    width = len(once.variables)
    inside = np.flatnonzero(groups >= 0)
    # one binary more: the sum of all units is larger
    rows = np.concatenate([np.zeros(len(binaries) + 1), np.ones(len(inside) + 1)]).astype(np.int64)
    columns = np.concatenate([binaries, [width], inside, [width]])
    data = np.concatenate([np.ones(len(binaries) + 1), np.ones(len(inside)), [-(total + 1.0)]])
    matrix = csr_array((data, (rows, columns)), shape=(2, width + 1))
    return once.with_rows(matrix, np.array([1.0, 0.0]), np.array([np.inf, np.inf]), columns=1, names="other")
