"""Whole architectures that the engine is held against, most with a forward of no plain calls."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F  # noqa: N812
from torch import Tensor, nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

__all__ = ["ARCHITECTURES", "BATCH", "losses"]

BATCH = 4


class Net(nn.Module):
    """Parts by name, and a forward.

    Parameters
    ----------
    run : callable of (net, *inputs)
    **parts
        Modules and parameters.
    """

    def __init__(self, run: Callable[..., Any], **parts: Any) -> None:
        super().__init__()
        for name, part in parts.items():
            setattr(self, name, part)
        self._forward = run

    def forward(self, *inputs: Tensor) -> Any:
        return self._forward(self, *inputs)


class Scaled(torch.autograd.Function):
    """A function of the user's own, of examples and a parameter."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor) -> Tensor:
        ctx.save_for_backward(x, weight)
        return x * weight * weight

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, Tensor]:
        x, weight = ctx.saved_tensors
        return gradient * weight * weight, (gradient * 2 * x * weight).sum(0)


class Sign(torch.autograd.Function):
    """A straight-through estimator."""

    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        return x.sign()

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> Tensor:
        return gradient


scaled: Any = Scaled.apply
sign: Any = Sign.apply


def parameter(*shape: int) -> nn.Parameter:
    return nn.Parameter(torch.randn(*shape))


def packed(kind: Any, *, last: bool = False, **options: Any) -> nn.Module:
    def run(net: Any, ids: Tensor, lengths: Tensor) -> Tensor:
        rows = pack_padded_sequence(net.table(ids), lengths, batch_first=True, enforce_sorted=False)
        out, state = net.rnn(rows)
        if last:
            return net.head((state[0] if isinstance(state, tuple) else state)[-1])  # type: ignore[no-any-return]
        padded, _ = pad_packed_sequence(out, batch_first=True, total_length=ids.shape[1])
        return net.head(padded).mean(1)  # type: ignore[no-any-return]

    sides = 2 if options.get("bidirectional") and not last else 1
    rnn = kind(4, 5, batch_first=True, **options)
    return Net(run, table=nn.Embedding(10, 4), rnn=rnn, head=nn.Linear(5 * sides, 2))


def energy() -> nn.Module:
    return nn.Sequential(nn.Linear(3, 8), nn.Tanh(), nn.Linear(8, 1))


def score(net: Any, x: Tensor) -> Tensor:
    x = x.detach().requires_grad_()
    return torch.autograd.grad(net.energy(x).sum(), x, create_graph=True)[0]


def physics(net: Any, x: Tensor) -> Tensor:
    with torch.enable_grad():
        x = x.clone().requires_grad_()
        value = net.energy(x)
        (slope,) = torch.autograd.grad(value.sum(), x, create_graph=True)
    return torch.cat([value, slope], 1)


def routed(net: Any, x: Tensor) -> Tensor:
    chosen, out = net.router(x).argmax(-1), torch.zeros(len(x), 2)
    for index, expert in enumerate(net.experts):
        rows = (chosen == index).nonzero()[:, 0]
        out = out.index_put((rows,), expert(x[rows])) if len(rows) else out
    return out


def frozen_norm(*, affine: bool) -> nn.Module:
    norm = nn.BatchNorm1d(4)
    with torch.no_grad():
        norm.running_mean.normal_()  # type: ignore[union-attr]
    norm.requires_grad_(affine)
    net = Net(lambda net, x: net.head(net.norm(net.enter(x))), enter=nn.Linear(3, 4), norm=norm)
    net.head = nn.Linear(4, 2)
    net.train()
    norm.eval()
    return net


def equilibrium(net: Any, x: Tensor) -> Tensor:
    z = torch.zeros_like(x)
    for _ in range(6):
        z = torch.tanh(0.1 * net.inner(z) + x)
    return net.head(z)  # type: ignore[no-any-return]


def hyper(net: Any, x: Tensor) -> Any:
    return torch.bmm(net.made(x).view(-1, 2, 3), x[:, :, None])[:, :, 0]


