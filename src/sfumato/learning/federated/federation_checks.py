"""What a federated training refuses before it begins."""

from __future__ import annotations

from torch import nn

from sfumato import _check
from sfumato.learning.clipping.clipping import Clipping
from sfumato.learning.noise.correlated import CorrelatedNoise
from sfumato.learning.noise.noise import Noise
from sfumato.learning.sampling.independent import IndependentSampler
from sfumato.learning.sampling.sampler import Sampler
from sfumato.privacy.neighboring import Neighboring

__all__ = ["check_no_noise", "check_noise", "check_parts", "drawing"]


def drawing(sampler: Sampler, clients: int) -> Sampler:
    """Return the sampler of these clients, under the relation that holds for them."""
    _check_sampler(sampler)
    hiding = sampler if isinstance(sampler, IndependentSampler) else None
    if hiding is not None and hiding.neighboring is not Neighboring.ADD_REMOVE:
        hiding = None
    if hiding is not None and hiding.public_batch_size is not None:
        return hiding.over(clients)
    if sampler.population != clients:
        remedy = "sample clients, each of whom is one unit"
        _check.refuse("sampler", f"have a population of {clients} clients", sampler.population, remedy)
    return sampler if hiding is None else hiding.zeroing_out()


def _check_sampler(sampler: Sampler) -> None:
    _check.instance("sampler", sampler, Sampler, "pass PoissonSampler(...)")
    if not sampler.distinct:
        _check.refuse_type("sampler", "draw each client once in a round", sampler, "use PoissonSampler(...)")
    if sampler.clips != "example":
        remedy = "draw clients, not users"
        _check.refuse("sampler", "be priced for clipping each client", sampler.clips, remedy)


def check_parts(module: object, local: object, clipping: object) -> None:
    """Refuse what is no module, no local training or no clipping."""
    _check.instance("module", module, nn.Module, "pass the model itself")
    if not callable(local):
        _check.refuse("local", "be a function of a module and a client's data", local, "pass local_sgd(...)")
    _check.instance("clipping", clipping, Clipping, "pass Flat(clip_norm=...), say")


def check_no_noise(noise: Noise | None) -> None:
    """Refuse noise beside that of the clients."""
    if isinstance(noise, CorrelatedNoise):
        remedy = "its rounds need the same clients' noise again, or a protocol that hands it on"
        rule = "be independent in each round where the clients add it"
        _check.refuse_type("noise", rule, noise, f"leave it out: {remedy}")
    if noise is not None:
        rule = "be left out where the clients add noise"
        _check.refuse_type("noise", rule, noise, "pass rng= to the aggregator to simulate")


def check_noise(noise: Noise | None, sampler: Sampler, clipping: Clipping) -> None:
    """Refuse correlated noise that was made for another participation."""
    if not isinstance(noise, CorrelatedNoise):
        return
    if noise.strategy.steps != sampler.steps:
        remedy = "make both for as many rounds"
        _check.refuse("noise", f"be for the sampler's {sampler.steps} steps", noise.strategy.steps, remedy)
    if noise.participation != sampler.participation:
        remedy = "pass participation=sampler.participation"
        _check.refuse("noise", f"be for {sampler.participation}", noise.participation, remedy)
    if clipping.adapts:
        remedy = "the noise of one round is taken off in later ones: fix the clip norm"
        _check.refuse_type("clipping", "not adapt with correlated noise", clipping, remedy)
