"""Speed of OpenDP's integer noise, as JSON; runs in OpenDP's own virtual environment."""

import json
import time

import opendp.prelude as dp

dp.enable_features("contrib")
COUNT = 20_000


def speed(make: object, scale: float) -> float:
    space = dp.vector_domain(dp.atom_domain(T="i64")), dp.l1_distance(T="i64")
    if make is dp.m.make_gaussian:
        space = space[0], dp.l2_distance(T="f64")
    mechanism = make(*space, scale=scale)
    values = [0] * COUNT
    best = float("inf")
    for _ in range(3):
        start = time.process_time()
        mechanism(values)
        best = min(best, time.process_time() - start)
    return COUNT / best / 1e6


print(
    json.dumps(
        {
            name: [speed(make, scale) for scale in (1.0, 1e3, 1e6)]
            for name, make in (("laplace", dp.m.make_laplace), ("gaussian", dp.m.make_gaussian))
        }
    )
)
