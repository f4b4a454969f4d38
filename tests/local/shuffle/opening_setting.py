"""A collection of 20 clients and batches of it, for tests of openings; their seals are drawn once."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np

from sfumato import local
from sfumato.local.shuffle import Collection, MixedBatch, SecretKey

ANALYST, SHUFFLER = SecretKey("analyst", b"a" * 32), SecretKey("shuffler", b"s" * 32)
ORACLE = local.RandomizedResponse(epsilon=3.0, domain=local.Domain(["red", "green", "blue"]))
SIZE = 20


def collection(protocol: Any = ORACLE, **changes: Any) -> Collection:
    keys = {"analyst": ANALYST.public, "shuffler": SHUFFLER.public}
    return Collection(**{"protocol": protocol, "batch_size": SIZE, "colluders": 2, **keys, **changes})


@lru_cache(maxsize=64)
def batch(number: int, made: Collection | None = None) -> MixedBatch:
    """A released batch of a number, with one broken seal."""
    known = (made or collection()).device
    reports = [known.randomizer.randomize("red") for _ in range(known.batch_size)]
    sealed = [ANALYST.public.seal(b"\x00" + report, known.report_context) for report in reports]
    rows = np.frombuffer(b"".join(sealed), np.uint8).reshape(len(sealed), -1).copy()
    rows[number % SIZE, -1] ^= 1
    return MixedBatch(known.id, number, rows)
