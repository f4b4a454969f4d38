"""Numbers as a page writes them: rounded to the safe side after formatting, in the manner of a language.

An estimate is rounded to the nearest number of four digits; the ends of its interval are rounded outward, so
that the interval that is read holds the one that was computed. Grids of four digits are nested: each number
of a coarse one is on all finer ones. So an estimate, rounded, stays within its rounded interval. A float is
taken as the shortest decimal that is read as this float, as in all of a ledger.
"""

from __future__ import annotations

import math
from decimal import (
    ROUND_CEILING,
    ROUND_FLOOR,
    ROUND_HALF_EVEN,
    Decimal,
    localcontext,
)
from typing import Final, final

__all__ = ["Numerals"]

_DIGITS: Final = 4
_LARGEST: Final = Decimal(10) ** 15
"""From here on numbers are written with a power of ten."""
_MINUS: Final = "\N{MINUS SIGN}"
_SMALLEST: Final = Decimal("0.001")


@final
class Numerals:
    """How numbers are written in one language.

    Parameters
    ----------
    language : str
        German groups by points and has a decimal comma.

    Examples
    --------
    >>> english, german = Numerals("en"), Numerals("de")
    >>> english.nearest(12345.6), english.up(0.50001), german.down(-12345.6)
    ('12,346', '0.5001', '−12.346')
    >>> english.chance_up(0.6224593), german.chance_up(0.99999)
    ('62.3', '99,999')
    """

    def __init__(self, language: str) -> None:
        self._marks = str.maketrans({",": ".", ".": ","} if language == "de" else {})

    def nearest(self, value: float | Decimal) -> str:
        """Return about a number."""
        return self._rounded(value, ROUND_HALF_EVEN)

    def up(self, value: float | Decimal) -> str:
        """Return a number that is no smaller."""
        return self._rounded(value, ROUND_CEILING)

    def down(self, value: float | Decimal) -> str:
        """Return a number that is no greater."""
        return self._rounded(value, ROUND_FLOOR)

    def chance_up(self, probability: float) -> str:
        """Return in how many of 100 cases, no fewer; only what is certain is 100."""
        digits = 1
        with localcontext(prec=400, rounding=ROUND_CEILING):
            cases = 100 * Decimal(repr(float(probability)))
            while True:
                shown = cases.quantize(Decimal(1).scaleb(-digits))
                if shown < 100 or cases >= 100:
                    return self._written(f"{min(shown, Decimal(100)):f}")
                digits += 1

    def chance_down(self, probability: float) -> str:
        """Return in how many of 100 cases, no more; 0 is nothing, or too little for two digits."""
        with localcontext(prec=400, rounding=ROUND_FLOOR):
            cases = 100 * Decimal(repr(float(probability)))
            place = 1 if cases >= 1 else min(12, 1 - cases.adjusted()) if cases else 1
            return self._written(f"{cases.quantize(Decimal(1).scaleb(-place)):f}")

    def _rounded(self, value: float | Decimal, rounding: str) -> str:
        if isinstance(value, float) and not math.isfinite(value):
            return "NaN" if math.isnan(value) else ("∞" if value > 0 else f"{_MINUS}∞")
        number = Decimal(repr(float(value))) if isinstance(value, float) else Decimal(value)
        if number == 0:
            return "0"
        whole = number == number.to_integral_value() if abs(number) < _LARGEST else False
        with localcontext(prec=1200, rounding=rounding):
            place = 0 if whole else max(number.adjusted() + 1 - _DIGITS, -400)
            if abs(number) < _LARGEST:
                place = min(place, 0)
            shown = number.quantize(Decimal(1).scaleb(place))
            if shown == 0:
                return "0"
            if _SMALLEST <= abs(shown) < _LARGEST:
                return self._written(f"{shown:,f}")
            mantissa = shown.scaleb(-shown.adjusted()).normalize()
            return f"{self._written(f'{mantissa:f}')}·10^{shown.adjusted()}".replace("^-", f"^{_MINUS}")

    def _written(self, text: str) -> str:
        text = text.rstrip("0").rstrip(".") if "." in text else text
        return text.translate(self._marks).replace("-", _MINUS)
