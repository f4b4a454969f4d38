"""How many words a run takes is read off two states, of every generator that people have."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

from sfumato.audit import RandomStateObserver, audit
from sfumato.errors import ParameterError
from tests.cases import cases

SURE = 1 - 1e-9
NOISE = np.random.default_rng(5)


@pytest.fixture(autouse=True)
def _global_states() -> Iterator[None]:
    states = random.getstate(), np.random.get_state()
    yield
    random.setstate(states[0])
    np.random.set_state(states[1])


def words(observer: RandomStateObserver, run: Callable[..., Any], *arguments: Any) -> float | str:
    observer.start()
    run(*arguments)
    return observer.stop()


@cases("kind", [np.random.PCG64, np.random.PCG64DXSM, np.random.Philox, np.random.SFC64, np.random.MT19937])
def test_the_words_of_a_generator_are_counted(kind: Any) -> None:
    generator = np.random.Generator(kind(3))
    observer = RandomStateObserver(generator)
    for count in (0, 1, 5, 1000, 60_000):
        assert words(observer, generator.bit_generator.random_raw, count) == count
    if kind is not np.random.MT19937:  # whose words have 32 bits
        halves = [words(observer, lambda: generator.integers(0, 2**32, dtype=np.uint32)) for _ in range(3)]
        assert halves == [0.5, 0.5, 0.5]


def test_the_words_of_global_and_of_old_generators_are_counted() -> None:
    for python in (random, random.Random(2)):
        observer = RandomStateObserver(python)
        assert words(observer, python.getrandbits, 32 * 700) == 700
        python.seed(4)
        before = words(observer, python.gauss, 0.0, 1.0)
        assert isinstance(before, float)
        assert before % 1 == 0.5
    for old in (np.random, np.random.RandomState(2)):
        observer = RandomStateObserver(old)
        assert words(observer, old.bytes, 4 * 11) == 11
        first = words(observer, old.standard_normal)
        second = words(observer, old.standard_normal)
        assert isinstance(first, float)
        assert second == 0.5, "the second of two Gaussian numbers was saved"


def test_a_seed_is_seen_by_what_it_is() -> None:
    observer = RandomStateObserver(random)
    seen = [words(observer, random.seed, seed) for seed in (1, 2, 1)]
    assert seen[0] == seen[2] != seen[1]
    assert str(seen[0]).startswith("seeded anew: ")


PASSED = np.random.default_rng(8)
RUNS: dict[str, tuple[Callable[[int], Any], Any]] = {
    "numpy's global one": (
        lambda datum: np.random.random() if datum else 0,
        "random state",
    ),
    "random's": (lambda datum: random.random() if datum else 0, "random state"),
    "a seed that is the datum": (random.seed, "random state"),
    "a generator that is passed": (lambda datum: PASSED.random(1 + datum), RandomStateObserver(PASSED)),
}


@cases("moved", list(RUNS))
def test_a_state_that_tells_the_datum_is_refuted_only_if_it_is_observed(moved: str) -> None:
    move, observer = RUNS[moved]

    def mechanism(datum: int) -> float:
        move(datum)
        return NOISE.laplace()

    given: dict[str, Any] = {"epsilon": 1.0, "pairs": [(0, 1)], "trials": 400, "confidence": SURE}
    assert not audit(mechanism, **given).violated
    found = audit(mechanism, **given, observe=[observer])
    assert found.violated, found
    assert found.observed == ("random state",)


def test_a_number_of_words_that_depends_on_chance_alone_refutes_nobody() -> None:
    def mechanism(datum: int) -> float:
        return np.random.normal() + PASSED.normal()

    found = audit(
        mechanism,
        epsilon=0.1,
        pairs=[(0, 1)],
        trials=1000,
        confidence=SURE,
        observe=["random state", RandomStateObserver(PASSED)],
    )
    assert not found.violated, found


def test_what_is_no_generator_is_refused() -> None:
    with pytest.raises(ParameterError, match="generator must be a generator of numpy or of random"):
        RandomStateObserver(3)
