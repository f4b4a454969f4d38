"""The numbers of a collection as columns, whatever its protocol estimates: shares, means, sums, texts."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final, TypeAlias

from sfumato.local.frequency.estimate import Estimate
from sfumato.local.numeric.estimate import MeanEstimate
from sfumato.local.ranges.estimate import RangeEstimate
from sfumato.local.shuffle.estimate import ShuffledMeanEstimate, ShuffledSumEstimate
from sfumato.local.shuffle.sparse_histogram import SparseHistogram, SparseRelease
from sfumato.local.strings.estimate import HeavyHitters
from sfumato.report.pages.number_table import Column
from sfumato.report.texts.catalog import Texts

__all__ = ["Collected", "collected_columns", "sparse_columns"]

Collected: TypeAlias = (
    Estimate | RangeEstimate | HeavyHitters | MeanEstimate | ShuffledMeanEstimate | ShuffledSumEstimate
)
"""The estimates of which there are pages."""

_TAIL: Final = 0.025


def collected_columns(estimate: Collected, texts: Texts) -> list[Column]:
    """Return the columns of an estimate, with 95 % intervals.

    Parameters
    ----------
    estimate : Collected
    texts : Texts
    """
    return _COLUMNS[type(estimate)](estimate, texts)


def sparse_columns(release: SparseRelease, histogram: SparseHistogram, texts: Texts) -> list[Column]:
    """Return the columns of counts that a shuffler showed, with 95 % intervals of its noise.

    Parameters
    ----------
    release : SparseRelease
    histogram : SparseHistogram
    texts : Texts
    """
    half = histogram.mechanism.noise.distribution.quantile_above(_TAIL)
    counts = list(release.counts.values())
    ends = [count - half for count in counts], [count + half for count in counts]
    keys = Column(name=texts("collect.answer"), values=list(release.counts), is_key=True)
    return [keys, Column(name=texts("collect.count"), values=counts, ends=ends)]


def _shares(estimate: Any, texts: Texts) -> list[Column]:
    """Return the columns that the estimate would give a frame: the answers first, then shares."""
    columns: Mapping[str, Any] = estimate.to_dict()
    answers = next(iter(columns.values()))
    shares, lower, upper = (
        [float(each) for each in columns[name]] for name in ("frequency", "lower", "upper")
    )
    keys = Column(name=texts("collect.answer"), values=list(answers), is_key=True)
    return [keys, Column(name=texts("collect.share"), values=shares, ends=(lower, upper))]


def _mean(estimate: Any, texts: Texts) -> list[Column]:
    return [_number(texts("collect.mean"), estimate.mean, estimate)]


def _sum(estimate: Any, texts: Texts) -> list[Column]:
    return [_number(texts("collect.sum"), estimate.total, estimate)]


def _number(name: str, value: float, estimate: Any) -> Column:
    lower, upper, _ = estimate.interval()
    return Column(name=name, values=[float(value)], ends=([float(lower)], [float(upper)]))


_COLUMNS: Final[Mapping[type, Callable[[Any, Texts], list[Column]]]] = {
    Estimate: _shares,
    RangeEstimate: _shares,
    HeavyHitters: _shares,
    MeanEstimate: _mean,
    ShuffledMeanEstimate: _mean,
    ShuffledSumEstimate: _sum,
}
