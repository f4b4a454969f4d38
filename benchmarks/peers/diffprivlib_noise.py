"""Speed of diffprivlib's noise, as JSON; runs in its own virtual environment."""

import json
import time

from diffprivlib.mechanisms import GaussianDiscrete, GeometricTruncated

COUNT = 2_000


def speed(mechanism: object) -> float:
    start = time.process_time()
    for _ in range(COUNT):
        mechanism.randomise(0)
    return COUNT / (time.process_time() - start) / 1e6


geometric = [
    speed(GeometricTruncated(epsilon=1 / scale, sensitivity=1, lower=-(2**50), upper=2**50))
    for scale in (1.0, 1e3, 1e6)
]
# At larger scales its constructor takes minutes, so only the first is measured.
gaussian = [speed(GaussianDiscrete(epsilon=1.0, delta=1e-5, sensitivity=1)), None, None]
print(json.dumps({"laplace": geometric, "gaussian": gaussian}))
