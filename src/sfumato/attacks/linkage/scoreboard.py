"""Scoreboard-RH: who a few approximate ratings belong to, in a sparse table of many (Netflix)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sfumato import _check
from sfumato.attacks.base.attack import Attack, read_release
from sfumato.attacks.base.findings import Findings
from sfumato.attacks.base.knowledge import Knowledge
from sfumato.attacks.linkage.links import Links, link_findings
from sfumato.privacy.loss import PrivacyLoss

__all__ = ["KnownRatings", "RatingMatrix", "ScoreboardLinkage"]


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class RatingMatrix:
    """Ratings with their days, item by item.

    Parameters
    ----------
    users : int array of shape (ratings,)
        Who rated, from 0, ordered by item.
    values, days : arrays of shape (ratings,)
    starts : int array of shape (items + 1,)
        Where each item's ratings begin, and where the last one's end.
    count : int
        How many users there are.

    Raises
    ------
    ParameterError
        If lengths do not fit, or a user is beyond the count.

    Examples
    --------
    >>> matrix = RatingMatrix.of(users=[0, 1, 0], items=[1, 0, 0], values=[3, 4, 5], days=[10, 11, 12])
    >>> matrix.starts.tolist(), matrix.users.tolist()
    ([0, 2, 3], [0, 1, 0])
    """

    users: NDArray[Any]
    values: NDArray[Any]
    days: NDArray[Any]
    starts: NDArray[np.int64]
    count: int

    def __post_init__(self) -> None:
        size = len(self.users)
        if len(self.values) != size or len(self.days) != size or self.starts[-1] != size:
            _check.refuse_state(
                "ratings",
                "have a user, a value and a day each",
                "lengths differ",
                "pass arrays of one length",
            )
        if size and not 0 <= self.users.min() <= self.users.max() < self.count:
            _check.refuse_state(
                "users", "be numbered from 0 to one less than the count", "some are beyond", "raise the count"
            )

    @classmethod
    def of(cls, *, users: ArrayLike, items: ArrayLike, values: ArrayLike, days: ArrayLike) -> RatingMatrix:
        """Return ratings in any order as a matrix.

        Parameters
        ----------
        users, items : int arrays of shape (ratings,)
            From 0.
        values, days : arrays of shape (ratings,)
            Of several ratings of an item by one user the first counts.

        Returns
        -------
        RatingMatrix
        """
        person, item = np.asarray(users), np.asarray(items)
        if person.dtype.kind not in "iu" or item.dtype.kind not in "iu" or not len(person):
            _check.refuse_type(
                "users and items", "be whole numbers from 0, at least one", person, "number them first"
            )
        order = np.lexsort((person, item))
        again = (np.diff(item[order]) == 0) & (np.diff(person[order]) == 0)
        if again.any():
            order = order[np.append(True, ~again)]
        starts = np.searchsorted(item[order], np.arange(item.max() + 2))
        return cls(
            users=person[order],
            values=np.asarray(values)[order],
            days=np.asarray(days)[order],
            starts=starts.astype(np.int64),
            count=int(person.max()) + 1,
        )


class KnownRatings(NamedTuple):
    """What is known of one person's ratings.

    Attributes
    ----------
    items : int array of shape (known,)
    values : array of shape (known,)
        About what they rated.
    days : array of shape (known,)
        About when.
    """

    items: NDArray[np.int64]
    values: NDArray[np.float64]
    days: NDArray[np.float64]


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ScoreboardLinkage(Attack):
    """Find the record that a person's few known ratings belong to, or say that it is not there.

    Parameters
    ----------
    targets : sequence of KnownRatings
        What is known of each person.
    eccentricity : float
        A match is claimed if its score is above the second best by this many standard deviations of all
        scores.
    value_scale, day_scale : float
        Errors by which a rating's similarity falls by a factor of e; the paper's 1.5 stars and 30 days.

    Raises
    ------
    ParameterError
        If there are no targets, or one knows nothing or an item that is not there.

    Notes
    -----
    A record's score is the sum over known items of ``1 / log(support)`` times the sum of
    ``exp(-value error / value_scale)`` and ``exp(-day error / day_scale)``: rare items count more. The
    eccentricity to ask for depends on how sparse the ratings are: look at the scores of controls.

    References
    ----------
    Narayanan, Shmatikov (2008), "Robust De-anonymization of Large Sparse Datasets", IEEE S&P.

    Examples
    --------
    >>> import numpy as np
    >>> from sfumato import attacks
    >>> rng = np.random.default_rng(1)
    >>> users, items = np.repeat(np.arange(200), 12), rng.integers(0, 300, 2400)
    >>> values, days = rng.integers(1, 6, 2400), rng.integers(0, 2000, 2400)
    >>> matrix = attacks.RatingMatrix.of(users=users, items=items, values=values, days=days)
    >>> known = attacks.KnownRatings(items[36:44], values[36:44], days[36:44] + 5)
    >>> found = attacks.ScoreboardLinkage(targets=[known]).run(matrix, truth=[3])
    >>> found.targets.guesses.tolist(), found.targets.hits
    ([3], 1)
    """

    targets: Sequence[KnownRatings]
    eccentricity: float = 1.5
    value_scale: float = 1.5
    day_scale: float = 30.0

    def __post_init__(self) -> None:
        _check.non_negative("eccentricity", self.eccentricity)
        _check.positive("value_scale", self.value_scale)
        _check.positive("day_scale", self.day_scale)
        if not len(self.targets):
            _check.refuse(
                "targets", "be at least one", len(self.targets), "pass what is known of each person"
            )

    @property
    def knowledge(self) -> Knowledge:
        """What the attacker has beside the ratings."""
        sizes = [len(known.items) for known in self.targets]
        known = f"of each target {min(sizes)} to {max(sizes)} items, about their ratings and days"
        return Knowledge((known,), {"targets": self.targets})

    def run(
        self,
        release: Any,
        *,
        truth: ArrayLike | None = None,
        controls: Sequence[KnownRatings] | None = None,
        exchangeable: bool = False,
        loss: PrivacyLoss | None = None,
        confidence: float = 0.95,
    ) -> Findings:
        """Link the targets to users of a matrix of ratings.

        Parameters
        ----------
        release : RatingMatrix
        truth : int array of shape (targets,), optional
            Each target's user, -1 for who is absent.
        controls : sequence of KnownRatings, optional
            Of persons who are absent.
        exchangeable : bool
            Whether targets and controls were drawn alike; no bound on the rates follows here.
        loss : PrivacyLoss, optional
            Of the release, such as that of a synthetic matrix.
        confidence : float
            That the intervals hold together.

        Returns
        -------
        Findings
            Its guesses are users, its scores eccentricities.
        """
        matrix, loss = read_release(release, loss)
        _check.instance("release", matrix, RatingMatrix, "see RatingMatrix.of")
        return link_findings(
            "Scoreboard-RH",
            self.knowledge,
            self._links(matrix, self.targets),
            None if controls is None else self._links(matrix, controls),
            truth=truth,
            loss=loss,
            exchangeable=exchangeable,
            confidence=confidence,
            numbers={},
        )

    def _links(self, matrix: RatingMatrix, people: Sequence[KnownRatings]) -> Links:
        board = np.zeros(matrix.count)
        users = np.zeros(len(people), dtype=np.int64)
        eccentricities = np.zeros(len(people))
        for number, known in enumerate(people):
            users[number], eccentricities[number] = _best(*self._scores(matrix, known, board), matrix.count)
        return Links(users, eccentricities, (eccentricities > self.eccentricity) & (users >= 0))

    def _scores(
        self, matrix: RatingMatrix, known: KnownRatings, board: NDArray[np.float64]
    ) -> tuple[NDArray[Any], NDArray[np.float64], NDArray[np.float64]]:
        """Return for each rating of a known item its user, what it adds to the score, and the score.

        The board, which has a place for each user, is zero before and after.
        """
        items = np.asarray(known.items)
        if not len(items) or items.min() < 0 or items.max() >= len(matrix.starts) - 1:
            _check.refuse_state(
                "known items",
                "be at least one, and of the release",
                "some are not",
                "leave unknown items out",
            )
        raters: list[NDArray[Any]] = []
        parts: list[NDArray[np.float64]] = []
        for item, value, day in zip(items.tolist(), known.values, known.days, strict=True):
            part = slice(int(matrix.starts[item]), int(matrix.starts[item + 1]))
            support = part.stop - part.start
            if not support:
                continue
            # a logarithm of one or less would make an item of one rater, or two, weigh without limit
            weight = 1 / np.log(max(support, 3))
            value_error = np.abs(matrix.values[part].astype(np.float32) - np.float32(value))
            day_error = np.abs(matrix.days[part].astype(np.float32) - np.float32(day))
            similar = np.exp(-value_error / self.value_scale) + np.exp(-day_error / self.day_scale)
            parts.append(weight * similar.astype(np.float64))
            raters.append(matrix.users[part])
            board[raters[-1]] += parts[-1]  # a user rates an item once
        if not raters:
            return np.zeros(0, dtype=np.int64), np.zeros(0), np.zeros(0)
        every = np.concatenate(raters)
        scores = board[every]
        board[every] = 0
        return every, np.concatenate(parts), scores


def _best(
    users: NDArray[Any], parts: NDArray[np.float64], scores: NDArray[np.float64], count: int
) -> tuple[int, float]:
    """Return the user with the highest score, and by how many standard deviations it is above the next.

    A user stands there as often as they rated a known item; all others have the score zero. As a score is the
    sum of its parts, the sum of squared scores is that of parts times scores.
    """
    if not len(users):
        return -1, 0.0
    best = int(np.argmax(scores))
    user, highest = int(users[best]), float(scores[best])
    second = float(scores.max(initial=0.0, where=users != user))
    mean = parts.sum() / count
    deviation = float(np.sqrt(max(float(parts @ scores) / count - mean**2, 0.0)))
    return user, (highest - second) / deviation if deviation else 0.0
