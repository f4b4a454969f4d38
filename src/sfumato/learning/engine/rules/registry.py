"""Which rules there are for a function, the generic one last."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch.nn.functional as F  # noqa: N812

from sfumato.learning.engine.rules.anything import anything
from sfumato.learning.engine.rules.linear import linear
from sfumato.learning.engine.site import NoRule, Site

__all__ = ["RULES", "apply"]

Rule = Callable[..., Any]

RULES: dict[Any, Rule] = {
    F.linear: linear,
}
"""A function of torch to its rule, which takes the site and then the function's own arguments."""


def apply(site: Site) -> Any:
    """Run a site by its rule, else by the generic one; NotImplemented if neither knows it."""
    for rule in (RULES.get(site.func), anything):
        if rule is not None:
            try:
                return rule(site, *site.args, **site.kwargs)
            except NoRule:
                continue
    return NotImplemented
