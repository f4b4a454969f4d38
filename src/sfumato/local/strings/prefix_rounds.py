"""Frequent strings in rounds: each asks other people about what the last one retained, by any oracle."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Final, final

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr

from sfumato import _check
from sfumato.local.base.protocol import LocalProtocol
from sfumato.local.device.base.record_layout import Records
from sfumato.local.device.domains.categories import Domain
from sfumato.local.device.domains.strings import Strings
from sfumato.local.device.strings import prefix_round as client
from sfumato.local.frequency.estimate import Estimate
from sfumato.local.frequency.oracle import Oracle
from sfumato.local.frequency.projective_geometry import ProjectiveGeometryResponse
from sfumato.local.frequency.support import Support
from sfumato.local.frequency.variance import Array
from sfumato.local.strings.significance import binomial_tail
from sfumato.privacy.loss import PrivacyLoss

__all__ = ["PrefixRound"]

_PREFIXES: Final = 1 << 14


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class PrefixRound(LocalProtocol[client.PrefixRoundRandomizer, Estimate]):
    r"""One round: how many people's strings go on from given prefixes in which way; and then the next round.

    Parameters
    ----------
    epsilon : float
        Bound on the loss of each report, from above 0 to 40.
    strings : Strings
        What may be reported.
    start, given
        See `sfumato.local.device.PrefixRoundRandomizer`; by default those of the first round.
    stop : int, optional
        The length of the prefixes that are reported. None goes as far as ``max_prefixes`` prefixes allow, by
        one character at least.
    oracle : type of Oracle
        The frequency oracle of a round.
    max_prefixes : int
        See ``stop``.

    Notes
    -----
    Guarantee: :math:`\epsilon`-DP of each report, replace-one; see
    `sfumato.local.device.PrefixRoundRandomizer`.

    Where people can be asked one after the other, everybody answers in one round only, and each round may use
    the oracle with the smallest error for its prefixes, in constant memory. An estimate is over a domain of
    the prefixes and None, which stands for all other strings.

    References
    ----------
    Wang, Li, Jha (2019), "Locally differentially private heavy hitter identification": the extension of
    prefixes, there of groups that are asked at once.

    Examples
    --------
    >>> people = np.repeat(["sfumato", "paint", "oil"], [20_000, 12_000, 8_000])
    >>> asked = PrefixRound(epsilon=3.0, strings=Strings(length=6))
    >>> while True:
    ...     aggregator = asked.aggregator()
    ...     _ = aggregator.add_batch(asked.randomize_batch(people, rng=1))
    ...     estimate = aggregator.estimate()
    ...     if asked.last:
    ...         break
    ...     asked = asked.next(estimate)
    >>> asked.found(estimate)
    ['sfumat', 'paint', 'oil']
    """

    wire_name: ClassVar[str] = "prefix-round"

    epsilon: float
    strings: Strings
    start: int = 0
    given: tuple[Any, ...] | None = None
    stop: int | None = None
    oracle: type[Oracle[Any]] = ProjectiveGeometryResponse
    max_prefixes: int = _PREFIXES
    device: client.PrefixRoundRandomizer = field(init=False, repr=False, compare=False)
    inner: Oracle[Any] = field(init=False, repr=False, compare=False)
    domain: Domain = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        kind: object = self.oracle
        strings = self.strings
        _check.instance("strings", strings, Strings, "pass Strings(length=...)")
        if not isinstance(kind, type) or not issubclass(kind, Oracle):
            _check.refuse("oracle", "be a frequency oracle", kind, "leave it out")
        empty = b"" if isinstance(strings.alphabet, bytes) else ""
        given = (empty,) if self.given is None else self.given
        stop = self._farthest(len(given)) if self.stop is None else self.stop
        device = client.PrefixRoundRandomizer(
            epsilon=self.epsilon,
            strings=strings,
            start=self.start,
            given=given,
            stop=stop,
            protocol=kind.wire_name,
        )
        reported = {name: getattr(device, name) for name in ("epsilon", "start", "given", "stop")}
        inner = kind(epsilon=device.epsilon, domain=device.part.domain)
        texts = self.strings.values(device.prefixes)
        for name, value in {
            **reported,
            "device": device,
            "inner": inner,
            "domain": Domain((*texts, None)),
        }.items():
            object.__setattr__(self, name, value)

    def _farthest(self, given: int) -> int:
        """Return how far prefixes go on, so that there are at most so many."""
        largest, stop = _check.integer("max_prefixes", self.max_prefixes, minimum=1), self.start + 1
        while (
            stop < self.strings.length
            and given * self.strings.number_of_endings(stop + 1 - self.start) <= largest
        ):
            stop += 1
        return stop

    @property
    def last(self) -> bool:
        """Whether whole strings are reported."""
        return self.device.stop == self.strings.length

    @property
    def privacy_loss(self) -> PrivacyLoss:
        """That of the oracle."""
        return self.inner.privacy_loss

    @property
    def totals(self) -> int:
        """Those of the oracle."""
        return self.inner.totals

    def tally(self, records: Records) -> NDArray[np.int64]:
        """Count with the oracle.

        Parameters
        ----------
        records : uint8 array, shape (records, width)
            Well-formed records, one a row.

        Returns
        -------
        ndarray of int64, shape (totals,)
            What they add to the aggregator's totals.
        """
        return self.inner.tally(self.device.inner(records))

    def estimate(self, totals: NDArray[np.int64], reports: int, *, simulated: bool = False) -> Estimate:
        """Return the estimated shares of the prefixes; mostly called by an aggregator.

        Parameters
        ----------
        totals : int64 array, shape (totals,)
            An aggregator's totals.
        reports : int
            How many reports were accepted.
        simulated : bool
            Whether the randomness of any report followed from a seed.

        Returns
        -------
        Estimate
            Over the round's prefixes, and one category for all others.
        """
        reported = self.inner.estimate(totals, reports, simulated=simulated)
        return replace(reported, domain=self.domain)

    def next(self, estimate: Estimate, max_candidates: int = 64, stop: int | None = None) -> PrefixRound:
        """Return the next round, about the prefixes with the largest estimates.

        Parameters
        ----------
        estimate : Estimate
            Of this round.
        max_candidates : int
            How many prefixes are continued.
        stop : int, optional
            Length of the next round's prefixes; see `PrefixRound`.

        Returns
        -------
        PrefixRound
            To be asked of other respondents.

        Raises
        ------
        ParameterError
            If this round is the last one, or the estimate is of another.
        """
        self._check(estimate)
        if self.last:
            _check.refuse_type("estimate", "be of a round before the last", estimate, "call found()")
        if not estimate.reports:
            _check.refuse(
                "estimate",
                "be of at least 1 report",
                estimate.reports,
                "collect some: they choose the prefixes",
            )
        count = _check.integer("max_candidates", max_candidates, minimum=1)
        texts = [text for text, _ in estimate.top(count + 1) if text is not None][:count]
        return replace(self, start=self.device.stop, given=tuple(texts), stop=stop)

    def found(self, estimate: Estimate, false_positive_rate: float = 0.05) -> list[Any]:
        """Return the strings (or prefixes) that are surely somebody's, the most frequent first.

        Parameters
        ----------
        estimate : Estimate
            Of this round.
        false_positive_rate : float
            Bound on the probability that any that nobody has is among them (Bonferroni).

        Returns
        -------
        list of str or bytes
            Prefixes, unless this round is the last.

        Notes
        -----
        The raw estimates are tested. By oracles whose reports support values
        (`sfumato.local.frequency.support`) the chance of an estimate of a prefix that nobody has is exact. By
        others errors are taken as normal, with the greater variance of shares of 0 and of the estimated ones.
        """
        self._check(estimate)
        risk = _check.unit_interval("false_positive_rate", false_positive_rate) / len(self.domain)
        order = np.argsort(-np.asarray(estimate.frequencies)[:-1], kind="stable")
        sure = self._chances(estimate)[order] <= risk
        return [self.domain.values[index] for index in order[sure].tolist()]

    def _chances(self, estimate: Estimate) -> Array:
        """Return the chances of such estimates, or greater ones, of prefixes that nobody has."""
        raw, reports = estimate.raw[:-1], estimate.reports
        if not reports:
            return np.ones(len(raw))
        support = getattr(self.inner, "support", None)
        if isinstance(support, Support):
            hits = np.rint((raw * float(support.gap) + float(support.other)) * reports)
            return binomial_tail(hits, reports, float(support.other))
        none = estimate.error_model.variance(np.zeros(len(estimate.raw))) / reports
        return np.asarray(ndtr(-raw / np.sqrt(np.maximum(none, estimate.variances)[:-1])))

    def _check(self, estimate: Estimate) -> None:
        _check.instance("estimate", estimate, Estimate, "pass what this round's aggregator returned")
        if estimate.domain != self.domain:
            _check.refuse_type("estimate", "be of this round", estimate, "pass what its aggregator returned")
