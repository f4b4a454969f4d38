"""The thresholded release: its loss by enumeration, whom it counts, and what an analyst reads."""

from __future__ import annotations

import itertools
import math
from collections import Counter
from functools import lru_cache
from typing import Any

import numpy as np
import pytest

from sfumato.errors import ParameterError
from sfumato.local.device import SparseCollection
from sfumato.local.shuffle import SparseHistogram
from sfumato.local.shuffle.sparse_histogram import distinct_clients
from sfumato.mechanisms import StabilityHistogram
from sfumato.privacy import Neighboring
from sfumato.server import Shuffler
from tests.local.device.shuffle.test_sparse_collection import KEY, SHUFFLER, asked

RANGE = 60


def clients(made: SparseCollection, people: list[list[str]]) -> np.ndarray[Any, np.dtype[np.uint8]]:
    rows = []
    for number, keys in enumerate(people):
        envelope = made.envelope(keys, number.to_bytes(16, "big"), KEY)
        opened = SHUFFLER.opened(envelope, made.envelope_context)
        assert opened is not None
        rows.append(np.frombuffer(opened[16:], np.uint8))
    return np.stack(rows)


def test_the_loss_is_the_noises_and_one_mass_for_each_key_of_a_client() -> None:
    for noise, max_keys, lower in (("laplace", 1, 1), ("gaussian", 3, 1), ("laplace", 64, 80)):
        made = SparseHistogram(asked(noise=noise, max_keys=max_keys, delta=1e-4))
        assert made.privacy_loss.delta(1.0) <= 1e-4 * (1 + 1e-9)
        assert made.mechanism.neighboring is Neighboring.REPLACE_ONE
        # That mechanism's own price is of as many masses as counts: nearly twice as much, at the same noise.
        usual: Any = StabilityHistogram.calibrated(
            epsilon=1.0,
            delta=1e-4,
            l0=2 * max_keys,
            distribution=noise,  # type: ignore[arg-type]
            neighboring=Neighboring.REPLACE_ONE,
        )
        assert made.mechanism.noise == usual.noise
        assert made.mechanism.threshold <= usual.threshold - lower


@pytest.mark.parametrize("noise", ["laplace", "gaussian"])
def test_a_delta_whose_parts_are_no_floats_is_refused_by_its_name(noise: str) -> None:
    for delta in (5e-324, 9.9e-301):
        with pytest.raises(ParameterError, match=f"^delta must be at least 1e-300, got {delta}; pass a"):
            SparseHistogram(asked(noise=noise, delta=delta))


@lru_cache(maxsize=16)
def shown(histogram: SparseHistogram, count: int) -> np.ndarray[Any, np.dtype[np.float64]]:
    """The law of what is shown of a key that so many clients have: noisy counts, and last of all nothing."""
    mechanism = histogram.mechanism
    noise, law = mechanism.noise.distribution, np.zeros(2 * RANGE + 1)
    if count:
        noisy = np.arange(mechanism.threshold, 2 * RANGE)
        tails = np.array([noise.upper_tail(int(each)).upper for each in np.append(noisy, 2 * RANGE) - count])
        law[noisy] = tails[:-1] - tails[1:]
        law[mechanism.threshold] *= float(mechanism.probability)
    law[-1] = 1 - law.sum()
    return law


def hockey_stick(first: list[Any], second: list[Any], epsilon: float) -> float:
    """The divergence of two products of two laws."""
    p, q = (np.multiply.outer(*laws) for laws in (first, second))
    return float(np.maximum(p - np.exp(epsilon) * q, 0).sum())


def test_every_replaced_client_of_small_batches_costs_at_most_the_loss() -> None:
    """One key each: a client leaves the count a for the count b, in either direction, with others fixed."""
    histogram = SparseHistogram(asked(epsilon=1.5, delta=0.02, max_keys=1))
    assert histogram.mechanism.threshold < RANGE // 2
    loss, worst = histogram.privacy_loss, 0.0
    for epsilon in (0.3, 1.0, 1.5):
        allowed = loss.delta(epsilon)
        for left, entered in itertools.product(range(1, 9), range(8)):
            before = [shown(histogram, left), shown(histogram, entered)]
            after = [shown(histogram, left - 1), shown(histogram, entered + 1)]
            for pair in ((before, after), (after, before)):
                found = hockey_stick(*pair, epsilon)
                assert found <= allowed * (1 + 1e-9) + 1e-12
                worst = max(worst, found / allowed)
    assert 1 - 1e-6 < worst <= 1 + 1e-9  # it is met: no smaller delta holds
    # With half of the mass, as if it were shared by both counts, it breaks: the test can fail.
    lone = float(shown(histogram, 1)[:-1].sum())
    assert hockey_stick([shown(histogram, 1)] * 2, [shown(histogram, 0)] * 2, 1.5) > 1.9 * lone


