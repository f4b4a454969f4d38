"""Scores learned from a first sample of two inputs: tails, single outputs, and posterior odds."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from sfumato.audit.outcome_encoding import EncodedOutcomes, OutcomeEncoder
from sfumato.audit.scores import (
    MAX_LISTED,
    SUMMARIES,
    BinnedRatioScore,
    ColumnScore,
    FrequencyRatioScore,
    LikelihoodRatioScore,
    LogisticScore,
    MissingScore,
    OutcomeScore,
    Score,
    SummaryScore,
    bin_indices,
)

__all__ = ["learned_scores"]

_BINS, _BINS_OF_MANY, _COARSE = 256, 48, (2, 4, 12)
_ATOMS = 4096
_FEW = 10  # an outcome seen less often has no weight of its own
_COLUMNS = 32
_ROWS = 20_000  # for the regression
_NEWTON_STEPS = 25
_RIDGE = 1e-3


def learned_scores(
    encoder: OutcomeEncoder, first: EncodedOutcomes, second: EncodedOutcomes
) -> Iterator[Score]:
    """Yield the scores that a sample of each input suggests."""
    width = first.columns.shape[1]
    maximum = _BINS if width == 1 else _BINS_OF_MANY
    bins = [_binned(encoder.names[j], j, first, second, maximum) for j in range(width)]
    distinguishing = sorted(range(width), key=lambda j: -_distance(bins[j], first, second))[:_COLUMNS]
    yield from _atoms(encoder, first, second)
    if first.ratios is not None:
        yield LikelihoodRatioScore()
    for j in distinguishing:
        if not encoder.names[j].startswith("label"):
            yield ColumnScore(encoder.names[j], j)
            if np.isnan(first.columns[:, j]).any() or np.isnan(second.columns[:, j]).any():
                yield MissingScore(f"no {encoder.names[j]}", j)
        yield bins[j]
    if width > 1:
        yield from (SummaryScore(name) for name in SUMMARIES)
        yield _added(f"log-odds of all columns, {maximum} bins", bins)
        # Few bins have less error of their own, of which the columns add up.
        for few in _COARSE:
            coarse = [_binned(encoder.names[j], j, first, second, few) for j in range(width)]
            yield _added(f"log-odds of all columns, {few} bins", coarse)
        yield _regressed(first, second)


def _added(name: str, scores: list[BinnedRatioScore]) -> BinnedRatioScore:
    """Return the sum of scores of one column each: the log-odds if columns are independent."""
    return BinnedRatioScore(
        name,
        tuple(score.indices[0] for score in scores),
        tuple(score.edges[0] for score in scores),
        tuple(score.tables[0] for score in scores),
    )


def _binned(
    name: str, index: int, first: EncodedOutcomes, second: EncodedOutcomes, maximum: int
) -> BinnedRatioScore:
    both = np.concatenate([first.columns[:, index], second.columns[:, index]])
    values = np.sort(both[~np.isnan(both)])
    edges = np.unique(values)
    if len(edges) >= maximum in _COARSE:
        edges = np.unique(values[np.arange(1, maximum) * len(values) // maximum])
    elif len(edges) > _BINS:
        # Even shares, and ever smaller ones at both ends.
        ends = np.geomspace(1e-4, 1 / maximum, 8)
        levels = np.concatenate([ends, np.linspace(0, 1, maximum), 1 - ends])
        edges = np.unique(values[(levels * (len(values) - 1)).astype(np.intp)])
    counts = [
        np.bincount(bin_indices(outcomes.columns[:, index], edges), minlength=len(edges) + 2)
        for outcomes in (first, second)
    ]
    return BinnedRatioScore(f"log-odds of {name}", (index,), (edges,), (_log_ratio(*counts),))


def _log_ratio(first: NDArray[np.intp], second: NDArray[np.intp]) -> NDArray[np.float64]:
    return np.log((first + 0.5) / (second + 0.5))


def _distance(score: BinnedRatioScore, first: EncodedOutcomes, second: EncodedOutcomes) -> float:
    return float(score(first).mean() - score(second).mean())


def _atoms(encoder: OutcomeEncoder, first: EncodedOutcomes, second: EncodedOutcomes) -> Iterator[Score]:
    """Yield the value counts as a posterior, and the single outcomes that differ most."""
    keys, indices, counts = np.unique(
        np.concatenate([first.keys, second.keys]), return_index=True, return_counts=True
    )
    often = np.sort(np.argsort(-counts, kind="stable")[:_ATOMS])
    often = often[counts[often] >= _FEW]
    if not often.size:
        return
    keys, indices = keys[often], indices[often]
    seen = [_counts(outcomes.keys, keys) for outcomes in (first, second)]
    ratios = _log_ratio(*seen)
    rare = [len(outcomes) - int(count.sum()) for outcomes, count in zip((first, second), seen, strict=True)]
    shown = tuple(encoder.shown(int(index)) for index in indices[: 8 * MAX_LISTED])
    yield FrequencyRatioScore(keys, ratios, float(_log_ratio(np.array(rare[0]), np.array(rare[1]))), shown)
    # Standard errors of the log-ratio are forgiven, so that a rare outcome must differ more to be tried.
    sure = np.abs(ratios) - 3 * np.sqrt(1 / (seen[0] + 0.5) + 1 / (seen[1] + 0.5))
    for k in np.argsort(-sure)[:MAX_LISTED]:
        yield OutcomeScore(f"output == {encoder.shown(int(indices[k]))}", keys[k])


def _counts(keys: NDArray[np.uint64], known: NDArray[np.uint64]) -> NDArray[np.intp]:
    index = np.minimum(np.searchsorted(known, keys), len(known) - 1)
    return np.bincount(index[known[index] == keys], minlength=len(known))


def _regressed(first: EncodedOutcomes, second: EncodedOutcomes) -> LogisticScore:
    columns = np.concatenate([first.columns[:_ROWS, :_COLUMNS], second.columns[:_ROWS, :_COLUMNS]])
    finite = np.where(np.isfinite(columns), columns, np.nan)
    given = ~np.isnan(finite)
    count = np.maximum(given.sum(axis=0), 1)
    middle = np.where(given, finite, 0.0).sum(axis=0) / count
    stddev = np.sqrt(np.where(given, (finite - middle) ** 2, 0.0).sum(axis=0) / count)
    stddev = np.where((stddev > 0) & np.isfinite(stddev), stddev, 1.0)
    middle = np.where(np.isfinite(middle), middle, 0.0)
    blank = LogisticScore(np.zeros(0), middle, stddev)
    features = zip(*(blank.features(columns[:, j], j) for j in range(len(middle))), strict=True)
    design = np.column_stack([column for kind in features for column in kind])
    weights = _logistic_regression(design, np.arange(len(columns)) >= min(_ROWS, len(first)))
    return LogisticScore(weights, middle, stddev)


def _logistic_regression(features: NDArray[np.float64], second: NDArray[np.bool_]) -> NDArray[np.float64]:
    """Return the weights of the features that best tell the rows of one input from those of the other.

    Parameters
    ----------
    features : array of shape (rows, features)
        Of magnitudes about 1; a constant is added here.
    second : bool array of shape (rows,)
        Which rows came from the second input.

    Returns
    -------
    array of shape (features,)
        Their sum over a row grows with the odds of the *first* input. Without the constant.

    Notes
    -----
    The classifier of DP-Sniper (Bichsel, Steffen, Bogunovic, Vechev, "DP-Sniper: black-box discovery of
    differential privacy violations using classifiers", S&P 2021), with a small ridge; how well it fits
    decides how much an audit finds, never whether what it finds holds.
    """
    design = np.column_stack([features, np.ones(len(features))])
    target = np.where(second, 0.0, 1.0)
    weights = np.zeros(design.shape[1])
    ridge = _RIDGE * len(design) * np.eye(design.shape[1])
    for _ in range(_NEWTON_STEPS):
        odds = expit(design @ weights)
        slope = design.T @ (target - odds) - ridge @ weights
        curvature = (design * (odds * (1 - odds))[:, None]).T @ design + ridge
        step = np.linalg.solve(curvature, slope)
        weights += step
        if np.abs(step).max() < 1e-6:
            break
    return np.asarray(weights[:-1], dtype=np.float64)
