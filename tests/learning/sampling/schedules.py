"""What the tests of samplers share: how often each schedule of a small run came."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Mapping
from typing import Any

from sfumato.learning.sampling.sampler import Sampler
from tests.chance import frequencies, pearson


def schedule(sampler: Sampler) -> tuple[tuple[int, ...], ...]:
    """Return all batches of a run."""
    return tuple(tuple(sorted(batch.tolist())) for batch in sampler.batches())


def seen(make: Callable[[int], Sampler], runs: int) -> Counter[Hashable]:
    """Return how often each schedule came, over runs with seeds 0, 1, ..."""
    return Counter(schedule(make(seed)) for seed in range(runs))


def fits(counts: Mapping[Any, int]) -> Callable[[Any], None]:
    """Return a check of counts against a whole law: each outcome's own, and all by Pearson's test."""

    def check(law: Mapping[Any, Any]) -> None:
        frequencies(counts)(law)
        pearson(counts)(law)

    return check
