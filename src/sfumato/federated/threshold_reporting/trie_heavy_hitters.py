"""Heavy hitters in a trie (TrieHH): prefixes grow by a character a round, by votes of a fresh secret sample.

>>> plan = TrieHeavyHitters(sampling_probability=0.25, threshold=12, levels=4)
>>> words = ["sun"] * 300 + ["star"] * 200 + ["moon"] * 20
>>> sorted(plan.release(words, rng=3).value)
['star', 'sun']

Guarantee: one `ThresholdedSampling` for each level, exact for a level, against whoever sees the trie.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Final, final

import numpy as np

from sfumato import _check
from sfumato.federated.threshold_reporting.sample_and_threshold import SampleAndThreshold, sampled
from sfumato.mechanisms.base.mechanism import Mechanism
from sfumato.mechanisms.base.release import Release
from sfumato.numerics.randomness.source import Rng, random_source
from sfumato.privacy.loss import PrivacyLoss
from sfumato.privacy.neighboring import Neighboring

__all__ = ["END", "TrieHeavyHitters"]

END: Final = "\0"
"""Ends a word that is shorter than the number of levels."""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class TrieHeavyHitters(Mechanism):
    """The parameters of all rounds, a client's vote and the server's tally.

    Parameters
    ----------
    sampling_probability : float
        With which each client votes in a round, drawn anew for each; as in `SampleAndThreshold`.
    threshold : int
        The votes that a prefix needs to stay in the trie, from 1 to 1024.
    levels : int
        Rounds: the longest prefix, the end of a word included.

    Notes
    -----
    Guarantee: ``ThresholdedSampling(sampling_probability, threshold) * levels``. Conditions: add/remove of
    one client with one word; samples are secret. *Proof.* Given the trie of the rounds before, a client holds
    one value in a round, its next prefix, or none if its prefix is out of the trie; so the round is
    `SampleAndThreshold`. Rounds compose adaptively by their dominating pairs. Stopping where no prefix
    survives only leaves rounds out. The loss is the same whether votes or only survivals are shown.

    A server that sees who votes is outside of this: against it epsilon is infinite. Collect votes through
    secure aggregation or a shuffler.

    References
    ----------
    Zhu, Kairouz, McMahan, Sun, Li (2020), "Federated heavy hitters discovery with differential privacy";
    the paper's samples have a fixed size, these are independent, and the price is exact.

    Examples
    --------
    >>> plan = TrieHeavyHitters(sampling_probability=0.01, threshold=10, levels=10)
    >>> round(plan.privacy_loss.epsilon(3.15e-7), 3)
    0.063
    """

    sampling_probability: float
    threshold: int
    levels: int

    def __post_init__(self) -> None:
        object.__setattr__(self, "sampling_probability", self.round.sampling_probability)
        object.__setattr__(self, "levels", _check.integer("levels", self.levels, minimum=1))

    @property
    def round(self) -> SampleAndThreshold:
        """One round."""
        return SampleAndThreshold(sampling_probability=self.sampling_probability, threshold=self.threshold)

    @property
    def privacy_loss(self) -> PrivacyLoss:
        """The loss of all rounds."""
        return self.round.privacy_loss * self.levels

    @property
    def neighboring(self) -> Neighboring:
        """Add/remove of one client."""
        return Neighboring.ADD_REMOVE

    def vote(self, word: str, trie: Iterable[str], level: int, rng: Rng = None) -> str | None:
        """Return a client's vote in a round, or None.

        Parameters
        ----------
        word : str
            The client's; it does not hold the character 0.
        trie : iterable of str
            The prefixes that survived the round before; ignored in the first round.
        level : int
            The round, from 1.
        rng : None, int, numpy Generator or RandomSource
            None draws from the operating system's entropy.

        Returns
        -------
        str or None

        Examples
        --------
        >>> plan = TrieHeavyHitters(sampling_probability=0.5, threshold=2, levels=3)
        >>> {plan.vote("sun", ["s"], 2, rng=seed) for seed in range(9)} == {"su", None}
        True
        """
        level = _check.integer("level", level, minimum=1)
        if level > self.levels:
            _check.refuse("level", f"be at most the {self.levels} levels", level, "the trie is complete")
        if not self.round.takes_part(rng):
            return None
        return _prefix(_word(word), level, frozenset(trie) if level > 1 else None)

    def tally(self, votes: Iterable[str | None], rng: Rng = None) -> Release:
        """Return the prefixes that survive a round, with their votes.

        Parameters
        ----------
        votes : iterable of str or None
            Of the clients; private.
        rng : None, int, numpy Generator or RandomSource
            For the order of equal counts.

        Returns
        -------
        Release
            At the loss of one round.
        """
        return self.round.shown(Counter(vote for vote in votes if vote is not None), rng)

    def release(self, value: Any, rng: Rng = None) -> Release:
        """Run all rounds in this process: for trials and tests, or by a trusted server.

        Parameters
        ----------
        value : sequence of str
            The clients' words; private.
        rng : None, int, numpy Generator or RandomSource
            None draws from the operating system's entropy; anything seeded only simulates.

        Returns
        -------
        Release
            A dict of words, and of prefixes of the full length, to their votes in their last round.
        """
        source = random_source(rng)
        if isinstance(value, str) or not isinstance(value, list | tuple):
            _check.refuse_type("value", "be a list of words", value, "pass one word of each client")
        held = Counter(_word(word) for word in value)
        words, totals = list(held), np.array(list(held.values()), dtype=np.int64)
        found: dict[str, int] = {}
        trie: frozenset[str] | None = None
        for level in range(1, self.levels + 1):
            coins = sampled(int(totals.sum()), self.sampling_probability, source)
            votes: Counter[str] = Counter()
            ends = np.cumsum(totals)
            heads = np.concatenate([[0], np.cumsum(coins)])
            drawn = heads[ends] - heads[ends - totals]
            for word, count in zip(words, drawn.tolist(), strict=True):
                prefix = _prefix(word, level, trie)
                if prefix is not None:
                    votes[prefix] += count
            survived: dict[str, int] = self.round.shown(votes, source).value
            for prefix, count in survived.items():
                if prefix.endswith(END) or level == self.levels:
                    found[prefix.removesuffix(END)] = count
            trie = frozenset(prefix for prefix in survived if not prefix.endswith(END))
        return self._release_as(Release, found, source)


def _word(word: object) -> str:
    if not isinstance(word, str) or END in word:
        _check.refuse_type("word", "be a text without the character 0", word, "remove the character")
    return word + END


def _prefix(word: str, level: int, trie: frozenset[str] | None) -> str | None:
    """Return the prefix of a round; None if there is none, or its parent is not in the trie."""
    if level > len(word) or (trie is not None and word[: level - 1] not in trie):
        return None
    return word[:level]
