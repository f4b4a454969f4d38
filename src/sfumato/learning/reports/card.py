"""The privacy card of a trained model: what was run, and what it guarantees, from public numbers alone."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, final

from sfumato import _check
from sfumato._wire import NUMBER, Format, parse
from sfumato.learning.sampling.sampler import Sampler
from sfumato.privacy._outward import text_above, text_below
from sfumato.privacy.catalog import loss_from_json
from sfumato.privacy.loss import PrivacyLoss
from sfumato.privacy.neighboring import RELATION, Neighboring

__all__ = ["PrivacyCard", "public_sampling", "shown"]

FORMAT: Final = Format("sfumato.model-card", 1)
_GUARANTEE: Final = ("epsilon", "delta", "neighboring", "unit", "float_safe", "simulated")
_RUN: Final = (
    *("steps", "sampler", "participation", "noise"),
    *("noise_multiplier", "clipping", "foreign_steps", "loss"),
)
"""The fields of the card's two parts, by their wire names."""
_CHANCES = ("sampling_probability",)
_COUNTS = ("population", "batch_size")
_DECLARED = "public_batch_size"


def public_sampling(sampler: Sampler) -> dict[str, float]:
    """Return the public parameters of how batches are drawn, beside the kind of the sampler.

    Notes
    -----
    Under add/remove the number of examples is what the guarantee hides, and so is a mean batch size, which is
    that number times a probability; a declared one is public. Under zero-out and replace-one the number is
    public.
    """
    names = _CHANCES if sampler.neighboring is Neighboring.ADD_REMOVE else (*_CHANCES, *_COUNTS)
    parameters = {name: getattr(sampler, name) for name in names if hasattr(sampler, name)}
    if getattr(sampler, _DECLARED, None) is not None:
        parameters["expected_batch_size"] = sampler.expected_batch_size
    return parameters


_FEW = 8


