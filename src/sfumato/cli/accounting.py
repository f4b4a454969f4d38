"""``sfumato epsilon`` and ``sfumato calibrate``: price a loss, or choose its noise; no data is touched."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Mapping
from typing import Annotated, Final, TypeAlias

import typer

from sfumato import _check
from sfumato._wire import Format, canonical
from sfumato.cli.output.writing import finite_or_none, read_text
from sfumato.privacy._outward import text_above, text_below
from sfumato.privacy.calibration import calibrate as calibrated_noise
from sfumato.privacy.catalog import loss_from_json
from sfumato.privacy.leaves.gaussian import Gaussian
from sfumato.privacy.leaves.laplace import Laplace
from sfumato.privacy.loss import PrivacyLoss
from sfumato.privacy.nodes.poisson import PoissonSubsampled

__all__ = ["calibrate", "epsilon"]

_EPSILON: Final = Format("sfumato.epsilon", 1)
_CALIBRATION: Final = Format("sfumato.calibration", 1)

Delta: TypeAlias = Annotated[float, typer.Option(help="Delta, from 0 to below 1.")]
Sampling: TypeAlias = Annotated[
    float, typer.Option("--sampling-probability", help="Chance that a unit is in each step's Poisson sample.")
]
Steps: TypeAlias = Annotated[int, typer.Option(help="How often the mechanism runs.")]
AsJson: TypeAlias = Annotated[bool, typer.Option("--json", help="Print one JSON object.")]


def epsilon(
    loss: Annotated[
        str | None, typer.Argument(metavar="[LOSS]", help="File with a loss as JSON; '-' is standard input.")
    ] = None,
    *,
    gaussian: Annotated[float | None, typer.Option(help="Noise multiplier of a Gaussian mechanism.")] = None,
    laplace: Annotated[float | None, typer.Option(help="Noise multiplier of a Laplace mechanism.")] = None,
    sampling_probability: Sampling = 1.0,
    steps: Steps = 1,
    delta: Delta = 0.0,
    as_json: AsJson = False,
) -> None:
    """Print certified bounds on the epsilon of a privacy loss.

    Parameters
    ----------
    loss : str or None
        A file with a loss as JSON, as ``to_json`` writes it; ``-`` is standard input.
    gaussian, laplace : float or None
        Instead of a file: the noise multiplier of that mechanism, noise by sensitivity.
    sampling_probability : float
        Chance that a unit is in each step's Poisson sample.
    steps : int
        How often the mechanism runs.
    delta : float
        At which epsilon is stated, from 0 to below 1.
    as_json : bool
        Print one JSON object: both bounds, and the loss.

    Raises
    ------
    ParameterError
        If there is not exactly one mechanism, or a parameter is out of range.

    Examples
    --------
    >>> epsilon(gaussian=1.0, delta=1e-6)  # doctest: +ELLIPSIS
    epsilon 4.88656 at delta 1e-06 (between 4.88... and 4.88656)
    """
    noises = ((Gaussian, gaussian), (Laplace, laplace))
    given = [(leaf, noise) for leaf, noise in noises if noise is not None]
    if len(given) + (loss is not None) != 1:
        _check.refuse("LOSS", "be given, or one of --gaussian and --laplace", loss, "name one mechanism")
    if given:
        ((leaf, noise),) = given
        run = _run(leaf, noise, sampling_probability, steps)
    else:
        if sampling_probability != 1.0:
            _check.refuse(
                "sampling_probability", "be left out beside LOSS", sampling_probability, "the loss says how"
            )
        run = loss_from_json(_text(loss or "")) * steps
    lower, upper, tight = run.epsilon_interval(delta)
    if as_json:
        _print(_EPSILON, {"epsilon": upper, "lower": lower, "tight": tight, "delta": delta}, run)
        return
    shown = text_above(upper)
    typer.echo(f"epsilon {shown} at delta {delta:g} (between {text_below(lower)} and {shown})")


def calibrate(
    *,
    epsilon: Annotated[float, typer.Option(help="The epsilon that is wanted.")],
    delta: Delta = 0.0,
    laplace: Annotated[bool, typer.Option("--laplace", help="Laplace noise instead of Gaussian.")] = False,
    sampling_probability: Sampling = 1.0,
    steps: Steps = 1,
    as_json: AsJson = False,
) -> None:
    """Print the smallest noise multiplier whose certified epsilon is at most the one that is wanted.

    Parameters
    ----------
    epsilon : float
        The epsilon that is wanted.
    delta : float
        From 0 to below 1.
    laplace : bool
        Laplace noise instead of Gaussian.
    sampling_probability : float
        Chance that a unit is in each step's Poisson sample.
    steps : int
        How often the mechanism runs.
    as_json : bool
        Print one JSON object: the noise multiplier, what it costs, and the loss.

    Raises
    ------
    ParameterError
        If a parameter is out of range, or no noise meets the epsilon.

    Examples
    --------
    >>> calibrate(epsilon=1.0, delta=1e-6)
    noise multiplier 4.224843 for epsilon 1 at delta 1e-06
    """
    leaf = Laplace if laplace else Gaussian

    def make(noise: float) -> PrivacyLoss:
        return _run(leaf, noise, sampling_probability, steps)

    noise = calibrated_noise(make, epsilon=epsilon, delta=delta)
    if as_json:
        run = make(noise)
        facts = {"noise_multiplier": noise, "epsilon": run.epsilon(delta), "delta": delta}
        _print(_CALIBRATION, facts, run)
        return
    typer.echo(f"noise multiplier {text_above(noise, 7)} for epsilon {epsilon:g} at delta {delta:g}")


def _run(
    leaf: Callable[[float], PrivacyLoss], noise: float, sampling_probability: float, steps: int
) -> PrivacyLoss:
    step = leaf(noise)
    if sampling_probability != 1.0:
        step = PoissonSubsampled(step, sampling_probability)
    return step * steps


def _text(name: str) -> str:
    remedy = "pass a file that holds what to_json returned, or '-'"
    return sys.stdin.read() if name == "-" else read_text("LOSS", name, remedy)


def _print(kind: Format, facts: Mapping[str, object], loss: PrivacyLoss) -> None:
    """Print numbers and the loss as one JSON object; an infinite number becomes null."""
    numbers = {name: finite_or_none(value) for name, value in facts.items()}
    typer.echo(canonical(kind.wrap({**numbers, "loss": json.loads(loss.to_json())})))
