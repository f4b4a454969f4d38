"""Secure aggregation, noise, Prio3, Poplar1 and Mastic, STAR, and training: CPU, bytes and errors."""

from __future__ import annotations

import argparse
import importlib
import random
import time
from collections import defaultdict

import numpy as np
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes

from benchmarks import vdaf
from benchmarks.federated_noise import noise_errors
from sfumato.federated import (
    SecureAggregation,
    SecureAggregationClient,
    SecureAggregationServer,
    Star,
    plan_neighbors,
)

__all__ = ["main"]

PARTS = ("aggregation", "noise", "vdaf", "star", "training")


def main(argv: list[str]) -> int:
    """Print one row for each size; the target of each figure stands beside it."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks federated", description=__doc__)
    parser.add_argument("--part", choices=PARTS, default="aggregation", help="what is measured (aggregation)")
    parser.add_argument("--bits", type=int, default=18, help="the sums are modulo 2^bits")
    parser.add_argument("--large", action="store_true", help="also 10,000 clients x 10,000 entries")
    parser.add_argument("--seeds", type=int, default=24, help="of trainings on digits, which need torch")
    parser.add_argument("--reports", type=int, default=100_000, help="of STAR")
    options = parser.parse_args(argv)
    if options.part == "aggregation":
        graph = plan_neighbors(1000, dropout=0.1, corruption=0.2)
        row(1000, 100_000, options.bits, (graph.degree, graph.threshold))
        if options.large:
            row(10_000, 10_000, options.bits, (100, 60))
    elif options.part == "noise":
        noise_errors()
    elif options.part == "vdaf":
        vdaf.measure()
        vdaf.heavy_hitters()
        vdaf.weighted()
        vdaf.weighted_heavy_hitters()
    elif options.part == "star":
        star_row(options.reports)
    else:
        importlib.import_module("benchmarks.federated_training").training_accuracy(options.seeds)
    return 0


def row(clients: int, length: int, bits: int, graph: tuple[int, int]) -> None:
    """Run one round in this process, a tenth of the clients killed before they send their vectors.

    The server takes a phase's messages one after the other, as in a process of its own: between two clients'
    work its memory would not be in the caches.
    """
    bound = ((1 << bits) - 1) // clients
    plan = SecureAggregation(
        clients=clients,
        length=length,
        bounds=(0, bound),
        bits=bits,
        minimum_survivors=clients * 4 // 5,
        degree=graph[0],
        threshold=graph[1],
    )
    spent: defaultdict[str, float] = defaultdict(float)
    sent: defaultdict[int, int] = defaultdict(int)
    killed = set(random.Random(1).sample(range(clients), clients // 10))
    rng = np.random.default_rng(1)
    expected = np.zeros(length, np.int64)

    def timed(what: str, function, *arguments):  # type: ignore[no-untyped-def]
        start = time.process_time()
        result = function(*arguments)
        spent[what] += time.process_time() - start
        return result

    waiting: list[bytes] = []

    def send(number: int, message: bytes) -> None:
        sent[number] += len(message)
        waiting.append(message)

    def arrive() -> None:
        for message in waiting:
            timed("server", server.receive, message)
        waiting.clear()

    server = timed("server", SecureAggregationServer, plan)
    people = [timed("client", SecureAggregationClient, plan, number) for number in range(clients)]
    for number, client in enumerate(people):
        send(number, timed("client", client.advertise))
    arrive()
    for number, roster in timed("server", server.rosters).items():
        send(number, timed("client", people[number].share, roster))
    arrive()
    for number, delivery in timed("server", server.deliveries).items():
        if number not in killed:
            vector = rng.integers(0, bound + 1, length)
            expected += vector
            send(number, timed("client", people[number].mask, delivery, vector))
    arrive()
    request = timed("server", server.survivors)
    for number in sorted(set(range(clients)) - killed):
        send(number, timed("client", people[number].unmask, request))
    arrive()
    before = spent["server"]
    found = timed("server", server.aggregate)
    unmasking = spent["server"] - before
    assert np.array_equal(found.total, expected)
    survivors = clients - len(killed)
    pairs = round(len(killed) * graph[0] * 0.9)
    floor = keystreams_and_additions(survivors + pairs, survivors, length)
    plain = -(-length * bits // 8)
    upload = max(sent[number] for number in range(clients) if number not in killed)
    print(
        f"\n{clients:,} clients x {length:,} entries of {bits} bits, degree {graph[0]}, {len(killed)} killed"
    )
    print(f"  server CPU          {spent['server']:8.2f} s, of which the last step {unmasking:.2f} s")
    print(f"  its keystream, sums {floor:8.2f} s, ratio {spent['server'] / floor:.2f} (target 1.5)")
    keys = key_exchanges(min(pairs, 2000)) * pairs / min(pairs, 2000)
    print(f"  with an exchange for each lost pair, as without seeds: {spent['server'] + keys:.2f} s")
    print(f"  client CPU          {spent['client'] / survivors:8.3f} s (target 0.15)")
    print(f"  client sends        {upload:8,} bytes, {upload / plain:.3f} of the plain vector (target 1.1)")


def key_exchanges(count: int) -> float:
    """CPU seconds of that many X25519 exchanges: the server needs one where a survivor sends no seed."""
    key, point = X25519PrivateKey.generate(), X25519PrivateKey.generate().public_key()
    start = time.process_time()
    for _ in range(count):
        key.exchange(point)
    return time.process_time() - start


def star_row(reports: int) -> None:
    """Report values of a Zipf distribution, and open those of at least 50 reports."""
    plan = Star(threshold=50, epoch=b"benchmark", value_bytes=16, data_bytes=8)
    values = [b"%d" % value for value in np.random.default_rng(1).zipf(1.5, reports) % 10**6]
    start = time.process_time()
    sent = [plan.report(value, randomness=plan.local_randomness(value)) for value in values]
    client, start = (time.process_time() - start) / reports, time.process_time()
    found = plan.aggregate(sent)
    server = time.process_time() - start
    opened = sum(revealed.count for revealed in found.revealed.values())
    print(f"\nSTAR, {reports:,} reports, threshold 50: {len(found.revealed)} values of {opened:,} opened")
    print(f"  server CPU          {server:8.2f} s, {reports / server:,.0f} reports a second")
    print(f"  client CPU          {client * 1e3:8.3f} ms without the oblivious function")
    print(f"  client sends        {plan.report_bytes:8,} bytes")


def keystreams_and_additions(streams: int, vectors: int, length: int) -> float:
    """CPU seconds of that many keystreams, each made and added, and of adding the vectors that came."""
    zeros, into = memoryview(bytes(4 * length)), np.empty(length + 4, np.uint32)
    total, vector = np.zeros(length, np.uint32), np.ones(length, np.uint32)
    start = time.process_time()
    for number in range(streams):
        key = number.to_bytes(32, "big")
        Cipher(algorithms.AES(key), modes.CTR(bytes(16))).encryptor().update_into(
            zeros, into.view(np.uint8).data
        )
        total += into[:length]
    for _ in range(vectors):
        total += vector
    return time.process_time() - start
