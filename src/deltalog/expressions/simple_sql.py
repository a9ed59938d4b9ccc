"""Reading simple conditions, such as `t.id = s.id AND day >= '2024-01-31'`, without sqlglot.

Importing sqlglot takes longer than the rest of deltalog, and most conditions of merges and scans
compare columns with columns and constants. The result is the same as that of `sql_nodes`.
"""

from __future__ import annotations

import re
from typing import Final

from deltalog._util.escaping import name_key
from deltalog.expressions.nodes import And, Column, Comparison, Expression, Literal

_NAME: Final = r"[A-Za-z_][A-Za-z0-9_]*"
_PATH: Final = rf"{_NAME}(?:\.{_NAME})*"
_COMPARISON: Final = re.compile(
    rf"\s*(?P<left>{_PATH})\s*(?P<operator><=|>=|=|<|>)\s*"
    rf"(?:(?P<right>{_PATH})|(?P<number>[0-9]{{1,9}})|'(?P<quoted>[^'\\]*)')(?![\w.'\"`(\[:@$#])",
    re.ASCII,
)
_AND: Final = re.compile(r"\s+and\b", re.IGNORECASE)
_BLANK: Final = re.compile(r"\s*")
# Names that SQL reads as something else than a column: constants, functions without brackets,
# operators, and prefixes of strings.
_WORDS: Final = """
    all and any array as asc at between binary both by case cast collate cross current_catalog
    current_database current_date current_role current_schema current_time current_timestamp
    current_user date decimal desc distinct div else end escape except exists extract false filter
    from full group having ignore ilike in inner interval into intersect is join lateral left like
    limit localtime localtimestamp map minus natural not null of on or order outer over overlaps
    partition regexp respect right rlike row select semi session_user set similar some struct
    symmetric table then time timestamp timestamp_ltz timestamp_ntz to trailing true try_cast union
    unique unknown user using values when where window with within x xor
"""
_RESERVED: Final = frozenset(_WORDS.split())


def read_simple(sql: str) -> Expression | None:
    """Parse a conjunction of comparisons; return None if the string is anything else.

    Args:
        sql: one expression in Spark's dialect.
    """
    parts: list[Expression] = []
    place = 0
    while (found := _COMPARISON.match(sql, place)) is not None:
        left, right = _column(found["left"]), _operand(found)
        if left is None or right is None:
            return None
        parts.append(Comparison(found["operator"], left, right))
        place = found.end()
        if _BLANK.fullmatch(sql, place):
            return parts[0] if len(parts) == 1 else And(tuple(parts))
        joined = _AND.match(sql, place)
        if joined is None:
            return None
        place = joined.end()
    return None


def _operand(found: re.Match[str]) -> Expression | None:
    if found["right"] is not None:
        return _column(found["right"])
    if found["number"] is not None:
        return Literal(int(found["number"]))
    return Literal(found["quoted"])


def _column(path: str) -> Column | None:
    names = tuple(path.split("."))
    return None if any(name_key(name) in _RESERVED for name in names) else Column(names)
