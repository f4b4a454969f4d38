"""The path that Opacus's tutorials import the manager from."""

from __future__ import annotations

from tests.run_time import run_time

if run_time(__name__):
    from sfumato.learning import BatchMemoryManager
    from sfumato.learning.opacus import utils


def test_it_is_the_manager_of_the_room() -> None:
    assert utils.batch_memory_manager.BatchMemoryManager is BatchMemoryManager
