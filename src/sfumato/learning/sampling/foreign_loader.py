"""Batches that somebody else drew: counted, and charged without any amplification."""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Iterable, Iterator, Sequence, Sized
from typing import Final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sfumato import _check
from sfumato.errors import NeighboringMismatch
from sfumato.learning.sampling.epoch_sampler import check_public_number
from sfumato.learning.sampling.sampler import gaussian_step
from sfumato.mechanisms.factorization.strategies.participation import Participation
from sfumato.privacy.leaves.gaussian import Gaussian
from sfumato.privacy.loss import PrivacyLoss
from sfumato.privacy.neighboring import Neighboring

__all__ = ["ForeignLoader", "WatchedBatches"]

_KEY_BYTES: Final = 16
_MAX: Final = 2**31 - 1


class ForeignLoader:
    """Counts in how many batches each example was, whoever drew them.

    Parameters
    ----------
    max_participations : int
        The most batches that an example may be in: what the run is charged for before it begins. A batch in
        which an example would be once more is refused.
    neighboring : Neighboring
        Zero-out or replace-one.

    Notes
    -----
    Guarantee: under zero-out or replace-one, the loss of one step, without amplification, for each of
    ``max_participations``. Conditions: which examples are in which batch follows from nothing in them: no
    sampler that weighs by labels or losses, no loader that skips what it cannot read. Proof: as for
    `EpochSampler`, with known batches.

    Examples are known by ids: their positions, or keys of an index, which are stored as keyed hashes. Ids are
    made of no content: two equal examples are two, and an augmented one is the same.

    Examples
    --------
    >>> loader = ForeignLoader(max_participations=2)
    >>> for batch in ([0, 1], [2, 0]):
    ...     loader.admit(batch)
    >>> loader.participations, loader.loss_so_far(1.0)
    (2, Gaussian(noise_multiplier=1.0, neighboring=<Neighboring.ZERO_OUT: 'zero-out'>) * 2)
    """

    __slots__ = (
        "_counts",
        "_key",
        "_kind",
        "_known",
        "batches",
        "max_participations",
        "neighboring",
        "participations",
    )

    def __init__(self, *, max_participations: int, neighboring: Neighboring = Neighboring.ZERO_OUT) -> None:
        remedy = "pass the number of epochs"
        self.max_participations = _check.integer(
            "max_participations", max_participations, minimum=1, remedy=remedy
        )
        check_public_number(neighboring)
        self.neighboring = neighboring
        self.batches = 0
        self.participations = 0
        self._counts = np.zeros(0, np.int32)
        self._known: dict[bytes, int] = {}
        self._key = secrets.token_bytes(_KEY_BYTES)
        self._kind = ""

    @property
    def participation(self) -> Participation:
        """At most so many steps, in any order, as correlated noise needs it."""
        return Participation(max_participations=self.max_participations)

    def admit(self, ids: ArrayLike | None) -> None:
        """Count a batch before it is used, or refuse it.

        Parameters
        ----------
        ids : array of shape (examples,)
            Positions, as whole numbers, or keys, as texts or bytes. None if they cannot be known.

        Raises
        ------
        ParameterError
            If ids are missing, twice in the batch, of another kind than before, or were in as many batches
            as were charged. Nothing is counted then.
        """
        numbers = self._numbers(ids)
        if len(np.unique(numbers)) < len(numbers):
            remedy = "an example moves a sum by one clip norm only if it is in it once"
            _check.refuse_state("ids", "be different within a batch", "an example occurs twice", remedy)
        self._grow(int(numbers.max(initial=-1)) + 1)
        highest = int(self._counts[numbers].max(initial=0))
        if numbers.size and highest >= self.max_participations:
            rule = f"be in at most {self.max_participations} batches"
            remedy = "charge more participations, or stop"
            _check.refuse_state("ids", rule, "an example is in one more", remedy)
        self._counts[numbers] += 1
        self.batches += 1
        self.participations = max(self.participations, highest + 1 if numbers.size else 0)

    def step_loss(self, noise_multiplier: float) -> Gaussian:
        """Return the loss of Gaussian noise on one batch; see `Sampler.step_loss`.

        Parameters
        ----------
        noise_multiplier : float
            Standard deviation of the noise over the sensitivity.

        Returns
        -------
        Gaussian
        """
        return gaussian_step(noise_multiplier, self.neighboring)

    def priced(self, step: PrivacyLoss, participations: int) -> PrivacyLoss:
        """Return the loss of so many participations in a step of another mechanism, under `neighboring`.

        Parameters
        ----------
        step : PrivacyLoss
            Of one step on a batch that is known.
        participations : int
            In how many steps one example is.

        Returns
        -------
        PrivacyLoss
        """
        if step.neighboring is not self.neighboring:
            raise NeighboringMismatch(
                f"step must be under {self.neighboring}, got {step.neighboring}; price it under that relation"
            )
        return step * _check.integer("participations", participations)

    def loss(self, noise_multiplier: float) -> PrivacyLoss:
        """Return the loss of all participations that are allowed: what to charge before the first batch.

        Parameters
        ----------
        noise_multiplier : float
            Standard deviation of the noise over the sensitivity.

        Returns
        -------
        PrivacyLoss
        """
        return self.step_loss(noise_multiplier) * self.max_participations

    def loss_so_far(self, noise_multiplier: float) -> PrivacyLoss:
        """Return the loss of what was admitted: of the example that was in most batches.

        Parameters
        ----------
        noise_multiplier : float
            Standard deviation of the noise over the sensitivity.

        Returns
        -------
        PrivacyLoss
        """
        return self.step_loss(noise_multiplier) * self.participations

    def _grow(self, size: int) -> None:
        if size > len(self._counts):
            room = np.zeros(max(size, 2 * len(self._counts)), np.int32)
            room[: len(self._counts)] = self._counts
            self._counts = room

    def _numbers(self, ids: ArrayLike | None) -> NDArray[np.int64]:
        """Return positions as they are, and keys by the order in which they first came."""
        remedy = "have the loader report which examples it took, or take the batches of a sampler"
        if ids is None:
            _check.refuse("ids", "be known for each batch", ids, remedy)
        values = np.asarray(ids)
        if values.ndim != 1 or (values.size and values.dtype.kind not in "iuUS"):
            _check.refuse_type("ids", "be a list of positions or of keys", values, remedy)
        if not values.size:
            return np.empty(0, np.int64)
        kind = "positions" if values.dtype.kind in "iu" else "keys"
        if self._kind not in {"", kind}:
            remedy = "name examples in one way"
            _check.refuse_state("ids", f"be {self._kind}, as in earlier batches", f"they are {kind}", remedy)
        if kind == "positions":
            if int(values.min()) < 0 or int(values.max()) > _MAX:
                _check.refuse_state("ids", f"be positions from 0 to {_MAX}", "a position is outside", remedy)
            self._kind = kind
            return values.astype(np.int64)
        self._kind = kind
        return np.array([self._number(str(value).encode()) for value in values.tolist()], np.int64)

    def _number(self, key: bytes) -> int:
        digest = hashlib.blake2b(key, key=self._key, digest_size=_KEY_BYTES).digest()
        return self._known.setdefault(digest, len(self._known))


class WatchedBatches:
    """The batches of a foreign batch sampler, each admitted before it is handed on.

    Parameters
    ----------
    batches : iterable of sequence of int
        A batch sampler: what gives the positions of each batch, epoch after epoch.
    loader : ForeignLoader

    Examples
    --------
    >>> loader = ForeignLoader(max_participations=1)
    >>> [list(batch) for batch in WatchedBatches([[0, 2], [1]], loader)], loader.batches
    ([[0, 2], [1]], 2)
    """

    def __init__(self, batches: Iterable[Sequence[int]], loader: ForeignLoader) -> None:
        self._batches, self._loader = batches, loader

    def __iter__(self) -> Iterator[Sequence[int]]:
        """Yield the batches of the next epoch."""
        for batch in self._batches:
            self._loader.admit(batch)
            yield batch

    def __len__(self) -> int:
        """Return the number of batches in an epoch, if the sampler knows it."""
        if not isinstance(self._batches, Sized):
            _check.refuse_type("batches", "have a length", self._batches, "iterate over them")
        return len(self._batches)
