"""Hostile statements against the front door: each is answered or refused by an error of ours.

``python -m benchmarks hostile [--statements N] [--seed S]``
"""

from __future__ import annotations

import argparse
import itertools
import random
import time
from collections import Counter
from collections.abc import Sequence

from tests.queries.sql.hostile_statements import outcome, statements

__all__ = ["main"]


def main(argv: Sequence[str] | None = None) -> int:
    """Print how many were answered and refused, and each with a foreign exception; return 0 if none had."""
    parser = argparse.ArgumentParser(prog="hostile", description=__doc__)
    parser.add_argument("--statements", type=int, default=100_000)
    parser.add_argument("--seed", default="hostile")
    options = parser.parse_args(argv)
    found: Counter[str] = Counter()
    begun = time.process_time()
    for text in itertools.islice(statements(random.Random(options.seed)), options.statements):
        try:
            found[outcome(text)] += 1
        except Exception as error:
            found["foreign"] += 1
            print(f"{type(error).__name__}: {text!r}")
    print(f"{options.statements:,} statements in {time.process_time() - begun:.0f} s of CPU time")
    for name in ("answered", "refused", "foreign"):
        print(f"{name:<10}{found[name]:>10,}")
    return 1 if found["foreign"] else 0


if __name__ == "__main__":
    raise SystemExit(main())
