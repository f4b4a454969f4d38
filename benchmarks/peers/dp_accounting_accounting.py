"""The accountant's jobs with dp-accounting; prints, for each, CPU seconds and answers as JSON."""

from __future__ import annotations

import json
import math
import time

import dp_accounting
from dp_accounting.pld import privacy_loss_distribution as pld

DISC = 1e-4


def timed(run):
    start = time.process_time()
    try:
        answer = f"{run():.7g}"
    except Exception as error:
        answer = f"{type(error).__name__}: {str(error)[:60]}"
    return time.process_time() - start, answer


def gaussian(noise, *, q=1.0, high=True, disc=DISC):
    return pld.from_gaussian_mechanism(
        noise,
        sampling_prob=q,
        pessimistic_estimate=high,
        use_connect_dots=high,
        value_discretization_interval=disc,
    )


def sgd(q, noise, steps, delta, *, high=True):
    return gaussian(noise, q=q, high=high).self_compose(steps).get_epsilon_for_delta(delta)


def mixed(high):
    options = {
        "pessimistic_estimate": high,
        "use_connect_dots": high,
        "value_discretization_interval": DISC,
    }
    total = None
    for i in range(40):
        e = math.exp(0.02 + 0.001 * i)
        for part in (
            pld.from_laplace_mechanism(20.0 + i, **options),
            pld.from_gaussian_mechanism(20.5 + i, **options),
            pld.from_discrete_gaussian_mechanism(20.0 + i, **options),
            pld.from_randomized_response(
                2 / (1 + e), 2, pessimistic_estimate=high, value_discretization_interval=DISC
            ),
            gaussian(0.8 + 0.03 * i, q=0.005 + 0.0004 * i, high=high),
        ):
            total = part if total is None else total.compose(part)
    return total.get_epsilon_for_delta(1e-5)


def calibrated(epsilon):
    return dp_accounting.calibrate_dp_mechanism(
        lambda: dp_accounting.pld.PLDAccountant(value_discretization_interval=DISC),
        lambda noise: dp_accounting.SelfComposedDpEvent(
            dp_accounting.PoissonSampledDpEvent(0.01, dp_accounting.GaussianDpEvent(noise)), 10_000
        ),
        epsilon,
        1e-5,
        bracket_interval=dp_accounting.ExplicitBracketInterval(0.5, 10.0),
        tol=1e-4,
    )


def main():
    results = {}
    for delta in (1e-5, 1e-15, 1e-30):
        results[f"sgd {delta:g}"] = {
            "upper": timed(lambda d=delta: sgd(0.01, 1.0, 10_000, d)),
            "lower": timed(lambda d=delta: sgd(0.01, 1.0, 10_000, d, high=False)),
        }
    results["rare"] = {
        "upper": timed(lambda: sgd(1e-5, 0.5, 10**6, 1e-5)),
        "lower": timed(lambda: sgd(1e-5, 0.5, 10**6, 1e-5, high=False)),
    }
    results["mixed"] = {
        "upper": timed(lambda: mixed(True)),
        "lower": timed(lambda: mixed(False)),
    }
    for epsilon in (1.0, 8.0):
        results[f"calibrate {epsilon:g}"] = {
            "bracket given": timed(lambda e=epsilon: calibrated(e)),
        }
    print(json.dumps(results))


if __name__ == "__main__":
    main()
