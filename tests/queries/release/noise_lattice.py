"""All values of several independent noises with their probabilities, for coverage without chance."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from sfumato.numerics.distributions.discrete import SymmetricDistribution


def lattice(
    *noises: SymmetricDistribution, outside: float = 1e-5
) -> tuple[tuple[NDArray[np.float64], ...], NDArray[np.float64]]:
    """Return each noise's value in every combination, and its probability, over their whole.

    The combinations leave out at most ``outside`` on each side of every noise; what is left sums to one.
    """
    axes, laws = [], []
    for noise in noises:
        last = noise.quantile_above(outside)
        axis = np.arange(-last, last + 1)
        axes.append(axis.astype(np.float64))
        laws.append(np.array([noise.pmf(int(value)).lower for value in axis]))
    values = tuple(grid.ravel() for grid in np.meshgrid(*axes, indexing="ij"))
    masses: NDArray[np.float64] = np.ones(1)
    for law in laws:
        masses = np.multiply.outer(masses, law).ravel()
    return values, masses / masses.sum()
