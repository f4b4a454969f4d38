"""Optimal full-domain generalisation on ARX's Adult, and its loss beside anjana's at the same k and limit.

Each of ours runs in a process of its own: CPU seconds of the search, and peak memory of the whole process.
The losses are those of ARX's own tests on the same data. Anjana takes one node by its greedy rule; its loss
is that of this node, by the same formula.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq

from benchmarks.environments import interpreter, script, title
from sfumato import anonymity
from sfumato.anonymity.generalization.losses import information_loss
from sfumato.anonymity.generalization.requirement import coded_table

__all__ = ["rows"]

_FOLDER = Path(__file__).parents[1] / "tests" / "anonymity" / "data" / "arx_adult"
_ENTROPY = anonymity.NonUniformEntropy(suppressed=True)
_STAR = anonymity.Discernibility(suppressed=False)
_JOB = "occupation"
CASES: dict[str, tuple[str | None, dict[str, Any], float]] = {
    "k=5, 4 %": (None, {"k": 5, "suppression": 0.04}, 255559.85455731067),
    "k=100, 4 %": (None, {"k": 100, "suppression": 0.04}, 379417.3460570988),
    "k=5, 0 %": (None, {"k": 5}, 407289.5388925293),
    "k=100, 0 %": (None, {"k": 100}, 453196.8932458743),
    "entropy-l 5, 4 %": (
        _JOB,
        {"k": 1, "suppression": 0.04, "loss": _ENTROPY, "models": anonymity.EntropyLDiversity(_JOB, 5)},
        228878.2039109517,
    ),
    "ordered t .2, k=5, 4 %": (
        _JOB,
        {"k": 5, "suppression": 0.04, "loss": _STAR, "models": anonymity.TCloseness(_JOB, 0.2, "ordered")},
        2712340.0,
    ),
    "equal t .2, k=5, 4 %": (
        _JOB,
        {"k": 5, "suppression": 0.04, "loss": _STAR, "models": anonymity.TCloseness(_JOB, 0.2)},
        311880088.0,
    ),
}
_PEER_COLUMNS = ["age", "education", "marital-status", "occupation", "sex", "native-country"]
_PEER_K, _PEER_LIMIT = 10, 0.5


def rows(options: argparse.Namespace) -> Iterator[list[str]]:
    """Yield loss, nodes computed, CPU seconds and peak memory by case; then anjana's losses and ours."""
    yield ["ARX's Adult, 12,960 nodes", "loss", "relative to ARX", "classes computed", "CPU s", "MB"]
    for name, (_, _, expected) in CASES.items():
        command = [sys.executable, "-m", "benchmarks.anonymity_generalize", name]
        done = subprocess.run(command, check=True, capture_output=True, text=True)
        loss, checks, seconds, peak = json.loads(done.stdout)
        off = f"{abs(loss / expected - 1):.0e}"
        yield [name, f"{loss:.10g}", off, f"{checks:,}", f"{seconds:.2f}", f"{peak:.0f}"]
    if options.peers:
        yield from _beside_anjana(options.adult)


def _adult(sensitive: str | None) -> anonymity.Microdata:
    table = pq.read_table(_FOLDER / "adult.parquet")
    names = [name for name in table.column_names if name != sensitive]
    return anonymity.Microdata(
        table,
        quasi_identifiers={name: str(_FOLDER / f"adult_hierarchy_{name}.csv") for name in names},
        sensitive=[sensitive] if sensitive else [],
    )


def _run(name: str) -> list[float]:
    sensitive, given, _ = CASES[name]
    data = _adult(sensitive)
    start = time.process_time()
    best = anonymity.generalize(data, **given)
    seconds = time.process_time() - start
    return [best.loss, best.checks, seconds, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024]


def _beside_anjana(adult: Path) -> Iterator[list[str]]:
    """Compare on the Adult table of the measures, with the hierarchies of ARX and intervals for ages."""
    data = _with_hierarchies(adult)
    node, kept, seconds = _anjana(data)
    yield [
        f"k={_PEER_K}, {_PEER_LIMIT:.0%}",
        "ours",
        title("anjana"),
        "ours keeps",
        "theirs keeps",
        "ours CPU s",
        "theirs CPU s",
    ]
    for loss in ("non-uniform-entropy", "discernibility", "average-class-size", "precision"):
        measure = _ENTROPY if loss == "non-uniform-entropy" else information_loss(loss)
        start = time.process_time()
        best = anonymity.generalize(data, _PEER_K, suppression=_PEER_LIMIT, loss=measure)
        ours = time.process_time() - start
        table = coded_table(data, [])
        partition = table.partition(node)
        theirs = measure.loss(table, node, partition, partition.counts >= _PEER_K)
        keeps = int(np.count_nonzero(~best.suppressed))
        cells = [loss, f"{best.loss:.6g}", f"{theirs:.6g}", f"{keeps:,}", f"{kept:,}"]
        yield [*cells, f"{ours:.2f}", f"{seconds:.2f}"]


def _with_hierarchies(adult: Path) -> anonymity.Microdata:
    given: dict[str, Any] = {"age": anonymity.Intervals((5, 10, 20, 40, 80)), "sex": None}
    frame = pq.read_table(adult)
    for name in _PEER_COLUMNS:
        if name not in given:
            listed = (_FOLDER / f"adult_hierarchy_{name}.csv").read_text(encoding="utf-8").splitlines()
            known = [tuple(line.split(";")) for line in listed]
            missing = set(frame.column(name).cast("string").to_pylist()) - {row[0] for row in known}
            top = len(known[0]) - 1
            known += [(value, *[value] * (top - 1), "*") for value in sorted(missing)]
            given[name] = anonymity.GeneralizationHierarchy.from_rows(known)
    return anonymity.Microdata(frame, quasi_identifiers={name: given[name] for name in _PEER_COLUMNS})


def _anjana(data: anonymity.Microdata) -> tuple[tuple[int, ...], int, float]:
    listed = {
        name: [[hierarchy.labels[level][code] for code in of] for level, of in enumerate(hierarchy.levels)]
        for name, hierarchy in data.hierarchies.items()
    }
    with tempfile.TemporaryDirectory() as folder:
        pq.write_table(data.table, path := Path(folder) / "table.parquet")
        (given := Path(folder) / "given.json").write_text(json.dumps([listed, _PEER_K, 100 * _PEER_LIMIT]))
        command: list[str | Path] = [interpreter("anjana"), script("anjana", "anonymity"), path, given]
        done = subprocess.run(command, check=True, capture_output=True, text=True)
    node, kept, seconds = json.loads(done.stdout.splitlines()[-1])
    return tuple(node), int(kept), float(seconds)


if __name__ == "__main__":
    print(json.dumps(_run(sys.argv[1])))
