"""Functions and windows that are not read but have another form here: what to write instead."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

__all__ = ["ELSEWHERE", "WINDOW_REFUSAL"]

WINDOW_REFUSAL: Final = (
    "a window function mixes the rows of several units; over the answer, write it in SQL around the private "
    "SELECT; over a unit's rows, PARTITION BY the unit in a subquery"
)
"""Of windows in a private SELECT."""

ELSEWHERE: Final[Mapping[str, str]] = MappingProxyType(
    {
        "CBRT": "write SIGN(x) * POWER(ABS(x), 1 / 3)",
        "CONTAINS_SUBSTR": "write LOWER(s) LIKE '%ab%'",
        "DATEDIFF": "write DATE_DIFF(later, earlier, DAY)",
        "DATE_FROM_UNIX_DATE": "write DATE_ADD(DATE '1970-01-01', INTERVAL n DAY)",
        "DATE_PART": "write EXTRACT(MONTH FROM d)",
        "DATETIME": "write CAST(x AS TIMESTAMP)",
        "DAY": "write EXTRACT(DAY FROM d)",
        "DAYOFWEEK": "write EXTRACT(DAYOFWEEK FROM d)",
        "DAYOFYEAR": "write EXTRACT(DAYOFYEAR FROM d)",
        "DIV": "write CAST(FLOOR(x / y) AS INT64)",
        "GENERATE_ARRAY": "write RIGHT JOIN UNNEST(GENERATE_ARRAY(1, 9)) AS k ON x = k for public groups",
        "HOUR": "write EXTRACT(HOUR FROM t)",
        "IEEE_DIVIDE": "write SAFE_DIVIDE(x, y)",
        "INSTR": "write s LIKE '%ab%', or REGEXP_CONTAINS(s, 'ab')",
        "LOG2": "write LN(x) / LN(2)",
        "LPAD": "of numbers write RIGHT(CONCAT('000', CAST(n AS STRING)), 3)",
        "LTRIM": "write TRIM(s), which is on both sides",
        "MINUTE": "write EXTRACT(MINUTE FROM t)",
        "MONTH": "write EXTRACT(MONTH FROM d)",
        "NVL": "write IFNULL(x, y)",
        "PARSE_DATE": "write CAST(s AS DATE), of texts such as '2024-01-31'",
        "PARSE_TIMESTAMP": "write CAST(s AS TIMESTAMP), of texts such as '2024-01-31 12:00:00'",
        "QUARTER": "write EXTRACT(QUARTER FROM d)",
        "RANGE_BUCKET": "write WIDTH_BUCKET(x, 0, 100, 10), or CASE",
        "REGEXP_LIKE": "write REGEXP_CONTAINS(s, 'ab')",
        "REGEXP_SUBSTR": "write REGEXP_EXTRACT(s, 'ab')",
        "RTRIM": "write TRIM(s), which is on both sides",
        "SAFE_ADD": "write x + y: what overflows is NULL",
        "SAFE_MULTIPLY": "write x * y: what overflows is NULL",
        "SAFE_NEGATE": "write -x: what overflows is NULL",
        "SAFE_SUBTRACT": "write x - y: what overflows is NULL",
        "SECOND": "write EXTRACT(SECOND FROM t)",
        "SPLIT": "write REGEXP_EXTRACT(s, '^([^,]+),') for the first part, say",
        "SPLIT_PART": "write REGEXP_EXTRACT(s, '^([^,]+),') for the first part, say",
        "STRING": "write CAST(x AS STRING)",
        "STRPOS": "write s LIKE '%ab%', or REGEXP_CONTAINS(s, 'ab')",
        "STR_POSITION": "write s LIKE '%ab%', or REGEXP_CONTAINS(s, 'ab')",
        "STR_TO_DATE": "write CAST(s AS DATE), of texts such as '2024-01-31'",
        "TIMESTAMP": "write CAST(x AS TIMESTAMP)",
        "TO_CHAR": "write FORMAT_DATE('%Y-%m', d), or CAST(x AS STRING)",
        "TO_DATE": "write CAST(s AS DATE)",
        "TO_TIMESTAMP": "write CAST(s AS TIMESTAMP)",
        "TRUNC": "write SIGN(x) * FLOOR(ABS(x))",
        "UNIX_DATE": "write DATE_DIFF(d, DATE '1970-01-01', DAY)",
        "UNIX_MICROS": "write TIMESTAMP_DIFF(t, TIMESTAMP '1970-01-01', MICROSECOND)",
        "UNIX_MILLIS": "write TIMESTAMP_DIFF(t, TIMESTAMP '1970-01-01', MILLISECOND)",
        "UNIX_SECONDS": "write TIMESTAMP_DIFF(t, TIMESTAMP '1970-01-01', SECOND)",
        "WEEK": "write EXTRACT(ISOWEEK FROM d)",
        "YEAR": "write EXTRACT(YEAR FROM d)",
    }
)
"""What to write instead of each; some names are the parser's own for a function."""
