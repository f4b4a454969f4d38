"""Lower bounds beside what our factorizations reach; rows that a mean in d dimensions needs; CPU time."""

from __future__ import annotations

import argparse
import math
import time

import numpy as np
from scipy.linalg import hadamard

from sfumato import bounds
from sfumato.mechanisms import BinaryTree, SquareRoot
from sfumato.privacy import Gaussian

ADULT = (85, 9, 100, 16, 7, 15, 6, 5, 2, 100, 100, 99, 42, 2)


def prefixes(steps: int) -> None:
    """Print bound, optimum, square root and tree for prefix sums."""
    began = time.process_time()
    workload = np.tril(np.ones((steps, steps)))
    mean, most = (make(workload, mu=1.0) for make in (bounds.mean_error_bound, bounds.maximum_error_bound))
    spent = time.process_time() - began
    root, tree = SquareRoot(steps=steps), BinaryTree(steps=steps)
    rows = ((mean, root.mean_error(), tree.mean_error()), (most, root.max_error(), tree.max_error()))
    for bound, by_root, by_tree in rows:
        print(
            f"{steps:5} {bound.target:>8}  {bound.error:.4f}  {bound.reached:.4f}  "
            f"{by_root:.4f}  {by_tree:.4f}"
        )
    print(f"{spent:.2f} CPU s")


def discrepancies() -> None:
    """Print discrepancies, their bounds, and what they say of all mechanisms."""
    print("\ndiscrepancy of Hadamard's matrices: hereditary, determinant bound, factorization norm;")
    print("and error of all mechanisms of 0.25-GDP, with a probability of 0.1")
    for size in (2, 4, 8):
        began = time.process_time()
        matrix = hadamard(size)
        exact = bounds.hereditary_discrepancy(matrix).hereditary.lower
        root = bounds.determinant_bound(matrix)
        error = bounds.discrepancy_error_bound(matrix, Gaussian(4.0), failure=0.1).error
        norm = bounds.factorization_norm(matrix).bounds.lower
        spent = time.process_time() - began
        half = root.hereditary_discrepancy
        print(f"{size:5}  {exact:g}  {half:.4f}  {norm:.4f}  {error:g}  {spent:.2f} CPU s")


def main(argv: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks bounds", description=__doc__)
    parser.add_argument("--steps", type=int, nargs="+", default=[16, 64, 256], help="of prefix sums")
    arguments = parser.parse_args(argv)
    print("prefix sums at mu = 1, for Gaussian noise on linear measurements")
    print("steps    error   bound optimum  sq.root    tree")
    for steps in arguments.steps:
        prefixes(steps)
    began = time.process_time()
    print("\nAdult's marginals at mu = 1: the bound, which is attained")
    for orders in ([1], [2], [3], [1, 2, 3]):
        print(f"{orders!s:>10}  {bounds.marginals_error_bound(ADULT, orders=orders, mu=1.0).error:.4f}")
    print(f"{time.process_time() - began:.2f} CPU s")
    print("\nrows for a standard error of 0.1 of a mean in d dimensions, epsilon 1, delta 1e-6")
    print("    d  unbiased bound  Gaussian")
    for dimension in (16, 64, 256, 1024):
        mechanism = bounds.NoisyMean(bounds=(0.0, 1.0), epsilon=1.0, delta=1e-6, dimension=dimension)
        noise = mechanism.stddev(1)
        # A row that is replaced by its complement moves the sum by a vector of signs.
        mu = math.sqrt(dimension) / noise
        least = bounds.svd_error_bound(hadamard(dimension), mu=mu, unbiased=True).error
        print(f"{dimension:5}  {math.ceil(least / 0.1):14}  {math.ceil(noise / 0.1):8}")
    discrepancies()
    print("\nrows for a median within 1 % of the ranks at epsilon 0.5, 95 % sure, for any data")
    for points in (10, 1000, 100_000):
        model = bounds.NoisyQuantile(bounds=(1, points), epsilon=0.5)
        print(f"{points:7} answers  {bounds.sample_size(model, error=0.01)}")
    print("\nhistogram of k cells at epsilon 1: greatest error, 95 % sure (exact, ours)")
    for cells in (10, 1000, 100_000):
        print(f"{cells:7}  {bounds.NoisyCounts(epsilon=1.0, entries=cells).error(1, 0.95):.0f}")
        print(f"         {bounds.histogram_order(cells, epsilon=1.0)}")
    return 0
