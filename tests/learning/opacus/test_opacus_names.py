"""Opacus's import paths: each name is there, or its import says what to use."""

from __future__ import annotations

import importlib
import re

import pytest

import sfumato.learning
from sfumato.errors import ParameterError
from tests.run_time import run_time

if run_time(__name__):
    import torch
    from torch import nn
    from torch.utils.data import DataLoader, TensorDataset

    from sfumato.learning.opacus import PrivacyEngine
    from sfumato.learning.opacus.layers import DPGRU, DPLSTM, DPRNN, DPMultiheadAttention
    from sfumato.learning.opacus.utils.batch_memory_manager import BatchMemoryManager
    from sfumato.learning.opacus.validators import ModuleValidator

    class Tagger(nn.Module):
        """All of Opacus's layers behind one another."""

        def __init__(self) -> None:
            super().__init__()
            self.lstm = DPLSTM(3, 4, batch_first=True)
            self.gru = DPGRU(4, 4, batch_first=True)
            self.rnn = DPRNN(4, 4, batch_first=True)
            self.attention = DPMultiheadAttention(4, 2, batch_first=True)
            self.head = nn.Linear(4, 1)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            x = self.rnn(self.gru(self.lstm(x)[0])[0])[0]
            scores: torch.Tensor = self.head(self.attention(x, x, x)[0].mean(1))
            return scores


ROOT = "sfumato.learning.opacus"
SAME = {
    "": {"PrivacyEngine": "PrivacyEngine"},
    ".utils.batch_memory_manager": {"BatchMemoryManager": "BatchMemoryManager"},
    ".validators": {"ModuleValidator": "ModuleValidator"},
    ".distributed": {"DifferentiallyPrivateDistributedDataParallel": "DPDDP", "DPDDP": "DPDDP"},
}
OTHERWISE = {
    "": ("GradSampleModule",),
    ".grad_sample": ("GradSampleModule", "AbstractGradSampleModule", "register_grad_sampler"),
    ".data_loader": ("DPDataLoader",),
    ".optimizers": ("DPOptimizer", "DPPerLayerOptimizer", "DistributedDPOptimizer", "AdaClipDPOptimizer"),
}


def test_names_of_the_room_are_the_same_objects() -> None:
    for module, names in SAME.items():
        for name, own in names.items():
            found = getattr(importlib.import_module(ROOT + module), name)
            assert found is getattr(sfumato.learning, own), name


def test_what_is_done_otherwise_says_by_which_names() -> None:
    for module, names in OTHERWISE.items():
        for name in names:
            with pytest.raises(ParameterError, match=f"^{name} must ") as raised:
                exec(f"from {ROOT}{module} import {name}", {})
            known = re.findall(r"\b([A-Z]\w+)[(.]|\b(clipped_grad)\b", str(raised.value).partition("; ")[2])
            assert known or "make_private" in str(raised.value) or "torch.func" in str(raised.value)
            for said in known:
                assert hasattr(sfumato.learning, "".join(said)), said
        with pytest.raises(AttributeError, match="has no attribute 'Nothing'"):
            importlib.import_module(ROOT + module).Nothing  # noqa: B018


def test_the_paths_load_no_torch_before_they_are_used() -> None:
    assert "utils" in dir(importlib.import_module(ROOT))
    assert importlib.import_module(ROOT).utils.batch_memory_manager.__all__ == ["BatchMemoryManager"]


def test_a_script_of_opacus_runs_after_its_imports_are_changed() -> None:
    torch.manual_seed(0)
    model = Tagger()
    assert ModuleValidator.validate(model, strict=False) == []
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    data = TensorDataset(torch.randn(12, 2, 3), torch.randn(12, 1))
    privacy_engine = PrivacyEngine(accountant="rdp", secure_mode=False)
    model, optimizer, loader = privacy_engine.make_private(
        module=model,
        optimizer=optimizer,
        data_loader=DataLoader(data, batch_size=4),
        noise_multiplier=1.1,
        max_grad_norm=1.0,
    )
    with BatchMemoryManager(data_loader=loader, max_physical_batch_size=2, optimizer=optimizer) as parts:
        for x, y in parts:
            optimizer.zero_grad()
            nn.functional.mse_loss(model(x), y).backward()
            optimizer.step()
    ((noise, rate, steps),) = privacy_engine.accountant.history
    assert (noise, steps) == (1.1, 3)
    assert rate == pytest.approx(1 / 3)
    assert 0 < privacy_engine.get_epsilon(delta=1e-3) < 10
