"""Which Ed25519 public keys are of no use: no point of the curve, or one of a handful of small order.

Under a key :math:`A` with :math:`8A = 0` a signature is valid by chance, without a private key: it is
:math:`(R, s)` with :math:`sB = R + kA`, and :math:`s = 0, R = 0` is one for each message whose hash
:math:`k` is a multiple of the order of :math:`A`, every one for :math:`A = 0`. RFC 8032 does not ask that
verifiers refuse them.

The square of a point's :math:`x` follows from its :math:`y`, by :math:`-x^2 + y^2 = 1 + d x^2 y^2`, and the
:math:`y` of :math:`2A` is :math:`(y^2 + x^2) / (2 + x^2 - y^2)`: no root is needed. Neutral is :math:`y = 1`
with :math:`x = 0`, the only point with this :math:`y`.
"""

from __future__ import annotations

from typing import Final

__all__ = ["is_point_of_large_order"]

_P: Final = 2**255 - 19
_D: Final = -121665 * pow(121666, -1, _P) % _P


def is_point_of_large_order(public_key: str) -> bool:
    """Whether 64 hexadecimal digits are a point of the curve that eight times itself is not neutral."""
    y = int.from_bytes(bytes.fromhex(public_key), "little") % 2**255
    if y >= _P or not _is_square(_x_squared(y)):
        return False
    for _ in range(3):
        x_squared = _x_squared(y)
        y = (y * y + x_squared) * pow(2 + x_squared - y * y, -1, _P) % _P
    return y != 1


def _x_squared(y: int) -> int:
    """Return the only square of x with this y; d is no square, so that the divisor is not zero."""
    return (y * y - 1) * pow(_D * y * y + 1, -1, _P) % _P


def _is_square(number: int) -> bool:
    return pow(number, (_P - 1) // 2, _P) in (0, 1)
