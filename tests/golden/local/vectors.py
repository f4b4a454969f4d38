"""Vectors of the wire: what a device draws from given random words, and what it sends then.

Devices that are not Python reproduce them bit for bit (docs/wire.md says how). Words come from a stream that
needs SHA-256 alone, after some that a case states, where it is about words that are rare.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from fractions import Fraction
from itertools import islice
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sfumato.local import device
from sfumato.local.device import Domain, PublicCollection, RapporRandomizer
from sfumato.local.device.longitudinal.memory import Memory
from sfumato.local.device.vector.random_vectors import normal_table, quantiles
from sfumato.numerics.certified.fixed_point import laplace_magnitude, thresholds
from sfumato.numerics.randomness.uniform import uniform_integers
from tests.golden.local.sealing import sealed

__all__ = ["WordStream", "sealed_vectors", "vectors"]

LARGEST = (1 << 64) - 1
SIX = Domain(list("abcdef"))
MIXED = Domain(["red", 7, "π", -3, '\n"\\'])
STEPS = Domain(range(30, 3, -4))
MANY = Domain(range(1000))
WIDE = Domain(range(-(1 << 20), 1 << 20))
TEXTS = ["https://example.org", "π", "", "a"]
NUMBERS = [-1.0, 0.3, 2.5, 1.0000000000000002]
FREQUENCY: tuple[Any, ...] = (
    device.BinaryLocalHashingRandomizer,
    device.BitFlipRandomizer,
    device.HadamardResponseRandomizer,
    device.OneBitHadamardRandomizer,
    device.OptimalLocalHashingRandomizer,
    device.OptimizedUnaryEncodingRandomizer,
    device.ProjectiveGeometryResponseRandomizer,
    device.RandomizedResponseRandomizer,
    device.SignedHadamardRandomizer,
    device.SubsetSelectionRandomizer,
    device.SymmetricUnaryEncodingRandomizer,
)
NUMERIC: tuple[Any, ...] = (
    device.HybridMeanRandomizer, device.LaplaceMeanRandomizer, device.PiecewiseMeanRandomizer,
    device.SquareWaveRandomizer, device.StochasticRoundingMeanRandomizer,
)  # fmt: skip


class WordStream:
    """Random words as a vector states them: some given ones, then those that follow from a seed.

    Word 4i + j of a seed is the j-th of the little-endian words of SHA-256 of seed and i, in 4 bytes each.
    """

    simulated = True

    def __init__(self, seed: int, given: list[int] | None = None) -> None:
        self._seed, self._left, self._block, self.taken = seed, list(given or []), 0, 0

    def words(self, count: int) -> NDArray[np.uint64]:
        while len(self._left) < count:
            hashed = hashlib.sha256(self._seed.to_bytes(4, "little") + self._block.to_bytes(4, "little"))
            self._left += np.frombuffer(hashed.digest(), "<u8").tolist()
            self._block += 1
        found, self._left = self._left[:count], self._left[count:]
        self.taken += count
        return np.array(found, np.uint64)

    def bytes(self, count: int) -> bytes:
        return self.words(-(-count // 8)).astype("<u8").tobytes()[:count]


def hexed(words: list[int]) -> list[str]:
    """Words as text: JSON's numbers are doubles to many readers."""
    return [f"{word:016x}" for word in words]


