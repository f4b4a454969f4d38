"""Who must collude to learn what, and the epsilon that is left: a statement for every run.

`aggregators_report` makes it for aggregators that hold shares, `secure_aggregation_report` for a server and
its clients.

>>> from sfumato.privacy import Laplace
>>> [row.epsilon for row in aggregators_report(loss=Laplace(2.0), delta=0.0).rows]
[0.5, 0.5, None]
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final, Literal, final

from sfumato import _check
from sfumato._wire import BOOLEAN, INTEGER, NUMBER, TEXT, Format, Record, optional, sequence
from sfumato.privacy._outward import text_above
from sfumato.privacy.loss import PrivacyLoss

__all__ = ["Collusion", "TrustReport", "aggregators_report"]

_FORMAT: Final = Format("sfumato.trust_report", 1)
_PROOFS: Final = (
    "Proofs show that a measurement is valid, not that it is true; that results are right needs every "
    "aggregator to follow the protocol."
)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Collusion:
    """What is left if so many parties work together.

    Parameters
    ----------
    colluders : int
        Clients beside the server, or aggregators.
    masks_hold : bool
        Whether they see no more than the sum that the protocol shows.
    epsilon : float or None
        Upper bound at the report's delta; None if nothing is proved.

    Examples
    --------
    >>> Collusion(colluders=2, masks_hold=True, epsilon=1.5).colluders
    2
    """

    colluders: int
    masks_hold: bool
    epsilon: float | None

    def __post_init__(self) -> None:
        _check.integer("colluders", self.colluders)
        _check.instance("masks_hold", self.masks_hold, bool, "pass True or False")
        if self.epsilon is not None:
            _check.at_least_zero("epsilon", self.epsilon)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class TrustReport:
    """Who must collude to break what, and the (epsilon, delta) that is left under each collusion.

    Parameters
    ----------
    setting : str
        What was run.
    colluding : str
        Who the colluders are.
    statements : tuple of str
        What each party learns, and what is not checked.
    delta : float or None
        Where epsilon is read; None without noise.
    rows : tuple of Collusion

    Notes
    -----
    Guarantee: each epsilon is that of the loss that the report was made from, for one honest party's input
    under that loss's relation, against the colluders of its row and everyone who sees the result. It rests
    on the assumptions of the protocol, which the statements name.

    Examples
    --------
    >>> from sfumato.privacy import Laplace
    >>> print(aggregators_report(aggregators=2, loss=Laplace(1.0), delta=0.0))
    Prio3 with 2 aggregators
    - All 2 aggregators must collude to see a measurement; each alone sees random shares.
    - Proofs show that a measurement is valid, not that it is true; that results are right needs every
      aggregator to follow the protocol.
    - Each aggregator adds noise of its own to its share. It knows this noise, so that the noise of the
      others is what protects against it; the epsilon below counts the noise of one honest aggregator.
    Colluding aggregators: epsilon at delta 0
      0: 1
      1: 1
      2: none
    """

    setting: str
    colluding: str
    statements: tuple[str, ...]
    delta: float | None
    rows: tuple[Collusion, ...]

    def __post_init__(self) -> None:
        for name in ("setting", "colluding"):
            _check.instance(name, getattr(self, name), str, "pass a text")
        object.__setattr__(self, "statements", tuple(self.statements))
        object.__setattr__(self, "rows", tuple(self.rows))
        if self.delta is not None:
            _check.probability("delta", self.delta)

    def __str__(self) -> str:
        return self.to_text()

    def to_text(self) -> str:
        """Return the report as lines of text; numbers are rounded outward.

        Returns
        -------
        str
        """
        lines = [self.setting, *(line for text in self.statements for line in _wrapped(text))]
        if self.delta is not None:
            lines.append(f"Colluding {self.colluding}: epsilon at delta {text_above(self.delta, 4)}")
            lines += [f"  {row.colluders}: {_shown(row)}" for row in self.rows]
        return "\n".join(lines)

    def to_json(self) -> dict[str, object]:
        """Return the report as a JSON document.

        Returns
        -------
        dict
            What `from_json` reads.
        """
        return _FORMAT.wrap(_RECORD.encode(self))

    @staticmethod
    def from_json(document: object) -> TrustReport:
        """Return the report that `to_json` wrote.

        Parameters
        ----------
        document : dict

        Returns
        -------
        TrustReport

        Raises
        ------
        ParameterError
            If it is no such document.

        Examples
        --------
        >>> report = aggregators_report(aggregators=2)
        >>> TrustReport.from_json(report.to_json()) == report
        True
        """
        return _RECORD.decode("document", _FORMAT.unwrap("document", document)[1])


_RECORD: Final = Record(
    "a trust report",
    TrustReport,
    {
        "setting": TEXT,
        "colluding": TEXT,
        "statements": sequence(TEXT),
        "delta": optional(NUMBER),
        "rows": sequence(
            Record(
                "a collusion",
                Collusion,
                {"colluders": INTEGER, "masks_hold": BOOLEAN, "epsilon": optional(NUMBER)},
            )
        ),
    },
)


def _wrapped(text: str) -> list[str]:
    lines = ["-"]
    for word in text.split():
        if len(lines[-1]) + len(word) >= 106:
            lines.append(" ")
        lines[-1] += f" {word}"
    return lines


def _shown(row: Collusion) -> str:
    if row.epsilon is None or math.isinf(row.epsilon):
        return "none"
    return text_above(row.epsilon, 4) + ("" if row.masks_hold else " (own noise only)")


def aggregators_report(
    *,
    aggregators: int = 2,
    loss: PrivacyLoss | None = None,
    delta: float | None = None,
    protocol: Literal["Prio3", "Poplar1", "Mastic"] = "Prio3",
) -> TrustReport:
    """Return the trust report of aggregators that hold shares of measurements.

    Parameters
    ----------
    aggregators : int, default 2
        At least 2.
    loss : PrivacyLoss, optional
        Of the noise that *one* aggregator adds, over all results that are published; each adds as much.
    delta : float, optional
        Where epsilon is read; needed with a loss.
    protocol : str, default "Prio3"
        Or ``"Poplar1"``, where the counts of prefixes are results at every level, or ``"Mastic"``, where sums
        of weights are; both have two aggregators.

    Returns
    -------
    TrustReport

    Notes
    -----
    Guarantee: see `TrustReport`. If at least one aggregator is honest, its noise is in every result, and what
    the others add or know is post-processing of it: the epsilon of one aggregator's noise is an upper bound.

    Examples
    --------
    >>> from sfumato.privacy import Laplace
    >>> aggregators_report(aggregators=3, loss=Laplace(2.0), delta=0.0).rows[2].epsilon
    0.5
    """
    count = _check.integer("aggregators", aggregators, minimum=2)
    if protocol not in ("Prio3", "Poplar1", "Mastic"):
        _check.refuse("protocol", "be 'Prio3', 'Poplar1' or 'Mastic'", protocol, "name one of them")
    if protocol != "Prio3" and count > 2:
        _check.refuse("aggregators", f"be 2 for {protocol}", count, "it is for two aggregators only")
    statements = [
        f"All {count} aggregators must collude to see a measurement; each alone sees random shares.",
        _PROOFS,
    ]
    if protocol == "Poplar1":
        statements.append("Every aggregator sees the counts of prefixes at every level that is asked.")
    if protocol == "Mastic":
        statements.append(
            "Every aggregator sees the sums of weights below prefixes at every level that is asked, and "
            "which reports are refused; a report adds one valid weight to one prefix of a level. Counts of "
            "clients are seen too, unless each aggregator hides them behind random numbers, as plans with "
            "noise do that do not pay for them."
        )
    if loss is None:
        statements.append("The results are exact: this is no differential privacy.")
        limit, rows = None, list[Collusion]()
    else:
        _check.instance("loss", loss, PrivacyLoss, "pass the loss of one aggregator's noise")
        limit = _check.probability("delta", delta, "say where epsilon is read")
        statements.append(
            "Each aggregator adds noise of its own to its share. It knows this noise, so that the noise of "
            "the others is what protects against it; the epsilon below counts the noise of one honest "
            "aggregator."
        )
        epsilon = loss.epsilon(limit)
        rows = [
            Collusion(colluders=n, masks_hold=n < count, epsilon=epsilon if n < count else None)
            for n in range(count + 1)
        ]
    return TrustReport(
        setting=f"{protocol} with {count} aggregators",
        colluding="aggregators",
        statements=tuple(statements),
        delta=limit,
        rows=tuple(rows),
    )
