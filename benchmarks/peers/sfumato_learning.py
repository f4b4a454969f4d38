"""Our steps beside the plain one, as JSON."""

from collections.abc import Callable
from functools import partial

import torch
import torch.nn.functional as F  # noqa: N812
from learning_by_hand import vmap_step
from learning_models import plain_step, report, setting

from sfumato.learning import Engine, Flat, KeyedNoise


def step_of(
    name: str, *, keyed: bool = True, chunks: int = 1, parts: int = 1, memory: int | None = None
) -> Callable[[], None]:
    """Return a step of ours.

    Parameters
    ----------
    name : str
        The model.
    keyed : bool
        Whether noise is keyed, or torch's.
    chunks, parts : int
        Into how many the engine cuts the batch for its books, and the loop cuts it for its forwards.
    memory : int, optional
        Bytes of gradients that one use may keep.
    """
    model, inputs, classes = setting(name)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    clipping = Flat(clip_norm=1.0)
    chunk = len(inputs) // parts // chunks if chunks > 1 else None
    engine = Engine(model, clipping, memory=memory, chunk=chunk)
    engine.attach()
    noise = KeyedNoise()
    count = 0

    def step() -> None:
        nonlocal count
        optimizer.zero_grad()
        for own, known in zip(inputs.chunk(parts), classes.chunk(parts), strict=True):
            F.cross_entropy(model(own), known).backward()
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


STEPS = {
    "plain": plain_step,
    "sfumato, keyed noise": step_of,
    "sfumato, torch's noise": partial(step_of, keyed=False),
    "sfumato, low memory": partial(step_of, parts=2),
    "vmap by hand": vmap_step,
}
LARGE = {name: make for name, make in STEPS.items() if name != "vmap by hand"}
"""What fits where a gradient for each example does not."""
CURVE = {
    "plain": plain_step,
    "whole batch": step_of,
    **{f"{size} KiB for each use": partial(step_of, memory=1024 * size) for size in (16384, 1024, 64)},
    **{f"in {count} forwards": partial(step_of, parts=count) for count in (2, 4, 8, 16)},
    **{f"in {count} chunks": partial(step_of, chunks=count) for count in (2, 4, 8, 16)},
}

if __name__ == "__main__":
    report(steps=STEPS, curve=CURVE, large=LARGE)