def randomizers() -> Iterator[tuple[Any, list[Any]]]:
    """What devices report by, and some true values."""
    for kind in FREQUENCY:
        yield kind(epsilon=1.0, domain=SIX), list("abcdef")
        yield kind(epsilon=0.3, domain=MIXED), ["red", 7, "π", -3]
        yield kind(epsilon=4.0, domain=STEPS), [30, 26, 6, 14]
        yield kind(epsilon=2.5, domain=MANY), [0, 999, 512, 77]
        if kind not in (device.SubsetSelectionRandomizer, *device_with_bits()):
            yield kind(epsilon=3.0, domain=WIDE), [0, 1 << 19, -(1 << 20), (1 << 20) - 1]
    yield device.RandomizedResponseRandomizer(epsilon=1e-3, domain=Domain([True, "other"])), [True, "other"]
    long = Domain(range(1 << 40))
    yield device.RandomizedResponseRandomizer(epsilon=40.0, domain=long), [0, (1 << 40) - 1]
    yield device.BitFlipRandomizer(epsilon=1.0, domain=MANY, asked=1), [0, 999]
    yield device.SubsetSelectionRandomizer(epsilon=6.0, domain=MANY), [0, 999, 500]
    for kind in (device.CountMeanSketchRandomizer, device.HadamardCountMeanSketchRandomizer):
        yield kind(epsilon=1.0, domain=SIX, size=8, hashes=4), list("abcdef")
        yield kind(epsilon=4.0, domain=WIDE, size=1024, hashes=65_536, key=LARGEST), [0, 1 << 19]
    for epsilon in (0.5, 1.0, 7.0):
        yield device.NoisyHistogramRandomizer(epsilon=epsilon, domain=SIX), list("abcdef")
    yield device.NoisyHistogramRandomizer(epsilon=0.1, domain=MANY), [0, 999]
    yield RapporRandomizer(), TEXTS
    yield RapporRandomizer(bits=16, hashes=1, cohorts=1, permanent=0.3, instantaneous=None), TEXTS
    yield RapporRandomizer(bits=72, hashes=4, cohorts=5, permanent=0.9, instantaneous=(0.3, 0.7)), TEXTS
    yield RapporRandomizer(bits=64, hashes=2, cohorts=2, permanent=0.75, instantaneous=(0.1, 0.6)), TEXTS
    for kind in NUMERIC:
        yield kind(epsilon=1.0, bounds=(-1.0, 2.5), steps=8), NUMBERS
        yield kind(epsilon=0.25, bounds=(-1.0, 2.5), steps=1000), NUMBERS
    yield device.OneBitMeanRandomizer(epsilon=1.0, bounds=(-1.0, 2.5)), NUMBERS


def device_with_bits() -> tuple[Any, ...]:
    """Of the frequency protocols, those with a bit for each category."""
    return device.OptimizedUnaryEncodingRandomizer, device.SymmetricUnaryEncodingRandomizer


def rare() -> Iterator[tuple[Any, Any, list[int]]]:
    """Words that decide otherwise than nearly all: refused ones, thresholds of coins, open draws."""
    response = device.RandomizedResponseRandomizer(epsilon=1.0, domain=MANY)
    truth = response.truth.threshold
    yield response, 77, [truth - 1, 0]
    yield response, 77, [truth, LARGEST, LARGEST - 1, 77]
    point = device.ProjectiveGeometryResponseRandomizer(epsilon=1.0, domain=SIX)
    yield point, "b", [0, 0, 5]
    yield point, "b", [LARGEST, 0]
    hashing = device.OptimalLocalHashingRandomizer(epsilon=1.0, domain=WIDE)
    yield hashing, 5, [0xFFFF_FFFF_0000_0001, 0, LARGEST]
    noisy = device.NoisyHistogramRandomizer(epsilon=1.0, domain=SIX)
    table = thresholds(laplace_magnitude(noisy.scale, folded=True), 63)
    yield noisy, "c", [2 * table[0] + 1, 2 * table[0], 2 * table[3] + 2, 1, 0, 2 * table[-1]]
    coarse = device.NoisyHistogramRandomizer(epsilon=0.5, domain=SIX)
    table = thresholds(laplace_magnitude(coarse.scale / 2, folded=False), 63)
    # minus zero, which is refused; plus zero; an open cell; and one beside the chance of being taken
    near = int(Fraction(0.99609375) * (1 << 63))
    yield coarse, "c", [LARGEST, 0, LARGEST - 1, 0, 2 * table[2], 1, 2 * table[5], 2 * near + 1]


def drawn(randomizer: Any, value: Any, seed: int, given: list[int] | None = None) -> dict[str, Any]:
    """One report."""
    words = WordStream(seed, given)
    record = randomizer.randomize(value, words)
    stated = {"given": hexed(given)} if given else {}
    return {"value": value, "seed": seed, **stated, "words": words.taken, "record": record.hex()}


def case(randomizer: Any, reports: list[dict[str, Any]]) -> dict[str, Any]:
    """A specification, as text, and reports by it."""
    return {
        "specification": json.dumps(randomizer.specification()),
        "digest": randomizer.digest.hex(),
        "width": randomizer.width,
        "reports": reports,
    }


