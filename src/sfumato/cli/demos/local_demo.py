"""``sfumato demo --local``: the same census, asked on people's own devices, beside a curator's answers."""

from __future__ import annotations

import statistics

import numpy as np
from numpy.typing import NDArray

from sfumato import local
from sfumato.cli.data import ACS
from sfumato.cli.demos.million_devices import million_devices
from sfumato.cli.demos.truth import INCOMES, adults
from sfumato.cli.output.page import Page
from sfumato.cli.output.tables import cut, dashed, plain_table, shown
from sfumato.session.connection import connect

__all__ = ["local_demo"]

_EPSILON, _DELTA = 1.0, 1e-8
_NAME = 22  # characters of an industry that leave room for its numbers

_INDUSTRIES = """\
SELECT WITH DIFFERENTIAL_PRIVACY
  OPTIONS(epsilon=1, delta=1e-8, max_groups_contributed=1)
  COALESCE(industry, 'not at work') AS occupation, COUNT(*) AS n
FROM data
WHERE age >= 15
GROUP BY occupation"""

_INCOME = """\
SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(epsilon=1, delta=0)
  AVG(income, contribution_bounds_per_group => (0, 200000)) AS income
FROM data
WHERE age >= 15"""


def local_demo() -> None:
    """Ask two questions of people who trust nobody and of a curator, and one of a million devices."""
    page = Page()
    occupations, incomes = adults()
    page.say(
        f"The data: {len(occupations):,} people of 15 and over, of the American Community Survey of 2019. "
        "Each reports two things by a device of their own, which adds noise before anything leaves it: the "
        f"occupation's industry and the income. Each answer costs its person epsilon {_EPSILON:g}, whoever "
        "collects it and whatever is done with it. Beside it stands what a curator who is trusted with all "
        "rows would answer at the same cost.",
    )
    with connect(ACS, privacy_unit="person_id", epsilon=2 * _EPSILON, delta=1e-7) as session:
        counts = session.sql(_INDUSTRIES).to_arrow(intervals=True).to_pylist()
        (mean,) = session.sql(_INCOME).to_arrow(intervals=True).to_pylist()
    _occupations(page, occupations, {str(row["occupation"]): row for row in counts})
    _incomes(page, incomes, mean)
    million_devices(page, occupations)
    page.say(
        "Only this demo shows true answers, and it may: the Census Bureau and NIST publish every row of this "
        "file.",
    )


def _occupations(page: Page, occupations: list[str], central: dict[str, dict[str, float]]) -> None:
    page.title("1. Occupations")
    industries = sorted(set(occupations))
    domain = local.Domain(industries)
    choice = local.choose(local.Frequencies(domain), epsilon=_EPSILON, n=len(occupations))
    oracle = choice.oracle(domain)
    aggregator = oracle.aggregator()
    aggregator.add_batch(oracle.randomize_batch(occupations))
    estimate = aggregator.estimate()
    people, interval = len(occupations), estimate.interval(0.95)
    page.say(
        f"The list of industries is public. local.choose takes {choice.best.name}: {choice.best.bytes} bytes "
        "a report."
    )
    names = ("industry", "devices", "95 % interval", "curator", "95 % interval", "true")
    table = plain_table(names, right=range(1, 6))
    wider = []
    for index, name in enumerate(industries):
        low, high = people * interval.lower[index], people * interval.upper[index]
        row = central.get(name)
        cells = ("hidden", "") if row is None else (shown(row["n"]), dashed(row["n_lower"], row["n_upper"]))
        if row is not None:
            wider.append((high - low) / (row["n_upper"] - row["n_lower"]))
        count = shown(round(people * estimate.frequencies[index]))
        table.add_row(
            cut(name, _NAME), count, dashed(round(low), round(high)), *cells, shown(occupations.count(name))
        )
    page.table(table)
    _price(page, statistics.median(wider))


def _incomes(page: Page, incomes: NDArray[np.float64], central: dict[str, float]) -> None:
    page.title("2. Incomes")
    protocol = local.PiecewiseMean(epsilon=_EPSILON, bounds=INCOMES)
    aggregator = protocol.aggregator()
    aggregator.add_batch(protocol.randomize_batch(incomes))
    estimate = aggregator.estimate()
    interval = estimate.interval(0.95)
    table = plain_table(("mean income", "", "95 % interval"), right=(1, 2))
    low, high = interval.lower, interval.upper
    table.add_row("devices", shown(round(estimate.mean)), dashed(round(low), round(high)))
    wide = high - low
    low, high = central["income_lower"], central["income_upper"]
    table.add_row("curator", shown(round(central["income"])), dashed(round(low), round(high)))
    table.add_row("true, between 0 and 200,000", shown(round(float(incomes.mean()))), "")
    page.table(table)
    _price(page, wide / (high - low))


def _price(page: Page, wider: float) -> None:
    more = float(f"{wider * wider:.2g}")
    page.say(
        f"The price of trusting nobody: intervals {wider:.3g} times as wide. Errors shrink with the root of "
        f"the number of people: some {shown(more)} times as many would have to answer, to be as exact "
        "as the curator is now.",
        style="green",
    )
