"""Runs a mechanism of ours, or any callable, many times on one input."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Collection, Sized
from typing import Any, TypeAlias

from sfumato import _check
from sfumato.audit.flattening import MESSAGE, Outputs, Raised, as_outputs
from sfumato.errors import ParameterError
from sfumato.mechanisms.base.mechanism import Mechanism
from sfumato.mechanisms.base.release import Release
from sfumato.numerics.randomness.source import Rng, random_source

__all__ = ["Run", "runner"]

Run: TypeAlias = Callable[[Any, int], Outputs]
"""An input and a number of runs to that many outputs."""


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
    if not callable(mechanism):
        _check.refuse("mechanism", "be a Mechanism or a callable", mechanism, "pass f(data) or f(data, size)")
    if _takes_size(mechanism) if batch is None else batch:
        return lambda data, size: _takes_many(mechanism, data, size, ignored)
    return _OneByOne(mechanism, ignored)


def _takes_size(function: Callable[..., Any]) -> bool:
    try:
        parameters = list(inspect.signature(function).parameters.values())
    except (TypeError, ValueError):
        return False
    positional = [p for p in parameters if p.kind in {p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD}]
    required = [p for p in positional if p.default is p.empty]
    return len(required) == 2 or (len(positional) >= 2 and positional[1].name == "size")


def _takes_many(function: Callable[..., Any], data: Any, size: int, ignored: Collection[str]) -> Outputs:
    try:
        outputs = function(data, size)
    except Exception as error:
        raise _failed(error, "if it takes the data alone, pass batch=False") from error
    if isinstance(outputs, Release):
        outputs = outputs.value
    if not isinstance(outputs, Sized) or len(outputs) != size:
        given = len(outputs) if isinstance(outputs, Sized) else type(outputs).__name__
        rule = f"return {size} outputs in its batch form"
        _check.refuse_state(
            "mechanism", rule, f"it returned {given}", "if it takes the data alone, pass batch=False"
        )
    return as_outputs(outputs, ignored)


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
        outputs: list[Any] = []
        last: Exception | None = None
        for _ in range(size):
            try:
                outputs.append(self._function(data))
                self._worked = True
            except Exception as error:  # what the data decides, the data's neighbor may decide otherwise
                outputs.append(Raised(type(error).__name__, "" if MESSAGE in self._ignored else str(error)))
                last = error
        self._errors |= {output for output in outputs if isinstance(output, Raised)}
        self._calls += 1
        if last is not None and self._calls > 1 and not self._worked and len(self._errors) == 1:
            raise _failed(last, "it did so on both inputs: check the pairs") from last
        return as_outputs(outputs, self._ignored)


def _failed(error: Exception, remedy: str) -> ParameterError:
    what = f"{type(error).__name__}: {error}"
    return ParameterError(f"mechanism must accept the inputs of the pairs, it raised {what}; {remedy}")
