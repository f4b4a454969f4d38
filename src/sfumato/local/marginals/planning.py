"""Which protocol for marginals to take: what each would err, before anybody is asked."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from itertools import combinations
from math import comb, prod
from typing import Any, Final, final

import numpy as np
from numpy.typing import NDArray

from sfumato import _check
from sfumato.errors import ParameterError
from sfumato.local.base.plan_comparison import Choice, Limits, none_left
from sfumato.local.device.base.rows import checked_domains
from sfumato.local.device.domains.categories import Domain
from sfumato.local.device.marginals.fourier import filled_up
from sfumato.local.marginals.consistency import ConsistentMarginals
from sfumato.local.marginals.covering_design import covering
from sfumato.local.marginals.fourier import FourierMarginals
from sfumato.local.marginals.lattice import Attributes, analysed
from sfumato.local.marginals.protocol import MarginalsProtocol
from sfumato.local.marginals.sampled import SampledMarginals

__all__ = ["Marginals", "MarginalsChoice", "MarginalsPlan"]

_WIDEST: Final = 8
_CELLS: Final = 1 << 12
_MAX_MARGINALS: Final = 1 << 16
_MAX_BUILT: Final = 200


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class MarginalsPlan:
    """The expected errors of one protocol.

    Parameters
    ----------
    name : str
        ``"FourierMarginals"`` or ``"SampledMarginals"``.
    width : int
        Attributes of the first one's widest coefficients, or of the second one's widest table.
    views : tuple of tuples of int
        The tables of the second one; empty for the first.
    noise : float
        Squared error of a marginal by randomization: summed over its cells, and the mean over all marginals
        of as many attributes as were planned for.
    sampling : float
        The same, as not everybody is asked about everything.
    construction : float
        The same, as marginals that nobody is asked for are put together from others.
    bytes : int
        Of a report.

    Examples
    --------
    >>> from sfumato.local import Domain, Marginals, choose
    >>> plan = choose(Marginals([Domain(range(2))] * 4), epsilon=2.0, n=10_000).best
    >>> plan.error == plan.noise + plan.sampling + plan.construction
    True
    """

    name: str
    width: int
    views: tuple[Attributes, ...]
    noise: float
    sampling: float
    construction: float
    bytes: int

    @property
    def error(self) -> float:
        """The sum of all three."""
        return self.noise + self.sampling + self.construction


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class MarginalsChoice(Choice[MarginalsPlan]):
    """All protocols for a job that meet the limit, that with the smallest error first.

    Parameters
    ----------
    epsilon : float
        Of each report.
    domains : tuple of Domain
        The attributes.
    order : int
        Attributes of the marginals that were planned for.
    plans : tuple of MarginalsPlan
        The protocols that meet the limit, the best first.
    ruled_out : mapping of str to str
        The others, with the reason.

    Examples
    --------
    >>> from sfumato.local import Domain, Marginals, choose
    >>> choice = choose(Marginals([Domain(range(2))] * 4), epsilon=2.0, n=10_000)
    >>> type(choice.protocol()).__name__ == choice.best.name
    True
    """

    epsilon: float
    domains: tuple[Domain, ...]
    order: int

    def protocol(self, plan: MarginalsPlan | None = None) -> MarginalsProtocol[Any]:
        """Return the protocol of a plan, or of the best one.

        Parameters
        ----------
        plan : MarginalsPlan, optional
            One of `plans`; the best one if left out.

        Returns
        -------
        FourierMarginals or SampledMarginals
            Ready to collect with.
        """
        chosen = plan or self.best
        return _made(self.epsilon, self.domains, chosen.width, chosen.views)

    def __str__(self) -> str:
        head = f"{'protocol':<18}{'tables':>8}{'width':>7}{'bytes':>7}{'noise':>11}{'sampling':>11}"
        rows = [
            f"{plan.name:<18}{len(plan.views) or '':>8}{plan.width:>7}{plan.bytes:>7}{plan.noise:>11.3g}"
            f"{plan.sampling:>11.3g}{plan.construction:>14.3g}{plan.error:>11.3g}"
            for plan in self.plans
        ]
        return self._table(f"{head}{'construction':>14}{'error':>11}", *rows)


@final
@dataclass(frozen=True, slots=True, eq=False)
class Marginals:
    r"""The question how often the categories of several attributes come together, for `sfumato.local.choose`.

    Parameters
    ----------
    domains : sequence of Domain
        The attributes: from 2 to 2^12.
    order : int
        Attributes of the marginals that are wanted.
    example : rows of categories, optional
        Public rows that may be like those of the respondents: of an earlier year, or made up. With them
        protocols are considered, too, that do not report all wanted marginals.

    Notes
    -----
    Compared are `FourierMarginals`, all tables of ``order`` attributes, and wider tables in which all sets of
    ``order`` attributes are together; with an example also coefficients of two attributes, all pairs, and
    wider tables in which all pairs are. A coefficient's variance is that of the protocols' theory for even
    shares; for tables that is :math:`1 / \sum_V \frac{n}{m (a_V L_V + b_V)}` over those of the m tables that
    have it, of which the part of respondents drawn without randomization is stated as sampling. A marginal's
    squared error is the sum of its coefficients' variances over the number of its cells. So few tables are no
    better than many of the same width, if each set of attributes is in as large a part of them. The error of
    construction is that of `ConsistentMarginals.table` from the example's true tables.

    References
    ----------
    Zhang, Wang, Li, He, Chen (2018), "CALM: consistent adaptive local marginal for marginal release under
    local differential privacy": the three errors, and wide tables as the compromise between them.

    Examples
    --------
    >>> from sfumato import local
    >>> question = Marginals([Domain(range(2))] * 16, order=3)
    >>> low, high = (local.choose(question, epsilon=epsilon, n=10**6) for epsilon in (1.0, 4.0))
    >>> low.best.name, high.best.name, high.best.width
    ('FourierMarginals', 'SampledMarginals', 5)
    """

    domains: Sequence[Domain]
    _: KW_ONLY
    order: int = 2
    example: Any = None

    def __post_init__(self) -> None:
        count = len(checked_domains(self.domains))
        order = _check.integer("order", self.order, minimum=1)
        if order > count:
            _check.refuse("order", f"be at most {count}, the attributes", order, "ask for narrower tables")
        if comb(count, order) > _MAX_MARGINALS:
            _check.refuse(
                "order", f"leave at most {_MAX_MARGINALS} marginals", order, "plan for narrower ones"
            )

    def plan(self, epsilon: float, n: int, limits: Limits) -> MarginalsChoice:
        """Return the protocols that meet the limit of bytes; called by `sfumato.local.choose`.

        Parameters
        ----------
        epsilon : float
            Of each report.
        n : int
            How many people will report.
        limits : Limits
            What a protocol may cost.

        Returns
        -------
        MarginalsChoice
            The best one first.
        """
        limits.without_seconds()
        domains, order = checked_domains(self.domains), self.order
        codes = None if self.example is None else _checked(self.example, domains)
        plans: list[MarginalsPlan] = []
        out: dict[str, str] = {}
        for width, views in _designs(tuple(len(domain) for domain in domains), order, codes is not None):
            try:
                made = _made(epsilon, domains, width, views)
            except ParameterError as refused:
                if views and width == order:
                    raise  # what breaks there is a parameter, and no limit of a plan
                out[_named(width, views)] = str(refused)
                continue
            why = limits.too_long(made)
            if why is not None:
                out[_named(width, views)] = why
            else:
                built = 0.0 if codes is None else _construction(made, order, codes)
                plans.append(_planned(made, width, order, n, built))
        if not plans:
            none_left("max_bytes", "leave some protocol", out)
        plans.sort(key=lambda plan: plan.error)
        return MarginalsChoice(
            epsilon=epsilon, domains=domains, order=order, plans=tuple(plans), ruled_out=out
        )


def _designs(
    sizes: tuple[int, ...], order: int, partly: bool
) -> Iterator[tuple[int, tuple[Attributes, ...]]]:
    """Yield widths and tables to compare; none stands for coefficients."""
    seen: set[tuple[Attributes, ...]] = set()
    for covered in (order, 2) if partly and order > 2 else (order,):
        yield covered, ()
        for width in range(covered, min(_WIDEST, len(sizes)) + 1):
            views = covering(sizes, covered, width, _CELLS)
            widest = max(map(len, views))
            if widest == width and views not in seen:
                seen.add(views)
                yield width, views


def _named(width: int, views: tuple[Attributes, ...]) -> str:
    """Return what a design is called where it is ruled out."""
    return f"{len(views)} tables of {width} attributes" if views else f"coefficients of {width} attributes"


def _made(
    epsilon: float, domains: tuple[Domain, ...], width: int, views: tuple[Attributes, ...]
) -> MarginalsProtocol[Any]:
    if not views:
        return FourierMarginals(epsilon=epsilon, domains=domains, order=width)
    return SampledMarginals(epsilon=epsilon, domains=domains, views=views)


def _checked(example: Any, domains: tuple[Domain, ...]) -> NDArray[np.int64]:
    """Return the indices of an example's rows, one row of the array for each attribute."""
    try:
        rows = np.asarray(example, dtype=object)
    except ValueError:
        rows = np.empty(0)
    if rows.ndim != 2 or rows.shape[1] != len(domains) or not len(rows):
        _check.refuse_type("example", f"be rows of {len(domains)} categories", example, "leave it out")
    return np.array([domain.codes(list(rows[:, at])) for at, domain in enumerate(domains)])


