"""The workflow in Flower's server app whose clients add the noise of differential privacy themselves."""

from __future__ import annotations

import secrets
from dataclasses import replace
from typing import Any, Final, final

from sfumato import _check
from sfumato.errors import ParameterError
from sfumato.federated.distributed_noise.mechanism import DistributedMechanism
from sfumato.federated.flower.fit_round import FitRound
from sfumato.federated.flower.noisy_changes import NoisyChanges, round_loss
from sfumato.federated.flower.server_round import ServerRound
from sfumato.federated.secure_aggregation.parameters import SecureAggregation
from sfumato.federated.secure_aggregation_trust import secure_aggregation_report
from sfumato.federated.trust_report import TrustReport
from sfumato.privacy.loss import PrivacyLoss

__all__ = ["FlowerDistributedNoiseWorkflow"]

_SEED: Final = 16


@final
class FlowerDistributedNoiseWorkflow:
    """A fit workflow for Flower's ``DefaultWorkflow``; its clients need `FlowerDistributedNoiseMod`.

    Parameters
    ----------
    noise : DistributedDiscreteGaussian, DistributedSkellam or DistributedPoissonBinomial
        For the clients that one round samples at most, and as many entries as the model has parameters. A
        round with fewer than its ``minimum_survivors`` is aborted before anything is unmasked.
    degree, threshold : int or None, default None
        As `plan_neighbors` plans them; None for all other clients as neighbors.
    timeout : float or None, default None
        Seconds that each of the four steps waits for replies.
    ledger : Ledger or None, default None
        Charged each round's loss, under zero-out, before the first message of the round.
    delta : float or None, default None
        Where the charge's own guarantee is read; needed with a ledger.

    Attributes
    ----------
    privacy_loss : PrivacyLoss
        Of all rounds that were begun.
    aborted : dict of int to str
        Of each round that was aborted, why. The parameters stay as they were, and the round is charged,
        unless fewer than the minimum were sampled, which sends no message.

    Raises
    ------
    ParameterError
        If the parameters do not fit together; no key exists by then.

    Notes
    -----
    Guarantee: ``privacy_loss`` under zero-out, for each client, against the server and ``noise.colluders``
    clients together, on the conditions of the mod. No amplification by sampling is claimed: the server sees
    who takes part. Each survivor's change counts the same: the sum is divided by their number, which is
    public. The strategy sees one result for each survivor, all with the same parameters and weight 1, and no
    metrics.

    References
    ----------
    P. Kairouz, Z. Liu, T. Steinke. The distributed discrete Gaussian mechanism for federated learning with
    secure aggregation. ICML 2021.

    Examples
    --------
    >>> from sfumato.federated import DistributedDiscreteGaussian
    >>> noise = DistributedDiscreteGaussian(
    ...     clients=20, minimum_survivors=16, dimension=100, clip_norm=1.0, noise_multiplier=4.0, bits=18
    ... )
    >>> workflow = FlowerDistributedNoiseWorkflow(noise)
    >>> round(workflow.loss_of(5).epsilon(1e-6), 2)
    2.55
    """

    __slots__ = ("_ledger", "_loss", "aborted", "degree", "delta", "noise", "rounds", "threshold", "timeout")

    def __init__(
        self,
        noise: DistributedMechanism,
        *,
        degree: int | None = None,
        threshold: int | None = None,
        timeout: float | None = None,
        ledger: Any = None,
        delta: float | None = None,
    ) -> None:
        _check.instance("noise", noise, DistributedMechanism, "pass DistributedDiscreteGaussian(...)")
        _check.ledger(ledger)
        if ledger is not None:
            delta = _check.unit_interval("delta", delta, "say where a round's charge is read")
        self.noise, self.degree, self.threshold, self.timeout = noise, degree, threshold, timeout
        self.delta, self._ledger = delta, ledger
        self.rounds, self.aborted = 0, dict[int, str]()
        self._loss = self.loss_of(0)

    def plan(self, clients: int | None = None, round_number: int = 0) -> SecureAggregation:
        """Return the parameters of a round.

        Parameters
        ----------
        clients : int or None, default None
            How many are sampled; None for the most.
        round_number : int, default 0

        Returns
        -------
        SecureAggregation

        Examples
        --------
        >>> from sfumato.federated import DistributedSkellam
        >>> noise = DistributedSkellam(
        ...     clients=20, minimum_survivors=16, dimension=100, clip_norm=1.0, noise_multiplier=4.0, bits=18
        ... )
        >>> FlowerDistributedNoiseWorkflow(noise).plan(18).minimum_survivors
        16
        """
        whole = self.noise.secure_aggregation(round_number=round_number)
        sampled = self.noise.clients if clients is None else clients
        return replace(whole, clients=sampled, degree=self.degree, threshold=self.threshold)

    def loss_of(self, rounds: int, clients: int | None = None) -> PrivacyLoss:
        """Return what so many rounds cost, under zero-out.

        Parameters
        ----------
        rounds : int
            In which one client takes part.
        clients : int or None, default None
            How many are sampled; None for the most.

        Returns
        -------
        PrivacyLoss
        """
        return round_loss(self.plan(clients), self.noise, self.noise.colluders) * rounds

    @property
    def privacy_loss(self) -> PrivacyLoss:
        """What all rounds that were begun cost a client that was in all of them, under zero-out."""
        return self._loss

    def trust_report(
        self, delta: float, *, rounds: int | None = None, clients: int | None = None
    ) -> TrustReport:
        """Return who must collude with the server to learn what, and the epsilon that is left.

        Parameters
        ----------
        delta : float
            Where epsilon is read.
        rounds : int or None, default None
            How many a client takes part in at most; None for those that were begun, at least one.
        clients : int or None, default None
            How many a round samples, the fewest if it differs; None for the most.

        Returns
        -------
        TrustReport

        Examples
        --------
        >>> from sfumato.federated import DistributedDiscreteGaussian
        >>> noise = DistributedDiscreteGaussian(
        ...     clients=20, minimum_survivors=16, dimension=100, clip_norm=1.0, noise_multiplier=4.0, bits=18
        ... )
        >>> print(FlowerDistributedNoiseWorkflow(noise).trust_report(1e-6, rounds=5).setting)
        Secure aggregation of 20 clients, degree 19, threshold 10, semi-honest mode, 5 rounds of each client
        """
        times = max(1, self.rounds) if rounds is None else rounds
        return secure_aggregation_report(self.plan(clients), self.noise, delta=delta, rounds=times)

    def __call__(self, grid: Any, context: Any) -> None:
        """Run one round of training, and store the new parameters in the context.

        Parameters
        ----------
        grid : flwr.serverapp.Grid
        context : flwr.server.LegacyContext

        Raises
        ------
        ParameterError
            If the model or the sample is not what the noise is for.
        BudgetExceeded
            If the ledger refuses the round. No message was sent.
        """
        fit = FitRound(context)
        if fit.length != self.noise.dimension:
            rule = f"be the {fit.length} parameters of the model"
            _check.refuse("noise.dimension", rule, self.noise.dimension, "plan the noise for the model")
        sampled = len(fit.nodes)
        if sampled > self.noise.clients:
            rule = f"be at most {self.noise.clients}, as the noise is planned"
            _check.refuse("the number of sampled clients", rule, sampled, "lower the strategy's fraction_fit")
        if sampled < self.noise.minimum_survivors:
            self.aborted[fit.number] = f"{sampled} clients were sampled, and no message was sent"
            return
        plan = self.plan(sampled, fit.number)
        loss = round_loss(plan, self.noise, self.noise.colluders)
        if self._ledger is not None:
            self._ledger.charge(loss, delta=self.delta, description=f"federated round {fit.number}")
        self.rounds, self._loss = self.rounds + 1, self._loss + loss
        encoding = NoisyChanges(noise=self.noise, seed=secrets.token_bytes(_SEED), start=fit.arrays)
        work = ServerRound(plan, fit.nodes, encoding)
        try:
            fit.exchange(grid, work, self.timeout)
            means, survivors = work.means(fit.shapes)
        except ParameterError as error:  # of the round: all that depends on parameters is checked before
            self.aborted[fit.number] = str(error)
            return
        fit.store(means, survivors)
