"""The report of how near a synthetic table is to the real rows; for the curator only."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple, TypeAlias, final

import pyarrow as pa

from sfumato import _check
from sfumato.errors import MissingExtra
from sfumato.synthetic.quality.associations import Association
from sfumato.synthetic.quality.distinguishability import Distinguishability
from sfumato.synthetic.quality.marginal_distances import MarginalDistance, k_marginal_score
from sfumato.synthetic.quality.prediction import PredictionScores
from sfumato.synthetic.quality.report_figure import association_figure
from sfumato.synthetic.quality.report_page import WARNING, Table, number_text, report_page

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["CuratorQualityReport", "QualityMeasure", "ReportedRows"]

Part: TypeAlias = Literal["summary", "marginals", "associations"]

_PARTS: Final = ("summary", "marginals", "associations")
_WORST: Final = 5


class ReportedRows(NamedTuple):
    """How many rows of a table are in the domain, and how many there are.

    Attributes
    ----------
    counted : int
    present : int

    Examples
    --------
    >>> str(ReportedRows(counted=990, present=1000))
    '990 of 1000'
    """

    counted: int
    present: int

    def __str__(self) -> str:
        return f"{self.counted} of {self.present}"


class QualityMeasure(NamedTuple):
    """One line of a report; NaN where there is no such number.

    Attributes
    ----------
    measure : str
    synthetic : float
        Of the synthetic rows.
    real : float
        The same of real rows in their place: a bootstrap sample, other real rows, or a classifier that was
        trained on real rows.
    baseline : float
        Of independent columns with the real one-way marginals; for predictions of the most frequent class.

    Examples
    --------
    >>> QualityMeasure("AUC of 'income'", synthetic=0.9, real=0.92, baseline=0.5).real
    0.92
    """

    measure: str
    synthetic: float
    real: float
    baseline: float


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class CuratorQualityReport:
    """How near a synthetic table is to real rows: for the curator only, and not a release.

    Every number in it is computed from the real rows without noise, and no privacy loss covers it. Whoever
    publishes one, or chooses by it among generators whose output is published, reveals something about real
    rows that nobody has paid for. `WorkloadError` measures one of these numbers with a privacy loss.

    Parameters
    ----------
    real, synthetic : ReportedRows
    holdout : ReportedRows or None
        Real rows that the generator was not trained on, without those of units that it was trained on.
    marginals : sequence of MarginalDistance
    weights : sequence of float
        Of the marginals.
    associations : sequence of Association
    target : str or None
        The column that is predicted.
    prediction : tuple of three PredictionScores, or None
        In the rows held out, of classifiers that were trained on synthetic rows, on as many real rows, and of
        the most frequent class.
    distinguishability : tuple of two Distinguishability, or None
        Of the synthetic rows, and of real ones in their place, from the rows held out.

    Examples
    --------
    >>> report = CuratorQualityReport(
    ...     real=ReportedRows(10, 10), synthetic=ReportedRows(10, 10),
    ...     marginals=[MarginalDistance(("age",), 0.1, 0.05, 0.0)], weights=[1.0])
    >>> report.summary()[0]
    QualityMeasure(measure='TVD, 1 column, mean', synthetic=0.1, real=0.05, baseline=0.0)
    >>> print(str(report).splitlines()[0])
    FOR THE CURATOR ONLY, NOT A RELEASE: computed from real rows without noise
    """

    real: ReportedRows
    synthetic: ReportedRows
    holdout: ReportedRows | None = None
    marginals: Sequence[MarginalDistance]
    weights: Sequence[float]
    associations: Sequence[Association] = ()
    target: str | None = None
    prediction: tuple[PredictionScores, PredictionScores, PredictionScores] | None = None
    distinguishability: tuple[Distinguishability, Distinguishability] | None = None

    def summary(self) -> tuple[QualityMeasure, ...]:
        """Return the report's lines.

        Returns
        -------
        tuple of QualityMeasure
            Means of distances are weighted as the workload is; the k-marginal score is without weights.
        """
        lines = [line for width in self._widths for line in self._distances(width)]
        if self.associations:
            off = [
                [abs(value - each.real) for value in (each.synthetic, each.bootstrap, 0.0)]
                for each in self.associations
            ]
            means = [_mean(each) for each in zip(*off, strict=True)]
            lines.append(QualityMeasure("Cramer's V, mean difference", means[0], means[1], means[2]))
        if self.prediction is not None:
            for name in PredictionScores._fields:
                shown = name if name == "accuracy" else name.upper()
                values = [getattr(each, name) for each in self.prediction]
                lines.append(QualityMeasure(f"{shown} of {self.target!r}", *values))
        if self.distinguishability is not None:
            for name, shown in (("auc", "C2ST AUC"), ("pmse", "pMSE")):
                synthetic, real = (getattr(each, name) for each in self.distinguishability)
                lines.append(QualityMeasure(shown, synthetic, real, math.nan))
        return tuple(lines)

    def worst_marginals(self, count: int = _WORST) -> tuple[MarginalDistance, ...]:
        """Return the marginals that are farthest from the real ones.

        Parameters
        ----------
        count : int
            How many.

        Returns
        -------
        tuple of MarginalDistance
        """
        found = sorted(self.marginals, key=lambda each: _last(each.synthetic))
        return tuple(found[: _check.integer("count", count)])

    def worst_associations(self, count: int = _WORST) -> tuple[Association, ...]:
        """Return the pairs of columns whose Cramer's V differs most.

        Parameters
        ----------
        count : int
            How many.

        Returns
        -------
        tuple of Association
        """
        found = sorted(self.associations, key=lambda each: _last(abs(each.synthetic - each.real)))
        return tuple(found[: _check.integer("count", count)])

    def table(self, part: Part = "summary") -> pa.Table:
        """Return a part of the report as an Arrow table.

        Parameters
        ----------
        part : {"summary", "marginals", "associations"}

        Returns
        -------
        pyarrow.Table
            Its schema's metadata says whom it is for.

        Raises
        ------
        ParameterError
            If there is no such part.
        """
        if part not in _PARTS:
            _check.refuse("part", f"be one of {list(_PARTS)}", part, "leave it out for the summary")
        kinds: dict[str, tuple[Sequence[Any], Any]] = {
            "summary": (self.summary(), QualityMeasure),
            "marginals": (self.marginals, MarginalDistance),
            "associations": (self.associations, Association),
        }
        rows, kind = kinds[part]
        columns = {}
        for place, name in enumerate(kind._fields):
            values = [row[place] for row in rows]
            if name == "columns":
                columns[name] = pa.array([list(each) for each in values], pa.list_(pa.string()))
            else:
                columns[name] = pa.array(values, pa.string() if name == "measure" else pa.float64())
        return pa.table(columns, metadata={"warning": WARNING})

    def to_pandas(self, part: Part = "summary") -> pd.DataFrame:
        """Return a part of the report as a pandas DataFrame; needs the extra ``sfumato[pandas]``.

        Parameters
        ----------
        part : {"summary", "marginals", "associations"}

        Returns
        -------
        pandas.DataFrame
            Its ``attrs`` say whom it is for.
        """
        table = self.table(part)
        try:
            frame: pd.DataFrame = table.to_pandas()
        except ImportError as missing:
            raise MissingExtra("to_pandas needs pandas; pip install 'sfumato[pandas]'") from missing
        frame.attrs["warning"] = WARNING
        return frame

    def to_html(self) -> str:
        """Return the report as a page that needs nothing else: no script, and nothing is fetched.

        Returns
        -------
        str
        """
        tables: list[Table] = [
            ("Rows in the domain", ["table", "rows"], [[*line] for line in self._rows]),
            ("Summary", list(QualityMeasure._fields), [[*line] for line in self.summary()]),
            (
                "Marginals that are farthest off, by total variation distance",
                list(MarginalDistance._fields),
                [[", ".join(each.columns), *each[1:]] for each in self.worst_marginals()],
            ),
            (
                "Pairs whose association is farthest off, by Cramer's V",
                list(Association._fields),
                [[", ".join(each.columns), *each[1:]] for each in self.worst_associations()],
            ),
        ]
        return report_page([table for table in tables if table[2]], self.associations)

    def plot(self, ax: Any = None) -> Any:
        """Draw by how much each pair's association is off; return the axes, and show nothing.

        Parameters
        ----------
        ax : matplotlib.axes.Axes, optional
            New ones if left out.

        Returns
        -------
        matplotlib.axes.Axes
            A heat map of Cramer's V in the synthetic rows less that in the real ones, with the warning as its
            title.

        Raises
        ------
        MissingExtra
            If matplotlib is absent and no axes are given.
        """
        return association_figure(self.associations, WARNING, ax)

    def __str__(self) -> str:
        return "\n".join(self._lines())

    def __repr__(self) -> str:
        return f"<CuratorQualityReport of {len(self.marginals)} marginals, not a release>"

    @property
    def _widths(self) -> list[int]:
        return sorted({len(each.columns) for each in self.marginals} - {0})

    @property
    def _rows(self) -> list[tuple[str, str]]:
        rows = [("real", self.real), ("synthetic", self.synthetic), ("held out", self.holdout)]
        return [(name, str(each)) for name, each in rows if each is not None]

    def _distances(self, width: int) -> Iterator[QualityMeasure]:
        """Yield the lines of the marginals of so many columns."""
        chosen = [place for place, each in enumerate(self.marginals) if len(each.columns) == width]
        weights = [self.weights[place] for place in chosen]
        columns = list(zip(*(self.marginals[place][1:] for place in chosen), strict=True))
        name = f"{width} column{'s' if width > 1 else ''}"
        yield QualityMeasure(f"TVD, {name}, mean", *(_mean(each, weights) for each in columns))
        yield QualityMeasure(f"TVD, {name}, worst", *map(max, columns))
        yield QualityMeasure(f"k-marginal score, {name}", *map(k_marginal_score, columns))

    def _lines(self) -> Iterator[str]:
        yield WARNING
        yield ""
        yield "rows in the domain: " + ", ".join(f"{name} {count}" for name, count in self._rows)
        yield ""
        yield f"{'':36}{'synthetic':>11}{'real':>11}{'baseline':>11}"
        for line in self.summary():
            values = "".join(f"{number_text(value):>11}" for value in line[1:])
            yield f"{_cut(line.measure, 36):36}{values}"
        for title, pairs in (
            ("marginals that are farthest off (TVD)", self.worst_marginals()),
            ("associations that are farthest off (Cramer's V)", self.worst_associations()),
        ):
            if pairs:
                yield f"\n{title}"
            for pair in pairs:
                real = f"{number_text(pair.real):>11}" if isinstance(pair, Association) else f"{'':11}"
                yield f"  {_cut(', '.join(pair.columns), 34):34}{number_text(pair.synthetic):>11}{real}"
        if self.holdout is None:
            yield "\nwithout holdout= there is no prediction and no C2ST"


def _mean(values: Sequence[float], weights: Sequence[float] | None = None) -> float:
    """Return a weighted mean."""
    each = weights or [1.0] * len(values)
    return math.fsum(v * w for v, w in zip(values, each, strict=True)) / math.fsum(each)


def _last(distance: float) -> float:
    """Return a key by which the largest distance is first, and what has none is last."""
    return 1.0 if math.isnan(distance) else -distance


def _cut(text: str, width: int) -> str:
    return text if len(text) < width else f"{text[: width - 4]}..."
