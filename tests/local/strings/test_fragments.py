"""How fragments of strings are put together."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from sfumato.local.strings import fragments


def test_beginnings_are_joined_a_few_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    generator = np.random.default_rng(1)
    rows, more = generator.integers(0, 3, (40, 2), np.uint16), generator.integers(0, 3, (30, 2), np.uint16)
    sums, scores = generator.normal(size=40), generator.normal(size=30)
    at_once = fragments._joined(rows, sums, more, scores)
    monkeypatch.setattr(fragments, "_MAX_JOINED", 100)
    best = [part[:100] for part in at_once]
    for pairs in (1, 130, 1 << 20):
        monkeypatch.setattr(fragments, "_MAX_PAIRS", pairs)
        for part, whole in zip(fragments._joined(rows, sums, more, scores), best, strict=True):
            assert_array_equal(part, whole)
