"""The self-test: what passes, and every planted fault that it must catch."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import pytest

from sfumato.errors import ParameterError, UnfitModule
from tests.cases import cases, named
from tests.run_time import run_time

if run_time(__name__):
    import torch
    import torch.nn.functional as F  # noqa: N812
    from torch import Tensor, nn
    from torch.utils.checkpoint import checkpoint

    from sfumato.learning.checks import clipping_test
    from sfumato.learning.checks import self_test as self_test_module
    from sfumato.learning.checks.self_test import self_test
    from sfumato.learning.clipping.adaptive_quantile import AdaptiveQuantile
    from sfumato.learning.clipping.automatic import Automatic
    from sfumato.learning.clipping.clipping import Clipping
    from sfumato.learning.clipping.flat import Flat
    from sfumato.learning.clipping.per_group import PerGroup
    from sfumato.learning.clipping.per_layer import PerLayer
    from sfumato.learning.engine.clipped_sums import ClippedSums
    from sfumato.learning.engine.engine import Engine, Mode
    from sfumato.learning.engine.gradients.per_example import PerExampleGradients

    CLIPPING = Flat(clip_norm=1.0)
    ROWS = torch.zeros(6, 4)
    LABELLED = (ROWS, torch.zeros(6, dtype=torch.long))


def cross_entropy(module: nn.Module, batch: Any) -> Tensor:
    return F.cross_entropy(module(batch[0]), batch[1])


def mlp() -> nn.Module:
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Dropout(0.5), nn.Linear(8, 3))


if run_time(__name__):

    class Twice(nn.Module):
        """One layer is used twice."""

        def __init__(self) -> None:
            super().__init__()
            torch.manual_seed(0)
            self.layer = nn.Linear(4, 4)

        def forward(self, x: Tensor) -> Any:
            return self.layer(self.layer(x) + x)

    class Noisy(nn.Linear):
        """Draws on every pass, and not by dropout."""

        def forward(self, x: Tensor) -> Tensor:
            return super().forward(x) * torch.rand(x.shape[0], 1)

    class Texts(nn.Module):
        """As Hugging Face's models: named inputs, a loss among the outputs."""

        def __init__(self) -> None:
            super().__init__()
            torch.manual_seed(0)
            self.words, self.head = nn.Embedding(20, 6), nn.Linear(6, 20)

        def forward(self, input_ids: Tensor, attention_mask: Tensor, labels: Tensor) -> dict[str, Tensor]:
            h = self.words(input_ids) * attention_mask[..., None]
            logits = self.head(h)
            return {"loss": F.cross_entropy(logits.flatten(0, 1), labels.flatten()), "logits": logits}


def tokens() -> Tensor:
    return torch.zeros(4, 5, dtype=torch.long)


def in_half(module: nn.Module, batch: Any) -> Tensor:
    with torch.autocast("cpu", torch.bfloat16):
        return cross_entropy(module, batch)


if run_time(__name__):
    PASSES: dict[str, tuple[Callable[[], nn.Module], Any, Any]] = {
        "an mlp": (mlp, cross_entropy, LABELLED),
        "under autocast": (mlp, in_half, LABELLED),
        "its own loss": (mlp, None, ROWS),
        "a layer used twice": (Twice, None, ROWS),
        "names and a loss inside": (
            Texts,
            lambda m, b: m(**b)["loss"],
            {"input_ids": tokens(), "attention_mask": tokens(), "labels": tokens()},
        ),
        "convolutions": (
            lambda: nn.Sequential(nn.Conv2d(1, 4, 3), nn.GroupNorm(2, 4), nn.Flatten(), nn.Linear(64, 2)),
            None,
            torch.zeros(4, 1, 6, 6),
        ),
        "a part frozen": (
            lambda: nn.Sequential(nn.Linear(4, 4).requires_grad_(False), nn.Linear(4, 2)),
            None,
            ROWS,
        ),
        "half": (lambda: nn.Linear(4, 3).to(torch.bfloat16), None, ROWS.to(torch.bfloat16)),
    }


