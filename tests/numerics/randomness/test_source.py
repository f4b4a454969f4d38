"""The random sources: no word twice, whatever threads and forks do."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from sfumato.errors import ParameterError
from sfumato.numerics.randomness.source import RandomSource, SecureSource, SimulatedSource, random_source
from tests.cases import cases
from tests.chance import accepts_only, rate
from tests.numerics.sources import ListedSource

# 2^17 honest 64-bit words hold a repeated one with probability 2^-31 < 1e-9.
MAX_WORDS = 1 << 17
FORKS = pytest.mark.filterwarnings("ignore:.*multi-threaded.*fork:DeprecationWarning")


def repeated(*drawn: NDArray[np.uint64]) -> int:
    words = np.concatenate(drawn)
    assert words.size <= MAX_WORDS
    return words.size - np.unique(words).size


def in_child(work: Callable[[], NDArray[np.uint64]]) -> NDArray[np.uint64]:
    """Run work in a forked child and return its words; a child that hangs is killed by its own alarm."""
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            import signal  # noqa: PLC0415

            signal.alarm(30)
            with os.fdopen(write, "wb") as pipe:
                pipe.write(work().tobytes())
        finally:
            os._exit(0)
    os.close(write)
    with os.fdopen(read, "rb") as pipe:
        data = pipe.read()
    os.waitpid(child, 0)
    assert data
    return np.frombuffer(data, np.uint64)


@cases("count", [0, 1, 7, 1023, 1024, 1025, 4096, 4097, 65536, 65537, 100_001])
def test_counts(count: int) -> None:
    for source in (SecureSource(), SimulatedSource(1)):
        words = source.words(count)
        assert words.dtype == np.uint64
        assert words.shape == (count,)
        assert words.flags.writeable
        assert not repeated(words)
        assert len(source.bytes(count)) == count


@pytest.mark.parametrize("count", [-1, 1.5, "1", None])
def test_refuses_what_is_not_a_count(count: Any) -> None:
    for source in (SecureSource(), SimulatedSource(1)):
        source.words(3)
        with pytest.raises(ParameterError, match="count must be an integer of at least 0"):
            source.words(count)
        assert source.words(3).all()


def test_arrays_are_the_callers_own() -> None:
    source = SecureSource()
    first = source.words(5)
    selected = first.copy()
    source.words(100_000)
    source.words(5)
    assert (first == selected).all()
    first[:] = 0
    assert source.words(5).any()


def test_no_word_twice_in_one_process() -> None:
    source = SecureSource()
    sizes = np.random.default_rng(1).integers(1, 3000, 80)
    assert not repeated(*[source.words(int(size)) for size in sizes])


def test_bits_are_even() -> None:
    words = np.concatenate([random_source().words(1000) for _ in range(60)] + [random_source().words(60_000)])
    for place in range(64):
        ones = int((words >> np.uint64(place) & np.uint64(1)).sum())
        accepts_only(rate(ones, words.size), 0.5, mostly_zeros=0.48, mostly_ones=0.52)


def test_no_word_twice_across_threads() -> None:
    source = SecureSource()
    drawn: list[NDArray[np.uint64]] = []
    start = threading.Barrier(8)

    def work(seed: int) -> None:
        sizes = np.random.default_rng(seed).integers(1, 2500, 12)
        start.wait()
        drawn.extend(source.words(int(size)) for size in sizes)

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(drawn) == 96
    assert not repeated(*drawn)


@FORKS
def test_no_word_twice_across_forks() -> None:
    source = random_source()
    before = source.words(100)

    def grandchild() -> NDArray[np.uint64]:
        return np.concatenate([source.words(100), source.words(3000)])

    def child() -> NDArray[np.uint64]:
        own = grandchild()
        return np.concatenate([own, in_child(grandchild), source.words(100)])

    drawn = [before, *[in_child(child) for _ in range(4)], source.words(100), source.words(3000)]
    assert not repeated(*drawn)


@FORKS
def test_a_fork_while_another_thread_holds_the_lock() -> None:
    source = SecureSource()
    source.words(1)
    stream = source._stream
    assert stream is not None
    with stream._lock:
        drawn = in_child(lambda: source.words(64))
    assert not repeated(drawn, source.words(64))


@FORKS
def test_forks_amid_busy_threads() -> None:
    source = SecureSource()
    done = threading.Event()

    def work() -> None:
        while not done.is_set():
            source.words(2000)

    threads = [threading.Thread(target=work) for _ in range(3)]
    for thread in threads:
        thread.start()
    try:
        drawn = [in_child(lambda: source.words(2000)) for _ in range(5)]
    finally:
        done.set()
        for thread in threads:
            thread.join()
    assert not repeated(*drawn)


@FORKS
def test_a_child_with_its_parents_process_id(monkeypatch: pytest.MonkeyPatch) -> None:
    # Ids are used again; then only the fork handler tells.
    monkeypatch.setattr(os, "getpid", lambda: 7)
    source = SecureSource()
    before = source.words(64)
    assert not repeated(before, in_child(lambda: source.words(64)), source.words(64))


def test_a_fork_behind_pythons_back_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    source = SecureSource()
    source.words(1)
    before = source._stream
    monkeypatch.setattr(os, "getpid", lambda: -1)
    source.words(1)
    assert source._stream is not before


def test_fresh_entropy_after_the_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[int] = []
    honest = os.urandom

    def counted(count: int) -> bytes:
        asked.append(count)
        return honest(count)

    monkeypatch.setattr(os, "urandom", counted)
    source = SecureSource(rekey_blocks=1 << 15)
    drawn = [source.words(1 << 15) for _ in range(4)]
    assert len(asked) == 2
    assert not repeated(*drawn)


def test_words_given_are_erased() -> None:
    source = SecureSource()
    source.words(100)
    stream = source._stream
    assert stream is not None
    assert not stream._pool[:100].any()


def test_the_stream_is_aes_256_in_counter_mode(monkeypatch: pytest.MonkeyPatch) -> None:
    # NIST SP 800-38A, F.5.5: key, initial counter block, and the keystream blocks ("Output Block").
    key = "603deb1015ca71be2b73aef0857d77811f352c073b6108d72d9810a30914dff4"
    counter = "f0f1f2f3f4f5f6f7f8f9fafbfcfdfeff"
    stream = "0bdf7df1591716335e9a8b15c860c5025a6e699d536119065433863c8f657b94"
    monkeypatch.setattr(os, "urandom", lambda _: bytes.fromhex(key + counter))
    assert SecureSource().bytes(32).hex() == stream
    assert SecureSource().words(5000).tobytes()[:32].hex() == stream


def test_simulation_is_repeatable_and_marked() -> None:
    assert SimulatedSource(5).words(3).tolist() == np.random.PCG64(5).random_raw(3).tolist()
    split = SimulatedSource(5)
    assert [*split.words(2), *split.words(3)] == SimulatedSource(5).words(5).tolist()
    assert SimulatedSource(5).simulated
    assert SimulatedSource(np.random.default_rng(5)).simulated
    assert not SecureSource().simulated


@pytest.mark.parametrize("bits", [np.random.PCG64, np.random.MT19937, np.random.Philox, np.random.SFC64])
def test_generators_give_whole_words(bits: type[np.random.BitGenerator]) -> None:
    words = SimulatedSource(np.random.Generator(bits(1))).words(1000)
    assert (words >> np.uint64(32)).any()
    assert (words & np.uint64(0xFFFFFFFF)).any()
    assert not repeated(words)


def test_a_generator_advances() -> None:
    generator = np.random.default_rng(1)
    assert not repeated(random_source(generator).words(10), random_source(generator).words(10))


def test_what_rng_may_be() -> None:
    assert random_source() is random_source(None)
    assert not random_source().simulated
    assert random_source(np.int64(3)).simulated  # type: ignore[arg-type]
    listed = ListedSource([1])
    assert random_source(listed) is listed
    assert isinstance(SecureSource(), RandomSource)


@cases("rng", [True, 1.5, "seed", SecureSource, object(), -1])
def test_what_rng_may_not_be(rng: object) -> None:
    with pytest.raises(ParameterError, match="must be"):
        random_source(rng)  # type: ignore[arg-type]
