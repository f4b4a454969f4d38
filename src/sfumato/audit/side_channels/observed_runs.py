"""Runs one at a time, of two inputs in random order, with observers around each."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from typing import Any, final

import numpy as np

from sfumato.audit.flattening import Outputs, as_outputs
from sfumato.audit.input_pairs import InputPair
from sfumato.audit.repeated_runs import attempt, refuse_same_error
from sfumato.audit.side_channels.observers import Observer

__all__ = ["ObservedOutput", "ObservedRuns"]


@final
@dataclass(frozen=True, slots=True)
class ObservedOutput:
    """An output, with what was seen of the run that gave it.

    Parameters
    ----------
    observations : tuple
        A number or a text of each observer.
    output
        Of the mechanism.

    Examples
    --------
    >>> ObservedOutput((250,), 3.5)
    ObservedOutput(observations=(250,), output=3.5)
    """

    observations: tuple[Any, ...]
    output: Any


class ObservedRuns:
    """Runs two inputs equally often, a pair of runs at a time, in an order that a coin decides.

    What drifts on the machine, such as its clock rate, meets both inputs alike.

    Parameters
    ----------
    call : callable
        One run of one input.
    observers : sequence of Observer
        Started in this order, and stopped in the reverse one.
    ignored : collection of str
        What of an outcome is not looked at.
    coins : numpy Generator, optional
        What decides; made from the system's entropy unless given.
    """

    __slots__ = ("_call", "_coins", "_ignored", "_observers", "_warm")

    def __init__(
        self,
        call: Callable[[Any], Any],
        observers: Sequence[Observer],
        ignored: Collection[str],
        *,
        coins: np.random.Generator | None = None,
    ) -> None:
        self._call = call
        self._observers = list(observers)
        self._ignored = ignored
        self._coins = np.random.default_rng() if coins is None else coins
        self._warm: InputPair | None = None

    def __call__(self, pair: InputPair, size: int) -> tuple[Outputs, Outputs]:
        """Return that many outcomes of each input."""
        inputs = (pair.first, pair.second)
        outcomes: tuple[list[ObservedOutput], list[ObservedOutput]] = ([], [])
        if self._warm is not pair:  # the first runs fill caches
            self._warm = pair
            for data in (*inputs, *inputs):
                self._observe(data)
        for coin in (self._coins.random(size) < 0.5).tolist():
            for which in (1, 0) if coin else (0, 1):
                outcomes[which].append(self._observe(inputs[which]))
        refuse_same_error(outcome.output for each in outcomes for outcome in each)
        return as_outputs(outcomes[0], self._ignored), as_outputs(outcomes[1], self._ignored)

    def _observe(self, data: Any) -> ObservedOutput:
        for observer in self._observers:
            observer.start()
        output = attempt(self._call, data, self._ignored)
        seen = [observer.stop() for observer in reversed(self._observers)]
        return ObservedOutput(tuple(reversed(seen)), output)
