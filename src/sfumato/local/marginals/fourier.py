"""Marginals by their coefficients: each respondent reports the sign of one."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from itertools import combinations, islice, pairwise, product
from math import comb, prod
from typing import ClassVar, Final, final

import numpy as np
from numpy.typing import NDArray

from sfumato.local.base.protocol import log_odds
from sfumato.local.device.base.record_layout import Records
from sfumato.local.device.frequency.hadamard import parity
from sfumato.local.device.marginals import fourier as client
from sfumato.local.frequency.variance import Array
from sfumato.local.marginals.coefficients import Evidence
from sfumato.local.marginals.lattice import Attributes, Lattice, functions, transformed
from sfumato.local.marginals.protocol import MarginalsProtocol
from sfumato.privacy.leaves.support_response import SupportResponse
from sfumato.privacy.loss import PrivacyLoss

__all__ = ["FourierEvidence", "FourierMarginals"]

_MAX_CASES: Final = 1 << 16
_SIGNS: Final = 1 << 18


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class FourierMarginals(MarginalsProtocol[client.FourierMarginalsRandomizer]):
    r"""One sign of each respondent's row: the smallest error for small epsilon and few categories.

    Parameters
    ----------
    epsilon, domains
        See `MarginalsProtocol`.
    order : int
        Attributes of the widest marginals that are reported; all marginals of so many or fewer are.
    weights : tuple of int, optional
        How likely a coefficient of 1, 2, ... attributes is to be drawn; see
        `sfumato.local.device.FourierMarginalsRandomizer`.

    Notes
    -----
    Guarantee: :math:`\epsilon`-DP of each respondent's report, replace-one; see
    `sfumato.local.device.FourierMarginalsRandomizer`.

    *Estimates.* Let g = 2p - 1. The signs of :math:`n_a` reports about coefficient a have a mean of g times
    that of the respondents who were drawn: divided by g it is unbiased, with the variance :math:`(1/g^2 -
    c_a^2) / n_a` for drawn respondents, c being the true coefficient. Attributes with r categories have
    characters of R, the next power of two. A function :math:`\varphi` of such an attribute is
    :math:`\sum_a \gamma_a \chi_a` on its categories with :math:`\gamma_a = \frac1R \sum_x \varphi(x)
    \chi_a(x)`, and :math:`\gamma_0 = 0` as its sum is 0. So a table's coefficients of a set of attributes are
    linear in those that are reported of that set alone, and with even counts their errors are uncorrelated,
    and alike.

    *Weights.* The paper draws all coefficients alike. Of attributes with two categories one of i is in
    :math:`\binom{d-i}{k-i}` marginals of k, so that the sum of all their variances is smallest with weights
    as the square roots of that: about half of it, for d = 16 and k = 3.

    References
    ----------
    Cormode, Kulkarni, Srivastava (2018), "Marginal release under local differential privacy": InpHT.

    Examples
    --------
    >>> from sfumato.local import Domain
    >>> domains = [Domain(["no", "yes"]), Domain(["no", "yes"]), Domain(range(3))]
    >>> protocol = FourierMarginals(epsilon=2.0, domains=domains, order=2)
    >>> aggregator = protocol.aggregator()
    >>> aggregator.add_batch(protocol.randomize_batch([("no", "no", 2), ("yes", "yes", 0)] * 20_000, rng=1))
    40000
    >>> found = aggregator.estimate().marginal(0, 1)
    >>> bool(abs(found.of(("yes", "yes")) - 0.5) < 0.05), bool(abs(found.of(("yes", "no"))) < 0.05)
    (True, True)
    """

    wire_name: ClassVar[str] = "fourier-marginals"

    order: int = 2
    weights: tuple[int, ...] | None = None

    def _prepare(self) -> None:
        sizes = tuple(len(domain) for domain in self.domains)
        views = tuple(combinations(range(len(sizes)), self.order))
        self._set(lattice=Lattice(sizes, views))

    @property
    def privacy_loss(self) -> PrivacyLoss:
        r"""A coefficient and a sign, which half of all such pairs share with a row.

        Notes
        -----
        The shared distribution of `sfumato.privacy.SupportResponse` draws the coefficient as the device does,
        and an even sign. Rows that agree in the attributes of a set E have the same sign with the probability
        :math:`(1 + \rho)/2`, with :math:`\rho = \sum_A w_A \prod_{i \in A} v_i / \sum_A w_A \prod_{i \in A}
        (R_i - 1)`, v being R - 1 for attributes in E and -1 for others, as the characters of two categories
        have those sums of products. The overlap is that of the rows for which it is smallest.
        """
        truth = self.device.truth.chance
        return SupportResponse(
            log_odds(truth / (1 - truth), self.epsilon), Fraction(1, 2), (1 + self._least_likeness()) / 4
        )

    def _least_likeness(self) -> Fraction:
        """Return the minimum of what the privacy loss calls rho; -1 if there are too many cases."""
        sizes = [len(domain) for domain in self.domains]
        kinds = Counter(sizes)
        # What a set's coefficients weigh follows from how many of its attributes are of each kind.
        weights = {
            tuple(Counter(sizes[at] for at in among)[size] for size in kinds): ticket
            for among, ticket in zip(self.device.sets, self.device.tickets.tolist(), strict=True)
        }
        cases = prod(count + 1 for count in kinds.values())
        if cases * len(weights) > _MAX_CASES:
            return Fraction(-1)
        smallest = None
        for equal in islice(product(*(range(count + 1) for count in kinds.values())), cases - 1):
            # The last case, which is left out, is that of two equal rows.
            sums = [
                _symmetric(characters, same, count - same, self.order)
                for characters, same, count in zip(map(_others, kinds), equal, kinds.values(), strict=True)
            ]
            total = sum(
                weight * prod(own[of] for own, of in zip(sums, case, strict=True))
                for case, weight in weights.items()
            )
            smallest = total if smallest is None else min(smallest, total)
        return Fraction(smallest or 0) * self.device.chances[0] / int(self.device.tickets[0])

    @property
    def totals(self) -> int:
        """For each coefficient the reports about it, and then those with a minus."""
        return 2 * self.device.coefficients

    def tally(self, records: Records) -> NDArray[np.int64]:
        """Count for each coefficient its reports, and those with a minus.

        Parameters
        ----------
        records : uint8 array, shape (records, width)
            Well-formed records, one a row.

        Returns
        -------
        ndarray of int64, shape (totals,)
            What they add to the aggregator's totals.
        """
        reported = self.device.layout.unpack(records).astype(np.int64)
        counts = np.bincount(reported, minlength=self.totals).reshape(-1, 2)
        return np.concatenate([counts.sum(axis=1), counts[:, 1]])

    def _evidence(self, totals: NDArray[np.int64], reports: int) -> FourierEvidence:
        # A state that nobody counted may say anything.
        asked, minus = np.maximum(totals.reshape(2, -1), 0)
        minus = np.minimum(minus, asked)
        gap = float(2 * self.device.truth.chance - 1)
        with np.errstate(invalid="ignore"):
            signs = (asked - 2 * minus) / (asked * gap)
        cuts = self.device.starts.tolist()
        coefficients = np.ones(self.lattice.total)
        for among, (start, stop) in zip(self.device.sets, pairwise(cuts), strict=True):
            first = self.lattice.starts[among]
            own = self.lattice.width(among)
            coefficients[first : first + own] = _mixing(self.lattice.shape(among)) @ signs[start:stop]
        counts = {
            among: asked[start:stop]
            for among, (start, stop) in zip(self.device.sets, pairwise(cuts), strict=True)
        }
        return FourierEvidence(
            lattice=self.lattice, coefficients=coefficients, reports=reports, counts=counts, gap=gap
        )

    def _simulated(
        self, codes: NDArray[np.int64], counts: NDArray[np.int64], generator: np.random.Generator
    ) -> NDArray[np.int64]:
        device, kinds = self.device, codes.shape[1]
        totals, left, remaining = np.zeros((2, device.coefficients), np.int64), counts.copy(), 1.0
        truth, of_sets = float(device.truth.chance), [float(chance) for chance in device.chances]
        chances = np.repeat(of_sets, np.diff(device.starts)).tolist()
        each = max(1, _SIGNS // max(1, kinds))
        for first in range(0, device.coefficients, each):
            numbers = np.arange(first, min(first + each, device.coefficients))
            signs = device.negative(np.repeat(numbers, kinds), np.tile(codes, len(numbers)))
            for number, negative in zip(numbers.tolist(), signs.reshape(-1, kinds), strict=True):
                part = chances[number] / remaining if number + 1 < device.coefficients else 1.0
                drawn = generator.binomial(left, min(1.0, part))
                left, remaining = left - drawn, remaining - chances[number]
                minus = int(drawn[negative].sum())
                plus = int(drawn.sum()) - minus
                totals[0, number] = plus + minus
                totals[1, number] = generator.binomial(minus, truth) + generator.binomial(plus, 1 - truth)
        return totals.ravel()


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class FourierEvidence(Evidence):
    """The evidence of signs.

    Parameters
    ----------
    lattice, coefficients, reports
        See `Evidence`.
    counts : dict
        For each set of attributes the reports about each of its coefficients.
    gap : float
        How much likelier a true sign is than a wrong one.
    """

    counts: dict[Attributes, NDArray[np.int64]]
    gap: float

    def scatter(self, attributes: Attributes, shares: Array) -> Array:
        """Return the covariance matrix of coefficients, in blocks of one set of attributes each."""
        lattice, shape = self.lattice, self.lattice.shape(attributes)
        true = transformed(shares.reshape(1, *shape), [_characters(size) for size in shape])[0]
        supports = lattice.supports(attributes)
        found = np.zeros((len(shares), len(shares)))
        for mask in range(1, 1 << len(attributes)):
            inside = [bool(mask >> at & 1) for at in range(len(attributes))]
            among = tuple(at for at, held in zip(attributes, inside, strict=True) if held)
            own = true[tuple(slice(1, None) if held else 0 for held in inside)].ravel()
            with np.errstate(divide="ignore"):
                variances = (1 / self.gap**2 - own**2) / self.counts[among]
            rows, mixing = np.flatnonzero(supports == mask), _mixing(lattice.shape(among))
            if np.isfinite(variances).all():
                found[np.ix_(rows, rows)] = mixing * variances @ mixing.T
            else:
                found[np.ix_(rows, rows)] = np.inf
        return found

    def precisions(self, width: int) -> dict[Attributes, float]:
        """Return how well the coefficients of sets of attributes are known; see `Evidence`."""
        of = min(width, len(self.lattice.views[0]))
        wanted = (among for among in self.counts if len(among) == of)
        return {one: self.gap**2 * float(self.counts[one].mean()) / self._filled(one) for one in wanted}

    def _filled(self, among: Attributes) -> float:
        """Return which part of their attributes' characters the functions of categories are."""
        shape = self.lattice.shape(among)
        return float(np.prod([size / len(_characters(size)) for size in shape]))


@lru_cache(maxsize=256)
def _characters(categories: int) -> Array:
    """Return the characters of an attribute's bits on its categories, as rows, the constant one first."""
    bits = np.arange(1 << (categories - 1).bit_length())
    return np.where(parity(bits[:, None] & np.arange(categories)), -1.0, 1.0)


@lru_cache(maxsize=1024)
def _mixing(shape: tuple[int, ...]) -> Array:
    """Return the matrix from the signs of a set of attributes to its coefficients; see `FourierMarginals`."""
    found: Array = np.ones((1, 1))
    for size in shape:
        characters = _characters(size)
        found = np.asarray(np.kron(found, functions(size)[1:] @ characters[1:].T / len(characters)))
    return found


def _others(categories: int) -> int:
    """Return how many characters an attribute has beside the constant one."""
    return len(_characters(categories)) - 1


def _symmetric(value: int, times: int, negative: int, order: int) -> list[int]:
    """Return elementary symmetric sums of some equal values and some of -1."""
    plus = [comb(times, of) * value**of for of in range(order + 1)]
    minus = [comb(negative, of) * (-1) ** of for of in range(order + 1)]
    return [sum(plus[at - of] * minus[of] for of in range(at + 1)) for at in range(order + 1)]
