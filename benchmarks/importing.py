"""How long ``import sfumato`` takes, beside ``import numpy``, each in fresh processes.

The statements take turns, so that whatever else the machine does falls on all of them. A start of the
interpreter that imports nothing is taken off; what is shown is the median.
"""

from __future__ import annotations

import argparse
import statistics
import subprocess
import sys
import time
from collections.abc import Sequence

__all__ = ["main", "measure"]

LIMIT = 0.3  # seconds that `import sfumato` may take
NOTHING = "pass"
COMMAND = "from sfumato.cli.main import main; import sys; sys.argv[1:] ="
STATEMENTS = {
    "import numpy (the floor)": "import numpy",
    "import sfumato": "import sfumato",
    "sfumato.connect, first use": "import sfumato; sfumato.connect",
    "sfumato --version": f"{COMMAND} ['--version']; main()",
    "sfumato --help": f"{COMMAND} ['--help']; main()",
}


def seconds(statement: str) -> float:
    """Return how long a fresh interpreter takes to run a statement and end."""
    start = time.perf_counter()
    subprocess.run([sys.executable, "-c", statement], check=True, stdout=subprocess.DEVNULL)
    return time.perf_counter() - start


def measure(repeats: int) -> dict[str, float]:
    """Return the median seconds of each statement, less those of an empty one.

    Parameters
    ----------
    repeats : int
        Fresh processes for each statement.
    """
    taken: dict[str, list[float]] = {statement: [] for statement in (NOTHING, *STATEMENTS.values())}
    for statement in taken:
        seconds(statement)  # fills the file cache, and writes the bytecode
    for _ in range(repeats):
        for statement, times in taken.items():
            times.append(seconds(statement))
    medians = {statement: statistics.median(times) for statement, times in taken.items()}
    return {title: max(0.0, medians[code] - medians[NOTHING]) for title, code in STATEMENTS.items()}


def main(argv: Sequence[str] | None = None) -> int:
    """Print seconds and ratios; return 1 where ``import sfumato`` takes longer than it may."""
    parser = argparse.ArgumentParser(description="Seconds to import sfumato, beside numpy.")
    parser.add_argument("--repeats", type=int, default=15, help="fresh processes for each line")
    repeats = parser.parse_args(argv).repeats
    results = measure(repeats)
    floor = results["import numpy (the floor)"]
    print(f"{'':30} {'seconds':>8} {'x numpy':>8}")
    for title, taken in results.items():
        print(f"{title:30} {taken:8.3f} {taken / floor if floor else float('nan'):8.2f}")
    print(f"import sfumato must take less than {LIMIT} s")
    return 0 if results["import sfumato"] < LIMIT else 1


if __name__ == "__main__":
    sys.exit(main())
