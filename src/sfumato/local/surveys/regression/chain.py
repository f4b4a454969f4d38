"""The likelihood of an outcome and its randomized predictors, in scaled variables, and the way back."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import product
from typing import Any, Final, TypeAlias

import numpy as np
from scipy.special import logit

from sfumato import _check
from sfumato.local.surveys.designs.binary import BinaryDesign
from sfumato.local.surveys.estimates.answer_counts import indices
from sfumato.local.surveys.regression.fitting import REACH
from sfumato.local.surveys.regression.latent import LatentProblem, Stage
from sfumato.local.surveys.regression.likelihood import Array
from sfumato.local.surveys.regression.predictors import predictor_matrix

__all__ = ["Chain", "RandomizedTrait", "chain_of", "covariates", "numbers", "randomized_traits"]

RandomizedTrait: TypeAlias = tuple[str, BinaryDesign, Any]
"""A name, its design, and the index of each respondent's answer."""

_MOST: Final = 4
_LARGEST: Final = 1e100
_CONSTANT: Final = 1e-12
_INDEPENDENT: Final = 1e-10


@dataclass(frozen=True, slots=True, eq=False)
class Chain:
    """A likelihood in scaled variables, and the way back.

    Parameters
    ----------
    problem : LatentProblem
    back : array
        ``back @ scaled`` are all coefficients as given, but for `shift`.
    rows : list of int
        Which are the outcome's.
    reach, shift : array
        For each of these, how far an end of an interval is looked for, and what is added.
    starts : list of array
    scale : float
        The deviation of an outcome that is a number; else 1.
    """

    problem: LatentProblem
    back: Array
    rows: list[int]
    reach: Array
    shift: Array
    starts: list[Array]
    scale: float


def randomized_traits(randomized: object) -> list[RandomizedTrait]:
    """Return the randomized predictors, checked.

    Parameters
    ----------
    randomized : mapping of str to pairs of a design and answers
    """
    rule = f"be from 1 to {_MOST} predictors, a pair of design and answers for each"
    if not isinstance(randomized, Mapping) or not 1 <= len(randomized) <= _MOST:
        _check.refuse_type("randomized", rule, randomized, 'pass {"name": (design, answers)}')
    found: list[RandomizedTrait] = []
    for name, pair in randomized.items():
        if not isinstance(name, str) or not isinstance(pair, tuple | list) or len(pair) != 2:
            _check.refuse_type("randomized", rule, pair, 'pass {"name": (design, answers)}')
        label = f"randomized[{name!r}]"
        _check.instance(label, pair[0], BinaryDesign, "pass a design with two answers first")
        found.append((name, pair[0], indices(label, pair[1], pair[0].answers)))
    return found


def covariates(predictors: Any, respondents: int) -> tuple[tuple[str, ...], Array]:
    """Return the names and the matrix of covariates; none for None.

    Parameters
    ----------
    predictors : table, mapping, array or None
    respondents : int
        How many there are, where there are no covariates.
    """
    if predictors is None:
        return (), np.zeros((respondents, 0))
    return predictor_matrix(predictors)


def numbers(name: str, values: Any) -> Array:
    """Return a column of finite numbers.

    Parameters
    ----------
    name : str
        Of the parameter, for the error.
    values : array, list or column of a frame
    """
    found = np.asarray(values)
    if found.ndim != 1 or found.dtype.kind not in "buif" or not np.isfinite(found.astype(np.float64)).all():
        _check.refuse_type(name, "be a column of finite numbers", values, "leave out who has none")
    largest = float(np.abs(found.astype(np.float64)).max(initial=0.0))
    if largest > _LARGEST or 0 < largest < 1 / _LARGEST:
        rule = f"have its largest number between {1 / _LARGEST:g} and {_LARGEST:g} in size"
        _check.refuse_type(name, rule, values, "take another unit")
    return found.astype(np.float64)


