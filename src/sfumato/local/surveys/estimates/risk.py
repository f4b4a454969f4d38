"""What an answer betrays of the one who gave it, in odds."""

from __future__ import annotations

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
    odds : dict of Fraction
        What each answer multiplies the odds by; the prior does not matter.
    """

    prior: Fraction
    posterior: dict[Hashable, Fraction]
    odds: dict[Hashable, Fraction]

    @property
    def most(self) -> Fraction:
        """The most by which any answer moves the odds, up or down: exp(epsilon)."""
        return max(max(factor, 1 / factor) for factor in self.odds.values())

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
        The most by which any answer moves the odds of one category against another: exp(epsilon).
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
