"""Linear algebra on one thread: several that share busy cores wait for one another, and cost many times."""

from __future__ import annotations

import ctypes
import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any, Final

import numpy as np
import scipy.linalg

__all__ = ["one_thread"]

_NAMES: Final = ("scipy_openblas_{}_num_threads64_", "scipy_openblas_{}_num_threads")
_OTHER_NAMES: Final = ("openblas_{}_num_threads64_", "openblas_{}_num_threads")
_CHOSEN: Final = ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS")
_LOCK: Final = threading.Lock()
_entered: list[list[int]] = []


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
    libraries = _libraries()
    with _LOCK:
        _entered.append([get() for get, _ in libraries])
        for _, put in libraries:
            put(1)
    try:
        yield
    finally:
        with _LOCK:
            # What the first to enter saw lies lowest, and comes back with the last to leave.
            before = _entered.pop()
            if not _entered:
                for (_, put), number in zip(libraries, before, strict=True):
                    put(number)


@cache
def _libraries() -> list[tuple[Callable[[], int], Callable[[int], None]]]:
    """Return what reads and sets the threads of each OpenBLAS that numpy and scipy are linked with."""
    found: list[tuple[Callable[[], int], Callable[[int], None]]] = []
    linalg: Any = np.linalg
    compiled: Any = scipy.linalg
    for module in (getattr(linalg, "_umath_linalg", None), getattr(compiled, "_flapack", None)):
        path = getattr(module, "__file__", None)
        if path is None:
            continue
        try:
            library = ctypes.CDLL(path)
        except OSError:
            continue
        for name in (*_NAMES, *_OTHER_NAMES):
            try:
                get, put = getattr(library, name.format("get")), getattr(library, name.format("set"))
            except AttributeError:
                continue
            get.restype, put.argtypes, put.restype = ctypes.c_int, [ctypes.c_int], None
            found.append((get, put))
            break
    return found
