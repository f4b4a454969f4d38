"""Which groups the strategies show, by exact probabilities, and what a rule that shows no counts could do.

Unknown groups, one count of units, and every unit in as many groups as it may be in. For each strategy: how
many groups are hidden, were there one group of each number of units (the mean threshold less 1), the standard
deviation of the counts, and the number of units from which on a group is rather shown than not.

The last column has no counts: the most that a rule can show whose every group is delta-approximate
(alpha, rho)-Renyi DP, at the best order alpha, half of delta for the conversion, half for the groups. With q
for the probability of n units, n + 1 units have ``(1 - d) p + d``, where p is the largest with divergences of
at most rho both ways between coins of p and ``q / (1 - d)``; that is the construction of Harrison and
Manurangsi, "Optimal partition selection with Renyi differential privacy" (arXiv 2603.09167), as computed
here. Adaptive weights (PolicyGaussian, MAD2R) start from such a rule and move weight from groups far above
its threshold to others: they do more only where units are in such groups.

``python -m benchmarks selection [--epsilon E] [--delta D] [--groups N ...]``
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Sequence

import numpy as np

from sfumato.mechanisms.statistics.quantile.binned_quantiles import BinMechanism
from sfumato.queries.plan.query import Scan
from sfumato.queries.plan.schema import Column, ColumnType, Schema
from sfumato.queries.pricing.price import PricedQuery, price
from sfumato.queries.sql.analysis import read
from sfumato.queries.sql.catalog import Catalog

__all__ = ["main", "row"]

STRATEGIES = ("LAPLACE_THRESHOLD", "TRUNCATED_GEOMETRIC", "GAUSSIAN_THRESHOLD")
_CATALOG = Catalog(
    {"data": Scan("data", Schema((Column("id", ColumnType.INTEGER), Column("g", ColumnType.TEXT))), "id")}
)


def priced(epsilon: float, delta: float, groups: int, strategy: str) -> PricedQuery:
    """Price a count by unknown groups; an empty strategy leaves the choice to sfumato."""
    chosen = f", group_selection_strategy={strategy}" if strategy else ""
    options = f"epsilon={epsilon}, delta={delta}, max_groups_contributed={groups}{chosen}"
    text = f"SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS({options}) g, COUNT(*) AS n FROM data GROUP BY g"
    return price(read(text, _CATALOG))


def shown(query: PricedQuery) -> tuple[float, float, int]:
    """Return how many groups are hidden, the deviation, and the units that are shown half the time."""
    threshold, mechanism = query.threshold, query.mechanisms[0]
    if threshold is None or isinstance(mechanism, BinMechanism):
        raise ValueError("no groups are chosen")
    law = mechanism.distribution
    half = next(n for n in range(1, 3 * threshold.units) if threshold.shown(law, n).lower >= 0.5)
    return threshold.units - float(threshold.probability), float(mechanism.stddev), half


def without_counts(epsilon: float, delta: float, groups: int) -> tuple[float, int]:
    """Return how many groups are hidden, and the units shown half the time, by a Renyi optimum."""
    best: tuple[float, int] | None = None
    for order in np.geomspace(1.5, 300, 60).tolist():
        left = math.log(delta / 2) + math.log(order) - (order - 1) * math.log1p(-1 / order)
        rho = epsilon + left / (order - 1)
        found = None if rho <= 0 else _hidden(order, rho / groups, delta / (2 * groups), best)
        best = found or best
    if best is None:
        raise ValueError("no order is affordable")
    return best


def _hidden(
    order: float, rho: float, mass: float, best: tuple[float, int] | None
) -> tuple[float, int] | None:
    """Return the sums for one order; None as soon as they are above the best of others."""
    last, hidden, units, half = 0.0, 0.0, 0, 0
    while last < 1 - 1e-9:
        last, units = _next(order, rho, mass, last), units + 1
        hidden += 1 - last
        half = half or (units if last >= 0.5 else 0)
        if best is not None and hidden >= best[0]:
            return None
    return hidden, half


def _next(order: float, rho: float, mass: float, last: float) -> float:
    start = last / (1 - mass)
    if start <= 0 or start >= 1:
        return mass if start <= 0 else 1.0
    low, high = start, 1.0
    for _ in range(60):
        middle = (low + high) / 2
        near = middle < 1 and max(_renyi(order, middle, start), _renyi(order, start, middle)) <= rho
        low, high = (middle, high) if near else (low, middle)
    return min(1.0, (1 - mass) * low + mass)


def _renyi(order: float, one: float, other: float) -> float:
    """Return the Renyi divergence between two coins."""
    heads = order * math.log(one) + (1 - order) * math.log(other)
    tails = order * math.log1p(-one) + (1 - order) * math.log1p(-other)
    return float(np.logaddexp(heads, tails)) / (order - 1)


def row(epsilon: float, delta: float, groups: int) -> list[str]:
    """Return a line of the table of docs/sql.md."""
    chosen = priced(epsilon, delta, groups, "").distribution
    cells = [f"{groups}"]
    for strategy in STRATEGIES:
        query = priced(epsilon, delta, groups, strategy)
        hidden, stddev, _ = shown(query)
        text = f"{hidden:.1f} ({stddev:.1f})"
        cells.append(f"**{text}**" if query.distribution is chosen else text)
    return [*cells, f"{without_counts(epsilon, delta, groups)[0]:.1f}"]


def main(argv: Sequence[str]) -> int:
    """Print the table, and the sizes that are shown half the time."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks selection", description=__doc__)
    parser.add_argument("--epsilon", type=float, default=1.0)
    parser.add_argument("--delta", type=float, default=1e-6)
    parser.add_argument("--groups", type=int, nargs="+", default=[1, 2, 3, 5, 6, 10, 30, 100])
    given = parser.parse_args(argv)
    print(
        f"epsilon {given.epsilon:g}, delta {given.delta:g}: hidden groups (standard deviation); bold: taken"
    )
    for groups in given.groups:
        print("| " + " | ".join(row(given.epsilon, given.delta, groups)) + " |")
    print("\nunits of a group that is shown half the time, by strategy, and without counts")
    for groups in given.groups:
        sizes = [shown(priced(given.epsilon, given.delta, groups, each))[2] for each in STRATEGIES]
        print(groups, *sizes, without_counts(given.epsilon, given.delta, groups)[1])
    return 0
