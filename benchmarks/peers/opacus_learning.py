"""Opacus' steps in turns with ours, those by hand and the plain one, as JSON."""

from collections.abc import Callable
from functools import partial

import torch
from learning_by_hand import books_step, microbatch_step
from learning_models import report, setting
from opacus import PrivacyEngine
from opacus.validators import ModuleValidator
from sfumato_learning import STEPS
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


def step_of(name: str, *, mode: str) -> Callable[[], None]:
    model, inputs, classes = setting(name)
    model = ModuleValidator.fix(model)
    made = PrivacyEngine().make_private(
        module=model,
        optimizer=torch.optim.SGD(model.parameters(), lr=0.01),
        criterion=nn.CrossEntropyLoss(),
        data_loader=DataLoader(TensorDataset(inputs, classes), batch_size=len(inputs)),
        noise_multiplier=1.0,
        max_grad_norm=1.0,
        poisson_sampling=False,
        grad_sample_mode=mode,
    )
    private, optimizer = made[:2]
    criterion = made[2] if mode == "ghost" else nn.CrossEntropyLoss()

    def step() -> None:
        optimizer.zero_grad()
        criterion(private(inputs), classes).backward()
        optimizer.step()

    return step


HAND = {"books by hand": books_step, "one at a time": microbatch_step}
OPACUS = {f"Opacus, {mode}": partial(step_of, mode=mode) for mode in ("hooks", "functorch", "ew", "ghost")}

report(peers=STEPS | HAND | OPACUS)
