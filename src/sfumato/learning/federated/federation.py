"""User-level private training over many clients: DP-FedAvg, and DP-FTRL with correlated noise."""

from __future__ import annotations

import os
import secrets
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Generic, NoReturn, TypeVar, final

import torch
from torch import Tensor, nn
from torch.optim import SGD, Optimizer

from sfumato import _check
from sfumato.federated.trust_report import TrustReport
from sfumato.learning.clipping.clipping import Clipping
from sfumato.learning.federated.aggregation import TrustedAggregator, UpdateAggregator
from sfumato.learning.federated.client_training import (
    LocalTraining,
    clipped,
    local_change,
    own_randomness,
    trained,
)
from sfumato.learning.federated.distributed_aggregator import DistributedNoiseAggregator, DistributedRounds
from sfumato.learning.federated.federation_checks import check_no_noise, check_noise, check_parts, drawing
from sfumato.learning.noise.correlated import CorrelatedNoise
from sfumato.learning.noise.keyed import KeyedNoise
from sfumato.learning.noise.noise import Noise
from sfumato.learning.noise.single_use_keys import bind_to_run, check_unbound
from sfumato.learning.sampling.sampler import Sampler
from sfumato.learning.sampling.seed import Seed
from sfumato.ledger.ledger import Ledger
from sfumato.ledger.runs import Run
from sfumato.privacy.loss import PrivacyLoss

__all__ = ["FederatedTraining"]

T = TypeVar("T")


def averaging(parameters: Iterable[nn.Parameter]) -> Optimizer:
    """Return the server optimizer of federated averaging: the mean change is added as it is."""
    return SGD(parameters, lr=1.0)


