"""Whole rounds: whoever drops out at whichever message, the sum is that of the survivors."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sfumato.errors import ParameterError
from sfumato.federated import SecureAggregation, simulate_round
from tests.cases import cases

CLIENTS = 7
MESSAGES = ("keys", "shares", "vector", "consent", "unmask")


def plan(**changes: object) -> SecureAggregation:
    base: dict[str, object] = {
        "clients": CLIENTS,
        "length": 5,
        "bounds": (-7, 9),
        "bits": 7,
        "minimum_survivors": 4,
    }
    return SecureAggregation(**(base | changes))  # type: ignore[arg-type]


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.integers(0, 12), min_size=CLIENTS, max_size=CLIENTS),
    st.sampled_from(
        [{}, {"degree": 4, "threshold": 3}, {"active": True, "threshold": 5}, {"active": True, "degree": 4}]
    ),
    st.integers(0, 2**32 - 1),
)
def test_the_sum_is_that_of_the_survivors(last: list[int], changes: dict[str, object], seed: int) -> None:
    """Each client ends before the message whose number is drawn, or never."""
    this = plan(**changes)
    vectors = np.random.default_rng(seed).integers(-9, 12, (CLIENTS, 5))
    ends = [MESSAGES[number] if number < len(MESSAGES) else "" for number in last]
    gone = {message: {c for c in range(CLIENTS) if ends[c] == message} for message in MESSAGES}
    alive = set(range(CLIENTS)) - gone["keys"] - gone["shares"] - gone["vector"]
    answering = alive - gone["unmask"] - (gone["consent"] if this.active else set())
    try:
        found = simulate_round(this, vectors, dropped=lambda client, message: ends[client] == message)
    except ParameterError:
        # A complete graph aborts for a reason that is known; a random one may lack neighbors before.
        if this.degree == CLIENTS - 1:
            assert len(alive) < 4 or len(alive) - 1 < this.shares or len(answering) - 1 < this.shares
        else:
            assert len(answering) < CLIENTS - 1
        return
    assert set(found.survivors) == alive
    assert len(alive) >= 4
    assert np.array_equal(found.total, vectors.clip(-7, 9)[sorted(alive)].sum(axis=0))


@cases("message", MESSAGES)
@pytest.mark.parametrize("active", [False, True])
def test_one_client_may_drop_out_anywhere(message: str, active: bool) -> None:
    this = plan(active=active)
    vectors = np.arange(CLIENTS * 5).reshape(CLIENTS, 5) % 13 - 5
    found = simulate_round(this, vectors, dropped=lambda client, at: client == 2 and at == message)
    counted = [c for c in range(CLIENTS) if c != 2 or message in {"consent", "unmask"}]
    assert found.survivors == tuple(counted)
    assert np.array_equal(found.total, vectors[counted].sum(axis=0))


def test_wide_moduli_and_odd_lengths() -> None:
    rng = np.random.default_rng(5)
    for bits, length in ((1, 1), (13, 9), (32, 17), (33, 3), (55, 11), (63, 70_001)):
        bound = max(0, (1 << bits) // 3 - 1)
        this = SecureAggregation(
            clients=3, length=length, bounds=(-bound // 2, bound // 2), bits=bits, minimum_survivors=3
        )
        vectors = rng.integers(-(bound // 2), bound // 2 + 1, (3, length))
        assert np.array_equal(simulate_round(this, vectors).total, vectors.sum(axis=0))


def test_each_client_gives_a_vector() -> None:
    with pytest.raises(ParameterError, match=r"^vectors must be 7, one for each client"):
        simulate_round(plan(), [[0] * 5] * 6)
