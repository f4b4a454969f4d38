"""Findings: what an attack got out of a release, against controls and against the privacy loss."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Final, Literal, final

from sfumato import _check
from sfumato._wire import Format, canonical
from sfumato.attacks.base.attack_curve import AttackCurve, attack_curve, draw, thinned
from sfumato.attacks.base.knowledge import Knowledge
from sfumato.attacks.base.loss_bounds import (
    AttackBound,
    advantage_bound,
    compared_loss,
    precision_bound,
    success_bound,
)
from sfumato.attacks.base.target_guesses import TargetGuesses, rate_interval
from sfumato.numerics.interval import Interval
from sfumato.privacy.interpretation.plotting import axes
from sfumato.privacy.loss import PrivacyLoss
from sfumato.privacy.neighboring import Neighboring

__all__ = ["Design", "Findings", "Kind"]

Kind = Literal["presence", "value"]
Design = Literal["one_release", "runs"]

_FORMAT: Final = Format("sfumato.attack-findings", 1)
_DRAWS: Final = {
    "one_release": "intervals are of people drawn at random from the targets and from the controls",
    "runs": "each person stands for a release of its own",
}


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Findings:
    """What an attack found, which is the curator's: nobody paid for it.

    Parameters
    ----------
    attack : str
        Its name.
    kind : {"presence", "value"}
        Whether it claims that a person is in the data, or something about them.
    knowledge : Knowledge
        What the attacker had beside the release.
    targets : TargetGuesses
        About people in the data.
    controls : TargetGuesses, optional
        The same attack on people who are not in it: the baseline. What it finds of them it has learned about
        the population, which is no breach.
    loss : PrivacyLoss, optional
        Of the release; None for a raw one.
    worlds : Neighboring
        How the world without a target differs from that with it: ``REPLACE_ONE`` where controls are people
        who might have been in the target's place, ``ADD_REMOVE`` where the release was made again without:
        that takes ``design="runs"`` for a bound.
    exchangeable : bool
        Whether targets and controls were drawn alike from one population, or are the same people in releases
        with and without them. Only then is a bound printed beside their rates.
    design : {"one_release", "runs"}
        Whether all guesses are about one release, or each about a release of its own.
    confidence : float
        That the intervals of success, baseline, advantage and precision hold together.
    prior : float
        Chance that a person who is asked about is in the data, for the precision of accusations.
    numbers : mapping of str to float
        More of this attack, such as what theory predicts.
    notes : tuple of str
        What must be said beside the numbers.
    extra_bounds : tuple of AttackBound
        Bounds that this attack has beside those of every attack.
    no_bound : str
        Why the rates have no bound, whatever the loss, for an attack whose controls are not what a target
        would be without their record; empty for others.

    Raises
    ------
    ParameterError
        If a parameter breaks its rule.

    Notes
    -----
    Guarantee: intervals are Clopper and Pearson's, for people drawn independently (of one release: from the
    finite lists of targets and controls; thresholds were not chosen on the same scores). Bounds are those of
    `loss_bounds`; they are about means over the noise, so that one release may be above them, and only with
    ``design="runs"`` does an exceeded bound refute the loss. An attack that fails proves nothing.

    Examples
    --------
    >>> from sfumato.attacks import Findings, Knowledge, TargetGuesses
    >>> from sfumato.privacy import Neighboring, PureDP
    >>> yes, no = [True] * 8 + [False] * 2, [True] + [False] * 9
    >>> def accused(flags):
    ...     return TargetGuesses(guesses=flags, scores=[float(flag) for flag in flags], claimed=flags,
    ...                          correct=[True] * 10)
    >>> found = Findings(attack="example", kind="presence", knowledge=Knowledge(("nothing",)),
    ...                  targets=accused(yes), controls=accused(no), exchangeable=True,
    ...                  loss=PureDP(1.0, neighboring=Neighboring.REPLACE_ONE))
    >>> round(found.success.lower, 3), round(found.bounds[1].allowed, 3)
    (0.401, 0.462)
    """

    attack: str
    kind: Kind
    knowledge: Knowledge
    targets: TargetGuesses
    controls: TargetGuesses | None = None
    loss: PrivacyLoss | None = None
    worlds: Neighboring = Neighboring.REPLACE_ONE
    exchangeable: bool = False
    design: Design = "one_release"
    confidence: float = 0.95
    prior: float = 0.5
    numbers: Mapping[str, float] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    extra_bounds: tuple[AttackBound, ...] = ()
    no_bound: str = ""
    bounds: tuple[AttackBound, ...] = field(init=False)

    def __post_init__(self) -> None:
        if self.kind not in ("presence", "value"):
            _check.refuse("kind", "be 'presence' or 'value'", self.kind, "see the parameters of Findings")
        if self.design not in _DRAWS:
            _check.refuse("design", "be 'one_release' or 'runs'", self.design, "see the notes of Findings")
        _check.instance("knowledge", self.knowledge, Knowledge, "state what the attacker has")
        _check.unit_interval("confidence", self.confidence)
        _check.unit_interval("prior", self.prior, "pass the chance that a person is in the data")
        object.__setattr__(self, "bounds", (*self._common_bounds(), *self.extra_bounds))

    @property
    def success(self) -> Interval | None:
        """The share of targets about whom the attack makes a claim that is right."""
        return self._rate(self.targets)

    @property
    def baseline(self) -> Interval | None:
        """The same share of controls."""
        return None if self.controls is None else self._rate(self.controls)

    @property
    def advantage(self) -> Interval | None:
        """Success minus baseline."""
        success, baseline = self.success, self.baseline
        if success is None or baseline is None:
            return None
        return Interval(success.lower - baseline.upper, success.upper - baseline.lower)

    @property
    def precision(self) -> Interval | None:
        """The share of claims that are right: of accusations with the prior, by Bayes' rule."""
        if self.kind == "value":
            hits = self.targets.hits
            return None if hits is None else rate_interval(hits, self.targets.claims, self._risk)
        success, baseline = self.success, self.baseline
        if success is None or baseline is None:
            return None
        odds = self.prior / (1 - self.prior)
        lower, upper = (
            found / (found + other / odds) if found + other else 0.0
            for found, other in ((success.lower, baseline.upper), (success.upper, baseline.lower))
        )
        return Interval(lower, upper)

    def curve(self) -> AttackCurve | None:
        """Return the ROC curve, or precision and recall of guessed values; None without the truth.

        Returns
        -------
        AttackCurve or None
        """
        return attack_curve(self.targets, self.controls if self.kind == "presence" else None)

    def plot(self, ax: Any = None, *, label: str | None = None) -> Any:
        """Draw the curve, and what the loss allows where a bound holds; needs ``sfumato[plot]``.

        Parameters
        ----------
        ax : matplotlib axes, optional
            New ones by default.
        label : str, optional
            Of the curve; the attack's name by default.

        Returns
        -------
        matplotlib axes

        Raises
        ------
        ParameterError
            If there is no curve, as the truth was not given.
        MissingExtra
            If matplotlib is absent and no axes are given.
        """
        curve = self.curve()
        if curve is None:
            _check.refuse_state("truth", "be given for a curve", "it was not", "pass truth= to run")
        ax = axes(ax)
        draw(curve, ax, label or self.attack)
        loss = self._compared()
        if curve.kind == "roc" and loss is not None and self._common_bounds():
            allowed = loss.curve("trade-off", points=33)
            ax.plot(allowed.x, 1 - allowed.lower, linestyle="--", label="the loss allows")
        ax.legend()
        return ax

    def to_json(self) -> str:
        """Return rates, intervals, bounds and the curve as JSON: no guess about any one person.

        Returns
        -------
        str
        """
        curve = self.curve()
        points = None if curve is None else dict(zip(("x", "y"), thinned(curve), strict=True))
        written = _FORMAT.wrap(
            {
                "attack": self.attack,
                "kind": self.kind,
                "knowledge": list(self.knowledge.statements),
                "targets": _counts(self.targets),
                "controls": None if self.controls is None else _counts(self.controls),
                "intervals": {name: _ends(value) for name, value in self._intervals()},
                "confidence": self.confidence,
                "design": self.design,
                "worlds": self.worlds.value,
                "prior": self.prior,
                "numbers": {name: _finite(value) for name, value in self.numbers.items()},
                "bounds": [
                    {"name": one.name, "seen": _ends(one.seen), "allowed": one.allowed, "for": one.condition}
                    for one in self.bounds
                ],
                "curve": None if curve is None else {"kind": curve.kind, **(points or {})},
                "notes": list(self.notes),
            }
        )
        return canonical(written)

    def __str__(self) -> str:
        lines = [f"{self.attack}: {self.targets.claims} claims about {self.targets.people} targets"]
        if self.controls is not None:
            lines[0] += f", {self.controls.claims} about {self.controls.people} controls"
        lines += [
            f"{name}: {value.lower:.4f} to {value.upper:.4f}" + self._given(name)
            for name, value in self._intervals()
            if value is not None
        ]
        if self.targets.correct is None:
            lines.append("which claims are right is not known: the truth was not given")
        lines += [f"{name}: {value:.6g}" for name, value in self.numbers.items()]
        lines += [f"bound on the {bound}" for bound in self.bounds]
        if not self.bounds:
            lines.append(f"no bound: {self._why_no_bound()}")
        lines.append(f"confidence {self.confidence:g}; {_DRAWS[self.design]}")
        return "\n".join([*lines, *self.notes])

    @property
    def _risk(self) -> float:
        """Two rates (for values also the precision) have two ends each."""
        return (1 - self.confidence) / (6 if self.kind == "value" else 4)

    def _rate(self, group: TargetGuesses) -> Interval | None:
        return None if group.hits is None else rate_interval(group.hits, group.people, self._risk)

    def _intervals(self) -> list[tuple[str, Interval | None]]:
        names = ("success", "baseline", "advantage", "precision")
        return [(name, getattr(self, name)) for name in names]

    def _given(self, name: str) -> str:
        return f" (prior {self.prior:g})" if name == "precision" and self.kind == "presence" else ""

    @property
    def _worlds_seen(self) -> bool:
        """Whether controls show the world without a target: in one release they have taken a place in it."""
        return self.design == "runs" or self.worlds is Neighboring.REPLACE_ONE

    def _compared(self) -> PrivacyLoss | None:
        return None if self.loss is None else compared_loss(self.loss, self.worlds)

    def _why_no_bound(self) -> str:
        if self.loss is None:
            return "the release states no privacy loss"
        if self.no_bound:
            return self.no_bound
        if self._compared() is None:
            return f"the loss is about {self.loss.neighboring}, the controls about {self.worlds}"
        if self.baseline is None or self.success is None:
            return "there are no controls, or the truth was not given"
        if not self._worlds_seen:
            return f"people who are not in one release do not show the world of {self.worlds}"
        return "targets and controls are not said to be drawn alike"

    def _common_bounds(self) -> tuple[AttackBound, ...]:
        loss, success, baseline, advantage = self._compared(), self.success, self.baseline, self.advantage
        if loss is None or self.no_bound or not self.exchangeable or not self._worlds_seen:
            return ()
        if success is None or baseline is None or advantage is None:
            return ()
        noise = "" if self.design == "runs" else "; mean over the noise"
        bound = partial(AttackBound, condition=f"{self.worlds}{noise}")
        found = [
            bound(name="success", seen=success, allowed=success_bound(loss, baseline.upper)),
            bound(name="advantage", seen=advantage, allowed=advantage_bound(loss)),
        ]
        if self.kind == "presence" and self.precision is not None:
            allowed = precision_bound(loss, baseline.lower, self.prior)
            given = f"prior {self.prior:g}, {self.worlds}{noise}"
            found.append(AttackBound(name="precision", seen=self.precision, allowed=allowed, condition=given))
        return tuple(found)


def _counts(group: TargetGuesses) -> dict[str, int | None]:
    return {"people": group.people, "claims": group.claims, "right": group.hits}


def _ends(interval: Interval | None) -> list[float] | None:
    return None if interval is None else [float(interval.lower), float(interval.upper)]


def _finite(value: float) -> float | None:
    return float(value) if math.isfinite(value) else None
