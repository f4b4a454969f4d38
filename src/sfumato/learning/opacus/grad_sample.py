"""Opacus's wrapper of modules; here the engine works by hooks on the module itself."""

from __future__ import annotations

from sfumato.learning.opacus.elsewhere import elsewhere

__all__: list[str] = []

_GRADIENTS = "gradients of one example are in no attribute; for those of a loss by hand use clipped_grad"

__getattr__ = elsewhere(
    __name__,
    "be left out",
    "the engine works by hooks on the module itself",
    {
        "GradSampleModule": f"pass the module itself to make_private; {_GRADIENTS}",
        "AbstractGradSampleModule": f"pass the module itself to make_private; {_GRADIENTS}",
        "register_grad_sampler": "what torch.func can follow works without a rule",
    },
)
