"""What an analyst asks: SQL with its values, or the fields of a form that are written out as SQL."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Self, final

from sfumato import _check
from sfumato._wire import NUMBER, TEXT, Codec, Format, Record, canonical, optional, parse
from sfumato.ledger.log.words import check_line
from sfumato.queries.plan.sql_text import literal_sql, name_sql

__all__ = ["AGGREGATES", "Question", "QuestionForm"]

_FORMAT: Final = Format("sfumato.question", 1)
_LONGEST: Final = 100_000
_SCALARS: Final = (bool, int, float, str)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """A question as it is stored with its job: everything that its price follows from, beside the session.

    Parameters
    ----------
    sql : str
        As for ``Session.sql``.
    params : mapping of str to value, optional
        What ``@name`` stands for: truth values, numbers, texts, and lists of one of these.
    epsilon : float, optional
        Of each private SELECT whose OPTIONS state none.
    period : str
        Where the budget renews, the period that is asked about.
    purpose : str
        What the answer is for: one line, which the charge carries.

    Raises
    ------
    ParameterError
        If the text is none or too long, or a value is none of these.

    Examples
    --------
    >>> question = Question(sql="SELECT COUNT(*) AS n FROM data", epsilon=0.25)
    >>> Question.from_json(question.to_json()) == question
    True
    """

    sql: str
    params: Mapping[str, Any] = field(default_factory=dict)
    epsilon: float | None = None
    period: str = ""
    purpose: str = ""

    def __post_init__(self) -> None:
        text: object = self.sql
        if not isinstance(text, str) or not text.strip():
            _check.refuse_type("sql", "be a text that asks something", text, "write SELECT ... FROM ...")
        if len(self.sql) > _LONGEST:
            found = f"it has {len(self.sql)}"
            _check.refuse_state("sql", f"have at most {_LONGEST} characters", found, "simplify the query")
        _check_values(self.params)
        if self.epsilon is not None:
            remedy = "write 0.25, say, or leave it out and state it in OPTIONS"
            object.__setattr__(self, "epsilon", _check.positive("epsilon", self.epsilon, remedy))
        check_line("purpose", self.purpose)

    @property
    def defaults(self) -> dict[str, object]:
        """Values of OPTIONS that its text may leave out."""
        return {} if self.epsilon is None else {"epsilon": self.epsilon}

    def to_json(self) -> str:
        """Return the question as a document of the format ``sfumato.question``."""
        return canonical(_FORMAT.wrap(_RECORD.encode(self)))

    @classmethod
    def from_json(cls, text: str) -> Self:
        """Return the question that `to_json` wrote.

        Parameters
        ----------
        text : str

        Raises
        ------
        ParameterError
            If it is no such document.
        """
        fields = _FORMAT.unwrap("question", parse("question", text))[1]
        read: Self = _RECORD.decode("question", fields)
        return read


def _check_values(params: object) -> None:
    if not isinstance(params, Mapping):
        _check.refuse_type("params", "be a mapping of names to values", params, "pass {'age': 18}, say")
    for name, value in params.items():
        members = value if isinstance(value, list | tuple) else [value]
        if not isinstance(name, str) or not all(isinstance(each, _SCALARS) for each in members):
            rule = "have truth values, numbers, texts, or lists of these"
            _check.refuse_type("params", rule, value, "write a date as a text, and CAST(@name AS DATE)")
        if not all(_is_stored(each) for each in members):
            found = f"@{name} is another one"
            remedy = "convert it before it is passed"
            _check.refuse_state("params", "have finite numbers, whole ones of 64 bits", found, remedy)


def _is_stored(value: object) -> bool:
    """Whether a number is one that JSON and the engines hold."""
    if isinstance(value, float):
        return math.isfinite(value)
    return not isinstance(value, int) or -(2**63) <= value < 2**63


def _read_values(name: str, written: Any) -> Mapping[str, Any]:
    if not isinstance(written, dict):
        _check.refuse_type(name, "be an object", written, "pass {}, or names with values")
    return written


_RECORD: Final[Record[Any]] = Record(
    "a question",
    Question,
    {
        "sql": TEXT,
        "params": Codec(dict, _read_values),
        "epsilon": optional(NUMBER),
        "period": TEXT,
        "purpose": TEXT,
    },
)

_BOUNDED: Final = ("SUM", "AVG")
_OF_ROWS: Final = ("MEDIAN", "MIN", "MAX", "STDDEV", "VARIANCE")
_COUNTS: Final = ("COUNT", "COUNT(DISTINCT)")
AGGREGATES: Final = (*_COUNTS, *_BOUNDED, *_OF_ROWS)
"""What a form can ask for."""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class QuestionForm:
    """The fields of a form, for whoever does not write SQL: one aggregate, by group or of all rows.

    Parameters
    ----------
    table : str
        The private table.
    aggregate : str
        ``COUNT``, ``COUNT(DISTINCT)``, ``SUM``, ``AVG``, ``MEDIAN``, ``MIN``, ``MAX``, ``STDDEV`` or
        ``VARIANCE``.
    column : str
        What is summed or averaged; left out for ``COUNT``.
    lower, upper : float, optional
        The bounds of the column, which its unit's values are clamped to; left out, they are found.
    group_by : str
        The column whose values are the groups; "" for none.
    groups : int, optional
        In how many groups a unit counts at most; needed with ``group_by`` where units are not rows.
    rows : int, optional
        How many rows of a unit count in a group, where an aggregate is of rows.
    delta : float, optional
        Of the answer; left out, the session's.

    Raises
    ------
    ParameterError
        If a field is none of these, or is missing.

    Examples
    --------
    >>> print(QuestionForm(table="data", aggregate="SUM", column="pay", lower=0, upper=100).sql)
    SELECT WITH DIFFERENTIAL_PRIVACY SUM(`pay`, contribution_bounds_per_group => (0, 100)) AS `sum_of_pay`
    FROM `data`
    """

    table: str
    aggregate: str
    column: str = ""
    lower: float | None = None
    upper: float | None = None
    group_by: str = ""
    groups: int | None = None
    rows: int | None = None
    delta: float | None = None

    def __post_init__(self) -> None:
        if self.aggregate not in AGGREGATES:
            _check.refuse("aggregate", f"be one of {', '.join(AGGREGATES)}", self.aggregate, "choose one")
        if (self.aggregate == "COUNT") == bool(self.column):
            rule = "be left out for COUNT" if self.column else f"be given for {self.aggregate}"
            _check.refuse("column", rule, self.column, "choose the column that is aggregated")
        if (self.lower is None) != (self.upper is None):
            _check.refuse("upper", "come with lower", self.upper, "state both, or neither")
        if self.lower is not None:
            if self.aggregate in _COUNTS:
                _check.refuse("lower", f"be left out for {self.aggregate}", self.lower, "leave it out")
            _check.finite("lower", self.lower)
            _check.finite("upper", self.upper)
        for name in ("groups", "rows"):
            if getattr(self, name) is not None:
                _check.integer(name, getattr(self, name), minimum=1)
        if self.delta is not None:
            _check.probability("delta", self.delta)

    @property
    def sql(self) -> str:
        """The private SELECT that the fields say; its epsilon is stated beside it."""
        stated = {
            "delta": self.delta,
            "max_groups_contributed": self.groups,
            "max_rows_per_group": self.rows,
        }
        written = ", ".join(
            f"{name}={literal_sql(value)}" for name, value in stated.items() if value is not None
        )
        options = f" OPTIONS({written})" if written else ""
        key = f"{name_sql(self.group_by)}, " if self.group_by else ""
        grouped = f"\nGROUP BY {name_sql(self.group_by)}" if self.group_by else ""
        select = f"SELECT WITH DIFFERENTIAL_PRIVACY{options} {key}{self._call} AS {name_sql(self._name)}"
        return f"{select}\nFROM {name_sql(self.table)}{grouped}"

    @property
    def _call(self) -> str:
        if self.aggregate == "COUNT":
            return "COUNT(*)"
        column = name_sql(self.column)
        if self.aggregate == "COUNT(DISTINCT)":
            return f"COUNT(DISTINCT {column})"
        if self.lower is None:
            return f"{self.aggregate}({column})"
        kind = "group" if self.aggregate in _BOUNDED else "row"
        bounds = f"({literal_sql(self.lower)}, {literal_sql(self.upper)})"
        return f"{self.aggregate}({column}, contribution_bounds_per_{kind} => {bounds})"

    @property
    def _name(self) -> str:
        if self.aggregate == "COUNT":
            return "units"
        words = "distinct" if self.aggregate == "COUNT(DISTINCT)" else self.aggregate.lower()
        return f"{words}_of_{self.column}"
