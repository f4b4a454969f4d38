"""The guide to the shuffler runs as it stands, and names what the service has."""

from __future__ import annotations

import json
import re
import tomllib
from pathlib import Path
from typing import Any

import pytest

from sfumato.local.shuffle import SecretKey
from sfumato.server.hosting.collection_settings import SHUFFLED
from sfumato.server.hosting.configuration import Configuration
from sfumato.server.hosting.service_settings import SETTINGS
from tests.server.setting import ANALYST, SHUFFLER, collection

PAGE = (Path(__file__).parents[2] / "docs" / "shuffler.md").read_text(encoding="utf-8")


def test_the_guide_runs() -> None:
    blocks = re.findall(r"^```python\n(.*?)^```", PAGE, re.DOTALL | re.MULTILINE)
    assert len(blocks) == 7
    space: dict[str, Any] = {}
    for block in blocks:
        exec(block, space)


def test_the_example_of_a_file_is_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    block, further = re.findall(r"^```toml\n(.*?)^```", PAGE, re.DOTALL | re.MULTILINE)
    block = block.replace("# certificate", "certificate")
    assert set(tomllib.loads(block)) == {*SETTINGS, "collections"}
    for week in ("week-7", "week-8"):
        made = collection(4, name=week)
        (tmp_path / f"{week}.json").write_text(json.dumps(made.specification()))
    for name in ("week-7-first", "week-8"):
        SHUFFLER.to_file(tmp_path / f"{name}.key")
    SecretKey("shuffler", b"l" * 32).to_file(tmp_path / "second.key")
    monkeypatch.setenv("WEEK_7_SECOND_KEY", (tmp_path / "second.key").read_text())
    for key in (ANALYST, SecretKey("analyst", b"m" * 32)):
        further = further.replace("sfumato-analyst-public-2:...", key.public.to_text(), 1)
    (tmp_path / "collector.toml").write_text(block.replace("/etc/sfumato/keys/", "") + further)
    read = Configuration(
        file=tmp_path / "collector.toml", kind=SHUFFLED, options={}, environment={}, default_port=0
    )
    service, collections = read.read()
    found: dict[str, Any] = dict(collections)
    assert (service.default, list(found), found["week-8"].rate) == ("week-7", ["week-7", "week-8"], 500.0)
    assert [len(found[name].analysts.keys) for name in found] == [2, 1]
    assert found["week-7"].window.times()["expires"] == "2027-01-11T00:00:00+00:00"
