"""Memory that ends in the middle of a step, in a process of its own whose memory is limited for real."""

from __future__ import annotations

import subprocess
import sys
from textwrap import dedent

import pytest

from tests.run_time import run_time

if run_time(__name__):
    import torch

    from sfumato.learning.clipping.flat import Flat
    from sfumato.learning.engine.engine import Engine


_TRIED = dedent(
    """
    import re
    import resource
    import torch
    from sfumato.errors import OutOfMemory
    from sfumato.learning import Engine, Flat

    torch.set_num_threads(1)
    for mode in ("book_keeping", "vmap"):
        module = torch.nn.Linear(600, 600)
        engine = Engine(module, Flat(clip_norm=1.0), mode=mode, memory=2**34)
        engine.attach()
        module(torch.randn(2, 107, 600)).square().mean().backward()
        engine.clipped_sums()
        held = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
        resource.setrlimit(resource.RLIMIT_AS, (held + 130 * 2**20, -1))
        batch = torch.randn(100, 107, 600)
        try:
            module(batch).sum().backward()
            engine.clipped_sums()
        except OutOfMemory as error:
            assert isinstance(error, MemoryError) and not re.search("100|107", str(error)), error
            assert "max_physical_batch_size" in str(error)
        else:
            raise AssertionError("the batch fitted")
        resource.setrlimit(resource.RLIMIT_AS, (-1, -1))
        for part in batch.split(20):  # the same engine goes on, and nothing of the failed pass is in its sums
            module(part).sum().backward()
        assert engine.clipped_sums().examples == 100
    """
)


@pytest.mark.exhaustive  # a process that loads torch
def test_a_batch_that_does_not_fit_is_told_with_the_remedy_and_leaves_nothing_behind() -> None:
    done = subprocess.run([sys.executable, "-c", _TRIED], check=False, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_where_the_users_own_forward_runs_out_the_remedy_is_noted() -> None:
    class Greedy(torch.nn.Linear):
        def forward(self, batch: torch.Tensor) -> torch.Tensor:
            if len(batch) == 7:
                raise MemoryError
            return super().forward(batch)

    engine = Engine(module := Greedy(3, 2), Flat(clip_norm=1.0))
    engine.attach()
    module(torch.randn(4, 3)).sum().backward()
    engine.clipped_sums()
    with pytest.raises(MemoryError) as caught:
        module(torch.randn(7, 3))
    assert "max_physical_batch_size" in caught.value.__notes__[0]
    module(torch.randn(4, 3)).sum().backward()
    assert engine.clipped_sums().examples == 4
