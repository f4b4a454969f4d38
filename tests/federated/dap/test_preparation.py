"""What one aggregator does with report shares, where a client tries to part the two."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from sfumato.federated.dap.aggregation_messages import PingPong, PingPongKind
from sfumato.federated.dap.preparation import Preparation
from sfumato.federated.dap.report_messages import HpkeCiphertext, ReportMetadata, ReportShare
from sfumato.federated.dap.sealing import HpkeKey
from sfumato.federated.dap.task import DapTask
from sfumato.federated.dap.version import Role

KEY = HpkeKey(bytes(range(32)))
ID = bytes(range(16))


def task() -> DapTask:
    return DapTask(
        task_id=bytes(32),
        leader="http://a",
        helper="http://b",
        vdaf={"type": "Prio3SumVec", "length": 3, "max_measurement": 3, "chunk_length": 2},
        collector=KEY.config,
        min_batch_size=2,
    )


def sides(public: bytes, shares: list[bytes]) -> tuple[list[bool], list[bool]]:
    """Which aggregators find a report sound at first, and what leader and helper accept in the end."""
    made, given = task(), ReportShare(ReportMetadata(ID, 7), public, HpkeCiphertext(1, b"e", b"p"))
    both = [Preparation(made, role, KEY, bytes(32)) for role in (Role.LEADER, Role.HELPER)]
    leader, helper = (one.begun([given], {ID: share}) for one, share in zip(both, shares, strict=True))
    first = PingPong(PingPongKind.INITIALIZE, share=leader.shares.tobytes()).to_bytes()
    answer = both[1].answered(helper, [first])
    last = PingPong(PingPongKind.FINISH, answer.messages.tobytes()).to_bytes()
    found = both[0].finished(leader, {ID: last})
    sound = [bool(one.state.sound.all()) for one in (leader, helper)]
    return sound, [bool(one.accepted.all()) for one in (found, answer)]


def test_an_honest_report_is_accepted_by_both() -> None:
    made = task().prio3.shard([[3, 0, 2]], np.frombuffer(ID, np.uint8)[None])
    shares = [share.tobytes() for share in made.input_shares]
    assert sides(made.public_shares.tobytes(), shares) == ([True, True], [True, True])


def parting(wrong: int, monkeypatch: pytest.MonkeyPatch) -> tuple[bytes, list[bytes]]:
    """A public share that is false for one of them, and a proof for what both will compute then."""
    prio3 = task().prio3
    steps, expansion, field = prio3.steps, prio3.steps.expansion, prio3.circuit.field
    nonce = np.frombuffer(ID, np.uint8)[None]
    seed, blind, other, proving, false = (np.full((1, 32), byte, np.uint8) for byte in range(5))
    encoded = prio3.circuit.encode([[3, 3, 3]])
    shares = [expansion.measurement_share(seed, 1, prio3.circuit.encoded_length)]
    shares.insert(0, field.subtracted(encoded, shares[0]))
    parts = [expansion.joint_part(each, j, nonce, shares[j]) for j, each in enumerate((other, blind))]
    public = [*parts[:wrong], false, *parts[wrong + 1 :]]
    inputs: list[Any] = []
    for j in range(2):  # each aggregator corrects its own part, as the draft has it
        seen = np.concatenate([*public[:j], parts[j], *public[j + 1 :]], axis=1)
        joint = steps._joint_randomness(expansion.joint_seed(seen))
        inputs.append(prio3.circuit.inputs(shares[j], joint, 2))
    whole = field.added(*inputs)
    random = expansion.prove_randomness(proving, steps.proof.prove_length * prio3.proofs)
    with monkeypatch.context() as patched:
        patched.setattr(type(prio3.circuit), "inputs", lambda *_: whole)
        proof = steps.proof.prove(encoded, random, joint)
    proof = field.subtracted(proof, expansion.proof_share(seed, 1, steps.proofs_length))
    leader = np.concatenate([field.encoded(shares[0]), field.encoded(proof), other], axis=1)
    helper = np.concatenate([seed, blind], axis=1)
    return np.concatenate(public, axis=1).tobytes(), [leader.tobytes(), helper.tobytes()]


def test_a_client_cannot_part_the_aggregators(monkeypatch: pytest.MonkeyPatch) -> None:
    for wrong in (0, 1):
        sound, accepted = sides(*parting(wrong, monkeypatch))
        assert accepted == [False, False]
        assert sound == [wrong != 0, wrong != 1]
