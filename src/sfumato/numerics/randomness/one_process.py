"""Objects of one process: a copy elsewhere would have their budget, or draw noise for a value, once more."""

from __future__ import annotations

import os
from typing import Any, ClassVar, NoReturn, Self

from sfumato import _check

__all__ = ["OneProcess"]


class OneProcess:
    """A base class: copies are the object itself, pickling is refused, and so is use after a fork.

    Examples
    --------
    >>> import copy
    >>> class Counter(OneProcess):
    ...     _name, _remedy = "counter", "count here"
    >>> counter = Counter()
    >>> copy.deepcopy(counter) is counter
    True
    >>> import pickle
    >>> pickle.dumps(counter)
    Traceback (most recent call last):
    ...
    sfumato.errors.ParameterError: counter must be in one process, but it is sent to another; count here
    """

    __slots__ = ("_process",)

    _name: ClassVar[str]
    _remedy: ClassVar[str]
    _process: int

    def __new__(cls, *args: Any, **kwargs: Any) -> Self:
        """Note the process."""
        del args, kwargs
        made = super().__new__(cls)
        made._process = os.getpid()
        return made

    def __copy__(self) -> Self:
        """Return itself."""
        return self

    def __deepcopy__(self, memo: object) -> Self:
        """Return itself."""
        return self

    def __reduce__(self) -> NoReturn:
        """Refuse."""
        _check.refuse_state(self._name, "be in one process", "it is sent to another", self._remedy)

    def _check_process(self) -> None:
        """Refuse the use of what a fork has copied."""
        if os.getpid() != self._process:
            _check.refuse_state(self._name, "be in one process", "this is a forked one", self._remedy)
