"""Several categories: the truth, or by chance a category that a spinner names."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Final, final

from sfumato import _check
from sfumato.local.surveys.designs.design import Design
from sfumato.local.surveys.designs.privacy_loss import Transition
from sfumato.local.surveys.designs.probabilities import Chance, chance, plain, several
from sfumato.local.surveys.designs.tasks import Kind, Task
from sfumato.local.surveys.estimates.category_shares import Shares
from sfumato.local.surveys.estimates.risk import CategoryRisk

__all__ = ["ForcedCategory"]

_MAX: Final = 32


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class ForcedCategory(Design):
    r"""A device asks for the true category, or names one to be said whatever is true.

    Parameters
    ----------
    names : sequence of hashables
        The categories, from 2 to 32, none of them twice.
    truth : Chance
        The chance that the truth is asked for.
    forced : sequence of Chance, optional
        The chances with which the device names each category where it does not ask for the truth; they add
        up to 1. Even where it is left out.

    Notes
    -----
    With :math:`t` for the truth's chance and :math:`w_j` for those of the device, category :math:`j` is said
    with the chance :math:`(1-t) w_j + t\,\theta_j`.

    Guarantee: for each answer :math:`\log(1 + \frac{t}{(1-t)\min w})`-DP under replace-one, exact for even
    chances; else the exact trade-off curve, which composes to less than that epsilon does.

    References
    ----------
    Abul-Ela, Greenberg, Horvitz (1967), "A multi-proportions randomized response model"; Liu, Chow (1976),
    "A new discrete quantitative randomized response model".

    Examples
    --------
    >>> design = ForcedCategory(names=("never", "once", "often"), truth="3/5")
    >>> round(design.epsilon, 4)
    1.7047
    >>> design.estimate({"never": 500, "once": 300, "often": 200}).shares.round(3).tolist()
    [0.611, 0.278, 0.111]
    """

    names: Sequence[Hashable]
    truth: Chance
    forced: Sequence[Chance] | None = None

    def __post_init__(self) -> None:
        given: object = self.names
        listed = isinstance(given, list | tuple) and all(isinstance(one, Hashable) for one in given)
        names = tuple(self.names) if listed else ()
        if not 2 <= len(names) <= _MAX or any(name in names[:index] for index, name in enumerate(names)):
            remedy = "use an oracle of sfumato.local for more"
            _check.refuse("names", f"be from 2 to {_MAX} categories, none twice", self.names, remedy)
        forced = [Fraction(1, len(names))] * len(names)
        if self.forced is not None:
            forced = list(several("forced", self.forced))
        if len(forced) != len(names) or sum(forced) != 1:
            remedy = 'pass fractions or texts such as "1/3"'
            _check.refuse("forced", "be one chance for each category, which add up to 1", self.forced, remedy)
        object.__setattr__(self, "names", names)
        object.__setattr__(self, "truth", plain(chance("truth", self.truth)))
        object.__setattr__(self, "forced", tuple(map(plain, forced)))
        self._check_transition("truth")

    @property
    def categories(self) -> tuple[Hashable, ...]:
        """The categories."""
        return tuple(self.names)

    @property
    def answers(self) -> tuple[Hashable, ...]:
        """The categories."""
        return tuple(self.names)

    @property
    def tasks(self) -> tuple[Task, ...]:
        """The truth, or a category that the device names."""
        truth = Fraction(self.truth)
        named = zip(self.names, self.forced or (), strict=True)
        forced = (Task((1 - truth) * Fraction(part), Kind.SAY, name) for name, part in named)
        return Task(truth, Kind.TRUTH), *forced

    @property
    def transition(self) -> Transition:
        """The chance of each category for each true one."""
        truth, whole = Fraction(self.truth), range(len(self.names))
        device = [(1 - truth) * Fraction(weight) for weight in self.forced or ()]
        return tuple(tuple(device[j] + truth * (i == j) for j in whole) for i in whole)

    def risk(self, prior: Sequence[Chance]) -> CategoryRisk:
        """Return what each answer reveals to somebody with a prior opinion.

        Parameters
        ----------
        prior : sequence of Chance
            The chances that they give the categories, in their order; they add up to 1.

        Returns
        -------
        CategoryRisk
            Exact fractions.
        """
        before = several("prior", prior)
        if len(before) != len(self.names) or sum(before) != 1:
            remedy = 'pass fractions or texts such as "1/3"'
            _check.refuse("prior", "be one chance for each category, which add up to 1", prior, remedy)
        posterior: dict[Hashable, dict[Hashable, Fraction]] = {}
        columns = list(zip(*self.transition, strict=True))
        for answer, column in zip(self.names, columns, strict=True):
            joint = [chance * said for chance, said in zip(before, column, strict=True)]
            posterior[answer] = dict(zip(self.names, (part / sum(joint) for part in joint), strict=True))
        most = max(max(column) / min(column) for column in columns)
        return CategoryRisk(prior=dict(zip(self.names, before, strict=True)), posterior=posterior, most=most)

    def estimate(self, answers: Any) -> Shares:
        """Return the estimated shares of the categories.

        Parameters
        ----------
        answers : array, list, column of a frame, or mapping
            As in `counts`.

        Returns
        -------
        Shares
            With their errors.
        """
        return Shares(design=self, counts=self.counts(answers))
