"""Posteriors of regressions: the conjugate one without noise, wider with noise, in the data's unit."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from sfumato import adaptive
from sfumato.errors import NeighboringMismatch, ParameterError
from sfumato.mechanisms import Gaussian, Laplace, LeastSquares, Staircase, Variance
from sfumato.privacy import Neighboring

QUERY = LeastSquares(bounds=((0.0, 10.0), (-4.0, 16.0)))


def people(count: int, seed: int = 0) -> Any:
    rng = np.random.default_rng(seed)
    x = rng.normal(5, 1.2, count)
    return np.stack([x, 3 + 0.5 * x + rng.normal(0, 1.0, count)], axis=1)


def test_without_much_noise_it_is_the_conjugate_posterior_in_the_unit_of_the_data() -> None:
    data = people(60)
    release = Gaussian.for_query(QUERY, epsilon=1e5, delta=1e-5, neighboring=Neighboring.REPLACE_ONE).release(
        data, rng=1
    )
    found = adaptive.regression_posterior(
        release, records=60, prior_records=1e-3, draws=350, burn_in=50, rng=2
    )
    x, y = data.T
    slope = np.cov(x, y)[0, 1] / x.var(ddof=1)
    rest = y - y.mean() - slope * (x - x.mean())
    assert found.names == ("intercept", "slope 1", "residual stddev")
    error = np.sqrt((rest**2).sum() / 58 / ((x - x.mean()) ** 2).sum())
    assert found.mean[1] == pytest.approx(slope, abs=0.3 * error)
    assert found.stddev[1] == pytest.approx(error, rel=0.2)
    assert found.mean[0] == pytest.approx(y.mean() - slope * x.mean(), abs=1.5 * error)
    assert found.mean[2] == pytest.approx(np.sqrt((rest**2).sum() / 58), rel=0.05)
    assert (found.effective_draws > 100).all()


def test_noise_widens_the_posterior_and_a_private_number_of_records_is_drawn() -> None:
    data = people(1500)
    for mechanism in (
        Gaussian.for_query(QUERY, epsilon=1.0, delta=1e-6),
        Laplace.for_query(QUERY, epsilon=1.0),
    ):
        found = adaptive.regression_posterior(mechanism.release(data, rng=3), draws=120, burn_in=30, rng=4)
        assert 0.05 < found.stddev[1] < 0.4  # of the exact moments it is 0.02
        lower, upper, _ = found.credible_interval(0.999)
        assert lower[1] < 0.5 < upper[1]
        assert lower[2] < 1.0 < upper[2]


def test_what_is_no_release_of_least_squares_is_refused() -> None:
    data = people(50)
    released = Gaussian.for_query(QUERY, epsilon=1.0, delta=1e-6).release(data, rng=1)
    other = Laplace.for_query(Variance(bounds=(0.0, 10.0)), epsilon=1.0).release(data[:, 0], rng=1)
    plain = Laplace(sensitivity=1, scale=1.0).release(3, rng=1)
    public = Gaussian.for_query(QUERY, epsilon=1.0, delta=1e-6, neighboring=Neighboring.REPLACE_ONE)
    fixed = public.release(data, rng=1)
    stairs = replace(released, distribution=Staircase(sensitivity=1, epsilon=1.0).release(0).distribution)
    run: Any = adaptive.regression_posterior
    with pytest.raises(NeighboringMismatch, match="leave it out"):
        run(released, records=50)
    refused: list[tuple[Any, str]] = [
        (lambda: run(other), "release.query must be a LeastSquares"),
        (lambda: run(plain), "release.query must be a LeastSquares"),
        (lambda: run(3), "be of LeastSquares"),
        (lambda: run(stairs), "have Gaussian or Laplace noise"),
        (lambda: run(fixed, records=3), "records must be more than 3"),
        (lambda: run(released, prior_records=0.0), "prior_records"),
        (lambda: run(released, prior_stddev=0.0), "prior_stddev"),
        (lambda: run(released, draws=1), "draws"),
    ]
    for call, message in refused:
        with pytest.raises(ParameterError, match=message):
            call()
