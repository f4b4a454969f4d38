"""What `federated` sends and stores: rounds of secure aggregation, plans, reports of trust, DAP, and STAR.

Keys, seeds and seals are drawn anew, so that rounds and STAR's reports are other bytes whenever they are
made; all else is the same bytes each time. The sum of each round is that of `VECTORS` without the client
`LOST`.
"""

from __future__ import annotations

from typing import Any

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from sfumato.federated import (
    Collusion,
    DistributedDiscreteGaussian,
    DistributedSkellam,
    SecureAggregation,
    SecureAggregationClient,
    SecureAggregationServer,
    Star,
    TrustReport,
)
from sfumato.federated.dap.aggregation_messages import (
    AggregationJobContinueReq,
    AggregationJobInitReq,
    AggregationJobResp,
    PingPong,
    PingPongKind,
    PrepareContinue,
    PrepareInit,
    PrepareResp,
    PrepareStep,
)
from sfumato.federated.dap.collection_messages import (
    AggregateShare,
    AggregateShareAad,
    AggregateShareReq,
    BatchMode,
    BatchQuery,
    CollectionJobReq,
    CollectionJobResp,
    Interval,
)
from sfumato.federated.dap.hpke_config import HpkeConfig
from sfumato.federated.dap.report_messages import (
    HpkeCiphertext,
    InputShareAad,
    PlaintextInputShare,
    Report,
    ReportError,
    ReportMetadata,
    ReportShare,
    ReportUploadStatus,
)
from sfumato.federated.dap.task import DapTask
from sfumato.federated.secure_aggregation.client_state import client_to_bytes
from tests.golden.write import in_lines

__all__ = ["LOST", "MESSAGES", "STAR", "VECTORS", "files", "identity", "plans"]

LOST = 3
VECTORS = [[number, 9 - number, 5] for number in range(6)]
STAR = Star(threshold=3, epoch=b"2026-11", value_bytes=8, data_bytes=4)
POINT = bytes.fromhex("8f40c5adb68f25624ae5b214ea767a6ec94d829d3d7b5e1ad1ba6f3e2138285f")
NOISE: Any = {
    "scale": 1024.0,
    "clients": 100,
    "minimum_survivors": 80,
    "dimension": 100,
    "clip_norm": 1.5,
    "noise_multiplier": 2.0,
    "bits": 20,
}


META, SEALED = ReportMetadata(bytes(range(16)), 77), HpkeCiphertext(7, b"point", b"sealed")
BATCH = BatchQuery(BatchMode.LEADER_SELECTED, batch_id=bytes(range(32)))
HOUR = BatchQuery(BatchMode.TIME_INTERVAL, interval=Interval(7, 2))
FINISH = PingPong(PingPongKind.FINISH, b"message")
MESSAGES: tuple[Any, ...] = (
    HpkeConfig(7, POINT),
    Report(META, b"public", SEALED, SEALED),
    PlaintextInputShare((), b"share"),
    InputShareAad(bytes(range(32)), META, b"public"),
    ReportUploadStatus(META.report_id, ReportError.REPORT_DROPPED),
    FINISH,
    AggregationJobInitReq(b"", BATCH, (PrepareInit(ReportShare(META, b"p", SEALED), FINISH.to_bytes()),)),
    AggregationJobContinueReq(1, (PrepareContinue(META.report_id, b"x"),)),
    AggregationJobResp((PrepareResp(META.report_id, PrepareStep.CONTINUE, FINISH.to_bytes()),)),
    CollectionJobReq(HOUR),
    CollectionJobResp(BATCH, 100, Interval(70, 9), SEALED, SEALED),
    AggregateShareReq(HOUR, b"", 100, bytes(range(32))),
    AggregateShare(SEALED),
    AggregateShareAad(bytes(range(32)), b"", BATCH),
)


def plans() -> dict[str, SecureAggregation]:
    """One plan for each mode."""
    sizes: Any = {"clients": 6, "length": 3, "minimum_survivors": 4}
    return {
        "semi-honest": SecureAggregation(**sizes, bounds=(0, 9), bits=6, round_number=7),
        "active": SecureAggregation(**sizes, bounds=(-2, 9), bits=7, active=True),
        "modular": SecureAggregation(**sizes, bounds=(-8, 7), bits=4, modular=True),
        "sparse": SecureAggregation(
            clients=12, length=1, bounds=(0, 1), bits=4, minimum_survivors=9, degree=6, threshold=4
        ),
    }


