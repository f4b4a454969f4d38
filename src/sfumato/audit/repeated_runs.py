"""Runs a mechanism of ours, or any callable, many times on one input."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Collection, Iterable, Sized
from typing import Any, TypeAlias

from sfumato import _check
from sfumato.audit.flattening import MESSAGE, Outputs, Raised, as_outputs
from sfumato.audit.input_pairs import InputPair
from sfumato.errors import ParameterError
from sfumato.mechanisms.base.mechanism import Mechanism
from sfumato.mechanisms.base.release import Release
from sfumato.numerics.randomness.source import Rng, random_source

__all__ = ["PairRun", "Run", "attempt", "in_turn", "refuse_same_error", "runner", "single_call"]

Run: TypeAlias = Callable[[Any, int], Outputs]
"""An input and a number of runs to that many outputs."""

PairRun: TypeAlias = Callable[[InputPair, int], tuple[Outputs, Outputs]]
"""Two inputs and a number of runs to that many outputs of each."""


def runner(
    mechanism: Any, *, batch: bool | None = None, rng: Rng = None, ignored: Collection[str] = ()
) -> Run:
    """Return how to run a mechanism many times.

    Parameters
    ----------
    mechanism : Mechanism or callable
        A callable takes the data, or the data and how many outputs to return.
    batch : bool, optional
        Whether it takes both; unless given, whether two of its positional parameters must be given, or the
        second is called ``size``.
    rng : None, int, numpy Generator or RandomSource
        Where a mechanism of ours draws from. A callable has its own randomness.
    ignored : collection of str
        What of an outcome is not looked at.

    Returns
    -------
    callable
        Where a callable without a batch form raises, the error is its output: who sees the output sees the
        error's class and message too.
    """
    if isinstance(mechanism, Mechanism):
        source = random_source(rng)
        return lambda data, size: as_outputs(mechanism.outputs(data, size, source), ignored)
    if _takes_many(mechanism, batch):
        return lambda data, size: as_outputs(_many(mechanism, data, size), ignored)
    return _OneByOne(mechanism, ignored)


def in_turn(run: Run) -> PairRun:
    """Return how to run both inputs of a pair: all runs of the first, then all of the second."""
    return lambda pair, size: (run(pair.first, size), run(pair.second, size))


def single_call(mechanism: Any, *, batch: bool | None = None, rng: Rng = None) -> Callable[[Any], Any]:
    """Return how to run a mechanism once on some data, as a caller does; its errors are raised.

    Parameters
    ----------
    mechanism, batch, rng
        As for `runner`.
    """
    if isinstance(mechanism, Mechanism):
        source = random_source(rng)
        return lambda data: mechanism.release(data, source)
    if _takes_many(mechanism, batch):
        return lambda data: _many(mechanism, data, 1)[0]
    called: Callable[[Any], Any] = mechanism
    return called


def attempt(call: Callable[[Any], Any], data: Any, ignored: Collection[str]) -> Any:
    """Return what a run gives: an output, or the error that it raises in place of one."""
    try:
        return call(data)
    except Exception as error:  # what the data decides, the data's neighbor may decide otherwise
        return Raised(type(error).__name__, "" if MESSAGE in ignored else str(error))


def refuse_same_error(outputs: Iterable[Any]) -> None:
    """Refuse outputs of both inputs that are all one error.

    Raises
    ------
    ParameterError
        If they are.
    """
    seen = set()
    for output in outputs:
        if not isinstance(output, Raised):
            return
        seen.add(output)
    if len(seen) == 1:
        (error,) = seen
        raise _failed(f"{error.kind}: {error.message}", "it did so on both inputs: check the pairs")


def _takes_many(mechanism: Any, batch: bool | None) -> bool:
    if not callable(mechanism):
        _check.refuse("mechanism", "be a Mechanism or a callable", mechanism, "pass f(data) or f(data, size)")
    return _takes_size(mechanism) if batch is None else batch


def _takes_size(function: Callable[..., Any]) -> bool:
    try:
        parameters = list(inspect.signature(function).parameters.values())
    except (TypeError, ValueError):
        return False
    positional = [p for p in parameters if p.kind in {p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD}]
    required = [p for p in positional if p.default is p.empty]
    return len(required) == 2 or (len(positional) >= 2 and positional[1].name == "size")


def _many(function: Callable[..., Any], data: Any, size: int) -> Any:
    try:
        outputs = function(data, size)
    except Exception as error:
        what = f"{type(error).__name__}: {error}"
        raise _failed(what, "if it takes the data alone, pass batch=False") from error
    if isinstance(outputs, Release):
        outputs = outputs.value
    if not isinstance(outputs, Sized) or len(outputs) != size:
        given = len(outputs) if isinstance(outputs, Sized) else type(outputs).__name__
        rule = f"return {size} outputs in its batch form"
        _check.refuse_state(
            "mechanism", rule, f"it returned {given}", "if it takes the data alone, pass batch=False"
        )
    return outputs


class _OneByOne:
    """Runs a function of the data alone; where it raises, the error is the output."""

    __slots__ = ("_calls", "_errors", "_function", "_ignored", "_worked")

    def __init__(self, function: Callable[[Any], Any], ignored: Collection[str]) -> None:
        self._function = function
        self._ignored = ignored
        self._calls = 0
        self._errors: set[Raised] = set()
        self._worked = False

    def __call__(self, data: Any, size: int) -> Outputs:
        outputs = [attempt(self._function, data, self._ignored) for _ in range(size)]
        errors = {output for output in outputs if isinstance(output, Raised)}
        self._worked |= any(not isinstance(output, Raised) for output in outputs)
        self._errors |= errors
        self._calls += 1
        if errors and self._calls > 1 and not self._worked:
            refuse_same_error(self._errors)
        return as_outputs(outputs, self._ignored)


def _failed(what: str, remedy: str) -> ParameterError:
    return ParameterError(f"mechanism must accept the inputs of the pairs, it raised {what}; {remedy}")
