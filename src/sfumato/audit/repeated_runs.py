"""Runs a mechanism of ours, or any callable, many times on one input."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sized
from typing import Any, TypeAlias

from sfumato import _check
from sfumato.audit.flattening import Raw, as_output_array
from sfumato.errors import ParameterError
from sfumato.mechanisms.base.mechanism import Mechanism
from sfumato.mechanisms.base.release import Release
from sfumato.numerics.randomness.source import Rng, random_source

__all__ = ["Run", "runner"]

Run: TypeAlias = Callable[[Any, int], Raw]
"""An input and a number of runs to that many outputs."""


def runner(mechanism: Any, *, batch: bool | None = None, rng: Rng = None) -> Run:
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

    Returns
    -------
    callable
        Where a callable without a batch form raises, the name of the error is its output: who sees the output
        sees that too.
    """
    if isinstance(mechanism, Mechanism):
        source = random_source(rng)
        return lambda data, size: as_output_array(mechanism.outputs(data, size, source))
    if not callable(mechanism):
        _check.refuse("mechanism", "be a Mechanism or a callable", mechanism, "pass f(data) or f(data, size)")
    if _takes_size(mechanism) if batch is None else batch:
        return lambda data, size: _takes_many(mechanism, data, size)
    return _OneByOne(mechanism)


def _takes_size(function: Callable[..., Any]) -> bool:
    try:
        parameters = list(inspect.signature(function).parameters.values())
    except (TypeError, ValueError):
        return False
    positional = [p for p in parameters if p.kind in {p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD}]
    required = [p for p in positional if p.default is p.empty]
    return len(required) == 2 or (len(positional) >= 2 and positional[1].name == "size")


def _takes_many(function: Callable[..., Any], data: Any, size: int) -> Raw:
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
    return as_output_array(outputs)


class _OneByOne:
    """Runs a function of the data alone; where it raises, the error's name is the output."""

    __slots__ = ("_calls", "_function", "_worked")

    def __init__(self, function: Callable[[Any], Any]) -> None:
        self._function = function
        self._calls = 0
        self._worked = False

    def __call__(self, data: Any, size: int) -> Raw:
        outputs: list[Any] = []
        last: Exception | None = None
        for _ in range(size):
            try:
                outputs.append(self._function(data))
                self._worked = True
            except Exception as error:  # what the data decides, the data's neighbor may decide otherwise
                outputs.append(f"raised {type(error).__name__}")
                last = error
        self._calls += 1
        if last is not None and self._calls > 1 and not self._worked:
            raise _failed(last, "it did so on both inputs: check the pairs") from last
        return as_output_array(outputs)


def _failed(error: Exception, remedy: str) -> ParameterError:
    what = f"{type(error).__name__}: {error}"
    return ParameterError(f"mechanism must accept the inputs of the pairs, it raised {what}; {remedy}")
