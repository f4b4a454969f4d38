"""The black-box auditor on the bytes that telemetry protocols send: never above epsilon, and nearly at it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from sfumato.audit import audit
from sfumato.local import BitFlip, CountMeanSketch, Domain, HadamardCountMeanSketch, MemoizedRappor, Rappor
from tests.chance import accepts_only
from tests.local.laws import audited

CERTAIN = 1 - 1e-11
"""Some twenty audits give a false alarm with probability below 1e-9."""
TRIALS = {0.5: 2_000_000, 1.0: 600_000, 4.0: 200_000}


def sent(oracle: Any, seed: int) -> Callable[[int, int], Any]:
    """What many devices send that hold one value; no learner sees through a hash, so what it says is read."""
    generator = np.random.default_rng(seed)

    def reports(value: int, size: int) -> Any:
        records = oracle.randomize_batch(np.full(size, value), generator).records
        if isinstance(oracle, BitFlip):
            return records
        functions = oracle.device.functions(records)
        said = [
            oracle._supported(records, oracle.device.indices(functions, np.array([code]))) for code in (0, 1)
        ]
        return np.stack(said, axis=1).astype(np.uint8)

    return reports


@pytest.mark.parametrize("kind", [CountMeanSketch, HadamardCountMeanSketch, BitFlip])
@pytest.mark.parametrize("epsilon", TRIALS)
def test_the_bytes_keep_epsilon_and_use_it(kind: Any, epsilon: float) -> None:
    shape: dict[str, Any] = {"asked": 3} if kind is BitFlip else {"size": 64}
    oracle = kind(epsilon=epsilon, domain=Domain(range(3)), **shape)
    found = audit(
        sent(oracle, 7),
        epsilon=epsilon,
        pairs=[(0, 1)],
        trials=TRIALS[epsilon],
        batch=True,
        confidence=CERTAIN,
    )
    assert not found.violated
    accepts_only(audited(found), epsilon, nine_tenths=0.9 * epsilon)


@pytest.mark.sharpest("4.0")
@pytest.mark.parametrize("epsilon", TRIALS)
def test_rappors_bytes_keep_epsilon_and_use_it(epsilon: float) -> None:
    # One bit more likely turned over where epsilon is small: all in the permanent part.
    permanent = 2 / (1 + np.exp(epsilon / 2))
    oracle = Rappor(bits=8, hashes=1, cohorts=1, permanent=permanent, instantaneous=None)
    assert oracle.epsilon == pytest.approx(epsilon, rel=1e-3)
    one, other = "a", next(name for name in "bcdefgh" if (places(oracle, name) != places(oracle, "a")).any())
    generator = np.random.default_rng(3)

    def reports(name: str, size: int) -> Any:
        bits = np.unpackbits(
            oracle.randomize_batch([name] * size, generator).records, axis=1, bitorder="little"
        )
        return bits[:, [*places(oracle, one), *places(oracle, other)]]

    found = audit(
        reports,
        epsilon=oracle.epsilon,
        pairs=[(one, other)],
        trials=TRIALS[epsilon] // 2,
        batch=True,
        confidence=CERTAIN,
    )
    assert not found.violated
    accepts_only(audited(found), epsilon, seven_eighths=0.88 * epsilon)


@pytest.mark.sharpest("4.0-0.95-RAPPOR")
@pytest.mark.parametrize("rounds", [0, 1, 3], ids=["RAPPOR", "memos", "three of one memo"])
@pytest.mark.parametrize(("epsilon", "high"), [(0.5, 0.75), (1.0, 0.75), (4.0, 0.95)])
def test_rappors_cohorts_and_instantaneous_bits_keep_epsilon_and_use_it(
    epsilon: float, high: float, rounds: int
) -> None:
    # What flipping twice leaves of a bit: 1/2 + (q - 1/2)(1 - f), which is to have odds of e^(epsilon/2).
    left = 1 / (1 + np.exp(-epsilon / 2)) - 0.5
    shape: Any = {
        "bits": 8,
        "hashes": 1,
        "cohorts": 3,
        "permanent": float(1 - left / (high - 0.5)),
        "instantaneous": (1 - high, high),
    }
    memoized, oracle = MemoizedRappor(**shape), Rappor(**shape)
    assert memoized.epsilon == oracle.epsilon == pytest.approx(epsilon, rel=2e-3)
    stated = memoized.same_memo_loss(rounds).epsilon(0.0) if rounds > 1 else oracle.epsilon
    names, cohorts = [str(i) for i in range(40)], range(3)
    held = {name: oracle.device.indices([name] * 3, cohorts) for name in names}
    other = next(name for name in names if (held[name] != held["0"]).all())
    generator = np.random.default_rng(5)

    def reports(name: str, size: int) -> Any:
        people = [name] * size
        if rounds:
            batches = memoized.randomize_rounds([people] * rounds, generator)
        else:
            batches = [oracle.randomize_batch(people, generator)]
        at, told = np.arange(size), []
        for batch in batches:
            rows, drawn = oracle.device.opened(batch.records)
            bits = np.unpackbits(rows, axis=1, bitorder="little")
            told.append(np.stack([bits[at, held[value][drawn, 0]] for value in ("0", other)], axis=1))
        return np.column_stack([drawn.astype(np.uint8), np.sum(told, axis=0)])

    found = audit(
        reports,
        epsilon=stated,
        pairs=[("0", other)],
        trials=TRIALS[epsilon] // 2,
        batch=True,
        confidence=CERTAIN,
    )
    assert not found.violated
    accepts_only(audited(found), stated, seven_eighths=0.88 * stated)


def places(oracle: Rappor, name: str) -> Any:
    return oracle.device.indices([name], [0])[0]
