"""Released marginals of a column that was asked by ranges, from fixed numbers."""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from sfumato.numerics.distributions.discrete import DiscreteGaussianDistribution
from sfumato.privacy import Neighboring
from sfumato.privacy.leaves.discrete_gaussian_vector import DiscreteGaussianVector
from sfumato.synthetic import MarginalsRelease, Ordered, TableDomain
from sfumato.synthetic.marginals.column_strategy import RangeStrategy

__all__ = ["files"]

DOMAIN = TableDomain(age=Ordered(0, 90, bins=3), sex=["f", "m"])
MATRIX = [[200, -100, -100], [10, 150, -170]]
NOISE = {(): Fraction(3), (0,): Fraction(1025, 2), (1,): Fraction(7), (0, 1): Fraction(2049)}
VALUES = {
    (): np.array(1000.5),
    (0,): np.array([12.25, -8.0, -4.25]),
    (1,): np.array([30.5, -30.5]),
    (0, 1): np.array([[1.5, -1.5], [-2.0, 2.0], [0.5, -0.5]]),
}


def files() -> dict[str, bytes]:
    """Return the bytes of each file by name."""
    released = MarginalsRelease(
        value=VALUES,
        domain=DOMAIN,
        distributions={part: DiscreteGaussianDistribution(sigma) for part, sigma in NOISE.items()},
        strategies={0: RangeStrategy(np.array(MATRIX, np.int64))},
        loss=DiscreteGaussianVector(Fraction(3), 1),
        neighboring=Neighboring.ADD_REMOVE,
    )
    return {"released-ranges.json": released.to_json().encode()}
