"""How often 95 % intervals of a logistic regression on synthetic tables hold the truth.

People are drawn anew each time, with three columns of two values; the coefficients of y on a and b are
estimated on a table of each draw of the posterior and combined, on one synthetic table as if its rows were
people, and on the people themselves. The last figure is the share of 95 % credible intervals that hold the
probability of a.

``python -m benchmarks posterior [--repeats N]``
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from sfumato.synthetic import MST, FixedMarginals, Marginals, TableDomain, combine

__all__ = ["main"]

Array = NDArray[np.float64]
TRUTH = np.array([-0.5, 0.8, -0.6])
SHARE = 0.4
DOMAIN = TableDomain(a=[0, 1], b=[0, 1], y=[0, 1])
CASES: tuple[tuple[str, Any, int, float], ...] = (
    ("all pairs", FixedMarginals, 2000, 2.0),
    ("all pairs", FixedMarginals, 2000, 1.0),
    ("all pairs", FixedMarginals, 2000, 0.5),
    ("all pairs", FixedMarginals, 10_000, 0.2),
    ("MST: two of three pairs", MST, 2000, 1.0),
)


def people(rng: np.random.Generator, rows: int) -> pa.Table:
    """Return people of whom y follows a logistic regression on a and b."""
    a = rng.random(rows) < SHARE
    b = rng.random(rows) < np.where(a, 0.6, 0.3)
    y = rng.random(rows) < 1 / (1 + np.exp(-(TRUTH[0] + TRUTH[1] * a + TRUTH[2] * b)))
    return pa.table({"a": a.astype(int), "b": b.astype(int), "y": y.astype(int)})


def regression(rows: pa.Table) -> tuple[Array, Array]:
    """Return the coefficients of y on a and b, and their variances, by Newton's method."""
    codes = np.stack([rows[name].to_numpy() for name in "aby"])
    counts = np.bincount(codes[0] * 4 + codes[1] * 2 + codes[2], minlength=8).reshape(4, 2)
    design = np.array([[1, 0, 0], [1, 0, 1], [1, 1, 0], [1, 1, 1]], float)
    found, total = np.zeros(3), counts.sum(axis=1)
    for _ in range(25):
        p = 1 / (1 + np.exp(-design @ found))
        information = design.T @ (design * (total * p * (1 - p))[:, None])
        found = found + np.linalg.solve(information, design.T @ (counts[:, 1] - total * p))
    return found, np.diag(np.linalg.inv(information))


def case(name: str, kind: Any, rows: int, epsilon: float, repeats: int) -> list[str]:
    """Return the shares of intervals that hold the truth."""
    given = {} if kind is MST else {"workload": Marginals.every(2)}
    generator = kind.calibrated(DOMAIN, epsilon=epsilon, delta=1e-6, **given)
    rng = np.random.default_rng(20230425)
    held = np.zeros(4)
    for _ in range(repeats):
        real = people(rng, rows)
        model = generator.release(real, rng=rng)
        drawn = model.posterior(draws=100, rng=rng)
        estimates, variances = zip(*map(regression, drawn.tables(rng=rng)), strict=True)
        lower, upper, _ = combine(estimates, variances).interval()
        held[0] += np.mean((lower <= TRUTH) & (upper >= TRUTH))
        for place, table in ((1, model.table(rng=rng)), (2, real)):
            found, variance = regression(table)
            held[place] += np.mean(np.abs(found - TRUTH) <= 1.96 * np.sqrt(variance))
        ends = np.quantile(drawn.marginal("a")[:, 1], [0.025, 0.975])
        held[3] += ends[0] <= SHARE <= ends[1]
    return [name, f"{rows:,}", f"{epsilon:g}", *(f"{each:.3f}" for each in held / repeats)]


def main(argv: Sequence[str]) -> int:
    """Print the table."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks posterior", description=__doc__)
    parser.add_argument("--repeats", type=int, default=300)
    repeats = parser.parse_args(argv).repeats
    print(f"\n{repeats} repeats")
    print("| measured | rows | epsilon | posterior draws | one synthetic table | people | probability of a |")
    print("|" + " --- |" * 7)
    for given in CASES:
        print("| " + " | ".join(case(*given, repeats)) + " |", flush=True)
    return 0
