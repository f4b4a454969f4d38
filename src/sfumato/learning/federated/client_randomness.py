"""Random numbers of each client's own, so that no client's data moves another's."""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
import torch

__all__ = ["own_randomness"]


@contextmanager
def own_randomness(words: np.ndarray[tuple[int], np.dtype[np.uint64]]) -> Iterator[None]:
    """Let the global generators of torch, numpy and Python begin anew, and put them back afterwards.

    Parameters
    ----------
    words : ndarray of uint64, shape (3,)
        What they begin from.

    Notes
    -----
    If all clients drew from one stream, how much the first draws would shift what the next ones do: with a
    known seed, removing one client would change the contributions of all after it.
    """
    python, legacy = random.getstate(), np.random.get_state()
    torch_state, number = torch.get_rng_state(), int(words[0] >> np.uint64(1))
    devices = torch.cuda.get_rng_state_all() if torch.cuda.is_initialized() else []
    # torch.manual_seed would queue a call for every device that is not in use, with a traceback each.
    torch.default_generator.manual_seed(number)
    if devices:
        torch.cuda.manual_seed_all(number)
    np.random.seed([int(words[1]) & 0xFFFFFFFF, int(words[1]) >> 32])
    random.seed(int(words[2]))
    try:
        yield
    finally:
        torch.set_rng_state(torch_state)
        if devices:
            torch.cuda.set_rng_state_all(devices)
        random.setstate(python)
        np.random.set_state(legacy)
