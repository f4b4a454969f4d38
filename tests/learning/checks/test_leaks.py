"""The leak probe: what it refuses, whom it names, what it lets pass, and that it leaves the module alone."""

from __future__ import annotations

import random
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from sfumato.errors import ParameterError, UnfitModule
from tests.cases import cases, named
from tests.run_time import run_time

if run_time(__name__):
    import torch
    import torch.nn.functional as F  # noqa: N812
    from torch import Tensor, nn

    from sfumato.learning.checks.leaks import leak_probe

    ROWS = torch.zeros(8, 4)
    IMAGES = torch.zeros(8, 3, 6, 6)

    class Lambda(nn.Module):
        def __init__(self, function: Callable[[Tensor], Any]) -> None:
            super().__init__()
            self.function = function

        def forward(self, x: Tensor) -> Any:
            return self.function(x)

    class Centred(nn.Module):
        """The mean is taken between two layers, in no module of its own."""

        def __init__(self) -> None:
            super().__init__()
            self.first, self.second = nn.Linear(4, 4), nn.Linear(4, 4)

        def forward(self, x: Tensor) -> Any:
            h = self.first(x)
            return self.second(h - h.mean(0))

    class Experts(nn.Module):
        """Each expert takes the first three examples that ask for it; the others are dropped."""

        def __init__(self) -> None:
            super().__init__()
            self.router, self.experts = nn.Linear(4, 4), nn.ModuleList(nn.Linear(4, 4) for _ in range(4))

        def forward(self, x: Tensor) -> Tensor:
            choice, out = self.router(x).argmax(1), torch.zeros_like(x)
            for place, expert in enumerate(self.experts):
                taken = (choice == place).nonzero().squeeze(1)[:3]
                out = out.index_add(0, taken, expert(x[taken]))
            return out


def mixed_up(x: Tensor) -> Tensor:
    return 0.9 * x + 0.1 * x[torch.randperm(len(x))]


if run_time(__name__):
    LEAKS: dict[str, tuple[nn.Module, Any, str, str]] = {
        "batch norm": (
            nn.Sequential(nn.Linear(4, 6), nn.BatchNorm1d(6), nn.ReLU()),
            ROWS,
            "1",
            "BatchNorm1d",
        ),
        "batch norm without statistics": (
            nn.Sequential(nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4, track_running_stats=False)),
            IMAGES,
            "1",
            "BatchNorm2d",
        ),
        "batch mean in a leaf": (
            nn.Sequential(nn.Linear(4, 4), Lambda(lambda x: x - x.mean(0))),
            ROWS,
            "1",
            "Lambda",
        ),
        "batch mean between layers": (
            nn.Sequential(nn.Linear(4, 4), Centred(), nn.ReLU()),
            ROWS,
            "1",
            "Centred",
        ),
        "batch mean in the root": (Centred(), ROWS, "", "Centred"),
        "batch maximum": (
            nn.Sequential(nn.Linear(4, 4), Lambda(lambda x: x / x.abs().max())),
            ROWS,
            "1",
            "Lambda",
        ),
        "a term that only NaN passes": (Lambda(lambda x: x + 0 * x.sum()), ROWS, "", "Lambda"),
        "expert capacity": (nn.Sequential(nn.Linear(4, 4), Experts()), ROWS, "1", "Experts"),
        "mixed examples": (nn.Sequential(Lambda(mixed_up), nn.Linear(4, 4)), ROWS, "0", "Lambda"),
        "sorted by the first entry": (Lambda(lambda x: x[x[:, 0].argsort()]), ROWS, "", "Lambda"),
        "attention over the batch": (
            nn.MultiheadAttention(4, 2),
            (torch.zeros(8, 6, 4),) * 3,
            "",
            "MultiheadAttention",
        ),
    }


