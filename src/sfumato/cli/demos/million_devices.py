"""A million simulated devices, and the same with a shuffler between them and the analyst."""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

from sfumato import local
from sfumato.cli.output.page import Page
from sfumato.cli.output.tables import cut, plain_table
from sfumato.local import shuffle
from sfumato.local.frequency.estimate import Estimate

__all__ = ["million_devices"]

_DEVICES: Final = 1_000_000
_EPSILON, _DELTA = 1.0, 1e-8
_SHOWN: Final = 8  # of the largest industries
_NAME: Final = 18
_WIDTH: Final = 23  # odd: the truth has a column of its own


def million_devices(page: Page, occupations: list[str]) -> None:
    """Show how far the estimates of all devices lie from the truth, in both ways.

    Parameters
    ----------
    page : Page
        What is printed to.
    occupations : list of str
        Industries of people; each device has that of one of them, drawn evenly.
    """
    page.title("3. A million devices, without and with a shuffler")
    industries = sorted(set(occupations))
    domain = local.Domain(industries)
    held = np.random.default_rng().integers(0, len(occupations), _DEVICES)
    codes = domain.codes(occupations)[held]
    true = np.bincount(codes, minlength=len(industries)) / _DEVICES
    said = np.array(industries)[codes]
    alone, mixed = _alone(domain, said), _mixed(domain, said)
    reach = 3 * float(alone.stddev.max())
    page.say(
        "A million devices are simulated: each holds the industry of one of the people. They report at "
        f"epsilon {_EPSILON:g} twice: to an analyst whom nobody trusts, and through a shuffler that mixes "
        "the messages of all and need not be trusted with what they say (at delta "
        f"{_DELTA:g}). Each picture is an estimate with its 95 % interval; the bar in its middle is the "
        f"truth, its ends lie {100 * reach:.2g} percentage points away.",
    )
    table = plain_table(("industry", "true", "devices alone", "through the shuffler"), right=(1,))
    for index in np.argsort(-true)[:_SHOWN].tolist():
        pictures = [_picture(estimate, index, float(true[index]), reach) for estimate in (alone, mixed)]
        table.add_row(cut(industries[index], _NAME), f"{100 * true[index]:.2f} %", *pictures)
    page.table(table)
    people = [_DEVICES * float(estimate.stddev.max()) for estimate in (alone, mixed)]
    page.say(
        f"Standard errors: {people[0]:,.0f} people for devices alone, {people[1]:,.0f} through the shuffler.",
        style="green",
    )


def _alone(domain: local.Domain, said: NDArray[np.str_]) -> Estimate:
    choice = local.choose(local.Frequencies(domain), epsilon=_EPSILON, n=_DEVICES)
    oracle = choice.oracle(domain)
    aggregator = oracle.aggregator()
    aggregator.add_batch(oracle.randomize_batch(said))
    found: Estimate = aggregator.estimate()
    return found


def _mixed(domain: local.Domain, said: NDArray[np.str_]) -> Estimate:
    protocol = shuffle.ShuffledHistogram(epsilon=_EPSILON, delta=_DELTA, clients=_DEVICES, domain=domain)
    aggregator = protocol.aggregator()
    aggregator.add_batch(protocol.randomize_batch(said).shuffled())
    found: Estimate = aggregator.estimate()
    return found


def _picture(estimate: Estimate, index: int, true: float, reach: float) -> str:
    """Draw an estimate and its interval on a line of characters with the truth in its middle.

    Examples
    --------
    >>> from types import SimpleNamespace
    >>> ends = SimpleNamespace(lower=[0.2], upper=[0.4])
    >>> seen = SimpleNamespace(frequencies=[0.3], interval=lambda level: ends)
    >>> _picture(seen, 0, 0.25, 0.3)
    '         ╶─┼─●──╴      '
    """
    interval = estimate.interval(0.95)
    low, at, high = (
        _column(float(place), true, reach)
        for place in (interval.lower[index], estimate.frequencies[index], interval.upper[index])
    )
    line = [" "] * _WIDTH
    line[low : high + 1] = ["─"] * (high + 1 - low)
    line[low], line[high] = "╶", "╴"
    line[_WIDTH // 2] = "┼" if low <= _WIDTH // 2 <= high else "│"
    line[at] = "●"
    return "".join(line)


def _column(place: float, true: float, reach: float) -> int:
    return min(max(round((place - true + reach) / (2 * reach) * (_WIDTH - 1)), 0), _WIDTH - 1)
