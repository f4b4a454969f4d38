"""Lower triangular strategies, and the optimal one for a short stream."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, final

import numpy as np
from numpy.typing import ArrayLike

from sfumato import _check
from sfumato.mechanisms.factorization.strategies.integer_strategy import Array
from sfumato.mechanisms.factorization.strategies.integer_triangular import IntegerTriangular
from sfumato.mechanisms.factorization.strategies.optimal_strategy import optimal_strategy
from sfumato.mechanisms.factorization.strategies.participation import ONCE, Participation
from sfumato.mechanisms.factorization.strategies.power_series import prefix_weights, toeplitz_matrix
from sfumato.mechanisms.factorization.strategies.strategy import Draw, NoiseStream, Strategy, check_unfinished
from sfumato.numerics.blas_threads import one_thread
from sfumato.numerics.interval import Interval

__all__ = ["LowerTriangular"]

_MAXIMUM = 2048


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class LowerTriangular(Strategy):
    """A strategy that is given entry by entry, for at most 2,048 steps.

    Parameters
    ----------
    rows : array of shape (steps, steps)
        Lower triangular with a positive diagonal, of about 1 at most.

    Notes
    -----
    The sensitivity is `sfumato.privacy.participation_sensitivity`: exact for one participation, and where the
    rows have fewer bands than the separation and no negative entry.

    Examples
    --------
    >>> from sfumato.mechanisms import SquareRoot
    >>> best, root = LowerTriangular.optimal(steps=64), SquareRoot(steps=64)
    >>> 1 < root.mean_error() / best.mean_error() < 1.07
    True
    """

    rows: Any

    def __post_init__(self) -> None:
        rows = np.array(self.rows, dtype=np.float64)
        if rows.ndim != 2 or rows.shape[0] != rows.shape[1] or not 0 < len(rows) <= _MAXIMUM:
            remedy = "take a Toeplitz strategy for longer streams"
            _check.refuse_type("rows", f"be square, for at most {_MAXIMUM} steps", rows, remedy)
        if not np.isfinite(rows).all() or np.triu(rows, 1).any() or (np.diagonal(rows) <= 0).any():
            rule = "be finite and lower triangular, with a positive diagonal"
            remedy = "set entries for later inputs to 0"
            _check.refuse_state("rows", rule, "some entry is not", remedy)
        if float(np.abs(rows).max()) > 16:
            _check.refuse(
                "rows", "have entries of at most 16", float(np.abs(rows).max()), "divide by the largest"
            )
        rows.flags.writeable = False
        object.__setattr__(self, "rows", rows)

    def __repr__(self) -> str:
        return f"LowerTriangular({len(self.rows)} steps)"

    @classmethod
    @one_thread()
    def optimal(
        cls, *, steps: int, workload: ArrayLike | None = None, tolerance: float = 1e-4
    ) -> LowerTriangular:
        """Return the strategy with the smallest mean squared error for one participation.

        Parameters
        ----------
        steps : int
            At most 2,048: 1,024 take a second, 2,048 some five, for prefix sums.
        workload : array, optional
            Weights by age; prefix sums unless given.
        tolerance : float
            The mean squared error is at most this much above the smallest, relatively.

        Returns
        -------
        LowerTriangular

        Raises
        ------
        ParameterError
            If there are more steps.

        Notes
        -----
        `optimal_strategy` finds the smallest error of all strategies, whatever their order: it depends on
        :math:`X = C^T C` alone, and every positive definite X has a lower triangular factor C.
        """
        if _check.integer("steps", steps, minimum=1) > _MAXIMUM:
            remedy = "take SquareRoot, BufferedToeplitz.optimal or BandedToeplitz.optimal for longer streams"
            _check.refuse("steps", f"be at most {_MAXIMUM}", steps, remedy)
        weights = prefix_weights(workload, steps)
        found = optimal_strategy(toeplitz_matrix(weights, steps), tolerance=tolerance).strategy
        # The Cholesky factor of X turned around, turned back.
        turned = np.linalg.cholesky((found.T @ found)[::-1, ::-1])
        return cls(rows=np.tril(turned.T[::-1, ::-1]))

    @property
    def steps(self) -> int:  # type: ignore[override]
        """The public number of steps."""
        return len(self.rows)

    @property
    def entries(self) -> int:
        """One for each step."""
        return len(self.rows)

    def matrix(self) -> Array:
        """Return C, shape (steps, steps).

        Returns
        -------
        array of shape (entries, steps)
        """
        return np.array(self.rows)

    def sensitivity(self, participation: Participation = ONCE) -> Interval:
        """Bound how far one unit moves C x; see the class's notes.

        Parameters
        ----------
        participation : Participation
            In how many steps one unit takes part, and how far apart.

        Returns
        -------
        Interval
            L2 sensitivity to a move of one step's input by 1.
        """
        return participation.sensitivity(self.rows)

    @one_thread()
    def variances(self, workload: ArrayLike | None = None) -> Array:
        """Return the variance of each answer's noise.

        Parameters
        ----------
        workload : array of shape (steps,), optional
            Weights by age, the newest first; of prefix sums unless given.

        Returns
        -------
        array of shape (steps,)
            That of one measurement being 1.
        """
        answers = toeplitz_matrix(prefix_weights(workload, self.steps), self.steps)
        return np.asarray(np.square(np.linalg.solve(self.rows.T, answers.T)).sum(axis=0))

    def in_integers(self, bits: int) -> IntegerTriangular:
        """Return the strategy with its entries rounded to multiples of ``2**-bits``.

        Parameters
        ----------
        bits : int
            Entries are rounded to multiples of ``2**-bits``.

        Returns
        -------
        IntegerTriangular
        """
        return IntegerTriangular(self.rows, bits)

    def noise(self) -> NoiseStream:
        """Return a fresh stream of ``C^-1 z``: memory for all steps.

        Returns
        -------
        NoiseStream
        """
        return _Substitution(self.rows)


class _Substitution(NoiseStream):
    """Solves C w = z forward, row by row."""

    def __init__(self, rows: Array) -> None:
        self._rows = rows
        self._past: list[Array] = []

    @property
    def memory(self) -> int:
        return len(self._rows) - 1

    def send(self, draw: Draw) -> Array:
        time = len(self._past)
        check_unfinished(time, len(self._rows))
        noise = np.array(draw())
        for weight, past in zip(self._rows[time].tolist(), self._past, strict=False):
            if weight:
                noise -= weight * past
        noise /= self._rows[time, time]
        self._past.append(noise.copy())
        return noise
