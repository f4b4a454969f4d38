"""Participation: in how many steps of a stream one unit takes part, and how far apart."""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sfumato import _check
from sfumato.numerics.interval import Interval
from sfumato.privacy.participation import participation_sensitivity

__all__ = ["ONCE", "Participation"]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Participation:
    """The public cap on what one unit contributes to over all steps.

    Parameters
    ----------
    max_participations : int or None
        The most steps that a unit takes part in; as many as the separation allows if None. With 1, the
        default, a unit is one event.
    separation : int
        Two steps of one unit are at least this many apart; with ``fixed_order``, exactly this many.
    fixed_order : bool
        Whether every unit takes part in the steps ``i, i + separation, ...`` for some ``i`` below the
        separation, as in epochs of one order.

    Examples
    --------
    >>> Participation(max_participations=None, separation=4).max_steps(10)
    3
    """

    max_participations: int | None = 1
    separation: int = 1
    fixed_order: bool = False

    def __post_init__(self) -> None:
        _check.integer("separation", self.separation, minimum=1, remedy="pass a number of steps")
        if self.max_participations is not None:
            remedy = "pass at least 1, or None for no cap"
            _check.integer("max_participations", self.max_participations, minimum=1, remedy=remedy)
        if self.fixed_order and self.max_participations is not None:
            _check.refuse(
                "max_participations", "be None with fixed_order", self.max_participations, "leave it out"
            )

    def max_steps(self, steps: int) -> int:
        """Return the most steps that one unit takes part in, of ``steps``.

        Parameters
        ----------
        steps : int
            Length of the stream.

        Returns
        -------
        int
        """
        fitting = -(-steps // self.separation)
        return fitting if self.max_participations is None else min(fitting, self.max_participations)

    def sensitivity(self, matrix: ArrayLike) -> Interval:
        """Bound how far one unit moves the answers of a matrix in the L2 norm, for participations of 1.

        Parameters
        ----------
        matrix : array_like
            Shape (entries, steps).

        Returns
        -------
        Interval
            A proven lower and upper bound.

        Examples
        --------
        >>> twice = Participation(max_participations=2, separation=2)
        >>> round(twice.sensitivity([[1, 0, 0], [0, 1, 0], [0, 0, 1]]).upper, 6)
        1.414214
        """
        return participation_sensitivity(
            matrix,
            separation=self.separation,
            max_participations=None if self.fixed_order else self.max_participations,
            fixed_order=self.fixed_order,
        )

    def earliest_steps(self, steps: int) -> NDArray[np.intp]:
        """Return the earliest pattern with the most steps: 0, and on by the separation.

        Parameters
        ----------
        steps : int
            Length of the stream.

        Returns
        -------
        array of ints
            Indices of steps, from 0.
        """
        return np.arange(self.max_steps(steps), dtype=np.intp) * self.separation


ONCE = Participation()
"""A unit is one event."""
