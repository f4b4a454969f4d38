"""Regret against epsilon: the numbers of `regret`, drawn."""

from __future__ import annotations

import numpy as np
import pytest

from sfumato.errors import ParameterError
from sfumato.games import ExponentialChoice, Game, regret, regret_curve
from sfumato.games.incentives import largest_gain

GAME = Game(
    types=range(3), alternatives=range(3), utilities=np.random.default_rng(1).random((3, 3)), agents=4
)


def test_the_numbers_are_those_of_regret() -> None:
    curve = regret_curve(GAME, epsilons=(2.0, 0.5))
    assert curve.exact
    for at, epsilon in enumerate((0.5, 2.0)):
        found = regret(ExponentialChoice(game=GAME, epsilon=epsilon), GAME)
        assert (curve.epsilons[at], curve.lower[at], curve.upper[at], curve.bound[at]) == (
            epsilon,
            found.gain.lower,
            found.gain.upper,
            found.bound,
        )
    assert str(curve).splitlines()[2].split() == ["2", f"{curve.lower[1]:.4f}", f"{curve.bound[1]:.4f}"]
    half = regret_curve(
        GAME, epsilons=(1.0,), mechanism=lambda epsilon: ExponentialChoice(game=GAME, epsilon=epsilon / 2)
    )
    assert half.bound[0] == regret_curve(GAME, epsilons=(0.5,)).bound[0]


def test_the_picture_says_whether_it_is_exact(monkeypatch: pytest.MonkeyPatch) -> None:
    curve = regret_curve(GAME, epsilons=(0.5, 2.0))
    ax = curve.plot()
    lines = {line.get_label(): line.get_ydata() for line in ax.get_lines()}
    assert list(lines) == ["in this game, exact", "theorem, any game"]
    assert lines["in this game, exact"] == pytest.approx(curve.lower)
    assert lines["theorem, any game"] == pytest.approx(curve.bound)
    assert (ax.get_xscale(), ax.get_yscale()) == ("log", "log")
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("epsilon", "largest gain of a lie")
    assert curve.plot(ax) is ax
    monkeypatch.setattr(largest_gain, "_ENUMERATED", 0)
    monkeypatch.setattr(largest_gain, "_SCREENED", 0)
    searched = regret_curve(GAME, epsilons=(1.0,))
    assert searched.plot().get_lines()[0].get_label() == "in this game, at least"
    assert str(searched).splitlines()[-1] == "by search: lies that gain more may exist"


def test_where_no_lie_gains_the_axis_is_linear() -> None:
    honest = Game(types="ab", alternatives="xy", utilities=[[1, 0], [0, 1]], agents=3)
    curve = regret_curve(honest, epsilons=(1.0,))
    assert curve.lower[0] < 0
    ax = curve.plot()
    assert ax.get_yscale() == "linear"
    assert ax.get_lines()[0].get_ydata().tolist() == [0.0]


def test_what_does_not_fit_is_refused() -> None:
    with pytest.raises(ParameterError, match="game must be a Game"):
        regret_curve(None, epsilons=(1.0,))  # type: ignore[arg-type]
    with pytest.raises(ParameterError, match="epsilons must be one or more"):
        regret_curve(GAME, epsilons=())
