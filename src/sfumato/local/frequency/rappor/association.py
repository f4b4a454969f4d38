"""Estimate the joint distribution of two strings of each device, from the two reports that it sent."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, final

import numpy as np
from numpy.typing import NDArray
from scipy.special import chdtrc

from sfumato import _check
from sfumato.local.device.base.record_layout import Records
from sfumato.local.device.base.report_batch import ReportBatch
from sfumato.local.frequency.rappor.oracle import Rappor
from sfumato.local.frequency.variance import Array
from sfumato.privacy.loss import PrivacyLoss

__all__ = ["Association", "associate"]

_MAX_CELLS: Final = 1024
_ROUNDS: Final = 2000
_CLOSE: Final = 1e-7
_BLOCK: Final = 1 << 12

Names = Sequence[str | bytes]


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Association:
    r"""The joint distribution of two strings, and a test of whether they are independent.

    Parameters
    ----------
    first, second : tuple
        The candidates of each variable, and None at the end for all other strings, if there may be some.
    joint : array, shape (first, second)
        The most likely shares of devices with each pair; they sum up to 1.
    covariance : array, shape (cells, cells)
        Of the shares, row by row; from the observed information.
    statistic : float
        Twice the log of the likelihood ratio to independence.
    freedom : int
        Its degrees of freedom.
    pairs, refused : int
        Devices that were counted, and those of which one report was refused.
    loss : PrivacyLoss
        Of both reports of a device together.

    Notes
    -----
    Errors and the test are right for many devices, and approximate if shares are at 0: there the statistic is
    stochastically less than chi-squared.

    Examples
    --------
    >>> from sfumato.local import Rappor, associate
    >>> oracle = Rappor(bits=32, cohorts=4, permanent=0.25, instantaneous=None)
    >>> colours = oracle.randomize_batch(["red", "blue"] * 1000, 1)
    >>> sizes = oracle.randomize_batch(["small", "large"] * 1000, 2)
    >>> names = {"first_candidates": ["blue", "red"], "second_candidates": ["large", "small"]}
    >>> found = associate(oracle, colours, oracle, sizes, others=False, **names)
    >>> found.joint.shape, found.p_value < 0.001
    ((2, 2), True)
    """

    first: tuple[str | bytes | None, ...]
    second: tuple[str | bytes | None, ...]
    joint: Array
    covariance: Array
    statistic: float
    freedom: int
    pairs: int
    refused: int
    loss: PrivacyLoss

    @property
    def stddev(self) -> Array:
        """Estimated standard deviations of the shares, in the shape of `joint`."""
        return np.sqrt(np.maximum(np.diag(self.covariance), 0.0)).reshape(self.joint.shape)

    @property
    def p_value(self) -> float:
        """Chance of such a statistic, or a greater one, of independent strings."""
        return float(chdtrc(self.freedom, self.statistic))

    def independent(self, level: float = 0.95) -> bool:
        """Return whether a test at this level of confidence does not reject independence.

        Parameters
        ----------
        level : float
            Strictly between 0 and 1; the test rejects wrongly with probability 1 - level.

        Returns
        -------
        bool
            False where the strings are dependent.
        """
        return self.p_value > 1 - _check.unit_interval("level", level)


def associate(
    first: Rappor,
    first_reports: ReportBatch,
    second: Rappor,
    second_reports: ReportBatch,
    *,
    first_candidates: Names,
    second_candidates: Names,
    others: bool = True,
) -> Association:
    r"""Estimate the joint distribution of two strings of each device, and test their independence.

    Parameters
    ----------
    first : Rappor
        What the first reports were made by.
    first_reports : ReportBatch
        Report i of both batches is of the same device: such reports cannot be shuffled, and their losses add
        up.
    second : Rappor
        What the second reports were made by; the same as ``first``, if the devices drew anew for each.
    second_reports : ReportBatch
        The second batch.
    first_candidates, second_candidates : sequence of str or bytes
        Different strings that may have been reported, so many that there are at most 1024 pairs of them, with
        one more of each for all others.
    others : bool
        Whether there may be strings that are no candidates; if not, pass two candidates of each or more.

    Returns
    -------
    Association
        The joint shares with their covariance, and a likelihood ratio test.

    Raises
    ------
    ParameterError
        If the batches are not of the same devices, or the candidates make too many pairs.

    Notes
    -----
    The likelihood of a report given a candidate is the product over its bits, exactly; the two reports of a
    device are independent given both strings. EM (Dempster, Laird, Rubin 1977) then finds the most likely
    joint distribution. All strings that are no candidates count as one, whose filter has its bits by chance:
    that is an approximation for many rare ones, and wrong for a frequent one, which belongs among the
    candidates.

    References
    ----------
    Fanti, Pihur, Erlingsson (2016), "Building a RAPPOR with the unknown: privacy-preserving learning of
    associations and data dictionaries".

    Examples
    --------
    >>> oracle = Rappor(bits=32, cohorts=4, permanent=0.25, instantaneous=None)
    >>> colours, sizes = ["red", "blue"] * 2000, ["small", "large"] * 2000
    >>> reports = oracle.randomize_batch(colours, 1), oracle.randomize_batch(sizes, 2)
    >>> found = associate(
    ...     oracle,
    ...     reports[0],
    ...     oracle,
    ...     reports[1],
    ...     first_candidates=["blue", "red"],
    ...     second_candidates=["large", "small"],
    ... )
    >>> found.independent(0.999)
    False
    """
    names = _names("first_candidates", first_candidates), _names("second_candidates", second_candidates)
    cells = (len(names[0]) + others) * (len(names[1]) + others)
    if not others and min(len(names[0]), len(names[1])) < 2:
        _check.refuse(
            "others", "be True for a single candidate", others, "pass others=True or more candidates"
        )
    if cells > _MAX_CELLS:
        _check.refuse("candidates", f"make at most {_MAX_CELLS} pairs", cells, "pass fewer")
    given = (
        _records("first_reports", first, first_reports),
        _records("second_reports", second, second_reports),
    )
    if len(given[0]) != len(given[1]):
        rule, found = "be as many as the first", f"there are {len(given[0])} and {len(given[1])}"
        _check.refuse_state("second_reports", rule, found, "pass one of each device, in the same order")
    sound = _sound(first, given[0]) & _sound(second, given[1])
    pairs = int(sound.sum())
    if not pairs:
        _check.refuse("first_reports", "have at least one pair that is not refused", pairs, "collect some")
    left = _likelihoods(first, given[0][sound], names[0], others)
    right = _likelihoods(second, given[1][sound], names[1], others)
    alone = np.outer(_marginal(left), _marginal(right))
    joint = _joint(left, right, alone)
    ratio = np.log(_mixed(left, right, joint)) - np.log(_mixed(left, right, alone))
    return Association(
        first=(*names[0], None) if others else names[0],
        second=(*names[1], None) if others else names[1],
        joint=joint,
        covariance=_covariance(left, right, joint),
        statistic=max(0.0, 2 * float(ratio.sum())),
        freedom=(joint.shape[0] - 1) * (joint.shape[1] - 1),
        pairs=pairs,
        refused=len(sound) - pairs,
        loss=first.one_report_loss + second.one_report_loss,
    )


def _names(name: str, given: object) -> tuple[str | bytes, ...]:
    if isinstance(given, str | bytes) or not isinstance(given, Sequence) or not given:
        _check.refuse_type(name, "be one or more different strings, in a list", given, "pass a list")
    if len(set(given)) < len(given):
        _check.refuse(name, "be different from each other", len(given), "leave out repeats")
    return tuple(given)


def _records(name: str, oracle: Rappor, reports: ReportBatch) -> Records:
    _check.instance(name.removesuffix("_reports"), oracle, Rappor, "pass what the reports were made by")
    given: object = reports
    if not isinstance(given, ReportBatch):
        _check.refuse_type(name, "be a ReportBatch", given, "pass ReportBatch.from_bytes(data)")
    if given.digest != oracle.device.digest:
        _check.refuse(
            name, "be of the specification they are counted by", given.digest.hex()[:8], "pass its protocol"
        )
    return given.records


def _sound(oracle: Rappor, records: Records) -> NDArray[np.bool_]:
    return np.asarray(oracle.device.layout.genuine(records) & oracle.device.well_formed(records))


def _likelihoods(oracle: Rappor, records: Records, names: Names, others: bool) -> Array:
    """Return how likely each report is given each candidate, and given any other string, up to a factor."""
    device = oracle.device
    rows, cohorts = device.opened(records)
    p, q = map(float, device.chances)
    # Relative to an empty filter: only bits that are set count.
    one, zero = np.log(q / p), np.log((1 - q) / (1 - p))
    load = 1 - (1 - 1 / device.bits) ** device.hashes
    rate = p + load * (q - p)
    logs = np.empty((len(rows), len(names) + others))
    for cohort in np.unique(cohorts).tolist():
        own = np.flatnonzero(cohorts == cohort)
        sent = np.unpackbits(rows[own], axis=1, bitorder="little").astype(np.float64)
        bits = np.zeros((len(names), device.bits))
        np.put_along_axis(bits, device.indices(names, [cohort] * len(names)), 1.0, axis=1)
        logs[own, : len(names)] = sent @ bits.T * (one - zero) + bits.sum(axis=1) * zero
        if others:
            ones = sent.sum(axis=1)
            logs[own, -1] = ones * np.log(rate / p) + (device.bits - ones) * np.log((1 - rate) / (1 - p))
    return np.asarray(np.exp(logs - logs.max(axis=1, keepdims=True)))


def _marginal(likelihoods: Array) -> Array:
    """Return the most likely shares of one variable."""
    return _joint(likelihoods, np.ones((len(likelihoods), 1)), None)[:, 0]


def _mixed(left: Array, right: Array, joint: Array) -> Array:
    """Return the likelihood of each pair of reports."""
    return np.asarray(((left @ joint) * right).sum(axis=1))


def _joint(left: Array, right: Array, start: Array | None) -> Array:
    """Return the most likely shares of pairs, by EM; from near a start, or from even shares."""
    shape = left.shape[1], right.shape[1]
    joint = np.full(shape, 1 / (shape[0] * shape[1]))
    if start is not None:
        joint = 0.1 * joint + 0.9 * start
    for _ in range(_ROUNDS):
        weights = right / _mixed(left, right, joint)[:, None]
        new = joint * (left.T @ weights) / len(left)
        moved = float(abs(new - joint).max())
        joint = new
        if moved <= _CLOSE:
            break
    return np.asarray(joint / joint.sum())


def _covariance(left: Array, right: Array, joint: Array) -> Array:
    """Return the inverse of the observed information, among shares that sum up to 1."""
    cells = joint.size
    information = np.zeros((cells, cells))
    for start in range(0, len(left), _BLOCK):
        part = left[start : start + _BLOCK], right[start : start + _BLOCK]
        slopes = (part[0][:, :, None] * part[1][:, None, :]).reshape(-1, cells)
        slopes = slopes / _mixed(*part, joint)[:, None]
        information += slopes.T @ slopes
    apart = np.linalg.svd(np.ones((1, cells)))[2][1:]
    inside = np.linalg.pinv(apart @ information @ apart.T, hermitian=True)
    return np.asarray(apart.T @ inside @ apart)
