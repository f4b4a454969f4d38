"""Protocols that find strings by questions about their parts, and test them by one about the whole."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Final, Generic, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr, ndtri

from sfumato import _check
from sfumato.local.base.protocol import LocalProtocol, ReportProtocol
from sfumato.local.base.respondents import named_respondents, seeded
from sfumato.local.device.base.record_layout import Records
from sfumato.local.device.domains.strings import Strings, Symbols
from sfumato.local.device.strings.randomizer import StringsRandomizer
from sfumato.local.frequency.variance import Array, ErrorModel
from sfumato.local.marginals.sampling_variance import Sampled
from sfumato.local.strings.code_counts import Answers, SimulatedAnswers, Stored, answers_of
from sfumato.local.strings.estimate import HeavyHitters
from sfumato.local.strings.significance import Widened, judged
from sfumato.privacy.loss import PrivacyLoss
from sfumato.privacy.nodes.mixture import Mixture

__all__ = ["Answered", "CountedStrings", "StringsProtocol"]

Device = TypeVar("Device", bound=StringsRandomizer)

_TURNS: Final = 30


class Answered(NamedTuple):
    """What the reports to one question say."""

    answers: Answers
    stored: Stored
    reports: int

    def supports(self, codes: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return how many reports support each code."""
        return self.answers.supports(self.stored, self.reports, codes)

    def scores(self, codes: NDArray[np.int64]) -> NDArray[np.float64]:
        """Return estimates of codes' shares, in standard deviations of that of a share of 0."""
        support = self.answers.support
        shares = support.shares(self.supports(codes), self.reports)
        return np.asarray(shares / np.sqrt(support.variance(np.zeros(1)) / self.reports))


