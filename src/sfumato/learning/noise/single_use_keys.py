"""Secrets that are for one run: the key of its noise, and the seed of its batches."""

from __future__ import annotations

import hashlib
import threading
import weakref

from sfumato import _check
from sfumato.learning.noise.noise import Noise
from sfumato.learning.sampling.sampler import Sampler
from sfumato.learning.sampling.seed import Seed

__all__ = ["bind_to_run", "check_unbound"]

_LOCK = threading.Lock()
_OWNERS: dict[bytes, str] = {}
_KEYLESS: weakref.WeakKeyDictionary[Noise, str] = weakref.WeakKeyDictionary()


def check_unbound(owner: str, *, noise: Noise, sampler: Sampler) -> None:
    """Refuse noise and batches that another run of this process has; see `bind_to_run`."""
    _bind(owner, noise, sampler, keep=False)


def bind_to_run(owner: str, *, noise: Noise, sampler: Sampler) -> None:
    """Bind noise and batches to a run, before it draws any; refuse what another run of this process has.

    Parameters
    ----------
    owner : str
        Of the run: the same when it is taken up again, and no other's.
    noise : Noise
    sampler : Sampler

    Raises
    ------
    ParameterError
        If the key or the seed is another run's. Simulations may share theirs.

    Notes
    -----
    Guarantee: within this process, the losses of two runs may be added. Their sum supposes that what they
    draw is independent. Of two sums with one noise the difference has none; and two steps on one Poisson
    sample are one sample of their composition, which costs more than two samples of a step each. Another
    process that is given the same bytes is not seen.
    """
    _bind(owner, noise, sampler, keep=True)


def _bind(owner: str, noise: Noise, sampler: Sampler, *, keep: bool) -> None:
    secrets = {"noise": None if noise.simulated else getattr(noise, "key", None)}
    secrets["sampler"] = None if sampler.simulated else Seed.of(sampler.seed).reveal()
    marks = {
        name: hashlib.sha256(f"sfumato run {name}: ".encode() + secret).digest()
        for name, secret in secrets.items()
        if isinstance(secret, bytes)
    }
    with _LOCK:
        bound = {name: _OWNERS.get(mark, owner) for name, mark in marks.items()}
        keyless = "noise" not in marks and not noise.simulated
        if keyless:
            bound["noise"] = _KEYLESS.get(noise, owner)
        for name, other in bound.items():
            if other != owner:
                remedy = "make another for each run"
                _check.refuse_state(name, "belong to one run", "it belongs to another run", remedy)
        if keep:
            _OWNERS.update(dict.fromkeys(marks.values(), owner))
            if keyless:
                _KEYLESS[noise] = owner