def spectrum(net: Any, x: Tensor) -> Tensor:
    filtered = torch.fft.rfft(x) * torch.view_as_complex(net.filter)
    return net.head(torch.fft.irfft(filtered, n=8))  # type: ignore[no-any-return]


def in_place(net: Any, x: Tensor) -> Tensor:
    h = net.enter(x)
    h[:, 0] = 0
    return net.head(F.relu_(h.mul_(2)))  # type: ignore[no-any-return]


def solved(net: Any, x: Tensor) -> Tensor:
    lower = torch.tril(net.lower) + 3 * torch.eye(3)
    found: Tensor = torch.linalg.solve_triangular(lower, x.T, upper=False)
    return found.T


def flow(net: Any, x: Tensor) -> Tensor:
    volume = torch.linalg.slogdet(net.weight + 3 * torch.eye(3))[1]
    return torch.cat([x @ net.weight, volume.expand(len(x), 1)], 1)


def head(net: Any, x: Tensor) -> Tensor:
    return net.head(net.enter(x))  # type: ignore[no-any-return]


def two(make: Callable[[nn.Module], nn.Module]) -> nn.Module:
    return Net(head, enter=make(nn.Linear(3, 3)), head=nn.Linear(3, 2))


def numbers(*shape: int) -> Tensor:
    return torch.randn(BATCH, *shape, generator=torch.Generator().manual_seed(1))


def ids(*shape: int) -> Tensor:
    return torch.randint(10, (BATCH, *shape), generator=torch.Generator().manual_seed(1))


def lengths() -> Tensor:
    return torch.tensor([3, 5, 1, 4])


def bag(**options: Any) -> nn.Module:
    return nn.Sequential(nn.EmbeddingBag(10, 4, **options), nn.Linear(4, 2))


weighted = nn.utils.parametrizations

