"""The script that completes in fish, with a line of help for each word."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from sfumato.cli.completion.command_words import CommandWords, OptionWords

__all__ = ["fish_script"]

_WALK = """\
# fish completion for sfumato, as 'sfumato completion fish' prints it
function __sfumato_is
    set -l at
    for word in (commandline -opc)[2..]
        set -l next (string trim -- "$at $word")
        contains -- $next $__sfumato_commands; and set at $next
    end
    test "$at" = "$argv"
end
complete -c sfumato -e
"""


def fish_script(known: Sequence[CommandWords]) -> str:
    """Return the script.

    Parameters
    ----------
    known : sequence of CommandWords
    """
    return _WALK + "\n".join(_lines(known)) + "\n"


def _lines(known: Sequence[CommandWords]) -> Iterator[str]:
    yield f"set -g __sfumato_commands {' '.join(_quoted(each.path) for each in known if each.path)}"
    for each in known:
        here = f"complete -c sfumato -n {_quoted(f'__sfumato_is {each.path}'.strip())}"
        for name, help_ in each.commands.items():
            yield f"{here} -f -a {name} -d {_quoted(help_)}"
        for option in each.options:
            yield f"{here} {_names(option)}{_value(option)} -d {_quoted(option.help)}"
        for choices in each.arguments.values():
            yield f"{here} -a {_quoted(' '.join(choices))}"


def _names(option: OptionWords) -> str:
    return " ".join(f"-l {name[2:]}" if name.startswith("--") else f"-s {name[1:]}" for name in option.names)


def _value(option: OptionWords) -> str:
    if option.choices:
        return f" -x -a {_quoted(' '.join(option.choices))}"
    return " -r" if option.value else ""


def _quoted(text: str) -> str:
    r"""Return a word in fish's quotes, in which only the backslash and the quote mean something.

    Examples
    --------
    >>> print(_quoted("the ledger's"))
    'the ledger\'s'
    """
    escaped = text.replace("\\", "\\\\").replace("'", "\\'")
    return f"'{escaped}'"
