"""Batches for the protection of users, each of whom owns several examples."""

from __future__ import annotations

from dataclasses import InitVar, dataclass, field
from fractions import Fraction
from typing import Any, Literal, final

import numpy as np
from numpy.typing import ArrayLike

from sfumato import _check
from sfumato.learning.sampling.bernoulli import heads
from sfumato.learning.sampling.independent import IndependentSampler
from sfumato.learning.sampling.permutations import Indices
from sfumato.learning.sampling.poisson import EVERY_STEP, checked_probability
from sfumato.learning.sampling.seed import SeedLike
from sfumato.mechanisms.factorization.strategies.participation import Participation
from sfumato.numerics.randomness.source import RandomSource
from sfumato.privacy.loss import PrivacyLoss
from sfumato.privacy.neighboring import Neighboring
from sfumato.privacy.nodes.poisson import PoissonSubsampled
from sfumato.privacy.nodes.poisson_records import PoissonRecords

__all__ = ["UserRecordsSampler", "UserSampler"]

Clip = Literal["user", "example"]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Users(IndependentSampler):
    """Examples sorted by their users: add/remove or zero-out of one user with all examples."""

    user_ids: InitVar[ArrayLike]
    sampling_probability: float
    steps: int
    max_examples: int | None = None
    neighboring: Neighboring = Neighboring.ADD_REMOVE
    public_batch_size: float | None = None
    seed: SeedLike = field(default=None, repr=False)
    owners: Indices = field(init=False, repr=False)
    _examples: Indices = field(init=False, repr=False)
    _starts: Indices = field(init=False, repr=False)

    @property
    def population(self) -> int:
        """How many examples there are; batches hold their indices."""
        return len(self.owners)

    @property
    def users(self) -> int:
        """How many users there are."""
        return len(self._starts) - 1

    @property
    def sampling_rate(self) -> float:
        """The sampling probability."""
        return self.sampling_probability

    @property
    def _sizes(self) -> Indices:
        sizes = np.diff(self._starts)
        return sizes if self.max_examples is None else np.minimum(sizes, self.max_examples)

    def _again(self) -> dict[str, Any]:
        return {"user_ids": self.owners}

    def _check_users(self, user_ids: ArrayLike) -> None:
        self._check_independent()
        ids = np.asarray(user_ids)
        nobody = self.public_batch_size is not None and ids.shape == (0,)
        if ids.dtype.kind == "O" and all(isinstance(i, str) for i in ids.flat):
            ids = ids.astype(str)
        if not nobody and (ids.ndim != 1 or not ids.size or ids.dtype.kind not in "iuUS"):
            remedy = "pass one whole number or text for each example, none of them missing"
            _check.refuse_type("user_ids", "be a list of ids, one for each example", ids, remedy)
        owners = np.unique(ids, return_inverse=True)[1].astype(np.int64)
        self._set("owners", owners)
        self._set("_examples", np.argsort(owners, kind="stable").astype(np.int64))
        self._set("_starts", np.concatenate([[0], np.cumsum(np.bincount(owners))]).astype(np.int64))
        self._set("sampling_probability", checked_probability(self.sampling_probability))

    def _limited(self, examples: Indices, source: RandomSource) -> Indices:
        """Return at most ``max_examples`` of each user's examples, sorted; all sets are equally likely.

        ``examples`` are in the order of their users, with all of each.
        """
        owners = self.owners[examples]
        first = np.flatnonzero(np.diff(owners, prepend=-1))
        sizes = np.diff(first, append=owners.size)
        limit = self.max_examples
        if limit is None or not (sizes > limit).any():
            return np.sort(examples)
        while True:
            words = source.words(examples.size)
            order = np.lexsort((words, owners))
            words = words[order]
            if not ((words[1:] == words[:-1]) & (owners[1:] == owners[:-1])).any():
                break
        ranks = np.arange(examples.size) - np.repeat(first, sizes)
        return np.sort(examples[order[ranks < limit]])


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class UserSampler(_Users):
    """Users are drawn, each with all their examples, or with at most so many.

    Parameters
    ----------
    user_ids : array of shape (examples,)
        Whose each example is: whole numbers or texts.
    sampling_probability : float
        With which each user is in a batch; above 0, at most 1.
    steps : int
        The planned number of batches.
    max_examples : int, optional
        The most examples of a user in a batch, drawn anew in each step; all of them unless given.
    clip : "user" or "example"
        What is clipped: the sum (or any other function) of a user's examples in the batch, or each example.
        The second needs ``max_examples``, and a user moves the sum by as many clip norms.
    neighboring : Neighboring
        Add/remove, or zero-out where the number of users is public.
    public_batch_size : float, optional
        The expected batch size where the number of users is private; see `IndependentSampler`.
    seed : None, bytes, Seed or int
        As for `PoissonSampler`.

    Attributes
    ----------
    owners : ndarray of int64, shape (examples,)
        The number of each example's user, from 0.

    Notes
    -----
    Guarantee: add/remove or zero-out of a user, `PoissonSubsampled` of the loss of what one user changes: of
    the step if users are clipped, of the step's loss for a group of ``max_examples`` if examples are (the sum
    moves by so many sensitivities in the L2 norm: exact for Gaussian noise). Conditions: as for
    `PoissonSampler`; what is retained of a user's examples depends on no other user.

    Examples
    --------
    >>> sampler = UserSampler(user_ids=list("abacab"), sampling_probability=0.5, steps=10, seed=1)
    >>> sampler.owners.tolist(), sampler.users, sampler.expected_batch_size
    ([0, 1, 0, 2, 0, 1], 3, 1.5)
    """

    clip: Clip = "user"

    def __post_init__(self, user_ids: ArrayLike) -> None:
        if self.clip not in {"user", "example"}:
            _check.refuse("clip", 'be "user" or "example"', self.clip, 'use "user" if unsure')
        if self.max_examples is not None:
            self._set("max_examples", _check.integer("max_examples", self.max_examples, minimum=1))
        elif self.clip == "example":
            remedy = "bound how many examples of a user are in a batch, or clip users"
            _check.refuse("max_examples", "be given where examples are clipped", None, remedy)
        self._check_users(user_ids)

    @property
    def mean_batch_size(self) -> float:
        """The expected number of users if these are clipped, else of examples."""
        count = self.users if self.clip == "user" else int(self._sizes.sum())
        return self.sampling_probability * count

    @property
    def participation(self) -> Participation:
        """Every step, where users are clipped; else a user moves a step by more than one contribution."""
        if self.clip == "example":
            _check.refuse("clip", 'be "user" for correlated noise', self.clip, "clip users")
        return EVERY_STEP

    @property
    def clips(self) -> Clip:
        """As ``clip`` says: with "user", clipping each example by itself keeps no promise."""
        return self.clip

    def batch(self, step: int) -> Indices:
        """Return the examples of the users that are drawn, sorted; their users are ``owners[batch]``.

        Parameters
        ----------
        step : int
            From 0 to ``steps - 1``.

        Returns
        -------
        ndarray of int64
            Indices of the examples.
        """
        stream = self._stream("users", self._step(step))
        drawn = np.zeros(self.users, bool)
        drawn[heads(self.users, Fraction(self.sampling_probability), stream)] = True
        return self._limited(self._examples[drawn[self.owners[self._examples]]], stream)

    def priced(self, step: PrivacyLoss, steps: int) -> PrivacyLoss:
        """Return a Poisson sample's loss, ``steps`` times; ``step`` is about one user, or one example.

        Parameters
        ----------
        step : PrivacyLoss
            Of one step on a batch that is known.
        steps : int
            How many of the first steps.

        Returns
        -------
        PrivacyLoss
        """
        own = self._own(step)
        if self.clip == "example":
            own = own.group(self.max_examples or 1)
        return PoissonSubsampled(own, self.sampling_probability) * self._counted(steps)


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class UserRecordsSampler(_Users):
    """Examples are drawn and clipped one by one; users are protected, of whom few examples ever count.

    Parameters
    ----------
    user_ids : array of shape (examples,)
        Whose each example is: whole numbers or texts.
    sampling_probability : float
        With which each retained example is in a batch; above 0, at most 1.
    max_examples : int
        How many examples of each user are retained, drawn once for the whole run; at most 1000.
    steps : int
        The planned number of batches.
    neighboring : Neighboring
        Add/remove, or zero-out where the number of users is public.
    public_batch_size : float, optional
        The expected batch size where the number of users is private; see `IndependentSampler`.
    seed : None, bytes, Seed or int
        As for `PoissonSampler`.

    Notes
    -----
    Guarantee: add/remove or zero-out of a user, `PoissonRecords` in every step. Conditions: as for
    `PoissonSampler`. It beats `UserSampler` where users have about as many examples each (Charles et al.
    2024, who sample examples or users).

    Examples
    --------
    >>> sampler = UserRecordsSampler(
    ...     user_ids=list("abacab"), sampling_probability=0.5, max_examples=2, steps=10, seed=1
    ... )
    >>> sampler.expected_batch_size
    2.5
    """

    max_examples: int
    _chosen: Indices = field(init=False, repr=False)

    def __post_init__(self, user_ids: ArrayLike) -> None:
        self._set("max_examples", _check.integer("max_examples", self.max_examples, minimum=1))
        self._check_users(user_ids)
        self._set("_chosen", self._limited(self._examples, self._stream("kept of users", 0)))

    @property
    def mean_batch_size(self) -> float:
        """The sampling probability times the number of examples that are retained."""
        return self.sampling_probability * len(self._chosen)

    @property
    def participation(self) -> Participation:
        """Refused: a user may move a step by more than one contribution."""
        remedy = "sample and clip users for correlated noise"
        _check.refuse_type("sampler", "draw users for correlated noise", self, remedy)

    def batch(self, step: int) -> Indices:
        """Return the retained examples that are drawn, sorted.

        Parameters
        ----------
        step : int
            From 0 to ``steps - 1``.

        Returns
        -------
        ndarray of int64
            Indices of the examples.
        """
        stream = self._stream("user records", self._step(step))
        return self._chosen[heads(len(self._chosen), Fraction(self.sampling_probability), stream)]

    def priced(self, step: PrivacyLoss, steps: int) -> PrivacyLoss:
        """Return the loss of a Poisson sample of records, ``steps`` times; ``step`` is about one example.

        Parameters
        ----------
        step : PrivacyLoss
            Of one step on a batch that is known.
        steps : int
            How many of the first steps.

        Returns
        -------
        PrivacyLoss
        """
        node = PoissonRecords(self._own(step), self.sampling_probability, self.max_examples)
        return node * self._counted(steps)