@cases(("make", "loss", "batch"), lambda: named(PASSES))
def test_what_is_sound_passes(make: Callable[[], nn.Module], loss: Any, batch: Any) -> None:
    tested = self_test(make(), loss, batch, CLIPPING, examples=4)
    assert tested.passed, str(tested)
    assert tested.findings is not None
    assert tested.findings.reference == "vmap"
    assert 0.9 < tested.findings.removal <= 1.01
    assert str(tested).startswith("passed: no leak seen")
    tested.check()


LAYERS = ["0.weight", "0.bias", "3.weight", "3.bias"]
if run_time(__name__):
    CLIPPINGS: dict[str, Clipping] = {
        "by layer": PerLayer.of(LAYERS, clip_norm=1.0),
        "by group": PerGroup(clip_norms={"0": 0.3, "3": 2.0}),
        "automatic": Automatic(clip_norm=1.0),
        "adaptive": AdaptiveQuantile(clip_norm=0.1, count_stddev=1.0),
    }


@cases("clipping", lambda: named(CLIPPINGS))
@cases("mode", ["auto", "vmap", "microbatch"])
def test_every_clipping_passes_in_every_mode(clipping: Clipping, mode: Mode) -> None:
    tested = self_test(mlp(), cross_entropy, LABELLED, clipping, mode=mode, examples=3)
    assert tested.passed, str(tested)
    assert tested.findings is not None
    assert tested.findings.removal > 0.8


def test_sums_are_undone_too() -> None:
    def summed(module: nn.Module, batch: Any) -> Tensor:
        return F.cross_entropy(module(batch[0]), batch[1], reduction="sum")

    assert self_test(mlp(), summed, LABELLED, CLIPPING, loss_reduction="sum", examples=4).passed
    told = r"got 'mean' where the loss is a sum over examples; pass loss_reduction='sum'"
    with pytest.raises(UnfitModule, match=told):
        self_test(mlp(), summed, LABELLED, CLIPPING).check()


def test_other_randomness_leaves_the_bound_of_each_alone() -> None:
    tested = self_test(Noisy(4, 2), None, ROWS, CLIPPING, examples=3)
    assert tested.passed, str(tested)
    assert tested.findings is not None
    assert tested.findings.reference == "none"
    assert 0.9 < tested.findings.removal <= 1.01


if run_time(__name__):

    class Unrolled(nn.Module):
        """vmap cannot run it: how often it loops depends on a value."""

        def __init__(self) -> None:
            super().__init__()
            self.layer = nn.Linear(4, 4)

        def forward(self, x: Tensor) -> Tensor:
            times = 1 + int((x.detach()[0, 0] > 1e9).item())
            for _ in range(times):
                x = torch.tanh(self.layer(x))
            return x


def test_one_at_a_time_stands_in_for_vmap() -> None:
    tested = self_test(Unrolled(), None, ROWS, CLIPPING, examples=3)
    assert tested.findings is not None
    assert tested.findings.reference == "one at a time"
    assert tested.passed, str(tested)


if run_time(__name__):

    class Checkpointed(nn.Module):
        """Runs a part of its forward again in the backward."""

        def __init__(self) -> None:
            super().__init__()
            self.part, self.head = nn.Sequential(nn.Linear(4, 8), nn.Dropout(0.5), nn.Tanh()), nn.Linear(8, 2)

        def forward(self, x: Tensor) -> Any:
            return self.head(checkpoint(self.part, x, use_reentrant=False))


def test_what_the_engine_cannot_follow_is_told_with_what_to_do() -> None:
    tested = self_test(Checkpointed(), None, ROWS, CLIPPING)
    assert tested.passed or "use mode='microbatch'" in str(tested)
    tested = self_test(Checkpointed(), None, ROWS, CLIPPING, mode="microbatch")
    assert tested.passed, str(tested)


