"""The script that completes in bash, from 3.2 on, which has no arrays by name."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Iterator, Sequence

from sfumato.cli.completion.command_words import CommandWords

__all__ = ["bash_script"]

# At [=:@] bash breaks words of the command line, so that NAME=PATH is three of them.
_WALK = """\
_sfumato() {
    local cur=${COMP_WORDS[COMP_CWORD]} at="" option="" word joined="" i place=0
    local commands options valued values
    __sfumato_at ""
    for ((i = 1; i < COMP_CWORD; i++)); do
        word=${COMP_WORDS[i]}
        if [[ $word == [=:@] ]]; then joined=1; continue; fi
        if [[ -n $joined || -n $option ]]; then joined="" option=""; continue; fi
        if [[ " $commands " == *" $word "* ]]; then
            at="$at $word"
            __sfumato_at "$at"
        elif [[ " $valued " == *" $word "* ]]; then option=$word
        elif [[ $word != -* ]]; then place=$((place + 1))
        fi
    done
    if [[ $cur == [=:@] ]]; then joined=1 cur=""; fi
    values=""
    if [[ -n $option ]]; then __sfumato_values "$at $option"
    elif [[ -n $joined ]]; then :
    elif [[ $cur == -* ]]; then values=$options
    elif [[ -n $commands ]]; then values=$commands
    else __sfumato_values "$at $place"
    fi
    COMPREPLY=($(compgen -W "$values" -- "$cur"))
}
complete -o bashdefault -o default -F _sfumato sfumato
"""


def bash_script(known: Sequence[CommandWords]) -> str:
    """Return the script.

    Parameters
    ----------
    known : sequence of CommandWords
    """
    return "\n".join(_lines(known)) + "\n" + _WALK


def _lines(known: Sequence[CommandWords]) -> Iterator[str]:
    yield "# bash completion for sfumato, as 'sfumato completion bash' prints it"
    yield "__sfumato_at() {"
    yield '    commands="" options="" valued=""'
    yield '    case "$1" in'
    for each in known:
        yield f"    {_key(each.path)}"
        if each.commands:
            yield f"        commands={_words(each.commands)}"
        yield f"        options={_words(each.names)} valued={_words(each.valued)} ;;"
    yield "    esac"
    yield "}"
    yield "__sfumato_values() {"
    yield '    case "$1" in'
    for each in known:
        for option in each.options:
            for name in option.names if option.choices else ():
                yield f"    {_key(f'{each.path} {name}')} values={_words(option.choices)} ;;"
        for place, choices in each.arguments.items():
            key = shlex.quote(f" {each.path} ")
            further = f"[{place}-9]|{key}[1-9][0-9]" if place == each.from_place else place
            yield f"    {key}{further}) values={_words(choices)} ;;"
    yield "    esac"
    yield "}"


def _key(path: str) -> str:
    return f"{shlex.quote(f' {path}' if path else '')})"


def _words(words: Iterable[str]) -> str:
    return shlex.quote(" ".join(words))
