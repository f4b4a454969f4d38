from typing import Any

from numpy.typing import NDArray

def table(thresholds: bytes | NDArray[Any]) -> object: ...
def direct(table: object, words: NDArray[Any], out: NDArray[Any]) -> tuple[int, int]: ...
def cells(
    table: object,
    words: NDArray[Any],
    out: NDArray[Any],
    low_bits: int,
    alpha: float,
    beta: float,
    delta: float,
) -> tuple[int, int]: ...
def variants() -> list[str]: ...
def use(variant: str) -> None: ...
