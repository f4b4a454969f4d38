"""The sheet in German."""

from __future__ import annotations

from sfumato.local.surveys.sheets.words import Words

__all__ = ["GERMAN"]

GERMAN = Words(
    language="de",
    title="Eine Frage, und eine Antwort, die Ihre bleibt",
    question="Die Frage",
    other_question="Die andere Frage",
    what_to_do="Was zu tun ist",
    hidden=(
        "Tun Sie dies, wo niemand zusehen kann, auch nicht, wer Sie befragt. Sagen Sie niemandem, was "
        "gefallen ist."
    ),
    coin="Werfen Sie einmal eine Münze.",
    coins="Werfen Sie {count}-mal eine Münze; machen Sie alle Würfe, und merken Sie sich ihre Reihenfolge.",
    die="Werfen Sie einmal einen Würfel.",
    spinner=(
        "Halten Sie eine Büroklammer mit einer Bleistiftspitze auf der Mitte des Kreises fest, schnippen Sie "
        "sie an, und sehen Sie, in welchem Feld sie stehen bleibt."
    ),
    both="Beantworten Sie beide Fragen, aber nur in Gedanken.",
    look_up="Tun Sie, was neben dem Ergebnis steht.",
    compare="Vergleichen Sie die beiden Antworten.",
    tick="Kreuzen Sie ein Kästchen an, und sagen Sie sonst nichts:",
    result="Ergebnis",
    task="Was Sie tun",
    heads="Kopf",
    tails="Zahl",
    area="Feld {letter}",
    truth_task="Beantworten Sie die Frage wahrheitsgemäß.",
    opposite_task="Kreuzen Sie das Gegenteil der wahren Antwort an.",
    say_task="Kreuzen Sie „{answer}“ an, was auch immer wahr ist.",
    other_task="Beantworten Sie die andere Frage wahrheitsgemäß.",
    same_task="Beide sind ja, oder beide sind nein: Kreuzen Sie „{answer}“ an.",
    different_task="Eine ist ja und eine ist nein: Kreuzen Sie „{answer}“ an.",
    yes="ja",
    no="nein",
    same="gleich",
    different="verschieden",
    what_it_shows="Was Ihre Antwort über Sie zeigt",
    by_chance=(
        "Von 100 Menschen, deren wahre Antwort nein ist, kreuzen etwa {false} „{answer}“ an; von 100, deren "
        "wahre Antwort ja ist, etwa {true}. Ein Kreuz beweist also nichts, bei niemandem."
    ),
    by_chance_categories=(
        "Von 100 Menschen kreuzen etwa {count} ein Kästchen nur an, weil der Zufall es genannt hat. Ein "
        "Kreuz beweist also nichts, bei niemandem."
    ),
    prior=(
        "Wer vorher mit {prior} von 100 dafür rechnete, dass Ihre wahre Antwort ja ist, rechnet nach „{yes}“ "
        "mit {after_yes} von 100 und nach „{no}“ mit {after_no} von 100. Mehr lässt sich daraus nicht lernen."
    ),
    follow=(
        "Bitte tun Sie, was das Ergebnis sagt, auch wo Sie anders antworten würden. Das ist keine Lüge: Es "
        "schützt Sie und alle anderen, und nur so lassen sich die Antworten auswerten."
    ),
    sample="Stichprobe {number}",
    analyst="Für die Auswertung",
    chances="Die Wahrscheinlichkeit jeder Antwort",
    if_true="wenn die wahre Antwort ja ist",
    if_false="wenn die wahre Antwort nein ist",
    answer="Antwort",
    estimator="Die Schätzung",
    share_of="Anteil von „{answer}“",
    prevalence="Verbreitung",
    where="n: Zahl der Befragten; r: {share}. Schätzungen unter 0 oder über 1 sind Zufall oder ein Zeichen, "
    "dass die Anleitung nicht befolgt wurde.",
    privacy="Der Schutz einer Antwort",
    epsilon=(
        "epsilon = {epsilon} für jede Antwort (Ersetzen einer Person): Keine Antwort verschiebt die Chancen "
        "für irgendetwas über eine befragte Person um mehr als den Faktor {factor}. Mehrere Antworten einer "
        "Person addieren sich."
    ),
    respondents="Wie viele Befragte",
    margin="Halbe Breite des 95-%-Intervalls",
    needed="Befragte",
    size_note="Exakte Intervalle (Clopper und Pearson), für den ungünstigsten Anteil der Antworten.",
    conditions="Worauf dies beruht",
    independent="Die Befragten sind unabhängig aus der Grundgesamtheit gezogen.",
    unseen="Alle befolgen die Anleitung, und niemand sonst sieht das Ergebnis des Zufalls.",
    unknown=(
        "Der Anteil von ja auf die andere Frage ist {share}, was auch immer die wahre Antwort auf die erste "
        "ist, und niemand, der eine Antwort sieht, weiß, wie diese Person die andere Frage beantwortet."
    ),
    once="Niemand antwortet zweimal: Zwei Antworten auf eine Frage verraten mehr als eine.",
)
