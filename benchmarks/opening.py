"""Opening a shuffled collection's records beside bare decryptions, on one process and on two."""

from __future__ import annotations

import multiprocessing
import os
import resource
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from pathlib import Path

import numpy as np
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey, X25519PublicKey
from cryptography.hazmat.primitives.ciphers.aead import ChaCha20Poly1305

from sfumato import local
from sfumato.local.shuffle import Collection, MixedBatch, SecretKey

__all__ = ["measure_opening"]

DISTINCT = 10_000
LIMIT = 1.3


def measure_opening(records: int) -> None:
    """Print clock and CPU seconds of both; seals are drawn for 10,000 records, and opened again and again."""
    keys = {role: SecretKey.generate(role) for role in ("analyst", "shuffler")}
    collection = Collection(
        protocol=local.OptimalLocalHashing(epsilon=1.0, domain=local.Domain(range(1024))),
        batch_size=DISTINCT,
        analyst=keys["analyst"].public,
        shuffler=keys["shuffler"].public,
    )
    known = collection.device
    reports = collection.protocol.randomize_batch(np.arange(DISTINCT) % 1024).records
    context = known.report_context
    sealed = [keys["analyst"].public.seal(b"\x00" + row.tobytes(), context) for row in reports]
    rows = np.frombuffer(b"".join(sealed), np.uint8).reshape(DISTINCT, -1)
    count = max(2, records // DISTINCT)
    print(f"\nOpening {count * DISTINCT:,} records of {rows.shape[1]} bytes; target: {LIMIT} times bare")
    names = "bare s", "CPU", "opening s", "CPU", "ratio", "of CPU", "MB"
    print(f"{'processes':<12}" + "".join(f"{name:>11}" for name in names))
    with tempfile.TemporaryDirectory() as folder:
        paths = [Path(folder, f"batch-{number:06d}.mixed") for number in range(1, count + 1)]
        for number, path in enumerate(paths, 1):
            path.write_bytes(MixedBatch(known.id, number, rows).to_bytes())
        for processes in (1, 2):
            bare = timed(partial(bare_decryptions, sealed, count, processes))
            state = Path(folder, f"state-{processes}")
            made_of = collection, keys["analyst"], paths, state, processes
            found = timed(partial(opened, *made_of))
            peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
            row = *bare, *found, found[0] / bare[0], found[1] / bare[1], peak
            print(f"{processes:<12}" + "".join(f"{number:>11.2f}" for number in row), flush=True)


def opened(collection: Collection, key: SecretKey, paths: list[Path], state: Path, processes: int) -> None:
    """Open all batches, with a state on the disk."""
    with collection.opening(key, state=state) as opening:
        assert opening.add_batches(paths, processes=processes) == len(paths)
        assert opening.aggregator.accepted == len(paths) * DISTINCT


def bare_decryptions(sealed: list[bytes], count: int, processes: int) -> None:
    """Do the exchange and the decryption of each record, and no more: no key schedule, no count."""
    if processes == 1:
        for _ in range(count):
            decrypted(sealed)
        return
    with ProcessPoolExecutor(processes, multiprocessing.get_context("spawn")) as pool:
        list(pool.map(decrypted, [sealed] * count))


def decrypted(sealed: list[bytes]) -> None:
    """Decrypt as many records by a key that is there."""
    key, cipher_key, nonce = X25519PrivateKey.generate(), os.urandom(32), bytes(12)
    text = ChaCha20Poly1305(cipher_key).encrypt(nonce, bytes(len(sealed[0]) - 48), None)
    for record in sealed:
        key.exchange(X25519PublicKey.from_public_bytes(record[:32]))
        ChaCha20Poly1305(cipher_key).decrypt(nonce, text, None)


def timed(task: Callable[[], None]) -> tuple[float, float]:
    """Clock and CPU seconds of a task, with those of the processes that it started and that ended."""
    before, start = cpu_seconds(), time.perf_counter()
    task()
    return time.perf_counter() - start, cpu_seconds() - before


def cpu_seconds() -> float:
    """CPU time of this process and those that it started and that ended."""
    spent = os.times()
    return spent.user + spent.system + spent.children_user + spent.children_system
