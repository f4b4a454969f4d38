"""The square root factorization of prefix sums."""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

import numpy as np

from sfumato.mechanisms.factorization.strategies.integer_strategy import Array
from sfumato.mechanisms.factorization.strategies.power_series import check_steps
from sfumato.mechanisms.factorization.strategies.toeplitz import ToeplitzStrategy

__all__ = ["SquareRoot"]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class SquareRoot(ToeplitzStrategy):
    r"""The square root of the prefix sums: :math:`B = C`, with coefficients :math:`\binom{2i}{i}/4^i`.

    Parameters
    ----------
    steps : int
        The public number of steps.

    Notes
    -----
    Both norms are equal, so the greatest standard error is :math:`\sum_{i<n} c_i^2 = \frac{\ln n + \gamma +
    4 \ln 2}{\pi} + o(1)`, about :math:`1.07 + \ln(n)/\pi`, for one participation. Memory grows with the
    steps: `BufferedToeplitz` comes within a percent of it with a few buffers, `BandedToeplitz` is better for
    units that take part again and again.

    References
    ----------
    Fichtenberger, Henzinger, Upadhyay (2023), "Constant matters: fine-grained error bound on differentially
    private continual observation"; Henzinger, Upadhyay, Upadhyay (2023), "Almost tight error bounds on
    differentially private continual counting".

    Examples
    --------
    >>> SquareRoot(steps=4).coefficients().tolist()
    [1.0, 0.5, 0.375, 0.3125]
    >>> round(SquareRoot(steps=1024).max_error(), 4)
    3.2726
    """

    steps: int

    def __post_init__(self) -> None:
        check_steps(self.steps)

    def coefficients(self) -> Array:
        """Return c, shape (steps,).

        Returns
        -------
        array of shape (steps,) or shorter
            The first is 1; those that are left out are 0.
        """
        i = np.arange(1, self.steps)
        return np.concatenate([[1.0], np.cumprod((2 * i - 1) / (2 * i))])
