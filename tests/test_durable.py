"""Files that are whole or not there, and whose they are."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from sfumato._durable import new_file, replace_file, sync_folder, write_file, write_whole


def test_what_is_written_is_the_owners_alone_and_brought_to_the_disk(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    synced: list[int] = []
    sync = os.fsync

    def noted(held: int) -> None:
        synced.append(os.fstat(held).st_ino)
        sync(held)

    monkeypatch.setattr(os, "fsync", noted)
    first, second = tmp_path / "first", tmp_path / "second"
    write_file(first, b"longer than")
    write_file(first, b"that")
    new_file(second, b"this")
    assert (first.read_bytes(), second.read_bytes()) == (b"that", b"this")
    assert {path.stat().st_mode & 0o777 for path in (first, second)} == {0o600}
    sync_folder(tmp_path)
    assert synced == [path.stat().st_ino for path in (first, first, second, tmp_path)]


def test_what_is_there_is_left(tmp_path: Path) -> None:
    path = tmp_path / "file"
    new_file(path, b"mine", mode=0o640)
    assert path.stat().st_mode & 0o777 & ~0o640 == 0
    with pytest.raises(FileExistsError):
        new_file(path, b"other")
    assert path.read_bytes() == b"mine"


def test_no_link_is_followed(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(tmp_path / "elsewhere")
    for write in (write_file, new_file):
        with pytest.raises(OSError):  # noqa: PT011 - of another kind on each system
            write(tmp_path / "link", b"secret")
    assert not (tmp_path / "elsewhere").exists()


def test_content_is_put_in_place_in_one_step(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path, draft = tmp_path / "file", tmp_path / "draft"
    replace_file(path, draft, b"old")
    with monkeypatch.context() as broken:
        broken.setattr(Path, "replace", lambda *_: (_ for _ in ()).throw(OSError("killed here")))
        with pytest.raises(OSError, match="killed here"):
            replace_file(path, draft, b"new")
    assert path.read_bytes() == b"old"
    replace_file(path, draft, b"new")
    assert path.read_bytes() == b"new"
    assert sorted(tmp_path.iterdir()) == [path]


def test_a_whole_file_takes_the_place_and_the_readers_of_what_was_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, seen = tmp_path / "file", []
    mask = os.umask(0o027)
    try:
        write_whole(path, b"first")
        assert path.stat().st_mode & 0o777 == 0o640
        path.chmod(0o604)  # nothing that a mask would leave
        replace = Path.replace

        def noted(draft: Path, target: Path) -> Path:
            seen.append(draft.stat().st_mode & 0o777)
            return replace(draft, target)

        monkeypatch.setattr(Path, "replace", noted)
        write_whole(path, b"second")
        assert (path.read_bytes(), path.stat().st_mode & 0o777) == (b"second", 0o604)
        write_whole(path, b"third", mode=0o600)
        assert (path.read_bytes(), path.stat().st_mode & 0o777) == (b"third", 0o600)
        assert seen == [0o604, 0o600]
    finally:
        os.umask(mask)
    assert [each.name for each in tmp_path.iterdir()] == ["file"]


def test_a_draft_that_fails_is_gone_and_what_was_there_is_left(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "file"
    write_whole(path, b"old")
    monkeypatch.setattr(os, "fsync", lambda _: (_ for _ in ()).throw(OSError("disk full")))
    with pytest.raises(OSError, match="disk full"):
        write_whole(path, b"new")
    assert path.read_bytes() == b"old"
    assert [each.name for each in tmp_path.iterdir()] == ["file"]
