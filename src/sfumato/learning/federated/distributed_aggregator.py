"""Rounds of training in which clients add the noise themselves and the server sees noisy sums only."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Final, final

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from sfumato import _check
from sfumato.errors import ParameterError
from sfumato.federated.distributed_noise.discrete_gaussian import DistributedDiscreteGaussian
from sfumato.federated.secure_aggregation.degree import plan_neighbors
from sfumato.federated.secure_aggregation.parameters import SecureAggregation
from sfumato.federated.secure_aggregation.server import AggregatedSum
from sfumato.federated.secure_aggregation.simulation import simulate_round
from sfumato.federated.secure_aggregation_trust import fewest_breaking, secure_aggregation_report
from sfumato.federated.trust_report import TrustReport
from sfumato.learning.clipping.clipping import Clipping
from sfumato.learning.federated.reader_loss import abort_chance, epsilon_despite_aborts
from sfumato.learning.sampling.full_batch import FullBatchSampler
from sfumato.learning.sampling.poisson import PoissonSampler
from sfumato.learning.sampling.sampler import Sampler
from sfumato.numerics.randomness.source import RandomSource, Rng, random_source
from sfumato.privacy._outward import times_above
from sfumato.privacy.loss import PrivacyLoss
from sfumato.privacy.neighboring import Neighboring
from sfumato.privacy.nodes.poisson import PoissonSubsampled

__all__ = ["DistributedNoiseAggregator", "DistributedRounds"]

Dropped = Callable[[int, int, str], bool]
"""From a round, a client and the message that it would send to whether it drops out before that."""

_SEED: Final = 16


def _nobody(number: int, client: int, message: str) -> bool:
    return False


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class DistributedNoiseAggregator:
    r"""Secure aggregation of clipped changes to which each client has added its part of the noise.

    Pass it as ``aggregation=`` to `FederatedTraining`, which says how much noise.

    Parameters
    ----------
    minimum_survivors : int
        A round with fewer is aborted before anything is unmasked: the model stays as it is, and the round is
        charged.
    colluders : int, default 0
        So many clients may collude with the server; their noise is not counted. Clients that the server
        invents are among them. Too few to break the masks: fewer than half of the survivors.
    max_clients : int or None, default None
        The most that take part in one round; all clients unless given. With more the round is aborted.
    bits : int, default 18
        Sums are taken modulo 2^bits.
    active : bool, default False
        Protect against a server that deviates from the protocol; see `sfumato.federated.SecureAggregation`.
    masks : bool, default True
        Run the protocol's clients and server, with keys and masks. Without them their messages are added
        as they are, which gives the same sum for less work: for experiments.
    dropped : callable, default none
        Called as ``dropped(round, client, message)`` before a client sends one of ``"keys"``, ``"shares"``,
        ``"vector"``, ``"consent"`` and ``"unmask"``; True ends the client for this round. It must not depend
        on the clients' data.
    rng : None, int, numpy Generator or RandomSource
        Of the noise; anything seeded only simulates.

    Raises
    ------
    ParameterError
        If the parameters do not fit together; no key exists by then.

    Notes
    -----
    Guarantee: see `FederatedTraining`, whose ``epsilon`` then holds against the server and ``colluders``
    clients together. The clients clip and add noise themselves: neither is checked by the server. One process
    runs all parties here, so whoever runs it sees everything; the protocol's messages are those of a
    deployment.

    Correlated noise (DP-FTRL) is refused: its rounds need the same clients' noise again, or a protocol that
    hands it on (Bienstock et al.).

    References
    ----------
    A. Bienstock, U. Kumar, A. Polychroniadou. DMM: distributed matrix mechanism for differentially-private
    federated learning based on constant-overhead linear secret resharing. ICML 2025.

    P. Kairouz, Z. Liu, T. Steinke. The distributed discrete Gaussian mechanism for federated learning with
    secure aggregation. ICML 2021.

    Examples
    --------
    >>> from torch import nn
    >>> from sfumato.learning import FederatedTraining, Flat, FullBatchSampler, local_sgd
    >>> clients = [(torch.ones(3, 1), torch.full((3, 1), 2.0)) for _ in range(12)]
    >>> training = FederatedTraining(
    ...     nn.Linear(1, 1, bias=False),
    ...     clients,
    ...     local_sgd(nn.functional.mse_loss, learning_rate=0.2),
    ...     sampler=FullBatchSampler(population=12, steps=2),
    ...     clipping=Flat(clip_norm=1.0),
    ...     noise_multiplier=2.0,
    ...     aggregation=DistributedNoiseAggregator(minimum_survivors=10, colluders=2),
    ... )
    >>> training.run()
    >>> round(training.epsilon(1e-5), 2), round(training.reader_epsilon(1e-5), 2)
    (2.94, 2.59)
    """

    minimum_survivors: int
    colluders: int = 0
    max_clients: int | None = None
    bits: int = 18
    active: bool = False
    masks: bool = True
    dropped: Dropped = _nobody
    rng: Rng = None

    def __post_init__(self) -> None:
        fewest = _check.integer("minimum_survivors", self.minimum_survivors, minimum=3)
        colluders = _check.integer("colluders", self.colluders)
        most = fewest if self.max_clients is None else _check.integer("max_clients", self.max_clients)
        if most < fewest:
            rule = f"be at least the {fewest} that must survive"
            _check.refuse("max_clients", rule, most, "lower minimum_survivors")
        for name in ("active", "masks"):
            _check.instance(name, getattr(self, name), bool, "pass True or False")
        dropped: object = self.dropped
        if not callable(dropped):
            rule = "be a function of a round, a client and a message"
            _check.refuse_type("dropped", rule, dropped, "leave it out")
        # It grows with the clients but for its remainder by three.
        limit = min(fewest_breaking(_complete(size, self.active)) for size in range(fewest, fewest + 3))
        if colluders >= limit:
            rule = f"be below {limit}, which could break the masks of {fewest} clients"
            _check.refuse("colluders", rule, colluders, "raise minimum_survivors")

    def rounds_of(
        self, sampler: Sampler, clipping: Clipping, noise_multiplier: float, entries: int
    ) -> DistributedRounds:
        """Return the rounds of one training.

        Parameters
        ----------
        sampler : Sampler
            Under zero-out.
        clipping : Clipping
            By one norm that stays.
        noise_multiplier : float
            Standard deviation of the noise that is sure, over the sensitivity.
        entries : int
            Of all parameters together.

        Returns
        -------
        DistributedRounds

        Raises
        ------
        ParameterError
            If no bound is proved for the sampler or the clipping.
        """
        if sampler.neighboring is not Neighboring.ZERO_OUT:
            remedy = "leave out public_batch_size=: who takes part adds noise, so that its absence shows"
            _check.refuse("sampler", "be under zero-out with distributed noise", sampler.neighboring, remedy)
        if clipping.adapts or len(clipping.group_sensitivities) > 1:
            rule = "be one fixed norm over all parameters with distributed noise"
            _check.refuse_type("clipping", rule, clipping, "pass Flat(clip_norm=...)")
        noise = DistributedDiscreteGaussian(
            clients=sampler.population if self.max_clients is None else self.max_clients,
            minimum_survivors=self.minimum_survivors,
            dimension=entries,
            clip_norm=clipping.sensitivity,
            noise_multiplier=noise_multiplier,
            bits=self.bits,
            colluders=self.colluders,
        )
        return DistributedRounds(self, sampler, noise)


@final
class DistributedRounds:
    """The rounds of one training with distributed noise.

    Parameters
    ----------
    aggregator : DistributedNoiseAggregator
    sampler : Sampler
    noise : DistributedDiscreteGaussian

    Attributes
    ----------
    aborted : dict of int to str
        Of each round that was aborted, why.
    """

    def __init__(
        self, aggregator: DistributedNoiseAggregator, sampler: Sampler, noise: DistributedDiscreteGaussian
    ) -> None:
        self.aggregator, self.sampler, self.noise = aggregator, sampler, noise
        self.aborted: dict[int, str] = {}
        self._source: RandomSource = random_source(aggregator.rng)
        self._full = isinstance(sampler, FullBatchSampler)
        drawn = sampler.sampling_probability if isinstance(sampler, PoissonSampler) else 1.0
        self._hidden_probability = drawn if drawn < 1 else None

    @property
    def simulated(self) -> bool:
        """Whether the noise follows from a seed."""
        return self._source.simulated

    def loss_of(self, rounds: int) -> PrivacyLoss:
        """Return what so many rounds cost, against the server and the tolerated colluders."""
        return self.noise.privacy_loss * self.sampler.participation.max_steps(rounds)

    def noisy_sum(
        self, number: int, contributions: Iterable[Sequence[Tensor]], like: Sequence[Tensor]
    ) -> list[Tensor] | None:
        """Return the noisy sum of the survivors' changes, or None if the round is aborted."""
        members = self.sampler.batch(number).tolist()
        if not self.noise.minimum_survivors <= len(members) <= self.noise.clients:
            self.aborted[number] = "too few or too many clients were drawn"
            return None
        seed = self._source.bytes(_SEED) if self.simulated else secrets.token_bytes(_SEED)
        messages = [self.noise.encode(_flat(parts), seed, self._source) for parts in contributions]
        found = self._sum(number, members, messages)
        if found is None:
            return None
        total = found.total
        if self._hidden_probability is not None:  # else the noise would show how many took part
            zeros = np.zeros(self.noise.dimension)
            for _ in range(self.noise.clients - len(found.survivors)):
                total = total + self.noise.encode(zeros, seed, self._source)
        return _unflat(self.noise.decode(total, seed), like)

    def _sum(
        self, number: int, members: Sequence[int], messages: Sequence[NDArray[np.int64]]
    ) -> AggregatedSum | None:
        plan = self._plan(number, len(members))
        dropped = partial(_dropped, self.aggregator.dropped, number, members)
        try:
            if self.aggregator.masks:
                return simulate_round(plan, messages, dropped=dropped)
            return _plain_round(plan, messages, dropped)
        except ParameterError as error:  # of the round: all that depends on parameters is checked before
            self.aborted[number] = str(error)
            return None

    def _plan(self, number: int, drawn: int) -> SecureAggregation:
        whole = self.noise.secure_aggregation(round_number=number, active=self.aggregator.active)
        degree, threshold = self._graph(drawn)
        return replace(whole, clients=drawn, degree=degree, threshold=threshold)

    def _graph(self, drawn: int) -> tuple[int | None, int | None]:
        """Return a degree and a threshold; those of the complete graph if no smaller one is planned.

        Where the number of clients differs from round to round the graph is complete: then the smallest round
        is the easiest to break, and no round fails for its graph.
        """
        if self.aggregator.active or not self._full:
            return None, None
        lost = drawn - self.noise.minimum_survivors
        try:
            found = plan_neighbors(drawn, dropout=lost / drawn, corruption=self.noise.colluders / drawn)
        except ParameterError:
            return None, None
        return found.degree, found.threshold

    def reader_epsilon(self, rounds: int, delta: float, dropouts: int) -> float:
        """Return epsilon against those who see the models only; see `FederatedTraining.reader_epsilon`."""
        loss, noise = self.noise.privacy_loss, self.noise
        known = noise.loss_against(0)
        plain = (known * self.sampler.participation.max_steps(rounds)).epsilon(delta)
        # With so many clients and drop-outs, enough are left to answer; with more clients too.
        smallest = noise.minimum_survivors + dropouts
        enough = noise.minimum_survivors > _complete(smallest, self.aggregator.active).shares
        probability = self._hidden_probability
        if probability is None or not enough:
            return plain
        chance = abort_chance(
            self.sampler.population - 1, probability, fewest=smallest - 1, most=noise.clients
        )
        topped_up = replace(loss, summands=noise.clients)
        hidden = PoissonSubsampled(topped_up, probability) * rounds
        found = epsilon_despite_aborts(hidden, delta, times_above(rounds, chance))
        return plain if found is None else min(plain, found)

    def trust_report(self, delta: float) -> TrustReport:
        """Return who must collude to learn what, over all rounds of the plan."""
        smallest = self.noise.clients if self._full else self.noise.minimum_survivors
        report = secure_aggregation_report(
            self._plan(0, smallest),
            self.noise,
            rounds=self.sampler.participation.max_steps(self.sampler.steps),
            delta=delta,
        )
        if self._full:
            return report
        return replace(
            report, setting=f"The smallest rounds, of up to {self.noise.clients}: {report.setting}"
        )


