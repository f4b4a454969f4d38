r"""Reconstruction from linear queries: a secret bit of each person, from noisy sums over known subsets.

Guarantee: let all errors be at most :math:`E`, and let :math:`\sigma` be the smallest singular value of the
queries. Every point of the box whose answers are within :math:`E` has
:math:`\|Q(\hat x - x)\|_\infty \le 2E`, so that :math:`\|\hat x - x\|^2 \le 4E^2 m/\sigma^2`, and rounding
gets at most :math:`16 E^2 m / \sigma^2` bits wrong: a wrong bit is off by half at least. For :math:`m` random
subsets :math:`\sigma^2` is about :math:`(\sqrt m - \sqrt n)^2/4`, and :math:`E` of the order of
:math:`\sqrt n` is the threshold below which nearly all bits are found (Dinur, Nissim 2003). With *all*
:math:`2^n` subsets at most :math:`4E` bits are wrong (Dwork, Roth 2014, Theorem 8.1).

With independent normal errors of deviation :math:`s` on random halves, least squares finds a bit with the
chance of about :math:`\Phi(\sqrt{m - n} / 4s)`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Final, Literal, final

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import ndtr

from sfumato import _check
from sfumato.attacks.base.attack import Attack, read_release
from sfumato.attacks.base.findings import Findings
from sfumato.attacks.base.knowledge import Knowledge
from sfumato.attacks.reconstruction.bounded_least_squares import (
    as_operator,
    bounded_least_squares,
    is_sparse,
    least_squares,
    smallest_singular_value,
)
from sfumato.attacks.reconstruction.exhaustive_search import exhaustive_search
from sfumato.attacks.reconstruction.linear_programs import feasible_point, least_absolute_errors
from sfumato.attacks.reconstruction.secret_bits import as_bits, bit_ceiling, guessed_bits
from sfumato.privacy.loss import PrivacyLoss

__all__ = ["LinearReconstruction", "random_subset_queries", "reconstruction_accuracy"]

Method = Literal["least-squares", "bounded-least-squares", "l1", "feasibility", "exhaustive"]
_METHODS: Final = ("least-squares", "bounded-least-squares", "l1", "feasibility", "exhaustive")


def random_subset_queries(people: int, queries: int, rng: int | np.random.Generator) -> NDArray[np.float32]:
    """Return the sums over random subsets that an attacker asks: each person is in half of them.

    Parameters
    ----------
    people, queries : int
        How many.
    rng : int or numpy Generator
        The queries are the attacker's; no secret depends on them.

    Returns
    -------
    float32 array of 0 and 1, shape (queries, people)
        Its product with the bits is exact up to 2**24 people.

    Examples
    --------
    >>> random_subset_queries(4, 2, 1).shape
    (2, 4)
    """
    shape = tuple(
        _check.integer(name, value, minimum=1) for name, value in (("queries", queries), ("people", people))
    )
    return np.random.default_rng(rng).integers(0, 2, shape, dtype=np.uint8).astype(np.float32)


def reconstruction_accuracy(people: int, queries: int, stddev: float) -> float:
    r"""Return about which share of bits least squares finds, from random subsets with normal errors.

    Parameters
    ----------
    people, queries : int
        How many; more queries than people.
    stddev : float
        Of the errors.

    Returns
    -------
    float
        :math:`\Phi(\sqrt{m - n}/4s)`: each estimate is normal around its bit, with a variance of nearly
        :math:`4s^2/(m - n)`.

    Examples
    --------
    >>> [round(reconstruction_accuracy(2000, 16_000, s), 3) for s in (11.2, 22.4, 44.7)]
    [0.996, 0.907, 0.746]
    """
    stddev = _check.positive("stddev", stddev, "pass the standard deviation of the errors")
    people = _check.integer("people", people, minimum=1)
    queries = _check.integer("queries", queries, minimum=people + 1, remedy="fewer determine nothing")
    return float(ndtr(math.sqrt(queries - people) / (4 * stddev)))


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class LinearReconstruction(Attack):
    """All people's secret bits from noisy answers to linear queries about them.

    Parameters
    ----------
    queries : array or scipy sparse array of shape (queries, people)
        How much a person's bit adds to each answer: 0 and 1 for sums over subsets, any numbers otherwise.
    method : {"least-squares", "bounded-least-squares", "l1", "feasibility", "exhaustive"}
        Least squares is fastest, and within the bounds 0 and 1 best for normal errors; ``"l1"`` stands a few
        errors of any size; ``"feasibility"`` takes any bits within ``error_bound``; ``"exhaustive"`` tries
        all bits of at most 20 people.
    error_bound : float, optional
        The most that an answer is off, for the last two.
    prior : float, optional
        Chance of a bit to be 1, where the bits are independent: only then does a privacy loss bound how
        many are found, and the bound is shown.

    Raises
    ------
    ParameterError
        If a parameter breaks its rule; in `run`, if no bits fit the error bound.

    Notes
    -----
    The bound on the accuracy takes a bit that is 0 for an absent record: answers that are sums of bits have
    the same distribution. So the loss may be under add/remove, zero-out or replace-one.

    References
    ----------
    Dinur, Nissim (2003), "Revealing information while preserving privacy"; Dwork, McSherry, Talwar (2007),
    "The price of privacy and the limits of LP decoding".

    Examples
    --------
    >>> import numpy as np
    >>> from sfumato import attacks
    >>> secret = np.random.default_rng(1).random(50) < 0.5
    >>> queries = attacks.random_subset_queries(50, 400, rng=2)
    >>> answers = queries @ secret + np.random.default_rng(3).normal(0, 1, 400)
    >>> found = attacks.LinearReconstruction(queries=queries).run(answers, truth=secret)
    >>> found.numbers["accuracy"]
    1.0
    """

    queries: Any
    method: Method = "least-squares"
    error_bound: float | None = None
    prior: float | None = None

    def __post_init__(self) -> None:
        queries: Any = self.queries if is_sparse(self.queries) else np.asarray(self.queries)
        if queries.ndim != 2 or 0 in queries.shape or queries.dtype.kind not in "biuf":
            remedy = "pass a row for each query and a column for each person"
            _check.refuse_type("queries", "be a matrix of numbers", queries, remedy)
        if (
            queries.dtype.kind == "f"
            and not np.isfinite(queries.data if is_sparse(queries) else queries).all()
        ):
            _check.refuse_type("queries", "be finite", queries, "leave out what is not known")
        object.__setattr__(self, "queries", queries)
        if self.method not in _METHODS:
            remedy = "leave it out for least squares"
            _check.refuse("method", f"be one of {', '.join(_METHODS)}", self.method, remedy)
        if self.error_bound is not None:
            _check.non_negative("error_bound", self.error_bound, "pass the most that an answer is off")
        elif self.method == "feasibility":
            remedy = "pass the most that an answer is off, or use method='l1'"
            _check.refuse_state("error_bound", "be given for feasibility", "it is None", remedy)
        if self.prior is not None:
            _check.unit_interval("prior", self.prior, "pass the chance that a bit is 1")

    @property
    def knowledge(self) -> Knowledge:
        """What the attacker has beside the answers."""
        known = ["who is in each query", "that each person's value is 0 or 1"]
        if self.error_bound is not None:
            known.append(f"that no answer is off by more than {self.error_bound:g}")
        return Knowledge(tuple(known), {"queries": self.queries})

    def estimates(self, release: Any) -> NDArray[np.float64]:
        """Return what the method estimates of each bit, before rounding.

        Parameters
        ----------
        release : Release or array of shape (queries,)
            The answers.

        Returns
        -------
        array of shape (people,)
        """
        answers = np.asarray(read_release(release).value)
        if answers.shape != self.queries.shape[:1] or answers.dtype.kind not in "iuf":
            remedy = "pass the answers in the order of the queries"
            _check.refuse_type("release", "be one number for each query", answers, remedy)
        answers = answers.astype(np.float64)
        if not np.isfinite(answers).all():
            _check.refuse_type("release", "be finite", answers, "leave out missing answers and their queries")
        if self.method == "least-squares":
            return least_squares(as_operator(self.queries), answers)
        if self.method == "bounded-least-squares":
            return bounded_least_squares(as_operator(self.queries), answers)
        if self.method == "l1":
            return least_absolute_errors(self.queries, answers)
        if self.method == "feasibility":
            return feasible_point(self.queries, answers, float(self.error_bound or 0.0))
        dense = self.queries.toarray() if is_sparse(self.queries) else self.queries
        return exhaustive_search(dense, answers, self.error_bound).bits

    def noise_threshold(self, wrong: float = 0.05) -> float:
        """Return the error up to which at most this share of bits is wrong, whatever the errors are.

        Parameters
        ----------
        wrong : float
            Share of the people, strictly between 0 and 1.

        Returns
        -------
        float
            Of the largest error of any answer; 0 where the queries do not determine the bits. It holds for
            ``"feasibility"`` and ``"exhaustive"`` with ``error_bound`` of at most that, by the theorem above.

        Examples
        --------
        >>> from sfumato import attacks
        >>> attack = attacks.LinearReconstruction(queries=attacks.random_subset_queries(100, 900, rng=1))
        >>> 0.15 < attack.noise_threshold() < 0.25
        True
        """
        wrong = _check.unit_interval("wrong", wrong)
        count, people = self.queries.shape
        smallest = smallest_singular_value(self.queries) * (1 - 1e-9)  # its round-off, and more
        return smallest * math.sqrt(wrong * people / (16 * count))

    def run(
        self,
        release: Any,
        *,
        truth: ArrayLike | None = None,
        controls: ArrayLike | None = None,
        exchangeable: bool = False,
        loss: PrivacyLoss | None = None,
        confidence: float = 0.95,
    ) -> Findings:
        """Guess everyone's bit.

        Parameters
        ----------
        release : Release or array of shape (queries,)
            The answers.
        truth : array of 0 and 1, shape (people,), optional
            The bits.
        controls : array of 0 and 1, optional
            Bits of people who are in no query. All that the attack can say of them is the majority of what it
            guessed.
        exchangeable : bool
            Whether people and controls were drawn alike; no bound on the rates follows here.
        loss : PrivacyLoss, optional
            Of all answers together, if the release brings none.
        confidence : float
            That the intervals hold together.

        Returns
        -------
        Findings
            Among its numbers the accuracy, and that of guessing everyone's bit as the majority's.
        """
        read = read_release(release, loss)
        estimates = self.estimates(release)
        guesses = estimates > 0.5
        count, people = self.queries.shape
        bits = None if truth is None else as_bits("truth", truth, people)
        targets = guessed_bits(guesses, np.abs(estimates - 0.5), bits)
        other = None
        if controls is not None:
            theirs = as_bits("controls", controls, None)
            majority = np.full(len(theirs), bool(guesses.mean() > 0.5))
            other = guessed_bits(majority, np.zeros(len(theirs)), theirs)
        numbers: dict[str, float] = {"queries": count, "people": people}
        if bits is not None:
            numbers["accuracy"] = float((guesses == bits).mean())
            numbers["accuracy of the majority guess"] = max(float(bits.mean()), 1 - float(bits.mean()))
        if self.method == "exhaustive":
            numbers["bits that are the same in all that fits"] = int((targets.scores == 0.5).sum())
        return Findings(
            attack=f"reconstruction ({self.method})",
            kind="value",
            knowledge=self.knowledge,
            targets=targets,
            controls=other,
            loss=read.loss,
            exchangeable=exchangeable,
            confidence=confidence,
            numbers=numbers,
            notes=self._notes(),
            no_bound="a bound takes a prior of independent bits; people in no query are guessed otherwise",
            extra_bounds=bit_ceiling(targets, read.loss, self.prior, confidence),
        )

    def _notes(self) -> tuple[str, ...]:
        count, people = self.queries.shape
        if count >= people:
            return ()
        return (f"{count} answers do not determine {people} bits: what is found rests on the bounds 0 and 1",)
