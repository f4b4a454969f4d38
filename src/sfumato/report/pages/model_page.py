"""The page of a trained model: its privacy card, with the odds in words."""

from __future__ import annotations

from sfumato import _check
from sfumato.learning.reports.card import PrivacyCard, shown
from sfumato.report.markup.elements import Markup, element, user_text
from sfumato.report.pages.document import ReleasePage, document
from sfumato.report.pages.sections import definitions, items, not_promised, odds_in_words, section, who
from sfumato.report.pages.subject import Subject
from sfumato.report.texts.catalog import Texts

__all__ = ["model_card"]


def model_card(card: PrivacyCard, *, language: str = "en") -> ReleasePage:
    """Return the page of a trained model: who is protected, the odds, and how it was trained.

    Parameters
    ----------
    card : PrivacyCard
        Of the training run, or read by `PrivacyCard.from_json`.
    language : str
        ``"en"`` or ``"de"``.

    Returns
    -------
    ReleasePage

    Raises
    ------
    ParameterError
        If it is no card, or there is no such language.

    Notes
    -----
    Guarantee: the page follows from the card, which may be published with the model; the conditions are the
    card's own, in English. The odds are those of `sfumato.report.odds`.

    Examples
    --------
    >>> from sfumato import report
    >>> from sfumato.learning import PrivacyCard
    >>> from sfumato.privacy import Gaussian, Neighboring
    >>> card = PrivacyCard(
    ...     epsilon=1.5, delta=1e-5, neighboring=Neighboring.ADD_REMOVE, unit="row",
    ...     loss=Gaussian(noise_multiplier=3.0), steps=1, sampler="full batch", sampling={}, participation=1,
    ...     noise={"kind": "keyed"}, noise_multiplier=3.0, clipping={"kind": "flat", "clip_norm": 1.0},
    ...     float_safe=False, simulated=False,
    ... )
    >>> "clip norm 1.0" in report.model_card(card).html
    True
    """
    _check.instance("card", card, PrivacyCard, "pass run.card(delta), or PrivacyCard.from_json(text)")
    texts = Texts(language)
    subject = Subject(
        texts=texts,
        epsilon=card.epsilon,
        delta=card.delta,
        loss=card.loss,
        relation=card.neighboring,
        privacy_unit=card.unit,
        simulated=card.simulated,
        payload="",
        receipt=None,
        ledger=None,
    )
    conditions = element("div", items(card.conditions), lang="en")
    parts = (
        who(subject),
        odds_in_words(subject),
        _training(subject, card),
        section(texts("model.conditions"), conditions),
        not_promised(subject),
    )
    return document(subject, parts, title=texts("page.model_title"), lead=texts("page.model_lead"))


def _training(subject: Subject, card: PrivacyCard) -> Markup:
    """Return how the model was trained, by the public numbers of its card."""
    texts, written = subject.texts, subject.numerals
    steps = {"steps": written.nearest(card.steps), "most": written.nearest(card.participation)}
    multiplier = texts("model.multiplier", multiplier=written.down(card.noise_multiplier))
    facts: list[tuple[str, str]] = [
        (texts("model.steps"), texts("model.participation", unit=subject.unit, **steps)),
        (texts("model.sampler"), user_text(shown({"kind": card.sampler, **card.sampling}))),
        (texts("model.noise"), element("span", user_text(shown(card.noise)), "; ", multiplier)),
        (texts("model.clipping"), user_text(shown(card.clipping))),
    ]
    if card.ledger:
        facts.append((texts("model.ledger"), user_text(shown(card.ledger))))
    if card.software:
        facts.append((texts("model.software"), user_text(shown(card.software))))
    return section(texts("model.heading"), definitions(facts))
