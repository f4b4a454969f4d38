"""A question whose process was killed is answered under its charge where no noise was drawn."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pytest

import sfumato as sf
from tests.forks import server_fork
from tests.postgres import Cluster
from tests.session.kill_lab import QUERY, STAGES

LAB = "import sys; from tests.session.kill_lab import main; main(sys.argv[1:])"

EXPECTED = {
    "before the charge": [1, 1, 1],
    "after the charge": [1, 1, 1],
    "after reading": [1, 1, 1],
    "after the draw was written": [2, 2, 1],
    "after the noise": [2, 2, 1],
    "after the commit": [1, None, 1],
}


def run(locations: dict[str, str]) -> object:
    given = [f"{stage}={location}" for stage, location in locations.items()]
    process = server_fork(LAB, *given, imports="import pandas, tests.session.kill_lab")
    out, err = process.communicate(timeout=300)
    assert process.returncode == 0, err
    return json.loads(out)


@pytest.mark.parametrize(
    "stages", [("after reading", "after the noise"), tuple(STAGES)], ids=["read and drawn", "all"]
)
def test_a_process_that_is_killed_costs_no_second_charge_unless_it_drew(
    tmp_path: Path, stages: tuple[str, ...]
) -> None:
    found = run({stage: str(tmp_path / f"{n}.ledger") for n, stage in enumerate(stages)})
    assert found == {stage: EXPECTED[stage] for stage in stages}


@pytest.mark.postgres
def test_the_same_holds_on_a_server(postgres: Cluster) -> None:
    assert run({stage: postgres.database() for stage in STAGES}) == EXPECTED


def test_an_interrupted_query_is_answered_under_its_charge_with_another_epsilon_anew() -> None:
    people = pa.table({"person": range(100)})
    with sf.connect(people, privacy_unit="person", epsilon=0.3, rng=1) as session:
        aggregate = session.engine.aggregate
        calls = []

        def interrupted(*given: object) -> object:
            calls.append(given)
            if len(calls) < 3:
                raise KeyboardInterrupt
            return aggregate(*given)  # type: ignore[arg-type]

        with pytest.MonkeyPatch.context() as patched:
            patched.setattr(type(session.engine), "aggregate", lambda _, *given: interrupted(*given))
            for _ in range(2):
                with pytest.raises(KeyboardInterrupt):
                    session.sql(QUERY)
            release = session.sql(QUERY)
        assert release.receipt is not None
        assert (release.replayed, release.receipt.sequence) == (False, 1)
        assert [entry.committed for entry in session.ledger.entries()] == [True]
        assert not session.sql(QUERY.replace("0.1", "0.2")).replayed
        assert len(session.ledger.entries()) == 2
        assert session.ledger.remaining().epsilon == 0
        assert session.ledger.verify().sound
