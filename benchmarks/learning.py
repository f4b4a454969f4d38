"""A step of private training beside the plain step: CPU time in turns, memory in processes of their own.

Four models, one thread, everything in the step: clipping, noise and SGD. The ratios are to the plain step of
the same run; memory is by how much a process grew at most over its model.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from collections.abc import Sequence
from typing import Any

from benchmarks.environments import script

__all__ = ["main"]

_MODELS = ("mlp", "transformer", "cnn", "resnet")
_TARGETS = {"mlp": 1.20, "transformer": 1.25, "cnn": 1.35, "resnet": 1.50}


def _measured(*arguments: str) -> Any:
    command = [sys.executable, "-W", "ignore", str(script("sfumato", "learning")), *arguments]
    single = os.environ | {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True, env=single)
    return json.loads(done.stdout)


def main(argv: Sequence[str] | None = None) -> int:
    """Print, for each model and method, milliseconds, the ratio, the first step's seconds, and memory."""
    parser = argparse.ArgumentParser(prog="learning", description=__doc__)
    parser.add_argument("--models", nargs="+", choices=_MODELS, default=_MODELS)
    parser.add_argument("--memory", action="store_true", help="measure memory too")
    options = parser.parse_args(argv)
    for model in options.models:
        found = _measured(model)
        plain = found["plain"]["ms"]
        print(f"{model} (target {_TARGETS[model]:.2f}){'':<12} ms   ratio  first, s   MiB  ratio")
        base = _measured(model, "plain") if options.memory else 0.0
        for method, measured in found.items():
            line = (
                f"  {method:<26}{measured['ms']:>8.1f}{measured['ms'] / plain:>8.2f}{measured['first']:>9.2f}"
            )
            if options.memory:
                grown = _measured(model, method)
                line += f"{grown:>8.0f}{grown / base:>7.2f}"
            print(line, flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
