"""Low-rank adapters as plain modules: frozen weights beside two thin trained ones, merged or not."""

from __future__ import annotations

from typing import Any

from tests.cases import cases
from tests.run_time import run_time

if run_time(__name__):
    import torch
    import torch.nn.functional as F  # noqa: N812
    from torch import Tensor, nn
    from torch.nn.utils import parametrize

    from sfumato.learning.checks.self_test import self_test
    from sfumato.learning.clipping.flat import Flat
    from sfumato.learning.engine.engine import Mode
    from tests.learning.engine.reference import difference

    class Beside(nn.Module):
        """``base(x) + scale * up(down(x))``, the usual way."""

        def __init__(self, base: nn.Linear, rank: int = 2) -> None:
            super().__init__()
            self.base = base.requires_grad_(False)
            self.down = nn.Parameter(torch.randn(rank, base.in_features))
            self.up = nn.Parameter(torch.randn(base.out_features, rank))

        def forward(self, x: Tensor) -> Tensor:
            return self.base(x) + 0.5 * F.linear(F.linear(F.dropout(x, 0.0), self.down), self.up)  # type: ignore[no-any-return]

    class Merged(nn.Module):
        """A parametrization: ``weight + scale * up @ down``."""

        def __init__(self, weight: Tensor, rank: int = 2) -> None:
            super().__init__()
            self.down = nn.Parameter(torch.randn(rank, weight.shape[1]))
            self.up = nn.Parameter(torch.randn(weight.shape[0], rank))

        def forward(self, weight: Tensor) -> Tensor:
            return weight + 0.5 * self.up @ self.down


def merged(base: nn.Linear) -> nn.Module:
    parametrize.register_parametrization(base.requires_grad_(False), "weight", Merged(base.weight))
    adapter: Any = base.parametrizations
    adapter.weight[0].requires_grad_(True)
    return base


if run_time(__name__):

    class Attention(nn.Module):
        def __init__(self, adapted: Any) -> None:
            super().__init__()
            torch.manual_seed(0)
            self.query, self.value = adapted(nn.Linear(8, 8)), adapted(nn.Linear(8, 8))
            self.key, self.leave = (nn.Linear(8, 8).requires_grad_(False) for _ in range(2))
            self.norm = nn.LayerNorm(8).requires_grad_(False)

        def forward(self, x: Tensor) -> Tensor:
            h = self.norm(x)
            parts = (self.query(h), self.key(h), self.value(h))
            heads = F.scaled_dot_product_attention(
                *(part.unflatten(-1, (2, 4)).transpose(1, 2) for part in parts)
            )
            return x + self.leave(heads.transpose(1, 2).flatten(2))  # type: ignore[no-any-return]


@cases("mode", ["auto", "vmap", "microbatch"])
@cases("adapted", lambda: [Beside, merged])
def test_adapters_agree_with_one_example_at_a_time(adapted: Any, mode: Mode) -> None:
    module = Attention(adapted)
    trained = {name for name, p in module.named_parameters() if p.requires_grad}
    assert {name.rpartition(".")[2] for name in trained} == {"up", "down"}
    error, engine = difference(module, torch.randn(5, 3, 8), mode=mode)
    assert error < 1e-5
    if mode == "auto":
        assert all(name in engine.explain() for name in trained)


@cases("adapted", lambda: [Beside, merged])
def test_adapters_pass_the_self_test(adapted: Any) -> None:
    assert self_test(Attention(adapted), None, torch.zeros(4, 3, 8), Flat(clip_norm=1.0)).passed
