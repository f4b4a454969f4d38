"""Run one benchmark by name; each is a module here with ``main(argv)``."""

from __future__ import annotations

import importlib
import sys

BENCHMARKS = {
    "accounting": "benchmarks.accounting",
    "audit": "benchmarks.auditing",
    "audit-power": "benchmarks.audit_power",
    "hostile": "benchmarks.hostile",
    "import": "benchmarks.importing",
    "intervals": "benchmarks.intervals",
    "learning": "benchmarks.learning",
    "ledger": "benchmarks.ledger",
    "local": "benchmarks.local",
    "local-sweep": "benchmarks.local_sweep",
    "team": "benchmarks.team",
    "mechanisms": "benchmarks.mechanisms",
    "naive-bayes": "benchmarks.naive_bayes",
    "noise": "benchmarks.noise",
    "peer-noise": "benchmarks.peer_noise",
    "peer-query": "benchmarks.peer_query",
    "postgres": "benchmarks.postgres",
    "quantiles": "benchmarks.quantiles",
    "query": "benchmarks.query",
    "refusal": "benchmarks.refusal",
    "selection": "benchmarks.selection",
    "spark": "benchmarks.spark",
    "sql": "benchmarks.sql",
    "statistics": "benchmarks.statistics",
}


def main(argv: list[str]) -> int:
    if not argv or argv[0] not in BENCHMARKS:
        print(f"usage: python -m benchmarks {{{','.join(sorted(BENCHMARKS))}}} [options]", file=sys.stderr)
        return 2
    status: int | None = importlib.import_module(BENCHMARKS[argv[0]]).main(argv[1:])
    return status or 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
