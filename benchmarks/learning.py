"""A step of private training beside the plain step: CPU time in turns, memory in processes of their own.

Four models, or two large ones, one thread, everything in the step: clipping, noise and SGD. The ratios are to
the plain step of the same run; memory is by how much a process grew at most over its model. With ``--peers``,
Opacus and what one writes by hand take turns with ours in one process; with ``--curve``, our ways to save
memory do.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmarks.environments import interpreter, script, title

__all__ = ["main"]

_MODELS = ("mlp", "transformer", "cnn", "resnet")
_LARGE = ("gpt2", "vit")
_TARGETS = {"mlp": 1.20, "transformer": 1.25, "cnn": 1.35, "resnet": 1.50, "gpt2": 1.25, "vit": 1.25}


def _measured(python: Path, program: Path, *arguments: str) -> Any:
    command = [str(python), "-W", "ignore", str(program), *arguments]
    single = os.environ | {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True, env=single)
    return json.loads(done.stdout)


def main(argv: Sequence[str] | None = None) -> int:
    """Print, for each model and method, milliseconds, the ratio, the first step's seconds, and memory."""
    parser = argparse.ArgumentParser(prog="learning", description=__doc__)
    parser.add_argument("--models", nargs="+", choices=(*_MODELS, *_LARGE), default=_MODELS)
    parser.add_argument("--memory", action="store_true", help="measure memory too")
    parser.add_argument("--rounds", type=int, help="steps to take the median of; each model has its own")
    which = parser.add_mutually_exclusive_group()
    which.add_argument("--peers", action="store_true", help="run Opacus and steps by hand beside ours")
    which.add_argument("--curve", action="store_true", help="time against memory, for ours; implies --memory")
    options = parser.parse_args(argv)
    python, program, chosen = Path(sys.executable), script("sfumato", "learning"), "steps"
    if options.peers:
        python, program, chosen = interpreter("opacus"), script("opacus", "learning"), "peers"
        print(title("opacus"))
    elif options.curve:
        chosen = "curve"
    load = os.getloadavg()[0] if hasattr(os, "getloadavg") else float("nan")
    print(f"{time.strftime('%Y-%m-%d')}, at a load of {load:.1f}")
    rounds = ("--rounds", str(options.rounds)) if options.rounds else ()
    for model in options.models:
        large = model in _LARGE and chosen == "steps"
        command = (python, program, model, "--set", "large" if large else chosen)
        found = _measured(*command, *rounds)
        plain = found["plain"]["ms"]
        print(f"{model} (target {_TARGETS[model]:.2f}){'':<12} ms   ratio  first, s   MiB  ratio")
        memory = options.memory or options.curve
        base = _measured(*command, "--growth", "plain") if memory else 0.0
        for method, measured in found.items():
            line = (
                f"  {method:<26}{measured['ms']:>8.1f}{measured['ms'] / plain:>8.2f}{measured['first']:>9.2f}"
            )
            if memory:
                grown = base if method == "plain" else _measured(*command, "--growth", method)
                line += f"{grown:>8.0f}{grown / base:>7.2f}"
            print(line, flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
