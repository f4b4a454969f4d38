"""What a user names on the command line as ``module:name``: imported from the folder where they are."""

from __future__ import annotations

import importlib
import inspect
import sys
from operator import attrgetter
from pathlib import Path
from typing import Any

from sfumato import _check
from sfumato.errors import ParameterError

__all__ = ["named", "unusable"]


def named(target: str, *, metavar: str, example: str) -> Any:
    """Import what a target names; a class is made without arguments.

    Parameters
    ----------
    target : str
    metavar : str
        What the target is called in messages.
    example : str
        A target, for the remedy.

    Raises
    ------
    ParameterError
        If nothing usable is named.
    """
    module, colon, path = target.partition(":")
    if not colon or not module or not path:
        remedy = f"pass module:callable, such as {example}"
        _check.refuse(metavar, "name a module and what is in it", target, remedy)
    folder = str(Path.cwd())
    sys.path.insert(0, folder)
    try:
        found = importlib.import_module(module)
    except Exception as error:
        raise unusable(metavar, f"name a module that can be imported, got {module!r}", error) from error
    finally:
        sys.path.remove(folder)
    try:
        found = attrgetter(path)(found)
    except AttributeError as error:
        raise unusable(metavar, f"name something in {module}, got {path!r}", error) from error
    if not inspect.isclass(found):
        return found
    try:
        return found()
    except Exception as error:
        raise unusable(metavar, f"name a class that needs no arguments, got {path!r}", error) from error


def unusable(metavar: str, rule: str, error: Exception) -> ParameterError:
    """Return the error of a target that raised another."""
    return ParameterError(f"{metavar} must {rule}; it raised {type(error).__name__}: {error}")
