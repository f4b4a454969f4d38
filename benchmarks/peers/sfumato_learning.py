"""Our steps beside the plain one, as JSON."""

from collections.abc import Callable
from functools import partial

import torch
import torch.nn.functional as F  # noqa: N812
from learning_models import plain_step, report, setting, vmap_step

from sfumato.learning import Engine, Flat, KeyedNoise


def step_of(name: str, *, keyed: bool, low_memory: bool = False) -> Callable[[], None]:
    model, inputs, classes = setting(name)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    clipping = Flat(clip_norm=1.0)
    engine = Engine(model, clipping, **({"chunk": len(inputs) // 4} if low_memory else {}))
    engine.attach()
    noise = KeyedNoise()
    count = 0

    def step() -> None:
        nonlocal count
        optimizer.zero_grad()
        F.cross_entropy(model(inputs), classes).backward()
        sums = engine.clipped_sums().gradients
        gradients = [sums[key] for key, _ in model.named_parameters()]
        if keyed:
            noise.add_(gradients, step=count, stddevs=[clipping.sensitivity] * len(gradients))
        for parameter, gradient in zip(model.parameters(), gradients, strict=True):
            if not keyed:
                gradient.add_(torch.randn_like(gradient), alpha=clipping.sensitivity)
            parameter.grad = gradient.div_(len(inputs))
        optimizer.step()
        count += 1

    return step


report(
    {
        "plain": plain_step,
        "vmap by hand": vmap_step,
        "sfumato, keyed noise": partial(step_of, keyed=True),
        "sfumato, torch's noise": partial(step_of, keyed=False),
        "sfumato, low memory": partial(step_of, keyed=True, low_memory=True),
    }
)
