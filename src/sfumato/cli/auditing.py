"""``sfumato audit``: search for an event that refutes what a mechanism claims; no real data is touched."""

from __future__ import annotations

import json
from typing import Annotated, Any

import numpy as np
import typer

from sfumato import _check
from sfumato.audit.blackbox import audit as search
from sfumato.audit.blackbox import json_report
from sfumato.audit.floating_point import audit_precision
from sfumato.audit.input_pairs import InputPair
from sfumato.cli.input.arguments import AsJson
from sfumato.cli.naming import named

__all__ = ["VIOLATED", "audit"]

VIOLATED = 4
"""Exit code where the claim is refuted."""


def audit(
    target: Annotated[
        str, typer.Argument(metavar="MODULE:CALLABLE", help="What to run: f(data) or f(data, size).")
    ],
    *,
    epsilon: Annotated[float, typer.Option(help="The epsilon that is claimed.")],
    delta: Annotated[float, typer.Option(help="The delta that is claimed.")] = 0.0,
    pair: Annotated[
        list[str] | None,
        typer.Option(metavar="[FIRST,SECOND]", help="Two neighboring inputs as JSON; may be repeated."),
    ] = None,
    trials: Annotated[int, typer.Option(help="Runs on each input of each pair.")] = 1_000_000,
    confidence: Annotated[float, typer.Option(help="Of what is certified.")] = 0.999,
    batch: Annotated[
        bool | None,
        typer.Option("--batch/--no-batch", help="Whether it takes (data, size); seen from its parameters."),
    ] = None,
    precision: Annotated[
        bool, typer.Option("--precision", help="Also search for floats that one input cannot give.")
    ] = False,
    ignore: Annotated[
        list[str] | None,
        typer.Option(help="What of an output nobody sees: type, order, zero sign, message; may be repeated."),
    ] = None,
    observe: Annotated[
        list[str] | None,
        typer.Option(help="Look beside the output at: time, memory, random state; may be repeated."),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Search for an event that refutes a claim of (epsilon, delta)-DP.

    Parameters
    ----------
    target : str
        ``module:callable``, imported from the folder that the command runs in: ``f(data)`` or
        ``f(data, size)``.
    epsilon, delta : float
        What is claimed of it.
    pair : list of str or None
        Pairs of neighboring inputs, each a JSON list of two; None searches the usual ones.
    trials : int
        Runs on each input of each pair.
    confidence : float
        Of what is certified, between 0 and 1.
    batch : bool or None
        Whether the target takes ``(data, size)``; None looks at its parameters.
    precision : bool
        Also search for floats that one input can give and the other cannot.
    ignore : list of str or None
        What of an output is no event: ``type``, ``order``, ``zero sign`` or ``message``.
    observe : list of str or None
        What of a run is an event beside its output: ``time``, ``memory`` or ``random state``.
    as_json : bool
        Print one JSON object.

    Raises
    ------
    ParameterError
        If the target cannot be imported or called, or a parameter is out of range.
    typer.Exit
        With the code `VIOLATED` if the claim is refuted.

    Examples
    --------
    A function that adds no noise is refuted at once, and the exit code says so:

    >>> try:
    ...     audit("builtins:len", epsilon=1.0, pair=["[[1, 1], [1]]"], trials=1000)
    ... except typer.Exit as ended:
    ...     print("exit code", ended.exit_code)  # doctest: +ELLIPSIS
    epsilon 1 at delta 0: VIOLATED; at least 4.09 with confidence 0.999, by ...
    exit code 4
    """
    mechanism = named(target, metavar="MODULE:CALLABLE", example="my_package.counts:noisy_count")
    pairs = [_pair(text) for text in pair] if pair else None
    claim: dict[str, Any] = {"epsilon": epsilon, "delta": delta, "pairs": pairs}
    claim |= {"trials": trials, "confidence": confidence, "batch": batch}
    found = search(mechanism, **claim, ignore=ignore or (), observe=observe or ())
    bits = audit_precision(mechanism, **claim) if precision else None
    if as_json:
        typer.echo(json_report(found, bits))
    else:
        typer.echo(str(found))
        if bits is not None:
            typer.echo(str(bits))
    if found.violated or (bits is not None and bits.violated):
        raise typer.Exit(VIOLATED)


def _pair(text: str) -> InputPair:
    """Read two inputs; lists of one shape become arrays."""
    try:
        inputs = json.loads(text)
    except json.JSONDecodeError:
        inputs = None
    if not isinstance(inputs, list) or len(inputs) != 2:
        _check.refuse("pair", "be a JSON list of two inputs", text, "pass '[[1, 1], [1, 1, 1]]'")
    first, second = (_array(entry) for entry in inputs)
    return InputPair(first=first, second=second, name=" and ".join(map(json.dumps, inputs)))


def _array(value: Any) -> Any:
    try:
        return np.asarray(value) if isinstance(value, list) else value
    except ValueError:  # rows of several lengths
        return value