def chain_of(
    matrix: Array,
    traits: list[RandomizedTrait],
    answered: RandomizedTrait | None,
    seen: Array | None,
    *,
    linear: bool,
) -> Chain:
    """Return the likelihood.

    Parameters
    ----------
    matrix : array of respondents x covariates
    traits : list of RandomizedTrait
        The predictors.
    answered : RandomizedTrait, optional
        The outcome, if it was randomized.
    seen : array, optional
        Else its values.
    linear : bool
        Whether the outcome is a number with normal errors.
    """
    hidden = [*traits, *([answered] if answered is not None else [])]
    scaled, middle, width = _scaled(matrix, len(hidden))
    center, scale = _center(seen) if linear and seen is not None else (0.0, 1.0)
    if scale == 0:
        _check.refuse_state(
            "outcome", "have two values or more", "it is the same for all", "there is nothing to explain"
        )
    stages: list[Stage] = []
    for index in range(len(traits)):
        first = sum(stage.count for stage in stages)
        stages.append(Stage(first, scaled, tuple(range(index)), hidden=index))
    first = sum(stage.count for stage in stages)
    value = None if seen is None else (seen - center) / scale
    bits, own = tuple(range(len(traits))), None if answered is None else len(traits)
    stages.append(Stage(first, scaled, bits, hidden=own, seen=value, gaussian=linear))
    states = np.array(list(product((0.0, 1.0), repeat=len(hidden))))
    emission = np.zeros((len(states), len(matrix)))
    for bit, (_, design, said) in enumerate(hidden):
        chances = np.array([[float(mass) for mass in row] for row in design.transition])
        with np.errstate(divide="ignore"):
            emission += np.log(chances[states[:, bit].astype(int)][:, said])
    problem = LatentProblem(tuple(stages), emission, states)
    back = _way_back(problem, middle, width, scale)
    last, count = stages[-1], 1 + matrix.shape[1] + len(traits)
    extent = np.concatenate([[1.0], np.ptp(matrix, axis=0), np.ones(len(traits))])
    reach = REACH * scale / extent
    reach[0] += float(np.abs(middle) @ reach[1 : 1 + len(middle)])
    shift = np.zeros(count)
    shift[0] = center
    return Chain(
        problem=problem,
        back=back,
        rows=list(range(last.first, last.first + count)),
        reach=reach,
        shift=shift,
        starts=_starts(problem, hidden, seen if value is None else value),
        scale=scale,
    )


def _center(seen: Array) -> tuple[float, float]:
    """Return the mean and the deviation, 0 where all are alike; the squares do not overflow."""
    largest = float(np.abs(seen).max(initial=0.0)) or 1.0
    shared = seen / largest
    middle = float(shared.mean())
    width = float(np.sqrt(((shared - middle) ** 2).mean()))
    return middle * largest, (width if width > _CONSTANT else 0.0) * largest


def _scaled(matrix: Array, hidden: int) -> tuple[Array, Array, Array]:
    """Return the covariates of mean 0 and deviation 1 beside a constant, their means and deviations."""
    size = len(matrix)
    middle = matrix.mean(axis=0) if size else np.zeros(matrix.shape[1])
    centered = matrix - middle
    width = np.sqrt((centered**2).mean(axis=0)) if size else np.zeros(matrix.shape[1])
    constant = width <= _CONSTANT * np.abs(middle)
    scaled = np.column_stack([np.ones(size), centered / np.where(constant, 1.0, width)])
    fewest = scaled.shape[1] + hidden + 1
    gram = scaled.T @ scaled / max(1, size)
    if size < fewest or constant.any() or np.linalg.eigvalsh(gram)[0] < _INDEPENDENT:
        found = "there are fewer respondents" if size < fewest else "one is a combination of the others"
        remedy = "leave out what follows from other columns, or is the same for all"
        _check.refuse_state("predictors", "be linearly independent", found, remedy)
    return scaled, middle, width


def _way_back(problem: LatentProblem, middle: Array, width: Array, scale: float) -> Array:
    """Return the matrix that takes scaled coefficients to those of the variables as given."""
    back = np.eye(problem.count)
    for stage in problem.stages:
        first, count = stage.first, 1 + len(width)
        own = np.diag(np.concatenate([[1.0], 1 / width]))
        own[0, 1:] = -middle / width
        back[first : first + count, first : first + count] = own
        if stage.gaussian:
            back[first : first + stage.count - 1] *= scale
    return back


def _starts(problem: LatentProblem, hidden: list[RandomizedTrait], seen: Array | None) -> list[Array]:
    """Return where to search from: slopes of 0, and those of each sign for what was randomized."""
    start = np.zeros(problem.count)
    for stage in problem.stages:
        if stage.hidden is not None:
            _, design, said = hidden[stage.hidden]
            share = (said.mean() - float(design.yes_if_false)) / float(design.slope)
            start[stage.first] = logit(np.clip(share, 0.05, 0.95))
        elif not stage.gaussian and seen is not None:
            start[stage.first] = logit(np.clip(seen.mean(), 0.01, 0.99))
    last = problem.stages[-1]
    where = last.first + last.matrix.shape[1]
    found = [start]
    for sign in (1.0, -1.0):
        other = start.copy()
        other[where : where + len(last.bits)] = sign
        found.append(other)
    return found