def _planned(
    made: MarginalsProtocol[Any],
    width: int,
    order: int,
    people: int,
    built: float,
) -> MarginalsPlan:
    """Return the plan of a protocol."""
    sizes = tuple(len(domain) for domain in made.domains)
    variances = _of_tables(made, order) if isinstance(made, SampledMarginals) else _of_signs(made)
    times: dict[tuple[int, ...], float] = {}
    noise = sampling = 0.0
    for among, (whole, drawn) in variances.items():
        kind = tuple(sorted(sizes[at] for at in among))
        if kind not in times:
            tables = float(filled_up(kind, list(sizes), order)) / prod(kind)
            times[kind] = tables * prod(size - 1 for size in kind) / people
        noise += times[kind] * (whole - drawn)
        sampling += times[kind] * (drawn - 1)  # less what everybody asked would deviate, which is nothing
    count = comb(len(sizes), order)
    return MarginalsPlan(
        name=type(made).__name__,
        width=width,
        views=made.device.views if isinstance(made, SampledMarginals) else (),
        noise=noise / count,
        sampling=sampling / count,
        construction=built,
        bytes=made.device.width,
    )


def _of_signs(made: Any) -> Mapping[Attributes, tuple[float, float]]:
    """Return the variances of coefficients from one report, and what of them is by drawing respondents."""
    device = made.device
    filled = [len(domain) / (of + 1) for domain, of in zip(made.domains, device.characters, strict=True)]
    gap, chances = float(2 * device.truth.chance - 1), [float(chance) for chance in device.chances]
    found = {}
    for among, chance in zip(device.sets, chances, strict=True):
        drawn = prod(filled[at] for at in among) / chance
        found[among] = drawn / gap**2, drawn
    return found


