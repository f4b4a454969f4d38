"""The Markov quilt mechanism for a sequence of records that a Markov chain links.

>>> from sfumato import pufferfish
>>> chain = pufferfish.MarkovChain(transition=[[0.9, 0.1], [0.4, 0.6]], start=[1, 0])
>>> round(pufferfish.MarkovQuilt(chain=chain, length=100, lipschitz=1.0, epsilon=1.0).scale, 4)
13.0219

Group privacy, which hides all records at once, would need a scale of 100.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from fractions import Fraction
from typing import final

from sfumato import _check
from sfumato.mechanisms.base.additive import as_bound
from sfumato.mechanisms.base.lattice import Lattice
from sfumato.mechanisms.base.rational import Number
from sfumato.numerics.rounding import fraction_up
from sfumato.pufferfish.chains.chain_classes import MarkovChainClass, MarkovChainInterval
from sfumato.pufferfish.chains.markov_chain import MarkovChain
from sfumato.pufferfish.chains.quilt_run import QuiltRun
from sfumato.pufferfish.quilts.influence import ChainModel, influence_table
from sfumato.pufferfish.quilts.search import QuiltSearch
from sfumato.pufferfish.release.guarantee import PufferfishGuarantee
from sfumato.pufferfish.release.mechanism import PufferfishMechanism, lattice_for

__all__ = ["MarkovQuilt"]

_SECRETS = "the value of each record, against each other value"


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class MarkovQuilt(PufferfishMechanism):
    """Laplace noise that hides every record of a Markov chain, also from those who know how records depend.

    Parameters
    ----------
    chain : MarkovChain, sequence of MarkovChain, MarkovChainClass or MarkovChainInterval
        The class of data models. Chains are priced exactly; a class known by pi_min and the eigengap, or by
        intervals, by bounds that hold for all its chains.
    length : int
        How many records the sequence has; public.
    lipschitz : int, float or Fraction
        The most that one record moves the answer, in the L1 norm. An int means that answers are whole
        numbers; others are rounded to a grid, which is in the scale.
    epsilon : float
    entries : int
        How many numbers the answer has.
    quilts : tuple of QuiltRun, optional
        The active quilts to use: those of another mechanism, so that the two compose. The best unless given.
    reachable_only : bool
        Whether influences leave out states that a node of the quilt cannot take, as their definition does;
        the paper's algorithm goes over all states, which needs as much noise or more.

    Attributes
    ----------
    scale : float
        Scale of the Laplace noise.
    active_quilts : tuple of QuiltRun
        For each record, the quilt that proves its protection.

    Raises
    ------
    ParameterError
        If a parameter breaks its rule, the class is empty, or given quilts leak epsilon or more.

    Notes
    -----
    Guarantee: epsilon-Pufferfish privacy for the secrets "record i has value x", each pair (x, y) of one
    record, and every model of the class. Record i is covered by a quilt with influence e below epsilon and n
    records within it if the scale is at least ``lipschitz n / (epsilon - e)``: given the record and the
    quilt, what lies beyond keeps its distribution, and what lies within moves the answer by n times
    ``lipschitz``. The scale is the largest over records of the least over quilts. The search ends where no
    farther quilt can be better, or where its table would exceed 64 megabytes: then the scale is valid, and
    may be larger than the least.

    Of ``reachable_only``: a value of the quilt with probability zero has it under each value of the record,
    so that the proof never meets it.

    References
    ----------
    Song, Wang, Chaudhuri, "Pufferfish privacy mechanisms for correlated data" (SIGMOD 2017), Algorithms 3
    and 4, Theorem 4.3.

    Examples
    --------
    >>> from sfumato.pufferfish import MarkovChain, MarkovChainClass
    >>> steady = MarkovChain(transition=[[0.9, 0.1], [0.4, 0.6]])
    >>> round(MarkovQuilt(chain=steady, length=100, epsilon=1.0).scale, 2)
    12.84
    >>> round(MarkovQuilt(chain=MarkovChainClass.covering(steady), length=100, epsilon=1.0).scale, 2)
    31.71
    """

    chain: ChainModel
    length: int
    lipschitz: Number = 1.0
    epsilon: float
    entries: int = 1
    quilts: tuple[QuiltRun, ...] | None = field(default=None, repr=False)
    reachable_only: bool = False
    active_quilts: tuple[QuiltRun, ...] = field(init=False, repr=False)
    _scale: float = field(init=False, repr=False)
    _grid: Lattice = field(init=False, repr=False)

    def __post_init__(self) -> None:
        if not isinstance(self.chain, MarkovChain | MarkovChainClass | MarkovChainInterval):
            chains = tuple(self.chain) if isinstance(self.chain, list | tuple) else (self.chain,)
            object.__setattr__(self, "chain", chains)
        object.__setattr__(self, "length", _check.integer("length", self.length, minimum=1))
        object.__setattr__(self, "lipschitz", as_bound("lipschitz", self.lipschitz))
        object.__setattr__(self, "epsilon", _check.positive("epsilon", self.epsilon))
        object.__setattr__(self, "entries", _check.integer("entries", self.entries, minimum=1))
        table = influence_table(self.chain, reachable_only=self.reachable_only)
        constant = fraction_up(Fraction(self.lipschitz))
        search = QuiltSearch(table, self.length, self.epsilon, (constant, 0.0))
        if self.quilts is None:
            scale, runs = search.solve()
        else:
            runs = tuple(QuiltRun(*run) for run in self.quilts)
            scale = search.price(runs) if _covers(runs, self.length) else float("inf")
        if scale == float("inf"):
            remedy = "leave quilts out, or raise epsilon"
            _check.refuse_state(
                "quilts", "cover each record and leak less than epsilon", "they do not", remedy
            )
        lattice = lattice_for(self.lipschitz, scale)
        if not lattice.integral:
            # Rounding both answers moves each entry by a step more at most.
            search.cost = (constant, self.entries * float(lattice.step))
            scale = search.price(runs)
        object.__setattr__(self, "active_quilts", runs)
        # A sequence whose records can take one value only has nothing to hide; the least noise is drawn.
        object.__setattr__(self, "_scale", max(scale, constant / self.epsilon))
        object.__setattr__(self, "_grid", lattice)
        lattice.check_noise("lipschitz", Fraction(self._scale))

    @property
    def scale(self) -> float:
        """Scale of the Laplace noise, in the unit of the answer, rounded up."""
        return self._scale

    @property
    def group_scale(self) -> float:
        """The scale that group privacy over all records needs: ``lipschitz length / epsilon``."""
        return float(Fraction(self.lipschitz) * self.length / Fraction(self.epsilon))

    @property
    def guarantee(self) -> PufferfishGuarantee:
        """What one release hides: each record's value, with the active quilts by which releases compose."""
        parts = self.chain if isinstance(self.chain, tuple) else (self.chain,)
        content = "".join([*sorted({part.digest for part in parts}), str(self.length)])
        models = [part.describe() for part in parts]
        return PufferfishGuarantee(
            largest_epsilon=self.epsilon,
            secrets=_SECRETS,
            models=models[0] if len(models) == 1 else f"one of {len(models)} Markov chains",
            digest=hashlib.sha256(content.encode()).hexdigest(),
            theorem="Song, Wang, Chaudhuri 2017, Theorem 4.3",
            quilts=self.active_quilts,
        )

    @property
    def _lattice(self) -> Lattice:
        return self._grid


def _covers(runs: tuple[QuiltRun, ...], length: int) -> bool:
    expected = 1
    for run in runs:
        if run.first != expected or run.last < run.first or min(run.left, run.right) < 0:
            return False
        expected = run.last + 1
    return expected == length + 1
