"""The job of the query benchmark, and what a script that does it reports as JSON.

It lies beside the scripts, so that each finds it from inside of its own environment; the standard library is
all it may use.
"""

import json
import os
import resource
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

EPSILON, DELTA = 1.0, 1e-8
MAX_GROUPS, MAX_ROWS, UPPER = 10, 5, 100.0
SQL = f"""
    SELECT WITH DIFFERENTIAL_PRIVACY
      OPTIONS(epsilon={EPSILON}, delta={DELTA},
        max_groups_contributed={MAX_GROUPS}, max_rows_per_group={MAX_ROWS})
      place,
      COUNT(*, contribution_bounds_per_group => (0, {MAX_ROWS})) AS visits,
      SUM(spent, contribution_bounds_per_group => (0, {MAX_ROWS * UPPER})) AS spent,
      AVG(spent, contribution_bounds_per_group => (0, {UPPER})) AS average
    FROM data GROUP BY place
"""


def tree(root: int) -> dict[int, float]:
    """CPU seconds by process, for a living one and all below it; empty where there is no ``/proc``."""
    parents, seconds = {}, {}
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):  # it has ended since
            fields = stat.read_text().rpartition(")")[2].split()
            pid = int(stat.parent.name)
            parents[pid] = int(fields[1])
            seconds[pid] = sum(map(int, fields[11:15])) / os.sysconf("SC_CLK_TCK")
    found = [root]
    for pid in found:
        found += [child for child, parent in parents.items() if parent == pid]
    return {pid: seconds[pid] for pid in found if pid in seconds}


def held(pid: int) -> int:
    """Return the most bytes that a living process ever held."""
    with suppress(OSError):
        for line in Path(f"/proc/{pid}/status").read_text().splitlines():
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) * 1024
    return 0


def below() -> dict[int, float]:
    """CPU seconds of the living processes that this one started, and that they started."""
    return {pid: seconds for pid, seconds in tree(os.getpid()).items() if pid != os.getpid()}


def cpu() -> float:
    """User and system seconds of this process and of all below it, ended or not."""
    usages = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(usage.ru_utime + usage.ru_stime for usage in usages) + sum(below().values())


def peak() -> int:
    """Bytes: the most that this process held, and the most that one process below it held."""
    own = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)
    return own + max(map(held, below()), default=0)


def report(work: Callable[[str], int], note: str) -> None:
    """Run ``work(path)``, which returns the number of groups shown, and print what it cost."""
    start, before = time.perf_counter(), cpu()
    groups = work(sys.argv[1])
    figures = {"cpu": cpu() - before, "wall": time.perf_counter() - start, "peak": peak()}
    print(json.dumps({**figures, "groups": groups, "note": note}), flush=True)
