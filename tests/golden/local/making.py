"""What local privacy sends and stores: specifications, reports, aggregator states, stores, keys, collections.

Seals draw an ephemeral key or a nonce each time, so that envelopes, mixed batches and memo stores are other
bytes whenever they are made; all else is the same bytes each time.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from sfumato import local
from sfumato.local import Bins, Domain, Strings, device, shuffle
from sfumato.local.base.specifications import protocol_specification
from sfumato.local.device import MemoStore
from tests.golden.local.vectors import sealed_vectors, vectors

ANALYST = shuffle.SecretKey("analyst", b"a" * 32)
SHUFFLER = shuffle.SecretKey("shuffler", b"s" * 32)
AES_ANALYST = shuffle.SecretKey("analyst", b"a" * 32, "aes-256-gcm")
AES_SHUFFLER = shuffle.SecretKey("shuffler", b"s" * 32, "aes-256-gcm")
STORE_KEY = b"k" * 32

SIX = Domain(list("abcdef"))
ATTRIBUTES = (Domain(range(2)), Domain(range(3)), Domain(["x", "y"]))
WORDS = Strings(length=3, alphabet="ab")
CATEGORIES = [SIX.values[n % 6] for n in range(12)]
NUMBERS = [n / 11 for n in range(12)]
ROWS = [(n % 2, n % 3, "xy"[n % 2]) for n in range(12)]
TEXTS = ["ab", "ba", "", "abb", "a", "b"] * 2
VECTORS = [[0.6, 0.8, 0.0], [0.0, 0.6, 0.8], [0.8, 0.0, 0.6]] * 4
DOMAINS = {
    "range": Domain(range(3, 30, 4)),
    "scalars": Domain(["a", 1, False, None, 2.5, b"x", (1, ("y", 0.5)), frozenset("ab")]),
    "words": Domain(["red", "green"]),
}

CATEGORICAL = (
    local.baselines.BinaryLocalHashing, local.BitFlip, local.HadamardResponse, local.LongitudinalLocalHashing,
    local.LongitudinalRandomizedResponse, local.LongitudinalUnaryEncoding, local.MemoizedBitFlip,
    local.OneBitHadamard, local.OptimalLocalHashing, local.OptimizedUnaryEncoding,
    local.ProjectiveGeometryResponse, local.RandomizedResponse, local.SubsetSelection,
    local.baselines.SummationHistogram, local.SymmetricUnaryEncoding, local.baselines.ThresholdHistogram,
)  # fmt: skip
GRIDS = (
    local.HybridMean,
    local.LaplaceMean,
    local.PiecewiseMean,
    local.StochasticRoundingMean,
    local.SquareWave,
)


def protocols() -> Iterator[tuple[Any, list[Any]]]:
    """Each protocol, and what some people have."""
    one: Any = {"epsilon": 1.0}
    sketch: Any = {"size": 8, "hashes": 4}
    texts: Any = {"epsilon": 4.0, "strings": WORDS}
    shuffled: Any = {"epsilon": 1.0, "delta": 1e-3, "clients": 1000}
    numbers: Any = {**one, "bounds": (0.0, 1.0)}
    kind: Any
    for kind in CATEGORICAL:
        yield kind(**one, domain=SIX), CATEGORIES
    for kind in (local.CountMeanSketch, local.HadamardCountMeanSketch):
        yield kind(**one, domain=SIX, **sketch), CATEGORIES
    for kind in GRIDS:
        yield kind(**numbers, steps=8), NUMBERS
    for kind in (local.MemoizedOneBitMean, local.OneBitMean):
        yield kind(**numbers), NUMBERS
    for kind in (local.PrivUnit, local.PrivUnitG, local.ProjUnit, local.SphereSampling):
        yield kind(**one, dimension=3), VECTORS
    for kind in (local.baselines.FakeData, local.SampledAttribute, local.SplitBudget):
        yield kind(**one, domains=ATTRIBUTES), ROWS
    yield local.SampledMarginals(**one, domains=ATTRIBUTES, views=((0, 1), (1, 2))), ROWS
    yield local.FourierMarginals(**one, domains=ATTRIBUTES, order=2), ROWS * 20
    yield local.Bitstogram(**texts, **sketch, buckets=4), TEXTS
    yield local.SequenceFragmentPuzzle(**texts, **sketch, buckets=4), TEXTS
    yield local.PrefixExtending(**texts), TEXTS
    yield local.TreeHist(**texts, **sketch), TEXTS
    yield local.PrefixRound(**one, strings=WORDS), TEXTS
    yield (
        local.HierarchicalHistogram(**one, domain=Domain(range(8)), branching=2),
        [n % 8 for n in range(12)],
    )
    yield local.HaarHistogram(**one, domain=Bins([0, 1, 2, 3, 4])), [n % 4 + 0.5 for n in range(12)]
    yield (
        local.HaarGrid(**one, domains=(Domain(range(2)), Bins([0, 1, 2]))),
        [(n % 2, n % 2 + 0.5) for n in range(12)],
    )
    yield local.Rappor(bits=16, cohorts=2), TEXTS
    yield local.MemoizedRappor(bits=16, cohorts=2), TEXTS
    yield shuffle.ShuffledCounts(**shuffled, domain=SIX), CATEGORIES
    yield shuffle.ShuffledHistogram(**shuffled, domain=SIX), CATEGORIES
    for kind in (shuffle.ShuffledMean, shuffle.ShuffledSum):
        yield kind(**shuffled, bounds=(0.0, 1.0), steps=4), NUMBERS


def numbers_of(estimate: Any) -> list[Any]:
    """The numbers that an estimate holds."""
    if isinstance(estimate, tuple):
        return [number for one in estimate for number in numbers_of(one)]
    if hasattr(estimate, "candidates"):
        return [estimate.reports, *map(str, estimate.candidates), *estimate.frequencies.tolist()]
    if hasattr(estimate, "table"):
        return [float(number) for at in ((0,), (1,), (0, 1)) for number in estimate.table(*at).ravel()]
    if hasattr(estimate, "raw"):
        return [float(number) for number in estimate.raw.ravel()]
    for name in ("total", "mean", "counts"):
        if hasattr(estimate, name):
            held = getattr(estimate, name)
            held = held.mean if type(held).__name__ == "MeanEstimate" else held
            return [float(number) for number in np.ravel(held)]
    raise AssertionError(estimate)


def recorded(protocol: Any, values: list[Any]) -> dict[str, Any]:
    """All that is written of one protocol, and what it estimates."""
    batch, aggregator = protocol.randomize_batch(values, 1), protocol.aggregator()
    aggregator.add_batch(batch)
    return {
        "protocol": protocol_specification(protocol),
        "randomizer": protocol.device.specification(),
        "reports": batch.to_bytes().hex(),
        "state": aggregator.to_bytes().hex(),
        "estimate": numbers_of(aggregator.estimate()),
    }


def collection(
    analyst: shuffle.SecretKey = ANALYST, shuffler: shuffle.SecretKey = SHUFFLER
) -> shuffle.Collection:
    """A collection of three clients."""
    oracle = local.RandomizedResponse(epsilon=40.0, domain=SIX)
    return shuffle.Collection(
        protocol=oracle, batch_size=3, name="golden", analyst=analyst.public, shuffler=shuffler.public
    )


def text(document: object) -> bytes:
    """A document as it is stored here, in lines that a diff shows."""
    return (json.dumps(document, indent=1) + "\n").encode()


def key_files(*keys: shuffle.SecretKey) -> dict[str, bytes]:
    """The files of secret keys, and their public lines."""
    with tempfile.TemporaryDirectory() as folder:
        made = {}
        for key in keys:
            path = Path(folder, key.role)
            key.to_file(path)
            made[f"{key.role}.key"] = path.read_bytes()
            made[f"{key.role}.pub"] = f"{key.public.to_text()}\n".encode()
        return made


def memo_store() -> bytes:
    """A store with one memo for each of two questions."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "memos")
        with MemoStore.create(path, STORE_KEY, simulated=True) as store:
            for question, value in questions():
                store.client(question).report(value, 1)
        return path.read_bytes()


