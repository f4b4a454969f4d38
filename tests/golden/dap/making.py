"""DAP's parties, and the stores of two aggregators that answered one collection and go on with the next.

Keys, seals and noise are drawn anew, so that stores are other bytes whenever they are made; the files of
parties are the same bytes each time.
"""

from __future__ import annotations

import tempfile
from pathlib import Path

from sfumato.federated.dap.collection_messages import BatchMode
from sfumato.federated.dap.task import DapTask
from sfumato.federated.dap.version import Role
from sfumato.server.dap.party import DapParty
from sfumato.server.dap.party_secrets import PartySecrets
from tests.golden.write import in_lines
from tests.server.dap.setting import Pair

__all__ = ["SECRETS", "files", "parties"]

SECRETS = {
    role: PartySecrets(role, bytes([role]) * 32) for role in (Role.LEADER, Role.HELPER, Role.COLLECTOR)
}


def parties() -> dict[Role, DapParty]:
    """Leader, helper and collector, each of its own secrets; the leader selects batches of three reports."""
    parts = {role: secrets.public for role, secrets in SECRETS.items()}
    task = DapTask(
        task_id=bytes(range(32)),
        leader="http://127.0.0.1:8421",
        helper="http://127.0.0.1:8422/dap",
        vdaf={"type": "Prio3Histogram", "length": 3, "chunk_length": 2},
        collector=parts[Role.COLLECTOR].key,
        min_batch_size=3,
        batch_mode=BatchMode.LEADER_SELECTED,
    )
    return {
        Role.LEADER: SECRETS[Role.LEADER].joined(task, [parts[Role.HELPER], parts[Role.COLLECTOR]]),
        Role.HELPER: SECRETS[Role.HELPER].joined(task, [parts[Role.LEADER]]),
        Role.COLLECTOR: SECRETS[Role.COLLECTOR].joined(task),
    }


def files() -> dict[str, bytes]:
    """All golden files, by name."""
    made = parties()
    found: dict[str, bytes] = {}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for role, secrets in SECRETS.items():
            called = role.name.lower()
            secrets.to_file(folder / f"{called}.secret")
            made[role].to_file(folder / f"{called}.json")
            found |= {
                f"{called}{end}": (folder / f"{called}{end}").read_bytes() for end in (".secret", ".json")
            }
            found[f"{called}.part"] = in_lines(secrets.public.specification())
        with Pair(folder, made) as pair:
            pair.upload(pair.reports([0, 1, 1, 2]))  # three of them are a batch, and one is in the next
            pair.collection(1)
            pair.run()
            answer = pair.collection(1, method="GET")[1]
            pair.collection(2)
            pair.upload(pair.reports([2]))  # which is not aggregated yet
        for role in (Role.LEADER, Role.HELPER):
            called = role.name.lower()
            found[f"{called}.db"] = (folder / called / f"{called}.db").read_bytes()
        return {**found, "collection-1.bin": answer}
