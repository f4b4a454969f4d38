"""Equal requests for tables at once: one charge, one release."""

from __future__ import annotations

import os
import runpy
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from threading import Barrier, BrokenBarrierError
from typing import Any

import pyarrow as pa
import pytest

import sfumato as sf
from sfumato.session import equal_requests
from sfumato.session.equal_requests import _TURNS, one_at_a_time
from sfumato.synthetic import Hierarchy, Marginals, TableDomain
from sfumato.synthetic.counting import engine_counts
from tests.cases import cases

DOMAIN = TableDomain(sex=["f", "m"])


def places() -> Hierarchy:
    return Hierarchy.from_table(pa.table({"town": ["x", "y"]}), ["town"], root="country")


def opened(path: Path) -> Any:
    people = pa.table({"sex": ["f", "m"] * 200, "town": ["x", "y"] * 200})
    return sf.connect(people, privacy_unit=sf.ROW, epsilon=9.0, delta=1e-6, ledger=path)


def asked(session: Any, door: str) -> Any:
    given: dict[str, Any] = {"epsilon": 1.0, "delta": 1e-8}
    if door == "marginals":
        return session.marginals(DOMAIN, Marginals.every(1), **given)
    if door == "topdown":
        return session.topdown(DOMAIN, hierarchy=places(), queries=[("sex",)], **given)
    return session.synthesize(DOMAIN, **given)


@cases("door", ["marginals", "synthesize", "topdown"])
def test_equal_requests_of_two_threads_pay_once(door: str, tmp_path: Path) -> None:
    """Each waits for the other after it has counted: without turns both come that far, and both pay."""
    met, read = Barrier(2), engine_counts.read_counts

    def waiting(*given: Any) -> Any:
        with suppress(BrokenBarrierError):
            met.wait(0.3)
        return read(*given)

    path = tmp_path / door
    module = "topdown_tables" if door == "topdown" else "counted_release"
    with pytest.MonkeyPatch.context() as patch, opened(path) as one, opened(path) as other:
        patch.setattr(f"sfumato.session.{module}.read_counts", waiting)
        with ThreadPoolExecutor(2) as pool:
            found = list(pool.map(lambda session: asked(session, door), (one, other)))
        assert len(one.ledger.entries()) == 1
    assert found[0].to_json() == found[1].to_json()
    assert sorted(each.receipt is None for each in found) == [False, True]
    assert not _TURNS.locks


def test_what_another_process_committed_meanwhile_is_returned(tmp_path: Path) -> None:
    """A thread's turn can be taken again by itself: so this thread plays the other process."""
    read, inner = engine_counts.read_counts, list[Any]()
    with (
        pytest.MonkeyPatch.context() as patch,
        opened(tmp_path / "l") as one,
        opened(tmp_path / "l") as other,
    ):

        def overtaken(*given: Any) -> Any:
            if not inner:
                inner.append(None)
                inner.append(asked(other, "marginals"))
            return read(*given)

        patch.setattr("sfumato.session.counted_release.read_counts", overtaken)
        found = asked(one, "marginals")
        assert len(one.ledger.entries()) == 1
    assert found.receipt is None
    assert found.to_json() == inner[1].to_json()


def test_a_failure_opens_the_lock() -> None:
    for _ in range(2):
        with pytest.raises(ValueError, match="lost"), one_at_a_time("a"), one_at_a_time("a"):
            raise ValueError("lost")
    assert not _TURNS.locks


def test_a_system_that_cannot_fork_has_turns_too(monkeypatch: pytest.MonkeyPatch) -> None:
    """On Windows the import of sessions failed: there is no such function of the system."""
    monkeypatch.delattr(os, "register_at_fork", raising=False)
    made = runpy.run_path(equal_requests.__file__)
    with made["one_at_a_time"]("a"):
        assert list(made["_TURNS"].locks) == ["a"]
