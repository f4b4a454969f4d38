r"""Counting transcripts: an analyst who learns little can ask little that depends on the sample."""

from __future__ import annotations

import math
from collections.abc import Sequence

from sfumato import _check
from sfumato.adaptive.generalization.generalization_bound import GeneralizationBound, rounded_up

__all__ = ["log_binomial", "log_queries", "log_sum", "sample_splitting_bound", "transcript_bound"]


def log_queries(queries: int, *, informative: int, outcomes: float) -> float:
    r"""Return the log of how many different queries a strategy can lead to.

    Parameters
    ----------
    queries : int
        Asked one after another, each chosen by all answers before it.
    informative : int
        How many answers depend on the sample beyond "as expected", at most.
    outcomes : float
        How many values each of these can take.

    Returns
    -------
    float
        :math:`\ln \sum_{b \le B} \binom{m}{b+1} g^b`, rounded up.

    Notes
    -----
    The i-th query is fixed by which of the i - 1 answers before it were informative and by what they were:
    :math:`\sum_b \binom{i-1}{b} g^b` ways, with at most B of them. Summed over i.

    Examples
    --------
    >>> round(math.exp(log_queries(3, informative=1, outcomes=2)))  # one, 1 + 2, and 1 + 2 * 2 histories
    9
    """
    asked = _check.integer("queries", queries, minimum=1)
    most = min(_check.integer("informative", informative), asked - 1)
    each = _check.positive("outcomes", outcomes)
    terms = [log_binomial(asked, b + 1) + b * math.log(each) for b in range(most + 1)]
    return log_sum(terms)


def log_sum(terms: Sequence[float]) -> float:
    """Return the log of a sum of numbers that are given by their logs, rounded up."""
    top = max(terms)
    return rounded_up(max(0.0, top + math.log(math.fsum(math.exp(term - top) for term in terms)))) + 1e-8


def log_binomial(n: int, k: int) -> float:
    """Return the log of a binomial coefficient, rounded up for large k, else to about 1e-14."""
    if k > 200:
        whole, one, other = math.lgamma(n + 1), math.lgamma(k + 1), math.lgamma(n - k + 1)
        return whole - one - other + (whole + one + other) * 2.0**-49  # each is off by some roundings
    return math.log(math.comb(n, k))


def transcript_bound(
    *, rows: int, log_count: float, beta: float, sample_error: float = 0.0, theorem: str = ""
) -> GeneralizationBound:
    r"""Bound the error of all queries that a strategy can lead to, by Hoeffding's inequality for each.

    Parameters
    ----------
    rows : int
    log_count : float
        From `log_queries`.
    beta : float
        The probability with which the bound may fail.
    sample_error : float
        How far an answer is from the sample's own value, at most.
    theorem : str, optional
        Named in the bound in place of the general one.

    Returns
    -------
    GeneralizationBound
        :math:`\sqrt{(\ln N + \ln(2/\beta)) / (2 n)}` and the sample's error.

    Notes
    -----
    Conditions: rows are independent draws from one population; the strategy may be randomised by coins that
    are independent of the rows; what it learns is the answers and nothing else.

    References
    ----------
    Dwork, Feldman, Hardt, Pitassi, Reingold, Roth (2015), Generalization in Adaptive Data Analysis and
    Holdout Reuse: description length.

    Examples
    --------
    >>> log_count = log_queries(1000, informative=10, outcomes=100)
    >>> print(transcript_bound(rows=10_000, log_count=log_count, beta=0.05))
    All answers within 0.0735 of the population (95 % sure). Proof: description length of the answers.
    """
    count = _check.integer("rows", rows, minimum=1)
    failure = _check.unit_interval("beta", beta)
    alpha = _check.non_negative("sample_error", sample_error)
    log = _check.non_negative("log_count", log_count) + math.log(2 / failure)
    return GeneralizationBound(
        error=rounded_up(alpha + math.sqrt(log / (2 * count))),
        beta=failure,
        theorem=theorem or "description length of the answers",
        parts={"sample error": alpha, "log of the queries that can be asked": log_count},
    )


def sample_splitting_bound(*, rows: int, queries: int, beta: float) -> GeneralizationBound:
    """Bound the error where each query gets a part of the rows of its own: the baseline of all others.

    Parameters
    ----------
    rows, queries : int
    beta : float
        The probability with which the bound may fail.

    Returns
    -------
    GeneralizationBound
        1, which says nothing, where there are fewer rows than queries.

    Examples
    --------
    >>> round(sample_splitting_bound(rows=10_000, queries=10, beta=0.05).error, 4)
    0.0547
    """
    count = _check.integer("rows", rows, minimum=1)
    asked = _check.integer("queries", queries, minimum=1)
    failure = _check.unit_interval("beta", beta)
    part = count // asked
    error = math.sqrt(math.log(2 * asked / failure) / (2 * part)) if part else 1.0
    return GeneralizationBound(
        error=rounded_up(error), beta=failure, theorem="Hoeffding, a fresh part for each query"
    )