@cases(("module", "batch", "name", "kind"), lambda: named(LEAKS))
def test_what_crosses_examples_is_seen_and_its_innermost_module_named(
    module: nn.Module, batch: Any, name: str, kind: str
) -> None:
    report = leak_probe(module, batch)
    assert not report.passed
    assert (report.leaks[0].module, report.leaks[0].kind, report.leaks[0].into) == (name, kind, "outputs")
    with pytest.raises(UnfitModule, match=f"module must keep examples apart, got .*{kind}"):
        report.check()


if run_time(__name__):

    class RoutedTokens(nn.Module):
        """Each of four experts takes the first so many tokens of all texts that ask for it."""

        def __init__(self, capacity: int) -> None:
            super().__init__()
            torch.manual_seed(0)
            self.words, self.router, self.capacity = nn.Embedding(50, 4), nn.Linear(4, 4), capacity

        def forward(self, ids: Tensor) -> Tensor:
            h = self.words(ids).flatten(0, 1)
            choice, out = self.router(h).argmax(1), torch.zeros_like(h)
            for expert in range(4):
                taken = (choice == expert).nonzero().squeeze(1)[: self.capacity]
                out = out.index_add(0, taken, h[taken])
            return out.view(*ids.shape, 4)

    class Smoothed(nn.Module):
        """Texts are compared with each other."""

        def __init__(self) -> None:
            super().__init__()
            self.words = nn.Embedding(9, 4)

        def forward(self, ids: Tensor) -> Tensor:
            alike = (ids[:, None] == ids[None]).all(2).float()
            h: Tensor = self.words(ids)
            return h / alike.sum(1)[:, None, None]


@cases(("module", "batch", "name", "kind"), lambda: named(LEAKS))
def test_a_brief_probe_sees_them_too(module: nn.Module, batch: Any, name: str, kind: str) -> None:
    if kind != "Experts":  # three examples at most go through every one of them
        report = leak_probe(module, batch, brief=True)
        assert (report.leaks[0].module, report.leaks[0].kind, report.leaks[0].into) == (name, kind, "outputs")
        assert report.runs < leak_probe(module, batch).runs


def test_a_brief_probe_of_texts() -> None:
    ids = torch.zeros(8, 64, dtype=torch.long)
    statistics = nn.Sequential(nn.Embedding(9, 4), nn.InstanceNorm1d(64, track_running_stats=True))
    for leaking in (Smoothed(), RoutedTokens(40), statistics):
        assert not leak_probe(leaking, ids, brief=True).passed
    report = leak_probe(RoutedTokens(192), ids, brief=True)
    assert report.passed
    assert report.runs == 6  # one of them to find the range of the words
    for name, told in (
        ("a state of its own", "same outputs twice"),
        ("changed parameters", "must change in"),
    ):
        module, batch, _ = WRONG[name]
        with pytest.raises(UnfitModule, match=told):
            leak_probe(module, batch, brief=True)


@cases("seed", range(20))
def test_capacities_are_seen_whatever_the_weights(seed: int) -> None:
    torch.manual_seed(seed)
    assert not leak_probe(Experts(), ROWS).passed


def test_statistics_of_the_data_in_a_buffer_are_seen() -> None:
    report = leak_probe(nn.Sequential(nn.InstanceNorm2d(3, track_running_stats=True)), IMAGES)
    assert {(leak.module, leak.into) for leak in report.leaks} == {
        ("0", "running_mean"),
        ("0", "running_var"),
    }


def tokens(*shape: int) -> Tensor:
    return torch.zeros(shape, dtype=torch.long)


if run_time(__name__):
    PASSES: dict[str, tuple[nn.Module, Any]] = {
        "layers": (nn.Sequential(nn.Conv2d(3, 4, 3), nn.GroupNorm(2, 4), nn.ReLU(inplace=True)), IMAGES),
        "dropout": (nn.Sequential(nn.Linear(4, 4), nn.Dropout(0.5)), ROWS),
        "randomized ReLU": (nn.Sequential(nn.Linear(4, 4), nn.RReLU()), ROWS),
        "a recurrent layer": (nn.LSTM(4, 5, batch_first=True), torch.zeros(8, 3, 4)),
        "a transformer": (nn.TransformerEncoderLayer(4, 2, 8, batch_first=True), torch.zeros(8, 3, 4)),
        "tokens": (nn.Sequential(nn.Embedding(10, 4), nn.Linear(4, 3)), tokens(8, 6)),
        "noise of the batch": (Lambda(lambda x: x + torch.rand(())), ROWS),
        "spectral norm": (nn.utils.parametrizations.spectral_norm(nn.Linear(4, 3)), ROWS),
        "half": (nn.Linear(4, 4).to(torch.bfloat16), ROWS.to(torch.bfloat16)),
        "one example": (nn.Linear(4, 4), ROWS[:1]),
    }