@final
class FederatedTraining(Generic[T]):
    r"""Rounds of training in which each client is a privacy unit, with all its data.

    In each round the sampler draws clients; each trains a copy of the module; the changes are clipped, added
    up, and noise is added once; the sum over the *expected* number of clients is what the server's optimizer
    takes for the negative gradient. Clients are not weighted: a weight would be one more thing that a client
    moves.

    Parameters
    ----------
    module : nn.Module
        The server's, trained in place. Parameters that require no gradient stay as they are, and so do
        buffers.
    clients : sequence
        The data of each client, whatever ``local`` takes; fetched when a client is drawn.
    local : callable
        From a copy of the module and a client's data to nothing; trains the copy in place. See `local_sgd`.
    sampler : Sampler
        Draws clients by their positions in ``clients``; its steps are the rounds. With a
        ``public_batch_size`` it is under add/remove of a client, and draws from as many as there are. Without
        one the number of clients is public, and the guarantee is under zero-out (or replace-one,
        as the sampler says).
    clipping : Clipping
        Of a client's change: flat, by groups, adaptive.
    noise_multiplier : float
        Standard deviation of the noise over the clipping's sensitivity.
    server : callable, optional
        From the parameters to their optimizer; plain averaging unless given. With correlated noise plain SGD,
        with or without momentum, is what the strategies are made for.
    noise : Noise, optional
        Independent noise from a fresh key unless given (DP-FedAvg). `CorrelatedNoise` with the sampler's
        participation is DP-FTRL. `SimulatedNoise` marks a simulation. No two trainings may share noise or
        sampler.
    aggregation : UpdateAggregator or DistributedNoiseAggregator, optional
        `TrustedAggregator` unless given. With a `DistributedNoiseAggregator` the clients add the noise, and
        the server sees a noisy sum only.
    ledger : Ledger, optional
        Charged for all rounds before the first begins, and each round is claimed before its noise is drawn.
        Without one nothing is charged, and `epsilon` is the only account.
    delta : float, optional
        Needed with a ledger: where the charge is read.

    Notes
    -----
    Guarantee: that of ``privacy_loss`` for one client with all its data, under the sampler's relation, for
    whoever sees all server models of all rounds. Independent noise: each round is Gaussian noise on a sum
    that one client moves by at most ``clipping.sensitivity``, on batches whose distribution the sampler
    accounts for. With correlated noise: `CorrelatedNoise.loss` for the sampler's participation, without any
    amplification. Conditions: the clients' data are parts that share no unit; what a client sends is a
    function of the server's model, of its own data, and of random numbers that are its own (they are: each
    client's generators begin anew); ``local`` keeps nothing from one client for the next. The noise is float:
    see `Noise.float_safe`.

    With a `DistributedNoiseAggregator` the guarantee is under zero-out, against the server and the tolerated
    colluders together, who see who takes part: `privacy_loss` and `epsilon` are without amplification by
    sampling, and this is what a ledger is charged. `reader_epsilon` is for those who see the models only.
    Clients clip and add noise themselves, which the server does not check; drop-outs must not depend on the
    clients' data. The noise is exact. Up to a chance of 2^-40 in each round the masks hold
    (`sfumato.federated.plan_neighbors`), and they hold computationally.

    A round that fails or is aborted counts as run.

    References
    ----------
    McMahan, Ramage, Talwar, Zhang (2018), "Learning differentially private recurrent language models";
    Kairouz et al. (2021), "Practical and private (deep) learning without sampling or shuffling".

    Examples
    --------
    >>> from sfumato.learning.clipping.flat import Flat
    >>> from sfumato.learning.federated.client_training import local_sgd
    >>> from sfumato.learning.sampling.poisson import PoissonSampler
    >>> clients = [(torch.ones(3, 1), torch.full((3, 1), 2.0)) for _ in range(200)]
    >>> module = nn.Linear(1, 1, bias=False)
    >>> training = FederatedTraining(
    ...     module,
    ...     clients,
    ...     local_sgd(nn.functional.mse_loss, learning_rate=0.2),
    ...     sampler=PoissonSampler(population=200, sampling_probability=0.2, steps=10),
    ...     clipping=Flat(clip_norm=1.0),
    ...     noise_multiplier=1.0,
    ... )
    >>> training.run()
    >>> 1.5 < module.weight.item() < 2.5, round(training.epsilon(1e-5), 2)
    (True, 4.99)
    """

    def __init__(
        self,
        module: nn.Module,
        clients: Sequence[T],
        local: LocalTraining[T],
        *,
        sampler: Sampler,
        clipping: Clipping,
        noise_multiplier: float,
        server: Callable[[Iterable[nn.Parameter]], Optimizer] = averaging,
        noise: Noise | None = None,
        aggregation: UpdateAggregator | DistributedNoiseAggregator | None = None,
        ledger: Ledger | None = None,
        delta: float | None = None,
    ) -> None:
        sampler = drawing(sampler, len(clients))
        check_parts(module, local, clipping)
        check_noise(noise, sampler, clipping)
        _check.ledger(ledger)
        if ledger is not None:
            _check.unit_interval("delta", delta, "say where the charge is read")
        self.module, self.clients, self.sampler, self.clipping = module, clients, sampler, clipping
        self.noise_multiplier = _check.positive("noise_multiplier", noise_multiplier)
        self.rounds = 0
        self._local, self._ledger, self._delta = local, ledger, delta
        self._noise = KeyedNoise() if noise is None else noise
        self._names = list(trained(module))
        if not self._names:
            remedy = "set requires_grad on some"
            _check.refuse_state("module", "have parameters that require a gradient", "there are none", remedy)
        self._optimizer = server(list(trained(module).values()))
        self._groups = clipping.groups(self._names)
        self._aggregation: UpdateAggregator = TrustedAggregator()
        self._distributed: DistributedRounds | None = None
        if isinstance(aggregation, DistributedNoiseAggregator):
            check_no_noise(noise)
            self._distributed = aggregation.rounds_of(sampler, clipping, noise_multiplier, self._entries)
        elif aggregation is not None:
            self._aggregation = aggregation
        self._run: Run | None = None
        self._process, self._name = os.getpid(), secrets.token_hex(16)

    def __reduce_ex__(self, protocol: object) -> NoReturn:
        raise TypeError(
            "a FederatedTraining must go on where it was made, got a copy or a pickle of it, which would "
            "draw its noise again; begin another"
        )

    @property
    def simulated(self) -> bool:
        """Whether clients or noise follow from a number, so that nobody is protected."""
        noise = self._noise if self._distributed is None else self._distributed
        return self.sampler.simulated or noise.simulated

    @property
    def privacy_loss(self) -> PrivacyLoss:
        """The loss of all rounds."""
        return self._loss_of(self.sampler.steps)

    def epsilon(self, delta: float) -> float:
        """Return what the rounds so far have cost; with correlated noise what all of them cost.

        Parameters
        ----------
        delta : float
            Where epsilon is read.

        Returns
        -------
        float
        """
        return self._loss_of(self.rounds).epsilon(delta)

    def reader_epsilon(self, delta: float, *, dropouts: int = 0) -> float:
        """Return what the rounds so far have cost against those who see the server's models only.

        Parameters
        ----------
        delta : float
            Where epsilon is read.
        dropouts : int, default 0
            The most clients that drop out in any round; whether one does must depend neither on data nor on
            who else is drawn.

        Returns
        -------
        float
            With a Poisson sampler amplified by sampling, where that is proved and smaller.

        Notes
        -----
        Guarantee: never against the server, nor against clients that take part in a round: they see who
        else does. It counts the noise of all clients, so that all must add theirs, ``colluders`` too. With a
        `DistributedNoiseAggregator` and Poisson sampling the server adds the noise of the clients that are
        missing from ``max_clients``, and is trusted with this for this bound; the chance that one client's
        coin decides whether a round is aborted is in ``delta`` (see ``reader_loss``).
        """
        _check.integer("dropouts", dropouts)
        if self._distributed is None:
            return self.epsilon(delta)
        return self._distributed.reader_epsilon(self.rounds, delta, dropouts)

    @property
    def aborted(self) -> dict[int, str]:
        """The rounds that a `DistributedNoiseAggregator` aborted, and why; they are charged all the same."""
        return {} if self._distributed is None else dict(self._distributed.aborted)

    def trust_report(self, delta: float) -> TrustReport:
        """Return who must collude to learn what, over all planned rounds.

        Parameters
        ----------
        delta : float
            Where epsilon is read.

        Returns
        -------
        TrustReport

        Raises
        ------
        ParameterError
            Without a `DistributedNoiseAggregator`: whoever adds up sees every client's change.
        """
        if self._distributed is None:
            rule = "be a DistributedNoiseAggregator for a trust report"
            _check.refuse_type("aggregation", rule, self._aggregation, "whoever adds up sees all changes")
        return self._distributed.trust_report(delta)

    def run(self, rounds: int | None = None, *, progress: Callable[[int], object] | None = None) -> None:
        """Run the next rounds.

        Parameters
        ----------
        rounds : int, optional
            All that are left unless given.
        progress : callable, optional
            Called after each round with how many are done.

        Raises
        ------
        ParameterError
            If fewer rounds are left.
        BudgetExceeded, LedgerError
            From the ledger, before any client is asked.
        """
        if os.getpid() != self._process:
            remedy = "make the training in the child"
            rule = "continue in the process that made it"
            _check.refuse_state("training", rule, "this process is a fork of it", remedy)
        left = self.sampler.steps - self.rounds
        count = left if rounds is None else _check.integer("rounds", rounds)
        if count > left:
            _check.refuse("rounds", f"be at most the {left} that are left", count, "plan a longer run")
        if count:
            check_unbound(self._name, noise=self._noise, sampler=self.sampler)
            self._reserve()
            bind_to_run(self._name, noise=self._noise, sampler=self.sampler)
        for _ in range(count):
            self._round()
            if progress is not None:
                progress(self.rounds)

    def _reserve(self) -> None:
        if self._ledger is not None and self._run is None and self._delta is not None:
            self._run = self._ledger.reserve(
                self.privacy_loss,
                steps=self.sampler.steps,
                delta=self._delta,
                description="federated training",
                simulated=self.simulated,
            )

    def _round(self) -> None:
        if self._run is not None:
            self._run.claim()
        number, self.rounds = self.rounds, self.rounds + 1
        parameters = trained(self.module)
        if list(parameters) != self._names:
            rule = "have the parameters that the training began with"
            _check.refuse_state("module", rule, "they were exchanged", "begin a new training")
        norms: list[Tensor] = []
        like = [parameter.detach() for parameter in parameters.values()]
        sums = self._noisy_sums(number, norms, like)
        if sums is None:
            return
        for parameter, total in zip(parameters.values(), sums, strict=True):
            parameter.grad = (total / -self.sampler.expected_batch_size).to(parameter)
        self._optimizer.step()
        self._optimizer.zero_grad()
        self._adapt(norms, number)

    def _noisy_sums(self, number: int, norms: list[Tensor], like: Sequence[Tensor]) -> list[Tensor] | None:
        """Return the noisy sum of the round's changes, or None if the round was aborted."""
        contributions = self._contributions(number, norms)
        if self._distributed is not None:
            return self._distributed.noisy_sum(number, contributions, like)
        sums = self._aggregation.total(contributions, like)
        self._add_noise(sums, number)
        return sums

    def _adapt(self, norms: Sequence[Tensor], number: int) -> None:
        none = torch.zeros(1 + max(self._groups), 0, dtype=torch.float64)
        self.clipping = self.clipping.after(
            torch.cat([none, *norms], dim=1),
            noise_multiplier=self.noise_multiplier,
            expected_batch_size=self.sampler.expected_batch_size,
            step=number,
            noise=self._noise,
        )

    def _contributions(self, number: int, norms: list[Tensor]) -> Iterator[tuple[Tensor, ...]]:
        """Train the round's clients one by one; leave the norms of their changes in ``norms``."""
        for client in self.sampler.batch(number).tolist():
            words = Seed.of(self.sampler.seed).stream(f"client {client}", number).words(3)
            with own_randomness(words):
                changes = local_change(self.module, self._local, self.clients[client])
            sent = clipped(changes, self.clipping, self._groups)
            norms.append(sent.squared_norms)
            yield sent.parts

    def _add_noise(self, sums: Sequence[Tensor], number: int) -> None:
        sizes = [total.numel() for total in sums]
        stddevs = self.clipping.stddevs(self.noise_multiplier, self._names, sizes)
        self._noise.add_(sums, step=number, stddevs=stddevs)

    @property
    def _entries(self) -> int:
        return sum(parameter.numel() for parameter in trained(self.module).values())

    def _loss_of(self, rounds: int) -> PrivacyLoss:
        if self._distributed is not None:
            return self._distributed.loss_of(rounds)
        charged = self._noise.charged(self.noise_multiplier, self._entries)
        if isinstance(self._noise, CorrelatedNoise):
            step = self.sampler.step_loss(charged)
            whole = self._noise.loss(step.noise_multiplier, neighboring=self.sampler.neighboring)
            return whole * min(1, rounds)
        return self.sampler.loss_of(charged, rounds)
