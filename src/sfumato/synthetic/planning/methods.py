"""The methods that a plan compares, and what each would do with a workload."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial
from math import prod
from typing import Final, TypeAlias

from sfumato.synthetic.generators.adaptive_iterative import AIM
from sfumato.synthetic.generators.column_tables import MEAN_ABSOLUTE
from sfumato.synthetic.generators.generator import Generator
from sfumato.synthetic.generators.generator_choice import GENERATORS
from sfumato.synthetic.generators.public_noise import PublicNoise
from sfumato.synthetic.marginals.ordered_queries import check_ordered
from sfumato.synthetic.marginals.residual_mechanism import ResidualMechanism
from sfumato.synthetic.marginals.workload import Clique
from sfumato.synthetic.planning.method_plans import MethodPlan, PlanRequest, TableError

__all__ = ["METHODS"]

_RESIDUAL: Final = "counts are unbiased, with intervals; nearly empty cells are lost in the noise"
_REMARKS: Final = {
    "aim": "a model that rows are drawn from; it measures the tables that it predicts worst, and how far "
    "off it is beside the noise no public parameter says",
    "mst": "a model that rows are drawn from; it measures a tree of pairs, and how much is lost that does "
    "not follow from them no public parameter says",
    "independent": "a model that rows are drawn from, columns multiplied; how much is lost of what they have "
    "to do with one another no public parameter says",
}
_BYTES: Final = 40
_SECONDS_PER_TABLE: Final = 0.004
_SECONDS_PER_CELL: Final = 1e-7
_LARGEST_PAIR: Final = 1 << 22
_SECONDS: Final = 0.02
_SECONDS_PER_PAIR: Final = 0.0012
_SECONDS_PER_SCORE: Final = 0.0005
_BYTES_PER_SCORE: Final = 24
_BYTES_PER_MODEL_CELL: Final = 250


def _residual(request: PlanRequest) -> MethodPlan:
    """Return the plan of measuring all tables at once by residuals."""
    mechanism, names = ResidualMechanism.calibrated(**request.guarantee), list(request.domain)
    errors, answers = [], _answers(request)
    for clique in request.cliques:
        stddev = mechanism.stddev(*(names[place] for place in clique))
        errors.append(_noise_of(request, clique, stddev, answers))
    return MethodPlan(
        name="residual",
        errors=tuple(errors),
        memory=_BYTES * mechanism.cells,
        seconds=_SECONDS_PER_TABLE * len(mechanism.residuals) + _SECONDS_PER_CELL * mechanism.cells,
        unbiased=True,
        remark=_RESIDUAL,
    )


def _generator(name: str, request: PlanRequest) -> MethodPlan:
    """Return the plan of a generator."""
    generator: Generator = GENERATORS[name].calibrated(**request.guarantee)
    noise = generator.public_noise(request.rows)
    answers = _answers(request)
    measured = (
        _noise_of(request, clique, noise.tables[clique] * prod(answers[i].growth for i in clique), answers)
        for clique in request.cliques
        if clique in noise.tables
    )
    memory, seconds = _cost(generator, noise, request)
    return MethodPlan(
        name=name,
        errors=tuple(_product_of(request, clique, noise.columns, answers) for clique in request.cliques),
        memory=memory,
        seconds=seconds,
        unbiased=False,
        remark=_REMARKS[name],
        measured=tuple(measured),
        tables_measured=noise.measured,
    )


class _Answers:
    """What is asked of a column, its cells unless prefixes or ranges are.

    Attributes
    ----------
    growth, inner : float
        Standard deviation of answers where cells have independent noise of deviation 1, and where that adds
        up to 0.
    part : float
        Which part of evenly divided rows is in an answer; the root of the mean square.
    terms : int
        How often an answer's magnitude counts as misplaced.
    """

    def __init__(self, request: PlanRequest, place: int) -> None:
        name, self.cells = list(request.domain)[place], request.domain.sizes[place]
        self.growth, self.inner = 1.0, math.sqrt(1 - 1 / self.cells)
        self.part, self.terms = 1 / self.cells, self.cells
        if name in request.workload.ordered:
            attribute = check_ordered(name, request.domain[name])
            gram = request.workload.ordered[name].gram(attribute)
            self.growth = math.sqrt(gram.trace() / self.cells)
            self.inner = math.sqrt(max(0.0, gram.trace() / self.cells - gram.mean()))
            self.part, self.terms = math.sqrt(gram.mean() / self.cells), 1


def _answers(request: PlanRequest) -> list[_Answers]:
    return [_Answers(request, place) for place in range(len(request.domain))]


def _noise_of(request: PlanRequest, clique: Clique, stddev: float, answers: Sequence[_Answers]) -> TableError:
    """Return the error of a table whose answers have noise of one size."""
    names = list(request.domain)
    terms = prod(answers[place].terms for place in clique)
    return TableError(
        columns=tuple(names[place] for place in clique),
        cells=request.cells(clique),
        stddev=stddev,
        misplaced=terms * MEAN_ABSOLUTE * stddev / 2,
    )


def _product_of(
    request: PlanRequest, clique: Clique, columns: Sequence[float], answers: Sequence[_Answers]
) -> TableError:
    """Return the error of the product of noisy columns, each scaled to one number of rows.

    It is that where rows are divided evenly: of each column by itself, and of the number of rows, the mean of
    all columns' sums.
    """
    single = {place: columns[place] * answers[place].inner for place in clique}
    whole = prod(answers[place].part for place in clique)
    stddevs = [single[place] * whole / answers[place].part for place in clique]
    pairs = zip(columns, request.domain.sizes, strict=True)
    stddevs.append(whole / math.sqrt(math.fsum(1 / (size * sigma**2) for sigma, size in pairs)))
    names = list(request.domain)
    return TableError(
        columns=tuple(names[place] for place in clique),
        cells=request.cells(clique),
        stddev=math.hypot(*stddevs),
        misplaced=math.fsum(answers[i].terms * MEAN_ABSOLUTE * single[i] / 2 for i in clique),
    )


def _cost(generator: Generator, noise: PublicNoise, request: PlanRequest) -> tuple[int, float]:
    """Return bytes, at most about, and seconds, about: fitted to runs with 5 to 40 columns."""
    limit = generator.max_cells if isinstance(generator, AIM) else _LARGEST_PAIR
    scored = [cells for clique in noise.tables if (cells := request.cells(clique)) <= limit]
    times = generator.rounds or 2 * len(request.domain) if isinstance(generator, AIM) else 1
    per_table = _SECONDS_PER_SCORE if isinstance(generator, AIM) else _SECONDS_PER_PAIR
    columns = sum(request.domain.sizes)
    seconds = _SECONDS + times * per_table * len(scored) + _SECONDS_PER_CELL * (sum(scored) + columns)
    model = min(limit, sum(scored)) if isinstance(generator, AIM) else sum(sorted(scored)[-noise.measured :])
    return _BYTES_PER_SCORE * sum(scored) + _BYTES_PER_MODEL_CELL * (model + columns), seconds


Planner: TypeAlias = Callable[[PlanRequest], MethodPlan]

METHODS: Final[tuple[Planner, ...]] = (_residual, *(partial(_generator, name) for name in GENERATORS))
"""Each method's plan; those that say more of the data come first."""
