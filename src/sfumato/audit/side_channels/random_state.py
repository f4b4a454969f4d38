"""How far a run moves the state of a random generator, and whether it seeds it."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from typing import Any, Final, final

import numpy as np
from numpy.typing import NDArray

from sfumato import _check

__all__ = ["RANDOM_STATE", "RandomStateObserver"]

RANDOM_STATE: Final = "random state"
_WORDS: Final = 4  # of a stream, that no other place in it has
_SEARCHED: Final = (1 << 8, 1 << 12, 1 << 16)
_Stream = Callable[[Any, int], NDArray[np.uint64]]


@final
class RandomStateObserver:
    """How many random words a run takes from a generator that others use too.

    Who draws from the same generator afterwards, knowing its seed, sees where it stands. The states
    before and after show that without any seed: what the later one will give is searched in what the earlier
    one would have given.

    Parameters
    ----------
    generator : numpy Generator, RandomState, random.Random, or a module
        The modules ``numpy.random`` and ``random`` have a global one.

    Notes
    -----
    A word is what the generator makes at once, of 32 or 64 bits; half of one, or a second Gaussian number,
    that is saved for the next call counts as half a word less. A state that is not among the next 65,536
    words was seeded anew (or moved very far): what is seen then is a hash of it.

    The noise itself is not seen: whoever knows the seed of the noise knows the noise, and needs no audit.

    Examples
    --------
    >>> import numpy as np
    >>> generator = np.random.default_rng(1)
    >>> observer = RandomStateObserver(generator)
    >>> observer.start()
    >>> numbers = generator.random(3)
    >>> observer.stop()
    3.0
    """

    observes: str = RANDOM_STATE

    def __init__(self, generator: Any) -> None:
        self._state, self._saved, self._stream = _access(generator)
        kind = getattr(generator, "__name__", "") or f"the {type(generator).__name__}"
        self.name: str = f"words taken from {kind}"
        self._before: Any = None

    def start(self) -> None:
        """Note the state."""
        self._before = self._state()

    def stop(self) -> float | str:
        """Return how many words were taken since.

        Returns
        -------
        float or str
            A text with a hash where the state is not reached so.
        """
        before, after = self._before, self._state()
        if _equal(before, after):
            return 0.0
        coming = self._stream(after, _WORDS)
        for count in _SEARCHED:
            words = self._stream(before, count + _WORDS)
            for place in np.flatnonzero(words[:count] == coming[0]).tolist():
                if np.array_equal(words[place : place + _WORDS], coming):
                    return place + (self._saved(before) - self._saved(after)) / 2
        digest = hashlib.blake2b(coming.tobytes(), digest_size=8).hexdigest()
        return f"seeded anew: {digest}"


def _access(generator: Any) -> tuple[Callable[[], Any], Callable[[Any], int], _Stream]:
    """Return how to read the state, how many half words are saved in it, and the words that follow it."""
    if not hasattr(generator, "getstate") and not hasattr(generator, "get_state"):
        if not isinstance(generator, np.random.Generator):
            rule, remedy = "be a generator of numpy or of random", "pass numpy.random.default_rng()"
            _check.refuse_type("generator", rule, generator, remedy)
        bits = generator.bit_generator
        return (lambda: bits.state), lambda state: int(state.get("has_uint32", 0)), _words_of(type(bits))
    if hasattr(generator, "getstate"):  # the module `random`, or a `Random` of it
        return generator.getstate, lambda state: int(state[2] is not None), _python_words
    # the module `numpy.random`, or a `RandomState` of it
    words = _words_of(np.random.MT19937)
    return (
        lambda: generator.get_state(legacy=False),
        lambda state: int(state["has_gauss"]),
        lambda state, count: words({key: state[key] for key in ("bit_generator", "state")}, count),
    )


def _equal(state: Any, other: Any) -> bool:
    if isinstance(state, dict):
        return all(_equal(state[key], other[key]) for key in state)
    return np.array_equal(state, other) if isinstance(state, np.ndarray) else bool(state == other)


def _words_of(kind: type[Any]) -> _Stream:
    replica = kind(0)

    def words(state: Any, count: int) -> NDArray[np.uint64]:
        replica.state = state
        return np.asarray(replica.random_raw(count), dtype=np.uint64)

    return words


def _python_words(state: Any, count: int) -> NDArray[np.uint64]:
    """Return the next words of a `random.Random`, which is a Mersenne twister as numpy's is."""
    *key, place = state[1]
    twister = {"bit_generator": "MT19937", "state": {"key": np.array(key, np.uint32), "pos": place}}
    return _TWISTER(twister, count)


_TWISTER: Final = _words_of(np.random.MT19937)
