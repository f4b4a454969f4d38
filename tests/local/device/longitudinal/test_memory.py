"""What a device remembers: one memo for each value, in their order, up to the cap, and the last after it."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import pytest

from sfumato.local.device import (
    Domain,
    LongitudinalLocalHashingRandomizer,
    LongitudinalRandomizedResponseRandomizer,
    MemoizedBitFlipRandomizer,
    MemoizedOneBitMeanRandomizer,
)
from sfumato.local.device.longitudinal.memory import Memory
from sfumato.numerics.randomness.source import SimulatedSource
from tests.chance import accepts_only, rate
from tests.local.laws import within


def used(protocol: Any, history: tuple[Any, ...]) -> list[int]:
    """The number of the memo, in the order of drawing, that each report of a history is made of."""
    source = SimulatedSource(1)
    memory = Memory.started(protocol, 1, source)
    places = []
    for value in history:
        memory.recall([value], source)
        drawn = int(memory.used[0])
        key = protocol.keys([value], memory.fixed)[0]
        at = np.flatnonzero(memory.keys[0] == key)
        places.append(int(at[0]) if len(at) else drawn - 1)
        memory.memos[0] = np.arange(len(memory.memos[0]))[:, None]  # each memo names its place
        assert int(memory.recall([value], source)[0, 0]) == places[-1]
    return places


def shape_of(history: tuple[Any, ...]) -> tuple[int, ...]:
    """Which reports are of equal values: the place where each value came first."""
    return tuple(history.index(value) for value in history)


@pytest.mark.parametrize("cap", [1, 2, 3])
def test_which_memo_is_used_follows_from_the_changes_alone(cap: int) -> None:
    # All histories of five reports over four values, each beside the shape of its changes.
    protocol = LongitudinalRandomizedResponseRandomizer(epsilon=1.0, domain=Domain(range(4)), max_memos=cap)
    seen: dict[tuple[int, ...], list[int]] = {}
    for history in product(range(4), repeat=5):
        places = used(protocol, history)
        assert seen.setdefault(shape_of(history), places) == places
        assert max(places) < cap
        first = list(dict.fromkeys(history))
        assert places == [min(first.index(value), cap - 1) for value in history]
    assert len(seen) == 51  # of five reports and at most four values


def test_memos_are_never_drawn_again() -> None:
    protocol = MemoizedBitFlipRandomizer(epsilon=1.0, domain=Domain(range(6)), asked=6, max_memos=3)
    values = np.random.default_rng(1).integers(0, 6, (200, 500))
    sent = np.array([batch.records for batch in protocol.randomize_rounds(list(values), 2)])
    for device in range(0, 500, 7):
        memos: dict[int, bytes] = {}
        last = b""
        for value, record in zip(values[:, device].tolist(), sent[:, device], strict=True):
            if value not in memos and len(memos) < 3:
                memos[value] = last = record.tobytes()
            assert memos.get(value, last) == record.tobytes()
    assert len({row.tobytes() for row in sent[:, 0]}) <= 3


def test_keys_are_no_finer_than_they_have_to_be() -> None:
    hashed = LongitudinalLocalHashingRandomizer(
        epsilon=1.0, domain=Domain(range(1000)), buckets=2, max_memos=50
    )
    assert hashed.memo_limit == 2
    assert hashed.fixed_width == 4
    source = SimulatedSource(3)
    fixed = hashed.fixed(4000, source)
    keys = np.array([hashed.keys(np.full(4000, value), fixed) for value in range(50)])
    assert set(keys.ravel().tolist()) == {0, 1}
    accepts_only(rate(int((keys[0] == keys[1]).sum()), 4000), 0.5, a_tenth_more=0.6, a_quarter=0.25)
    flips = MemoizedBitFlipRandomizer(epsilon=1.0, domain=Domain(range(100)), asked=2, max_memos=50)
    assert flips.memo_limit == 3
    drawn = flips.fixed(500, source)
    keys = np.array([flips.keys(np.full(500, value), drawn) for value in range(100)])
    assert (np.sort(keys, axis=0)[:2] == [[0], [1]]).all()
    assert (np.sort(keys, axis=0)[2:] == 2).all()


def test_numbers_are_rounded_at_a_point_that_stays() -> None:
    made = MemoizedOneBitMeanRandomizer(epsilon=1.0, bounds=(0.0, 8.0), steps=4)
    source = SimulatedSource(3)
    fixed = made.fixed(40_000, source)
    low, again, high = (made.keys(np.full(40_000, x), fixed) for x in (2.9, 2.9, 3.1))
    assert (low == again).all()
    assert set(low.tolist()) == {1, 2}
    accepts_only(within(low.mean(), 0.5 / 200), 1.45, rounded=1.0, a_twentieth_more=1.5)
    assert (low <= high).all()
    # A small change moves few devices: as many as it is long.
    accepts_only(within((low != high).mean(), 0.3 / 200), 0.1, drawn_anew=0.5, never=0.0)
    assert set(made.keys(np.full(40_000, 8.0), fixed).tolist()) == {4}
    assert set(made.keys(np.full(40_000, 0.0), fixed).tolist()) == {0}


def test_with_one_memo_all_histories_look_alike() -> None:
    protocol = MemoizedBitFlipRandomizer(epsilon=1.0, domain=Domain(range(4)), asked=4, max_memos=1)
    first, *others = protocol.randomize_rounds([[value] * 50 for value in (2, 0, 3, 2)], 4)
    for batch in others:
        assert (batch.records == first.records).all()