if run_time(__name__):

    class Capacity(nn.Module):
        """Each expert takes three examples at most."""

        def __init__(self) -> None:
            super().__init__()
            self.router, self.experts = nn.Linear(4, 4), nn.ModuleList(nn.Linear(4, 4) for _ in range(4))

        def forward(self, x: Tensor) -> Tensor:
            choice, out = self.router(x).argmax(1), torch.zeros_like(x)
            for place, expert in enumerate(self.experts):
                taken = (choice == place).nonzero().squeeze(1)[:3]
                out = out.index_add(0, taken, expert(x[taken]))
            return out

    class Mixed(nn.Linear):
        def forward(self, x: Tensor) -> Tensor:
            return super().forward(0.8 * x + 0.2 * x[torch.randperm(len(x))])

    class Shrinking(nn.Linear):
        def forward(self, x: Tensor) -> Tensor:
            self.weight.data.mul_(0.9)
            return super().forward(x)

    class Centred(nn.Linear):
        def forward(self, x: Tensor) -> Tensor:
            h = super().forward(x)
            return h - h.mean(0)

    MODULES: dict[str, tuple[nn.Module, str]] = {
        "batch norm": (nn.Sequential(nn.Linear(4, 6), nn.BatchNorm1d(6)), r"1 \(BatchNorm1d\)"),
        "batch mean": (nn.Sequential(nn.Linear(4, 4), Centred(4, 3)), r"1 \(Centred\)"),
        "capacity of experts": (Capacity(), r"itself \(Capacity\)"),
        "mixed examples": (Mixed(4, 3), r"itself \(Mixed\)"),
        "changing parameters": (Shrinking(4, 3), "weight must change in the optimizer's step only"),
    }


@cases(("module", "told"), lambda: named(MODULES))
def test_modules_that_break_the_guarantee_are_refused(module: nn.Module, told: str) -> None:
    with pytest.raises(UnfitModule, match=told):
        self_test(module, None, ROWS, CLIPPING).check()


def penalised(module: nn.Module, batch: Any) -> Tensor:
    return cross_entropy(module, batch) + sum(p.square().sum() for p in module.parameters())


def contrasted(module: nn.Module, batch: Any) -> Tensor:
    h = module(batch[0])
    return F.cross_entropy(h @ h.T, torch.arange(len(h)))


def balanced(module: nn.Module, batch: Any) -> Tensor:
    h: Tensor = module(batch[0])
    return F.cross_entropy(h, batch[1]) + h.softmax(1).mean(0).square().sum()


def by_labels_seen(module: nn.Module, batch: Any) -> Tensor:
    """A mean over what is not ignored: how much an example weighs depends on the others' labels."""
    return F.cross_entropy(module(batch[0]), batch[1], ignore_index=0)


def by_padding(module: nn.Module, batch: Any) -> Tensor:
    loss: Tensor = nn.CrossEntropyLoss(ignore_index=-1)(module(batch[0]), batch[1])
    return loss


LOSSES: dict[str, tuple[Callable[[nn.Module, Any], Tensor], str]] = {
    "parameters outside the forward": (
        penalised,
        "must get gradients from uses in the module's forward only",
    ),
    "contrasted examples": (contrasted, "loss must be a mean or a sum over examples of a loss of each alone"),
    "a balance of the batch": (
        balanced,
        "loss must be a mean or a sum over examples of a loss of each alone",
    ),
    "ignored labels": (by_labels_seen, "loss must be a mean or a sum over examples of a loss of each alone"),
    "ignored padding": (by_padding, "loss must be a mean or a sum over examples of a loss of each alone"),
    "no use of the module": (lambda _, b: b[0].sum(), "loss_fn must call the module"),
}


@cases(("loss", "told"), LOSSES.values(), ids=LOSSES)
def test_losses_that_break_the_guarantee_are_refused(
    loss: Callable[[nn.Module, Any], Tensor], told: str
) -> None:
    module = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 3))
    with pytest.raises(UnfitModule, match=told):
        self_test(module, loss, LABELLED, CLIPPING).check()


@pytest.mark.parametrize("value", [-1, 2, -100])
def test_classes_that_are_ignored_in_a_sum_are_taken(value: int) -> None:
    module = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 3))

    def loss(module: nn.Module, batch: Any) -> Tensor:
        return F.cross_entropy(module(batch[0]), batch[1], ignore_index=value, reduction="sum")

    self_test(module, loss, LABELLED, CLIPPING, loss_reduction="sum").check()