def shown(document: object) -> str:
    """Return plain values as people read them: a kind, and after it its parameters.

    >>> shown({"kind": "flat", "clip_norm": 0.5})
    'flat, clip norm 0.5'
    """
    if isinstance(document, list) and len(document) > _FEW:
        return f"[{', '.join(map(str, document[:_FEW]))}, ...], {len(document)} of them"
    if not isinstance(document, Mapping):
        return str(document)
    kind = [str(value) for name, value in document.items() if name == "kind"]
    rest = [f"{name.replace('_', ' ')} {shown(value)}" for name, value in document.items() if name != "kind"]
    return ", ".join([*kind, *rest])


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class PrivacyCard:
    """A model's guarantee and all that it rests on; it may be published with the model.

    Parameters
    ----------
    epsilon, delta : float
        Of the model and of all noisy gradients before it.
    neighboring : Neighboring
        Which two datasets the guarantee compares.
    unit : str
        What one of them has more, or otherwise: "example", "row", "user".
    loss : PrivacyLoss
        From which epsilon was computed, and can be computed again.
    steps : int
        How many steps the loss is of.
    sampler : str
        How batches were drawn: the kind of the sampler, such as "poisson".
    sampling : mapping of str to float
        Its public parameters.
    participation : int
        The most steps that one unit may have been in.
    noise, clipping : mapping of str to plain values
        Which noise, and how gradients were clipped: a ``kind`` and its public parameters.
    noise_multiplier : float
        The standard deviation of the noise over the sensitivity.
    float_safe : bool
        Whether the noisy sums have exactly the distribution that is accounted.
    simulated : bool
        Whether noise or batches follow from a number: such a model is protected by nothing.
    foreign_steps : int
        Steps on batches that the run did not draw, priced without amplification.
    ledger : mapping, optional
        The ledger's id, the run's number on it, and what it calls the privacy unit.
    software : mapping of str to str
        Versions.

    Notes
    -----
    Guarantee: every field follows from the run's parameters and the steps it took, none from the examples.
    Conditions: those of the run (`TrainingRun`), which `conditions` says in words.

    Examples
    --------
    >>> from sfumato.privacy import Gaussian, Neighboring
    >>> card = PrivacyCard(
    ...     epsilon=1.5, delta=1e-5, neighboring=Neighboring.ADD_REMOVE, unit="row",
    ...     loss=Gaussian(noise_multiplier=3.0), steps=1, sampler="full batch", sampling={}, participation=1,
    ...     noise={"kind": "keyed"}, noise_multiplier=3.0, clipping={"kind": "flat", "clip_norm": 1.0},
    ...     float_safe=False, simulated=False,
    ... )
    >>> card.unit, card.steps
    ('row', 1)
    """

    epsilon: float
    delta: float
    neighboring: Neighboring
    unit: str
    loss: PrivacyLoss
    steps: int
    sampler: str
    sampling: Mapping[str, float]
    participation: int
    noise: Mapping[str, Any]
    noise_multiplier: float
    clipping: Mapping[str, Any]
    float_safe: bool
    simulated: bool
    foreign_steps: int = 0
    ledger: Mapping[str, str | int] = field(default_factory=dict)
    software: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.epsilon != math.inf:
            _check.non_negative("epsilon", self.epsilon)
        _check.unit_interval("delta", self.delta)

    @property
    def conditions(self) -> tuple[str, ...]:
        """What the guarantee presupposes, one sentence each."""
        sentences = []
        if self.simulated:
            sentences.append(
                "SIMULATED: noise or batches follow from a number that is known, and nobody is protected."
            )
        if self.neighboring is Neighboring.ADD_REMOVE:
            sentences.append(
                f"Noise, batches and steps follow from a public number of {self.unit}s, not the data's."
            )
        else:
            sentences.append(f"How many {self.unit}s there are is public, and is not hidden.")
        sentences.append("The keys of noise and batches stay secret.")
        sentences.append(
            "All that is shown of the training follows from its noisy gradients; settings chosen by looking "
            "at private data, and measurements on them, are not in epsilon."
        )
        if not self.ledger:
            sentences.append("The number of steps did not follow from private data; no ledger was charged.")
        if not self.float_safe:
            sentences.append("Gradients and noise are floats: their rounding is not covered.")
        if self.foreign_steps:
            sentences.append(
                f"In {self.foreign_steps} steps, on batches from elsewhere, a {self.unit} was once at most."
            )
        return tuple(sentences)

    def to_json(self) -> str:
        """Return the card as JSON text.

        Returns
        -------
        str
            A document of the format ``sfumato.model-card``, indented; `from_json` reads it.

        Examples
        --------
        >>> from sfumato.privacy import Gaussian
        >>> card = PrivacyCard(
        ...     epsilon=1.25,
        ...     delta=1e-5,
        ...     neighboring=Neighboring.ADD_REMOVE,
        ...     unit="row",
        ...     loss=Gaussian(4.0),
        ...     steps=1,
        ...     sampler="full-batch",
        ...     sampling={},
        ...     participation=1,
        ...     noise={"kind": "keyed-normal"},
        ...     noise_multiplier=4.0,
        ...     clipping={"kind": "flat", "clip_norm": 1.0},
        ...     float_safe=False,
        ...     simulated=False,
        ... )
        >>> PrivacyCard.from_json(card.to_json()) == card
        True
        """
        return json.dumps(self._document(), indent=2, allow_nan=False)

    def _document(self) -> dict[str, Any]:
        written = {name: getattr(self, name) for name in (*_GUARANTEE, *_RUN)} | {
            "epsilon": NUMBER.encode(self.epsilon),
            "neighboring": RELATION.encode(self.neighboring),
            "sampler": {"kind": self.sampler, **self.sampling},
            "noise": dict(self.noise),
            "clipping": dict(self.clipping),
            "loss": self.loss.to_json(),
        }
        fields = {
            "guarantee": {name: written[name] for name in _GUARANTEE},
            "run": {name: written[name] for name in _RUN},
            "ledger": dict(self.ledger),
            "software": dict(self.software),
            "conditions": list(self.conditions),
        }
        return FORMAT.wrap(fields)

    @classmethod
    def from_json(cls, text: str) -> PrivacyCard:
        """Return the card that `to_json` wrote.

        Parameters
        ----------
        text : str
            The conditions in it are not read: they follow from the rest.

        Returns
        -------
        PrivacyCard
            Equal to the card that was written.

        Raises
        ------
        ParameterError
            It is no card, of a later version, or has other fields.
        """
        _, fields = FORMAT.unwrap("card", parse("card", text))
        _require_fields("card", fields, ("guarantee", "run", "ledger", "software", "conditions"))
        guarantee, run = fields["guarantee"], fields["run"]
        _require_fields("guarantee", guarantee, _GUARANTEE)
        _require_fields("run", run, _RUN)
        relation = RELATION.decode("neighboring", guarantee["neighboring"])
        _check.instance("neighboring", relation, Neighboring, "check the file")
        sampling = dict(run["sampler"])
        decoded = {
            "epsilon": NUMBER.decode("epsilon", guarantee["epsilon"]),
            "neighboring": relation,
            "loss": loss_from_json(run["loss"]),
            "sampler": sampling.pop("kind"),
        }
        more = {"sampling": sampling, "ledger": fields["ledger"], "software": fields["software"]}
        return cls(**(guarantee | run | decoded | more))

    def to_markdown(self) -> str:
        """Return the card as a section of a model card.

        Returns
        -------
        str
        """
        rows = [f"| {name} | {value} |" for name, value in self._rows()]
        conditions = [f"- {sentence}" for sentence in self.conditions]
        head = ["## Privacy", "", self._statement(), "", "| | |", "|---|---|"]
        return "\n".join([*head, *rows, "", *conditions, ""])

    def __str__(self) -> str:
        rows = list(self._rows())
        width = max(len(name) for name, _ in rows)
        lines = [f"{name:<{width}}  {value}" for name, value in rows]
        return "\n".join([self._statement(), *lines, *self.conditions])

    def _statement(self) -> str:
        if self.simulated:
            return "A simulation: this model is protected by nothing."
        if not math.isfinite(self.epsilon):
            return f"No guarantee at delta {text_above(self.delta)}."
        spent = f"{text_above(self.epsilon, 4)}, {text_above(self.delta)}"
        return (
            f"({spent})-differentially private, {self.neighboring}, which is one {self.unit}: "
            f"what can be seen of the training is about as likely whatever one {self.unit} is."
        )

    def _rows(self) -> list[tuple[str, str]]:
        sampling = ", ".join(
            f"{name.replace('_', ' ')} {text_above(value)}" for name, value in self.sampling.items()
        )
        rows = [
            ("epsilon, delta", f"{text_above(self.epsilon)}, {text_above(self.delta)}"),
            ("neighbors", f"{self.neighboring}: one {self.unit}"),
            ("steps", f"{self.steps}, of which one {self.unit} is in {self.participation} at most"),
            ("batches", f"{self.sampler}{': ' * bool(sampling)}{sampling}"),
            ("noise", f"{shown(self.noise)}, noise multiplier {text_below(self.noise_multiplier)}"),
            ("clipping", shown(self.clipping)),
            ("float-safe", "yes" if self.float_safe else "no"),
        ]
        rows += [(f"ledger: {name.replace('_', ' ')}", str(value)) for name, value in self.ledger.items()]
        return [
            *rows,
            ("software", ", ".join(f"{name} {version}" for name, version in self.software.items())),
        ]


def _require_fields(name: str, document: object, fields: Sequence[str]) -> None:
    if not isinstance(document, dict) or document.keys() != set(fields):
        remedy = "pass what to_json wrote"
        _check.refuse_state(name, f"have the fields {', '.join(sorted(fields))}", "it has others", remedy)
