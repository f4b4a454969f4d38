"""RAPPOR as a protocol: its client half, its two losses, and the counting of its reports."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from typing import ClassVar, final

import numpy as np
from numpy.typing import NDArray

from sfumato.local.base.protocol import LocalProtocol
from sfumato.local.base.respondents import named_respondents, seeded
from sfumato.local.device.base.record_layout import Records
from sfumato.local.device.frequency import rappor as client
from sfumato.local.frequency.rappor.estimate import RapporEstimate
from sfumato.numerics import _kernels
from sfumato.numerics.rounding import fraction_up, log_up
from sfumato.privacy.leaves.support_response import SupportResponse
from sfumato.privacy.loss import PrivacyLoss

__all__ = ["Rappor"]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Rappor(LocalProtocol[client.RapporRandomizer, RapporEstimate]):
    r"""Strings that nobody listed beforehand, through Bloom filters with two layers of randomized response.

    Parameters
    ----------
    bits, hashes, cohorts, permanent, instantaneous
        See `sfumato.local.device.RapporRandomizer`; the defaults have 128 bits, 2 hash functions, 64 cohorts,
        f = 0.5, p = 0.5 and q = 0.75.

    Attributes
    ----------
    device : sfumato.local.device.RapporRandomizer
        The client half.

    Notes
    -----
    Guarantee: of each report `one_report_loss`, of all reports of a device about one string together
    `longitudinal_loss`, both under replace-one; see `sfumato.local.device.RapporRandomizer` for conditions.

    *The losses.* Let two strings have disjoint bits, which is the worst. A bit that the first has and a bit
    that the second has are two independent bits whose chances :math:`q^*, p^*` are exchanged: the pair of
    `sfumato.privacy.SupportResponse` with chance :math:`\min(p^*, 1 - q^*)` (a bit and its complement are
    alike) and independent overlap. A report has h such pairs, so its loss is that one h times.

    References
    ----------
    Erlingsson, Pihur, Korolova (2014), "RAPPOR: randomized aggregatable privacy-preserving ordinal response".

    Examples
    --------
    >>> oracle = Rappor()
    >>> round(oracle.one_report_loss.epsilon(0.0), 4), round(oracle.longitudinal_loss.epsilon(0.0), 4)
    (1.0743, 4.3944)
    >>> aggregator = oracle.aggregator()
    >>> aggregator.add_batch(oracle.randomize_batch(["blue"] * 30_000 + ["red"] * 10_000, rng=1))
    40000
    >>> found = aggregator.estimate().decode(["blue", "green", "red"])
    >>> found.detected
    ['blue', 'red']
    """

    wire_name: ClassVar[str] = "rappor"

    added: ClassVar[tuple[int, int]] = (0, 1)
    """What one report adds to a total at least and at most."""

    bits: int = 128
    hashes: int = 2
    cohorts: int = 64
    permanent: float = 0.5
    instantaneous: tuple[float, float] | None = (0.5, 0.75)
    device: client.RapporRandomizer = field(init=False, repr=False, compare=False)

    @property
    def epsilon(self) -> float:
        """Bound on the loss of one report."""
        return self.device.epsilon

    @property
    def one_report_loss(self) -> PrivacyLoss:
        """The loss of a single report of a device, from the chances that are drawn."""
        p, q = self.device.chances
        return _two_bits(self.device.odds, min(p, 1 - q)) * self.hashes

    @property
    def longitudinal_loss(self) -> PrivacyLoss:
        """The loss of all reports of a device about one string, however many, to those without its key."""
        return _two_bits(self.device.permanent_odds, self.device.flip.chance) * self.hashes

    @property
    def privacy_loss(self) -> PrivacyLoss:
        """The loss of one report."""
        return self.one_report_loss

    @property
    def totals(self) -> int:
        """For each cohort how many reports there are of it, and then how often each of its bits is 1."""
        return self.cohorts * (1 + self.bits)

    def tally(self, records: Records) -> NDArray[np.int64]:
        """Count the reports, and the bits that are 1, of each cohort.

        Parameters
        ----------
        records : uint8 array, shape (records, width)
            Well-formed records, one a row.

        Returns
        -------
        ndarray of int64, shape (totals,)
            What they add to the aggregator's totals.
        """
        rows, cohorts = self.device.opened(records)
        order = np.argsort(cohorts, kind="stable")
        rows = np.ascontiguousarray(rows[order])
        clients = np.bincount(cohorts, minlength=self.cohorts)
        counts = np.zeros((self.cohorts, self.bits), np.int64)
        ends = np.cumsum(clients)
        for cohort in np.flatnonzero(clients).tolist():
            part = rows[ends[cohort] - clients[cohort] : ends[cohort]]
            _kernels.count_bits(part, rows.shape[1], counts[cohort])
        return np.concatenate([clients, counts.ravel()])

    def estimate(self, totals: NDArray[np.int64], reports: int, *, simulated: bool = False) -> RapporEstimate:
        """Return the estimate of the filters' bits; mostly called by an aggregator.

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
        RapporEstimate
            Call its ``decode`` for strings.
        """
        clients, counts = totals[: self.cohorts], totals[self.cohorts :].reshape(self.cohorts, self.bits)
        return RapporEstimate(
            device=self.device,
            clients=clients,
            counts=counts,
            reports=reports,
            loss=self.privacy_loss,
            simulated=simulated,
        )

    def simulate_counts(
        self, true_counts: Mapping[str, int], rng: int | np.random.Generator = 0
    ) -> NDArray[np.int64]:
        """Draw an aggregator's totals at once, distributed as if so many new devices reported.

        Parameters
        ----------
        true_counts : mapping
            How many devices have each string.
        rng : int or numpy Generator
            A seed: this simulates, for planning.

        Returns
        -------
        ndarray of int64, shape (totals,)
            As `tally` would count them.

        Notes
        -----
        The devices of a string fall into cohorts evenly. In a cohort a bit is set in a known number of
        filters, and the bits of reports are independent: each count is the sum of two binomial ones.
        """
        generator = seeded(rng)
        even = np.full(self.cohorts, 1 / self.cohorts)
        clients = np.zeros(self.cohorts, np.int64)
        held = np.zeros((self.cohorts, self.bits), np.int64)
        for value, count in named_respondents("true_counts", true_counts).items():
            number = generator.multinomial(count, even)
            clients += number
            indices = self.device.indices([value] * self.cohorts, range(self.cohorts))
            bits = np.zeros_like(held)
            np.put_along_axis(bits, indices, 1, axis=1)
            held += bits * number[:, None]
        p, q = map(float, self.device.chances)
        counts = generator.binomial(held, q) + generator.binomial(clients[:, None] - held, p)
        return np.concatenate([clients, counts.ravel()]).astype(np.int64)

    def simulate(self, true_counts: Mapping[str, int], rng: int | np.random.Generator = 0) -> RapporEstimate:
        """Return an estimate as it might come of so many devices; see `simulate_counts`.

        Parameters
        ----------
        true_counts : mapping
            How many devices have each string.
        rng : int or numpy Generator
            A seed: this simulates, for planning.

        Returns
        -------
        RapporEstimate
            Marked as simulated.
        """
        totals = self.simulate_counts(true_counts, rng)
        return self.estimate(totals, sum(true_counts.values()), simulated=True)


def _two_bits(odds: Fraction, chance: Fraction) -> PrivacyLoss:
    return SupportResponse(log_up(fraction_up(odds)), chance, chance**2)
