"""Revenue against epsilon: the numbers of the auction, drawn."""

from __future__ import annotations

import numpy as np
import pytest

from sfumato.errors import ParameterError
from sfumato.games import DigitalGoods, revenue_curve

BIDS = np.random.default_rng(1).uniform(0, 4, 300)


@pytest.mark.parametrize("supply", [None, 50])
def test_the_numbers_are_those_of_the_auction(supply: int | None) -> None:
    curve = revenue_curve(BIDS, upper=4, epsilons=(2.0, 0.1), supply=supply)
    assert curve.epsilons.tolist() == [0.1, 2.0]
    for at, epsilon in enumerate((0.1, 2.0)):
        auction = DigitalGoods(upper=4, epsilon=epsilon, supply=supply)
        assert curve.expected[at] == auction.expected_revenue(BIDS)
        bound = auction.revenue_guarantee(BIDS)
        assert (curve.partition_function[at], curve.mcsherry_talwar[at]) == (
            bound.partition_function,
            bound.mcsherry_talwar,
        )
    assert curve.optimum == auction.optimum(BIDS).revenue
    header, *rows, last = str(curve).splitlines()
    assert header.split() == ["epsilon", "expected", "partition", "function", "McSherry,", "Talwar"]
    assert [row.split()[0] for row in rows] == ["0.1", "2"]
    assert rows[1].split()[1] == f"{curve.expected[1]:.1f}"
    assert last == f"optimum {curve.optimum:g}"


def test_the_picture_has_all_three_over_the_optimum() -> None:
    curve = revenue_curve(BIDS, upper=4, epsilons=(0.01, 2.0))
    ax = curve.plot()
    lines = {line.get_label(): line.get_xydata() for line in ax.get_lines()}
    assert list(lines) == ["expected", "partition function", "McSherry, Talwar"]
    assert lines["expected"][:, 1] == pytest.approx(curve.expected / curve.optimum)
    assert curve.mcsherry_talwar[0] < 0 == lines["McSherry, Talwar"][0, 1]
    assert (ax.get_xscale(), ax.get_xlabel(), ax.get_ylabel()) == (
        "log",
        "epsilon",
        "revenue over the optimum",
    )
    assert curve.plot(ax) is ax
    nothing = revenue_curve([0.0, 0.0], upper=4, epsilons=(1.0,))
    assert nothing.optimum == 0
    assert nothing.plot(ax).get_lines()[-1].get_ydata().tolist() == [0.0]


def test_what_does_not_fit_is_refused() -> None:
    with pytest.raises(ParameterError, match="epsilons must be one or more"):
        revenue_curve(BIDS, upper=4, epsilons=())
    with pytest.raises(ParameterError, match="epsilons must be positive"):
        revenue_curve(BIDS, upper=4, epsilons=(0.0,))
