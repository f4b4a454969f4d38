"""Run one benchmark by name; each is a module here with ``main(argv)``."""

from __future__ import annotations

import ast
import importlib
import sys
from pathlib import Path

BENCHMARKS = {
    "accounting": "benchmarks.accounting",
    "adaptive": "benchmarks.adaptive",
    "attacks": "benchmarks.attacks",
    "audit": "benchmarks.auditing",
    "audit-power": "benchmarks.audit_power",
    "bounds": "benchmarks.bounds",
    "console": "benchmarks.console",
    "console-times": "benchmarks.console_times",
    "federated": "benchmarks.federated",
    "games": "benchmarks.games",
    "hostile": "benchmarks.hostile",
    "import": "benchmarks.importing",
    "inference": "benchmarks.inference",
    "intervals": "benchmarks.intervals",
    "joint-privacy": "benchmarks.joint_privacy",
    "learning": "benchmarks.learning",
    "ledger": "benchmarks.ledger",
    "local": "benchmarks.local",
    "location": "benchmarks.location",
    "local-sweep": "benchmarks.local_sweep",
    "team": "benchmarks.team",
    "topdown": "benchmarks.topdown",
    "mechanisms": "benchmarks.mechanisms",
    "naive-bayes": "benchmarks.naive_bayes",
    "noise": "benchmarks.noise",
    "peer-noise": "benchmarks.peer_noise",
    "peer-query": "benchmarks.peer_query",
    "posterior": "benchmarks.posterior",
    "postgres": "benchmarks.postgres",
    "pufferfish": "benchmarks.pufferfish",
    "quantiles": "benchmarks.quantiles",
    "query": "benchmarks.query",
    "refusal": "benchmarks.refusal",
    "selection": "benchmarks.selection",
    "spark": "benchmarks.spark",
    "sql": "benchmarks.sql",
    "statistics": "benchmarks.statistics",
    "surveys": "benchmarks.surveys",
    "synthetic": "benchmarks.synthetic",
    "which-statistic": "benchmarks.which_statistic",
}


def listing() -> str:
    """Return what each benchmark measures, a line each, without importing any."""
    lines = ["usage: python -m benchmarks NAME [options]; NAME --help shows its options", ""]
    for name, module in sorted(BENCHMARKS.items()):
        path = Path(__file__).with_name(f"{module.rpartition('.')[2]}.py")
        words = ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or ""
        lines.append(f"  {name:<12} {words.partition(chr(10))[0]}")
    return "\n".join(lines)


def main(argv: list[str]) -> int:
    if not argv or argv[0] in {"-h", "--help", "list"}:
        print(listing())
        return 0
    if argv[0] not in BENCHMARKS:
        print(listing(), file=sys.stderr)
        return 2
    status: int | None = importlib.import_module(BENCHMARKS[argv[0]]).main(argv[1:])
    return status or 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
