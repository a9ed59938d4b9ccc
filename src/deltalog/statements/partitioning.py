"""Advice for functions in `PARTITIONED BY` and `CLUSTER BY`, as other table formats have them.

Protocol: none; Delta tables have partitions by columns only
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from deltalog._util.escaping import name_key
from deltalog.expressions.render import quote_name
from deltalog.query.lexer import NAMES
from deltalog.query.names import unquoted

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import NoReturn

    from deltalog.query.lexer import Word
    from deltalog.statements.reader import StatementReader

_DAY: Final = ("day", "DATE", "CAST({0} AS DATE)")
_MONTH: Final = ("month", "STRING", "DATE_FORMAT({0}, 'yyyy-MM')")
_HOUR: Final = ("hour", "STRING", "DATE_FORMAT({0}, 'yyyy-MM-dd-HH')")
_YEAR: Final = ("year", "INT", "YEAR({0})")
_BUCKET: Final = ("bucket", "INT", "PMOD(HASH({0}), {1})")
_PREFIX: Final = ("prefix", "STRING", "SUBSTRING({0}, 1, {1})")
_GENERATED: Final = {
    **dict.fromkeys(("days", "day", "date", "to_date", "cast", "date_trunc"), _DAY),
    **dict.fromkeys(("months", "month"), _MONTH),
    **dict.fromkeys(("hours", "hour", "date_hour"), _HOUR),
    **dict.fromkeys(("years", "year"), _YEAR),
    "bucket": _BUCKET,
    **dict.fromkeys(("truncate", "substring", "substr", "left"), _PREFIX),
}
"""A function → the end of the name, the type, and the expression of a generated column."""
_ANY: Final = ("part", "TYPE", "…")


def refuse_function(reader: StatementReader, start: Word, *, generates: bool) -> NoReturn:
    """Refuse a function in PARTITIONED BY; name a generated column that has its values.

    Args:
        reader: the reader, before the bracket after the function's name.
        start: the name of the function.
        generates: whether the statement lists columns, so that it may define another.
    """
    function = name_key(start.text)
    suffix, kind, expression = _GENERATED.get(function, _ANY)
    words = reader.bracketed_words()
    column = next((unquoted(word.text) for word in words if word.kind in NAMES), "c")
    if function == "date_trunc":  # its first argument may be a name, too
        column = _last_name(words, column)
    number = next((word.text for word in words if word.kind == "number"), "16")
    made = quote_name(f"{column}_{suffix}")
    value = expression.format(quote_name(column), number)
    if generates:
        advice = f"define the column {made} {kind} GENERATED ALWAYS AS ({value})"
    else:
        advice = f"select {value} AS {made}"
    reader.fail_at(
        start,
        f"expected a column, found the function {start.text}; a table is partitioned by columns: "
        f"{advice}, and write PARTITIONED BY ({made})",
    )


def refuse_clustering(reader: StatementReader, start: Word) -> NoReturn:
    """Refuse a function in CLUSTER BY, which sorts by columns; name the column."""
    words = reader.bracketed_words()
    column = next((unquoted(word.text) for word in words if word.kind in NAMES), "c")
    reader.fail_at(
        start,
        f"expected a column, found the function {start.text}; clustering stores similar values "
        f"together: write CLUSTER BY ({quote_name(column)})",
    )


def _last_name(words: Sequence[Word], default: str) -> str:
    return next((unquoted(word.text) for word in reversed(words) if word.kind in NAMES), default)
