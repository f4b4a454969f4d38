"""The trust report of secure aggregation: how many clients must collude with the server to learn what.

>>> from sfumato.federated import DistributedDiscreteGaussian
>>> noise = DistributedDiscreteGaussian(
...     clients=20, minimum_survivors=16, dimension=4, clip_norm=1.0, noise_multiplier=4.0, bits=18
... )
>>> report = secure_aggregation_report(noise.secure_aggregation(), noise, delta=1e-6)
>>> [row.colluders for row in report.rows], [row.masks_hold for row in report.rows]
([0, 1, 5, 9, 10, 15], [True, True, True, True, False, False])
>>> report.rows[0].epsilon < report.rows[1].epsilon < report.rows[4].epsilon
True
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from fractions import Fraction

from sfumato import _check
from sfumato.federated.distributed_noise.mechanism import DistributedMechanism
from sfumato.federated.secure_aggregation.degree import security_failure_bound
from sfumato.federated.secure_aggregation.parameters import SecureAggregation
from sfumato.federated.trust_report import Collusion, TrustReport
from sfumato.numerics.rounding import fraction_down
from sfumato.privacy._outward import text_above

__all__ = ["fewest_breaking", "secure_aggregation_report"]


def fewest_breaking(plan: SecureAggregation) -> int:
    """Return the fewest colluding clients who, with the server, could reveal a client's vector.

    Parameters
    ----------
    plan : SecureAggregation

    Returns
    -------
    int
        The threshold of the shares, for neighbors of the client. In the active mode the server can also show
        two lists of survivors to two parts of the clients, for which fewer may be enough; and on a sparse
        graph choose drop-outs such that ``threshold - degree / 2`` neighbors on one side of a client are.

    Examples
    --------
    >>> plan = SecureAggregation(clients=9, length=1, bounds=(0, 1), bits=4, minimum_survivors=7)
    >>> fewest_breaking(plan)
    5
    """
    if not plan.active:
        return plan.shares
    return min(plan.shares if _complete(plan) else plan.shares - plan.neighbors // 2, _two_lists(plan))


def _complete(plan: SecureAggregation) -> bool:
    return plan.neighbors == plan.clients - 1


def _two_lists(plan: SecureAggregation) -> int:
    """Return how many colluders two lists with a quorum each can have in common."""
    return 2 * plan.quorum - plan.clients


def secure_aggregation_report(
    plan: SecureAggregation,
    noise: DistributedMechanism | None = None,
    *,
    delta: float | None = None,
    rounds: int = 1,
    colluders: Iterable[int] | None = None,
) -> TrustReport:
    """Return the trust report of rounds of secure aggregation.

    Parameters
    ----------
    plan : SecureAggregation
    noise : DistributedDiscreteGaussian, DistributedSkellam or DistributedPoissonBinomial, optional
        What the clients add before their vectors are masked.
    delta : float, optional
        Where epsilon is read; needed with noise.
    rounds : int, default 1
        How many rounds one client takes part in at most.
    colluders : iterable of int, optional
        Numbers of clients that collude with the server; a choice around the limits unless given.

    Returns
    -------
    TrustReport

    Raises
    ------
    ParameterError
        If the noise is for other clients or another vector than the plan.

    Notes
    -----
    Guarantee: see `TrustReport`. A row counts the noise of ``noise.minimum_survivors`` less the colluders. On
    a graph that is not complete, masks hold up to a probability over the graph
    (`sfumato.federated.plan_neighbors`), for colluders and drop-outs that are chosen without regard to it, in
    the active mode for colluders chosen before the keys; over all rounds it is taken out of ``delta``. Where
    masks do not hold, what is left is the noise in the client's own message, which protects it against all
    others together, as long as it takes part in a round once.

    Examples
    --------
    >>> plan = SecureAggregation(clients=9, length=1, bounds=(0, 1), bits=4, minimum_survivors=7)
    >>> print(secure_aggregation_report(plan).statements[0])
    The server learns the sum of at least 7 of 9 clients' vectors, and who took part. The sum is exact: this \
is no differential privacy.
    """
    _check.instance("plan", plan, SecureAggregation, "state the round first")
    times = _check.integer("rounds", rounds, minimum=1)
    mode = "active" if plan.active else "semi-honest"
    setting = (
        f"Secure aggregation of {plan.clients} clients, degree {plan.neighbors}, "
        f"threshold {plan.shares}, {mode} mode, {times} rounds of each client"
    )
    if noise is None:
        return TrustReport(
            setting=setting, colluding="clients", statements=_masking(plan), delta=None, rows=()
        )
    _check.instance("noise", noise, DistributedMechanism, "leave it out")
    fitting = (plan.length, plan.bits, plan.modular) == (noise.padded, noise.bits, True)
    if not fitting or plan.minimum_survivors < noise.minimum_survivors:
        rule = "be for the plan's vectors and survivors"
        _check.refuse_state("noise", rule, "it is for others", "pass noise.secure_aggregation()")
    limit = _check.unit_interval("delta", delta, "say where epsilon is read")
    chosen = _around(plan, noise) if colluders is None else sorted(set(colluders))
    rows = tuple(_collusion(plan, noise, number, limit, times) for number in chosen)
    own = _epsilon(noise, plan.clients, limit, times)
    return TrustReport(
        setting=setting,
        colluding="clients",
        statements=(*_masking(plan, noisy=True), *_noising(noise, own)),
        delta=limit,
        rows=rows,
    )


def _around(plan: SecureAggregation, noise: DistributedMechanism) -> list[int]:
    fewest, breaking = plan.minimum_survivors, fewest_breaking(plan)
    around = [0, 1, noise.colluders, breaking // 2, breaking - 1, breaking, fewest - 1]
    if not _complete(plan):
        around += [plan.clients // 10, plan.clients // 5]
    return sorted(set(around))


def _collusion(
    plan: SecureAggregation, noise: DistributedMechanism, colluders: int, delta: float, times: int
) -> Collusion:
    if _check.integer("colluders", colluders) >= plan.clients:
        _check.refuse("colluders", f"be below the {plan.clients} clients", colluders, "leave one honest")
    failure = times * security_failure_bound(
        plan.clients,
        degree=plan.neighbors,
        threshold=plan.shares,
        dropped=plan.clients - plan.minimum_survivors,
        corrupt=colluders,
        active=plan.active,
    )
    broken = plan.active and colluders >= _two_lists(plan)
    left = Fraction(delta) - failure
    if broken or left <= Fraction(delta) / 2:
        return Collusion(
            colluders=colluders, masks_hold=False, epsilon=_epsilon(noise, plan.clients, delta, times)
        )
    epsilon = _epsilon(noise, colluders, fraction_down(left), times)
    return Collusion(colluders=colluders, masks_hold=True, epsilon=epsilon)


def _epsilon(noise: DistributedMechanism, colluders: int, delta: float, times: int) -> float | None:
    """Return what is left against so many colluders; one client's own noise always is."""
    among = min(colluders, noise.minimum_survivors - 1)
    found = (noise.loss_against(among) * times).epsilon(delta)
    return found if found < math.inf else None


