"""Local privacy: a million reports made and counted, beside the same protocol written by hand in numpy.

Every row is one protocol at one size: seconds of the clients (all in one call) and of the server, by the
clock and of CPU time, bytes per report, the squared error over its theory, and the share of 95 % intervals
that hold the truth. ``--stream`` makes and counts reports batch after batch, and tells the peak memory.
``--peers`` and ``--evidence`` do other things instead: see `local_peers` and `local_evidence` here.
"""

from __future__ import annotations

import argparse
import resource
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from operator import attrgetter
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from benchmarks.heavy_hitters import measure_heavy_hitters
from benchmarks.javascript import measure_javascript
from benchmarks.local_evidence import measure_evidence
from benchmarks.local_marginals import measure_marginals
from benchmarks.local_numbers import measure_long_vectors, measure_numbers
from benchmarks.local_peers import measure_peers
from benchmarks.local_ranges import measure_ranges
from benchmarks.opening import measure_opening
from benchmarks.shuffler import measure_shuffler
from benchmarks.sparse_histogram import measure_sparse
from sfumato import local
from sfumato.numerics import _kernels

__all__ = ["Job", "main", "measure", "measure_by_hand", "stream"]

Timed = tuple[float, float, Any]


@dataclass(frozen=True)
class Job:
    """One protocol at one size, and the seconds that its issue allows the clients and the server."""

    protocol: str
    categories: int
    client: float = float("inf")
    server: float = float("inf")
    once: bool = False


JOBS = [
    Job("RandomizedResponse", 1024),
    Job("RandomizedResponse", 65_536),
    Job("SymmetricUnaryEncoding", 1024),
    Job("OptimizedUnaryEncoding", 1024, 1.25, 1.25),
    Job("baselines.BinaryLocalHashing", 1024),
    Job("OptimalLocalHashing", 1024, 0.15, 0.3),
    Job("OptimalLocalHashing", 65_536, 0.15, 15.0, once=True),
    Job("ProjectiveGeometryResponse", 65_536, 0.1, 0.05),
    Job("HadamardResponse", 65_536, 0.1, 0.05),
    Job("OneBitHadamard", 65_536),
    Job("SubsetSelection", 1024, once=True),
    Job("CountMeanSketch", 1024, once=True),
    Job("HadamardCountMeanSketch", 1024, once=True),
    Job("BitFlip", 1024, once=True),
]


def timed(work: Callable[[], Any]) -> Timed:
    """Wall-clock and CPU seconds of one call, and what it returned."""
    wall, cpu = time.perf_counter(), time.process_time()
    made = work()
    return time.perf_counter() - wall, time.process_time() - cpu, made


def zipf(categories: int, people: int) -> NDArray[np.int64]:
    """True values, few of them frequent."""
    weights = np.arange(1.0, categories + 1) ** -1.1
    return np.random.default_rng(1).choice(categories, people, p=weights / weights.sum())


def counted(aggregator: Any, reports: local.ReportBatch) -> local.Estimate:
    """Count reports and estimate: some protocols transform their counts at the end."""
    aggregator.add_batch(reports)
    found: local.Estimate = aggregator.estimate()
    return found


def measure(job: Job, people: int, epsilon: float, runs: int) -> None:
    """Print one row: the best of some runs."""
    oracle = attrgetter(job.protocol)(local)(epsilon=epsilon, domain=local.Domain(range(job.categories)))
    values = zipf(job.categories, people)
    truth = np.bincount(values, minlength=job.categories) / people
    clients: list[Timed] = []
    servers: list[Timed] = []
    aggregator = oracle.aggregator()
    for _ in range(1 if job.once else runs):
        clients.append(timed(lambda: oracle.randomize_batch(values)))
        aggregator = oracle.aggregator()
        servers.append(timed(partial(counted, aggregator, clients[-1][2])))
    estimate = servers[-1][2]
    error = float(np.sum((estimate.raw - truth) ** 2) / np.sum(oracle.error_model.variance(truth) / people))
    lower, upper, _ = estimate.interval(0.95)
    held = float(np.mean((lower <= truth) & (truth <= upper)))
    (client, client_cpu), (server, server_cpu) = (min(row[:2] for row in rows) for rows in (clients, servers))
    limits = "".join(
        f"{limit:>8.2f}" if np.isfinite(limit) else f"{'':>8}" for limit in (job.client, job.server)
    )
    print(
        f"{job.protocol:<28}{job.categories:>7}{oracle.device.width:>7}{client:>9.3f}{client_cpu:>8.3f}"
        f"{server:>9.3f}{server_cpu:>8.3f}{limits}{error:>8.3f}{100 * held:>7.1f}",
        flush=True,
    )