def questions() -> list[tuple[Any, Any]]:
    """What the memo store is asked, and what is true."""
    unary = local.LongitudinalUnaryEncoding(epsilon=1.0, domain=SIX).device
    return [(unary, "c"), (local.MemoizedRappor(bits=16, cohorts=2).device, "word")]


def sealed_files(analyst: shuffle.SecretKey, shuffler: shuffle.SecretKey) -> dict[str, bytes]:
    """A collection with these keys, what its devices send and a released batch."""
    made = collection(analyst, shuffler)
    reports = [made.protocol.device.randomize(value, 1) for value in "abc"]
    sealed = [analyst.public.seal(b"\x01" + report, made.device.report_context) for report in reports]
    envelopes = [
        made.device.seal(report, made.device.nonce(bytes([n] * 16)), simulated=True)
        for n, report in enumerate(reports)
    ]
    rows = np.frombuffer(b"".join(sealed), np.uint8).reshape(len(sealed), -1)
    mixed = shuffle.MixedBatch(made.device.id, 1, rows)
    opening = made.opening(analyst)
    opening.add(mixed)
    return {
        "collection.json": text(made.specification()),
        "envelopes.json": text([envelope.hex() for envelope in envelopes]),
        "batch-000001.mixed": mixed.to_bytes(),
        "opening.state": opening.to_bytes(),
        **key_files(analyst, shuffler),
    }


def sparse_files() -> dict[str, bytes]:
    """A collection of texts of an unknown domain, what two devices encrypt, and a release."""
    encryption_key = bytes(range(32))
    asked = device.SparseCollection(
        epsilon=8.0,
        delta=1e-6,
        batch_size=40,
        max_keys=1,
        key_bytes=10,
        commitment=device.SparseCollection.commit(encryption_key),
        analyst=ANALYST.public,
        shuffler=SHUFFLER.public,
        name="golden",
    )
    clients = []
    for number in range(40):
        envelope = asked.envelope(["red" if number else "é"], number.to_bytes(16, "big"), encryption_key)
        opened = SHUFFLER.opened(envelope, asked.envelope_context)
        clients.append(np.frombuffer(opened or b"", np.uint8)[16:])
    return {
        "sparse/collection.json": text(asked.specification()),
        "sparse/encrypted.json": text([client.tobytes().hex() for client in clients[:2]]),
        "sparse/devices.key": encryption_key,
        "sparse/release.mixed": shuffle.SparseHistogram(asked).release(1, np.stack(clients), 1),
    }


def files() -> dict[str, bytes]:
    """All golden files, by name."""
    aes = sealed_files(AES_ANALYST, AES_SHUFFLER)
    pairs = [(ANALYST, SHUFFLER), (AES_ANALYST, AES_SHUFFLER)]
    return {
        "vectors.json": text(vectors()),
        "sealed.json": text(sealed_vectors([(*keys, collection(*keys).device) for keys in pairs])),
        "protocols.json": text({p.wire_name: recorded(p, values) for p, values in protocols()}),
        "domains.json": text({name: domain.specification() for name, domain in DOMAINS.items()}),
        "memos": memo_store(),
        **sealed_files(ANALYST, SHUFFLER),
        **sparse_files(),
        **{f"aes-256-gcm/{name}": content for name, content in aes.items()},
    }
