"""Positions as readers return them."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

__all__ = ["Positions"]


class Positions(NamedTuple):
    """Positions in the order of their file.

    Attributes
    ----------
    latitude, longitude : ndarray of float64, shape (n,)
        Degrees on WGS 84.
    time : ndarray of datetime64[ms] or None
        In UTC, where the file has a time for each.

    Examples
    --------
    >>> Positions(np.array([52.5]), np.array([13.4]), None).latitude
    array([52.5])
    """

    latitude: NDArray[np.float64]
    longitude: NDArray[np.float64]
    time: NDArray[np.datetime64] | None
