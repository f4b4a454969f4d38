"""Sources of words for tests."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np
from numpy.typing import NDArray


class ListedSource:
    """Gives listed words, counts its calls, and fails when they run out."""

    simulated = True

    def __init__(self, words: Iterable[int]) -> None:
        self._words: Iterator[int] = iter(words)
        self.requests: list[int] = []

    def words(self, count: int) -> NDArray[np.uint64]:
        self.requests.append(count)
        given = [next(self._words) for _ in range(count)]
        return np.array(given, np.uint64)

    def bytes(self, count: int) -> bytes:
        return self.words(-(-count // 8)).tobytes()[:count]
