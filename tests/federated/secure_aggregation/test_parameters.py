"""Bad parameters are refused before any key is made; good ones are written and read."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from sfumato.errors import ParameterError
from sfumato.federated import SecureAggregation, simulate_round

GOOD: dict[str, Any] = {"clients": 9, "length": 3, "bounds": (-1, 2), "bits": 5, "minimum_survivors": 6}
REFUSED: list[tuple[dict[str, object], str]] = [
    ({"clients": 2}, "clients must be an integer of at least 3"),
    ({"clients": (1 << 20) + 1}, "clients must be at most 2^20"),
    ({"length": 0}, "length must be"),
    ({"round_number": -1}, "round_number must be"),
    ({"bounds": 3}, "bounds must be a pair"),
    ({"bounds": (0.5, 1)}, "bounds must be an integer"),
    ({"bounds": (2, -1)}, "bounds must be in ascending order"),
    ({"bits": 4}, "bits must be from 5 to 63, so that the sum of all clients does not wrap around, got 4"),
    ({"bits": 64}, "bits must be from 5 to 63"),
    ({"bounds": (1 << 62, 1 << 62)}, "bits must be"),
    ({"minimum_survivors": 10}, "minimum_survivors must be at most the 9 clients, got 10"),
    ({"minimum_survivors": 1}, "minimum_survivors must be an integer of at least 2"),
    ({"threshold": 4}, "threshold must be above half of the 8 neighbors, and at most all of them, got 4"),
    ({"threshold": 9}, "threshold must be above half"),
    ({"degree": 4, "threshold": 2}, "threshold must be above half of the 4 neighbors"),
    ({"degree": 9}, "degree must be even, or all 8 other clients, got 9"),
    ({"degree": 3}, "degree must be even"),
    ({"active": True, "threshold": 5}, "threshold must be above two thirds of the 8 neighbors"),
    ({"modular": True}, "bounds must be (-16, 15) where entries are residues, got (-1, 2)"),
    ({"modular": True, "bits": 64}, "bits must be at most 63, got 64"),
    (
        {"active": True, "degree": 6, "minimum_survivors": 4},
        "minimum_survivors must be more than half of the clients in the active mode on a sparse graph, got 4",
    ),
]


def test_bad_parameters_are_refused() -> None:
    for change, message in REFUSED:
        with pytest.raises(ParameterError) as caught:
            SecureAggregation(**(GOOD | change))
        assert str(caught.value).startswith(message)


def test_parameters_are_written_and_read() -> None:
    plan = SecureAggregation(**GOOD, active=True, round_number=8)
    assert plan.to_json() == {
        "format": "sfumato.secure_aggregation",
        "version": 1,
        "clients": 9,
        "length": 3,
        "bounds": [-1, 2],
        "bits": 5,
        "minimum_survivors": 6,
        "degree": 8,
        "threshold": 6,
        "active": True,
        "round": 8,
    }
    again = SecureAggregation.from_json(plan.to_json())
    assert again == plan
    assert again.digest == plan.digest
    assert plan.digest.hex() == "d5d97703341403d0b96c43834fec23152c4606b85c4ce43c19b49fb1e83b21d8"
    other = SecureAggregation(**GOOD, active=True, round_number=9)
    assert other.digest != plan.digest


def test_vectors_are_clipped_and_sums_are_lifted() -> None:
    plan = SecureAggregation(**GOOD)
    assert plan.encoded([-5, 1, 9]).tolist() == [-1, 1, 2]
    assert plan.encoded(np.array([(1 << 64) - 1, 0, 0], np.uint64)).tolist() == [2, 0, 0]
    for total in range(-9, 19):
        residue = np.array([total % 32], np.uint32)
        assert plan.decoded(residue, 9).tolist() == [total]
    for vector in ([1, 2], [[1, 2, 3]], [1.0, 2.0, 3.0], ["a", "b", "c"]):
        with pytest.raises(ParameterError, match=r"^vector must be 3 integers"):
            plan.encoded(vector)


def test_modular_sums_wrap_around_and_are_written() -> None:
    plan = SecureAggregation(**(GOOD | {"bounds": (-16, 15)}), modular=True)
    assert SecureAggregation.from_json(plan.to_json()) == plan
    assert plan.to_json()["modular"] is True
    assert plan.encoded([-17, 16, 40]).tolist() == [15, -16, 8]
    assert plan.encoded(np.array([(1 << 64) - 1, 32, 31], np.uint64)).tolist() == [-1, 0, -1]
    vectors = np.arange(27).reshape(9, 3) - 13
    found = simulate_round(plan, vectors, dropped=lambda client, message: client == 3 and message == "vector")
    total = vectors[list(found.survivors)].sum(axis=0)
    assert len(found.survivors) == 8
    assert found.total.tolist() == ((total + 16) % 32 - 16).tolist()
