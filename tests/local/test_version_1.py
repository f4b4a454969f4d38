"""What was written before wire version 2 is read where it can be, and else refused by its version."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from sfumato.errors import ParameterError
from sfumato.local import device, shuffle
from sfumato.local.base.specifications import protocol_from_specification
from tests.golden.local import making

HERE = Path(making.__file__).parent / "version-1"
KNOWN: dict[str, Any] = json.loads((HERE / "protocols.json").read_text())


def test_specifications_batches_and_states_are_refused_by_their_version() -> None:
    for known in KNOWN.values():
        with pytest.raises(
            ParameterError, match=r"version of sfumato.randomizer from 2 to 2, got 1; have it"
        ):
            device.Randomizer.from_specification(known["randomizer"])
        batch, state = bytes.fromhex(known["reports"]), bytes.fromhex(known["state"])
        with pytest.raises(ParameterError, match="data must be of version 2, got 1; ask those devices again"):
            device.ReportBatch.from_bytes(batch)
        protocol: Any = protocol_from_specification(known["protocol"])
        with pytest.raises(
            ParameterError, match="state must be of version 2, got 1; count the reports again"
        ):
            protocol.aggregator(state)
        aggregator = protocol.aggregator()
        assert aggregator.add_batch(batch) == 0
        width = int.from_bytes(batch[12:16], "little")
        assert not any(aggregator.add(batch[at : at + width]) for at in range(56, len(batch), width))
        assert sum(aggregator.refused.values()) == 1 + (len(batch) - 56) // width
    later = KNOWN["split-budget"]["reports"].replace("73666d744c4f434c0100", "73666d744c4f434c0300")
    with pytest.raises(ParameterError, match="got 3; use a newer sfumato"):
        device.ReportBatch.from_bytes(bytes.fromhex(later))


def test_a_collection_and_its_batches_are_refused_by_their_version() -> None:
    written = json.loads((HERE / "collection.json").read_text())
    for read in (shuffle.Collection.from_specification, device.PublicCollection.from_specification):
        with pytest.raises(ParameterError, match=r"version of sfumato.collection from 2 to 2, got 1"):
            read(written)
    with pytest.raises(ParameterError, match="a batch must be of version 2, got 1; open it by the sfumato"):
        shuffle.MixedBatch.from_bytes((HERE / "batch-000001.mixed").read_bytes())


def test_a_secret_key_is_read_and_a_public_one_without_a_checksum_is_not(tmp_path: Path) -> None:
    for role, known in (("analyst", making.ANALYST), ("shuffler", making.SHUFFLER)):
        shutil.copy(HERE / f"{role}.key", tmp_path / role)
        (tmp_path / role).chmod(0o600)
        assert shuffle.SecretKey.from_file(tmp_path / role, role).public == known.public
        with pytest.raises(ParameterError, match=f"{role} must have a checksum, .* it is a key of version 1"):
            device.PublicKey.from_text((HERE / f"{role}.pub").read_text(), role)


def test_a_memo_store_opens_and_its_questions_are_others(tmp_path: Path) -> None:
    # A question of version 2 has another digest: no memo of an older one answers it.
    shutil.copy(HERE / "memos", tmp_path / "memos")
    with device.MemoStore.open(tmp_path / "memos", making.STORE_KEY, at_least=3) as store:
        assert len(store.questions) == 2
        for question, _ in making.questions():
            assert question.digest not in store.questions
            assert store.client(question).memos == 0
