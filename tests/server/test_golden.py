"""A shuffler's store that was written in the frozen format goes on where it was."""

from __future__ import annotations

import shutil
from pathlib import Path

from sfumato.server import Shuffler
from sfumato.server.monitoring.counters import COUNTED, Counters
from tests.golden.local.making import ANALYST, SHUFFLER, collection
from tests.golden.server import making

HERE = Path(making.__file__).parent


def test_a_store_goes_on_where_it_was(tmp_path: Path) -> None:
    shutil.copy(HERE / "waiting.db", tmp_path)
    with Shuffler(collection().device, SHUFFLER, tmp_path) as shuffler:
        assert shuffler.batches == 1
        shuffler.take([making.envelope(client) for client in (0, 1, 2, 3)])  # all of them known
        assert shuffler.batches == 1
        shuffler.take([making.envelope(client) for client in (4, 5)])
        assert shuffler.batches == 2
        opening = collection().opening(ANALYST)
        opening.add((HERE / "batch-000001.mixed").read_bytes())
        opening.add(shuffler.path(2).read_bytes())
    assert opening.aggregator.accepted == 6
    assert opening.estimate().raw.round(6).tolist() == [round(1 / 6, 6)] * 6


def test_a_store_made_today_has_the_same_tables(tmp_path: Path) -> None:
    (tmp_path / "now").write_bytes(making.files()["waiting.db"])
    assert making.tables(tmp_path / "now") == making.tables(HERE / "waiting.db")


def test_counters_go_on_where_they_were(tmp_path: Path) -> None:
    assert making.files()["counters"] == (HERE / "counters").read_bytes()
    shutil.copy(HERE / "counters", tmp_path)
    with Counters(tmp_path / "counters") as counters:
        later = len(COUNTED) - making.NAMED
        assert [counters[name] for name in COUNTED] == [*range(1, 13), *[0] * later]
