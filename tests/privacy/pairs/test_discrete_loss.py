"""The moment generating function of a finite loss on a line, against sums of its terms."""

from __future__ import annotations

import mpmath
import numpy as np
from numpy.typing import NDArray

from sfumato.privacy.pairs.discrete_loss import DiscreteLoss, Tilted

TILT = 2.5


def tilted(rows: int) -> Tilted:
    random = np.random.default_rng(0)
    loss = np.sort(random.normal(size=(rows, 60)), axis=-1)
    log_mass = np.log(random.dirichlet(np.ones(60), size=rows))
    return DiscreteLoss(loss, log_mass, np.zeros((rows, 1))).tilted(TILT)


def exact(one: Tilted, row: int, time: float) -> mpmath.mpc:
    """The mean of the turned losses, under weights that are taken as they are."""
    terms = zip(one.weights[row].tolist(), one.loss[row].tolist(), strict=True)
    return mpmath.fsum(mpmath.mpf(w) * mpmath.expj(mpmath.mpf(time) * x) for w, x in terms)


def test_points_of_a_line_are_as_near_as_their_error_says() -> None:
    one, step, count = tilted(2), 0.37, 150
    ray = one.ray(step, count)
    with mpmath.workdps(40):
        for row in range(2):
            mean = mpmath.mpf(float(ray.mean[row]))
            for place in (0, 1, 2, 3, 7, 12, 13, 64, 100, 149):
                turned = exact(one, row, step * place) * mpmath.expj(-mpmath.mpf(step * place) * mean)
                found = mpmath.exp(mpmath.mpc(complex(ray.log[row, place])))
                assert abs(found - turned) <= ray.error[row, place] + 1e-13
                assert ray.error[row, place] < 1e-9


def test_sizes_bound_all_times_up_to_the_middles() -> None:
    one, step, count = tilted(2), 0.11, 40
    found: NDArray[np.float64] = one.sizes(step, count)
    assert found.min() < 0.9
    for row in range(2):
        for place in range(count):
            for part in (-0.5, -0.2, 0.0, 0.3, 0.5):
                time = max(0.0, (place + part) * step)
                assert abs(complex(exact(one, row, time))) <= found[row, place] * (1 + 1e-12)
