"""Linear algebra on one thread, and as many as before afterwards."""

from __future__ import annotations

import subprocess
import sys
import threading
from collections.abc import Iterator

import pytest

from sfumato.numerics import blas_threads
from sfumato.numerics.blas_threads import one_thread


class Library:
    """Counts as OpenBLAS does: one number for the process."""

    def __init__(self, threads: int) -> None:
        self.threads = threads

    def get(self) -> int:
        return self.threads

    def put(self, threads: int) -> None:
        self.threads = threads


@pytest.fixture
def libraries(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[Library]]:
    """Two libraries, as numpy's and scipy's wheels bring them."""
    monkeypatch.delenv("OPENBLAS_NUM_THREADS", raising=False)
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    found = [Library(8), Library(3)]
    monkeypatch.setattr(blas_threads, "_libraries", lambda: [(one.get, one.put) for one in found])
    yield found
    assert [one.threads for one in found] == [8, 3]


def test_one_thread_inside_and_as_many_as_before_outside(libraries: list[Library]) -> None:
    with one_thread():
        assert [one.threads for one in libraries] == [1, 1]
        with one_thread():
            assert [one.threads for one in libraries] == [1, 1]
        assert [one.threads for one in libraries] == [1, 1]
    assert [one.threads for one in libraries] == [8, 3]
    with pytest.raises(ZeroDivisionError), one_thread():
        raise ZeroDivisionError


def test_a_decorated_function_can_be_called_again(libraries: list[Library]) -> None:
    @one_thread()
    def inside() -> list[int]:
        return [one.threads for one in libraries]

    assert inside() == inside() == [1, 1]


def test_threads_that_overlap_restore_what_the_first_saw(libraries: list[Library]) -> None:
    entered, left = threading.Event(), threading.Event()

    def hold() -> None:
        with one_thread():
            entered.set()
            left.wait(30)

    other = threading.Thread(target=hold)
    with one_thread():
        other.start()
        assert entered.wait(30)
    # The other one is still inside.
    assert [one.threads for one in libraries] == [1, 1]
    left.set()
    other.join()


def test_a_library_that_is_loaded_inside_gets_its_threads_back(
    libraries: list[Library], monkeypatch: pytest.MonkeyPatch
) -> None:
    loaded = libraries[:1]
    monkeypatch.setattr(blas_threads, "_libraries", lambda: [(one.get, one.put) for one in loaded])
    with one_thread():
        assert [one.threads for one in libraries] == [1, 3]
        loaded.append(libraries[1])
        with one_thread():
            assert [one.threads for one in libraries] == [1, 1]
    assert [one.threads for one in libraries] == [8, 3]


def test_what_is_not_loaded_is_not_loaded_to_be_slowed_down() -> None:
    code = (
        "import sys, numpy\n"
        "from sfumato.numerics.blas_threads import one_thread\n"
        "with one_thread(): pass\n"
        "print('scipy.linalg' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=True, capture_output=True).stdout == b"False\n"


@pytest.mark.parametrize("name", ["OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS"])
def test_what_the_environment_sets_stands(
    name: str, libraries: list[Library], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(name, "8")
    with one_thread():
        assert [one.threads for one in libraries] == [8, 3]


def test_libraries_that_are_found_take_and_give_numbers() -> None:
    for get, put in blas_threads._libraries():
        before = get()
        assert before >= 1
        put(1)
        assert get() == 1
        put(before)
        assert get() == before


def test_the_libraries_of_numpy_and_scipy_are_set_and_restored(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENBLAS_NUM_THREADS", raising=False)
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    found = [get for get, _ in blas_threads._libraries()]
    before = [get() for get in found]
    with one_thread():
        assert [get() for get in found] == [1] * len(found)
    assert [get() for get in found] == before
