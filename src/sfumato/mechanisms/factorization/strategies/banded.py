"""Banded Toeplitz strategies."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sfumato import _check
from sfumato.mechanisms.factorization.strategies.integer_strategy import Array
from sfumato.mechanisms.factorization.strategies.participation import ONCE, Participation
from sfumato.mechanisms.factorization.strategies.power_series import check_steps
from sfumato.mechanisms.factorization.strategies.square_root import SquareRoot
from sfumato.mechanisms.factorization.strategies.toeplitz import ToeplitzStrategy
from sfumato.mechanisms.factorization.strategies.toeplitz_error import ToeplitzError, optimal_coefficients

__all__ = ["BandedToeplitz"]


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class BandedToeplitz(ToeplitzStrategy):
    """A few coefficients: a step's measurement looks back over as many steps as there are.

    Parameters
    ----------
    steps : int
        The public number of steps.
    bands : array of shape (at most steps,)
        The coefficients, the first of which is 1. Privacy costs least where none is negative and none exceeds
        the one before. A single 1 is independent noise on every step.

    Examples
    --------
    >>> independent = BandedToeplitz(steps=1024, bands=[1.0])
    >>> banded = BandedToeplitz.optimal(steps=1024, bands=64)
    >>> round(independent.max_error(), 6), banded.max_error() < 5.5
    (32.0, True)
    """

    steps: int
    bands: NDArray[Any] | list[float] | tuple[float, ...]

    def __post_init__(self) -> None:
        check_steps(self.steps)
        bands = np.trim_zeros(np.array(self.bands, dtype=np.float64).reshape(-1), "b")
        if not 0 < bands.size <= self.steps or not np.isfinite(bands).all() or bands[0] != 1:
            rule = f"be at most {self.steps} finite numbers, the first 1"
            remedy = "start with 1, one number for each step looked back"
            _check.refuse_type("bands", rule, bands, remedy)
        bands.flags.writeable = False
        object.__setattr__(self, "bands", bands)

    def coefficients(self) -> Array:
        """Return the bands.

        Returns
        -------
        array of shape (steps,) or shorter
            The first is 1; those that are left out are 0.
        """
        return np.asarray(self.bands)

    @classmethod
    def optimal(
        cls,
        *,
        steps: int,
        bands: int,
        participation: Participation = ONCE,
        workload: ArrayLike | None = None,
        objective: str = "mean",
    ) -> BandedToeplitz:
        """Return bands with nearly the smallest error.

        Parameters
        ----------
        steps : int
        bands : int
            How many; the fewer, the less memory. As many as the separation serve repeated participation well.
        participation : Participation
            Whose sensitivity the error is for.
        workload : array, optional
            Weights by age; prefix sums unless given.
        objective : {"mean", "max"}
            Which squared error: the mean over all steps, or the greatest.

        Returns
        -------
        BandedToeplitz
            At a local minimum, never worse than the square root cut after so many bands.

        References
        ----------
        Choquette-Choo et al. (2023), "(Amplified) banded matrix factorization: a unified approach to private
        training"; McKenna (2024), "Scaling up the banded matrix factorization mechanism", banded Toeplitz.
        """
        from_root = SquareRoot(steps=steps).coefficients()
        count = _check.integer("bands", bands, minimum=1)
        start = from_root[:count]
        if len(start) == 1:
            return cls(steps=steps, bands=start)
        found = optimal_coefficients(start, ToeplitzError(steps, participation, workload, objective))
        return cls(steps=steps, bands=found)
