"""Privacy filters: stopping rules that hold although each query and its price depend on earlier answers.

A filter adds one amount and one mass delta per charge and accepts while both totals are within limits fixed
before the first charge. Plain composition theorems do not allow this use: they presuppose that all prices
are fixed in advance. The theorems named here do allow it, under one condition that the ledger meets: a
charge's price is a function of public parameters (the loss tree) and is recorded before the data is read,
so that given the earlier answers it is a constant.

An (epsilon, delta) budget is watched by two filters at once, see `sfumato.ledger.budget.combined_filters`.

All numbers are read as the decimals that they are written as: a budget of 1 takes ten answers of 0.1 (see
`sfumato.numerics.decimals`). What a charge costs is rounded up under this reading, and limits that are worked
out from a budget are below the exact ones. Totals are exact to 40 digits and round up beyond. Charges of
ledgers from before are read as the floats they were, which is what they were rounded for (`BinarySpent`).

References
----------
Rogers, Roth, Ullman, Vadhan (2016), Privacy Odometers and Filters: Pay-as-you-Go Composition.
Bun, Steinke (2016), Concentrated Differential Privacy: Simplifications, Extensions, and Lower Bounds.
Whitehouse, Ramdas, Rogers, Wu (2023), Fully-Adaptive Composition in Differential Privacy.
Smith, Thakurta (2022), Fully Adaptive Composition for Gaussian Differential Privacy.
Feldman, Zrnic (2021), Individual Privacy Accounting via a Rényi Filter.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, ClassVar, Final, final

from sfumato import _check
from sfumato._wire import NUMBER, Codec, Names, Record
from sfumato.errors import UnsupportedView
from sfumato.ledger.budget.largest_epsilon import largest_epsilon
from sfumato.ledger.budget.spent import NOTHING, BinarySpent, Spent
from sfumato.numerics.decimals import decimal_down, decimal_sub_down, decimal_up
from sfumato.numerics.rounding import mul_down, sqrt_down, sqrt_up
from sfumato.privacy.accountant.intervals import epsilon_interval_at_float
from sfumato.privacy.accountant.moments import RDPView, approximate_rdp
from sfumato.privacy.accountant.precision import STANDARD
from sfumato.privacy.decimal_cost import epsilon_cost, gdp_cost, pure_cost, quick_epsilon_cost, zcdp_cost
from sfumato.privacy.loss import PrivacyLoss
from sfumato.privacy.neighboring import Neighboring
from sfumato.privacy.views import PureView, ZCDPView

__all__ = [
    "FILTER",
    "BasicFilter",
    "Filter",
    "GDPFilter",
    "PureFilter",
    "RDPFilter",
    "ZCDPFilter",
    "own_epsilon",
]


@dataclass(frozen=True, slots=True)
class Filter(ABC):
    """One stopping rule: the amount and the delta of all charges stay within fixed limits."""

    limit: float
    delta: float

    kind: ClassVar[str]

    def price(self, loss: PrivacyLoss, delta: float) -> Spent:
        """Return what one charge adds; an infinite amount if the loss has no bound in this unit.

        ``delta`` is where the loss's own (epsilon, delta) guarantee is read; most filters do not need it.
        """
        del delta
        try:
            return self._proven(loss)
        except UnsupportedView:
            return Spent(math.inf, 0.0)

    def binary_price(self, loss: PrivacyLoss, delta: float) -> Spent:
        """Return what one charge added before numbers were read as decimals."""
        return BinarySpent(*self.price(loss, delta))

    def _proven(self, loss: PrivacyLoss) -> Spent:
        """Return what one charge adds, by the loss's view in this unit."""
        raise NotImplementedError

    @property
    def _limit(self) -> float:
        """The largest total, as a decimal."""
        return self.limit

    @property
    def name(self) -> str:
        """The name that distinguishes the filter from the others of its budget."""
        return self.kind

    def used(self, spent: Spent) -> float:
        """Return how much of the filter is used, which decides which of several of one kind is shown."""
        del spent
        return 0.0

    def holds(self, spent: Spent) -> bool:
        """Whether totals are within the limits; as decimals, floats have the order that they have."""
        return spent.amount <= self._limit and spent.delta <= self.delta

    def left(self, spent: Spent) -> Spent:
        """Return the largest further charge that fits, rounded down; nothing once a limit is passed."""
        if not self.holds(spent):
            return NOTHING
        return Spent(decimal_sub_down(self._limit, spent.amount), decimal_sub_down(self.delta, spent.delta))

    @abstractmethod
    def in_unit(self, spent: Spent, *, up: bool) -> dict[str, float]:
        """Return the numbers of a `Guarantee` that say an amount of this filter, rounded up or down."""

    def epsilon_left(self, spent: Spent, delta: float) -> float:
        """Return the largest epsilon for which every (epsilon, delta)-DP charge fits; 0 if none is known."""
        del spent, delta
        return 0.0

    def largest_epsilon(self, spent: Spent, delta: float, neighboring: Neighboring) -> float:
        """Return the largest epsilon, at ``delta``, of one count with Gaussian or Laplace noise that fits."""
        if exact := self.epsilon_left(spent, delta):
            return exact
        left = self.left(spent)

        def fits(loss: PrivacyLoss) -> bool:
            price = self.price(loss, delta)
            return price.amount <= left.amount and price.delta <= left.delta

        return largest_epsilon(fits, delta, neighboring)


