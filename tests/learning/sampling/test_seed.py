"""Secrets of samplers: sealed, restorable, and of one stream for each purpose and step."""

from __future__ import annotations

import copy
import pickle

import numpy as np
import pytest
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes

from sfumato.errors import ParameterError
from sfumato.learning.sampling.poisson import PoissonSampler
from sfumato.learning.sampling.seed import KeyedStream, Seed
from sfumato.numerics.randomness.source import RandomSource


def test_a_seed_is_fresh_unless_given() -> None:
    assert Seed().reveal() != Seed().reveal()
    assert not Seed().simulated
    assert Seed.of(3).reveal() == Seed.of(3).reveal() != Seed.of(4).reveal()
    assert Seed.of(3).simulated


def test_a_revealed_seed_resumes_and_protects_as_before() -> None:
    seed = Seed()
    again = Seed.of(seed.reveal())
    assert not again.simulated
    assert again.stream("x", 5).bytes(40) == seed.stream("x", 5).bytes(40)


def test_a_seed_does_not_show_itself() -> None:
    sampler = PoissonSampler(population=3, sampling_probability=0.5, steps=1)
    secret = Seed.of(sampler.seed).reveal()
    shown = repr(sampler) + repr(sampler.seed) + str(vars(Seed))
    assert secret.hex() not in shown
    assert repr(secret) not in shown
    with pytest.raises(TypeError, match="not pickled"):
        pickle.dumps(sampler)
    assert copy.deepcopy(sampler).batch(0).tolist() == sampler.batch(0).tolist()


def test_streams_are_apart_by_purpose_and_step() -> None:
    seed = Seed.of(1)
    streams = {
        (purpose, step): seed.stream(purpose, step).bytes(64) for purpose in "ab" for step in range(50)
    }
    blocks = {stream[i : i + 16] for stream in streams.values() for i in range(0, 64, 16)}
    assert len(blocks) == 4 * len(streams)


def test_the_stream_is_aes_in_counter_mode() -> None:
    key = bytes(range(32))
    blocks = b"".join((9).to_bytes(8, "big") + i.to_bytes(8, "big") for i in range(5))
    expected = Cipher(algorithms.AES(key), modes.ECB()).encryptor().update(blocks)
    assert KeyedStream(key, 9, simulated=False).bytes(80) == expected
    stream = KeyedStream(key, 9, simulated=False)
    assert stream.bytes(3) + stream.bytes(77) == expected
    words = KeyedStream(key, 9, simulated=True).words(10)
    assert words.astype("<u8").tobytes() == expected
    words[0] = np.uint64(0)


def test_long_streams_are_of_one_piece() -> None:
    stream, other = Seed.of(2).stream("x", 0), Seed.of(2).stream("x", 0)
    whole = stream.bytes((1 << 21) + 5)
    assert whole == b"".join(other.bytes(size) for size in (1 << 20, 1, 1 << 20, 4))
    assert isinstance(stream, RandomSource)


def test_bad_seeds_are_refused() -> None:
    with pytest.raises(ParameterError, match="secret must have 32 bytes, but it has 3"):
        Seed(b"abc")
    for bad in (-1, 1.5, True, "x"):
        with pytest.raises(ParameterError, match="seed must"):
            Seed.of(bad)  # type: ignore[arg-type]
    with pytest.raises(ParameterError, match="step must"):
        Seed.of(1).stream("x", -1)
    with pytest.raises(ParameterError, match="step must"):
        Seed.of(1).stream("x", 1 << 63)
    with pytest.raises(ParameterError, match="count must"):
        Seed.of(1).stream("x", 1).bytes(-1)
