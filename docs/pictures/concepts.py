"""Pictures of concepts: noise and intervals, epsilon over steps, trade-off curves."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from docs.pictures.style import BLUE, GRAY, INK, ORANGE, figure, save
from sfumato.privacy import Gaussian, Laplace, PoissonSubsampled, PureDP

__all__ = ["epsilon_over_steps", "noise", "trade_off"]

DELTA = 1e-5


def noise(path: Path) -> None:
    """Draw how counts of 100 and of 101 are answered at epsilon 1/2: no ratio exceeds e^(1/2)."""
    drawn = figure(7, 3)
    axes = drawn.subplots()
    answers = np.arange(85, 117)
    for count, color in ((100, BLUE), (101, ORANGE)):
        weights = np.exp(-0.5 * np.abs(answers - count)) * np.tanh(0.25)
        shifted = answers + (count - 100.5) * 0.36
        axes.vlines(shifted, 0, weights, color=color, linewidth=4, label=f"{count} people")
    axes.set_xlabel("the answer that is given")
    axes.set_ylabel("probability")
    axes.legend(frameon=False)
    save(drawn, path)


def epsilon_over_steps(path: Path) -> None:
    """Draw the epsilon of a training run over its steps: composed as steps, and as a sum of epsilons."""
    drawn = figure(7, 3.2)
    axes = drawn.subplots()
    step = PoissonSubsampled(Gaussian(noise_multiplier=1.0), sampling_probability=0.01)
    counts = np.unique(np.geomspace(1, 3000, 24).astype(int))
    axes.plot(counts, [(step * int(n)).epsilon(DELTA) for n in counts], color=BLUE, label="composed exactly")
    single = step.epsilon(DELTA / 3000)
    axes.plot(counts, counts * single, color=GRAY, linestyle="--", label="sum of the steps' epsilons")
    axes.set_ylim(0, 8)
    axes.set_xlabel("steps (noise multiplier 1, one example in a hundred per batch)")
    axes.set_ylabel(f"epsilon at delta {DELTA:g}")
    axes.legend(frameon=False)
    save(drawn, path)


def trade_off(path: Path) -> None:
    """Draw the least false negative rate of any attack over its false positive rate, for three losses."""
    drawn = figure(5, 4.6)
    axes = drawn.subplots()
    rates = np.linspace(0, 1, 101)
    losses = {
        "Laplace noise, epsilon 1": (Laplace(1.0), BLUE),
        "Gaussian noise, mu 1": (Gaussian(1.0), ORANGE),
        "any 1-DP mechanism": (PureDP(1.0), GRAY),
    }
    for label, (loss, color) in losses.items():
        curve = [loss.trade_off(float(rate)) for rate in rates]
        axes.plot(rates, [getattr(value, "lower", value) for value in curve], color=color, label=label)
    axes.plot(rates, 1 - rates, color=INK, linewidth=0.8, linestyle=":", label="guessing")
    axes.set_xlabel("false positive rate of an attack")
    axes.set_ylabel("false negative rate, at least")
    axes.set_aspect("equal")
    axes.legend(frameon=False)
    save(drawn, path)
