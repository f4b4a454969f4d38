"""Openings: stored, resumed after any kill, merged, and shared among processes; each record counts once."""

from __future__ import annotations

import contextlib
import hashlib
import os
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from sfumato import local
from sfumato.errors import ParameterError, SourceError
from sfumato.local.shuffle import MixedBatch, Opening, ShuffledHistogram, opening, opening_progress
from sfumato.local.shuffle.opening_worker import OpeningWorker, counted_by_processes
from tests.forks import server_fork
from tests.local.shuffle.opening_setting import ANALYST, SHUFFLER, SIZE, batch, collection

KILLED = "import sys; from tests.local.shuffle.opening_killed import main; main(sys.argv[1])"
MADE = collection()
KEY = ("analyst", ANALYST.seed, ANALYST.cipher)


def opened(*numbers: int) -> Opening:
    made = MADE.opening(ANALYST)
    assert made.add_batches([batch(number) for number in numbers]) == len(numbers)
    return made


@pytest.fixture
def small_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    """Pieces of eight records, so that a batch has three."""
    monkeypatch.setattr(opening_progress, "PIECE", 8)
    monkeypatch.setattr(opening, "PIECE", 8)


def test_a_stored_opening_goes_on_where_it_was(tmp_path: Path) -> None:
    state = tmp_path / "state"
    with MADE.opening(ANALYST, state=state) as made:
        assert made.add(batch(1)) == SIZE - 1
        made.add(batch(7))
    assert state.stat().st_mode & 0o777 == 0o600
    with MADE.opening(ANALYST, state=state) as again:
        assert again.numbers == {1, 7}
        assert again.add_batches([batch(1), batch(2), batch(7)]) == 1
        with pytest.raises(ParameterError, match="be opened once, got 7"):
            again.add(batch(7))
    assert state.read_bytes() == opened(7, 2, 1).to_bytes()
    assert ANALYST.seed not in state.read_bytes()
    read = Opening.from_bytes(state.read_bytes(), MADE, ANALYST)
    assert read.estimate().reports == 3 * (SIZE - 1)
    assert read.refused["seal"] == 3


def test_files_bytes_and_batches_are_counted_alike(tmp_path: Path) -> None:
    path = tmp_path / "batch"
    path.write_bytes(batch(1).to_bytes())
    for given in (batch(1), batch(1).to_bytes(), path, str(path)):
        made = MADE.opening(ANALYST)
        assert made.add(given) == SIZE - 1
        assert made.to_bytes() == opened(1).to_bytes()
    for content in (b"", b"junk", batch(1).to_bytes()[:-1], b"junk" * 100):
        path.write_bytes(content)
        with pytest.raises(ParameterError, match="a batch must"):
            MADE.opening(ANALYST).add(path)
    with pytest.raises(SourceError, match="must be a file that can be read"):
        MADE.opening(ANALYST).add(tmp_path / "none")


def test_killed_at_every_step_it_counts_each_record_once(tmp_path: Path) -> None:
    run = server_fork(KILLED, str(tmp_path), imports="import tests.local.shuffle.opening_killed")
    out, err = run.communicate(timeout=300)
    assert run.returncode == 0, err
    assert int(out) > 10


def test_openings_of_other_batches_are_merged() -> None:
    whole = opened(1, 2, 3, 4)
    assert opened(1, 4).merge(opened(2, 3)).to_bytes() == whole.to_bytes()
    assert opened(3).merge(opened(1, 2, 4).to_bytes()).to_bytes() == whole.to_bytes()
    assert opened(2, 3).merge(opened()).to_bytes() == opened(2, 3).to_bytes()


def test_an_overlap_is_refused_and_nothing_is_added() -> None:
    first = opened(1, 2)
    before = first.to_bytes()
    for other in (opened(2, 3), opened(2), first, before):
        with pytest.raises(ParameterError, match=r"other must have opened other batches only, got [12];"):
            first.merge(other)
        assert first.to_bytes() == before
    with pytest.raises(ParameterError, match="state must be of this collection, got another's"):
        first.merge(collection(name="other").opening(ANALYST))
    with pytest.raises(ParameterError, match="other must be an Opening, or bytes of one"):
        first.merge("state")  # type: ignore[arg-type]


def test_another_batch_under_a_number_is_refused() -> None:
    other = MixedBatch(batch(1).collection, 1, batch(2).sealed)
    made = opened(1)
    for add in (made.add, lambda one: made.add_batches([one])):
        with pytest.raises(ParameterError, match="be the one that was opened under its number, got 1"):
            add(other)
    assert made.to_bytes() == opened(1).to_bytes()


