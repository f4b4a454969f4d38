"""What the words of `make_private` mean: clipping, noise, sampler and mode."""

from __future__ import annotations

import inspect
from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import nn

from sfumato import _check
from sfumato.learning.clipping.automatic import Automatic
from sfumato.learning.clipping.clipping import Clipping
from sfumato.learning.clipping.flat import Flat
from sfumato.learning.clipping.per_layer import PerLayer
from sfumato.learning.engine.engine import Mode
from sfumato.learning.noise.grid import GridNoise
from sfumato.learning.noise.keyed import KeyedNoise, SimulatedNoise
from sfumato.learning.noise.noise import Noise
from sfumato.learning.sampling.sampler import Sampler
from sfumato.learning.training.loop.run_loss import check_noise
from sfumato.learning.training.setup.options import NoiseOptions

__all__ = ["check_maker", "check_wanted", "clipping_for", "mode_for", "noise_for_run", "seed_of"]

MODES: dict[str, Mode] = {
    **dict.fromkeys(("auto", "hooks", "ghost", "ghost_fsdp", "ew"), "auto"),
    "functorch": "vmap",
    "no_op": "vmap",
    "vmap": "vmap",
    "book_keeping": "book_keeping",
    "microbatch": "microbatch",
}


def mode_for(grad_sample_mode: str) -> Mode:
    """Return the engine's mode; Opacus's names are all taken."""
    if grad_sample_mode not in MODES:
        _check.refuse("grad_sample_mode", f"be one of {', '.join(MODES)}", grad_sample_mode, "use 'auto'")
    return MODES[grad_sample_mode]


def clipping_for(
    clipping: str | Clipping, max_grad_norm: float | Sequence[float], module: nn.Module
) -> Clipping:
    """Return the clipping that a word and a norm mean, or the object that was passed."""
    if isinstance(clipping, Clipping):
        return clipping
    if clipping not in ("flat", "per_layer", "automatic"):
        rule = "be 'flat', 'per_layer', 'automatic' or a Clipping"
        _check.refuse("clipping", rule, clipping, "pass AdaptiveQuantile(...) or PerGroup(...), say")
    if isinstance(max_grad_norm, Sequence):
        remedy = "pass PerGroup(...) as clipping"
        _check.refuse_state("max_grad_norm", "be one number", "there are several", remedy)
    if clipping == "flat":
        return Flat(clip_norm=max_grad_norm)
    if clipping == "automatic":
        return Automatic(clip_norm=max_grad_norm)
    return per_layer(max_grad_norm, module)


def per_layer(max_grad_norm: float, module: nn.Module) -> Clipping:
    """Return clipping by layer, of as many norms as there are trainable parameters' owners."""
    names = [name for name, parameter in module.named_parameters() if parameter.requires_grad]
    return PerLayer.of(names, clip_norm=max_grad_norm)


def check_wanted(module: object, target_delta: float, options: Mapping[str, Any]) -> None:
    """Refuse what no noise can be calibrated for."""
    if "noise_multiplier" in options:
        remedy = "it follows from target_epsilon; call make_private to choose it"
        _check.refuse("noise_multiplier", "be left out", options["noise_multiplier"], remedy)
    _check.instance("module", module, nn.Module, "pass the model itself")
    _check.unit_interval("target_delta", target_delta, "use 1e-5, say")


def seed_of(noise_generator: torch.Generator | int | None) -> int | None:
    """Return the number that a simulation is drawn from; None for noise that protects."""
    if isinstance(noise_generator, torch.Generator):
        return noise_generator.initial_seed()
    return None if noise_generator is None else _check.integer("noise_generator", noise_generator)


def noise_for_run(options: NoiseOptions, sampler: Sampler, *, seed: int | None, key: bytes) -> Noise:
    """Return the user's own making of noise, or keyed noise; simulated if there is a seed."""
    noise, float_safe = options.noise, options.float_safe
    if noise is not None and float_safe:
        _check.refuse("float_safe", "be left out where noise is given", True, "pass GridNoise as noise")
    if noise is None and float_safe:
        return GridNoise(key) if seed is None else GridNoise(seed=seed)
    if noise is None:
        return KeyedNoise(key) if seed is None else SimulatedNoise(seed)
    check_maker("noise", noise, "sampler, key and seed", "lambda sampler, **own: GridNoise(**own)")
    made = noise(sampler=sampler, key=key if seed is None else None, seed=seed)
    given: object = made
    # Another key may be another run's, and a run that is resumed would begin with a fresh one.
    own = isinstance(given, Noise) and given.simulated == (seed is not None)
    if not own or (seed is None and getattr(given, "key", None) != key):
        _check.refuse("noise", "be made of the key or the seed that it is given", made, "pass both on")
    check_noise(made, sampler)
    return made


def check_maker(name: str, make: object, given: str, such: str) -> None:
    """Refuse what does not take the words that it would be called with."""
    words = dict.fromkeys(given.replace(" and", ",").split(", "))
    try:
        inspect.signature(make).bind(**words)  # type: ignore[arg-type]
    except TypeError:
        _check.refuse(name, f"be a function of {given}", make, f"pass {such}, say")
    except ValueError:  # of what is written in C nothing is known
        pass