def clients() -> Iterator[dict[str, Any]]:
    """Devices that report by RAPPOR again and again."""
    for made in (RapporRandomizer(), RapporRandomizer(bits=72, hashes=4, cohorts=5, permanent=0.9)):
        client = made.client(bytes(range(32)))
        reports = []
        for seed, value in enumerate(TEXTS):
            words = WordStream(seed)
            record = client.report(value, words).hex()
            memo = client.memo(value).tobytes().hex()
            reports.append({"value": value, "seed": seed, "memo": memo, "record": record})
        yield {**case(made, reports), "key": client.key.hex(), "cohort": client.cohort}


def memoizing_randomizers() -> Iterator[tuple[Any, list[Any]]]:
    """What devices report by again and again, and what is true on one of them, round by round."""
    letters, back = list("aabacabdefa"), [1, 1, 999, 0, 1, 500, 77, 3, 999]
    for epsilon, permanent in ((1.0, 2.0), (0.3, 5.0)):
        layers: dict[str, Any] = {"epsilon": epsilon, "permanent_epsilon": permanent}
        yield device.LongitudinalRandomizedResponseRandomizer(**layers, domain=SIX, max_memos=3), letters
        yield device.LongitudinalRandomizedResponseRandomizer(**layers, domain=MANY), back
        for chain in ("SUE", "OUE", "OSUE", "SOUE"):
            given = {**layers, "epsilon": epsilon / 2, "chain": chain}
            yield device.LongitudinalUnaryEncodingRandomizer(**given, domain=SIX, max_memos=2), letters
        yield device.LongitudinalUnaryEncodingRandomizer(**layers, domain=MANY, max_memos=3), back
        yield device.LongitudinalLocalHashingRandomizer(**layers, domain=MANY, buckets=5, max_memos=2), back
        yield device.MemoizedBitFlipRandomizer(**layers, domain=SIX, asked=3, max_memos=3), letters
        yield (
            device.MemoizedOneBitMeanRandomizer(**layers, bounds=(-1.0, 2.5), steps=8, max_memos=3),
            [*NUMBERS, -0.9, 1.9, 0.3, 2.5],
        )
    yield device.LongitudinalLocalHashingRandomizer(epsilon=1.0, domain=WIDE), [0, 1, 0, 1 << 19, -5, 7, 1]
    yield device.MemoizedBitFlipRandomizer(epsilon=1.0, domain=MANY, asked=1), back
    yield device.MemoizedBitFlipRandomizer(epsilon=2.0, domain=MANY, max_memos=2), back
    yield device.MemoizedOneBitMeanRandomizer(epsilon=1.0, bounds=(-1.0, 2.5)), [*NUMBERS, *NUMBERS]
    texts = [*TEXTS, *TEXTS, "b", "c"]
    yield device.MemoizedRapporRandomizer(), texts
    yield (
        device.MemoizedRapporRandomizer(bits=16, hashes=1, cohorts=1, permanent=0.3, instantaneous=None),
        texts,
    )
    yield device.MemoizedRapporRandomizer(bits=72, hashes=4, cohorts=5, permanent=0.9, max_memos=2), texts


def rounds(randomizer: Any, values: list[Any], seed: int) -> dict[str, Any]:
    """One device that is asked again and again: its memos and its reports."""
    words = WordStream(seed)
    memory = Memory.started(randomizer, 1, words)
    made = []
    for value in values:
        memo = memory.recall([value], words)
        record = randomizer.fresh(memo, memory.fixed, words).tobytes().hex()
        made.append({"value": value, "words": words.taken, "record": record})
    return {"seed": seed, "memos": int(memory.used[0]), "rounds": made}


def memoizing() -> Iterator[dict[str, Any]]:
    """Reports of new devices, and of devices that remember."""
    for made, values in memoizing_randomizers():
        reports = [drawn(made, value, seed) for seed, value in enumerate(values)]
        devices = [rounds(made, values, seed) for seed in (20, 21)]
        yield {**case(made, reports), "devices": devices}


def directions() -> Iterator[dict[str, Any]]:
    """Reports of vectors, along directions that a seed makes."""
    made = (
        device.ProjUnitRandomizer(epsilon=1.0, dimension=5),
        device.ProjUnitRandomizer(epsilon=8.0, dimension=37, radius=3.0),
        device.ProjUnitRandomizer(epsilon=4.0, dimension=2, radius=0.5, candidates=10),
    )
    for randomizer in made:
        tilted = [(-1) ** at * (1 + at % 7) for at in range(randomizer.dimension)]
        longest = sum(part * part for part in tilted) ** 0.5
        values = [
            [round(randomizer.radius * length * part / longest, 6) for part in tilted]
            for length in (0.0, 0.25, 0.999)
        ]
        clear = (
            drawn(randomizer, value, seed)
            for seed in range(100)
            for value in values
            if closest(randomizer, value, seed) > 1e-5
        )
        yield case(randomizer, list(islice(clear, 16)))


