"""Opacus's names for what is known of a module without running it, and for replacing it."""

from __future__ import annotations

from typing import final

from torch import nn

from sfumato.errors import UnfitModule
from sfumato.learning.checks.replacements import faults, fix_module
from sfumato.learning.checks.state_restoration import parameters_of

__all__ = ["ModuleValidator"]


@final
class ModuleValidator:
    """Opacus's validator: `validate`, `is_valid`, `fix`, `fix_and_validate`.

    Unlike there, recurrent and attention layers need no replacement. Layers of known classes are looked at
    and nothing is run: what a module does shows in `leak_probe` and `self_test`.

    Examples
    --------
    >>> model = nn.Sequential(nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8))
    >>> ModuleValidator.is_valid(model)
    False
    >>> ModuleValidator.is_valid(ModuleValidator.fix(model))
    True
    """

    @staticmethod
    def validate(module: nn.Module, *, strict: bool = False) -> list[UnfitModule]:
        """Return what speaks against a module; raise it if ``strict``.

        Parameters
        ----------
        module : torch.nn.Module
        strict : bool

        Returns
        -------
        list of UnfitModule
            One error for each layer.

        Raises
        ------
        UnfitModule
            If ``strict`` and there is one; the message has all.
        """
        found = [
            UnfitModule(
                f"layers must keep examples apart, got {name}, which {what}; {why or 'call fix_module'}"
            )
            for name, what, why in faults(module)
        ]
        for name, parameter in module.named_parameters():
            if parameter.requires_grad and parameter.is_complex():
                remedy = "make it of real entries, and view them by torch.view_as_complex"
                found.append(UnfitModule(f"{name} must be real, got a complex parameter; {remedy}"))
        try:
            parameters = parameters_of(module)
        except UnfitModule as lazy:
            found.append(lazy)
        else:
            if not any(parameter.requires_grad for parameter in parameters.values()):
                found.append(
                    UnfitModule(
                        "module must have a parameter that requires a gradient, got none; unfreeze one"
                    )
                )
        if strict and found:
            raise UnfitModule("; ".join(map(str, found)))
        return found

    @staticmethod
    def is_valid(module: nn.Module) -> bool:
        """Return whether nothing is known against a module.

        Parameters
        ----------
        module : torch.nn.Module

        Returns
        -------
        bool
        """
        return not ModuleValidator.validate(module)

    @staticmethod
    def fix(module: nn.Module) -> nn.Module:
        """Return a copy with layers replaced; see `fix_module`.

        Parameters
        ----------
        module : torch.nn.Module

        Returns
        -------
        torch.nn.Module
        """
        return fix_module(module)

    @staticmethod
    def fix_and_validate(module: nn.Module) -> nn.Module:
        """Return a copy with layers replaced, or raise what still speaks against it.

        Parameters
        ----------
        module : torch.nn.Module

        Returns
        -------
        torch.nn.Module
        """
        fixed = fix_module(module)
        ModuleValidator.validate(fixed, strict=True)
        return fixed
