"""Several questions to one person, as protocols over any frequency oracle."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import reduce
from operator import add
from typing import Any, ClassVar, Generic, TypeVar, final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sfumato import _check
from sfumato.local.base.protocol import LocalProtocol
from sfumato.local.base.respondents import respondents, seeded
from sfumato.local.base.sampled_question import SampledQuestionProtocol, SeveralParts
from sfumato.local.device.base.record_layout import Records
from sfumato.local.device.domains.categories import Domain
from sfumato.local.device.marginals import attributes as client
from sfumato.local.frequency.estimate import Estimate
from sfumato.local.frequency.oracle import SupportOracle
from sfumato.local.frequency.unary import OptimizedUnaryEncoding
from sfumato.local.frequency.variance import ErrorModel
from sfumato.local.marginals.sampling_variance import Sampled
from sfumato.privacy.loss import PrivacyLoss
from sfumato.privacy.nodes.mixture import Mixture

__all__ = ["AttributesProtocol", "SampledAttribute", "SplitBudget"]

Device = TypeVar("Device", bound=client.AttributesRandomizer)
Shares = tuple[Estimate, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class AttributesProtocol(SeveralParts, LocalProtocol[Device, Shares], Generic[Device]):
    """A protocol that estimates the shares of the categories of several domains.

    A person reports a row of categories, one of each.

    Parameters
    ----------
    epsilon : float
        Bound on the loss of all that one person reports, from above 0 to 40.
    domains : sequence of Domain
        From 2 to 2^12.
    oracle : type of SupportOracle
        The frequency oracle of each domain, such as `OptimalLocalHashing`.

    Attributes
    ----------
    device : AttributesRandomizer
        The client half, which a device makes again from ``device.specification()``.
    oracles : tuple of SupportOracle
        One for each domain.

    References
    ----------
    Arcolezi, Couchot, Al Bouna, Xiao (2021), "Random sampling plus fake data: multidimensional frequency
    estimates with local differential privacy": the names SPL, SMP and RS+FD.
    """

    epsilon: float
    domains: Sequence[Domain]
    oracle: type[SupportOracle[Any]] = OptimizedUnaryEncoding
    device: Device = field(init=False, repr=False, compare=False)
    oracles: tuple[SupportOracle[Any], ...] = field(init=False, repr=False, compare=False)

    def _make(self) -> Device:
        given: object = self.oracle
        if not isinstance(given, type) or not issubclass(given, SupportOracle):
            remedy = "pass a class such as OptimizedUnaryEncoding, OptimalLocalHashing or SubsetSelection"
            _check.refuse("oracle", "be a frequency oracle whose reports support values", given, remedy)
        return self._client(protocol=given.wire_name)

    def _prepare(self) -> None:
        epsilon = self.device.parts[0].epsilon
        self._set(oracles=tuple(self.oracle(epsilon=epsilon, domain=one) for one in self.domains))

    @property
    def counted(self) -> tuple[SupportOracle[Any], ...]:
        """The oracles."""
        return self.oracles

    def tally(self, records: Records) -> NDArray[np.int64]:
        """Count with each oracle."""
        parts = enumerate(self.oracles)
        return np.concatenate([oracle.tally(self.device.cut(records, at)) for at, oracle in parts])

    @abstractmethod
    def _error_models(self) -> tuple[tuple[ErrorModel, int], ...]:
        """Return how far each estimate deviates, and how many respondents there are to a report about it."""

    def variance(self, n: int, frequency: float = 0.0) -> tuple[float, ...]:
        """Return the variance of a share's estimate in each domain, if that share is ``frequency``.

        Parameters
        ----------
        n : int
            How many people report, at least 1; the variances are those of many.
        frequency : float
            From 0 to 1; 0 for rare categories.
        """
        count = _check.integer("n", n, minimum=1)
        share = np.array([_check.share("frequency", frequency)])
        return tuple(
            float(error_model.variance(share)[0]) * of / count for error_model, of in self._error_models()
        )

    @abstractmethod
    def _simulated(
        self, codes: NDArray[np.int64], people: NDArray[np.int64], generator: np.random.Generator
    ) -> NDArray[np.int64]:
        """Draw totals, given columns of indices in the domains and how many respondents have each."""

    def simulate_counts(
        self, rows: Any, counts: ArrayLike | None = None, rng: int | np.random.Generator = 0
    ) -> NDArray[np.int64]:
        """Draw an aggregator's totals at once: distributed as if everybody reported, whatever their number.

        Parameters
        ----------
        rows : array or list
            Rows of categories, as for `randomize_batch`.
        counts : array of int, optional
            How many respondents have each row; one if left out.
        rng : int or numpy Generator
            A seed: this simulates, for planning.

        Returns
        -------
        ndarray of int64
            `totals` numbers; as exact as the simulator of the frequency oracle.
        """
        codes, people = self._kinds(rows, counts)
        return self._simulated(codes, people, seeded(rng))

    def simulate(
        self, rows: Any, counts: ArrayLike | None = None, rng: int | np.random.Generator = 0
    ) -> Shares:
        """Return estimates as they might come of so many respondents; see `simulate_counts`."""
        codes, people = self._kinds(rows, counts)
        totals = self._simulated(codes, people, seeded(rng))
        return self.estimate(totals, int(people.sum()), simulated=True)

    def _kinds(self, rows: Any, counts: Any) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        codes = self.device._codes(rows)  # noqa: SLF001 - the other half of one protocol
        return codes, respondents(counts, codes.shape[1])

    def _in_each(self, at: int, codes: NDArray[np.int64], people: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return how many respondents are in each category of a domain."""
        found = np.zeros(len(self.domains[at]), np.int64)
        np.add.at(found, codes[at], people)
        return found


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class SplitBudget(AttributesProtocol[client.SplitBudgetRandomizer]):
    r"""All questions, each with an equal part of epsilon ("SPL"): mostly the worst choice.

    Parameters
    ----------
    epsilon, domains, oracle
        See `AttributesProtocol`.

    Notes
    -----
    Guarantee: :math:`\epsilon`-DP of each person's report, replace-one; see
    `sfumato.local.device.SplitBudgetRandomizer`. The accountant adds up what the parts cost.

    Examples
    --------
    >>> domains = [Domain(["a", "b"]), Domain(range(5))]
    >>> SplitBudget(epsilon=2.0, domains=domains).oracles[1].epsilon
    1.0
    """

    wire_name: ClassVar[str] = "split-budget"

    @property
    def privacy_loss(self) -> PrivacyLoss:
        """The losses of all oracles, composed."""
        return reduce(add, [oracle.privacy_loss for oracle in self.oracles])

    def _error_models(self) -> tuple[tuple[ErrorModel, int], ...]:
        return tuple((oracle.error_model, 1) for oracle in self.oracles)

    def _simulated(
        self, codes: NDArray[np.int64], people: NDArray[np.int64], generator: np.random.Generator
    ) -> NDArray[np.int64]:
        parts = enumerate(self.oracles)
        return np.concatenate(
            [oracle.simulate_counts(self._in_each(at, codes, people), generator) for at, oracle in parts]
        )

    def estimate(self, totals: NDArray[np.int64], reports: int, *, simulated: bool = False) -> Shares:
        """Return what each oracle's totals estimate; mostly called by an aggregator.

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
        tuple of Estimate
            One for each attribute, in the order of the domains.
        """
        parts = zip(self.oracles, self.pieces(totals), strict=True)
        return tuple(oracle.estimate(own, reports, simulated=simulated) for oracle, own in parts)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class SampledAttribute(SampledQuestionProtocol, AttributesProtocol[client.SampledAttributeRandomizer]):
    r"""One question a person, drawn by chance, with all of epsilon ("SMP"): the smallest error of the three.

    Parameters
    ----------
    epsilon, domains, oracle
        See `AttributesProtocol`.

    Notes
    -----
    Guarantee: :math:`\epsilon`-DP of each person's report, replace-one; see
    `sfumato.local.device.SampledAttributeRandomizer`. Variances and intervals are about the shares of all
    respondents, and not only of those who were asked: see `sfumato.local.marginals.sampling_variance`.

    Examples
    --------
    >>> protocol = SampledAttribute(epsilon=2.0, domains=[Domain(["a", "b"]), Domain(range(5))])
    >>> aggregator = protocol.aggregator()
    >>> aggregator.add_batch(protocol.randomize_batch([("a", 4), ("b", 4)] * 10_000, rng=1))
    20000
    >>> letters, numbers = aggregator.estimate()
    >>> bool(abs(letters.of("a") - 0.5) < 0.1), bool(abs(numbers.of(4) - 1) < 0.1)
    (True, True)
    """

    wire_name: ClassVar[str] = "sampled-attribute"

    @property
    def privacy_loss(self) -> PrivacyLoss:
        """One of the oracles' losses, drawn evenly, and it is public which."""
        losses = tuple(oracle.privacy_loss for oracle in self.oracles)
        return Mixture(losses, (1 / len(losses),) * len(losses), index_public=True)

    def _error_models(self) -> tuple[tuple[ErrorModel, int], ...]:
        count = len(self.oracles)
        return tuple((Sampled(oracle.error_model, 1 - 1 / count), count) for oracle in self.oracles)

    def estimate(self, totals: NDArray[np.int64], reports: int, *, simulated: bool = False) -> Shares:
        """Return what each oracle's totals estimate about all respondents; mostly called by an aggregator.

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
        tuple of Estimate
            One for each attribute, in the order of the domains.
        """
        parts = zip(self.oracles, self.pieces(totals), self.reports_of_parts(totals), strict=True)
        return tuple(
            Estimate(
                domain=oracle.domain,
                reports=count,
                raw=oracle.shares(own, count),
                error_model=Sampled(oracle.error_model, 1 - count / reports if reports else 1.0),
                loss=self.privacy_loss,
                simulated=simulated,
            )
            for oracle, own, count in parts
        )
