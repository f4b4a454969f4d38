from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.cases import cases
from tests.run_time import run_time

if run_time(__name__):
    import torch
    from torch import Tensor, nn

    from sfumato.learning.clipping.flat import Flat
    from sfumato.learning.clipping.per_user import clipped_by_user
    from sfumato.learning.clipping.precision import in_full
    from sfumato.learning.engine.engine import Engine, Mode
    from sfumato.learning.engine.functional import clipped_grad

    class Watching(Flat):  # type: ignore[misc]  # final, but for a test
        """Flat clipping that notes how products are computed while gradients are clipped."""

        def factors(self, squared_norms: Tensor) -> Tensor:
            rounds = torch.backends.cuda.matmul.allow_tf32 or torch.backends.cudnn.allow_tf32
            seen.append((torch.get_float32_matmul_precision(), rounds))
            return super().factors(squared_norms)


seen: list[tuple[str, bool]] = []


def _settings() -> tuple[str, bool, bool]:
    plain = torch.backends.cuda.matmul.allow_tf32, torch.backends.cudnn.allow_tf32
    return torch.get_float32_matmul_precision(), *plain


@pytest.fixture(autouse=True)
def rounding() -> Iterator[None]:
    torch.manual_seed(0)
    seen.clear()
    torch.set_float32_matmul_precision("medium")
    before = _settings()
    yield
    assert _settings() == before == ("medium", True, True)
    torch.set_float32_matmul_precision("highest")


def _module() -> nn.Module:
    return nn.Sequential(nn.Linear(40, 30), nn.Linear(30, 20))


@cases("inside", [False, True])
@cases("mode", ["auto", "vmap", "microbatch"])
def test_a_pass_that_is_added_up_under_autocast_is_clipped_in_float32(mode: Mode, *, inside: bool) -> None:
    engine = Engine(module := _module(), Flat(clip_norm=1.0), loss_reduction="sum", mode=mode)
    engine.attach()
    for _ in range(10):
        with torch.autocast("cpu", torch.bfloat16):
            loss = module(10 * torch.randn(1, 40)).square().sum()
            if inside:
                loss.backward()
        if not inside:
            loss.backward()
        with torch.autocast("cpu", torch.bfloat16):
            module(torch.randn(1, 40))
        sums = engine.clipped_sums().gradients
        assert {total.dtype for total in sums.values()} == {torch.float32}
        norm = torch.stack([total.double().norm() for total in sums.values()]).norm()
        assert float(norm) <= engine.clipping.sensitivity


@pytest.mark.parametrize("mode", ["auto", "vmap", "microbatch"])
def test_gradients_are_clipped_without_the_rounding_that_devices_are_let(mode: Mode) -> None:
    engine = Engine(module := _module(), Watching(clip_norm=1.0), mode=mode)
    engine.attach()
    module(torch.randn(3, 40)).sum().backward()
    engine.clipped_sums()
    assert seen == [("highest", False)] * len(seen) != []


def test_so_are_those_of_a_function() -> None:
    def loss(parameters: dict[str, Tensor], x: Tensor) -> Tensor:
        return (parameters["w"] * x).sum()

    clipped_grad(loss, clipping=Watching(clip_norm=1.0))({"w": torch.ones(4)}, torch.ones(3, 4))
    assert seen == [("highest", False)]


def test_newer_settings_are_put_back_too() -> None:
    if not hasattr(torch.backends, "fp32_precision"):
        pytest.skip("since torch 2.9")
    torch.set_float32_matmul_precision("highest")
    backends: Any = torch.backends
    product = backends.mkldnn.matmul
    product.fp32_precision = "bf16"
    try:
        with in_full(torch.device("cpu")):
            assert product.fp32_precision == "ieee"
        assert product.fp32_precision == "bf16"
    finally:
        product.fp32_precision = "none"
        torch.set_float32_matmul_precision("medium")


def test_users_sums_are_clipped_in_float32_under_autocast() -> None:
    gradients = [10 * torch.randn(1, 5000)]
    with torch.autocast("cpu", torch.bfloat16):
        sums = clipped_by_user(gradients, torch.tensor([3]), clipping=Flat(clip_norm=1.0), names=["w"])
    assert sums.gradients[0].dtype == torch.float32
    assert float(sums.gradients[0].double().norm()) <= Flat(clip_norm=1.0).sensitivity
