"""What per-example gradients may take together, and that a step is the same whatever of them is kept."""

from __future__ import annotations

from tests.cases import cases
from tests.run_time import run_time

if run_time(__name__):
    import torch
    from torch import nn

    from sfumato.learning.clipping.flat import Flat
    from sfumato.learning.engine.engine import Engine
    from sfumato.learning.engine.gradients.memory_pool import MemoryPool

    LIKE = torch.zeros(1)


def test_there_is_room_for_each_and_for_all_together() -> None:
    pool = MemoryPool(100, 250)
    assert pool.holds(100)
    assert not pool.holds(101)
    first, second = pool.take((10, 10), LIKE), pool.take((4, 25), LIKE)
    assert first.data_ptr() != second.data_ptr()
    assert pool.holds(50)
    assert not pool.holds(51)
    pool.count(40)
    assert pool.holds(10)
    assert not pool.holds(11)
    pool.release()
    assert pool.holds(100)


def test_buffers_are_used_again_where_they_fit_and_given_back_where_they_do_not() -> None:
    pool = MemoryPool(100, 250)
    kept = {pool.take((100,), LIKE).data_ptr(), pool.take((80,), LIKE).data_ptr()}
    pool.release()
    assert {pool.take((79,), LIKE).data_ptr(), pool.take((99,), LIKE).data_ptr()} == kept
    pool.release()
    pool.take((30,), LIKE)  # fits neither; both are there still
    pool.take((100,), LIKE)
    pool.take((100,), LIKE)  # no room beside what is free
    held = [*pool._free, *pool._taken]
    assert sum(buffer.numel() for buffer in held) <= 250


if run_time(__name__):

    class Deep(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layers = nn.ModuleList(nn.Linear(16, 16) for _ in range(6))
            self.maps = nn.ModuleList(nn.Conv1d(12, 12, 3, padding=1) for _ in range(3))

        def forward(self, rows: torch.Tensor) -> torch.Tensor:
            for layer in self.layers:
                rows = torch.tanh(layer(rows))
            for layer in self.maps:
                rows = torch.tanh(layer(rows))
            return rows


@cases("kept", [0, 1, 2, 5, 100])
def test_a_step_is_the_same_however_many_gradients_are_kept(kept: int) -> None:
    torch.manual_seed(0)
    module, batch = Deep().double(), torch.randn(5, 12, 16, dtype=torch.float64)
    found = {}
    for mode, entries in (("vmap", 2**24), ("book_keeping", kept * 5 * 12 * 36 or 1)):
        engine = Engine(module, Flat(clip_norm=0.5), mode=mode, memory=4 * entries)  # type: ignore[arg-type]
        engine.attach()
        for _ in range(2):
            module(batch).square().sum((1, 2)).mean().backward()
            found[mode] = engine.clipped_sums()
        engine.detach()
        held = sum(buffer.numel() for buffer in engine._own.pool._free)
        assert held <= 2.5 * entries
        # The last layers come first: where there is room for one of their gradients, two take it all.
        assert (held > 0) == (mode == "book_keeping" and kept > 1)
    for name, gradient in found["vmap"].gradients.items():
        assert torch.allclose(gradient, found["book_keeping"].gradients[name], rtol=1e-9, atol=1e-12), name
    assert torch.allclose(found["vmap"].norms, found["book_keeping"].norms)