class Broken:
    """An engine with one fault, on top of the real one."""

    def __init__(self, module: nn.Module, clipping: Flat, **options: Any) -> None:
        self.engine, self.module, self.clipping = Engine(module, clipping, **options), module, clipping

    def attach(self) -> None:
        self.engine.attach()

    def detach(self) -> None:
        self.engine.detach()

    def explain(self) -> str:
        return self.engine.explain()

    def clipped_sums(self) -> ClippedSums:
        return self.broken(self.engine.clipped_sums())

    def broken(self, sums: ClippedSums) -> ClippedSums:
        raise NotImplementedError


class MeanNotUndone(Broken):
    def __init__(self, module: nn.Module, clipping: Flat, **options: Any) -> None:
        super().__init__(module, clipping, **{**options, "loss_reduction": "sum"})

    def broken(self, sums: ClippedSums) -> ClippedSums:
        return sums


class MeanUndoneTwice(Broken):
    def broken(self, sums: ClippedSums) -> ClippedSums:
        scaled = {name: gradient * sums.examples for name, gradient in sums.gradients.items()}
        return changed(sums, gradients=scaled)


class ForgetsAParameter(Broken):
    def broken(self, sums: ClippedSums) -> ClippedSums:
        last = list(sums.gradients)[-1]
        zeroed = {n: g * 0 if n == last else g for n, g in sums.gradients.items()}
        return changed(sums, gradients=zeroed)


class LeavesOneOut(Broken):
    def broken(self, sums: ClippedSums) -> ClippedSums:
        return changed(sums, gradients=dict(list(sums.gradients.items())[1:]))


class ForgetsAnExample(Broken):
    def broken(self, sums: ClippedSums) -> ClippedSums:
        return changed(sums, examples=sums.examples - 1, norms=sums.norms[:, 1:])


class NormsInTheWrongOrder(Broken):
    def broken(self, sums: ClippedSums) -> ClippedSums:
        return changed(sums, norms=sums.norms.flip(1))


class KeepsTheLastStep(Broken):
    last: Mapping[str, Tensor] | None = None

    def broken(self, sums: ClippedSums) -> ClippedSums:
        last, self.last = self.last, sums.gradients
        both = {n: g + (0 if last is None else last[n]) for n, g in sums.gradients.items()}
        return changed(sums, gradients=both)


def changed(sums: ClippedSums, **changes: Any) -> ClippedSums:
    kept = {"gradients": sums.gradients, "examples": sums.examples, "norms": sums.norms}
    return ClippedSums(**{**kept, **changes})


class Hooked:
    """What peers do: norms by hooks on each layer, which forget that two uses of a layer belong together."""

    def __init__(self, module: nn.Module, clipping: Flat, **_: Any) -> None:
        self.module, self.clipping = module, clipping
        self.handles: list[Any] = []

    def attach(self) -> None:
        self.uses: list[tuple[Any, Tensor, Tensor]] = []
        for layer in self.module.modules():
            if isinstance(layer, nn.Linear):
                self.handles.append(layer.register_forward_hook(self.forward))

    def detach(self) -> None:
        for handle in self.handles:
            handle.remove()

    def explain(self) -> str:
        return "hooks"

    def forward(self, layer: Any, inputs: Any, output: Tensor) -> None:
        output.register_hook(lambda g: self.uses.append((layer, inputs[0].detach(), g * len(g))))

    def clipped_sums(self) -> ClippedSums:
        squares = sum(
            (g.square().sum(1) * (1 + a.square().sum(1)) for _, a, g in self.uses), start=torch.zeros(())
        )
        factors = self.clipping.factors(squares[None])[0]
        names = {id(p): name for name, p in self.module.named_parameters()}
        sums = {name: torch.zeros_like(p) for name, p in self.module.named_parameters()}
        for layer, a, g in self.uses:
            sums[names[id(layer.weight)]] += (g * factors[:, None]).T @ a
            sums[names[id(layer.bias)]] += factors @ g
        count, self.uses = len(squares), []
        return ClippedSums(gradients=sums, examples=count, norms=squares.sqrt()[None])


ENGINES = [
    MeanNotUndone,
    MeanUndoneTwice,
    ForgetsAParameter,
    LeavesOneOut,
    ForgetsAnExample,
    NormsInTheWrongOrder,
    KeepsTheLastStep,
]


