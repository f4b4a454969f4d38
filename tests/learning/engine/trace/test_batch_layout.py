"""Where the examples lie in a tensor: outputs of any size are compared block by block, and the same."""

from __future__ import annotations

import pytest

from tests.run_time import run_time

if run_time(__name__):
    import torch

    from sfumato.learning.engine.trace import batch_layout
    from sfumato.learning.engine.trace.batch_layout import BatchLayout, Unclear, infer


def test_blocks_find_what_the_whole_does(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(batch_layout, "_BLOCK", 7)
    generator = torch.Generator().manual_seed(1)
    three = torch.randn(3, 5, 11, generator=generator)
    three[0, 2, 3], three[1, 4, 10], three[1, 0, 0] = float("nan"), float("inf"), 100.0
    near = three * (1 + 1e-5 * torch.randn(three.shape, generator=generator))
    assert infer(near[:2], three) == BatchLayout(0)
    assert infer(near[:2].transpose(0, 2), three.transpose(0, 2)) == BatchLayout(2)
    turns = near.transpose(0, 1)
    assert infer(turns[:, :2].reshape(10, 11), turns.reshape(15, 11)) == BatchLayout(0, minor=True)
    assert infer(three, near) is None
    for place in ((0, 0, 0), (1, 4, 9), (1, 2, 5)):
        other = three.clone()
        other[place] += 0.5  # of a largest entry of 100, and a tolerance of a thousandth
        with pytest.raises(Unclear):
            infer(near[:2], other)
    other = three.clone()
    other[0, 2, 3] = 0.0  # was no number
    with pytest.raises(Unclear):
        infer(near[:2], other)
    assert infer(torch.zeros(2, 0), torch.zeros(3, 0)) == BatchLayout(0)
