"""CPU time of k-anonymity, entropy l-diversity and t-closeness on Adult, beside pycanon's.

Both sides take turns: ours is the smallest of several times just before and just after the peer's one. Ours
is of a table that was encoded, and, in a line of its own, with the encoding; pycanon's of a frame of pandas.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

from benchmarks.environments import interpreter, script, title
from sfumato import anonymity

__all__ = ["rows"]

_QUASI_IDENTIFIERS = ["age", "education", "marital-status", "race", "sex", "native-country"]
_SENSITIVE = "occupation"
_REPEATS = 9
_MEASURES: dict[str, Callable[[anonymity.Report], float]] = {
    "k_anonymity": lambda report: report.k,
    "entropy_l_diversity": lambda report: report.entropy_l[_SENSITIVE],
    "t_closeness": lambda report: report.t_closeness(_SENSITIVE, "equal"),
}


def rows(options: argparse.Namespace) -> Iterator[list[str]]:
    """Yield milliseconds of CPU time and their ratio, by measure."""
    data = _encoded(options.adult)
    yield ["measure", "value", "ms", "with encoding", title("pycanon"), "ratio", "with encoding"]
    for name, measure in _MEASURES.items():
        before = _milliseconds(partial(_measured, measure, data))
        theirs = _peer(name, data.table) if options.peers else None
        ours = min(before, _milliseconds(partial(_measured, measure, data)))
        whole = _milliseconds(partial(_measured_anew, measure, data.table))
        cells = [name, f"{_measured(measure, data):.6g}", f"{ours:.1f}", f"{whole:.1f}"]
        ratios = ["-"] * 3 if theirs is None else [f"{each:.0f}" for each in _beside(theirs, ours, whole)]
        yield [*cells, *ratios]


def _encoded(frame: Any) -> anonymity.Microdata:
    return anonymity.Microdata(frame, quasi_identifiers=_QUASI_IDENTIFIERS, sensitive=[_SENSITIVE])


def _measured(measure: Callable[[anonymity.Report], float], data: anonymity.Microdata) -> float:
    return measure(anonymity.check(data))


def _measured_anew(measure: Callable[[anonymity.Report], float], table: Any) -> float:
    return _measured(measure, _encoded(table))


def _beside(theirs: float, ours: float, whole: float) -> tuple[float, float, float]:
    return theirs, theirs / ours, theirs / whole


def _milliseconds(job: Callable[[], float]) -> float:
    found = []
    for _ in range(_REPEATS):
        start = time.process_time()
        job()
        found.append(time.process_time() - start)
    return 1e3 * min(found)


def _peer(measure: str, table: Any) -> float:
    with tempfile.TemporaryDirectory() as folder:
        pq.write_table(table, path := Path(folder) / "table.parquet")
        given = json.dumps([measure, _QUASI_IDENTIFIERS, _SENSITIVE])
        command: list[str | Path] = [interpreter("pycanon"), script("pycanon", "anonymity"), path, given]
        done = subprocess.run(command, check=True, capture_output=True, text=True)
    return 1e3 * float(done.stdout)