def losses(first: np.ndarray[Any, Any], second: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """The two laws of the ratio of two laws: what is alike in it is one outcome."""
    found: Counter[float] = Counter()
    other: Counter[float] = Counter()
    for p, q in zip(first.tolist(), second.tolist(), strict=True):
        ratio = round(math.log(p / q), 9) if p > 0 < q else math.inf if p > 0 else -math.inf
        found[ratio] += p
        other[ratio] += q
    return np.array([list(found.values()), list(other.values())])


def test_two_keys_that_are_left_and_two_that_are_entered_cost_at_most_the_loss() -> None:
    histogram = SparseHistogram(asked(epsilon=2.0, delta=0.05, max_keys=2))
    loss, worst = histogram.privacy_loss, 0.0
    allowed = {epsilon: loss.delta(epsilon) for epsilon in (0.2, 1.0, 2.0)}
    counts = (1, 2, 6)  # with the client: alone, and with one or with five others
    for left in itertools.combinations_with_replacement(counts, 2):
        for entered in itertools.combinations_with_replacement(counts, 2):
            pairs = [losses(shown(histogram, n), shown(histogram, n - 1)) for n in left]
            pairs += [losses(shown(histogram, n - 1), shown(histogram, n)) for n in entered]
            p, q = np.ones(1), np.ones(1)
            for pair in pairs:
                p, q = np.multiply.outer(p, pair[0]).ravel(), np.multiply.outer(q, pair[1]).ravel()
            for epsilon, most in allowed.items():
                found = float(np.maximum(p - np.exp(epsilon) * q, 0).sum())
                assert found <= most * (1 + 1e-6), (left, entered, epsilon)
                worst = max(worst, found / most)
    assert worst > 1 - 0.03  # twice a mass, and not four times; less the product of two


def test_distinct_clients_are_counted_exactly() -> None:
    """All batches of three clients with two records each, of an alphabet of three."""
    for cells in itertools.product(range(3), repeat=6):
        rows = np.array(cells, np.uint8).reshape(3, 2)
        expected = Counter(bytes([cell]) for row in rows for cell in set(row.tolist()))
        assert distinct_clients(rows, 1) == expected


def test_a_release_shows_what_many_have_and_nothing_else() -> None:
    made = asked(epsilon=8.0, delta=1e-9, max_keys=2, batch_size=120)
    histogram = SparseHistogram(made)
    people = [["red", "blue"]] * 60 + [["red"]] * 30 + [[f"only {n}"] for n in range(30)]
    release = histogram.release(3, clients(made, people))
    found = histogram.opened(release, KEY)
    assert (found.number, found.unreadable) == (3, 0)
    assert list(found.counts) == ["red", "blue"]
    # Discrete Laplace of scale 1/2: beyond 20 with a probability below 1e-16.
    assert abs(found.counts["red"] - 90) <= 20
    assert abs(found.counts["blue"] - 60) <= 20
    assert b"red" not in release
    # Sorted by the encrypted keys, whose order has nothing to do with the counts.
    width = made.sealed_width + 8
    keys = [
        release[start : start + width - 8] for start in range(len(release) - 2 * width, len(release), width)
    ]
    assert keys == sorted(keys)


def test_by_way_of_the_shuffler(tmp_path: Any) -> None:
    made = asked(epsilon=8.0, delta=1e-6, max_keys=1, batch_size=60)
    histogram = SparseHistogram(made)
    envelopes = [made.envelope(["red"], bytes([n]) * 16, KEY) for n in range(59)]
    with Shuffler(made, SHUFFLER, tmp_path) as shuffler:
        assert all(shuffler.take(envelopes + envelopes[:5]))  # who sends again counts once
        assert shuffler.batches == 0
        assert shuffler.take([b"junk", made.envelope(["rare"], b"r" * 16, KEY)]) == [False, True]
        assert shuffler.batches == 1
        content = shuffler.path(1).read_bytes()
    with Shuffler(made, SHUFFLER, tmp_path):  # the same noise again, whenever it is read
        assert shuffler.path(1).read_bytes() == content
    found = histogram.opened(content, KEY)
    assert list(found.counts) == ["red"]
    assert abs(found.counts["red"] - 59) <= 20


def test_forged_records_are_counted_as_unreadable() -> None:
    made = asked(epsilon=8.0, delta=1e-6, max_keys=1, batch_size=60)
    rows = np.tile(np.frombuffer(bytes(made.sealed_width), np.uint8), (60, 1))
    found = SparseHistogram(made).opened(SparseHistogram(made).release(1, rows), KEY)
    assert (dict(found.counts), found.unreadable) == ({}, 1)


def test_foreign_and_broken_releases_are_refused() -> None:
    made = asked(epsilon=8.0, max_keys=1)
    histogram = SparseHistogram(made)
    release = histogram.release(1, clients(made, [["red"]] * 50))
    assert len(histogram.opened(release, KEY).counts) == 1
    other = SparseHistogram(asked(name="other"))
    for bad in (
        b"",
        b"junk" * 30,
        release[:-1],
        release + b"\x00",
        release[:8] + b"\x02" + release[9:],
        None,
        7,
    ):
        with pytest.raises(ParameterError, match="a release must"):
            histogram.opened(bad, KEY)  # type: ignore[arg-type]
    with pytest.raises(ParameterError, match="a release must be of this collection"):
        other.opened(release, KEY)
    with pytest.raises(ParameterError, match="encryption_key must be that"):
        histogram.opened(release, bytes(32))
    with pytest.raises(ParameterError, match="collection must"):
        SparseHistogram("collection")  # type: ignore[arg-type]
