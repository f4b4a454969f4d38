"""Probabilistic linkage: records that agree in much, though not in all, by Fellegi and Sunter's weights."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, final

import numpy as np
import pyarrow as pa
from numpy.typing import ArrayLike, NDArray

from sfumato import _check
from sfumato.attacks.base.attack import Attack, read_release
from sfumato.attacks.base.findings import Findings
from sfumato.attacks.base.knowledge import Knowledge
from sfumato.attacks.linkage.candidate_pairs import CandidatePairs, candidate_pairs
from sfumato.attacks.linkage.comparison_levels import ComparisonLevels
from sfumato.attacks.linkage.links import Links, link_findings
from sfumato.attacks.linkage.match_weights import MatchWeights, fit_match_weights
from sfumato.frames.arrow import as_arrow
from sfumato.privacy.loss import PrivacyLoss

__all__ = ["ProbabilisticLinkage"]


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ProbabilisticLinkage(Attack):
    """Link persons to the record that is most likely theirs, by columns that may have errors.

    Parameters
    ----------
    auxiliary : frame
        The targets: a pandas, Polars or Arrow table.
    comparisons : mapping of str to ComparisonLevels
        How each shared column is compared.
    blocking : sequence of sequences of str
        Only pairs that are equal in all columns of any of these rules are compared. Two rules with no
        column in common let every column's weights be estimated.
    threshold : float
        A link is claimed if its posterior probability is at least this, no other record is as likely, and
        no other target is more likely for the record.
    max_pairs : int
        Blocking that makes more pairs is refused before they are made.
    rng : int
        Seed for the random pairs that show how often records of two persons agree.

    Raises
    ------
    ParameterError
        If a column is missing, a blocking column is not compared, or there are too many pairs.

    Notes
    -----
    Agreement of two persons (u) is counted on random pairs. Agreement of a person with themselves (m) is
    fitted by expectation maximisation within each blocking rule, for the columns outside of it, assuming that
    columns agree independently of each other given whether the pair is of one person. NULL says nothing.

    References
    ----------
    Fellegi, Sunter (1969), "A Theory for Record Linkage", JASA 64. Winkler (1988), "Using the EM algorithm
    for weight computation in the Fellegi-Sunter model of record linkage".

    Examples
    --------
    >>> import pyarrow as pa
    >>> from sfumato import attacks
    >>> names = [first + last for first in ("anna", "bernd", "clara", "dora") for last in "bcdfghjklm"]
    >>> people = pa.table({"name": names, "born": range(1950, 1990), "town": [n % 7 for n in range(40)]})
    >>> typed = people.set_column(0, "name", [[name[:-1] + "x" for name in names]])
    >>> levels = {"name": attacks.ComparisonLevels("jaro_winkler", (0.8,)),
    ...           "born": attacks.ComparisonLevels("exact"), "town": attacks.ComparisonLevels("exact")}
    >>> attack = attacks.ProbabilisticLinkage(auxiliary=people, comparisons=levels,
    ...                                       blocking=[["born"], ["town"]])
    >>> attack.run(typed, truth=range(40)).targets.hits
    40
    """

    auxiliary: Any
    comparisons: Mapping[str, ComparisonLevels]
    blocking: Sequence[Sequence[str]]
    threshold: float = 0.9
    max_pairs: int = 100_000_000
    rng: int = 0

    def __post_init__(self) -> None:
        object.__setattr__(self, "auxiliary", as_arrow("auxiliary", self.auxiliary))
        _check.unit_interval("threshold", self.threshold)
        _check.integer("max_pairs", self.max_pairs, minimum=1)
        _check.integer("rng", self.rng)
        if not self.comparisons or not self.blocking or not all(self.blocking):
            _check.refuse(
                "blocking",
                "be one rule or more, of compared columns each",
                self.blocking,
                "pass a list of lists of columns",
            )
        for levels in self.comparisons.values():
            _check.instance("comparisons", levels, ComparisonLevels, "pass ComparisonLevels('exact')")
        for column in (column for rule in self.blocking for column in rule):
            if column not in self.comparisons:
                remedy = "compare it too: its agreement is part of the weight"
                _check.refuse("blocking", f"be of {', '.join(self.comparisons)}", column, remedy)
        self._require("auxiliary", self.auxiliary)

    @property
    def knowledge(self) -> Knowledge:
        """What the attacker has beside the table."""
        known = f"of each target, {', '.join(self.comparisons)}, perhaps with errors, and who they are"
        return Knowledge((known,), {"auxiliary": self.auxiliary})

    def run(
        self,
        release: Any,
        *,
        truth: ArrayLike | None = None,
        controls: Any = None,
        exchangeable: bool = False,
        loss: PrivacyLoss | None = None,
        confidence: float = 0.95,
    ) -> Findings:
        """Link the targets to rows of a table.

        Parameters
        ----------
        release : frame
            The released table.
        truth : int array of shape (targets,), optional
            Each target's row in it, -1 for who has none.
        controls : frame, optional
            Persons who have no row, in the form of the auxiliary table; they are linked by themselves.
        exchangeable : bool
            Whether targets and controls were drawn alike; no bound on the rates follows here.
        loss : PrivacyLoss, optional
            Of the release.
        confidence : float
            That the intervals hold together.

        Returns
        -------
        Findings
            Its guesses are rows, its scores posterior probabilities.
        """
        value, loss = read_release(release, loss)
        table = as_arrow("release", value)
        self._require("release", table)
        links, pairs, weights = self._linked(self.auxiliary, table)
        other = None
        if controls is not None:
            frame = as_arrow("controls", controls)
            self._require("controls", frame)
            other, _, _ = self._linked(frame, table, weights)
        return link_findings(
            "probabilistic linkage",
            self.knowledge,
            links,
            other,
            truth=truth,
            loss=loss,
            exchangeable=exchangeable,
            confidence=confidence,
            numbers={
                "pairs scored": float(len(pairs.left)),
                "matches expected": weights.matches,
                **{f"m({name})": float(one[0]) for name, one in weights.m.items()},
                **{f"u({name})": float(one[0]) for name, one in weights.u.items()},
            },
        )

    def _require(self, name: str, table: pa.Table) -> None:
        for column in self.comparisons:
            if column not in table.column_names:
                rule = f"be of columns of {name}: {', '.join(table.column_names)}"
                _check.refuse("comparisons", rule, column, "rename its columns")
        if not table.num_rows:
            _check.refuse_state(name, "have rows", "it has none", "pass one with rows")

    def _linked(
        self, people: pa.Table, table: pa.Table, weights: MatchWeights | None = None
    ) -> tuple[Links, CandidatePairs, MatchWeights]:
        pairs = candidate_pairs(
            people, table, self.comparisons, self.blocking, max_pairs=self.max_pairs, rng=self.rng
        )
        weights = weights or fit_match_weights(pairs, self.comparisons, self.blocking)
        return _best_links(pairs, weights.posterior(pairs), self.threshold), pairs, weights


def _best_links(pairs: CandidatePairs, posterior: NDArray[np.float64], threshold: float) -> Links:
    """Return for each person the most likely record, if it is the only one; claimed if likely and mutual."""
    ranks = np.unique(posterior, return_inverse=True)[1].astype(np.uint32)
    rank = ranks[pairs.pattern]
    order = np.argsort(rank.astype(np.uint16) if ranks.max(initial=0) < 2**16 else rank, kind="stable")
    best = np.full(pairs.people, -1, dtype=np.int64)
    best[pairs.left[order]] = order
    found = best >= 0
    chosen = best[found]
    top, top_of_row = (np.zeros(size, dtype=np.int64) for size in (pairs.people, pairs.rows))
    top[found] = rank[chosen]
    top_of_row[pairs.right[order]] = rank[order]
    alike = np.bincount(pairs.left[rank == top[pairs.left]], minlength=pairs.people)
    others = np.bincount(pairs.right[rank == top_of_row[pairs.right]], minlength=pairs.rows)
    rows, scores = np.full(pairs.people, -1, dtype=np.int64), np.zeros(pairs.people)
    rows[found] = pairs.right[chosen]
    scores[found] = posterior[pairs.pattern[chosen]]
    mutual = (top_of_row[rows] == top) & (others[rows] == 1)
    rows[alike > 1] = -1
    return Links(rows, scores, found & (scores >= threshold) & (alike == 1) & mutual)
