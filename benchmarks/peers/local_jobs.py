"""Local reports of a peer: what is timed, and what is reported as JSON.

It lies beside the scripts, so that each finds it from inside of its own environment; numpy and the standard
library are all it may use.
"""

import importlib
import json
import pickle
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import numpy as np

EPSILON, CATEGORIES = 1.0, 1024

Client = Callable[[int], Any]
Server = Callable[[list[Any]], Any]


def mended_hashing() -> str:
    """Let xxhash take texts as it did up to version 3; return what it says of them, or nothing."""
    xxhash = importlib.import_module("xxhash")

    try:
        xxhash.xxh32("1", seed=1)
    except TypeError as refused:
        for name in ("xxh32", "xxh64"):
            setattr(xxhash, name, _of_texts(getattr(xxhash, name)))
        return f"xxhash {xxhash.VERSION}: {refused}"
    return ""


def _of_texts(plain: Callable[..., Any]) -> Callable[..., Any]:
    return lambda text, seed=0: plain(str(text).encode(), seed=int(seed))


def attempt(make: Callable[[], tuple[Client, Server]], people: int) -> dict[str, Any]:
    """Return CPU seconds for so many people, clients one by one as the peer has them, or what was raised."""
    values = (np.random.default_rng(1).zipf(1.5, people) - 1) % CATEGORIES
    try:
        with suppress(ValueError):  # too few for some
            client, server = make()
            server([client(int(value)) for value in values[:20]])  # compiles what is compiled on first use
        client, server = make()
        start, wall = time.process_time(), time.perf_counter()
        reports = [client(int(value)) for value in values]
        middle = time.process_time()
        server(reports)
        done = time.process_time()
    except Exception as failed:  # a peer may fail in any way
        return {"people": people, "failed": f"{type(failed).__name__}: {failed}"[:120]}
    size = len(pickle.dumps(reports[:100])) / 100
    wall = time.perf_counter() - wall
    return {"people": people, "client": middle - start, "server": done - middle, "wall": wall, "bytes": size}


def tell(jobs: dict[str, tuple[Callable[[], tuple[Client, Server]], int]], notes: dict[str, Any]) -> None:
    """Run the jobs and print them; the first argument is a share of the people."""
    share = float(sys.argv[1])
    rows = {name: attempt(make, max(100, int(people * share))) for name, (make, people) in jobs.items()}
    print(json.dumps({"rows": rows, "notes": notes}), flush=True)
