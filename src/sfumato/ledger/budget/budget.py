"""What may be spent on one dataset in all its life, and the filters that watch it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from sfumato import _check
from sfumato._wire import NUMBER, Codec, Names, Record, optional
from sfumato.ledger.budget.combined_filters import FILTERS, Filters
from sfumato.ledger.budget.filters import BasicFilter, GDPFilter, PureFilter, RDPFilter, ZCDPFilter
from sfumato.ledger.budget.rdp_orders import limits_of, smallest_order, usual_orders
from sfumato.numerics.decimals import decimal_part
from sfumato.privacy._outward import text_above
from sfumato.privacy.conversion import rho_for
from sfumato.privacy.guarantee import Guarantee
from sfumato.privacy.neighboring import Neighboring

__all__ = ["BUDGET", "Budget"]

LIMITS = ("epsilon", "delta", "rho", "mu")

_EPSILON: Final = "use 1.0, say: what all answers together may reveal of one unit"
_DELTA: Final = "use 1e-7, say: well below one over the number of units"


@dataclass(frozen=True, slots=True, kw_only=True)
class Budget:
    """A total that all answers together must not pass; made by the constructor that its kind names.

    Two budgets are equal if what they promise is equal. How an (epsilon, delta) budget is split between its
    filters is decided once, when the budget is made, and stored with the ledger: a later version of this
    library with a better conversion leaves the split of an existing ledger alone.

    Attributes
    ----------
    kind : str
        ``"approximate"``, ``"pure"``, ``"zcdp"``, ``"gaussian"`` or ``"rdp"``.
    epsilon, delta, rho, mu : float or None
        The promised numbers, None where they do not apply.
    filters : Filters
        What enforces them.

    Examples
    --------
    >>> print(Budget.approximate(epsilon=2.0, delta=1e-7))
    (2, 1e-07)-DP
    >>> print(Budget.zcdp(rho=0.5, delta=1e-9))
    1e-09-approximate 0.5-zCDP
    >>> Budget.approximate(epsilon=1.0, delta=0.0) == Budget.pure(epsilon=1.0)
    True
    """

    kind: str
    epsilon: float | None = None
    delta: float = 0.0
    rho: float | None = None
    mu: float | None = None
    filters: Filters

    @classmethod
    def approximate(cls, *, epsilon: float, delta: float) -> Budget:
        """Make an (epsilon, delta) budget, watched by two filters of which one must hold.

        Half of delta belongs to the basic filter, which adds up the (epsilon, delta) of each charge. A
        quarter converts rho to epsilon and a quarter is the mass that charges may spend (on selecting groups
        by a threshold, say) in the approximate-zCDP filter. So any charges whose epsilons sum to at most
        epsilon, and whose deltas sum to at most delta / 2, fit; and small Gaussian charges fit many times
        over, since their rho grows with the square of their epsilon.

        Parameters
        ----------
        epsilon : float
            Positive.
        delta : float
            In [0, 1); 0 makes a pure budget.

        Returns
        -------
        Budget

        Raises
        ------
        ParameterError
            If a number is out of its range.

        Notes
        -----
        Guarantee: (epsilon, delta)-DP of everything that is ever answered, under full adaptivity: the proof
        is in :class:`~sfumato.ledger.budget.combined_filters.Filters`. The zCDP filter promises
        (epsilon, delta / 2)-DP: outside a mass of delta / 4 the interaction is rho-zCDP, which is
        (epsilon, delta / 4)-DP by the choice of rho (see `sfumato.privacy.conversion.rho_for`).

        Examples
        --------
        >>> print(Budget.approximate(epsilon=2.0, delta=1e-7))
        (2, 1e-07)-DP
        """
        epsilon = _check.positive("epsilon", epsilon, _EPSILON)
        delta = _check.probability("delta", delta, _DELTA)
        if delta == 0:
            return cls.pure(epsilon=epsilon)
        if delta / 4 * 4 != delta:
            _check.refuse("delta", "be 0 or at least 1e-300", delta, _DELTA)
        half, quarter = decimal_part(delta, 2), decimal_part(delta, 4)
        filters = Filters((BasicFilter(epsilon, half), ZCDPFilter(rho_for(epsilon, quarter), quarter)))
        return cls(kind="approximate", epsilon=epsilon, delta=delta, filters=filters)

    @classmethod
    def pure(cls, *, epsilon: float) -> Budget:
        """Make a pure epsilon budget: the pure epsilons of all charges are summed.

        Parameters
        ----------
        epsilon : float
            Positive.

        Returns
        -------
        Budget

        Raises
        ------
        ParameterError
            If a number is out of its range.

        Examples
        --------
        >>> print(Budget.pure(epsilon=1.0))
        1-DP
        """
        epsilon = _check.positive("epsilon", epsilon, _EPSILON)
        return cls(kind="pure", epsilon=epsilon, filters=Filters((PureFilter(epsilon, 0.0),)))

    @classmethod
    def zcdp(cls, *, rho: float, delta: float = 0.0) -> Budget:
        """Make a delta-approximate rho-zCDP budget: rho and delta of all charges are summed.

        Parameters
        ----------
        rho : float
            Positive.
        delta : float
            In [0, 1): the mass that charges may spend, on thresholds for instance.

        Returns
        -------
        Budget

        Raises
        ------
        ParameterError
            If a number is out of its range.

        Examples
        --------
        >>> print(Budget.zcdp(rho=0.5, delta=1e-9))
        1e-09-approximate 0.5-zCDP
        """
        rho, delta = _check.positive("rho", rho, "use 0.1, say"), _check.probability("delta", delta, _DELTA)
        return cls(kind="zcdp", rho=rho, delta=delta, filters=Filters((ZCDPFilter(rho, delta),)))

    @classmethod
    def gaussian(cls, *, mu: float, delta: float = 0.0) -> Budget:
        """Make a mu-GDP budget, up to a mass delta: the squares of mu, and delta, are summed.

        Parameters
        ----------
        mu : float
            Positive, between 1e-150 and 1e150, so that its square is a number.
        delta : float
            In [0, 1): the mass that charges may spend. Gaussian noise on the integers, the one that is drawn,
            spends 1e-120 for each number; at 0 only Laplace noise fits.

        Returns
        -------
        Budget

        Raises
        ------
        ParameterError
            If a number is out of its range.
        """
        mu, delta = _check.positive("mu", mu, "use 0.5, say"), _check.probability("delta", delta, _DELTA)
        if not 1e-150 <= mu <= 1e150:
            _check.refuse("mu", "be between 1e-150 and 1e150", mu, "use 0.5, say")
        return cls(kind="gaussian", mu=mu, delta=delta, filters=Filters((GDPFilter.of(mu, delta),)))

    @classmethod
    def rdp(cls, *, epsilon: float, delta: float, orders: Sequence[float] | None = None) -> Budget:
        """Make an (epsilon, delta) budget that adds up Rényi divergences, of orders fixed here.

        For many charges that have no zCDP, such as the steps of a training run on Poisson samples. Half of
        delta is split evenly between the orders, each of which turns its divergence into epsilon; the other
        half is the mass that charges may spend. A charge is accepted while at least one order holds.

        Parameters
        ----------
        epsilon : float
            Positive.
        delta : float
            Strictly between 0 and 1.
        orders : sequence of float, optional
            Above 1; eight that suit epsilon and delta by default. Each further order costs the others a
            little. Those of which nothing is left at this epsilon and delta are dropped.

        Returns
        -------
        Budget

        Raises
        ------
        ParameterError
            If a number is out of its range.

        Notes
        -----
        Guarantee: (epsilon, delta)-DP of everything that is ever answered, under full adaptivity: the proof
        is in :class:`~sfumato.ledger.budget.filters.RDPFilter` and
        :class:`~sfumato.ledger.budget.combined_filters.Filters`.

        Examples
        --------
        >>> from sfumato.privacy import Gaussian, PoissonSubsampled
        >>> budget = Budget.rdp(epsilon=2.0, delta=1e-6)
        >>> step = PoissonSubsampled(Gaussian(1.0), sampling_probability=0.001)
        >>> budget.filters.hold(budget.filters.price(step * 1000, 0.0))
        True
        """
        epsilon, delta = _check.positive("epsilon", epsilon), _check.unit_interval("delta", delta)
        if orders is None:
            orders = usual_orders(epsilon, delta)
        fixed = sorted({_check.finite("orders", order) for order in orders})
        if not fixed or fixed[0] <= 1:
            _check.refuse("orders", "be numbers above 1", orders, "leave them out")
        limits = limits_of(fixed, epsilon, delta / 2)
        if not limits:
            smallest = text_above(smallest_order(epsilon, delta / 2))
            _check.refuse("orders", f"reach {smallest} at this epsilon and delta", orders, "leave them out")
        members = tuple(RDPFilter(limit, delta / 2, order) for order, limit in limits.items())
        return cls(kind="rdp", epsilon=epsilon, delta=delta, filters=Filters(members))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Budget) and self._promise() == other._promise()

    def __hash__(self) -> int:
        return hash(self._promise())

    def __str__(self) -> str:
        promised = str(self.guarantee(Neighboring.ADD_REMOVE))
        return promised.removesuffix(f", {Neighboring.ADD_REMOVE}")

    def guarantee(self, neighboring: Neighboring) -> Guarantee:
        """Return what the whole budget promises under one neighboring relation.

        Parameters
        ----------
        neighboring : Neighboring
            The relation of the data.

        Returns
        -------
        Guarantee

        Examples
        --------
        >>> print(Budget.pure(epsilon=1.0).guarantee(Neighboring.REPLACE_ONE))
        1-DP, replace one unit
        """
        return Guarantee(
            neighboring=neighboring, epsilon=self.epsilon, delta=self.delta, rho=self.rho, mu=self.mu
        )

    def weakest(self, filters: Filters) -> Filters:
        """Return these filters with no limit above those of ``filters``, which watch an equal budget.

        Parameters
        ----------
        filters : Filters
            Of the same kinds, in the same order.

        Returns
        -------
        Filters
        """
        pairs = zip(self.filters.members, filters.members, strict=True)
        return Filters(
            tuple(
                replace(mine, limit=min(mine.limit, other.limit), delta=min(mine.delta, other.delta))
                for mine, other in pairs
            )
        )

    def remade(self) -> Budget:
        """Return the budget as it would be split today.

        Returns
        -------
        Budget
            Equal to this one; its filters may have other limits.
        """
        promised: dict[str, Any] = {
            name: getattr(self, name) for name in LIMITS if getattr(self, name) is not None
        }
        if self.kind == "pure":
            del promised["delta"]
        if self.kind == "rdp":
            members = self.filters.members
            promised["orders"] = [member.order for member in members if isinstance(member, RDPFilter)]
        constructor: Callable[..., Budget] = getattr(self, self.kind)
        return constructor(**promised)

    def to_json(self) -> dict[str, Any]:
        """Return the budget and its split as plain values.

        Returns
        -------
        dict
            For JSON, as a part of a larger document.
        """
        return _RECORD.encode(self)

    @classmethod
    def from_json(cls, written: object) -> Budget:
        """Return the budget that `to_json` wrote, split as it was then.

        Parameters
        ----------
        written : object
            What `to_json` wrote, perhaps by way of JSON.

        Returns
        -------
        Budget

        Raises
        ------
        ParameterError
            If no constructor makes such a budget, or its filters are of other kinds.

        Examples
        --------
        >>> Budget.from_json(Budget.pure(epsilon=1.0).to_json()) == Budget.pure(epsilon=1.0)
        True
        """
        return BUDGET.decode("budget", written)

    def _is_made_by_its_constructor(self) -> bool:
        try:
            made = self.remade()
        except TypeError:
            return False
        kinds, expected = ([type(member) for member in each.filters.members] for each in (self, made))
        return self == made and kinds == expected

    def _promise(self) -> tuple[object, ...]:
        return (self.kind, self.epsilon, self.delta, self.rho, self.mu)


_KINDS: Final = ("approximate", "pure", "zcdp", "gaussian", "rdp")
_RECORD: Final[Record[Budget]] = Record(
    "a budget",
    Budget,
    {
        "kind": Names("a kind of budget", {kind: kind for kind in _KINDS}),
        "epsilon": optional(NUMBER),
        "delta": NUMBER,
        "rho": optional(NUMBER),
        "mu": optional(NUMBER),
        "filters": FILTERS,
    },
)


def _read(name: str, written: Any) -> Budget:
    budget = _RECORD.decode(name, written)
    if not budget._is_made_by_its_constructor():  # noqa: SLF001 - a part of reading one
        _check.refuse(
            name,
            "be one that its constructor makes, with its filters",
            budget.kind,
            "use Budget's constructors",
        )
    return budget


BUDGET: Final[Codec[Budget]] = Codec(_RECORD.encode, _read)
"""A budget with the split between its filters that it was made with."""
