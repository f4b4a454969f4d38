"""Gradients that came to a parameter past the module's forward: they belong to no example."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, final

from torch import Tensor

from sfumato.errors import UnattributedParameter

__all__ = ["UnattributedGradients"]


@final
class UnattributedGradients:
    """Takes such gradients away, and refuses the step that they came in."""

    def __init__(self) -> None:
        self._names: set[str] = set()
        self.expected = False
        """Whether they are of an empty batch, whose forward runs as it is: they are zero."""

    def watch(self, name: str, parameter: Tensor) -> Any:
        """Put a hook on a parameter, and return its handle."""

        def arrived(parameter: Tensor) -> None:
            if not self.expected:
                self._names.add(name)
            parameter.grad = None

        return parameter.register_post_accumulate_grad_hook(arrived)

    @contextmanager
    def apart(self) -> Iterator[set[str]]:
        """Give the names of those that come meanwhile, and forget them after."""
        before, self._names = self._names, set()
        expected, self.expected = self.expected, False
        try:
            yield self._names
        finally:
            self._names, self.expected = before, expected

    def forget(self) -> None:
        """Forget the step."""
        self._names = set()

    def check(self) -> None:
        """Refuse a step in which one came, and begin the next.

        Raises
        ------
        UnattributedParameter
            With the parameters' names.
        """
        names, self._names, self.expected = sorted(self._names), set(), False
        if names:
            raise UnattributedParameter(
                f"{', '.join(names)} must get gradients from uses in the module's forward only, got one from "
                "elsewhere; move that use into the forward"
            )