@cases(("module", "batch"), lambda: named(PASSES))
def test_what_keeps_examples_apart_passes(module: nn.Module, batch: Any) -> None:
    report = leak_probe(module, batch)
    assert report.passed, str(report)
    assert report.probed
    report.check()


@dataclass
class Output(OrderedDict[str, Any]):
    """Both a mapping and a dataclass, as Hugging Face's outputs are."""

    logits: Any = None

    def __post_init__(self) -> None:
        self["logits"] = self.logits


@dataclass
class Plain:
    logits: Tensor
    loss: Tensor


FORMS: dict[str, tuple[Callable[[Tensor], Any], str]] = {
    "tensor": (lambda h: h, ""),
    "tuple": (lambda h: (None, h), "1"),
    "dict": (lambda h: {"logits": h, "name": "x"}, "logits"),
    "nested": (lambda h: {"all": [(h,)]}, "all.0.0"),
    "model output": (lambda h: Output(logits=h), "logits"),
    "dataclass": (lambda h: Plain(logits=h, loss=h.mean()), "logits"),
    "object": (lambda h: SimpleNamespace(logits=h), "logits"),
    "time first": (lambda h: h.T.contiguous(), ""),
}


@cases(("form", "path"), FORMS.values(), ids=FORMS)
@cases("leaks", [False, True])
def test_outputs_may_have_any_form(form: Callable[[Tensor], Any], path: str, leaks: bool) -> None:
    report = leak_probe(Lambda(lambda x: form(x - x.mean(0) if leaks else x)), ROWS)
    assert report.probed == (path,)
    assert report.passed == (not leaks)
    assert report.aggregates == (("loss",) if form is FORMS["dataclass"][0] else ())


if run_time(__name__):

    class Named(nn.Module):
        """Takes two tables' ids of different ranges, a mask, a number, and something that is shared."""

        def __init__(self) -> None:
            super().__init__()
            self.words, self.kinds = nn.Embedding(50, 4), nn.Embedding(3, 4)
            self.seen: list[tuple[int, int]] = []

        def forward(
            self, ids: Tensor, kinds: Tensor, attention_mask: Tensor, scale: float, shared: Tensor
        ) -> Tensor:
            assert bool((shared == 7).all())
            assert bool(((attention_mask == 0) | (attention_mask == 1)).all())
            self.seen.append((int(ids.max()), int(kinds.max())))
            out: Tensor = (self.words(ids) + self.kinds(kinds)) * attention_mask[..., None] * scale
            return out


@pytest.mark.parametrize("form", ["dict", "tuple"])
def test_inputs_may_be_nested_and_whole_numbers_stay_in_their_range(form: str) -> None:
    module = Named()
    batch: Any = {"ids": tokens(8, 6), "kinds": tokens(8, 6), "attention_mask": tokens(8, 6), "scale": 2.0}
    batch["shared"] = torch.full((3, 2), 7.0)
    if form == "tuple":
        batch["attention_mask"] = batch["attention_mask"].bool()
    report = leak_probe(module, batch if form == "dict" else tuple(batch.values()))
    assert report.passed
    ids, kinds = (max(column) for column in zip(*module.seen, strict=True))
    assert 30 < ids < 50
    assert kinds == 2


def test_real_inputs_are_never_used() -> None:
    secret = torch.full((8, 4), 123.25)

    def look(x: Tensor) -> Tensor:
        assert not bool((x == 123.25).any())
        return x

    assert leak_probe(Lambda(look), secret).passed


