"""Attacks and syntactic anonymity: each part beside its peer, or the limit of its issue, in one run.

``python -m benchmarks attacks [--part NAME] [--peers] [--adult FILE]``
"""

from __future__ import annotations

import argparse
import importlib
from collections.abc import Sequence
from pathlib import Path

__all__ = ["main"]

_ADULT = Path(__file__).parents[1] / "tests" / "anonymity" / "data" / "adult.parquet"

PARTS = {
    "census": "benchmarks.attack_tables",
    "linkage": "benchmarks.attack_linkage",
    "generalize": "benchmarks.anonymity_generalize",
    "measures": "benchmarks.anonymity_measures",
    "reconstruction": "benchmarks.attack_reconstruction",
    "tracing": "benchmarks.attack_tracing",
}
"""By name, the module whose ``rows(options)`` yields lines of cells, the first of them heads."""


def main(argv: Sequence[str] | None = None) -> int:
    """Print the parts that are asked for."""
    parser = argparse.ArgumentParser(prog="attacks", description=__doc__)
    parser.add_argument("--part", choices=PARTS, action="append", help="one part; repeatable; all of them")
    parser.add_argument("--peers", action="store_true", help="beside other libraries, in their environments")
    parser.add_argument("--adult", type=Path, default=_ADULT, help="the Adult table, Parquet or CSV")
    options = parser.parse_args(argv)
    for name in options.part or PARTS:
        print(f"{name}:")
        for cells in importlib.import_module(PARTS[name]).rows(options):
            print("".join(f"{cell:<34}" if not place else f"{cell:>16}" for place, cell in enumerate(cells)))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
