"""Thirty-two architectures against one backward pass for each example, and what is refused when attached."""

from __future__ import annotations

import pytest

from sfumato.errors import UnfitModule
from tests.cases import cases
from tests.run_time import run_time

if run_time(__name__):
    import torch
    from torch import nn

    from sfumato.learning.checks.leaks import leak_probe
    from sfumato.learning.checks.self_test import self_test
    from sfumato.learning.checks.validator import ModuleValidator
    from sfumato.learning.clipping.flat import Flat
    from sfumato.learning.engine.engine import Engine
    from tests.learning.engine.architectures import ARCHITECTURES, BATCH, losses

    CLIP_NORM = 0.5


@cases("name", lambda: list(ARCHITECTURES))
@pytest.mark.filterwarnings("ignore:.*torch.jit.script:DeprecationWarning")
def test_it_agrees_with_a_backward_for_each_example(name: str) -> None:
    make, inputs, how = ARCHITECTURES[name]
    torch.manual_seed(0)
    module, batch = make(), inputs()
    trained = {key: p for key, p in module.named_parameters() if p.requires_grad}
    rows = []
    for index in range(BATCH):
        alone = losses(module, tuple(tensor[index : index + 1] for tensor in batch)).sum()
        found = torch.autograd.grad(alone, [*trained.values()], allow_unused=True, materialize_grads=True)
        rows.append([gradient.to_dense() for gradient in found])
    norms = torch.stack([torch.cat([g.flatten() for g in row]).norm() for row in rows])
    factors = (CLIP_NORM / norms).clamp(max=1)
    engine = Engine(module, Flat(clip_norm=CLIP_NORM))
    engine.attach()
    losses(module, batch).mean().backward()
    sums = engine.clipped_sums()
    assert how in engine.explain()
    assert torch.allclose(sums.norms[0], norms, rtol=1e-5)
    for place, key in enumerate(trained):
        expected = sum(factor * row[place] for factor, row in zip(factors, rows, strict=True))
        assert (sums.gradients[key] - expected).norm() <= 1e-5 * CLIP_NORM, key
    assert all(p.grad is None for p in module.parameters())


def passes_the_self_test(name: str) -> None:
    make, inputs, _ = ARCHITECTURES[name]
    torch.manual_seed(0)
    batch = inputs()
    tested = self_test(make(), None, batch if len(batch) > 1 else batch[0], Flat(clip_norm=CLIP_NORM))
    assert tested.passed, str(tested)


@pytest.mark.exhaustive
@pytest.mark.filterwarnings("ignore:.*torch.jit.script:DeprecationWarning")
@cases("name", lambda: list(ARCHITECTURES))
def test_they_pass_the_self_test(name: str) -> None:
    passes_the_self_test(name)


def test_sequences_of_other_lengths_are_apart_and_their_padding_need_not_be() -> None:
    passes_the_self_test("packed-lstm-last")
    passes_the_self_test("score")

    class Padded(nn.Module):
        """Its mean is over as many positions as the longest has."""

        def __init__(self) -> None:
            super().__init__()
            self.rnn = nn.LSTM(2, 3, batch_first=True)

        def forward(self, x: torch.Tensor, lengths: torch.Tensor) -> torch.Tensor:
            rows = nn.utils.rnn.pack_padded_sequence(x, lengths, batch_first=True, enforce_sorted=False)
            padded, _ = nn.utils.rnn.pad_packed_sequence(self.rnn(rows)[0], batch_first=True)
            return padded.mean(1)

    batch = torch.zeros(4, 6, 2), torch.ones(4, dtype=torch.int64)
    report = leak_probe(Padded(), batch)
    assert not report.passed
    assert report.leaks[0].into == "outputs"


def test_complex_parameters_are_refused_when_attached() -> None:
    module = nn.Sequential(nn.Linear(2, 2), nn.Linear(2, 2, dtype=torch.cfloat))
    with pytest.raises(UnfitModule, match=r"1\.weight must be real, got a complex parameter"):
        Engine(module, Flat(clip_norm=1.0)).attach()
    assert any("must be real" in str(fault) for fault in ModuleValidator.validate(module))
    module[1].requires_grad_(False)
    Engine(module, Flat(clip_norm=1.0)).attach()
    assert ModuleValidator.is_valid(module)


def test_other_parameters_by_functional_call_are_refused() -> None:
    module, x = nn.Linear(3, 1), torch.ones(4, 3)
    engine = Engine(module, Flat(clip_norm=1.0))
    engine.attach()
    own: dict[str, torch.Tensor] = dict(module.named_parameters())
    torch.func.functional_call(module, own, (x,)).mean().backward()
    assert engine.clipped_sums().examples == 4
    others = {name: p.detach().clone().requires_grad_() for name, p in own.items()}
    with pytest.raises(UnfitModule, match="use functional_call under no_grad"):
        torch.func.functional_call(module, others, (x,))
    with torch.no_grad():
        torch.func.functional_call(module, others, (x,))
    assert not engine.pending