def test_the_module_and_the_generators_are_left_as_they_were() -> None:
    linear = nn.Linear(4, 4)
    module = nn.Sequential(linear, nn.BatchNorm1d(4), nn.Dropout(0.5)).eval()
    linear.weight.grad = torch.ones(4, 4)
    before = {name: value.clone() for name, value in module.state_dict().items()}
    states = (
        torch.get_rng_state(),
        random.getstate(),
        np.random.get_state(legacy=False)["state"]["key"].copy(),
    )
    assert not leak_probe(module, ROWS).passed
    assert all(torch.equal(value, before[name]) for name, value in module.state_dict().items())
    assert linear.weight.grad is not None
    assert not module.training
    assert not linear._forward_hooks
    assert torch.equal(states[0], torch.get_rng_state())
    assert states[1] == random.getstate()
    assert np.array_equal(states[2], np.random.get_state(legacy=False)["state"]["key"])


def test_frozen_statistics_pass_where_the_user_froze_them() -> None:
    module = nn.Sequential(nn.Linear(4, 4), nn.BatchNorm1d(4))
    module[1].eval()
    assert leak_probe(module, ROWS).passed


if run_time(__name__):

    class Shrinks(nn.Module):
        def __init__(self, how: str) -> None:
            super().__init__()
            self.linear, self.how = nn.Linear(4, 4), how

        def forward(self, x: Tensor) -> Tensor:
            if self.how == "value":
                self.linear.weight.data.mul_(0.9)
            elif self.how == "object":
                self.linear.weight = nn.Parameter(self.linear.weight.detach().clone())
            else:
                self.linear.register_parameter("extra", nn.Parameter(torch.zeros(2)))
            return F.linear(x, torch.ones(4, 4))


calls = iter(range(10**6))
if run_time(__name__):
    WRONG: dict[str, tuple[nn.Module, Any, str]] = {
        "changed parameters": (
            Shrinks("value"),
            ROWS,
            "linear.weight must change in the optimizer's step only",
        ),
        "replaced parameters": (Shrinks("object"), ROWS, "linear.weight must stay the same object"),
        "added parameters": (Shrinks("added"), ROWS, "parameters must stay the same, got linear.extra"),
        "lazy parameters": (nn.LazyLinear(3), ROWS, "weight must have a shape, got a lazy one"),
        "a wrong shape": (nn.Linear(5, 4), ROWS, "must run on random inputs .* it raised RuntimeError"),
        "a state of its own": (
            Lambda(lambda x: x + next(calls)),
            ROWS,
            "same outputs twice in the same state",
        ),
        "NaN": (Lambda(torch.sqrt), ROWS, "outputs must be numbers on random inputs"),
        "one number": (Lambda(torch.sum), ROWS, "outputs must have a row for each example"),
    }


@cases(("module", "batch", "told"), lambda: named(WRONG))
def test_what_cannot_be_probed_is_refused(module: nn.Module, batch: Any, told: str) -> None:
    with pytest.raises(UnfitModule, match=told):
        leak_probe(module, batch)


def test_a_batch_without_tensors_is_refused() -> None:
    with pytest.raises(ParameterError, match="batch must hold a tensor with one row for each example"):
        leak_probe(nn.Linear(4, 4), {"x": 3})


def test_a_user_may_draw_the_batch_and_run_the_module() -> None:
    drawn = []

    def draw(size: int, seed: int) -> Tensor:
        drawn.append((size, seed))
        return torch.rand(size, 4, generator=torch.Generator().manual_seed(seed))

    assert leak_probe(Lambda(torch.sqrt), ROWS, random_batch=draw, run=lambda m, x: m(x) + 1).passed
    assert len({seed for _, seed in drawn}) == len(drawn)
    with pytest.raises(ParameterError, match=r"random_batch must return \d examples when asked"):
        leak_probe(Lambda(torch.sqrt), ROWS, random_batch=lambda size, seed: torch.ones(2, 4))
