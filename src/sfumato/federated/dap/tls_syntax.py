"""Reading and writing of TLS presentation language (RFC 8446, section 3), strictly.

>>> reader = Reader(bytes.fromhex("0003616263"))
>>> reader.opaque(2)
b'abc'
>>> reader.finish()
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar, final

__all__ = ["MalformedMessage", "Reader", "decoded", "opaque", "uint"]

T = TypeVar("T")


class MalformedMessage(Exception):
    """Bytes that are no message; the text tells which rule they break, and nothing of their content.

    Examples
    --------
    >>> Reader(b"").uint(1)
    Traceback (most recent call last):
    ...
    sfumato.federated.dap.tls_syntax.MalformedMessage: the message ends too early
    """


@final
class Reader:
    r"""A position in a message. A declared length is compared with what is left before anything is copied.

    Parameters
    ----------
    data : bytes
        The whole message.

    Examples
    --------
    >>> Reader(b"\x01\x02").uint(2)
    258
    """

    __slots__ = ("_at", "_data", "_end")

    def __init__(self, data: bytes) -> None:
        self._data, self._at, self._end = data, 0, len(data)

    @property
    def left(self) -> int:
        """How many bytes were not read yet."""
        return self._end - self._at

    def fixed(self, size: int) -> bytes:
        """Return the next bytes."""
        if size > self.left:
            raise MalformedMessage("the message ends too early")
        self._at += size
        return self._data[self._at - size : self._at]

    def uint(self, size: int) -> int:
        """Return an unsigned integer of some bytes."""
        return int.from_bytes(self.fixed(size), "big")

    def opaque(self, prefix: int, *, minimum: int = 0) -> bytes:
        """Return a byte string that follows its length, a number of ``prefix`` bytes."""
        size = self.uint(prefix)
        if size < minimum:
            raise MalformedMessage("a byte string is shorter than it may be")
        return self.fixed(size)

    def rest(self, read: Callable[[Reader], T]) -> tuple[T, ...]:
        """Return values up to the end of the message."""
        found = []
        while self.left:
            before = self.left
            found.append(read(self))
            if self.left >= before:
                raise MalformedMessage("an element of a vector has no bytes")
        return tuple(found)

    def vector(self, prefix: int, read: Callable[[Reader], T]) -> tuple[T, ...]:
        """Return values that follow their common length in bytes."""
        return Reader(self.opaque(prefix)).rest(read)

    def finish(self) -> None:
        """Refuse bytes after the end."""
        if self.left:
            raise MalformedMessage("bytes follow the message's end")


def decoded(data: bytes, read: Callable[[Reader], T]) -> T:
    r"""Return the one value that all bytes encode.

    Examples
    --------
    >>> decoded(b"\x00\x07", lambda reader: reader.uint(2))
    7
    """
    reader = Reader(data)
    value = read(reader)
    reader.finish()
    return value


def uint(value: int, size: int) -> bytes:
    """Return an unsigned integer as bytes.

    Examples
    --------
    >>> uint(258, 2).hex()
    '0102'
    """
    return value.to_bytes(size, "big")


def opaque(data: bytes, prefix: int) -> bytes:
    """Return a byte string after its length.

    Examples
    --------
    >>> opaque(b"abc", 2).hex()
    '0003616263'
    """
    return len(data).to_bytes(prefix, "big") + data
