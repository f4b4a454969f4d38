"""Picture of the Markov quilt mechanism: the noise that hides one record, as the sequence grows."""

from __future__ import annotations

from pathlib import Path

from docs.pictures.style import BLUE, GRAY, INK, ORANGE, figure, save
from sfumato.pufferfish import MarkovChain, MarkovChainClass, MarkovQuilt

__all__ = ["draw"]

_LENGTHS = (3, 5, 10, 20, 30, 50, 100, 200, 500, 1000)


def draw(path: Path) -> None:
    """Draw the scales of group privacy, of both quilt mechanisms, and of independent records."""
    chain = MarkovChain(transition=[[0.9, 0.1], [0.4, 0.6]])
    models: dict[str, tuple[MarkovChain | MarkovChainClass, str]] = {
        "Markov quilt, exact": (chain, BLUE),
        "Markov quilt, by pi_min and eigengap": (MarkovChainClass.covering(chain), ORANGE),
    }
    drawn = figure(7, 3.4)
    axes = drawn.subplots()
    axes.plot(_LENGTHS, _LENGTHS, color=GRAY, label="group privacy")
    for label, (model, color) in models.items():
        scales = [MarkovQuilt(chain=model, length=n, lipschitz=1, epsilon=1.0).scale for n in _LENGTHS]
        axes.plot(_LENGTHS, scales, color=color, label=label)
    axes.axhline(1, color=INK, linestyle=":", label="independent records")
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_xlabel("records in the sequence")
    axes.set_ylabel("scale of the noise")
    axes.legend(frameon=False, loc="upper left")
    save(drawn, path)