def hash_by_hand(people: int, categories: int) -> float:
    """CPU seconds of the server of local hashing, in blocks of numpy arrays."""
    source = np.random.default_rng(2)
    seeds = source.integers(0, 2**32, people, dtype=np.uint32)
    named = source.integers(0, 4, people, dtype=np.uint32)
    keys = np.arange(categories, dtype=np.uint32) * np.uint32(0x9E3779B1)

    def count() -> NDArray[np.int64]:
        counts = np.zeros(categories, np.int64)
        block = max(1, (1 << 18) // categories)
        for start in range(0, people, block):
            x = (seeds[start : start + block, None] ^ keys) * np.uint32(0x7FEB352D)
            x = (x ^ x >> np.uint32(15)) * np.uint32(0x846CA68B)
            counts += (x >> np.uint32(30) == named[start : start + block, None]).sum(axis=0)
        return counts

    return timed(count)[1]


def unary_by_hand(people: int, categories: int) -> tuple[float, float]:
    """CPU seconds of both halves of unary encoding with packed bits, in blocks of numpy arrays."""
    source = np.random.default_rng(3)

    def flip() -> list[NDArray[np.uint8]]:
        block = 4096
        sizes = [min(block, people - start) for start in range(0, people, block)]
        return [np.packbits(source.random((size, categories), np.float32) < 0.27, axis=1) for size in sizes]

    _, client, rows = timed(flip)
    _, server, _ = timed(lambda: sum(np.unpackbits(part, axis=1).sum(axis=0) for part in rows))
    return client, server


def measure_by_hand(people: int) -> None:
    """Print CPU seconds per million reports of numpy by hand, and of ours by instruction set, one core."""
    print(f"\nCPU seconds per million reports at 1,024 categories, from {people:,} reports")
    print(f"{'':<28}{'hashing, server':>18}{'unary, clients':>16}{'unary, server':>16}")
    scale = 1e6 / people
    by_hand = scale * hash_by_hand(people, 1024), *(scale * part for part in unary_by_hand(people, 1024))
    print(f"{'numpy by hand':<28}{by_hand[0]:>18.3f}{by_hand[1]:>16.3f}{by_hand[2]:>16.3f}")
    values, domain = zipf(1024, people), local.Domain(range(1024))
    hashing = local.OptimalLocalHashing(epsilon=1.0, domain=domain)
    unary = local.OptimizedUnaryEncoding(epsilon=1.0, domain=domain)
    records = hashing.randomize_batch(values).records
    for variant in _kernels.variants():
        _kernels.use(variant)
        ours = [timed(lambda: hashing.tally(records))[1]]
        _, seconds, batch = timed(lambda: unary.randomize_batch(values))
        ours += [seconds, timed(partial(unary.tally, batch.records))[1]]
        print(f"{'ours, ' + variant:<28}", end="")
        print("".join(f"{scale * x:>{w}.3f}" for x, w in zip(ours, (18, 16, 16), strict=True)), end="")
        print(
            "   " + ", ".join(f"x{a / (scale * b):.0f}" for a, b in zip(by_hand, ours, strict=True)),
            flush=True,
        )


def measure_strings(people: int) -> None:
    """Print the times of RAPPOR with its defaults: strings in, 10,000 candidates read out of their counts."""
    oracle, weights = local.Rappor(), np.arange(1.0, 201) ** -1.0
    held = np.random.default_rng(4).choice(200, people, p=weights / weights.sum())
    values, candidates = [f"string {x}" for x in held.tolist()], [f"string {x}" for x in range(10_000)]
    client, client_cpu, reports = timed(lambda: oracle.randomize_batch(values))
    aggregator = oracle.aggregator()
    count, count_cpu, _ = timed(lambda: aggregator.add_batch(reports))
    decode, decode_cpu, found = timed(lambda: aggregator.estimate().decode(candidates))
    truth = np.bincount(held, minlength=len(candidates)) / people
    right = [name for name, share in zip(candidates, truth, strict=True) if share]
    wrong = set(found.detected) - set(right)
    print(
        f"\nRappor, {people:,} reports, {len(candidates):,} candidates: clients {client:.2f} s (CPU "
        f"{client_cpu:.2f}), counting {count:.2f} s ({count_cpu:.2f}), decoding {decode:.2f} s "
        f"({decode_cpu:.2f}), limit of all 10 s; {len(found.detected)} strings found, {len(wrong)} wrongly",
        flush=True,
    )


def stream(reports: int, batch: int) -> None:
    """Make and count reports batch after batch, then again through a Parquet file; print the peak memory."""
    oracle = local.RandomizedResponse(epsilon=1.0, domain=local.Domain(range(1024)))
    values, aggregator = zipf(1024, batch), oracle.aggregator()
    start, marks = time.perf_counter(), (batch, reports // 2, reports)

    def tell(done: int, what: str) -> None:
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        seconds = time.perf_counter() - start
        print(f"{done:>12,} reports {what}, {seconds:>7.1f} s, peak {peak:.0f} MB", flush=True)

    for done in range(batch, reports + 1, batch):
        aggregator.add_batch(oracle.randomize_batch(values).to_bytes())
        if done in marks:
            tell(done, "streamed")
    schema = pa.schema([("report", pa.binary(oracle.device.width))])
    with tempfile.TemporaryDirectory() as folder:
        path, start = Path(folder) / "reports.parquet", time.perf_counter()
        with pq.ParquetWriter(path, schema, compression="none", use_dictionary=False) as writer:
            for _ in range(batch, reports + 1, batch):
                records = oracle.randomize_batch(values).records
                column = pa.FixedSizeBinaryArray.from_buffers(
                    schema.field(0).type, len(records), [None, pa.py_buffer(records)]
                )
                writer.write_table(pa.table([column], schema))
        tell(reports // batch * batch, "written to a file")
        start = time.perf_counter()
        found = local.aggregate_parquet(oracle, path, processes=1)
        tell(found.accepted, "read from it and counted")


def measure_more(only: str, people: int, epsilon: float, runs: int) -> None:
    """Print the rows of what is no oracle of a list of categories."""
    measure_numbers(only, people, epsilon, runs)
    tasks: dict[str, Callable[[], None]] = {
        "projunit": measure_long_vectors,
        "rappor": lambda: measure_strings(people),
        "heavy": lambda: measure_heavy_hitters(people, epsilon),
        "ranges": lambda: measure_ranges(people, epsilon, runs),
        "marginals": lambda: measure_marginals(people, epsilon, runs),
        "shuffler": lambda: measure_shuffler(min(people, 50_000)),
        "javascript": measure_javascript,
        "opening": lambda: measure_opening(people),
        "sparse": lambda: measure_sparse(min(people, 100_000)),
    }
    for name, task in tasks.items():
        if only.lower() in name:
            task()


def main(argv: Sequence[str]) -> int:
    """Run from the command line."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks local", description=__doc__)
    parser.add_argument("--people", type=int, default=1_000_000, help="reports of each job")
    parser.add_argument("--epsilon", type=float, default=1.0)
    parser.add_argument("--runs", type=int, default=5, help="runs, of which the best counts")
    parser.add_argument("--only", default="", help="jobs whose protocol has this in its name")
    parser.add_argument("--stream", type=int, default=0, metavar="N", help="stream N reports too")
    parser.add_argument(
        "--peers",
        type=float,
        nargs="?",
        const=1.0,
        metavar="SHARE",
        help="measure the peers beside ours, and nothing else; with a share of their people",
    )
    parser.add_argument(
        "--evidence",
        type=float,
        nargs="?",
        const=1.0,
        metavar="SHARE",
        help="print errors over their theory and coverages, and nothing else; with a share of the repeats",
    )
    options = parser.parse_args(argv)
    if options.evidence is not None:
        return int(measure_evidence(options.evidence, options.only) > 0)
    if options.peers is not None:
        measure_peers(options.peers)
        return 0
    if options.stream:
        stream(options.stream, min(options.people, options.stream))
    print(
        f"{options.people:,} reports, epsilon {options.epsilon}; clock and CPU seconds; limits on two cores"
    )
    print(
        f"{'protocol':<28}{'values':>7}{'bytes':>7}{'clients':>9}{'CPU':>8}{'server':>9}{'CPU':>8}"
        f"{'limit':>8}{'limit':>8}{'error':>8}{'held %':>7}"
    )
    for job in JOBS:
        if options.only.lower() in job.protocol.lower():
            measure(job, options.people, options.epsilon, options.runs)
    measure_more(options.only, options.people, options.epsilon, options.runs)
    if not options.only:
        measure_by_hand(min(options.people, 50_000))
    return 0
