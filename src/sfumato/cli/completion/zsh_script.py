"""The script that completes in zsh, with a line of help for each word."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping, Sequence

from sfumato.cli.completion.command_words import CommandWords

__all__ = ["zsh_script"]

_WALK = """\
_sfumato() {
    local at="" option="" word
    integer i place=0
    local -a commands options valued values
    __sfumato_at ""
    for ((i = 2; i < CURRENT; i++)); do
        word=${(Q)words[i]}
        if [[ -n $option ]]; then option=""; continue; fi
        if (( ${commands[(I)${(b)word}:*]} )); then
            at="$at $word"
            __sfumato_at "$at"
        elif (( ${valued[(Ie)$word]} )); then option=$word
        elif [[ $word != -* ]]; then (( place += 1 ))
        fi
    done
    if [[ $PREFIX == --*=* ]]; then option=${PREFIX%%=*}; compset -P '*='; fi
    if [[ -n $option ]]; then __sfumato_values "$at $option"
    elif [[ $PREFIX == -* ]]; then _describe -o option options; return
    elif (( $#commands )); then _describe command commands; return
    else __sfumato_values "$at $place"
    fi
    if (( $#values )); then compadd -a values
    else compset -P '*='; _files
    fi
}
if [[ $funcstack[1] == _sfumato ]]; then _sfumato "$@"; else compdef _sfumato sfumato; fi
"""


def zsh_script(known: Sequence[CommandWords]) -> str:
    """Return the script, to be sourced, or put as ``_sfumato`` into a folder of ``fpath``.

    Parameters
    ----------
    known : sequence of CommandWords
    """
    return "\n".join(_lines(known)) + "\n" + _WALK


def _lines(known: Sequence[CommandWords]) -> Iterator[str]:
    yield "#compdef sfumato"
    yield "# zsh completion for sfumato, as 'sfumato completion zsh' prints it"
    yield "__sfumato_at() {"
    yield "    commands=() options=() valued=()"
    yield '    case "$1" in'
    for each in known:
        yield f"    ({_key(each.path)})"
        if each.commands:
            yield f"        commands=({_described(each.commands)})"
        helps = {name: option.help for option in each.options for name in option.names}
        yield f"        options=({_described(helps)})"
        yield f"        valued=({' '.join(map(shlex.quote, each.valued))}) ;;"
    yield "    esac"
    yield "}"
    yield "__sfumato_values() {"
    yield "    values=()"
    yield '    case "$1" in'
    for each in known:
        for option in each.options:
            for name in option.names if option.choices else ():
                yield f"    ({_key(f'{each.path} {name}')}) values=({' '.join(option.choices)}) ;;"
        for place, choices in each.arguments.items():
            pattern = f"<{place}->" if place == each.from_place else str(place)
            yield f"    ({shlex.quote(f' {each.path} ')}{pattern}) values=({' '.join(choices)}) ;;"
    yield "    esac"
    yield "}"


def _key(path: str) -> str:
    return shlex.quote(f" {path}" if path else "")


def _described(words: Mapping[str, str]) -> str:
    return " ".join(shlex.quote(f"{word}:{help_}") for word, help_ in words.items())