@pytest.mark.parametrize("engine", ENGINES)
def test_a_broken_engine_is_caught(engine: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(clipping_test, "Engine", engine)
    tested = self_test(mlp(), cross_entropy, LABELLED, CLIPPING)
    assert not tested.passed
    with pytest.raises(UnfitModule, match=r"the engine|leaving out"):
        tested.check()


def test_a_weight_that_is_used_twice_and_counted_as_two_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(clipping_test, "Engine", Hooked)
    assert self_test(mlp(), None, ROWS, CLIPPING).passed  # right, where each layer is used once
    tested = self_test(Twice(), None, ROWS, CLIPPING)
    assert tested.findings is not None
    assert tested.findings.norm_error > 0.01
    assert "the engine's norms must be those of per-example gradients" in str(tested)


if run_time(__name__):

    class LanguageModel(nn.Module):
        """Head and embedding are tied, and outputs are long: of 17,000 words more than a million entries."""

        def __init__(self, mix: Callable[[Tensor], Tensor] = torch.tanh, words: int = 500) -> None:
            super().__init__()
            torch.manual_seed(0)
            self.words, self.inner = nn.Embedding(words, 4), nn.Linear(4, 4)
            self.head = nn.Linear(4, words, bias=False)
            self.head.weight, self.mix = self.words.weight, mix
            self.lengths = set[int]()

        def forward(self, ids: Tensor) -> Tensor:
            self.lengths.add(ids.shape[1])
            logits: Tensor = self.head(self.mix(self.inner(self.words(ids))))
            return logits.transpose(1, 2)

    class OfOneLength(LanguageModel):
        """Has a place for each of 64 tokens, no fewer."""

        def forward(self, ids: Tensor) -> Tensor:
            assert ids.shape[1] == 64
            return super().forward(ids)

    class Joined(torch.autograd.Function):
        """The identity, whose backward divides by what all examples have."""

        @staticmethod
        def forward(ctx: Any, x: Tensor) -> Tensor:
            return x.clone()

        @staticmethod
        def backward(ctx: Any, grad: Tensor) -> Any:
            return grad / grad.square().sum().sqrt()

    def joined(h: Tensor) -> Tensor:
        found: Tensor = Joined.apply(h)  # type: ignore[no-untyped-call]
        return found

    IDS = torch.zeros(6, 64, dtype=torch.long)


def test_a_language_model_is_tested_on_few_short_texts() -> None:
    tested = self_test(module := LanguageModel(words=17_000), None, IDS, CLIPPING)
    assert tested.passed, str(tested)
    assert tested.findings is not None
    assert (tested.findings.examples, tested.findings.reference) == (2, "vmap")
    assert 0.9 < tested.findings.removal <= 1.01
    assert (tested.leaks.runs, module.lengths) == (5, {64, 32})
    with large_outputs():
        assert self_test(module := OfOneLength(), None, IDS, CLIPPING).passed
    assert module.lengths == {64}


@contextmanager
def large_outputs() -> Iterator[None]:
    """Let 20,000 entries be as large as a million, so that 500 words make a language model."""
    with pytest.MonkeyPatch.context() as monkeypatch:
        monkeypatch.setattr(self_test_module, "_LARGE", 20_000)
        yield


MIXTURES: dict[str, Callable[[Tensor], Tensor]] = {
    "a mean": lambda h: h - h.mean(0),
    "a share of the batch": lambda h: h / len(h),
    "a gradient of all": lambda h: joined(1 * h),
    "another text's token": lambda h: torch.cat([h[:, :-1], h[:, -1:].roll(1, 0)], 1),
}


@cases("mix", lambda: named(MIXTURES))
def test_a_language_model_that_joins_texts_is_refused(mix: Callable[[Tensor], Tensor]) -> None:
    with large_outputs():
        assert not self_test(LanguageModel(mix), None, IDS, CLIPPING).passed


@cases("engine", ENGINES)
def test_a_broken_engine_is_caught_on_a_language_model(engine: Any) -> None:
    with pytest.MonkeyPatch.context() as monkeypatch, large_outputs():
        monkeypatch.setattr(clipping_test, "Engine", engine)
        assert not self_test(LanguageModel(), None, IDS, CLIPPING).passed


def test_a_broken_rule_or_clipping_is_caught_on_a_language_model() -> None:
    for rule in rules():
        for name in ("squared_norms", "weighted"):
            right = vars(rule).get(name)
            if right is None or rule.__name__ != "OuterProducts":
                continue
            with pytest.MonkeyPatch.context() as monkeypatch, large_outputs():
                monkeypatch.setattr(rule, name, lambda *given, right=right: 0.9 * right(*given))
                assert not self_test(LanguageModel(), None, IDS, CLIPPING).passed
    with pytest.MonkeyPatch.context() as monkeypatch, large_outputs():
        monkeypatch.setattr(Flat, "factors", loosened)
        assert not self_test(LanguageModel(), None, IDS, CLIPPING).passed


def rules(kind: type[PerExampleGradients] | None = None) -> list[type[PerExampleGradients]]:
    kind = kind or PerExampleGradients
    return [kind, *(rule for inner in kind.__subclasses__() for rule in rules(inner))]


if run_time(__name__):
    RULED: dict[str, tuple[Callable[[], nn.Module], Any]] = {
        "linear": (mlp, ROWS),
        "used twice": (Twice, ROWS),
        "convolution": (lambda: nn.Sequential(nn.Conv2d(1, 4, 3), nn.Flatten()), torch.zeros(4, 1, 6, 6)),
        "norm": (lambda: nn.LayerNorm(4), torch.zeros(4, 3, 4)),
        "embedding": (lambda: nn.Embedding(9, 4), tokens()),
        "recurrent": (lambda: nn.LSTM(4, 3, batch_first=True), torch.zeros(4, 3, 4)),
        "generic": (lambda: nn.Bilinear(4, 4, 2), (ROWS, ROWS)),
    }


@cases(("make", "batch"), lambda: named(RULED))
@cases("broken", ["squared_norms", "weighted"])
def test_a_rule_that_is_broken_on_purpose_is_caught(
    make: Callable[[], nn.Module], batch: Any, broken: str
) -> None:
    with pytest.MonkeyPatch.context() as monkeypatch:
        for rule in rules():
            if broken in vars(rule) and not getattr(vars(rule)[broken], "__isabstractmethod__", False):
                right = vars(rule)[broken]
                monkeypatch.setattr(rule, broken, lambda *given, right=right: 0.9 * right(*given))
        tested = self_test(make(), None, batch, CLIPPING, examples=3)
    assert not tested.passed
    assert "the engine's " in str(tested)


def loosened(self: Flat, squared_norms: Tensor) -> Tensor:
    """Clip to twice the bound."""
    return (2 * self.clip_norm / squared_norms.sqrt()).clamp(max=2)


def test_a_clipping_that_passes_its_own_bound_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Flat, "factors", loosened)
    tested = self_test(mlp(), cross_entropy, LABELLED, CLIPPING)
    assert tested.findings is not None
    assert tested.findings.removal == pytest.approx(2, rel=0.01)
    with pytest.raises(
        UnfitModule, match="leaving out one example must move the sum by at most the sensitivity"
    ):
        tested.check()