def closest(randomizer: device.ProjUnitRandomizer, value: list[float], seed: int) -> float:
    """How near two of a seed's directions come in their heights along a vector, as a part of the largest.

    Where that is far more than a client's floating point is off by, it decides nothing.
    """
    row = np.array(value if any(value) else [1.0] + [0.0] * (len(value) - 1))
    seeds, half = WordStream(seed).words(1) >> np.uint64(24), randomizer.count // 2
    made = quantiles(seeds, np.arange(half)[None], randomizer.dimension)[0].astype(np.float64)
    heights = made @ row / np.sqrt((made * made).sum(axis=1))
    both = np.sort(np.concatenate([heights, -heights]))
    return float(np.diff(both).min() / both.max())


def integers() -> Iterator[dict[str, Any]]:
    """Uniform whole numbers, with words that are refused."""
    for bound in (1, 2, 3, 1000, (1 << 21) + 1, 1 << 40, (1 << 53) - 111, (1 << 62) - 1):
        last = LARGEST - (1 << 64) % bound
        for first in (0, bound, last, min(last + 1, LARGEST), LARGEST):
            words = WordStream(bound & 0xFFFF, [first])
            value = int(uniform_integers(bound, 1, words)[0])
            yield {"bound": str(bound), "given": hexed([first]), "seed": bound & 0xFFFF, "words": words.taken,
                   "value": str(value)}  # fmt: skip


def vectors() -> dict[str, Any]:
    """What devices send, by given words."""
    return {
        "format": "sfumato.wire-vectors",
        "version": 2,
        "stream": hexed(WordStream(1).words(8).tolist()),
        "integers": list(integers()),
        "randomizers": [
            case(made, [drawn(made, value, seed) for seed, value in enumerate(values * 3)])
            for made, values in randomizers()
        ],
        "rare": [case(made, [drawn(made, value, 9, given)]) for made, value, given in rare()],
        "clients": list(clients()),
        "memoizing": list(memoizing()),
        "directions": list(directions()),
        "normal_table": hashlib.sha256(normal_table().astype("<i2").tobytes()).hexdigest(),
    }


def sealed_vectors(pairs: list[tuple[Any, Any, Any]]) -> dict[str, Any]:
    """Keys, seals and envelopes of both algorithms; the secret halves stand here, for tests alone.

    Parameters
    ----------
    pairs : list
        The analyst's and the shuffler's secret key, and the public collection that is sealed for them.
    """
    return {
        "format": "sfumato.sealed-vectors",
        "version": 2,
        "collections": [_sealed(analyst, shuffler, made) for analyst, shuffler, made in pairs],
    }


def _sealed(analyst: Any, shuffler: Any, made: PublicCollection) -> dict[str, Any]:
    ephemeral = [bytes([number]) * 32 for number in (7, 8)]
    record = made.randomizer.randomize("b", WordStream(3))
    nonce = made.nonce(b"secret of a device")
    inner = sealed(analyst.public.point, b"\x00" + record, made.report_context,
                   cipher=analyst.cipher, ephemeral=ephemeral[0])  # fmt: skip
    envelope = sealed(shuffler.public.point, nonce + inner, made.envelope_context,
                      cipher=shuffler.cipher, ephemeral=ephemeral[1])  # fmt: skip
    return {
        "specification": json.dumps(made.specification()),
        "cipher": analyst.cipher,
        "id": made.id.hex(),
        "keys": [
            {"role": key.role, "public": key.public.to_text(), "point": key.public.point.hex(),
             "token": key.public.token.hex()}
            for key in (analyst, shuffler)
        ],
        "report_context": made.report_context.hex(),
        "envelope_context": made.envelope_context.hex(),
        "secret": b"secret of a device".hex(),
        "nonce": nonce.hex(),
        "value": "b",
        "seed": 3,
        "record": record.hex(),
        "ephemeral": [key.hex() for key in ephemeral],
        "sealed_record": inner.hex(),
        "envelope": envelope.hex(),
    }  # fmt: skip
