"""Several randomized questions to each respondent: what they cost together, and how answers are counted."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, final

import numpy as np
from numpy.typing import NDArray

from sfumato import _check
from sfumato.local.surveys.designs.binary import BinaryDesign
from sfumato.local.surveys.estimates.answer_counts import indices
from sfumato.local.surveys.scores.score_estimate import ScoreEstimate
from sfumato.numerics.randomness.source import Rng, random_source
from sfumato.privacy.loss import PrivacyLoss, compose

__all__ = ["SumScore"]

_MAX: Final = 32


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class SumScore:
    r"""Several yes-or-no questions to each respondent, of which the number that are true is the score.

    Parameters
    ----------
    designs : sequence of BinaryDesign
        How each question is asked, from 2 to 32; each uses chance of its own.

    Notes
    -----
    Guarantee: each answer is drawn by itself, so the loss of all answers of a respondent is the composition
    of their losses, under replace-one; the accountant has its epsilon at every delta. It holds against
    whoever sees the single answers, and so against whoever sees their number only. One answer that rules a
    truth out makes the whole infinite.

    References
    ----------
    Cruyff, van den Hout, van der Heijden (2008), "The analysis of randomized response sum score variables".

    Examples
    --------
    >>> from sfumato.local.surveys import TwoCoins
    >>> score = SumScore(designs=[TwoCoins()] * 4)
    >>> round(score.epsilon, 4), score.privacy_loss.epsilon(0.01) < score.epsilon
    (4.3944, True)
    >>> answers = score.respond([[True, True, False, False]] * 500 + [[False] * 4] * 500, rng=1)
    >>> found = score.estimate(answers)
    >>> abs(found.mean - 1.0) < 4 * found.stddev, found.shares.shape
    (True, (5,))
    """

    designs: Sequence[BinaryDesign]

    def __post_init__(self) -> None:
        given: object = self.designs
        listed = isinstance(given, list | tuple) and all(isinstance(one, BinaryDesign) for one in given)
        if not listed or not 2 <= len(self.designs) <= _MAX:
            remedy = "pass [TwoCoins()] * 4 for four questions with two coins each"
            _check.refuse_type("designs", f"be from 2 to {_MAX} designs with two answers", given, remedy)
        object.__setattr__(self, "designs", tuple(self.designs))

    @property
    def privacy_loss(self) -> PrivacyLoss:
        """The loss of all answers of one respondent together, under replace-one."""
        return compose(design.privacy_loss for design in self.designs)

    @property
    def epsilon(self) -> float:
        """The epsilon of all answers of one respondent, at delta 0: the sum of theirs, rounded up."""
        return self.privacy_loss.epsilon(0.0)

    def respond(self, truth: Any, rng: Rng = None) -> NDArray[np.bool_]:
        """Draw the answers of respondents who follow the instructions.

        Parameters
        ----------
        truth : two-dimensional array or list of lists of bool
            What is true of each respondent, in a row each.
        rng : None, int, numpy Generator or RandomSource
            None draws from the operating system's entropy; anything seeded only simulates.

        Returns
        -------
        array of bool
            The answers, in the same shape; True is the second answer of a design.
        """
        given = np.asarray(truth)
        if given.ndim != 2 or given.shape[1] != len(self.designs) or given.dtype.kind != "b":
            rule = f"be rows of {len(self.designs)} booleans"
            _check.refuse_type("truth", rule, truth, "pass a row for each respondent")
        source = random_source(rng)
        pairs = zip(self.designs, given.T, strict=True)
        return np.column_stack([design.respond(column, rng=source) for design, column in pairs])

    def estimate(self, answers: Any) -> ScoreEstimate:
        """Return the estimated distribution of the score, and its mean.

        Parameters
        ----------
        answers : mapping or table of columns, two-dimensional array, or list of columns
            A column for each question, in the order of the designs; an array has a row for each respondent.
            Each column holds the answers of its design as they are named, or booleans.

        Returns
        -------
        ScoreEstimate
            With errors and intervals.

        Raises
        ------
        ParameterError
            If the columns are not as many as the designs, are not equally long, or have another or a missing
            value, which the message does not show.
        """
        columns = _columns(answers)
        if columns is None or len(columns) != len(self.designs):
            rule = f"be {len(self.designs)} columns, one for each question"
            _check.refuse_type("answers", rule, answers, "pass a mapping of columns or a matrix")
        said = [
            indices(f"answers[{place}]", column, design.answers)
            for place, (column, design) in enumerate(zip(columns, self.designs, strict=True))
        ]
        if len({len(column) for column in said}) > 1:
            remedy = "leave out respondents who did not answer all questions"
            _check.refuse_state("answers", "have columns of one length", "they differ", remedy)
        rows, counts = np.unique(np.column_stack(said).astype(bool), axis=0, return_counts=True)
        return ScoreEstimate(designs=tuple(self.designs), patterns=rows, counts=counts.astype(np.int64))


def _columns(answers: Any) -> list[Any] | None:
    if isinstance(answers, Mapping):
        return list(answers.values())
    for attribute in ("column_names", "columns"):
        names = getattr(answers, attribute, None)
        if names is not None:
            return [answers[name] for name in names]
    if isinstance(answers, np.ndarray):
        return list(answers.T) if answers.ndim == 2 else None
    return list(answers) if isinstance(answers, list | tuple) else None
