"""How often each of many may pass."""

from __future__ import annotations

import random

import pytest

from sfumato.errors import ParameterError
from sfumato.server.console.rate_limiter import RateLimiter


def test_in_no_window_do_more_pass_than_the_burst_and_the_rate() -> None:
    source = random.Random(7)
    now, passed = 0.0, list[float]()
    limiter = RateLimiter(4.0, burst=6, now=lambda: now)
    for _ in range(3000):
        now += source.choice((0.0, 0.01, 0.1, 3.0))
        if (seconds := limiter.wait("ada")) == 0:
            passed.append(now)
        else:
            before, now = now, now + seconds + 1e-9
            assert limiter.wait("ada") == 0, "the time that was named is enough"
            passed.append(now)
            assert seconds <= 0.25 + 1e-9
            assert now > before
    for first in range(len(passed)):
        for last in range(first, min(first + 60, len(passed))):
            assert last - first + 1 <= 6 + 4.0 * (passed[last] - passed[first]) + 1e-6


def test_keys_are_apart_and_the_oldest_is_forgotten() -> None:
    now = 0.0
    limiter = RateLimiter(1.0, burst=1, keys=3, now=lambda: now)
    assert [limiter.wait(key) for key in "abca"] == [0, 0, 0, 1.0]
    assert limiter.wait("d") == 0  # and "a" is forgotten
    assert [limiter.wait(key) > 0 for key in "bcd"] == [True] * 3
    assert len(limiter._due) == 3
    now = 1.0
    assert limiter.wait("e") == 0
    assert list(limiter._due) == ["e"], "whose time is over is not remembered"


def test_what_is_no_rate_is_refused() -> None:
    for rate, burst in ((0.0, 1), (float("inf"), 1), (1.0, 0)):
        with pytest.raises(ParameterError, match="must be"):
            RateLimiter(rate, burst=burst)
