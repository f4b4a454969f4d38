"""What an answer betrays of the one who gave it, in odds."""

from __future__ import annotations

import math
from collections.abc import Hashable
from dataclasses import dataclass
from fractions import Fraction
from typing import final

__all__ = ["CategoryRisk", "RespondentRisk"]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class RespondentRisk:
    """How sure somebody who hears the answer may become that the sensitive thing is true.

    Parameters
    ----------
    prior : Fraction
        The chance that they gave it before.
    posterior : dict of Fraction
        The chance after each answer (Bayes).
    odds : dict of Fraction or float
        What each answer multiplies the odds by; the prior does not matter. It is 0 or infinite where an
        answer is never given with the trait or without it.

    Examples
    --------
    >>> from sfumato.local.surveys import Warner
    >>> risk = Warner(truth="3/4").risk("1/10")
    >>> str(risk.posterior["yes"]), str(risk.posterior["no"]), str(risk.most)
    ('1/4', '1/28', '3')
    """

    prior: Fraction
    posterior: dict[Hashable, Fraction]
    odds: dict[Hashable, Fraction | float]

    @property
    def most(self) -> Fraction | float:
        """The maximum factor by which any answer moves the odds, up or down: exp(epsilon)."""
        return max(max(factor, 1 / factor if factor else math.inf) for factor in self.odds.values())

    def __str__(self) -> str:
        parts = (f'{100 * float(chance):.1f} % after "{answer}"' for answer, chance in self.posterior.items())
        return f"{100 * float(self.prior):.1f} % before the answer; {', '.join(parts)}"


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class CategoryRisk:
    """How sure somebody who hears the answer may become of each category.

    Parameters
    ----------
    prior : dict of Fraction
        The chance of each category that they gave it before.
    posterior : dict of dict of Fraction
        The chance of each category after each answer (Bayes): ``posterior[answer][category]``.
    most : Fraction
        The maximum factor by which any answer moves the odds of one category against another: exp(epsilon).

    Examples
    --------
    >>> from sfumato.local.surveys import ForcedCategory
    >>> design = ForcedCategory(names=("never", "once", "often"), truth="3/5")
    >>> risk = design.risk(["1/2", "1/4", "1/4"])
    >>> sum(risk.posterior["often"].values()) == 1, risk.posterior["often"]["often"] > risk.prior["often"]
    (True, True)
    """

    prior: dict[Hashable, Fraction]
    posterior: dict[Hashable, dict[Hashable, Fraction]]
    most: Fraction

    def __str__(self) -> str:
        before = ", ".join(f'{100 * float(chance):.1f} % "{name}"' for name, chance in self.prior.items())
        after = (
            f'{100 * float(chances[answer]):.1f} % after "{answer}"'
            for answer, chances in self.posterior.items()
        )
        return f"{before} before the answer; of what was answered {', '.join(after)}"
