r"""Fingerprinting codes: no accurate answer to many means hides everyone, and so bounds private mechanisms.

A code gives each of :math:`n` users a row of random bits. Whoever publishes a word that agrees with the rows
in every column where all of them agree (the marking assumption) lets one of the users be traced, while a
stranger is accused with a chance below :math:`\xi` *whatever* is published (Tardos 2008). Rounded answers to
the columns' means are such a word, if all of the unanimous columns' answers are off by less than a half. So
no mechanism that is so accurate has a small epsilon (Bun, Ullman, Vadhan 2014):

.. math:: \frac{1}{n}\Pr[\text{some user is accused}] \le e^\epsilon \xi + \delta.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, NamedTuple, final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sfumato import _check
from sfumato.attacks.base.target_guesses import rate_interval
from sfumato.numerics.interval import Interval

__all__ = ["Codebook", "FingerprintingReport", "TardosCode", "fingerprinting_experiment"]

_LENGTH: Final = 100
_THRESHOLD: Final = 20
_CUTOFF: Final = 300


class Codebook(NamedTuple):
    """One draw of a code.

    Attributes
    ----------
    biases : array of shape (columns,)
        The chance of a 1 in each column: secret.
    rows : bool array of shape (users, columns)
        A codeword for each user.
    """

    biases: NDArray[np.float64]
    rows: NDArray[np.bool_]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class TardosCode:
    r"""Tardos's fingerprinting code.

    Parameters
    ----------
    users : int
        Who hold codewords.
    coalition : int, optional
        Against how many of them together it is secure; all by default.
    false_accusation : float
        The chance :math:`\xi` with which one given innocent is accused, at most.

    Raises
    ------
    ParameterError
        If a parameter breaks its rule.

    Notes
    -----
    Guarantee (Tardos 2008; :math:`c` colluders, :math:`k = \lceil\ln(1/\xi)\rceil`): with
    :math:`100 c^2 k` columns, biases :math:`\sin^2 r` for uniform :math:`r`, cut off at :math:`1/300c`, and
    the threshold :math:`20 c k`, an innocent is accused with a chance below :math:`\xi`, and no colluder is
    accused with a chance below :math:`\xi^{c/4}`, under the marking assumption.

    References
    ----------
    Tardos (2008), "Optimal probabilistic fingerprint codes".

    Examples
    --------
    >>> code = TardosCode(users=3, false_accusation=0.01)
    >>> book = code.draw(1)
    >>> code.columns, code.accused(book, book.rows[0]).tolist()
    (4500, [True, False, False])
    """

    users: int
    coalition: int | None = None
    false_accusation: float = 1e-3

    def __post_init__(self) -> None:
        users = _check.integer("users", self.users, minimum=1)
        coalition = users if self.coalition is None else self.coalition
        object.__setattr__(self, "coalition", _check.integer("coalition", coalition, minimum=1))
        _check.unit_interval("false_accusation", self.false_accusation)

    @property
    def columns(self) -> int:
        """The length of the code."""
        return _LENGTH * self._colluders**2 * self._logarithm

    @property
    def missed(self) -> float:
        """The chance that no colluder is accused, at most."""
        return float(self.false_accusation ** (self._colluders / 4))

    def draw(self, rng: int | np.random.Generator) -> Codebook:
        """Draw biases and codewords.

        Parameters
        ----------
        rng : int or numpy Generator
            An experiment's; to mark real copies takes a secret one.

        Returns
        -------
        Codebook
        """
        generator = np.random.default_rng(rng)
        end = math.asin(math.sqrt(1 / (_CUTOFF * self._colluders)))
        biases = np.sin(generator.uniform(end, math.pi / 2 - end, self.columns)) ** 2
        return Codebook(biases, generator.random((self.users, self.columns)) < biases)

    def accused(self, book: Codebook, word: ArrayLike) -> NDArray[np.bool_]:
        """Return who is accused of having made a word.

        Parameters
        ----------
        book : Codebook
            Or rows of other people at the same biases.
        word : bool array of shape (columns,)
            What was published.

        Returns
        -------
        bool array of shape (users,)
        """
        ones = np.asarray(word)
        if ones.dtype != np.bool_ or ones.shape != (self.columns,):
            _check.refuse_type("word", "be one bool for each column", ones, "round the answers at a half")
        odds = np.sqrt((1 - book.biases) / book.biases)
        without = np.where(ones, -1 / odds, 0.0)
        scores = without.sum() + book.rows @ np.where(ones, odds + 1 / odds, 0.0)
        return np.asarray(scores > _THRESHOLD * self._colluders * self._logarithm)

    @property
    def _colluders(self) -> int:
        return self.users if self.coalition is None else self.coalition

    @property
    def _logarithm(self) -> int:
        return math.ceil(math.log(1 / self.false_accusation))


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class FingerprintingReport:
    """What a mechanism let be traced.

    Parameters
    ----------
    traced : Interval
        The chance that some user is accused.
    strangers : Interval
        The chance that a stranger is; the theorem bounds it, whatever the mechanism does.
    accurate : Interval
        The chance that the rounded answers are right in every unanimous column.
    epsilon_lower : float
        What is proved of the mechanism's epsilon at ``delta``, if a user's row is replaced.
    delta, confidence : float
        For which that holds, and how certain all intervals are together.

    Examples
    --------
    >>> code = TardosCode(users=2)
    >>> report = fingerprinting_experiment(lambda rows: rows.mean(axis=0), code, runs=40)
    >>> report.traced.lower > 0.8, report.epsilon_lower > 5
    (True, True)
    """

    traced: Interval
    strangers: Interval
    accurate: Interval
    epsilon_lower: float
    delta: float
    confidence: float

    def __str__(self) -> str:
        lines = [
            f"{name}: {value.lower:.4f} to {value.upper:.4f}"
            for name, value in (
                ("some user is traced", self.traced),
                ("a stranger is accused", self.strangers),
                ("all unanimous columns are right", self.accurate),
            )
        ]
        shown = math.floor(self.epsilon_lower * 1e4) / 1e4
        lines.append(f"epsilon at least {shown:g} at delta {self.delta:g}, confidence {self.confidence:g}")
        return "\n".join(lines)


def fingerprinting_experiment(
    mechanism: Callable[[NDArray[np.bool_]], ArrayLike],
    code: TardosCode,
    *,
    runs: int,
    delta: float = 0.0,
    confidence: float = 0.95,
    rng: int | np.random.Generator = 0,
) -> FingerprintingReport:
    r"""Run a mechanism for means on fingerprinting codes, and say what that proves of its epsilon.

    Parameters
    ----------
    mechanism : callable
        Takes the users' rows, returns a number for each column: the mean, with noise.
    code : TardosCode
    runs : int
        Each on a code of its own, so that they are independent.
    delta : float
        At which epsilon is bounded.
    confidence : float
        That all intervals and the bound hold together.
    rng : int or numpy Generator
        For codes.

    Returns
    -------
    FingerprintingReport

    Raises
    ------
    ParameterError
        If a parameter breaks its rule.

    Notes
    -----
    Guarantee: with a user's row replaced by a fresh one, the answers are independent of the old row given
    the biases, and it is accused with a chance below :math:`\xi`. So each user is accused with a chance of at
    most :math:`e^\epsilon \xi + \delta`, and some user with at most :math:`n` times that: epsilon is at least
    :math:`\ln((p/n - \delta)/\xi)` for every lower bound :math:`p` of what was seen. Nothing is assumed of
    the mechanism, or of its accuracy; but an accurate one *must* be traced, by the theorem on the code.

    References
    ----------
    Bun, Ullman, Vadhan (2014), "Fingerprinting codes and the price of approximate differential privacy".

    Examples
    --------
    >>> import numpy as np
    >>> noise = np.random.default_rng(1)
    >>> code = TardosCode(users=2)
    >>> noisy = lambda rows: rows.mean(axis=0) + noise.laplace(0, 1000, code.columns)
    >>> fingerprinting_experiment(noisy, code, runs=40).epsilon_lower
    0.0
    """
    _check.instance("code", code, TardosCode, "pass TardosCode(users=...)")
    runs = _check.integer("runs", runs, minimum=1)
    delta = _check.probability("delta", delta)
    risk = (1 - _check.unit_interval("confidence", confidence)) / 6
    generator = np.random.default_rng(rng)
    traced = accurate = strangers = 0
    for _ in range(runs):
        book = code.draw(generator)
        answers = np.asarray(mechanism(book.rows), dtype=np.float64)
        if answers.shape != (code.columns,) or np.isnan(answers).any():
            _check.refuse_type("mechanism", "return one number for each column", answers, "answer all means")
        word = answers > 0.5
        traced += bool(code.accused(book, word).any())
        fresh = Codebook(book.biases, generator.random((1, code.columns)) < book.biases)
        strangers += bool(code.accused(fresh, word).any())
        means = book.rows.mean(axis=0)
        accurate += bool((word | (means < 1)).all() and (~word | (means > 0)).all())
    intervals = [rate_interval(count, runs, risk) for count in (traced, strangers, accurate)]
    each = intervals[0].lower / code.users - delta
    lower = math.log(each / code.false_accusation) if each > 0 else 0.0
    return FingerprintingReport(
        traced=intervals[0],
        strangers=intervals[1],
        accurate=intervals[2],
        epsilon_lower=max(0.0, math.nextafter(lower, 0.0)),
        delta=delta,
        confidence=confidence,
    )
