"""Aggregators whose stores and parties were written in the frozen formats go on where they were."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

from sfumato.federated.dap.collection_messages import BatchQuery, CollectionJobResp
from sfumato.federated.dap.tls_syntax import decoded
from sfumato.federated.dap.unsharding import collected_batch
from sfumato.federated.dap.version import Role
from sfumato.server.dap.party import DapParty
from sfumato.server.dap.party_secrets import PartySecrets, PublicPart
from tests.golden.dap import making
from tests.golden.server.making import tables
from tests.server.dap.setting import Pair

HERE = Path(making.__file__).parent
DRAWN = {"leader.db", "helper.db", "collection-1.bin"}


def opened(folder: Path, name: str) -> Path:
    """Copy a secret file to where its owner alone can read it."""
    path = Path(shutil.copy(HERE / name, folder))
    path.chmod(0o600)
    return path


def test_files_written_today_are_those_written_first(tmp_path: Path) -> None:
    made = making.files()
    assert sorted(made) == sorted(path.name for path in HERE.iterdir() if path.suffix not in (".py", ""))
    for name, content in made.items():
        if name not in DRAWN:
            assert content == (HERE / name).read_bytes(), name
    for name in ("leader.db", "helper.db"):
        (tmp_path / name).write_bytes(made[name])
        assert tables(tmp_path / name) == tables(HERE / name)


def test_parties_are_read(tmp_path: Path) -> None:
    for role, party in making.parties().items():
        name = role.name.lower()
        assert DapParty.from_file(opened(tmp_path, f"{name}.json")) == party
        assert PartySecrets.from_file(opened(tmp_path, f"{name}.secret")) == making.SECRETS[role]
        document = json.loads((HERE / f"{name}.part").read_text())
        assert PublicPart.from_specification(document) == making.SECRETS[role].public


def test_aggregators_go_on_where_they_were(tmp_path: Path) -> None:
    for name in ("leader", "helper"):
        (tmp_path / name).mkdir()
        shutil.copy(HERE / f"{name}.db", tmp_path / name)
    made = making.parties()
    with Pair(tmp_path, made) as pair:
        status, answer = pair.collection(1, method="GET")
        assert (status, answer) == (200, (HERE / "collection-1.bin").read_bytes())
        query = BatchQuery(pair.task.batch_mode)
        response = decoded(answer, CollectionJobResp.read)
        first = collected_batch(pair.task, made[Role.COLLECTOR].key, query, response)
        assert pair.collection(2, method="GET") == (202, b"")  # one report is counted, and one waits
        pair.upload(pair.reports([0]))
        second = pair.collect(2)
    assert (first.reports, second.reports) == (3, 3)
    assert [one + other for one, other in zip(first.result, second.result, strict=True)] == [2, 2, 2]
