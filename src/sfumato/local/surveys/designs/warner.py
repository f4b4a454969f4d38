"""Warner's design: a spinner chooses which of two opposite statements is answered."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import final

from sfumato.local.surveys.designs.binary import BinaryDesign
from sfumato.local.surveys.designs.probabilities import Chance, chance, plain
from sfumato.local.surveys.designs.tasks import Kind, Task

__all__ = ["Warner"]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Warner(BinaryDesign):
    r"""By chance a respondent answers whether the sensitive statement is true, or whether its opposite is.

    Parameters
    ----------
    truth : Chance
        The chance of the sensitive statement, not 1/2. Nobody but the respondent sees which it was.

    Notes
    -----
    "Yes" has the chance :math:`p` where the statement is true, else :math:`1 - p`.

    Guarantee: for each answer :math:`|\log(p/(1-p))|`-DP under replace-one, exact.

    References
    ----------
    Warner (1965), "Randomized response: a survey technique for eliminating evasive answer bias".

    Examples
    --------
    >>> design = Warner(truth="3/4")
    >>> round(design.epsilon, 4), design.estimate({"yes": 400, "no": 600}).prevalence
    (1.0986, 0.3)
    """

    truth: Chance

    def __post_init__(self) -> None:
        object.__setattr__(self, "truth", plain(chance("truth", self.truth)))
        self._check_transition("truth")

    @property
    def tasks(self) -> tuple[Task, ...]:
        """The truth, or its opposite."""
        return Task(self.yes_if_true, Kind.TRUTH), Task(self.yes_if_false, Kind.OPPOSITE)

    @property
    def yes_if_true(self) -> Fraction:
        """The chance of the sensitive statement."""
        return Fraction(self.truth)

    @property
    def yes_if_false(self) -> Fraction:
        """The chance of its opposite."""
        return 1 - Fraction(self.truth)