@dataclass(frozen=True, slots=True, kw_only=True)
class StringsProtocol(ReportProtocol[Device, HeavyHitters], Generic[Device]):
    r"""A protocol that finds which strings are frequent, without a list of candidates.

    Parameters
    ----------
    epsilon : float
        Bound on the loss of all that one person reports, from above 0 to 40.
    strings : Strings
        What may be reported.
    weight : int
        How many times as many respondents report the whole string as report any one part. With 0 everybody
        reports a part and the whole, each for half of epsilon.
    key : int
        Public; names the hash functions.
    false_positive_rate : float
        Bound on the probability that any string that nobody has is found; for the server alone.

    Attributes
    ----------
    device : StringsRandomizer
        The client half, which a device makes again from ``device.specification()``.
    """

    epsilon: float
    strings: Strings
    weight: int = 2
    key: int = 0
    false_positive_rate: float = 0.05
    device: Device = field(init=False, repr=False, compare=False)
    part: Answers = field(init=False, repr=False, compare=False)
    whole: Answers = field(init=False, repr=False, compare=False)
    _ends: tuple[Array, Array] = field(init=False, repr=False, compare=False)

    def _prepare(self) -> None:
        _check.unit_interval("false_positive_rate", self.false_positive_rate)
        both = answers_of(self.device.part), answers_of(self.device.whole)
        ends = tuple(one.support.variance(np.array([0.0, 1.0])) for one in both)
        self._set(part=both[0], whole=both[1], _ends=ends)
        self._check_server()

    def _check_server(self) -> None:
        """Check the parameters that the server alone has."""

    @abstractmethod
    def _candidates(self, answered: Callable[[int], Answered]) -> Symbols:
        """Return whole strings, each once, from what the reports to the questions about parts say."""

    @abstractmethod
    def chance(self, share: float, respondents: float) -> float:
        """Return about how likely a string with a share, alone with its parts, becomes a candidate."""

    @abstractmethod
    def tested(self, share: float) -> float:
        """Return about how many candidates there are, if that many strings have at least a share."""

    @abstractmethod
    def stored_bytes(self, respondents: int) -> int:
        """Return how much an aggregator stores, for so many respondents."""

    @property
    def privacy_loss(self) -> PrivacyLoss:
        """Of a part, or of the whole, and it is public which; or of both."""
        part, whole = self.part.loss, self.whole.loss
        if not self.device.weight:
            return part + whole
        if part == whole:
            return part
        all_of_it = self.device.chances[1]
        return Mixture((part, whole), (float(1 - all_of_it), float(all_of_it)), index_public=True)

    def smallest_share(self, n: int, power: float = 0.5) -> float:
        """Return about the smallest share of a string that is found with a probability.

        Parameters
        ----------
        n : int
            How many people will report, at least 1.
        power : float
            The probability, strictly between 0 and 1.

        Returns
        -------
        float
            1 if no share suffices.

        Notes
        -----
        As if errors were normal, and as if no other string had the same prefixes, or the same bucket:
        prefixes that many strings share are found more easily. Nobody's data are used.
        """
        count = _check.integer("n", n, minimum=1)
        wanted = _check.unit_interval("power", power)
        low, high = 0.0, 1.0
        for _ in range(_TURNS):
            middle = (low + high) / 2
            low, high = (low, middle) if self._power(middle, count) >= wanted else (middle, high)
        return high

    def threshold(self, share: float, respondents: float) -> float:
        """Return about the estimate above which a candidate is found, if strings have at least a share."""
        risk = self.false_positive_rate / max(1.0, self.tested(share))
        return -float(ndtri(risk)) * self.deviations(share, respondents, whole=True)[0]

    def deviations(self, share: float, respondents: float, *, whole: bool = False) -> tuple[float, float]:
        """Return standard deviations of estimates from one question, of a share of 0 and of this one."""
        reports, (none, all_of_it) = respondents * float(self.device.chances[whole]), self._ends[whole]
        some = none + share * (all_of_it - none)
        return math.sqrt(none / reports), math.sqrt(some / reports)

    def _power(self, share: float, respondents: int) -> float:
        """Return about how likely a string with a share is found."""
        _, some = self.deviations(share, respondents, whole=True)
        smallest = self.threshold(share, respondents)
        return self.chance(share, respondents) * float(ndtr((share - smallest) / some))

    def reports_by_question(self, asked: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return how many reports there are about each part, and in the end about the whole."""
        counts = np.bincount(asked, minlength=self.device.questions + 1)
        if not self.device.weight:
            counts[-1] = len(asked)
        return counts

    def simulate(
        self, people: Mapping[str, int] | Mapping[bytes, int], rng: int | np.random.Generator = 0
    ) -> HeavyHitters:
        """Return an estimate as it might come of so many people, whatever their number.

        Parameters
        ----------
        people : mapping of str or bytes to int
            How many have each string.
        rng : int or numpy Generator
            A seed: this simulates, for planning.

        Notes
        -----
        Who is asked what, and how many reports support a code, is drawn as counts. Each count has the exact
        distribution under random hash functions; those of different codes are drawn as independent, where
        they are correlated a little.
        """
        held, device = named_respondents("people", people), self.device
        rows, counts = self.strings.symbols(list(held)), np.array([*held.values()], np.int64)
        generator = seeded(rng)
        one, all_of_it = (float(chance) for chance in device.chances)
        if device.weight:
            asked = generator.multinomial(counts, [*[one] * device.questions, all_of_it])
        else:
            asked = np.column_stack([generator.multinomial(counts, [one] * device.questions), counts])

        def answered(question: int) -> Answered:
            part = question < device.questions
            every = np.full(len(rows), question)
            codes, own = np.unique(
                device.part_codes(rows, every) if part else device.whole_codes(rows), return_inverse=True
            )
            reported = np.bincount(own, asked[:, question], len(codes)).astype(np.int64)
            answers = SimulatedAnswers(self.part if part else self.whole, codes, reported, generator)
            return Answered(answers, reported, int(asked[:, question].sum()))

        return self.heavy_hitters(answered, int(counts.sum()), simulated=True)

    def heavy_hitters(
        self, answered: Callable[[int], Answered], respondents: int, *, simulated: bool
    ) -> HeavyHitters:
        """Return the strings that answers reveal; mostly called by an aggregator.

        Parameters
        ----------
        answered : callable
            Of the number of a question; that of the whole string comes after those of the parts.
        respondents : int
        simulated : bool
        """
        device, whole = self.device, answered(self.device.questions)
        rows = np.zeros((0, self.strings.length), np.uint16)
        if whole.reports:
            rows = self._candidates(answered)
        codes = device.whole_codes(rows)
        supports = whole.supports(codes) if len(rows) else np.zeros(0, np.int64)
        made = judged(whole.answers, supports, whole.reports, codes, self.false_positive_rate)
        order = np.argsort(-made.shares, kind="stable")
        error_model: ErrorModel = self.whole.support
        if device.weight:
            error_model = Sampled(error_model, 1 - whole.reports / respondents if respondents else 1.0)
        return HeavyHitters(
            candidates=tuple(self.strings.values(rows[order])),  # type: ignore[arg-type]
            frequencies=made.shares[order],
            p_values=made.p_values[order],
            significant=made.found[order],
            reports=whole.reports,
            respondents=respondents,
            error_model=Widened(error_model, made.extra * whole.reports) if made.extra else error_model,
            false_positive_rate=self.false_positive_rate,
            loss=self.privacy_loss,
            simulated=simulated,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class CountedStrings(StringsProtocol[Device], LocalProtocol[Device, HeavyHitters], Generic[Device]):
    """A protocol about strings in constant memory: its reports add up to whole numbers."""

    @property
    def _cuts(self) -> NDArray[np.int64]:
        sizes = [*[self.part.totals] * self.device.questions, self.whole.totals]
        return np.cumsum([0, *sizes])

    @property
    def totals(self) -> int:
        """Those of all questions, and how many reports there are to each."""
        return int(self._cuts[-1]) + self.device.questions + 1

    @property
    def added(self) -> tuple[int, int]:
        """What one report adds to a total at least and at most."""
        return -1, 1

    def stored_bytes(self, respondents: int) -> int:
        """Return how much an aggregator stores: the same for any number of respondents."""
        return 8 * self.totals

    def tally(self, records: Records) -> NDArray[np.int64]:
        """Add up the reports to each question."""
        device, asked, cuts = self.device, self.device.asked(records), self._cuts
        found = np.zeros(self.totals, np.int64)
        for question in np.unique(asked[asked < device.questions]).tolist():
            pieces = device.cut(records[asked == question], whole=False)
            found[cuts[question] : cuts[question + 1]] = self.part.tally(pieces)
        wholly = records[asked == device.questions] if device.weight else records
        if len(wholly):
            found[cuts[-2] : cuts[-1]] = self.whole.tally(device.cut(wholly, whole=True))
        found[cuts[-1] :] = self.reports_by_question(asked)
        return found

    def estimate(self, totals: NDArray[np.int64], reports: int, *, simulated: bool = False) -> HeavyHitters:
        """Return the estimate from totals; mostly called by an aggregator."""
        cuts = self._cuts
        # A state that nobody counted may say anything.
        asked = np.clip(totals[cuts[-1] :], 0, reports).tolist()

        def answered(question: int) -> Answered:
            answers = self.part if question < self.device.questions else self.whole
            return Answered(answers, totals[cuts[question] : cuts[question + 1]], asked[question])

        return self.heavy_hitters(answered, reports, simulated=simulated)
