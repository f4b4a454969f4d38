"""Releases of answers that are linear in exact noise, with their standard errors and intervals."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, final

import numpy as np

from sfumato import _check
from sfumato.mechanisms.base.release import Release
from sfumato.mechanisms.factorization.linear_error import LinearError
from sfumato.numerics.interval import Interval

__all__ = ["LinearRelease"]


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class LinearRelease(Release):
    """Answers computed from noisy measurements by public weights.

    Parameters
    ----------
    value : float or array
        The answers; those of a stream have its steps along the first axis.
    error : LinearError
        That of each answer, or of each step's.
    loss, neighboring, receipt, simulated, labels
        As in `Release`; the loss of a stream's release is that of all its steps, to be charged once.

    Examples
    --------
    >>> import numpy as np
    >>> from sfumato.mechanisms import ContinualSum, SquareRoot
    >>> root = SquareRoot(steps=8)
    >>> counter = ContinualSum.calibrated(strategy=root, sensitivity=1, epsilon=1.0, delta=1e-6)
    >>> release = counter.release(np.ones(8, dtype=np.int64), rng=3)
    >>> isinstance(release, LinearRelease), release.value.shape == release.stddev.shape
    (True, True)
    """

    error: LinearError

    @property
    def stddev(self) -> Any:
        """Standard deviation of the noise of each answer."""
        return self.error.stddev

    def interval(self, level: float = 0.95, *, joint: bool = False) -> Interval[Any]:
        """Return intervals that hold each exact answer with at least the given chance.

        Parameters
        ----------
        level : float
            Strictly between 0 and 1.
        joint : bool
            Whether all intervals together are to hold with that chance (Bonferroni).

        Returns
        -------
        Interval
            Of the shape of the value.

        Notes
        -----
        The target is the answer on the values as they were measured: rounded to their grid and clamped. The
        proof is in the notes of `LinearError`'s kinds. Float arithmetic is allowed a part of the greatest
        measurement: ``2**-40`` for each of an answer's weights, and what the inverse was found to be off.

        Examples
        --------
        >>> import numpy as np
        >>> from sfumato.mechanisms import BinaryTree, ContinualSum
        >>> tree = BinaryTree(steps=8)
        >>> counter = ContinualSum.calibrated(strategy=tree, sensitivity=1, epsilon=1.0, delta=1e-6)
        >>> release = counter.release(np.ones(8, dtype=np.int64), rng=3)
        >>> lower, upper, _ = release.interval(0.95, joint=True)
        >>> bool(((lower < np.arange(1, 9)) & (np.arange(1, 9) < upper)).all())
        True
        """
        level = _check.unit_interval("level", level)
        value = np.asarray(self.value)
        half = np.asarray(self.error.reach((1 - level) / (value.size if joint else 1)))
        half = half.reshape(half.shape + (1,) * (value.ndim - half.ndim))
        lower, upper = np.nextafter(value - half, -np.inf), np.nextafter(value + half, np.inf)
        return Interval(lower, upper) if value.ndim else Interval(float(lower), float(upper))
