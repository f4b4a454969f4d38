"""What queries store is read back for as long as anybody keeps it, and written the same today."""

from __future__ import annotations

import io
import json
import zipfile
from pathlib import Path

import numpy as np
import pytest

from sfumato.cli.output.writing import Format, content
from sfumato.errors import LedgerUnavailable
from sfumato.queries.plan.policy import PrivacyPolicy
from sfumato.queries.release.record import ReleaseRecord
from tests.run_time import run_time

if run_time(__name__):
    from tests.golden.queries import making

FOLDER = Path(__file__).parents[1] / "golden" / "queries"


def members(name: str) -> dict[str, bytes]:
    with zipfile.ZipFile(FOLDER / name) as whole:
        return {member: whole.read(member) for member in whole.namelist()}


def test_there_are_sixty_queries() -> None:
    assert len(making.asked()) >= 60
    assert len(making.asked()) == len(members("releases.zip"))


def test_a_query_has_the_key_that_it_always_had() -> None:
    stored = json.loads((FOLDER / "keys.json").read_text())
    assert making.keys() == stored
    assert len(set(stored)) == len(stored)


def test_releases_are_read_back_and_written_the_same() -> None:
    made = making.releases()
    for (_, stored), today in zip(sorted(members("releases.zip").items()), made, strict=True):
        record = ReleaseRecord.from_bytes(stored)
        assert making.stated(record.to_bytes()) == making.stated(stored)
        # a scale's last digit follows from the libraries of the machine, and the drawn noise from the scale
        assert making.outline(today) == making.outline(stored)
        now = ReleaseRecord.from_bytes(today)
        if (now.loss, now.computed) == (record.loss, record.computed):
            assert making.stated(today) == making.stated(stored)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (b'"sfumato.release"', b'"sfumato.another"'),
        (b'"threshold":', b'"thresholt":'),
        (b'"discrete-', b'"whatever-'),
        (b'"count-rows"', b'"count-runs"'),
    ],
)
def test_a_name_that_is_not_known_is_refused(old: bytes, new: bytes) -> None:
    payload = members("releases.zip")["00.arrow"]
    assert old in payload
    with pytest.raises(LedgerUnavailable, match="install a newer sfumato"):
        ReleaseRecord.from_bytes(payload.replace(old, new))


def test_committed_queries_and_a_killed_counter_cost_nothing_again(tmp_path: Path) -> None:
    stored = members("ledger.zip")
    digests, released = json.loads(stored["digests.json"]), json.loads(stored["counter.json"])
    for name in ("people.ledger", "counter.npz"):
        (tmp_path / name).write_bytes(stored[name])
    with making.session(ledger=tmp_path / "people.ledger") as session:
        spent = session.ledger.remaining()
        for (text, groups), committed in zip(making.asked(), digests, strict=True):
            release = session.sql(text, public_groups=groups)
            assert release.replayed, text
            assert making.digest(release.record.to_bytes()) == committed
            assert release.to_arrow(intervals=True).num_columns > 0
        with making.counter(session, tmp_path / "counter.npz") as counter:
            found = making.counted(counter.refresh(making.START + making.PERIODS * making.DAY))
        assert session.ledger.remaining() == spent
    for name, sums in released.items():
        assert len(sums) == making.COUNTED
        assert found[name][: making.COUNTED] == sums
        assert len(found[name]) == making.PERIODS


def test_a_counter_writes_its_state_the_same(tmp_path: Path) -> None:
    stored = members("ledger.zip")
    for name in ("people.ledger", "counter.npz"):
        (tmp_path / name).write_bytes(stored[name])
    with (
        making.session(ledger=tmp_path / "people.ledger") as session,
        making.counter(session, tmp_path / "counter.npz") as counter,
    ):
        counter.refresh(making.START + making.COUNTED * making.DAY)
    written = (tmp_path / "counter.npz").read_bytes()
    first, second = (np.load(io.BytesIO(each)) for each in (stored["counter.npz"], written))
    assert sorted(first.files) == sorted(second.files)
    for name in first.files:
        assert first[name].tobytes() == second[name].tobytes()


def test_a_fingerprint_is_what_it_was() -> None:
    assert making.fingerprints() == json.loads((FOLDER / "fingerprints.json").read_text())


def test_a_policy_is_read() -> None:
    policy = PrivacyPolicy.read(FOLDER / "policy.json")
    assert policy == PrivacyPolicy(
        privacy_unit_column="person",
        max_epsilon_per_query=1.0,
        delta_per_query=1e-6,
        epsilon_budget=10.0,
        delta_budget=1e-5,
        max_groups_contributed=2,
    )


def test_an_answer_in_json_is_written_the_same() -> None:
    assert content(making.ANSWER, Format.JSON) == (FOLDER / "answer.json").read_bytes()