def test_the_module_is_left_as_it_was() -> None:
    module = mlp().eval()
    before = {name: value.clone() for name, value in module.state_dict().items()}
    state = torch.get_rng_state()
    assert self_test(module, cross_entropy, LABELLED, CLIPPING, examples=2).passed
    assert all(torch.equal(value, before[name]) for name, value in module.state_dict().items())
    assert all(p.grad is None for p in module.parameters())
    assert not module.training
    assert not any(m._forward_hooks or m._forward_pre_hooks for m in module.modules())
    assert torch.equal(state, torch.get_rng_state())


@pytest.mark.parametrize("examples", [1, 9, 2.5])
def test_the_number_of_examples_is_bounded(examples: Any) -> None:
    with pytest.raises(ParameterError, match="examples must be"):
        self_test(mlp(), None, ROWS, CLIPPING, examples=examples)


def test_an_attached_engine_is_refused() -> None:
    module = mlp()
    engine = Engine(module, CLIPPING)
    engine.attach()
    with pytest.raises(
        ParameterError, match=r"module must have no engine attached.*call the engine's detach\(\) first"
    ):
        self_test(module, None, ROWS, CLIPPING)
    engine.detach()
    assert self_test(module, None, ROWS, CLIPPING, examples=2).passed


if run_time(__name__):

    class OwnLoss(nn.Linear):
        """Gives its loss only, of one kind or another."""

        reduction = "mean"
        leaks = False

        def forward(self, x: Tensor) -> Tensor:
            h = super().forward(x)
            each = (h - h.mean(0) if self.leaks else h).square().sum(1)
            return each.mean() if self.reduction == "mean" else each.sum()


