"""Linear and integer programs, solved by HiGHS, whose solutions are checked by sums without tolerance."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any, Literal, final

import numpy as np
import scipy
from numpy.typing import NDArray
from scipy.optimize import Bounds, LinearConstraint, milp
from scipy.sparse import csr_array, vstack

from sfumato import _check
from sfumato.errors import SfumatoError

__all__ = ["Infeasible", "IntegerProgram", "ProgramSolution", "Unsolved"]

Floats = NDArray[np.float64]
_TOLERANCE = 1e-6
# The presolve of older versions finds no solution of some programs that have one.
_PRESOLVE = tuple(map(int, scipy.__version__.split(".")[:2])) >= (1, 15)


class Infeasible(SfumatoError):
    """No values of the variables meet all constraints of a program."""


class Unsolved(SfumatoError):
    """The solver ended without a solution, at its time limit or because the objective has no bound."""


class _BrokenRow(Unsolved):
    """What the solver returned as a solution is none."""


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ProgramSolution:
    """Values of a program's variables that meet all its constraints.

    Parameters
    ----------
    x : float64 array of shape (variables,)
        Integers are exactly whole.
    objective : float
    status : {"optimal", "feasible"}
        Whether no better values exist, or the time limit came first.
    variables : tuple of str
    bound : float
        No solution has a better objective than this.
    """

    x: Floats
    objective: float
    status: Literal["optimal", "feasible"]
    variables: tuple[str, ...]
    bound: float

    @property
    def values(self) -> dict[str, int | float]:
        """Each variable's value by its name, as an int where it is whole."""
        return {
            name: int(value) if value == math.floor(value) and abs(value) < 2**53 else float(value)
            for name, value in zip(self.variables, self.x.tolist(), strict=True)
        }

    def chosen(self) -> dict[str, int | float]:
        """Return the values that are not zero.

        Returns
        -------
        dict of str to number
        """
        return {name: value for name, value in self.values.items() if value}


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class IntegerProgram:
    r"""Minimise or maximise a linear objective over variables of which some are integers.

    Parameters
    ----------
    objective : float64 array of shape (variables,)
    matrix : scipy.sparse.csr_array of shape (rows, variables)
    row_lower, row_upper : float64 arrays of shape (rows,)
        Between which each row's sum must be; infinite where there is no limit.
    lower, upper : float64 arrays of shape (variables,)
    integer : bool array of shape (variables,)
    variables, rows : tuple of str
        Their names.
    maximize : bool
    offset : float
        A constant of the objective.

    Raises
    ------
    ParameterError
        If shapes do not fit or a number is NaN.

    Examples
    --------
    >>> from sfumato.attacks import parse_lp
    >>> program = parse_lp("Minimize x\nst c: 2 x - y = 3\nBounds\n y <= 4\nIntegers\n x y\nEnd")
    >>> program.solve().values
    {'x': 2, 'y': 1}
    """

    objective: Floats
    matrix: csr_array
    row_lower: Floats
    row_upper: Floats
    lower: Floats
    upper: Floats
    integer: NDArray[np.bool_]
    variables: tuple[str, ...]
    rows: tuple[str, ...]
    maximize: bool = False
    offset: float = 0.0

    def __post_init__(self) -> None:
        rows, columns = self.matrix.shape
        for name, length in (
            *((field, columns) for field in ("objective", "lower", "upper", "integer", "variables")),
            *((field, rows) for field in ("row_lower", "row_upper", "rows")),
        ):
            if len(getattr(self, name)) != length:
                _check.refuse(
                    name,
                    f"have {length} entries, as the matrix has",
                    len(getattr(self, name)),
                    "pass them in one order",
                )
        for name in ("objective", "row_lower", "row_upper", "lower", "upper"):
            if np.isnan(getattr(self, name)).any():
                _check.refuse_state(
                    name, "hold numbers", "it has NaN", "pass infinity where there is no bound"
                )

    def solve(self, *, time_limit: float | None = None) -> ProgramSolution:
        """Return values that meet all constraints with the best objective.

        Parameters
        ----------
        time_limit : float, optional
            In seconds.

        Returns
        -------
        ProgramSolution

        Raises
        ------
        Infeasible
            If there are none.
        Unsolved
            If the time limit came first, or the objective has no bound.

        Notes
        -----
        HiGHS works in floats with tolerances. Integers are rounded, and the rows that hold integers only are
        summed anew and checked without tolerance: what is returned as a solution is one. That there is
        none it must say twice, with and without its presolve. That there is no better one is its word alone.
        """
        if time_limit is not None:
            _check.positive("time_limit", time_limit)
        reduced = _Reduced.of(self) if (self.lower <= self.upper).all() else None
        if reduced is None:
            raise Infeasible("program must have a solution, but its bounds or one of its rows cannot be met")
        try:
            return self._checked(*reduced.solve(time_limit, presolve=_PRESOLVE))
        except (Infeasible, _BrokenRow):
            return self._checked(*reduced.solve(time_limit, presolve=not _PRESOLVE))

    def _checked(self, x: Floats, status: Literal["optimal", "feasible"], bound: float) -> ProgramSolution:
        x[self.integer] = np.rint(x[self.integer])
        x = np.clip(x, self.lower, self.upper)
        sums = self.matrix @ x
        size = 1 + abs(self.matrix) @ np.abs(x)
        whole = self._whole_rows()
        slack = np.where(whole, 0.0, 10 * _TOLERANCE * size)
        if (sums < self.row_lower - slack).any() or (sums > self.row_upper + slack).any():
            raise _BrokenRow(
                "program must be solved within tolerances, but rounded integers break a row; "
                "scale its coefficients"
            )
        return ProgramSolution(
            x=x,
            objective=float(self.objective @ x) + self.offset,
            status=status,
            variables=self.variables,
            bound=(-bound if self.maximize else bound) + self.offset,
        )

    def _whole_rows(self) -> NDArray[np.bool_]:
        """Say which rows hold whole coefficients of integers only: their sums are exact."""
        matrix = self.matrix
        fine = self.integer[matrix.indices] & (matrix.data == np.rint(matrix.data))
        broken = np.zeros(matrix.shape[0], dtype=np.int64)
        np.add.at(broken, np.repeat(np.arange(matrix.shape[0]), np.diff(matrix.indptr)), ~fine)
        return np.asarray(broken == 0)

    def with_objective(self, objective: Floats, *, maximize: bool = False) -> IntegerProgram:
        """Return the program with another objective.

        Parameters
        ----------
        objective : float64 array of shape (variables,)
        maximize : bool

        Returns
        -------
        IntegerProgram
        """
        return replace(self, objective=np.asarray(objective, dtype=np.float64), maximize=maximize, offset=0.0)

    def with_rows(
        self, matrix: csr_array, lower: Floats, upper: Floats, *, columns: int = 0, names: str = "row"
    ) -> IntegerProgram:
        """Return the program with more rows, and with more binary variables, which come last.

        Parameters
        ----------
        matrix : csr_array of shape (new rows, variables + columns)
        lower, upper : float64 arrays of shape (new rows,)
        columns : int
            How many binary variables are new; they are in the new rows only.
        names : str
            What the names of rows and variables begin with.

        Returns
        -------
        IntegerProgram
        """
        count = len(self.variables)
        wide = csr_array(
            (self.matrix.data, self.matrix.indices, self.matrix.indptr),
            shape=(self.matrix.shape[0], count + columns),
        )
        return IntegerProgram(
            objective=np.concatenate([self.objective, np.zeros(columns)]),
            matrix=csr_array(vstack([wide, matrix], format="csr")),
            row_lower=np.concatenate([self.row_lower, lower]),
            row_upper=np.concatenate([self.row_upper, upper]),
            lower=np.concatenate([self.lower, np.zeros(columns)]),
            upper=np.concatenate([self.upper, np.ones(columns)]),
            integer=np.concatenate([self.integer, np.ones(columns, dtype=bool)]),
            variables=(*self.variables, *(f"{names}_variable_{count + place}" for place in range(columns))),
            rows=(*self.rows, *(f"{names}_{len(self.rows) + place}" for place in range(matrix.shape[0]))),
            maximize=self.maximize,
            offset=self.offset,
        )

    def only_rows(self, keep: NDArray[np.bool_]) -> IntegerProgram:
        """Return the program with some of its rows.

        Parameters
        ----------
        keep : bool array of shape (rows,)

        Returns
        -------
        IntegerProgram
        """
        names = tuple(name for name, held in zip(self.rows, keep.tolist(), strict=True) if held)
        return replace(
            self,
            matrix=csr_array(self.matrix[np.flatnonzero(keep)]),
            row_lower=self.row_lower[keep],
            row_upper=self.row_upper[keep],
            rows=names,
        )