def _of_tables(made: SampledMarginals, order: int) -> Mapping[Attributes, tuple[float, float]]:
    """Return the same where tables are drawn."""
    mass: dict[Attributes, float] = defaultdict(float)
    squares: dict[Attributes, float] = defaultdict(float)
    views = made.device.views
    for view, noise in zip(views, made.noises, strict=True):
        for of in range(1, min(order, len(view)) + 1):
            for among in combinations(view, of):
                mass[among] += 1 / noise.even / len(views)
                squares[among] += 1 / noise.even**2 / len(views)
    return {among: (1 / one, squares[among] / one**2) for among, one in mass.items()}


def _construction(made: MarginalsProtocol[Any], order: int, codes: NDArray[np.int64]) -> float:
    """Return the mean squared error of marginals from an example's true tables."""
    lattice, rows = made.lattice, codes.shape[1]

    def true(among: Attributes) -> NDArray[np.float64]:
        cells = np.ravel_multi_index(tuple(codes[list(among)]), lattice.shape(among))
        return np.asarray(np.bincount(cells, minlength=prod(lattice.shape(among))) / rows)

    coefficients = np.empty(lattice.total)
    for view in lattice.views:
        coefficients[lattice.indices(view)] = analysed(true(view)[None, :], lattice.shape(view))[0]
    reported = ConsistentMarginals(
        domains=tuple(made.domains), lattice=lattice, coefficients=coefficients, gap=0.0
    )
    missing = [one for one in combinations(range(len(lattice.sizes)), order) if one not in lattice.starts]
    if not missing:
        return 0.0
    looked = missing[:: -(-len(missing) // _MAX_BUILT)]
    errors = [float(((reported.table(*one).ravel() - true(one)) ** 2).sum()) for one in looked]
    return float(np.mean(errors)) * len(missing) / comb(len(lattice.sizes), order)
