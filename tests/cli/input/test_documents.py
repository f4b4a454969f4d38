"""Documents that other commands wrote."""

from __future__ import annotations

from pathlib import Path

import pytest

from sfumato.cli.input.documents import read_document
from sfumato.errors import ParameterError, SourceError


def test_an_object_is_read_and_all_else_refused(tmp_path: Path) -> None:
    path = tmp_path / "x.json"
    path.write_text('{"a": 1}')
    assert read_document(path, "task", "sfumato write") == {"a": 1}
    for text in ("[1]", "{", "[" * 100_000, "\udcff".encode("utf-8", "surrogatepass").decode("latin-1")):
        path.write_text(text, encoding="utf-8")
        with pytest.raises(ParameterError, match=r"must be a task's file, .* write one with `sfumato write`"):
            read_document(path, "task", "sfumato write")
    with pytest.raises(SourceError, match="must be a file that can be read"):
        read_document(tmp_path / "none", "task", "sfumato write")