@final
@dataclass(frozen=True, slots=True)
class BasicFilter(Filter):
    """Adds the epsilon and the delta of each charge's own guarantee.

    Theorem (Rogers et al. 2016, basic composition as a filter): if each charge is
    (epsilon_i, delta_i)-DP given the answers before it, and charges stop before the sums pass
    (epsilon, delta), the whole interaction is (epsilon, delta)-DP.
    """

    kind: ClassVar[str] = "basic"

    def price(self, loss: PrivacyLoss, delta: float) -> Spent:
        """Return the charge's own guarantee, read at ``delta``."""
        return Spent(own_epsilon(loss, delta), delta)

    def binary_price(self, loss: PrivacyLoss, delta: float) -> Spent:
        """Return the charge's own guarantee, as the floats it is."""
        return BinarySpent(_float_epsilon(loss, delta), delta)

    def in_unit(self, spent: Spent, *, up: bool) -> dict[str, float]:
        """Return epsilon and delta."""
        del up
        return {"epsilon": spent.amount, "delta": spent.delta}

    def epsilon_left(self, spent: Spent, delta: float) -> float:
        """Return the epsilon left, if a charge at ``delta`` still fits."""
        left = self.left(spent)
        return left.amount if delta <= left.delta else 0.0

    def largest_epsilon(self, spent: Spent, delta: float, neighboring: Neighboring) -> float:
        """Return the epsilon left: what is above it does not fit."""
        del neighboring
        return self.epsilon_left(spent, delta)


@final
@dataclass(frozen=True, slots=True)
class PureFilter(Filter):
    """Adds pure epsilons; a loss with a mass delta never fits.

    Theorem (Rogers et al. 2016; also immediate, since the density ratios of the rounds multiply): if each
    charge is epsilon_i-DP given the answers before it, and charges stop before the sum passes epsilon, the
    whole interaction is epsilon-DP.
    """

    kind: ClassVar[str] = "pure"

    def _proven(self, loss: PrivacyLoss) -> Spent:
        return Spent(*pure_cost(loss))

    def binary_price(self, loss: PrivacyLoss, delta: float) -> Spent:
        """Return the epsilon of the loss as the float it is."""
        del delta
        return _binary(loss.pure)

    def in_unit(self, spent: Spent, *, up: bool) -> dict[str, float]:
        """Return epsilon."""
        del up
        return {"epsilon": spent.amount}

    def epsilon_left(self, spent: Spent, delta: float) -> float:
        """Return the epsilon left at delta 0; of a charge with a delta, epsilon is not what is added."""
        return 0.0 if delta else self.left(spent).amount


@final
@dataclass(frozen=True, slots=True)
class ZCDPFilter(Filter):
    """Adds rho and the mass delta of approximate zero-concentrated DP.

    Theorem (Whitehouse et al. 2023, the filter for approximate zCDP): if each charge is delta_i-approximate
    rho_i-zCDP given the answers before it, and charges stop before the sums pass (rho, delta), the whole
    interaction is delta-approximate rho-zCDP.
    """

    kind: ClassVar[str] = "zcdp"

    def _proven(self, loss: PrivacyLoss) -> Spent:
        return Spent(*zcdp_cost(loss))

    def binary_price(self, loss: PrivacyLoss, delta: float) -> Spent:
        """Return the rho of the loss as the float it is."""
        del delta
        return _binary(loss.zcdp)

    def in_unit(self, spent: Spent, *, up: bool) -> dict[str, float]:
        """Return rho and delta."""
        del up
        return {"rho": spent.amount, "delta": spent.delta}


@final
@dataclass(frozen=True, slots=True)
class GDPFilter(Filter):
    """Adds the squares of mu, and a mass delta, of Gaussian DP; its limit is the square of the budget's mu.

    Theorem (Smith, Thakurta 2022): if each charge is mu_i-GDP given the answers before it, and charges stop
    before the sum of squares passes mu^2, the whole interaction is mu-GDP.

    With masses: a charge whose trade-off is that of a Gaussian composed with a total loss of probability
    delta_i is, by Blackwell's theorem, a mixture: with probability 1 - delta_i a round that is mu_i-GDP, else
    anything. A history goes through good rounds only with probability the product of the 1 - delta_i along
    it, which is at least 1 - delta; one more coin at the end makes it exactly 1 - delta on every history.
    Given good rounds only, the theorem applies. So the whole is a mixture of a mu-GDP interaction, with
    probability 1 - delta, and anything.
    """

    kind: ClassVar[str] = "gdp"

    @property
    def _limit(self) -> float:
        # Worked out from the budget, and rounded down as the float it is.
        return _as_decimal(self.limit)

    def _proven(self, loss: PrivacyLoss) -> Spent:
        return Spent(*gdp_cost(loss))

    def in_unit(self, spent: Spent, *, up: bool) -> dict[str, float]:
        """Return mu and delta."""
        root = sqrt_up(spent.amount) if up else sqrt_down(spent.amount)
        return {"mu": root, "delta": spent.delta}

    @classmethod
    def of(cls, mu: float, delta: float) -> GDPFilter:
        """Return the filter of a budget in mu, its square rounded down."""
        return cls(mul_down(mu, mu), delta)


