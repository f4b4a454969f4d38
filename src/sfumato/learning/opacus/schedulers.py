"""Opacus's schedulers set noise and norms between steps; here a `Schedule` is there before the first one."""

from __future__ import annotations

from typing import Final

from sfumato.learning.opacus.elsewhere import elsewhere

__all__: list[str] = []

_NOISE: Final = "pass noise=NoiseOptions(schedule={}) to make_private"
_CLIP: Final = "pass gradients=GradientOptions(clip_schedule={}) to make_private"
_EXPONENTIAL: Final = "Schedule.exponential(gamma, every=len(data_loader), steps=steps)"
_FUNCTION: Final = "Schedule.of(function, every=len(data_loader), steps=steps)"
_STEP: Final = "Schedule.exponential(gamma, every=step_size * len(data_loader), steps=steps)"

__getattr__ = elsewhere(
    __name__,
    "be fixed before the first step",
    "Opacus's is set from step to step, which no price knows of",
    {
        "ExponentialNoise": _NOISE.format(_EXPONENTIAL),
        "LambdaNoise": _NOISE.format(_FUNCTION),
        "StepNoise": _NOISE.format(_STEP),
        "ExponentialGradClip": _CLIP.format(_EXPONENTIAL),
        "LambdaGradClip": _CLIP.format(_FUNCTION),
        "StepGradClip": _CLIP.format(_STEP),
    },
)
