"""RAPPOR with a store: the law of one report and of two of one memo, filters as keys, and what is refused."""

from __future__ import annotations

import json
from collections import Counter
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from sfumato.errors import ParameterError
from sfumato.local.device import MemoizedRapporRandomizer, MemoStore, Randomizer, RapporRandomizer
from tests.chance import accepts_only
from tests.local.laws import reports, within

SMALL: dict[str, Any] = {"bits": 8, "cohorts": 2, "permanent": 0.4, "instantaneous": (0.2, 0.8)}


def test_one_report_has_the_law_of_rappor() -> None:
    made, n = MemoizedRapporRandomizer(**SMALL), 100_000
    law = made.probabilities("a")
    assert sorted(law.values()) == sorted(RapporRandomizer(**SMALL).probabilities("a").values())
    assert made.epsilon == RapporRandomizer(**SMALL).epsilon
    for batch in (made.randomize_batch(["a"] * n, 9), made.randomize_rounds([["b"] * n, ["a"] * n], 9)[1]):
        seen = Counter(batch)
        assert set(seen) <= set(law)
        even = dict.fromkeys(law, Fraction(1, len(law)))
        accepts_only(reports(seen, law), law, of_another=made.probabilities("b"), even=even)


@pytest.mark.parametrize("both", [(0.2, 0.8), None])
def test_two_reports_are_of_one_memo(both: Any) -> None:
    made, n = MemoizedRapporRandomizer(**{**SMALL, "instantaneous": both}), 40_000
    batches = made.randomize_rounds([["a"] * n] * 2, 4)
    rows, cohorts = zip(*(made.inner.opened(batch.records) for batch in batches), strict=True)
    assert (cohorts[0] == cohorts[1]).all()
    first, second = (np.unpackbits(part, axis=1, bitorder="little") for part in rows)
    flip = float(made.inner.flip.chance)
    low, high = (0.0, 1.0) if both is None else (float(coin.chance) for coin in made.inner.ones or ())
    held = np.zeros((2, 8), np.bool_)
    for cohort in range(2):
        held[cohort, made.inner.indices(["a"], [cohort])[0]] = True
    for cohort in range(2):
        own = cohorts[0] == cohort
        memo = np.where(held[cohort], 1 - flip, flip)
        found, told = (first[own] & second[own]).mean(axis=0), memo * high + (1 - memo) * low
        both_set = memo * high**2 + (1 - memo) * low**2
        for bit in range(8):
            check = within(found[bit], np.sqrt(both_set[bit] / own.sum()))
            accepts_only(check, both_set[bit], of_two_memos=told[bit] ** 2)


def test_keys_are_filters() -> None:
    for hashes, bits in ((1, 8), (2, 16), (4, 16), (8, 128), (5, 4096)):
        made = MemoizedRapporRandomizer(bits=bits, hashes=hashes, cohorts=3)
        names = [str(i) for i in range(3000)]
        cohorts = np.arange(3000) % 3
        keys = made.keys(names, cohorts.astype("<u4").view(np.uint8).reshape(-1, 4))
        filters = np.zeros((3000, bits), np.uint8)
        np.put_along_axis(filters, made.inner.indices(names, cohorts.tolist()), 1, axis=1)
        packed = np.packbits(filters, axis=1, bitorder="little")
        assert (keys >= 0).all()
        # One number for each filter, and back again.
        distinct = len(np.unique(packed, axis=0))
        assert len(np.unique(keys)) == len({(k, f.tobytes()) for k, f in zip(keys, packed, strict=True)})
        assert len(np.unique(keys)) == distinct
        always = MemoizedRapporRandomizer(
            bits=bits, hashes=hashes, cohorts=3, permanent=2**-10, instantaneous=(0.2, 0.9)
        )
        memos = always.memoize(keys, np.empty((3000, 0), np.uint8), _Zeros())
        assert (memos == packed).all()


class _Zeros:
    """Random words that turn no bit over."""

    simulated = True

    def words(self, count: int) -> Any:
        return np.zeros(count, np.uint64)

    def bytes(self, count: int) -> bytes:
        return bytes(count)


def test_a_store_keeps_filters_and_cohort(tmp_path: Path) -> None:
    made = MemoizedRapporRandomizer(instantaneous=None, permanent=0.5, max_memos=2)
    names = ("https://example.org", "https://example.net", "https://example.com")
    with MemoStore.create(tmp_path / "memos", b"k" * 32) as store:
        sent = [store.client(made).report(name) for name in names]
    assert sent[2] == sent[1]  # beyond the cap
    with MemoStore.open(tmp_path / "memos", b"k" * 32) as store:
        assert [store.client(made).report(name) for name in names] == sent
    assert b"example" not in (tmp_path / "memos").read_bytes()


def test_specifications_come_back_and_odd_ones_are_refused() -> None:
    for both in (None, (0.25, 0.5)):
        made = MemoizedRapporRandomizer(
            bits=32, cohorts=5, permanent=0.1, hashes=1, instantaneous=both, max_memos=9
        )
        told = json.loads(json.dumps(made.specification()))
        again = Randomizer.from_specification(told)
        assert again == made
        assert again.digest == made.digest
        assert again.randomize("b", 4) == made.randomize("b", 4)
        assert made.digest != made.inner.digest
        with pytest.raises(ParameterError):
            Randomizer.from_specification({**told, "max_memos": None})
    with pytest.raises(ParameterError, match="hashes must make at most"):
        MemoizedRapporRandomizer(bits=4096, hashes=6)
    with pytest.raises(ParameterError, match="max_memos must be"):
        MemoizedRapporRandomizer(max_memos=0)
    with pytest.raises(ParameterError, match="permanent must be"):
        MemoizedRapporRandomizer(permanent=0.0)
    for odd in ("secret", [("secret",)]):
        with pytest.raises(ParameterError, match="values must be") as refused:
            MemoizedRapporRandomizer().randomize_batch(odd)
        assert "secret" not in str(refused.value)
    assert len(MemoizedRapporRandomizer().randomize_batch([])) == 0
