"""A report as lines of text."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

__all__ = ["report_text"]

_WARNING: Final = "FOR THE CURATOR ONLY: measures of real rows; none of them is differential privacy"
_MEASURES: Final = (
    ("distinct l-diversity", "distinct_l"),
    ("entropy l-diversity", "entropy_l"),
    ("recursive (c, l), c above", "recursive_c"),
    ("alpha", "alpha"),
    ("t-closeness", "t"),
    ("beta-likeness", "basic_beta"),
    ("beta-likeness, enhanced", "enhanced_beta"),
    ("delta-disclosure", "delta_disclosure"),
)


def report_text(measures: Mapping[str, Any]) -> str:
    """Return what `Report.to_dict` holds as text.

    Parameters
    ----------
    measures : mapping of str to object

    Returns
    -------
    str
    """
    return "\n".join([_WARNING, *(f"{name:<52}{value}" for name, value in _lines(measures))])


def _lines(measures: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    risk = measures["risk"]
    yield "rows, classes", f"{measures['rows']:,}, {measures['classes']:,}"
    yield "k-anonymity", _number(measures["k"])
    if measures["k_map"] is not None:
        yield "k-map", _number(measures["k_map"])
    for column, found in measures["sensitive"].items():
        for title, name in _MEASURES:
            distance = f", {found['t_distance']}" if name == "t" else ""
            yield f"{column}: {title}{distance}", _number(found[name])
    yield "rows alone in their class", _percent(risk["uniqueness"])
    for attacker in ("prosecutor", "journalist"):
        each = risk[attacker]
        yield f"{attacker}: highest, average", f"{_percent(each['highest'])}, {_percent(each['average'])}"
    yield "marketer", _percent(risk["marketer"])
    estimated = risk["population_uniqueness"]
    if estimated is not None:
        model = estimated["chosen"]
        fraction = estimated[model] / estimated["population_size"]
        yield f"unique in the population, {model.replace('_', ' ')}", _percent(fraction)


def _number(value: float | None) -> str:
    if value is None:
        return "none"
    return f"{value:,}" if isinstance(value, int) else f"{value:.4g}"


def _percent(value: float) -> str:
    return f"{100 * value:.4g} %"
