"""Location: secure points a second, the optimal mechanism, remaps and expected losses."""

from __future__ import annotations

import argparse
import math
import time
from collections.abc import Callable
from random import random
from typing import Any

import numpy as np
from scipy.special import lambertw

from sfumato import location
from sfumato.location.metrics.place_metric import PlaceMetric

_POINTS = 4_000_000


def _timed(run: Callable[[], Any], times: int = 3) -> tuple[float, Any]:
    best, found = math.inf, None
    for _ in range(times):
        start = time.process_time()
        found = run()
        best = min(best, time.process_time() - start)
    return best, found


def _scalar_points(count: int, epsilon: float) -> None:
    """Draw one point at a time by the inverse of the radius, with an insecure generator, as peers do."""
    for _ in range(count):
        angle = 2 * math.pi * random()
        radius = -(float(lambertw((random() - 1) / math.e, -1).real) + 1) / epsilon
        _ = radius * math.cos(angle), radius * math.sin(angle)


def _points() -> None:
    epsilon = math.log(4) / 200
    plane = np.random.default_rng(0).uniform(-20_000, 20_000, (_POINTS, 2))
    report = location.PlanarLaplace(epsilon=epsilon)
    spent, _ = _timed(lambda: report.release(plane))
    print(f"plane, secure          {_POINTS / spent / 1e6:8.2f} million points/s   (limit 10)")
    disc = location.Projection(latitude=52.52, longitude=13.405, radius=30_000)
    north, east = disc.to_degrees(plane[: _POINTS // 4])
    degrees = location.PlanarLaplace(epsilon=epsilon, projection=disc)
    spent, _ = _timed(lambda: degrees.release_degrees(north, east))
    print(f"degrees, secure        {_POINTS / 4 / spent / 1e6:8.2f} million points/s")
    spent, _ = _timed(lambda: _scalar_points(20_000, epsilon))
    print(f"one by one, no secrecy {20_000 / spent / 1e6:8.2f} million points/s   (as peers do)")
    print(f"95th percentile        {report.radius(0.95) * epsilon:8.3f} / epsilon          (4.744)")


def _places(size: int, stretch: float) -> None:
    cells = PlaceMetric.grid(size, size)
    prior = np.random.default_rng(0).dirichlet(np.ones(cells.size))
    epsilon = math.log(2)
    clipped = location.planar_laplace_on_places(cells, epsilon=epsilon)
    spent, best = _timed(
        lambda: location.optimal_mechanism(cells, epsilon=epsilon, prior=prior, stretch=stretch), 1
    )
    remapping, _ = _timed(lambda: clipped.remapping(prior))
    raw = location.PlanarLaplace(epsilon=epsilon).mean_error
    losses = [raw, clipped.expected_loss(prior), clipped.remap(prior).expected_loss(prior)]
    print(
        f"{size} x {size}, stretch {best.stretch:.3f}: raw, clipped, remapped", *(f"{x:.3f}" for x in losses)
    )
    print(f"  optimal {best.expected_loss:.4f}, bound {best.lower_bound:.4f}, in {spent:.2f} s (limit 10)")
    print(f"  remap in {1e3 * remapping:.2f} ms (limit 10)")


def main(argv: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks location", description=__doc__)
    parser.add_argument("--part", choices=["points", "places"], help="one part only")
    part = parser.parse_args(argv).part
    if part in {None, "points"}:
        _points()
    if part in {None, "places"}:
        _places(7, 1.0)
        _places(10, 1.05)
    return 0
