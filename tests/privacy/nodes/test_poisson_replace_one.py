"""A unit that is replaced under Poisson sampling: the pair against integrals, sums and every direction."""

from __future__ import annotations

import itertools
import math

import mpmath
import numpy as np
import pytest
from numpy.typing import NDArray

from sfumato.errors import NeighboringMismatch, ParameterError
from sfumato.privacy import (
    Gaussian,
    GroupPrivacy,
    Laplace,
    Neighboring,
    PoissonReplaceOne,
    PoissonSubsampled,
    Precision,
    loss_from_json,
)

REPLACE = Neighboring.REPLACE_ONE


def divergence(q: float, first: float, second: float, epsilon: float) -> mpmath.mpf:
    """The hockey-stick divergence of two mixtures on a line, with the other mean at 0."""
    weight = mpmath.mpf(q)

    def density(x: mpmath.mpf, mean: float) -> mpmath.mpf:
        return (1 - weight) * mpmath.npdf(x) + weight * mpmath.npdf(x, mean)

    def above(x: mpmath.mpf) -> mpmath.mpf:
        return density(x, first) - mpmath.exp(epsilon) * density(x, second)

    places = [-14 + mpmath.mpf(k) / 2 for k in range(57)]
    total = mpmath.mpf(0)
    for left, right in itertools.pairwise(places):
        if above(left) * above(right) < 0:
            root = mpmath.findroot(above, (left, right), solver="anderson", tol=1e-25)
            ends = (left, root) if above(left) > 0 else (root, right)
            total += mpmath.quad(above, ends)
        elif above(left) > 0:
            total += mpmath.quad(above, (left, right))
    return total


@pytest.mark.parametrize(("q", "noise", "epsilon"), [(0.1, 1.0, 0.3), (0.5, 2.0, 0.5), (0.01, 0.5, 1.0)])
def test_one_run_holds_the_integral(q: float, noise: float, epsilon: float) -> None:
    loss = PoissonReplaceOne(Gaussian(noise), q)
    exact = divergence(q, 1 / noise, -1 / noise, epsilon)
    lower, upper, tight = loss.delta_interval(epsilon, Precision(1e-5))
    assert lower <= exact <= upper <= lower * (1 + 2e-5)
    assert tight


def test_no_other_direction_or_length_has_a_greater_divergence() -> None:
    """In the plane, by sums over a grid: units of any norm up to 1, at any angle."""
    axis = np.linspace(-8.0, 8.0, 241)
    x, y = np.meshgrid(axis, axis)
    cell = (axis[1] - axis[0]) ** 2 / (2 * math.pi)
    base = np.exp(-(x * x + y * y) / 2) * cell

    def mixture(q: float, length: float, angle: float) -> NDArray[np.float64]:
        u, v = length * math.cos(angle), length * math.sin(angle)
        return np.asarray((1 - q) * base + q * base * np.exp(u * x + v * y - length * length / 2))

    for q, mu in ((0.2, 1.0), (0.7, 2.0)):
        loss = PoissonReplaceOne(Gaussian(1 / mu), q)
        for epsilon in (0.0, 0.7):
            bound = loss.delta_interval(epsilon).upper
            worst = 0.0
            for first in (0.0, 0.5, 1.0):
                for second in (0.0, 0.6, 1.0):
                    for angle in np.linspace(0.0, math.pi, 5):
                        p, other = mixture(q, mu * first, 0.0), mixture(q, mu * second, float(angle))
                        worst = max(worst, float(np.maximum(p - math.exp(epsilon) * other, 0).sum()))
            assert worst <= bound * (1 + 1e-3)  # what the sums leave out
            assert worst >= bound * (1 - 2e-3)


def test_a_run_lies_between_that_of_one_direction_and_the_chain_of_two_steps() -> None:
    step = PoissonSubsampled(Gaussian(1.0), 0.01)
    replaced = step.under(REPLACE)
    assert replaced == PoissonReplaceOne(Gaussian(1.0), 0.01)
    bounds = (replaced * 1000).epsilon_interval(1e-5)
    assert bounds.tight
    chain = (GroupPrivacy(step, 2, REPLACE) * 1000).epsilon_interval(1e-5)
    assert (step * 1000).epsilon_interval(1e-5).upper < bounds.lower <= chain.upper


def test_certainty_and_no_sampling() -> None:
    whole = PoissonReplaceOne(Gaussian(2.0), 1.0)
    assert whole.epsilon(1e-6) == pytest.approx(Gaussian(1.0).epsilon(1e-6), rel=1e-3)
    assert PoissonReplaceOne(Gaussian(2.0), 0.0).epsilon(1e-6) == 0.0
    bare = PoissonReplaceOne(Gaussian(0.0), 0.25)
    assert bare.delta(math.inf) == pytest.approx(0.25, rel=1e-12)
    assert bare.epsilon(0.3) == 0.0
    assert bare.epsilon(0.2) == math.inf


def test_renyi_divergences_hold_the_integral() -> None:
    for q, noise, order in ((0.1, 1.0, 3.0), (0.4, 2.0, 1.5)):
        weight = mpmath.mpf(q)

        def power(
            x: mpmath.mpf, q: mpmath.mpf = weight, mu: float = 1 / noise, a: float = order
        ) -> mpmath.mpf:
            p, other = ((1 - q) * mpmath.npdf(x) + q * mpmath.npdf(x, mean) for mean in (mu, -mu))
            return p**a * other ** (1 - a)

        exact = mpmath.log(mpmath.quad(power, [-25, -10, -4, 0, 4, 10, 25])) / (order - 1)
        found = PoissonReplaceOne(Gaussian(noise), q).rdp(order)
        assert exact <= found <= exact * (1 + mpmath.mpf("1e-3"))


def test_what_has_no_theorem_is_refused() -> None:
    with pytest.raises(ParameterError, match="loss must be a Gaussian"):
        PoissonReplaceOne(Laplace(1.0), 0.1)  # type: ignore[arg-type]
    with pytest.raises(NeighboringMismatch, match="loss must be under add/remove or zero-out"):
        PoissonReplaceOne(Gaussian(1.0, neighboring=REPLACE), 0.1)
    assert isinstance(PoissonSubsampled(Laplace(1.0), 0.1).under(REPLACE), GroupPrivacy)
    loss = PoissonReplaceOne(Gaussian(1.0, neighboring=Neighboring.ZERO_OUT), 0.1)
    assert loss_from_json(loss.to_json()) == loss