def identity(client: int) -> Ed25519PrivateKey:
    """What a client signs with."""
    return Ed25519PrivateKey.from_private_bytes(bytes([client]) * 32)


def recorded_round(plan: SecureAggregation) -> dict[str, Any]:
    """Return a round's messages in hexadecimal digits, and a client's state before each of its answers."""
    known = {n: identity(n).public_key().public_bytes_raw() for n in range(plan.clients)}
    register = known if plan.active else None
    server = SecureAggregationServer(plan, identities=register)
    clients = [
        SecureAggregationClient(plan, n, identity=identity(n) if plan.active else None, identities=register)
        for n in range(plan.clients)
    ]
    staying = {n: client for n, client in enumerate(clients) if n != LOST}
    states = []

    def noted() -> None:
        if not plan.active:
            states.append(client_to_bytes(clients[1]).hex())

    noted()
    said: dict[str, Any] = {"keys": [client.advertise() for client in clients]}
    _give(server, said["keys"])
    said["roster"] = list(server.rosters().values())
    noted()
    said["shares"] = [client.share(roster) for client, roster in zip(clients, said["roster"], strict=True)]
    _give(server, said["shares"])
    said["delivery"] = list(server.deliveries().values())
    noted()
    said["vector"] = [client.mask(said["delivery"][n], VECTORS[n]) for n, client in staying.items()]
    _give(server, said["vector"])
    request = server.survivors()
    said["survivors"] = [request]
    if plan.active:
        said["consent"] = [client.consent(request) for client in staying.values()]
        _give(server, said["consent"])
        request = server.evidence()
        said["evidence"] = [request]
    noted()
    said["unmask"] = [client.unmask(request) for client in staying.values()]
    _give(server, said["unmask"])
    server.aggregate()
    shown = {kind: [message.hex() for message in messages] for kind, messages in said.items()}
    return {"plan": plan.to_json(), "messages": shown, "states": states}


def _give(server: SecureAggregationServer, messages: list[bytes]) -> None:
    for message in messages:
        server.receive(message)


def files() -> dict[str, bytes]:
    """All golden files, by name."""
    known = plans()
    collusions = (
        Collusion(colluders=0, masks_hold=True, epsilon=1.5),
        Collusion(colluders=7, masks_hold=False, epsilon=None),
    )
    reports = {
        "priced": TrustReport(
            setting="A setting.",
            colluding="clients",
            statements=("One thing.", "Another."),
            delta=1e-6,
            rows=collusions,
        ),
        "plain": TrustReport(setting="Another.", colluding="aggregators", statements=(), delta=None, rows=()),
    }
    noises = (DistributedDiscreteGaussian(**NOISE), DistributedSkellam(**NOISE))
    values = [STAR.report(value, randomness=bytes([n]) * 32, data=b"%d" % at) for n, value, at in STAR_VALUES]
    task = DapTask(
        task_id=bytes(range(32)),
        leader="https://leader.example/dap",
        helper="https://helper.example",
        vdaf={"type": "Prio3Histogram", "length": 4, "chunk_length": 2},
        collector=HpkeConfig(7, POINT),
        min_batch_size=100,
        batch_mode=BatchMode.LEADER_SELECTED,
        time_precision=60,
        start=5,
        duration=1000,
        epsilon=0.5,
        delta=1e-6,
    )
    return {
        "plans.json": in_lines({name: plan.to_json() for name, plan in known.items()}),
        "round-semi-honest.json": in_lines(recorded_round(known["semi-honest"])),
        "round-active.json": in_lines(recorded_round(known["active"])),
        "noises.json": in_lines({type(noise).__name__: noise.to_json() for noise in noises}),
        "trust-reports.json": in_lines({name: report.to_json() for name, report in reports.items()}),
        "star-reports.json": in_lines([value.hex() for value in values]),
        "dap-task.json": in_lines(task.specification()),
        "dap-messages.json": in_lines({type(value).__name__: value.to_bytes().hex() for value in MESSAGES}),
    }


STAR_VALUES = [(1, b"yes", 1), (1, b"yes", 2), (2, b"no", 3), (1, b"yes", 4), (2, b"no", 5)]
"""The value's randomness, the value, and the data beside it."""
