"""Linear algebra on one thread: several that share busy cores wait for one another, and cost many times."""

from __future__ import annotations

import ctypes
import os
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from typing import Final, TypeAlias

__all__ = ["one_thread"]

_NAMES: Final = ("scipy_openblas_{}_num_threads64_", "scipy_openblas_{}_num_threads")
_OTHER_NAMES: Final = ("openblas_{}_num_threads64_", "openblas_{}_num_threads")
_CHOSEN: Final = ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS")
_MODULES: Final = ("numpy.linalg._umath_linalg", "scipy.linalg._flapack")
"""Compiled modules that are linked with an OpenBLAS each; one that nobody has loaded computes nothing."""
_LOCK: Final = threading.Lock()
_Get: TypeAlias = Callable[[], int]
_Put: TypeAlias = Callable[[int], None]
_inside: list[object] = []
_before: list[tuple[_Put, int]] = []
"""How many threads each library had when the first came inside, or when it was loaded."""


@contextmanager
def one_thread() -> Iterator[None]:
    """Let numpy's and scipy's OpenBLAS compute on one thread; as a context, or as a function's decorator.

    Notes
    -----
    The number of threads belongs to the process: others compute on one thread too, until the last context is
    left. It stands as it is where the environment sets ``OPENBLAS_NUM_THREADS`` or ``OMP_NUM_THREADS``, and
    where there is another library than OpenBLAS. Results no longer depend on the number of cores.

    Examples
    --------
    >>> import numpy as np
    >>> with one_thread():
    ...     values = np.linalg.eigvalsh(np.eye(3))
    >>> values.tolist()
    [1.0, 1.0, 1.0]
    """
    if any(os.environ.get(name) for name in _CHOSEN):
        yield
        return
    with _LOCK:
        for get, put in _libraries():
            if not any(put == known for known, _ in _before):
                _before.append((put, get()))
            put(1)
        _inside.append(None)
    try:
        yield
    finally:
        with _LOCK:
            _inside.pop()
            while not _inside and _before:
                put, number = _before.pop()
                put(number)


def _libraries() -> list[tuple[_Get, _Put]]:
    """Return what reads and sets the threads of each OpenBLAS that numpy and scipy have loaded."""
    files = [getattr(sys.modules.get(name), "__file__", None) for name in _MODULES]
    return [found for path in files if path is not None and (found := _library(path))]


@cache
def _library(path: str) -> tuple[_Get, _Put] | None:
    """Return the same of the library that a compiled module is linked with, or None where there is none."""
    try:
        library = ctypes.CDLL(path)
    except OSError:
        return None
    for name in (*_NAMES, *_OTHER_NAMES):
        try:
            get, put = getattr(library, name.format("get")), getattr(library, name.format("set"))
        except AttributeError:
            continue
        get.restype, put.argtypes, put.restype = ctypes.c_int, [ctypes.c_int], None
        return get, put
    return None
