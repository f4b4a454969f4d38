"""The sheet in French."""

from __future__ import annotations

from sfumato.local.surveys.sheets.words import Words

__all__ = ["FRENCH"]

FRENCH = Words(
    language="fr",
    title="Une question, et une réponse qui reste la vôtre",
    question="La question",
    other_question="L'autre question",
    what_to_do="Ce qu'il faut faire",
    hidden=(
        "Faites-le là où personne ne peut le voir, pas même la personne qui vous interroge. Ne dites à "
        "personne ce qui est tombé."
    ),
    coin="Lancez une fois une pièce.",
    coins="Lancez {count} fois une pièce ; faites tous les lancers et retenez leur ordre.",
    die="Lancez une fois un dé.",
    spinner=(
        "Tenez un trombone sur le centre du cercle avec la pointe d'un crayon, donnez-lui une chiquenaude et "
        "regardez dans quelle zone il s'arrête."
    ),
    both="Répondez aux deux questions, mais seulement dans votre tête.",
    look_up="Faites ce qui est écrit à côté du résultat.",
    compare="Comparez les deux réponses.",
    tick="Cochez une case et ne dites rien d'autre :",
    result="Résultat",
    task="Ce que vous faites",
    heads="face",
    tails="pile",
    area="zone {letter}",
    truth_task="Répondez à la question selon la vérité.",
    opposite_task="Cochez le contraire de la vraie réponse.",
    say_task="Cochez « {answer} », quelle que soit la vérité.",
    other_task="Répondez à l'autre question selon la vérité.",
    same_task="Les deux sont oui, ou les deux sont non : cochez « {answer} ».",
    different_task="L'une est oui et l'autre non : cochez « {answer} ».",
    yes="oui",
    no="non",
    same="pareil",
    different="différent",
    what_it_shows="Ce que votre réponse montre de vous",
    by_chance=(
        "Sur 100 personnes dont la vraie réponse est non, environ {false} cochent « {answer} » ; sur 100 "
        "dont la vraie réponse est oui, environ {true}. Une case cochée ne prouve donc rien, de personne."
    ),
    by_chance_categories=(
        "Sur 100 personnes, environ {count} cochent une case seulement parce que le hasard l'a nommée. Une "
        "case cochée ne prouve donc rien, de personne."
    ),
    prior=(
        "Qui estimait à {prior} sur 100 la chance que votre vraie réponse soit oui l'estime à {after_yes} "
        "sur 100 après « {yes} », et à {after_no} sur 100 après « {no} ». On ne peut en apprendre davantage."
    ),
    follow=(
        "Faites ce que dit le résultat, même si vous auriez répondu autrement. Ce n'est pas un mensonge : "
        "c'est ce qui vous protège, vous et tous les autres, et sans quoi on ne peut compter les réponses."
    ),
    sample="Échantillon {number}",
    analyst="Pour l'analyse",
    chances="La probabilité de chaque réponse",
    if_true="si la vraie réponse est oui",
    if_false="si la vraie réponse est non",
    answer="Réponse",
    estimator="L'estimation",
    share_of="part de « {answer} »",
    prevalence="prévalence",
    where="n : nombre de personnes interrogées ; r : {share}. Une estimation sous 0 ou au-dessus de 1 vient "
    "du hasard, ou signale que les consignes n'ont pas été suivies.",
    privacy="La protection d'une réponse",
    epsilon=(
        "epsilon = {epsilon} pour chaque réponse (remplacement d'une personne) : aucune réponse ne change "
        "les chances de quoi que ce soit sur une personne de plus d'un facteur {factor}. Plusieurs réponses "
        "d'une même personne s'additionnent."
    ),
    respondents="Combien de personnes",
    margin="Demi-largeur de l'intervalle à 95 %",
    needed="Personnes",
    size_note="Intervalles exacts (Clopper et Pearson), pour la part de réponses la moins favorable.",
    conditions="Sur quoi cela repose",
    independent="Les personnes sont tirées de la population indépendamment les unes des autres.",
    unseen="Chacune suit la consigne, et personne d'autre ne voit ce qu'a donné le hasard.",
    unknown=(
        "La part de oui à l'autre question est {share}, quelle que soit la vraie réponse à la première, et "
        "personne qui voit une réponse ne sait ce que cette personne répond à l'autre question."
    ),
    once="Personne ne répond deux fois : deux réponses à une question révèlent plus qu'une.",
)