@dataclass(frozen=True, slots=True)
class _Reduced:
    """A program without the variables that its rows force to zero, and without rows that are then empty."""

    program: IntegerProgram
    columns: NDArray[np.int64]
    rows_left: NDArray[np.int64]

    @classmethod
    def of(cls, program: IntegerProgram) -> _Reduced | None:
        """Return the reduced program, or None where a row cannot be met.

        A row of coefficients that are not negative, over variables of at least zero, with a sum of at most
        zero, forces its variables to zero. Census tables are mostly zeros, so few variables are left.
        """
        matrix = program.matrix
        row = np.repeat(np.arange(matrix.shape[0]), np.diff(matrix.indptr))
        awkward = (matrix.data < 0) | (program.lower[matrix.indices] != 0)
        positive = np.bincount(row, weights=awkward, minlength=matrix.shape[0]) == 0
        if (positive & (program.row_upper < 0)).any():
            return None
        forced = positive & (program.row_upper == 0)
        zero = np.zeros(len(program.variables), dtype=bool)
        zero[matrix.indices[forced[row] & (matrix.data > 0)]] = True
        columns = np.flatnonzero(~zero)
        left = np.bincount(row, weights=~zero[matrix.indices], minlength=matrix.shape[0]) > 0
        empty = ~left & ((program.row_lower > 0) | (program.row_upper < 0))
        if empty.any():
            return None
        return cls(program, columns, np.flatnonzero(left & ~forced))

    def solve(
        self, time_limit: float | None, *, presolve: bool
    ) -> tuple[Floats, Literal["optimal", "feasible"], float]:
        program, columns = self.program, self.columns
        x = np.zeros(len(program.variables))
        if not len(columns):
            return x, "optimal", 0.0
        matrix = csr_array(program.matrix[self.rows_left])[:, columns].tocsc()
        matrix.indices, matrix.indptr = matrix.indices.astype(np.int32), matrix.indptr.astype(np.int32)
        sign = -1.0 if program.maximize else 1.0
        options: Any = {"mip_rel_gap": 0.0, "presolve": presolve}
        if time_limit is not None:
            options["time_limit"] = time_limit
        lower, upper = program.row_lower[self.rows_left], program.row_upper[self.rows_left]
        found: Any = milp(
            sign * program.objective[columns],
            constraints=LinearConstraint(matrix, lower, upper) if len(self.rows_left) else None,
            bounds=Bounds(program.lower[columns], program.upper[columns]),
            integrality=program.integer[columns].astype(np.int64),
            options=options,
        )
        if found.status == 2:
            raise Infeasible("program must have a solution, but its rows contradict each other")
        if found.x is None:
            raise Unsolved(
                "program must be solved in the time given, and its objective must have a bound, but the "
                "solver ended without a solution; give it more time_limit or bound its variables"
            )
        x[columns] = found.x
        bound = getattr(found, "mip_dual_bound", None)
        return x, "optimal" if found.status == 0 else "feasible", float(found.fun if bound is None else bound)
