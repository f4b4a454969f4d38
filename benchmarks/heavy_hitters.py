"""Heavy hitters: a million strings told locally, and which of the most frequent are found without a list.

Shares fall as a power of the rank, over 10,000 made-up words. Beside the four protocols is a frequency oracle
that is given all the words as its domain, which they do without.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from scipy.special import ndtri

from sfumato import local

__all__ = ["measure_heavy_hitters"]

Told = tuple[list[str], float]

WORDS, LONGEST, EXPONENT, TOP = 10_000, 8, 1.3, 20


def timed(work: Callable[[], Any]) -> tuple[float, float, Any]:
    """Wall-clock and CPU seconds of one call, and what it returned."""
    wall, cpu = time.perf_counter(), time.process_time()
    made = work()
    return time.perf_counter() - wall, time.process_time() - cpu, made


def population(people: int) -> tuple[list[str], list[str]]:
    """Words, the most frequent first, and what everybody has."""
    source = np.random.default_rng(4)
    letters = np.array(list("abcdefghijklmnopqrstuvwxyz"))
    lengths = source.integers(3, LONGEST + 1, WORDS)
    words = list(dict.fromkeys("".join(source.choice(letters, size)) for size in lengths.tolist()))
    weights = np.arange(1.0, len(words) + 1) ** -EXPONENT
    held = source.choice(len(words), people, p=weights / weights.sum())
    counts = np.bincount(held, minlength=len(words))
    order = np.argsort(-counts, kind="stable")
    return [words[place] for place in order.tolist()], [words[place] for place in held.tolist()]


def show(
    name: str, width: int, seconds: list[float], told: tuple[list[str], float], words: list[str]
) -> None:
    """Print one row: what was found, and the share that was planned for."""
    found, share = told
    known, top = set(words), set(words[:TOP])
    precision = len(known & set(found)) / len(found) if found else 1.0
    recall = len(top & set(found)) / TOP
    clock = "".join(f"{one:>9.3f}" for one in seconds)
    parts = f"{share:>9.4f}{len(found):>7}{100 * precision:>11.0f}{100 * recall:>9.0f}"
    print(f"{name:<26}{width:>6}{clock}{parts}", flush=True)


def counted(protocol: Any, reports: local.ReportBatch) -> Any:
    """Count reports and tell what they say."""
    aggregator = protocol.aggregator()
    aggregator.add_batch(reports)
    return aggregator.estimate()


def measure_heavy_hitters(people: int, epsilon: float) -> None:
    """Print a row for each protocol with its planned parameters, and one for the oracle with all words."""
    words, values = population(people)
    print(
        f"\nHeavy hitters, {people:,} strings of up to {LONGEST} letters, epsilon {epsilon}; planned: the "
        f"share found half of the time; recall of the {TOP} most frequent\n"
        f"{'protocol':<26}{'bytes':>6}{'clients':>9}{'CPU':>9}{'server':>9}{'CPU':>9}{'planned':>9}{'found':>7}"
        f"{'precision':>11}{'recall':>9}"
    )
    asked = local.FrequentStrings(local.Strings(length=LONGEST))
    for plan in local.choose(asked, epsilon=epsilon, n=people).plans:
        protocol = plan.protocol
        client, client_cpu, reports = timed(partial(protocol.randomize_batch, values))
        server, server_cpu, told = timed(partial(counted, protocol, reports))
        seconds = [client, client_cpu, server, server_cpu]
        show(type(protocol).__name__, plan.bytes, seconds, (told.found, plan.share), words)
    oracle = local.OptimalLocalHashing(epsilon=epsilon, domain=local.Domain(words))
    client, client_cpu, reports = timed(partial(oracle.randomize_batch, values))
    server, server_cpu, told = timed(partial(counted, oracle, reports))
    least = -float(ndtri(0.05 / len(words))) * oracle.variance(people) ** 0.5
    found = [word for word, share in told.top(len(words)) if share > least]
    seconds = [client, client_cpu, server, server_cpu]
    show("(hashing, all words given)", oracle.device.width, seconds, (found, least), words)
