"""The error of distributed noise over that of a central Gaussian mechanism at the same epsilon and delta."""

from __future__ import annotations

import time

import numpy as np

from sfumato.federated import (
    DistributedDiscreteGaussian,
    DistributedPoissonBinomial,
    DistributedSkellam,
)
from sfumato.federated.distributed_noise.mechanism import DistributedMechanism
from sfumato.privacy import analytic_gaussian_stddev

__all__ = ["noise_errors"]

SIZES = ((100, 4096), (1000, 16384))
DELTA = 1e-5


def noise_errors() -> None:
    """Print a row for each mechanism, size, epsilon and number of bits; one in ten clients drops out."""
    print(f"\nerror of the distributed sum over the central Gaussian's, delta {DELTA:g}, 10 % dropped")
    print("  clients  entries  epsilon  bits  discrete Gaussian  Skellam  Poisson binomial  (target 1.05)")
    print("                                   CPU s a client: Gaussian, Poisson binomial")
    for clients, dimension in SIZES:
        vectors = _vectors(clients * 9 // 10, dimension)
        for epsilon in (1.0, 3.0):
            central = analytic_gaussian_stddev(sensitivity=1.0, epsilon=epsilon, delta=DELTA)
            for bits in (16, 18):
                noises: list[DistributedMechanism] = [
                    kind.calibrated(
                        epsilon=epsilon,
                        delta=DELTA,
                        clients=clients,
                        minimum_survivors=len(vectors),
                        dimension=dimension,
                        clip_norm=1.0,
                        bits=bits,
                    )
                    for kind in (DistributedDiscreteGaussian, DistributedSkellam, DistributedPoissonBinomial)
                ]
                (first, spent), (second, _), (third, coins) = (_error(noise, vectors) for noise in noises)
                print(
                    f"  {clients:7,}  {dimension:7,}  {epsilon:7g}  {bits:4}  {first / central:17.3f}"
                    f"  {second / central:7.3f}  {third / central:16.3f}"
                    f"  {spent / len(vectors):.4f} {coins / len(vectors):.4f}"
                )


def _vectors(count: int, dimension: int) -> np.ndarray:
    """Vectors of length one that have a direction in common, so that their sum is long."""
    rng = np.random.default_rng(1)
    vectors = rng.normal(size=(count, dimension)) + rng.normal(size=dimension)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    return vectors


def _error(noise: DistributedMechanism, vectors: np.ndarray) -> tuple[float, float]:
    """The root mean squared error of one sum, and the CPU seconds of encoding."""
    start = time.process_time()
    total = np.zeros(noise.padded, np.int64)
    for vector in vectors:
        total += noise.encode(vector, b"a public seed")
    spent = time.process_time() - start
    error = noise.decode(total, b"a public seed") - vectors.sum(axis=0)
    return float(np.sqrt((error**2).mean())), spent
