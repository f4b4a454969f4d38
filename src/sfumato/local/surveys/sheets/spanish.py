"""The sheet in Spanish."""

from __future__ import annotations

from sfumato.local.surveys.sheets.words import Words

__all__ = ["SPANISH"]

SPANISH = Words(
    language="es",
    title="Una pregunta, y una respuesta que sigue siendo suya",
    question="La pregunta",
    other_question="La otra pregunta",
    what_to_do="Qué hay que hacer",
    hidden="Hágalo donde nadie pueda verlo, tampoco quien le entrevista. No diga a nadie qué salió.",
    coin="Lance una vez una moneda.",
    coins="Lance {count} veces una moneda; haga todos los lanzamientos y recuerde su orden.",
    die="Lance una vez un dado.",
    spinner=(
        "Sujete un clip en el centro del círculo con la punta de un lápiz, dele un golpecito y mire en qué "
        "zona se detiene."
    ),
    both="Responda a las dos preguntas, pero solo en su mente.",
    look_up="Haga lo que está escrito junto al resultado.",
    compare="Compare las dos respuestas.",
    tick="Marque una casilla y no diga nada más:",
    result="Resultado",
    task="Lo que usted hace",
    heads="cara",
    tails="cruz",
    area="zona {letter}",
    truth_task="Responda a la pregunta con la verdad.",
    opposite_task="Marque lo contrario de la respuesta verdadera.",
    say_task="Marque «{answer}», sea cual sea la verdad.",
    other_task="Responda a la otra pregunta con la verdad.",
    same_task="Las dos son sí, o las dos son no: marque «{answer}».",
    different_task="Una es sí y la otra no: marque «{answer}».",
    yes="sí",
    no="no",
    same="igual",
    different="distinto",
    what_it_shows="Qué muestra su respuesta de usted",
    by_chance=(
        "De 100 personas cuya respuesta verdadera es no, unas {false} marcan «{answer}»; de 100 cuya "
        "respuesta verdadera es sí, unas {true}. Así que una marca no prueba nada, de nadie."
    ),
    by_chance_categories=(
        "De 100 personas, unas {count} marcan una casilla solo porque el azar la nombró. Así que una marca "
        "no prueba nada, de nadie."
    ),
    prior=(
        "Quien antes daba {prior} de 100 a que su respuesta verdadera sea sí le da {after_yes} de 100 "
        "después de «{yes}», y {after_no} de 100 después de «{no}». Más no se puede saber por ella."
    ),
    follow=(
        "Haga lo que dice el resultado, aunque usted respondería otra cosa. No es una mentira: es lo que le "
        "protege a usted y a todos los demás, y solo así se pueden contar las respuestas."
    ),
    sample="Muestra {number}",
    analyst="Para el análisis",
    chances="La probabilidad de cada respuesta",
    if_true="si la respuesta verdadera es sí",
    if_false="si la respuesta verdadera es no",
    answer="Respuesta",
    estimator="La estimación",
    share_of="proporción de «{answer}»",
    prevalence="prevalencia",
    where="n: número de personas encuestadas; r: {share}. Una estimación bajo 0 o sobre 1 es azar, o señal "
    "de que no se siguieron las instrucciones.",
    privacy="La protección de una respuesta",
    epsilon=(
        "epsilon = {epsilon} para cada respuesta (reemplazo de una persona): ninguna respuesta cambia las "
        "posibilidades de nada sobre una persona en más de un factor {factor}. Varias respuestas de una "
        "misma persona se suman."
    ),
    respondents="Cuántas personas",
    margin="Semiancho del intervalo del 95 %",
    needed="Personas",
    size_note="Intervalos exactos (Clopper y Pearson), para la proporción de respuestas menos favorable.",
    conditions="En qué se basa",
    independent="Las personas se sacan de la población con independencia unas de otras.",
    unseen="Cada una sigue la instrucción, y nadie más ve el resultado del azar.",
    unknown=(
        "La proporción de sí a la otra pregunta es {share}, sea cual sea la respuesta verdadera a la "
        "primera, y nadie que vea una respuesta sabe qué responde esa persona a la otra pregunta."
    ),
    once="Nadie responde dos veces: dos respuestas a una pregunta revelan más que una.",
)
