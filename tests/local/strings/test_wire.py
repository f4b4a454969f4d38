"""The black-box auditor on the bytes of persons who report strings: never above epsilon, nearly at it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from sfumato.audit import audit
from sfumato.local import Bitstogram, PrefixExtending, SequenceFragmentPuzzle, Strings, TreeHist
from sfumato.local.device import OneBitHadamardRandomizer, OptimalLocalHashingRandomizer
from sfumato.local.device.frequency.hadamard import parity
from sfumato.local.device.frequency.local_hashing import hashed, keys_of
from tests.chance import accepts_only
from tests.local.laws import audited

PAIR = ("aa", "bb")
SKETCH: dict[str, Any] = {"size": 64, "hashes": 4}
PIECES: dict[str, Any] = {**SKETCH, "buckets": 4, "fragment": 1}
KINDS: list[tuple[Any, int, dict[str, Any]]] = [
    (PrefixExtending, 2, {}),
    (TreeHist, 2, SKETCH),
    (Bitstogram, 2, PIECES),
    (SequenceFragmentPuzzle, 0, {**PIECES, "sketch": "hadamard-count-mean-sketch"}),
]
CERTAIN = 1 - 1e-11
"""A dozen audits give a false alarm with probability below 1e-9."""
TRIALS = {0.5: 1_500_000, 1.0: 600_000, 4.0: 200_000}


def said(device: Any, pieces: Any, code: Any) -> Any:
    """Whether records support codes, one for each: no learner sees through a hash."""
    if isinstance(device, OptimalLocalHashingRandomizer):
        seeds, buckets = device.opened(pieces)
        high = hashed(seeds, keys_of(code)).astype(np.uint64)
        return high * np.uint64(device.buckets) >> np.uint64(32) == buckets
    if isinstance(device, OneBitHadamardRandomizer):
        columns, sign = np.divmod(device.layout.unpack(pieces).astype(np.int64), 2)
        return parity(columns & code) == sign.astype(np.bool_)
    functions, entries, negative = device.opened(pieces)
    return parity(entries & device.indices(functions, code)) == negative


def read(protocol: Any, records: Any) -> Any:
    """What records say of both strings of the pair, by part and whole, and of which question."""
    device = protocol.device
    asked, columns = device.asked(records), [device.asked(records)]
    whole = asked == device.questions if device.weight else np.ones(len(asked), np.bool_)
    for rows, wholly in ((asked < device.questions, False), (whole, True)):
        for text in PAIR:
            symbols = np.repeat(device.strings.symbols([text]), rows.sum(), axis=0)
            codes = device.whole_codes(symbols) if wholly else device.part_codes(symbols, asked[rows])
            own = np.zeros(len(asked), np.int64)
            half = device.whole if wholly else device.part
            own[rows] = said(half, device.cut(records[rows], whole=wholly), codes)
            columns.append(own)
    both = np.stack(columns, axis=1)
    # The more of it speaks for the first, the likelier it is.
    return np.hstack([both, (both[:, 1] + both[:, 3] - both[:, 2] - both[:, 4])[:, None]])


@pytest.mark.sharpest("4.0-TreeHist-2-shape1")
@pytest.mark.parametrize(("kind", "weight", "shape"), KINDS)
@pytest.mark.parametrize("epsilon", TRIALS)
def test_the_bytes_keep_epsilon_and_use_it(kind: Any, weight: int, shape: Any, epsilon: float) -> None:
    protocol = kind(epsilon=epsilon, strings=Strings(length=2, alphabet="ab"), weight=weight, **shape)
    generator = np.random.default_rng(7)
    found = audit(
        lambda value, size: read(protocol, protocol.randomize_batch([PAIR[value]] * size, generator).records),
        epsilon=epsilon,
        pairs=[(0, 1)],
        # Halves of epsilon are seen in fewer reports.
        trials=TRIALS[epsilon] if weight else TRIALS[epsilon] * 3 // 2,
        batch=True,
        confidence=CERTAIN,
    )
    assert not found.violated
    accepts_only(audited(found), epsilon, nine_tenths=0.9 * epsilon)