def test_a_module_may_give_its_own_loss() -> None:
    module = OwnLoss(4, 3)
    tested = self_test(module, None, ROWS, CLIPPING, examples=4)
    assert tested.passed, str(tested)
    assert "no output that is one example's" in str(tested)
    module.reduction = "sum"
    with pytest.raises(UnfitModule, match="pass loss_reduction='sum'"):
        self_test(module, None, ROWS, CLIPPING, examples=4).check()
    module.leaks = True
    with pytest.raises(
        UnfitModule, match="loss must be a mean or a sum over examples of a loss of each alone"
    ):
        self_test(module, None, ROWS, CLIPPING, loss_reduction="sum").check()


def test_outputs_without_examples_need_a_loss() -> None:
    class Count(nn.Linear):
        def forward(self, x: Tensor) -> Any:
            return super().forward(x).argmax(1)

    with pytest.raises(UnfitModule, match="outputs must have float entries in a row for each example"):
        self_test(Count(4, 3), None, ROWS, CLIPPING)


if run_time(__name__):

    class Tagger(nn.Module):
        """Gives its own loss beside its outputs, as a language model does that is called with labels."""

        def __init__(self, loss: Callable[[Tensor, Tensor], Tensor]) -> None:
            super().__init__()
            torch.manual_seed(0)
            self.head, self.loss = nn.Linear(4, 3), loss

        def forward(self, x: Tensor, labels: Tensor) -> Any:
            logits = self.head(x)
            return {"loss": self.loss(logits.transpose(1, 2), labels), "logits": logits}


def shifted(logits: Tensor, labels: Tensor) -> Tensor:
    return F.cross_entropy(logits, F.pad(labels, (0, 1), value=-100)[:, 1:])


def of_each(logits: Tensor, labels: Tensor) -> Tensor:
    losses = F.cross_entropy(logits, labels, reduction="none")
    return (losses.sum(1) / (labels != -100).sum(1).clamp(min=1)).mean()


if run_time(__name__):
    TOKENS = (torch.zeros(6, 5, 4), torch.zeros(6, 5, dtype=torch.long))


@cases("loss", lambda: [F.cross_entropy, shifted])
def test_a_mean_over_the_tokens_of_all_examples_is_refused_beside_outputs_that_are_apart(loss: Any) -> None:
    module = Tagger(loss)
    rows = torch.zeros(20, 50, 4), torch.ones(20, 50, dtype=torch.long)
    rows[0][1:], rows[1][1:, :2], rows[1][1:, 2:] = 0.25, 0, -100
    sums = []
    for kept in (slice(0, 20), slice(1, 20)):
        engine = Engine(module, CLIPPING)
        engine.attach()
        module(rows[0][kept], rows[1][kept])["loss"].backward()
        sums.append(torch.cat([total.flatten() for total in engine.clipped_sums().gradients.values()]))
        engine.detach()
    assert (sums[0] - sums[1]).norm() > 3 * CLIPPING.sensitivity  # what one example's labels do to others
    found = self_test(module, None, TOKENS, CLIPPING)
    assert not found.passed
    assert any("loss must be a mean or a sum over examples" in fault for fault in found.faults)


def test_an_own_loss_that_each_example_has_alone_is_taken() -> None:
    assert self_test(Tagger(of_each), None, TOKENS, CLIPPING).passed
    classes = TOKENS[0][:, 0], TOKENS[1][:, 0]

    class Classifier(Tagger):
        def forward(self, x: Tensor, labels: Tensor) -> Any:
            logits = self.head(x)
            return F.cross_entropy(logits, labels), logits

    assert self_test(Classifier(of_each), None, classes, CLIPPING).passed
