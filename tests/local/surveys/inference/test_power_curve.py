"""Power curves: the numbers of `power`, and a plot of the same numbers."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from sfumato.errors import ParameterError
from sfumato.local.surveys import ForcedResponse, Mangat, PowerAnalysis, TwoCoins, power, warner_for_epsilon
from tests.cases import cases
from tests.run_time import run_time

if run_time(__name__):
    from matplotlib.figure import Figure

DESIGNS = {"coins": TwoCoins(), "die": ForcedResponse(yes="1/6", no="1/6"), "mangat": Mangat(truth="1/2")}
UNKNOWN: Any = "n"
TEST: Any = {"null": 0.1, "prevalence": 0.25}


def test_powers_against_respondents_are_those_of_the_exact_test() -> None:
    found = PowerAnalysis(designs=DESIGNS, respondents=[400, 100, 100], **TEST).curve()
    assert found.x.tolist() == [100, 400]
    assert found.lines == ("coins (epsilon 1.0987)", "die (epsilon 1.6095)", "mangat (epsilon infinite)")
    for line, design in zip(found.powers, DESIGNS.values(), strict=True):
        assert line.tolist() == [power(design, respondents=count, **TEST) for count in (100, 400)]
    assert found.x_label == "respondents"


def test_powers_against_epsilon_have_a_line_for_each_number_of_respondents() -> None:
    designs = {str(epsilon): warner_for_epsilon(epsilon) for epsilon in (2.0, 0.5, 1.0)}
    options: Any = {**TEST, "false_positive_rate": 0.01, "two_sided": False}
    analysis = PowerAnalysis(designs=designs, respondents=np.array([200, 900]), **options)
    found = analysis.curve("epsilon")
    assert found.lines == ("200 respondents", "900 respondents")
    assert found.x.tolist() == [designs[name].epsilon for name in ("0.5", "1.0", "2.0")]
    assert (np.diff(found.powers, axis=1) > 0).all()
    assert found.powers[1, 2] == power(designs["2.0"], respondents=900, **options)
    assert found.powers[0, 0] == power(designs["0.5"], respondents=200, **options)


@cases("epsilon", [1e-4, 0.3, 1.0, math.log(3), 5.0, 12.0])
def test_a_design_for_an_epsilon_costs_at_most_that_and_nearly_that(epsilon: float) -> None:
    design = warner_for_epsilon(epsilon)
    assert design.epsilon <= epsilon
    share = design.truth + 2.0**-20  # type: ignore[operator]
    assert math.log(share / (1 - share)) > epsilon - 1e-12


@cases("against", ["respondents", "epsilon"])
def test_the_plot_shows_these_numbers(against: Any) -> None:
    designs = {name: DESIGNS[name] for name in ("coins", "die")}
    analysis = PowerAnalysis(designs=designs, respondents=[100, 400], **TEST)
    axes = Figure().subplots()
    assert analysis.plot(axes, against=against) is axes
    found = analysis.curve(against)
    for drawn, line in zip(axes.lines, found.powers, strict=True):
        assert np.asarray(drawn.get_ydata()).tolist() == line.tolist()
        assert np.asarray(drawn.get_xdata()).tolist() == found.x.tolist()
    assert [text.get_text() for text in axes.get_legend().get_texts()] == list(found.lines)
    assert (axes.get_xlabel(), axes.get_ylabel()) == (found.x_label, "power")
    assert axes.get_xscale() == ("log" if against == "respondents" else "linear")
    assert axes.get_title() == "0.25 against 0.1, two-sided at 0.05"


def made(**options: Any) -> PowerAnalysis:
    return PowerAnalysis(**options)


@cases(
    ("make", "part"),
    [
        (lambda: made(designs={}, respondents=[9], **TEST), "designs must be designs"),
        (lambda: made(designs=[TwoCoins()], respondents=[9], **TEST), "designs must be designs"),
        (lambda: made(designs={"a": 1}, respondents=[9], **TEST), "designs must be designs"),
        (lambda: made(designs=DESIGNS, respondents=[], **TEST), "respondents must be a list"),
        (lambda: made(designs=DESIGNS, respondents=9, **TEST), "respondents must be a list"),
        (lambda: made(designs=DESIGNS, respondents=[0], **TEST), "respondents must be"),
        (lambda: made(designs=DESIGNS, respondents=[10**10], **TEST), "at most 10**9"),
        (
            lambda: made(designs=DESIGNS, respondents=[9], null=0.1, prevalence=0.1),
            "prevalence must differ",
        ),
        (
            lambda: made(designs=DESIGNS, respondents=[9], false_positive_rate=1, **TEST),
            "false_positive_rate must be",
        ),
        (lambda: made(designs=DESIGNS, respondents=[9], **TEST).curve("epsilon"), "finite epsilon"),
        (lambda: made(designs=DESIGNS, respondents=[9], **TEST).curve(UNKNOWN), "against must be"),
        (lambda: warner_for_epsilon(0), "epsilon must be from"),
        (lambda: warner_for_epsilon(math.nan), "epsilon must be"),
    ],
)
def test_what_has_no_power_is_refused(make: Any, part: str) -> None:
    with pytest.raises(ParameterError) as error:
        make()
    assert part in str(error.value)
