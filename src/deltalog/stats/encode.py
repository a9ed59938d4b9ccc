"""Statistics as JSON text, with texts and times cut as Delta cuts them.

Owns the JSON of one file's statistics and of a whole column of them, and the truncation of long
texts. What collects the values is `collect`; how a type's bounds look is its codec's
(`schema.primitives`).

Protocol: Per-file Statistics
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any, Final

import pyarrow as pa
import pyarrow.types as pt

from deltalog._json import Lexeme, dumps, parse_lexemes
from deltalog.errors import InternalError, MalformedLogError
from deltalog.kernels import Array
from deltalog.kernels import compute as pc
from deltalog.schema.primitives.numbers import java_word
from deltalog.schema.primitives.texts import join
from deltalog.stats.schema import NUM_RECORDS, TIGHT_BOUNDS, bounds_in_arrow

DEFAULT_PREFIX_LENGTH: Final = 32

_GREATEST_ASCII: Final = "\x7f"
_GREATEST_CHARACTER: Final = "\U0010ffff"


def truncate_min(text: str, length: int = DEFAULT_PREFIX_LENGTH) -> str:
    """Return a prefix of the text, which is never above the text.

    Args:
        text: the smallest value.
        length: how many characters to keep.
    """
    return text[:length]


def truncate_max(text: str, length: int = DEFAULT_PREFIX_LENGTH) -> str | None:
    """Return a short text that is not below the given one, or None if there is none.

    A prefix is below the text; a character that is above the next one of the text makes it greater.
    Lengths are UTF-16's, as in Delta, and no surrogate pair is torn.

    Args:
        text: the greatest value.
        length: how many UTF-16 units to keep; up to twice as many where no character is greater.
    """
    size = 0
    for position, char in enumerate(text):
        if size >= length:
            if size > 2 * length:
                return None
            if char < _GREATEST_ASCII:
                return text[:position] + _GREATEST_ASCII
            if char < _GREATEST_CHARACTER:
                return text[:position] + _GREATEST_CHARACTER
        size += 1 if char <= "\uffff" else 2
    return text if size <= 2 * length else None


def encode_stats(stats: Mapping[str, Any]) -> str:
    """Return the JSON text of one file's statistics.

    Args:
        stats: as `StatsCollector.finish` gives them; None leaves a statistic out.
    """
    return _encode(stats)


def with_wide_bounds(text: str | None, *, num_records: int) -> str:
    """Return the statistics of a file that gets a deletion vector: bounds are no longer tight.

    Args:
        text: the statistics so far; None or a malformed text has none.
        num_records: physical rows of the file, deleted ones too.

    Protocol: Per-file Statistics (`tightBounds`), Deletion Vectors (Writer Requirements)
    """
    try:
        known = parse_lexemes(text) if text else {}
    except MalformedLogError:
        known = {}
    stats = known if isinstance(known, dict) else {}
    return _encode({**stats, NUM_RECORDS: num_records, TIGHT_BOUNDS: False})


def encode_stats_column(stats: pa.Table) -> pa.ChunkedArray[Any]:
    """Return the JSON text of every row of a table of statistics; NULL where it has none.

    Cost: some vectorised kernels per leaf; texts that JSON escapes go one by one.
    """
    chunks = []
    for batch in stats.to_batches():
        texts, has_any = _objects(list(batch.schema), batch.columns, batch.num_rows)
        chunks.append(pc.if_else(has_any, texts, _no_text()))
    return pa.chunked_array(chunks, pa.string())


def _objects(
    fields: Sequence[pa.Field[Any]], columns: Sequence[Array], num_rows: int
) -> tuple[Array, Array]:
    """The JSON object of every row, without members that are NULL, and whether it has any."""
    inner: Array = pa.repeat(pa.scalar(""), num_rows)
    found: Array = pa.repeat(pa.scalar(value=False), num_rows)
    for field, column in zip(fields, columns, strict=True):
        if pt.is_struct(field.type):
            children = list(field.type)
            parts = [pc.struct_field(column, [index]) for index in range(len(children))]
            texts, has_any = _objects(children, parts, num_rows)
            texts = pc.if_else(pc.is_valid(column), texts, _no_text())
        else:
            texts = _texts(column)
            has_any = pc.is_valid(texts)
        # Not one join that skips NULLs: it loses the row whose values all are (pyarrow 26).
        member = join(f"{dumps(field.name).decode()}:", texts)
        comma = pc.if_else(
            pc.and_(pc.not_equal(inner, pa.scalar("")), pc.is_valid(member)), ",", ""
        )
        inner = join(inner, comma, pc.coalesce(member, pa.scalar("")))
        found = pc.or_(found, has_any)
    return join("{", inner, "}"), found


def _no_text() -> pa.StringScalar:
    # Not a constant: the first scalar of a process makes pyarrow import pandas.
    return pa.scalar(None, pa.string())


def _texts(values: Array) -> Array:
    texts = bounds_in_arrow(values.type).texts
    return values.cast(pa.string()) if texts is None else texts(values)


def _encode(value: Any) -> str:  # one line per kind
    match value:
        case Mapping():
            members = (
                f"{_encode(str(name))}:{_encode(part)}"
                for name, part in value.items()
                if part is not None
            )
            return "{" + ",".join(members) + "}"
        case Lexeme() | Decimal():
            return format(value, "f") if isinstance(value, Decimal) else str(value)
        case float() if (word := java_word(value)) is not None:
            return f'"{word}"'  # JSON has no word for them; Delta quotes Java's
        case bool() | int() | float() | str() | list():
            return dumps(value).decode()
        case datetime():
            return f'"{_moment_text(value)}"'
        case date():
            return f'"{value.isoformat()}"'
        case _:
            raise InternalError(f"no statistic has a value like {value!r}")


def _moment_text(moment: datetime) -> str:
    """The ISO text, cut down to milliseconds: never later than the moment."""
    if moment.tzinfo is None:
        return moment.isoformat(timespec="milliseconds")
    return moment.astimezone(UTC).replace(tzinfo=None).isoformat(timespec="milliseconds") + "Z"
