"""What a notebook shows of a survey's estimates: each number with its interval, and what an answer shows."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from sfumato._display import html_table, named
from sfumato.local.base.report_facts import report_facts

__all__ = ["estimate_html"]


def estimate_html(
    caption: str,
    rows: Iterable[tuple[object, float, float | None, tuple[float, float]]],
    *,
    respondents: int | None = None,
    design: object = None,
) -> str:
    """Return a table of estimates.

    Parameters
    ----------
    caption : str
    rows : iterable of tuple
        The name, the unbiased estimate, the likeliest value if there is one, and the ends of a 95 % interval.
    respondents : int, optional
        How many answered.
    design : object, optional
        What they were asked by; its ``privacy_loss`` is shown if it has one.

    Examples
    --------
    >>> shown = estimate_html("Estimated prevalence", [("prevalence", 0.25, 0.25, (0.2, 0.3))])
    >>> "<td>0.25 <small>[0.2, 0.3]</small></td><td>0.25</td>" in shown
    True
    """
    if respondents is not None:
        caption = f"{caption}, of {respondents:,} respondents"
    cells = [
        (
            named(name),
            (f"{value:.4g}", f"[{lower:.4g}, {upper:.4g}]"),
            "" if likely is None else f"{likely:.4g}",
        )
        for name, value, likely, (lower, upper) in rows
    ]
    facts = {"in brackets": "95 % intervals"}
    loss: Any = getattr(design, "privacy_loss", None)
    if loss is not None:
        facts |= report_facts(loss, simulated=False)
    return html_table(caption, ("", "estimate", "likeliest"), cells, facts=facts)
