"""Differencing: two sums in a query log whose groups differ in one person give that person's value away."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from typing import Any, Final, NamedTuple, final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sfumato import _check
from sfumato.attacks.base.attack import Attack, read_release
from sfumato.attacks.base.findings import Findings
from sfumato.attacks.base.knowledge import Knowledge
from sfumato.attacks.reconstruction.secret_bits import as_bits, bit_ceiling, guessed_bits
from sfumato.privacy.loss import PrivacyLoss

__all__ = ["Differencing", "DifferencingPair", "differencing_pairs"]

_KEYS: Final = 0x6B657973
_NOBODY: Final = -1


class DifferencingPair(NamedTuple):
    """Two queries whose groups differ in one person.

    Attributes
    ----------
    with_person, without_person : int
        The queries; -1 stands for the sum over nobody, which is 0, where a group is one person.
    person : int
        Who is in the first group only.
    """

    with_person: int
    without_person: int
    person: int


def differencing_pairs(groups: ArrayLike) -> list[DifferencingPair]:
    """Return all pairs of queries in a log whose groups differ in one person, and groups of one person.

    Parameters
    ----------
    groups : bool array of shape (queries, people)
        Who is in the group of each query.

    Returns
    -------
    list of DifferencingPair
        By the first query, then the person. Nothing of the answers is used: a curator can ask this before
        anything is answered. Larger combinations of queries isolate people too; `LinearReconstruction` uses
        them.

    Raises
    ------
    ParameterError
        If groups are no bool matrix.

    Examples
    --------
    >>> differencing_pairs([[True, True, True], [True, False, True], [False, False, True]])
    [DifferencingPair(with_person=0, without_person=1, person=1), \
DifferencingPair(with_person=1, without_person=2, person=0), \
DifferencingPair(with_person=2, without_person=-1, person=2)]
    """
    members = _as_groups(groups)
    keys: Any = np.random.default_rng(_KEYS).integers(1, 1 << 63, members.shape[1], dtype=np.int64)
    # A group's key is the exclusive or of its people's: it changes by one person's key without them.
    whole: Any = np.array([np.bitwise_xor.reduce(keys[row]) if row.any() else 0 for row in members])
    known: dict[int, list[int]] = defaultdict(list)
    for query, key in enumerate(whole.tolist()):
        known[key].append(query)
    if not known[0]:
        known[0].append(_NOBODY)
    everyone = np.array(list(known))
    found = []
    for query, row in enumerate(members):
        people = np.flatnonzero(row)
        rest = whole[query] ^ keys[people]
        for place in np.flatnonzero(np.isin(rest, everyone)).tolist():
            person = int(people[place])
            found += [
                DifferencingPair(query, other, person)
                for other in known[int(rest[place])]
                if _differ_in(row, None if other == _NOBODY else members[other], person)
            ]
    return found


def _differ_in(row: NDArray[np.bool_], other: NDArray[np.bool_] | None, person: int) -> bool:
    """Return whether keys did not agree by chance."""
    changed = row if other is None else row ^ other
    return bool(changed[person]) and int(changed.sum()) == 1


def _as_groups(groups: ArrayLike) -> NDArray[np.bool_]:
    members = np.asarray(groups)
    if members.dtype != np.bool_ or members.ndim != 2 or 0 in members.shape:
        remedy = "pass a row for each query and a column for each person"
        _check.refuse_type("groups", "be a bool matrix", members, remedy)
    return members


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Differencing(Attack):
    """Secret bits from a log of counts, by pairs of queries whose groups differ in one person.

    Parameters
    ----------
    groups : bool array of shape (queries, people)
        Who is in the group of each query, which the attacker knows from what is public about them.
    prior : float, optional
        Chance of a bit to be 1, where the bits are independent: only then does a privacy loss bound how
        many are found, and the bound is shown.

    Raises
    ------
    ParameterError
        If a parameter breaks its rule.

    Notes
    -----
    Each pair's difference is the person's bit plus the errors of two answers; a person's differences are
    averaged. No claim is made of people whom no pair isolates.

    References
    ----------
    Denning, Denning, Schwartz (1979), "The tracker: a threat to statistical database security".

    Examples
    --------
    >>> from sfumato import attacks
    >>> attack = attacks.Differencing(groups=[[True, True, True], [True, False, True]])
    >>> found = attack.run([2, 1], truth=[1, 1, 0])
    >>> found.targets.claims, found.targets.hits
    (1, 1)
    """

    groups: Any
    prior: float | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "groups", _as_groups(self.groups))
        if self.prior is not None:
            _check.unit_interval("prior", self.prior, "pass the chance that a bit is 1")

    @property
    def knowledge(self) -> Knowledge:
        """What the attacker has beside the answers."""
        known = ("who is in the group of each query", "that each person's value is 0 or 1")
        return Knowledge(known, {"groups": self.groups})

    def run(
        self,
        release: Any,
        *,
        truth: ArrayLike | None = None,
        controls: ArrayLike | None = None,
        exchangeable: bool = False,
        loss: PrivacyLoss | None = None,
        confidence: float = 0.95,
    ) -> Findings:
        """Guess the bits of everyone whom a pair of queries isolates.

        Parameters
        ----------
        release : Release or array of shape (queries,)
            How many people of each group have a 1.
        truth : array of 0 and 1, shape (people,), optional
            The bits.
        controls : array of 0 and 1, optional
            Bits of people who are in no group. Nothing isolates them: there are no claims about them.
        exchangeable : bool
            Whether people and controls were drawn alike; no bound on the rates follows here.
        loss : PrivacyLoss, optional
            Of all answers together, if the release brings none.
        confidence : float
            That the intervals hold together.

        Returns
        -------
        Findings
        """
        read = read_release(release, loss)
        answers = np.asarray(read.value)
        count, people = self.groups.shape
        if answers.shape != (count,) or answers.dtype.kind not in "iuf":
            remedy = "pass the answers in the order of the groups"
            _check.refuse_type("release", "be one number for each query", answers, remedy)
        known = np.append(answers.astype(np.float64), 0.0)  # the last one is the sum over nobody
        sums, times = np.zeros(people), np.zeros(people)
        pairs = differencing_pairs(self.groups)
        for pair in pairs:
            sums[pair.person] += known[pair.with_person] - known[pair.without_person]
            times[pair.person] += 1
        estimates = np.where(times > 0, sums / np.maximum(times, 1), 0.5)
        bits = None if truth is None else as_bits("truth", truth, people)
        targets = guessed_bits(estimates > 0.5, np.abs(estimates - 0.5), bits, times > 0)
        other = None
        if controls is not None:
            theirs = as_bits("controls", controls, None)
            nothing = np.zeros(len(theirs), dtype=np.bool_)
            other = guessed_bits(nothing, np.zeros(len(theirs)), theirs, nothing)
        return Findings(
            attack="differencing",
            kind="value",
            knowledge=self.knowledge,
            targets=targets,
            controls=other,
            loss=read.loss,
            exchangeable=exchangeable,
            confidence=confidence,
            numbers={"queries": count, "pairs": len(pairs), "people isolated": int((times > 0).sum())},
            no_bound="a bound takes a prior of independent bits; people in no group are guessed otherwise",
            extra_bounds=bit_ceiling(targets, read.loss, self.prior, confidence),
        )