def _complete(clients: int, active: bool) -> SecureAggregation:
    return SecureAggregation(
        clients=clients, length=1, bounds=(0, 0), bits=1, minimum_survivors=2, active=active
    )


def _dropped(rule: Dropped, number: int, members: Sequence[int], place: int, message: str) -> bool:
    return rule(number, members[place], message)


def _plain_round(
    plan: SecureAggregation, messages: Sequence[NDArray[np.int64]], dropped: Callable[[int, str], bool]
) -> AggregatedSum:
    """Return what `simulate_round` does, without keys and masks; drop-outs after the vectors are ignored."""
    alive = list(range(plan.clients))
    for message in ("keys", "shares", "vector"):
        alive = [place for place in alive if not dropped(place, message)]
        if len(alive) < plan.minimum_survivors:
            rule = f"have at least {plan.minimum_survivors} clients in each phase"
            _check.refuse_state("the round", rule, "it has fewer and is aborted", "start another one")
    total = np.zeros(plan.length, np.int64)
    for place in alive:
        total += messages[place]
    return AggregatedSum(total=plan.decoded(total.astype(np.uint64), len(alive)), survivors=tuple(alive))


def _flat(parts: Sequence[Tensor]) -> NDArray[np.float64]:
    found: NDArray[np.float64] = torch.cat(
        [part.detach().double().cpu().reshape(-1) for part in parts]
    ).numpy()
    return found


def _unflat(values: NDArray[np.float64], like: Sequence[Tensor]) -> list[Tensor]:
    parts = torch.from_numpy(values).split([part.numel() for part in like])
    return [part.reshape(shape.shape).to(shape.device) for part, shape in zip(parts, like, strict=True)]
