"""Losses of the golden files: every leaf and node in each relation that it takes, repeated and composed."""

from __future__ import annotations

import json
from collections.abc import Iterator
from functools import cache

from sfumato._wire import NUMBER, canonical
from sfumato.errors import NeighboringMismatch
from sfumato.privacy import MaxNoise, Neighboring, PrivacyLoss, PureDP, ReportNoisyMax
from tests.privacy.test_theorems import SAMPLES

__all__ = ["DELTAS", "files", "losses"]

DELTAS = (1e-6, 1e-8)


@cache
def losses() -> dict[str, list[PrivacyLoss]]:
    """Return the losses of each file."""
    made: dict[str, list[PrivacyLoss]] = {}
    for sample in SAMPLES.values():
        found = list(_under_each_relation(sample))
        kind = json.loads(found[0].to_json())["loss"]["kind"]
        made[kind] = [*found, *(loss * 3 for loss in found), *(loss * 2 + _other(loss) for loss in found)]
    made["report-noisy-max"] += [ReportNoisyMax(2.0, noise=noise, monotone=True) for noise in MaxNoise]
    return made


def _under_each_relation(sample: object) -> Iterator[PrivacyLoss]:
    for relation in Neighboring:
        try:
            yield sample(relation)  # type: ignore[operator]
        except NeighboringMismatch:
            continue


def _other(loss: PrivacyLoss) -> PrivacyLoss:
    assert loss.neighboring is not None
    return PureDP(0.25, neighboring=loss.neighboring)


def files() -> dict[str, bytes]:
    """Return each file: in each line a loss, and the epsilons at `DELTAS` that were then proved."""
    return {
        f"{kind}.jsonl": "".join(
            canonical(
                {
                    "epsilons": [NUMBER.encode(loss.epsilon(delta)) for delta in DELTAS],
                    "loss": json.loads(loss.to_json()),
                }
            )
            + "\n"
            for loss in found
        ).encode()
        for kind, found in losses().items()
    }
