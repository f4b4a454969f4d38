from typing import Any

from numpy.typing import NDArray

def combine(limbs: int, kind: int, a: NDArray[Any], b: NDArray[Any], out: NDArray[Any]) -> None: ...
def dots(
    limbs: int, alone: bool, inner: int, period: int, a: NDArray[Any], b: NDArray[Any], out: NDArray[Any]
) -> None: ...
def row_sums(
    limbs: int,
    paired: bool,
    inner: int,
    count: int,
    a: NDArray[Any],
    weights: NDArray[Any],
    out: NDArray[Any],
) -> None: ...
def doubled(
    limbs: int,
    size: int,
    rows: NDArray[Any],
    back: NDArray[Any],
    between: NDArray[Any],
    ahead: NDArray[Any],
    out: NDArray[Any],
) -> None: ...
def pairs(
    limbs: int, inner: int, r: NDArray[Any], x: NDArray[Any], less: NDArray[Any], out: NDArray[Any]
) -> None: ...
def transform(limbs: int, size: int, rows: NDArray[Any], table: NDArray[Any]) -> None: ...
def invert(limbs: int, values: NDArray[Any]) -> None: ...
def turboshake(
    limbs: int, domain: int, rows: int, messages: bytes | NDArray[Any], out: bytearray | NDArray[Any]
) -> None: ...
def fixed_key_aes(
    rows: int, blocks: int, keys: NDArray[Any], seeds: NDArray[Any], out: NDArray[Any]
) -> None: ...
def add_keystream(width: int, less: bool, narrow: bool, key: bytes, total: NDArray[Any]) -> None: ...
def has_aes() -> bool: ...
