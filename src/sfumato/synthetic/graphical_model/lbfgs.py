"""The inverse of a Hessian, from the last steps and how the gradient changed along them."""

from __future__ import annotations

from collections import deque
from typing import Final, final

from sfumato.synthetic.graphical_model.calibration import Array

__all__ = ["Curvature"]

_MEMORY: Final = 8


@final
class Curvature:
    """The last eight steps of L-BFGS.

    References
    ----------
    Nocedal, Wright, "Numerical optimization" (2006), algorithm 7.4.

    Examples
    --------
    >>> import numpy as np
    >>> curvature = Curvature()
    >>> curvature.append(np.array([1.0, 0.0]), np.array([4.0, 0.0]))
    >>> curvature.solve(np.array([8.0, 0.0]), np.ones(2)).tolist()
    [2.0, 0.0]
    """

    def __init__(self) -> None:
        self._pairs: deque[tuple[Array, Array, float]] = deque(maxlen=_MEMORY)

    def __len__(self) -> int:
        return len(self._pairs)

    def append(self, step: Array, change: Array) -> None:
        """Remember a step and the change of the gradient, unless that has no curvature.

        Parameters
        ----------
        step, change : array
        """
        product = float(step @ change)
        if product > 1e-12 * float(change @ change):
            self._pairs.append((step, change, 1 / product))

    def solve(self, gradient: Array, diagonal: Array) -> Array:
        """Return the inverse Hessian times a gradient.

        Parameters
        ----------
        gradient : array
        diagonal : array
            Of the Hessian as it is taken for before the steps are regarded.

        Returns
        -------
        array
        """
        result, parts = gradient.copy(), []
        for step, change, inverse in reversed(self._pairs):
            part = inverse * float(step @ result)
            result -= part * change
            parts.append(part)
        result /= diagonal
        if self._pairs:
            step, change, _ = self._pairs[-1]
            result *= float(step @ change) / float(change @ (change / diagonal))
        for (step, change, inverse), part in zip(self._pairs, reversed(parts), strict=True):
            result += step * (part - inverse * float(change @ result))
        return result
