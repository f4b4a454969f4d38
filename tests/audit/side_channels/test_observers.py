"""Observers see what a run shows besides its output; only an audit that is asked to observes it."""

from __future__ import annotations

import json
import tracemalloc
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from sfumato.audit import Audit, InputPair, MemoryObserver, Observer, TimeObserver, audit
from sfumato.audit.blackbox import json_report
from sfumato.audit.side_channels.observed_runs import ObservedRuns
from sfumato.errors import ParameterError
from sfumato.mechanisms import Laplace
from tests.cases import cases
from tests.chance import accepts_only, rate

SURE = 1 - 1e-9  # one false alarm in a billion, for each audit that must not refute
NOISE = np.random.default_rng(5)


def observed(mechanism: Callable[..., Any], *observe: Any, **given: Any) -> Audit:
    return audit(
        mechanism, epsilon=1.0, pairs=[(0, 1)], trials=400, confidence=SURE, observe=observe, **given
    )


WORK = [0]
"""How much was done so far: a clock that no other process can hold up."""


def works_more(datum: int) -> float:
    """Do a thousand times as much for one input."""
    WORK[0] += 10_000 if datum else 10
    return NOISE.laplace()


def holds_more(datum: int) -> float:
    return NOISE.laplace() + 0.0 * len(bytes(1_000_000 if datum else 1000))


def fails(datum: int) -> float:
    raise LookupError("always")


LEAKS: dict[str, tuple[Callable[[int], Any], Any]] = {
    "time": (works_more, TimeObserver(lambda: WORK[0])),
    "memory": (holds_more, "memory"),
}


@cases("channel", list(LEAKS))
def test_a_leak_is_refuted_only_if_it_is_observed(channel: str) -> None:
    mechanism, observer = LEAKS[channel]
    blind = observed(mechanism)
    assert not blind.violated, blind
    assert str(blind).endswith("; not observed: time, memory, random state")
    found = observed(mechanism, observer)
    assert found.violated, found
    assert found.observed == (channel,)
    assert f"; observed: {channel}; not observed: " in str(found)
    assert json.loads(json_report(found))["observed"] == [channel]
    assert "observed" not in json.loads(json_report(blind))
    other = observed(mechanism, "random state")
    assert not other.violated, other
    assert channel in str(other).split("not observed: ")[1]


def test_an_error_in_every_run_is_refused() -> None:
    with pytest.raises(ParameterError, match="it did so on both inputs"):
        observed(fails, "random state")


class Machine:
    """A clock that runs move by a time of their own, in which the input has no part."""

    def __init__(self, wear: Callable[[int], int]) -> None:
        self.now = 0
        self.runs = 0
        self.wear = wear
        self.chance = np.random.default_rng(6)

    def run(self, datum: int) -> float:
        self.runs += 1
        self.now += 1000 + self.wear(self.runs) + int(self.chance.integers(0, 50))
        return self.chance.laplace()

    @property
    def clock(self) -> TimeObserver:
        return TimeObserver(lambda: self.now)


WEAR: dict[str, Callable[[int], int]] = {
    "none": lambda runs: 0,
    "slower and slower": lambda runs: 7 * runs,
    "every second run is slow": lambda runs: 500 * (runs % 2),
    "slow for a while": lambda runs: 500 * (runs // 100 % 2),
}


@cases("wear", list(WEAR))
def test_what_the_machine_does_by_itself_refutes_nobody(wear: str) -> None:
    for _ in range(3):
        machine = Machine(WEAR[wear])
        found = observed(machine.run, machine.clock)
        assert not found.violated, found


class AlwaysHeads:
    def random(self, size: int) -> Any:
        return np.zeros(size)


def test_a_coin_decides_which_input_comes_first() -> None:
    """Were it always the same one, a machine that tires at every second run would tell the inputs apart."""

    def slow(coins: Any) -> list[int]:
        machine = Machine(WEAR["every second run is slow"])
        runs = ObservedRuns(machine.run, [machine.clock], (), coins=coins)
        both = runs(InputPair(first=0, second=1), 1000)
        return [int((np.asarray(outputs.values)[:, 0] >= 1500).sum()) for outputs in both]

    first, second = slow(np.random.default_rng(1))
    assert first + second == 1000
    accepts_only(rate(first, 1000), 0.5, always_first=1.0)
    assert slow(AlwaysHeads()) in ([0, 1000], [1000, 0])


def test_the_same_memory_and_the_same_state_refute_nobody() -> None:
    found = observed(lambda datum: holds_more(0), "memory", "random state")
    assert not found.violated, found
    ours = audit(
        Laplace(sensitivity=1, scale=1),
        epsilon=1.0,
        trials=200,
        confidence=SURE,
        observe=["random state", "memory", "time"],
        rng=1,
    )
    assert ours.observed == ("time", "memory", "random state")
    assert ours.pair.first in {0, 1}


def test_a_batch_form_is_run_one_at_a_time() -> None:
    sizes = set()

    def many(datum: int, size: int) -> Any:
        sizes.add(size)
        return [NOISE.laplace() + 0.0 * len(bytes(1_000_000 if datum else 1000)) for _ in range(size)]

    assert observed(many, "memory").violated
    assert sizes == {1}


def test_an_observer_of_ones_own_and_the_names_of_events() -> None:
    class Queries:
        observes = name = "queries sent"

        def __init__(self) -> None:
            self.sent = self.before = 0

        def start(self) -> None:
            self.before = self.sent

        def stop(self) -> int:
            return self.sent - self.before

    queries = Queries()

    def asks(datum: int) -> tuple[float, float]:
        queries.sent += 1 + datum
        return NOISE.laplace(), NOISE.laplace()

    assert isinstance(queries, Observer)
    found = observed(asks, queries, "memory")
    assert found.violated
    assert found.observed == ("memory", "queries sent")
    names = found.event.encoder.names
    assert "queries sent" in names
    assert "output[1]" in names
    assert "output[2]" not in names


def test_memory_that_is_traced_already_stays_traced() -> None:
    observer = MemoryObserver()
    tracemalloc.start()
    try:
        before = bytes(100_000)
        observer.start()
        held = bytes(200_000)
        assert 200_000 <= observer.stop() < 210_000
        assert tracemalloc.is_tracing()
        assert len(before) + len(held) == 300_000
    finally:
        tracemalloc.stop()
    observer.start()
    assert observer.stop() < 10_000
    assert not tracemalloc.is_tracing()


@cases("observe", ["time", ["clock"], 3, [["time"]], [TimeObserver]])
def test_what_is_observed_must_be_known(observe: Any) -> None:
    with pytest.raises(
        ParameterError, match="observe must hold some of 'time', 'memory', 'random state', or"
    ):
        audit(works_more, epsilon=1.0, pairs=[(0, 1)], trials=400, observe=observe)