def test_what_comes_before_a_refused_batch_is_stored(tmp_path: Path) -> None:
    for bad, error in (
        (b"junk", ParameterError),
        (tmp_path / "none", SourceError),
        (batch(1), ParameterError),
    ):
        state = tmp_path / f"state-{error.__name__}-{type(bad).__name__}"
        with MADE.opening(ANALYST, state=state) as made, pytest.raises(error):
            made.add_batches([batch(1), batch(2), bad, batch(3)])
        assert state.read_bytes() == opened(1, 2).to_bytes()


def test_a_batch_that_is_open_in_part_is_not_estimated(small_pieces: None) -> None:
    made = opened(1)
    progress, two = made._progress, batch(2)
    assert progress.begin(two)
    pieces = list(progress.pieces(two))
    assert [len(piece.sealed) for piece in pieces] == [8, 8, 4]
    worker = OpeningWorker(MADE.protocol, MADE.device.report_context, KEY)
    for piece in pieces[::2]:
        progress.count([piece], worker.count([piece.sealed]))
    with pytest.raises(
        ParameterError, match="all batches must be opened whole, but a part of batch 2 is not"
    ):
        made.estimate()
    again = Opening.from_bytes(made.to_bytes(), MADE, ANALYST)
    assert again.to_bytes() == made.to_bytes()
    assert again.numbers == {1}
    with pytest.raises(ParameterError, match="other must have opened other batches only, got 2"):
        opened(2).merge(again)
    with pytest.raises(ParameterError, match="be the one that was opened under its number"):
        again.add(MixedBatch(two.collection, 2, batch(3).sealed))
    assert again.add(two) == 8
    assert again.to_bytes() == opened(1, 2).to_bytes()


def test_too_many_liars_expose_a_batch_that_was_merged() -> None:
    sealed = batch(5).sealed.copy()
    sealed[:3, -1] ^= 1
    made = opened(1)
    made.add(MixedBatch(batch(5).collection, 5, sealed))
    assert made.exposed == (5,)
    assert opened(2).merge(made).exposed == (5,)


def test_several_processes_count_what_one_counts(tmp_path: Path) -> None:
    paths = [tmp_path / str(number) for number in (1, 2, 3)]
    for path in paths:
        path.write_bytes(batch(int(path.name)).to_bytes())
    with MADE.opening(ANALYST, state=tmp_path / "state") as made:
        assert made.add_batches(paths, processes=2) == 3
    assert (tmp_path / "state").read_bytes() == opened(1, 2, 3).to_bytes()


class Fatal:
    """Ends the process that reads it."""

    def __reduce__(self) -> tuple[Any, ...]:
        return os._exit, (1,)


def interrupted(error: BaseException) -> Iterator[MixedBatch]:
    yield batch(1)
    yield batch(2)
    raise error


def test_what_comes_before_any_error_of_the_caller_is_stored(tmp_path: Path) -> None:
    with MADE.opening(ANALYST, state=tmp_path / "state") as made:
        with pytest.raises(OverflowError):
            made.add_batches(interrupted(OverflowError()))
        assert made.numbers == {1, 2}
        assert (tmp_path / "state").read_bytes() == opened(1, 2).to_bytes()
        made.estimate()