@final
@dataclass(frozen=True, slots=True)
class RDPFilter(Filter):
    r"""Adds Rényi divergences of one order, fixed beforehand, and a mass delta.

    Theorem (Feldman, Zrnic 2021, the Rényi filter): if each charge's divergence of order alpha is at most
    D_i given the answers before it, and charges stop before the sum passes D, that of the whole interaction
    is at most D.

    With masses, a charge is approximate as in `sfumato.privacy.accountant.moments`: P has a part of mass at
    least 1 - delta_i whose divergence is D_i. Let P_g be the product of these parts along a transcript. By
    backward induction over the rounds the integral of P_g^alpha Q^(1 - alpha) is at most e^((alpha-1) D), and
    the mass of P - P_g is the expected sum of the delta_i along it, at most delta.
    """

    order: float

    kind: ClassVar[str] = "rdp"

    @property
    def _limit(self) -> float:
        # Worked out from the budget, and rounded down as the float it is.
        return _as_decimal(self.limit)

    @property
    def name(self) -> str:
        """The kind and the order."""
        return f"{self.kind} {self.order!r}"

    def used(self, spent: Spent) -> float:
        """Return the amount as a fraction of the limit."""
        if spent.amount == 0:
            return 0.0
        return spent.amount / self.limit if self.limit else math.inf

    def _proven(self, loss: PrivacyLoss) -> Spent:
        (divergence,), mass = _renyi(loss, (self.order,))
        (first, count), *others = loss.terms or [(loss, 1)]
        alone = first.exact_mass(mass) if count == 1 and not others else mass
        return Spent(decimal_up(divergence), decimal_up(alone))

    def in_unit(self, spent: Spent, *, up: bool) -> dict[str, float]:
        """Return the divergence as an epsilon with its order, and delta."""
        del up
        return {"epsilon": spent.amount, "delta": spent.delta, "order": self.order}


@lru_cache(maxsize=4096)
def _renyi(loss: PrivacyLoss, orders: tuple[float, ...]) -> RDPView:
    return approximate_rdp(loss.terms, orders)


@lru_cache(maxsize=256)
def _as_decimal(limit: float) -> float:
    """Return the largest float that is, as a decimal, at most the float ``limit``."""
    return decimal_down(limit)


def own_epsilon(loss: PrivacyLoss, delta: float) -> float:
    """Return the epsilon of one charge: what closed views prove, else what the composed pairs do."""
    try:
        return quick_epsilon_cost(loss, delta)
    except UnsupportedView:
        return epsilon_cost(loss, delta, lambda at: epsilon_interval_at_float(loss, at, STANDARD).upper)


def _float_epsilon(loss: PrivacyLoss, delta: float) -> float:
    try:
        return loss.quick_epsilon(delta)
    except UnsupportedView:
        return epsilon_interval_at_float(loss, delta, STANDARD).upper


def _binary(view: Callable[[], PureView | ZCDPView]) -> Spent:
    try:
        return BinarySpent(*view())
    except UnsupportedView:
        return BinarySpent(math.inf, 0.0)


_LIMITS: Final[Mapping[str, Codec[Any]]] = {"limit": NUMBER, "delta": NUMBER}
_KIND: Final[Names[type[Filter]]] = Names(
    "a kind of filter",
    {"basic": BasicFilter, "pure": PureFilter, "zcdp": ZCDPFilter, "gdp": GDPFilter, "rdp": RDPFilter},
)
_RECORDS: Final[Mapping[type[Filter], Record[Any]]] = {
    BasicFilter: Record("a basic filter", BasicFilter, _LIMITS),
    PureFilter: Record("a filter of pure epsilons", PureFilter, _LIMITS),
    ZCDPFilter: Record("a zCDP filter", ZCDPFilter, _LIMITS),
    GDPFilter: Record("a Gaussian-DP filter", GDPFilter, _LIMITS),
    RDPFilter: Record("a Rényi filter", RDPFilter, {**_LIMITS, "order": NUMBER}),
}


def _write(member: Filter) -> dict[str, object]:
    return {"kind": _KIND.encode(type(member)), **_RECORDS[type(member)].encode(member)}


def _read(name: str, written: Any) -> Filter:
    if not isinstance(written, dict):
        _check.refuse_type(name, "be an object for each filter", written, "check the file")
    fields = dict(written)
    kind = _KIND.decode("kind", fields.pop("kind", None))
    member: Filter = _RECORDS[kind].decode(name, fields)
    _check.non_negative("limit", member.limit)
    _check.probability("delta", member.delta)
    return member


FILTER: Final[Codec[Filter]] = Codec(_write, _read)
"""One filter as an object, with its kind."""
