"""Random projections: heights of both sides, and the error beside that of `PrivUnit`."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from sfumato.local import PrivUnit, ProjUnit
from sfumato.local.vector.projections import half_sphere_heights
from tests.cases import cases
from tests.chance import accepts_only
from tests.local.laws import within


def test_heights_are_those_of_sorted_random_directions_without_their_signs() -> None:
    generator, n = np.random.default_rng(1), 60_000
    vectors = generator.standard_normal((n, 16, 3))
    drawn = abs(vectors[:, :, 0]) / np.linalg.norm(vectors, axis=2) * math.sqrt(3)
    drawn = np.sort(drawn, axis=1)[:, -5:]
    for found, exact in zip((drawn, drawn**2), half_sphere_heights(16, 5, 3), strict=True):
        means = found.mean(axis=1)
        mean = within(means.mean(), means.std() / math.sqrt(n))
        accepts_only(mean, exact, a_fiftieth_more=1.02 * exact, a_fiftieth_less=0.98 * exact)
    # In three dimensions heights are even from 0 to the radius; two of a circle: cos a has mean 2/pi.
    assert half_sphere_heights(1, 1, 3) == pytest.approx((math.sqrt(3) / 2, 1.0), rel=1e-6)
    assert half_sphere_heights(4, 1, 3)[0] == pytest.approx(math.sqrt(3) * 4 / 5, rel=1e-6)
    assert half_sphere_heights(1, 1, 2)[0] == pytest.approx(math.sqrt(2) * 2 / math.pi, rel=1e-6)


@cases("epsilon", [1.0, 2.0, 4.0, 6.0, 8.0])
@cases("dimension", [2, 30, 1000, 65_536])
def test_the_error_is_hardly_above_that_of_privunit(epsilon: float, dimension: int) -> None:
    one, other = (kind(epsilon=epsilon, dimension=dimension) for kind in (ProjUnit, PrivUnit))
    assert 0.9 <= one.variance(1) / other.variance(1) <= 1.10


@pytest.mark.parametrize("truth", ["one part", "even parts", "another"])
def test_no_bias_and_the_error_of_all_kinds_of_truths(truth: str) -> None:
    dimension, n = 64, 4_000
    vector: Any = np.zeros(dimension)
    vector[0] = 1.0
    if truth != "one part":
        vector = np.ones(dimension) if truth == "even parts" else np.random.default_rng(2).standard_normal(64)
    vector = vector / np.linalg.norm(vector)
    protocol = ProjUnit(epsilon=8.0, dimension=dimension)
    totals = protocol.tally(protocol.randomize_batch(np.tile(vector, (n, 1)), 3).records)
    found = protocol.estimate(totals, n)
    accepts_only(within(found.mean, found.stddev), vector, shrunk=0.5 * vector, mirrored=-vector)
    along, spread = float(found.mean @ vector), math.sqrt(protocol.variance(n, 1.0) / dimension)
    # Along the truth the heights alone vary: the gain is held to about two hundredths.
    accepts_only(within(along, 1.5 * spread), 1.0, a_tenth_less=0.9, a_tenth_more=1.1)
    assert found.variances.sum() == pytest.approx(protocol.variance(n, 1.0), rel=0.02)