def test_an_interrupt_leaves_no_batch_begun_and_nothing_added_in_part(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    made = MADE.opening(ANALYST)
    made.add(batch(3))
    with pytest.raises(KeyboardInterrupt):
        made.add_batches(interrupted(KeyboardInterrupt()))
    assert made.numbers == {3}
    assert made.estimate().reports == SIZE - 1
    assert made.add_batches([batch(1), batch(2)]) == 2
    other = opened(4)
    merge = type(made.aggregator).merge

    def torn(one: Any, added: Any) -> None:
        merge(one, added)
        raise KeyboardInterrupt

    for name, given in (("add", batch(4)), ("merge", other)):
        one = opened(1)
        with monkeypatch.context() as patch:
            patch.setattr(type(one.aggregator), "merge", torn)
            with pytest.raises(KeyboardInterrupt):
                getattr(one, name)(given)
        for use in (one.estimate, one.to_bytes):
            with pytest.raises(ParameterError, match="the opening must be uninterrupted"):
                use()


def test_a_process_that_is_ended_is_an_error() -> None:
    with pytest.raises(SourceError, match="processes must last to the end"):
        list(counted_by_processes([[batch(1).sealed]], 1, Fatal()))


def damaged(state: bytes) -> Iterator[bytes]:
    """States that differ in one byte, or in their length; and ones with a checksum of their own."""
    yield from (b"", state[:-1], state + b"\x00", state[:60], b"sfmtOPEN" + bytes(200))
    content = state[:-32]
    for place in range(len(state)):
        yield state[:place] + bytes([state[place] ^ 1]) + state[place + 1 :]
    for place in range(8, len(content)):
        changed = content[:place] + bytes([content[place] ^ 1]) + content[place + 1 :]
        yield changed + hashlib.sha256(changed).digest()
    large = content[:56] + struct.pack("<Q", 2**63) + content[64:]
    yield large + hashlib.sha256(large).digest()


def test_a_damaged_state_is_refused_or_counts_as_many(tmp_path: Path) -> None:
    whole = opened(1, 2)
    refused = 0
    for state in damaged(whole.to_bytes()):
        with contextlib.suppress(ParameterError):
            read = Opening.from_bytes(state, MADE, ANALYST)
            # With a checksum made anew: another number, digest or count, of as many records.
            assert read.aggregator.accepted + sum(read.refused.values()) == 2 * SIZE
            refused -= 1
        refused += 1
    assert refused > len(whole.to_bytes())
    (tmp_path / "state").write_bytes(b"junk")
    with pytest.raises(ParameterError, match="state must be one that an opening wrote"):
        MADE.opening(ANALYST, state=tmp_path / "state")
    (tmp_path / "state").unlink()
    MADE.opening(ANALYST, state=tmp_path / "state").close()  # the lock was let go


def test_a_state_is_of_one_process_at_a_time(tmp_path: Path) -> None:
    with MADE.opening(ANALYST, state=tmp_path / "state") as made:
        with pytest.raises(SourceError, match="state must be free"):
            MADE.opening(ANALYST, state=str(tmp_path / "state"))
        made.add(batch(1))
    with pytest.raises(ParameterError, match="the opening must be open, but it was closed"):
        made.add(batch(2))
    assert made.estimate().reports == SIZE - 1  # the batch that was not taken is not begun
    for place in (tmp_path / "none" / "state", tmp_path, "a\0b", "\ud800"):
        with pytest.raises(SourceError, match="state must be"):
            MADE.opening(ANALYST, state=place)


def test_bad_input_is_refused() -> None:
    made = MADE.opening(ANALYST)
    for processes in (0, -1, 1.5, "2"):
        with pytest.raises(ParameterError, match="processes must"):
            made.add_batches([], processes=processes)  # type: ignore[arg-type]
    for given in (batch(1), b"", "file", 7, None):
        with pytest.raises(ParameterError, match="batches must be a list of batches"):
            made.add_batches(given)  # type: ignore[arg-type]
    with pytest.raises(ParameterError, match="a batch must"):
        made.add_batches([7])  # type: ignore[list-item]
    for name in ("a\0b", "\ud800", ""):
        with pytest.raises(SourceError, match="must be a file that can be read"):
            made.add(name)
    whole = batch(1)
    for number, sealed in (
        (-1, whole.sealed), (2**64, whole.sealed), (1.5, whole.sealed), (1, whole.sealed.astype(float)),
    ):  # fmt: skip
        with pytest.raises(ParameterError, match="a batch must have a number and records of bytes"):
            made.add(MixedBatch(whole.collection, number, sealed))  # type: ignore[arg-type]
    with pytest.raises(ParameterError, match="state must be a path or bytes"):
        MADE.opening(ANALYST, state=7)  # type: ignore[arg-type]
    with pytest.raises(ParameterError, match="state must be bytes"):
        Opening.from_bytes("state", MADE, ANALYST)  # type: ignore[arg-type]
    with pytest.raises(ParameterError, match="collection must"):
        Opening(7, ANALYST)  # type: ignore[arg-type]
    with pytest.raises(ParameterError, match="key must be that of the collection's analyst"):
        Opening(MADE, SHUFFLER)


def test_several_messages_of_a_client_are_merged_too() -> None:
    protocol = ShuffledHistogram(epsilon=4.0, delta=1e-2, clients=18, domain=local.Domain(["red", "blue"]))
    made = collection(protocol)
    assert made.device.messages > 1
    first, second = made.opening(ANALYST), made.opening(ANALYST)
    for number, one in ((1, first), (2, second)):
        sealed = [
            ANALYST.public.seal(
                b"\x00" + protocol.randomize("red")[: protocol.device.width], made.device.report_context
            )
            for _ in range(SIZE * protocol.messages)
        ]
        rows = np.frombuffer(b"".join(sealed), np.uint8).reshape(len(sealed), -1)
        assert one.add(MixedBatch(made.device.id, number, rows)) == SIZE * protocol.messages
    assert first.merge(second).estimate().reports == 2 * SIZE
