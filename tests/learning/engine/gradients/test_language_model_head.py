"""Heads as wide as a vocabulary: tied to the embedding, in half precision, and how much memory they take."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from tests.run_time import run_time

if run_time(__name__):
    import torch
    import torch.nn.functional as F  # noqa: N812
    from torch import Tensor, nn

    from sfumato.learning.clipping.flat import Flat
    from sfumato.learning.engine.engine import Engine

    class Tied(nn.Module):
        """A table that tokens are looked up in, and whose rows score the next one."""

        def __init__(self, words: int, width: int) -> None:
            super().__init__()
            self.table = nn.Parameter(torch.ones(words, width))

        def forward(self, tokens: Tensor) -> Tensor:
            return F.linear(F.embedding(tokens, self.table), self.table)

    def _loss(scores: Tensor, tokens: Tensor) -> Tensor:
        return (scores.gather(2, tokens[:, :, None])[:, :, 0].float() * -0.25).mean(1)

    def _norms(tokens: Tensor, kind: torch.dtype | None) -> tuple[Tensor, Tensor, Tensor]:
        """Return each example's norm by a pass of its own, the engine's, and the norm of each clipped sum."""
        module = Tied(6, 8)

        def value(given: Tensor) -> Tensor:
            with torch.autocast("cpu", kind, enabled=kind is not None):
                return _loss(module(given), given).sum()

        alone = [torch.autograd.grad(value(one), [module.table])[0].norm() for one in tokens.split(1)]
        engine, clipped = Engine(module, Flat(clip_norm=0.5), loss_reduction="sum"), []
        engine.attach()
        for one in tokens.split(1):
            value(one).backward()
            clipped.append(engine.clipped_sums().gradients["table"].norm())
        value(tokens).backward()
        return torch.stack(alone), engine.clipped_sums().norms[0], torch.stack(clipped)


def test_a_tied_head_and_embedding_that_pull_alike_are_clipped_together() -> None:
    """Every token scores itself: both uses move one row the same way, and their cross term is positive."""
    tokens = torch.tensor([[0, 0, 0], [1, 2, 1], [3, 4, 5]])
    alone, norms, clipped = _norms(tokens, None)
    assert torch.allclose(norms, alone, rtol=1e-5)
    apart = _parts(tokens)
    assert (alone > 1.4 * apart.clamp(min=1e-9)).all()  # without the cross term the bound were too small
    assert (clipped <= 0.5 * (1 + 1e-5)).all()
    assert torch.allclose(clipped, alone.clamp(max=0.5), rtol=1e-4)


def _parts(tokens: Tensor) -> Tensor:
    """Return each example's norm as it is if the look-up and the product were two parameters."""
    found = []
    for one in tokens.split(1):
        looked, scored = (torch.ones(6, 8, requires_grad=True) for _ in range(2))
        _loss(F.linear(F.embedding(one, looked), scored), one).sum().backward()
        assert looked.grad is not None
        assert scored.grad is not None
        found.append((looked.grad.square().sum() + scored.grad.square().sum()).sqrt())
    return torch.stack(found)


def test_products_in_half_precision_are_added_in_float32() -> None:
    """Of 1,024 equal terms bfloat16 would keep some 256: the norm would be a fourth of what is added."""
    tokens = torch.zeros(2, 1024, dtype=torch.long)
    _, norms, clipped = _norms(tokens, torch.bfloat16)
    expected, _, _ = _norms(tokens, None)
    assert torch.allclose(norms, expected, rtol=2e-2)
    assert (clipped <= 0.5 * (1 + 1e-5)).all()


_STEP = """
import json, sys, time
from pathlib import Path
import torch, torch.nn.functional as F
from torch import nn
from sfumato.learning import Engine, Flat

torch.set_num_threads(1)
torch.manual_seed(0)
words, width, tokens = 50257, 32, 256
module = nn.Sequential(nn.Embedding(words, width), nn.Linear(width, words, bias=False))
module[1].weight = module[0].weight
given = torch.randint(words, (1, tokens))
if sys.argv[1] == "private":
    (engine := Engine(module, Flat(clip_norm=1.0))).attach()

def held(what):
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith(what + ":"))

Path("/proc/self/clear_refs").write_text("5")
before, taken = held("VmRSS"), []
for _ in range(4):
    start = time.process_time()
    F.cross_entropy(module(given).flatten(0, 1), given.flatten()).backward()
    if sys.argv[1] == "private":
        sums = engine.clipped_sums()
        del sums
    else:
        module.zero_grad()
    taken.append(time.process_time() - start)
print(json.dumps({"grown": held("VmHWM") - before, "first": taken[0], "later": sorted(taken[1:])[1]}))
"""


@pytest.mark.exhaustive
@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_a_head_takes_at_most_twice_the_plain_step_s_memory() -> None:
    found = {}
    for kind in ("plain", "private"):
        done = subprocess.run(
            [sys.executable, "-c", _STEP, kind], check=True, stdout=subprocess.PIPE, text=True
        )
        found[kind] = json.loads(done.stdout)
    assert found["private"]["grown"] <= 2 * found["plain"]["grown"]