def _masking(plan: SecureAggregation, *, noisy: bool = False) -> tuple[str, ...]:
    breaking = fewest_breaking(plan)
    what = "noisy sum" if noisy else "sum"
    exact = "" if noisy else " The sum is exact: this is no differential privacy."
    half = plan.neighbors // 2
    if _complete(plan):
        near = f"{breaking} clients"
    elif plan.active:
        near = f"{_two_lists(plan)} clients, or {plan.shares - half} of {half} in a row on the circle"
    else:
        near = f"{breaking} of a client's {plan.neighbors} neighbors"
    learned = (
        f"The server learns the {what} of at least {plan.minimum_survivors} of {plan.clients} clients' "
        f"vectors, and who took part.{exact}"
    )
    alone = (
        f"With {plan.minimum_survivors - 1} colluders among the survivors of a round, the {what} is that of "
        "one honest client and vectors that they know."
    )
    server = (
        "The server may deviate from the protocol. Identities must come from a register that the server "
        "does not keep; otherwise it can invent clients, and these are colluders."
        if plan.active
        else "The server is trusted to follow the protocol. It can invent clients without being noticed, and "
        f"these are colluders: {plan.minimum_survivors - 1} of them isolate one client."
    )
    broken = f"To see one client's message, the server must collude with {near}."
    return learned, broken, alone, server


def _noising(noise: DistributedMechanism, own: float | None) -> tuple[str, ...]:
    left = "no bound" if own is None else f"epsilon {text_above(own, 4)}"
    trusted = (
        "Clipping and noise are the clients' own: neither is checked by the server. A client that does not "
        "clip can move the sum as it likes; what protects the others is the noise of honest clients."
    )
    sure = (
        f"The noise is sure for {noise.honest_survivors} honest survivors, {noise.colluders} colluders "
        "allowed for. A round with fewer survivors is aborted before it is unmasked."
    )
    return trusted, sure, f"Whatever all others do, a client's own noise is in its message: {left}."