ARCHITECTURES: dict[str, tuple[Callable[[], nn.Module], Callable[[], tuple[Tensor, ...]], str]] = {
    "packed-lstm": (lambda: packed(nn.LSTM), lambda: (ids(5), lengths()), "microbatches"),
    "packed-gru": (lambda: packed(nn.GRU, bidirectional=True), lambda: (ids(5), lengths()), "microbatches"),
    "packed-rnn": (lambda: packed(nn.RNN, last=True), lambda: (ids(5), lengths()), "microbatches"),
    "packed-lstm-last": (lambda: packed(nn.LSTM, last=True), lambda: (ids(5), lengths()), "microbatches"),
    "own-function": (
        lambda: Net(lambda net, x: net.head(scaled(x, net.w)), w=parameter(3), head=nn.Linear(3, 2)),
        lambda: (numbers(3),),
        "microbatches",
    ),
    "straight-through": (
        lambda: Net(lambda net, x: net.head(sign(net.enter(x))), enter=nn.Linear(3, 4), head=nn.Linear(4, 2)),
        lambda: (numbers(3),),
        "linear",
    ),
    "binary-weights": (
        lambda: Net(lambda net, x: F.linear(x, sign(net.w)), w=parameter(2, 3)),
        lambda: (numbers(3),),
        "",
    ),
    "sparse-table": (
        lambda: nn.Sequential(nn.Embedding(10, 4, sparse=True), nn.Flatten(), nn.Linear(12, 2)),
        lambda: (ids(3),),
        "embedding",
    ),
    "sparse-bag": (lambda: bag(sparse=True), lambda: (ids(3),), "embedding_bag"),
    "bag": (lambda: bag(mode="max"), lambda: (ids(3),), "embedding_bag"),
    "score": (lambda: Net(score, energy=energy()), lambda: (numbers(3),), "microbatches"),
    "physics": (lambda: Net(physics, energy=energy()), lambda: (numbers(3),), "microbatches"),
    "inner-gradient": (
        lambda: Net(lambda net, x: torch.func.grad(lambda z: net.energy(z).sum())(x), energy=energy()),
        lambda: (numbers(3),),
        "vmap",
    ),
    "mapped": (
        lambda: Net(lambda net, x: torch.func.vmap(net.energy)(x), energy=energy()),
        lambda: (numbers(3),),
        "vmap",
    ),
    "frozen-norm": (lambda: frozen_norm(affine=False), lambda: (numbers(3),), "linear"),
    "frozen-affine-norm": (lambda: frozen_norm(affine=True), lambda: (numbers(3),), "linear"),
    "spectrum": (
        lambda: Net(spectrum, filter=parameter(5, 2), head=nn.Linear(8, 2)),
        lambda: (numbers(8),),
        "view_as_complex",
    ),
    "siamese": (
        lambda: Net(lambda net, x: (net.enter(x) - net.enter(2 * x)).square(), enter=nn.Linear(3, 2)),
        lambda: (numbers(3),),
        "linear, linear",
    ),
    "hypernetwork": (lambda: Net(hyper, made=nn.Linear(3, 6)), lambda: (numbers(3),), "linear"),
    "experts": (
        lambda: Net(
            routed, router=nn.Linear(3, 2), experts=nn.ModuleList([nn.Linear(3, 2) for _ in range(2)])
        ),
        lambda: (numbers(3),),
        "microbatches",
    ),
    "weight-norm": (lambda: two(weighted.weight_norm), lambda: (numbers(3),), "_weight_norm"),
    "spectral-norm": (lambda: two(weighted.spectral_norm), lambda: (numbers(3),), "made from it"),
    "orthogonal": (lambda: two(weighted.orthogonal), lambda: (numbers(3),), "made from it"),
    "graph": (
        lambda: Net(
            lambda net, x, near: net.head(near @ torch.relu(near @ net.enter(x))).mean(1),
            enter=nn.Linear(4, 5),
            head=nn.Linear(5, 2),
        ),
        lambda: (numbers(5, 4), numbers(5, 5).softmax(-1)),
        "linear",
    ),
    "equilibrium": (
        lambda: Net(equilibrium, inner=nn.Linear(3, 3), head=nn.Linear(3, 2)),
        lambda: (numbers(3),),
        "linear, linear",
    ),
    "einsum": (
        lambda: Net(lambda net, x: torch.einsum("bi,ijk->bjk", x, net.w).flatten(1), w=parameter(3, 4, 2)),
        lambda: (numbers(3),),
        "einsum",
    ),
    "bilinear": (
        lambda: Net(lambda net, x: net.pair(x, x.flip(1)), pair=nn.Bilinear(3, 3, 2)),
        lambda: (numbers(3),),
        "bilinear",
    ),
    "script": (lambda: two(torch.jit.script), lambda: (numbers(3),), "vmap"),
    "splines": (
        lambda: Net(
            lambda net, x: torch.exp(-(x[:, :1] - torch.linspace(-2, 2, 5)).square()) @ net.w,
            w=parameter(5, 2),
        ),
        lambda: (numbers(3),),
        "matmul",
    ),
    "solve": (lambda: Net(solved, lower=parameter(3, 3)), lambda: (numbers(3),), "tril"),
    "flow": (lambda: Net(flow, weight=parameter(3, 3)), lambda: (numbers(3),), "matmul"),
    "in-place": (
        lambda: Net(in_place, enter=nn.Linear(3, 4), head=nn.Linear(4, 2)),
        lambda: (numbers(3),),
        "linear",
    ),
    "nested-output": (
        lambda: Net(lambda net, x: {"a": net.enter(x), "b": [net.enter(2 * x)]}, enter=nn.Linear(3, 2)),
        lambda: (numbers(3),),
        "linear, linear",
    ),
}
"""Name to what makes the module, what makes its inputs, and part of how its gradients are found."""


def losses(module: nn.Module, inputs: tuple[Tensor, ...]) -> Tensor:
    """Return a loss for each example."""
    leaves = torch.utils._pytree.tree_leaves(module(*inputs))
    out = torch.cat([leaf.flatten(1) for leaf in leaves], 1)
    return (out - torch.cos(2.0 * torch.arange(out.shape[1]))).square().sum(1)
