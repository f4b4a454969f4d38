"""The sheet in English."""

from __future__ import annotations

from sfumato.local.surveys.sheets.words import Words

__all__ = ["ENGLISH"]

ENGLISH = Words(
    language="en",
    title="A question, and an answer that stays yours",
    question="The question",
    other_question="The other question",
    what_to_do="What to do",
    hidden="Do this where nobody can see it, not even the interviewer. Tell nobody how it fell.",
    coin="Toss a coin once.",
    coins="Toss a coin {count} times; do all tosses, and remember their order.",
    die="Roll a die once.",
    spinner=(
        "Hold a paper clip on the middle of the circle with the tip of a pencil, flick it, and see in which "
        "area it stops."
    ),
    both="Answer both questions, but only in your mind.",
    look_up="Do what stands beside the result.",
    compare="Compare the two answers.",
    tick="Tick one box, and say nothing else:",
    result="Result",
    task="What you do",
    heads="heads",
    tails="tails",
    area="area {letter}",
    truth_task="Answer the question truly.",
    opposite_task="Tick the opposite of the true answer.",
    say_task="Tick “{answer}”, whatever is true.",
    other_task="Answer the other question truly.",
    same_task="Both are yes, or both are no: tick “{answer}”.",
    different_task="One is yes and one is no: tick “{answer}”.",
    yes="yes",
    no="no",
    same="same",
    different="different",
    what_it_shows="What your answer shows about you",
    by_chance=(
        "Of 100 people whose true answer is no, about {false} tick “{answer}”; of 100 whose true answer is "
        "yes, about {true} do. So a tick proves nothing, of anybody."
    ),
    by_chance_categories=(
        "Of 100 people, about {count} tick a box only because chance named it. So a tick proves nothing, of "
        "anybody."
    ),
    prior=(
        "Somebody who gave it a chance of {prior} in 100 before that your true answer is yes gives it "
        "{after_yes} in 100 after “{yes}”, and {after_no} in 100 after “{no}”. More cannot be learned from "
        "it."
    ),
    follow=(
        "Please do what the result says, even where it is not what you would answer. That is no lie: it is "
        "what protects you and everybody else, and only if all do so do the counts come out right."
    ),
    sample="Sample {number}",
    analyst="For the analyst",
    chances="The chance of each answer",
    if_true="if the true answer is yes",
    if_false="if the true answer is no",
    answer="Answer",
    estimator="The estimate",
    share_of="share of “{answer}”",
    prevalence="prevalence",
    where="n: number of respondents; r: {share}. Estimates below 0 or above 1 are by chance, or a sign that "
    "the instructions were not followed.",
    privacy="The privacy of one answer",
    epsilon=(
        "epsilon = {epsilon} for each answer (replace-one): no answer moves the odds of anything about a "
        "respondent by more than a factor of {factor}. Several answers of one person add up."
    ),
    respondents="How many respondents",
    margin="Margin of the 95 % interval",
    needed="Respondents",
    size_note="Exact intervals (Clopper and Pearson), for the least favorable share of answers.",
    conditions="What this rests on",
    independent="Respondents are independent draws from the population.",
    unseen="Each follows the instruction, and nobody else sees the result of the device.",
    unknown=(
        "The share of yes to the other question is {share}, whatever the true answer to the first, and "
        "nobody who sees an answer knows how that respondent answers the other question."
    ),
    once="Nobody answers twice: two answers to one question betray more than one.",
)
