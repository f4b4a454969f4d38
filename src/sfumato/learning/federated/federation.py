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
from sfumato.learning.clipping.clipping import Clipping
from sfumato.learning.federated.aggregation import SecureAggregation, TrustedAggregator
from sfumato.learning.federated.client_training import (
    LocalTraining,
    clipped,
    local_change,
    own_randomness,
    trained,
)
from sfumato.learning.noise.correlated import CorrelatedNoise
from sfumato.learning.noise.keyed import KeyedNoise
from sfumato.learning.noise.noise import Noise
from sfumato.learning.noise.single_use_keys import bind_to_run, check_unbound
from sfumato.learning.sampling.independent import IndependentSampler
from sfumato.learning.sampling.sampler import Sampler
from sfumato.learning.sampling.seed import Seed
from sfumato.ledger.ledger import Ledger
from sfumato.ledger.runs import Run
from sfumato.privacy.loss import PrivacyLoss
from sfumato.privacy.neighboring import Neighboring

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
    aggregation : SecureAggregation, optional
        `TrustedAggregator` unless given.
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

    A round that fails counts as run.

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
        aggregation: SecureAggregation | None = None,
        ledger: Ledger | None = None,
        delta: float | None = None,
    ) -> None:
        sampler = _drawing(sampler, len(clients))
        _check_parts(module, local, clipping)
        _check_noise(noise, sampler, clipping)
        _check.ledger(ledger)
        if ledger is not None:
            _check.unit_interval("delta", delta, "say where the charge is read")
        self.module, self.clients, self.sampler, self.clipping = module, clients, sampler, clipping
        self.noise_multiplier = _check.positive("noise_multiplier", noise_multiplier)
        self.rounds = 0
        self._local, self._ledger, self._delta = local, ledger, delta
        self._aggregation = TrustedAggregator() if aggregation is None else aggregation
        self._noise = KeyedNoise() if noise is None else noise
        self._names = list(trained(module))
        if not self._names:
            remedy = "set requires_grad on some"
            _check.refuse_state("module", "have parameters that require a gradient", "there are none", remedy)
        self._optimizer = server(list(trained(module).values()))
        self._groups = clipping.groups(self._names)
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
        return self.sampler.simulated or self._noise.simulated

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
        sums = self._aggregation.total(self._contributions(number, norms), like)
        self._add_noise(sums, number)
        for parameter, total in zip(parameters.values(), sums, strict=True):
            parameter.grad = (total / -self.sampler.expected_batch_size).to(parameter)
        self._optimizer.step()
        self._optimizer.zero_grad()
        self._adapt(norms, number)

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

    def _loss_of(self, rounds: int) -> PrivacyLoss:
        entries = sum(parameter.numel() for parameter in trained(self.module).values())
        charged = self._noise.charged(self.noise_multiplier, entries)
        if isinstance(self._noise, CorrelatedNoise):
            step = self.sampler.step_loss(charged)
            whole = self._noise.loss(step.noise_multiplier, neighboring=self.sampler.neighboring)
            return whole * min(1, rounds)
        return self.sampler.loss_of(charged, rounds)


def _drawing(sampler: Sampler, clients: int) -> Sampler:
    """Return the sampler of these clients, under the relation that holds for them."""
    _check_sampler(sampler)
    hiding = isinstance(sampler, IndependentSampler) and sampler.neighboring is Neighboring.ADD_REMOVE
    if isinstance(sampler, IndependentSampler) and hiding and sampler.public_batch_size is not None:
        return sampler.over(clients)
    if sampler.population != clients:
        remedy = "sample clients, each of whom is one unit"
        _check.refuse("sampler", f"have a population of {clients} clients", sampler.population, remedy)
    return sampler.zeroing_out() if isinstance(sampler, IndependentSampler) and hiding else sampler


def _check_sampler(sampler: Sampler) -> None:
    _check.instance("sampler", sampler, Sampler, "pass PoissonSampler(...)")
    if not sampler.distinct:
        _check.refuse_type("sampler", "draw each client once in a round", sampler, "use PoissonSampler(...)")
    if sampler.clips != "example":
        remedy = "draw clients, not users"
        _check.refuse("sampler", "be priced for clipping each client", sampler.clips, remedy)


def _check_parts(module: object, local: object, clipping: object) -> None:
    _check.instance("module", module, nn.Module, "pass the model itself")
    if not callable(local):
        _check.refuse("local", "be a function of a module and a client's data", local, "pass local_sgd(...)")
    _check.instance("clipping", clipping, Clipping, "pass Flat(clip_norm=...), say")


def _check_noise(noise: Noise | None, sampler: Sampler, clipping: Clipping) -> None:
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
