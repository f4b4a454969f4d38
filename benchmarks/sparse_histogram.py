"""Texts of an unknown domain, counted above a threshold by a shuffler: time, and which texts are shown."""

from __future__ import annotations

import time

import numpy as np

from sfumato.local import device
from sfumato.local.shuffle import SecretKey, SparseHistogram

__all__ = ["measure_sparse"]

TEXTS = 10_000
BYTES = 60


def measure_sparse(people: int) -> None:
    """Print the time of a release of a batch, and how many of the texts that many have are in it."""
    keys = {role: SecretKey.generate(role).public for role in ("analyst", "shuffler")}
    secret = device.SparseCollection.encryption_key()
    rng = np.random.default_rng(1)
    shares = np.arange(1, TEXTS + 1) ** -1.3
    chosen = rng.choice(TEXTS, people, p=shares / shares.sum())
    counts = np.bincount(chosen, minlength=TEXTS)
    print(f"\nSparse histogram of {people:,} clients, {TEXTS:,} texts; epsilon 1, delta 1e-6")
    names = "texts each", "noise", "threshold", "shown", "held by as many", "CPU s of a release"
    print("".join(f"{name:>20}" for name in names))
    for max_keys, noise in ((1, "laplace"), (4, "laplace"), (4, "gaussian")):
        asked = device.SparseCollection(
            epsilon=1.0,
            delta=1e-6,
            batch_size=people,
            max_keys=max_keys,
            key_bytes=BYTES,
            noise=noise,
            commitment=device.SparseCollection.commit(secret),
            analyst=keys["analyst"],
            shuffler=keys["shuffler"],
        )
        histogram = SparseHistogram(asked)
        threshold = histogram.mechanism.threshold
        # What devices would encrypt: any bytes that are alike for alike texts; blanks are random.
        alike = rng.integers(0, 256, (TEXTS, asked.sealed_width), np.uint8)
        blanks = rng.integers(0, 256, (people, (max_keys - 1) * asked.sealed_width), np.uint8)
        clients = np.hstack([alike[chosen], blanks])
        start = time.process_time()
        release = histogram.release(1, clients)
        seconds = time.process_time() - start
        shown = len(histogram.opened(release, secret).counts) + histogram.opened(release, secret).unreadable
        row = max_keys, noise, threshold, shown, int((counts >= threshold).sum()), f"{seconds:.2f}"
        print("".join(f"{part!s:>20}" for part in row), flush=True)
