"""``sfumato epsilon`` and ``sfumato calibrate``: price a loss, or choose its noise; no data is touched."""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Annotated, Final, TypeAlias, TypeVar

import typer

from sfumato import _check
from sfumato._wire import Format, canonical
from sfumato.cli.input.arguments import AsJson
from sfumato.cli.output.writing import finite_or_none, read_text
from sfumato.cli.run_options import RunOptions, Sampler, number, plus
from sfumato.errors import ParameterError, UnsupportedView
from sfumato.privacy._outward import above, text_above, text_below
from sfumato.privacy.calibration import calibrate as calibrated_noise
from sfumato.privacy.catalog import loss_from_json
from sfumato.privacy.conversion import rdp_epsilon
from sfumato.privacy.leaves.gaussian import Gaussian
from sfumato.privacy.leaves.laplace import Laplace
from sfumato.privacy.loss import PrivacyLoss, compose
from sfumato.privacy.neighboring import Neighboring

__all__ = ["calibrate", "epsilon"]

T = TypeVar("T")
_EPSILON: Final = Format("sfumato.epsilon", 1)
_CALIBRATION: Final = Format("sfumato.calibration", 1)
_RATE: Final = 0.05

Delta: TypeAlias = Annotated[str, typer.Option(metavar="D", help="Delta, from 0 to below 1.")]
Relation: TypeAlias = Annotated[
    Neighboring | None, typer.Option("--neighboring", help="What changes between neighboring datasets.")
]
Sampled: TypeAlias = Annotated[
    Sampler | None, typer.Option("--sampler", help="How the units of a step are chosen.")
]
Sampling: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--sampling-probability", metavar="Q", help="Chance that a unit is in a step, such as 256/60000."
    ),
]
Steps: TypeAlias = Annotated[
    str | None, typer.Option("--steps", metavar="N", help="How often the mechanism runs; 1e4 is a number.")
]
Epochs: TypeAlias = Annotated[
    str | None, typer.Option("--epochs", metavar="N", help="Instead of --steps: passes over the examples.")
]
BatchSize: TypeAlias = Annotated[
    str | None, typer.Option("--batch-size", metavar="B", help="Units of a step, on average.")
]
Examples: TypeAlias = Annotated[
    str | None, typer.Option("--examples", metavar="N", help="Units in all, a public number.")
]


