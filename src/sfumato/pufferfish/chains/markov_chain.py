"""A Markov chain on finitely many states, as the model of a sequence of records."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from sfumato import _check

__all__ = ["MarkovChain", "probabilities"]

_SUM_TOLERANCE = 1e-9


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class MarkovChain:
    """A chain with known transition probabilities, and a known or the stationary start.

    Parameters
    ----------
    transition : array of shape (states, states)
        ``transition[x, y]`` is the probability to go from state x to state y; rows sum to one.
    start : array of shape (states,), optional
        Distribution of the first record; the stationary one unless given, for which the chain must be
        irreducible.

    Raises
    ------
    ParameterError
        If a row or the start is no distribution, or the start is left open and the chain is reducible.

    Notes
    -----
    The chain is an assumption about the data, public and made without them. `fitted` takes sequences only
    where they are declared public.

    Examples
    --------
    >>> chain = MarkovChain(transition=[[0.9, 0.1], [0.4, 0.6]])
    >>> chain.states, chain.stationary.round(3).tolist()
    (2, [0.8, 0.2])
    """

    transition: Any
    start: Any = None

    def __post_init__(self) -> None:
        matrix = probabilities("transition", self.transition, axes=2)
        if matrix.shape[0] != matrix.shape[1]:
            _check.refuse_state(
                "transition", "be square", "it is not", "give a row and a column to each state"
            )
        object.__setattr__(self, "transition", matrix)
        if self.start is not None:
            start = probabilities("start", self.start, axes=1)
            if start.size != matrix.shape[0]:
                rule = f"have {matrix.shape[0]} entries"
                _check.refuse_state("start", rule, f"it has {start.size}", "give one to each state")
            object.__setattr__(self, "start", start)
        elif not self.irreducible:
            _check.refuse_state(
                "start",
                "be given for a reducible chain",
                "it is None",
                "pass start=, or transitions under which every state reaches every other",
            )

    def __eq__(self, other: object) -> bool:
        return isinstance(other, MarkovChain) and self.digest == other.digest

    def __hash__(self) -> int:
        return hash(self.digest)

    def __repr__(self) -> str:
        return f"MarkovChain(states={self.states}, start={'stationary' if self.start is None else 'given'})"

    @classmethod
    def fitted(
        cls, sequences: Iterable[Sequence[int]], *, states: int, public: bool, pseudocount: float = 1.0
    ) -> MarkovChain:
        """Return the chain with the transition frequencies of public sequences, and a stationary start.

        Parameters
        ----------
        sequences : iterable of sequences of int
            States from 0 on.
        states : int
        public : bool
            The caller's word that none of the sequences is protected. False is refused: a chain fitted on
            the protected rows is an answer about them, and the guarantee would be about the answer.
        pseudocount : float
            What is added to each count.

        Returns
        -------
        MarkovChain

        Raises
        ------
        ParameterError
            If the sequences are not declared public, or are no sequences of states.

        Examples
        --------
        >>> MarkovChain.fitted([[0, 0, 1, 0]], states=2, public=True).transition.tolist()
        [[0.5, 0.5], [0.6666666666666666, 0.3333333333333333]]
        """
        if public is not True:
            _check.refuse(
                "public",
                "be True: a chain fitted on protected rows voids the guarantee",
                public,
                "fit on public sequences, or state a class that was chosen without the data",
            )
        states = _check.integer("states", states, minimum=1)
        counts = np.full((states, states), _check.positive("pseudocount", pseudocount))
        for sequence in sequences:
            row = np.asarray(sequence)
            if row.ndim != 1 or row.dtype.kind not in "iu" or (row.size and not _inside(row, states)):
                rule = f"be sequences of integers from 0 to {states - 1}"
                _check.refuse_state("sequences", rule, "one is not", "number the states from 0 on")
            np.add.at(counts, (row[:-1], row[1:]), 1.0)
        return cls(transition=counts / counts.sum(axis=1, keepdims=True))

    @property
    def states(self) -> int:
        """How many states there are."""
        return int(self.transition.shape[0])

    @property
    def digest(self) -> str:
        """A SHA-256 of the exact probabilities, in hexadecimal: equal chains have equal digests."""
        content = hashlib.sha256(b"markov-chain" + self.transition.shape[0].to_bytes(8, "big"))
        content.update(self.transition.astype("<f8").tobytes())
        if self.start is not None:
            content.update(b"start" + self.start.astype("<f8").tobytes())
        return content.hexdigest()

    @property
    def irreducible(self) -> bool:
        """Whether every state reaches every other."""
        reached = (self.transition > 0) | np.eye(self.states, dtype=bool)
        for _ in range(self.states.bit_length()):
            reached = (reached.astype(np.float64) @ reached.astype(np.float64)) > 0
        return bool(reached.all())

    @property
    def stationary(self) -> NDArray[np.float64]:
        """The stationary distribution, entry by entry to a relative error of states^3 roundings at most.

        Raises
        ------
        ParameterError
            If the chain is reducible.

        Notes
        -----
        By the elimination of Grassmann, Taksar and Heyman (Operations Research 33, 1985), which subtracts
        nothing.
        """
        if not self.irreducible:
            _check.refuse_state(
                "transition",
                "be irreducible",
                "some state never reaches another",
                "the stationary distribution is not unique: state start=",
            )
        work = np.array(self.transition)
        for last in range(self.states - 1, 0, -1):
            work[:last, last] /= work[last, :last].sum()
            work[:last, :last] += np.outer(work[:last, last], work[last, :last])
        weights = np.ones(self.states)
        for state in range(1, self.states):
            weights[state] = weights[:state] @ work[:state, state]
        return np.asarray(weights / weights.sum(), dtype=np.float64)

    def describe(self) -> str:
        """Return the model in words.

        Returns
        -------
        str
        """
        start = "the stationary start" if self.start is None else "a given start"
        return f"a Markov chain of {self.states} states with {start}"


def probabilities(name: str, value: Any, *, axes: int) -> NDArray[np.float64]:
    """Return a distribution, or a matrix whose rows are distributions, read-only; refuse others."""
    try:
        array = np.array(value, dtype=np.float64)
    except (TypeError, ValueError):
        _check.refuse_type(name, "be an array of probabilities", value, "pass nested lists or an array")
    if array.ndim != axes or not array.size:
        rule = f"have {axes} {'axis' if axes == 1 else 'axes'} and an entry"
        _check.refuse_type(name, rule, value, "pass one probability for each state")
    if not bool(np.all((array >= 0) & (array <= 1 + _SUM_TOLERANCE))):
        _check.refuse_state(name, "have entries from 0 to 1", "some entry is outside", "pass probabilities")
    sums = array.sum(axis=-1, keepdims=True)
    if bool(np.any(np.abs(sums - 1) > _SUM_TOLERANCE)):
        if axes == 1:
            _check.refuse_state(name, "sum to one", "it does not", "divide by the sum")
        _check.refuse_state(
            name, "have rows that sum to one", "some row does not", "divide each row by its sum"
        )
    array = np.asarray(array / sums, dtype=np.float64)
    array.flags.writeable = False
    return array


def _inside(row: NDArray[Any], states: int) -> bool:
    return bool(row.min() >= 0 and row.max() < states)
