"""Intervals: how often they hold the bounded answer, and how wide they are, over a named grid.

Exact integers of one group are fixed. Their noise is drawn as many times as ``--draws`` says, as a query's
own, or enumerated where that is possible. A width is the median of the 95 % interval's, over the root mean
squared error of the estimate, and over the width of the exact central 95 % interval of the estimate's
distribution at these integers. ``!`` marks a coverage below .95 by more than 4 standard errors, and a width
above 1.1 times the central interval's.
``python -m benchmarks intervals [--draws N] [--epsilon E] [--part NAME] [--all]``
"""

from __future__ import annotations

import argparse
import functools
import time
from collections.abc import Sequence
from itertools import groupby

import numpy as np
import pyarrow as pa

from benchmarks.interval_cases import Case, cases, rows
from benchmarks.interval_coverage import Coverage, NoisedGroup, priced_and_exact

__all__ = ["main"]

_MOST = 1.1
_SEEN = 400


def threshold_of(call: str, options: str) -> int:
    """Return how many units a group has that is shown half of the time."""
    priced, _ = priced_and_exact(rows("apart", 4), f"{call} AS v", options, grouped=True)
    return 0 if priced.threshold is None else priced.threshold.units


def measured(case: Case, draws: int) -> Coverage | None:
    """Return a case's coverage and widths; None where its group is hardly ever shown."""
    table = rows(case.shape, case.units)
    priced, exact = priced_and_exact(table, case.call, case.options, grouped=case.threshold)
    group = NoisedGroup.enumerated(priced, exact) if case.exact else NoisedGroup.drawn(priced, exact, draws)
    if not case.exact and group.count < min(draws, _SEEN):
        return None
    return group.coverage("v", _middle(table) if case.part == "quantiles" else None)


def _middle(table: pa.Table) -> tuple[float, float]:
    """Return the two values in the middle, as near as bins of a 2,048th of the range tell them."""
    ordered, width = np.sort(table["x"].to_numpy()), 100 / 2048
    return float(ordered[(len(ordered) - 1) // 2]) + width, float(ordered[len(ordered) // 2]) - width


def main(argv: Sequence[str] | None = None) -> int:
    """Print a row for each part of the grid, and for each case that fails, or for every case."""
    parser = argparse.ArgumentParser(prog="intervals", description=__doc__)
    parser.add_argument("--draws", type=int, default=40_000)
    parser.add_argument("--epsilon", type=float, default=1.0)
    parser.add_argument("--part", default="", help="only the parts of this name")
    parser.add_argument("--all", action="store_true", help="a row for every case")
    chosen = parser.parse_args(argv)
    grid = [each for each in cases(functools.cache(threshold_of), chosen.epsilon) if chosen.part in each.part]
    print(f"epsilon {chosen.epsilon:g}, {chosen.draws:,} draws of the noise where it is not enumerated")
    print("| part | aggregate | noise | shapes | coverage | width / RMSE | width / central |")
    print("|---|---|---|---|---|---|---|")
    before = time.process_time()
    for (part, name, noise), each in groupby(sorted(grid, key=_row), key=_row):
        found = [(case, measured(case, chosen.draws)) for case in each]
        known = [(case, result) for case, result in found if result is not None]
        _print_row(part, name, noise, [result for _, result in known])
        for case, result in known:
            if chosen.all or not result.enough or _ratio(result) > _MOST:
                marks = "" if result.enough else " !"
                print(
                    f"| | {case.title} | {noise} | {result.count or 'all'} | {result.held:.4f}{marks} | "
                    f"{result.width / max(result.error, 1e-300):.2f} | {_written(_ratio(result))} |",
                    flush=True,
                )
    print(f"{time.process_time() - before:.0f} s of CPU time")
    return 0


def _row(case: Case) -> tuple[str, str, str]:
    return case.part, case.name, case.noise


def _ratio(result: Coverage) -> float:
    return result.width / result.central if result.central > 0 else float(np.nan)


def _written(ratio: float) -> str:
    return "-" if np.isnan(ratio) else f"{ratio:.2f}{' !' if ratio > _MOST else ''}"


def _print_row(part: str, name: str, noise: str, found: Sequence[Coverage]) -> None:
    """Print the extremes of a row's cases."""
    if not found:
        return
    held = [each.held for each in found]
    errors = [each.width / max(each.error, 1e-300) for each in found]
    ratios = [_ratio(each) for each in found]
    bad = "" if all(each.enough for each in found) else " !"
    print(
        f"| {part} | {name} | {noise} | {len(found)} | {min(held):.4f}{bad} | "
        f"{min(errors):.2f} to {max(errors):.2f} | {_written(min(ratios))} to {_written(max(ratios))} |",
        flush=True,
    )


if __name__ == "__main__":
    raise SystemExit(main())