def epsilon(
    loss: Annotated[
        list[str] | None,
        typer.Argument(metavar="[LOSS]...", help="Files with losses as JSON; '-' is standard input."),
    ] = None,
    *,
    gaussian: Annotated[
        list[str] | None, typer.Option(metavar="Z", help="Noise multiplier of Gaussian noise; repeatable.")
    ] = None,
    laplace: Annotated[
        list[str] | None, typer.Option(metavar="Z", help="Noise multiplier of Laplace noise; repeatable.")
    ] = None,
    further: Annotated[
        list[str] | None,
        typer.Option(
            "--plus",
            metavar="KIND=Z[,steps=N][,sampling=Q]",
            help="One more, with steps of its own: gaussian, laplace, gaussian-dp, pure; repeatable.",
        ),
    ] = None,
    neighboring: Relation = None,
    sampler: Sampled = None,
    sampling_probability: Sampling = None,
    steps: Steps = None,
    epochs: Epochs = None,
    batch_size: BatchSize = None,
    examples: Examples = None,
    delta: Delta = "0",
    at: Annotated[
        str | None, typer.Option("--epsilon", metavar="E", help="Print the delta at this epsilon instead.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Print certified bounds on the epsilon of mechanisms, and all that the number assumes.

    Parameters
    ----------
    loss : list of str or None
        Files with losses as JSON, as ``to_json`` writes them; ``-`` is standard input.
    gaussian, laplace, further : list of str or None
        Noise multipliers, noise by sensitivity; all mechanisms together are priced.
    neighboring, sampler, sampling_probability, steps, epochs, batch_size, examples
        See `RunOptions`.
    delta : str
        At which epsilon is stated, from 0 to below 1.
    at : str or None
        An epsilon, at which delta is stated instead.
    as_json : bool
        Print one JSON object: both bounds, what is beside them, and the loss.

    Raises
    ------
    ParameterError
        If there is no mechanism, or a parameter is out of range.

    Examples
    --------
    >>> line = {"epochs": "15", "batch_size": "250", "examples": "60000"}
    >>> epsilon(gaussian=["1.3"], **line, delta="1e-5")  # doctest: +ELLIPSIS
    epsilon 0.85321... at delta 1e-05 (between 0.852... and 0.85321...)
    by Rényi DP the same run is epsilon 0.94220...
    """
    run = RunOptions(
        neighboring=neighboring,
        sampler=sampler,
        sampling_probability=sampling_probability,
        steps=steps,
        epochs=epochs,
        batch_size=batch_size,
        examples=examples,
    )
    made = [run.loss(Gaussian, number("--gaussian", each)) for each in gaussian or ()]
    made += [run.loss(Laplace, number("--laplace", each)) for each in laplace or ()]
    if loss and not made and (run.chosen is not Sampler.NONE or run.neighboring is not None):
        _check.refuse_state(
            "LOSS", "come without sampling", "it is given", "the loss says how it was sampled"
        )
    made += [loss_from_json(_text(name)) * (1 if made else run.count) for name in loss or ()]
    made += plus(further or (), run)
    if not made:
        _check.refuse(
            "LOSS", "be given, or one of --gaussian, --laplace and --plus", None, "name a mechanism"
        )
    priced, wanted = compose(made), number("--delta", delta)
    if at is not None:
        _delta_at(priced, number("--epsilon", at), as_json=as_json)
        return
    lower, upper, tight = priced.epsilon_interval(wanted)
    beside = dict(_beside(priced, wanted))
    assumed = [] if loss else list(run.assumptions())
    if as_json:
        facts: dict[str, object] = {
            "epsilon": upper,
            "lower": lower,
            "tight": tight,
            "delta": wanted,
            **beside,
        }
        facts |= {"power": _power(upper, wanted), "assumptions": assumed}
        _print(_EPSILON, facts, priced)
        return
    shown = text_above(upper)
    typer.echo(f"epsilon {shown} at delta {wanted:g} (between {text_below(lower)} and {shown})")
    for line in _lines(upper, wanted, beside, assumed):
        typer.echo(line)


def calibrate(
    *,
    epsilon: Annotated[str, typer.Option(metavar="E", help="The epsilon that is wanted.")],
    delta: Delta = "0",
    laplace: Annotated[bool, typer.Option("--laplace", help="Laplace noise instead of Gaussian.")] = False,
    neighboring: Relation = None,
    sampler: Sampled = None,
    sampling_probability: Sampling = None,
    steps: Steps = None,
    epochs: Epochs = None,
    batch_size: BatchSize = None,
    examples: Examples = None,
    as_json: AsJson = False,
) -> None:
    """Print the smallest noise multiplier whose certified epsilon is at most the wanted one.

    Parameters
    ----------
    epsilon, delta : str
        What is wanted.
    laplace : bool
        Laplace noise instead of Gaussian.
    neighboring, sampler, sampling_probability, steps, epochs, batch_size, examples
        See `RunOptions`.
    as_json : bool
        Print one JSON object: the noise multiplier, what it costs, and the loss.

    Raises
    ------
    ParameterError
        If a parameter is out of range, or no noise meets the epsilon.

    Examples
    --------
    >>> calibrate(epsilon="1", delta="1e-6")
    noise multiplier 4.224843 for epsilon 1 at delta 1e-06
    """
    run = RunOptions(
        neighboring=neighboring,
        sampler=sampler,
        sampling_probability=sampling_probability,
        steps=steps,
        epochs=epochs,
        batch_size=batch_size,
        examples=examples,
    )
    leaf = Laplace if laplace else Gaussian
    wanted, at = number("--epsilon", epsilon), number("--delta", delta)
    noise = calibrated_noise(lambda noise: run.loss(leaf, noise), epsilon=wanted, delta=at)
    if as_json:
        made = run.loss(leaf, noise)
        _print(_CALIBRATION, {"noise_multiplier": noise, "epsilon": made.epsilon(at), "delta": at}, made)
        return
    typer.echo(f"noise multiplier {text_above(noise, 7)} for epsilon {wanted:g} at delta {at:g}")


def _delta_at(loss: PrivacyLoss, epsilon: float, *, as_json: bool) -> None:
    lower, upper, tight = loss.delta_interval(epsilon)
    if as_json:
        _print(_EPSILON, {"epsilon": epsilon, "delta": upper, "lower_delta": lower, "tight": tight}, loss)
        return
    shown = text_above(upper)
    typer.echo(f"delta {shown} at epsilon {epsilon:g} (between {text_below(lower)} and {shown})")


def _beside(loss: PrivacyLoss, delta: float) -> Iterator[tuple[str, float | None]]:
    """Yield the same loss in other notions, each an upper bound; None where no theorem gives one."""
    zcdp, gdp = _known(loss.zcdp), _known(loss.gdp)
    yield "rho", None if zcdp is None or zcdp.delta else _finite(zcdp.rho)
    yield "mu", None if gdp is None or gdp.delta else _finite(gdp.mu)
    proven = None if delta <= 0.0 else _known(lambda: rdp_epsilon(loss.rdp_curve, math.log(delta)))
    yield "rdp_epsilon", None if proven is None else _finite(proven)


def _known(read: Callable[[], T]) -> T | None:
    try:
        return read()
    except (UnsupportedView, ParameterError):
        return None


def _finite(value: float) -> float | None:
    return float(value) if math.isfinite(value) else None


def _power(epsilon: float, delta: float) -> float:
    """Return the power that no test of membership exceeds, by Kairouz, Oh, Viswanath (2015), Theorem 2.1."""
    if epsilon == math.inf:
        return 1.0
    grown = _RATE * math.exp(min(epsilon, 700.0)) + delta
    return min(1.0, above(grown), above(1.0 - math.exp(-epsilon) * (1.0 - delta - _RATE)))


def _lines(
    epsilon: float, delta: float, beside: Mapping[str, float | None], assumed: Sequence[str]
) -> Iterator[str]:
    if (renyi := beside["rdp_epsilon"]) is not None:
        yield (
            f"by Rényi DP the same run is epsilon {text_above(renyi)}: moments accountants print that larger "
            "number; it is looser, for it forgets all of the distribution but its moments"
        )
    notions = [f"{name} {text_above(value)}" for name in ("rho", "mu") if (value := beside[name]) is not None]
    if notions:
        yield f"in other notions: {', '.join(notions)} (zCDP's rho, Gaussian DP's mu)"
    if epsilon == math.inf:
        yield "no finite epsilon holds at this delta: pass a larger --delta"
    else:
        yield (
            f"meaning: who sees all outputs and knows everybody else, and takes at most {_RATE:.0%} of the "
            f"absent for present, recognises at most {text_above(100 * _power(epsilon, delta), 3)} % of the "
            "present"
        )
    if assumed:
        yield "assumed:"
        yield from (f"- {line}" for line in assumed)


def _text(name: str) -> str:
    remedy = "pass a file that holds what to_json returned, or '-'"
    return sys.stdin.read() if name == "-" else read_text("LOSS", name, remedy)


def _print(kind: Format, facts: Mapping[str, object], loss: PrivacyLoss) -> None:
    """Print numbers and the loss as one JSON object; an infinite number becomes null."""
    numbers = {name: finite_or_none(value) for name, value in facts.items()}
    typer.echo(canonical(kind.wrap({**numbers, "loss": json.loads(loss.to_json())})))
