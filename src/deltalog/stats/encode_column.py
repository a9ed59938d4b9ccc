"""Struct columns of statistics as a column of JSON texts.

Owns the stored form of whole columns; that of single values is `encode`. Both are read alike.

Protocol: Per-file Statistics
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt

from deltalog._json import dumps
from deltalog.kernels import Array, arrow

if TYPE_CHECKING:
    from collections.abc import Sequence


# An ISO text has no year beyond 9999, and a bound may be left out.
_YEAR_1_US: Final = -62_135_596_800_000_000
_YEAR_9999_US: Final = 253_402_300_799_999_999
_JSON_ESCAPED: Final = r'["\\\x00-\x1f]'
_NON_FINITE: Final = {"nan": '"NaN"', "inf": '"Infinity"', "-inf": '"-Infinity"'}


def encode_stats_column(stats: pa.Table) -> pa.ChunkedArray[Any]:
    """The JSON text of every row of a statistics table; a row without any statistic is NULL.

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
    """An object for every row, without the members that are NULL; and whether any is not."""
    inner = arrow.repeat(pa.scalar(""), num_rows)
    found = arrow.repeat(pa.scalar(value=False), num_rows)
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
        member = _join(f"{dumps(field.name).decode()}:", texts)
        comma = pc.if_else(
            pc.and_(pc.not_equal(inner, pa.scalar("")), pc.is_valid(member)), ",", ""
        )
        inner = _join(inner, comma, pc.coalesce(member, pa.scalar("")))
        found = pc.or_(found, has_any)
    return _join("{", inner, "}"), found


def _no_text() -> pa.StringScalar:
    # Not a constant: the first scalar of a process makes pyarrow import pandas.
    return pa.scalar(None, pa.string())


def _join(*parts: Array) -> Array:
    """The parts one after the other; NULL where one is."""
    return pc.call_function("binary_join_element_wise", [*parts, ""])


def _texts(values: Array) -> Array:
    kind = values.type
    if pt.is_string(kind) or pt.is_large_string(kind):
        return _quoted(values)
    if pt.is_timestamp(kind):
        moments = values.cast(pa.timestamp("us", kind.tz))
        floored = pc.floor_temporal(_dated(moments, moments), unit="millisecond")
        texts = floored.cast(pa.timestamp("ms", kind.tz)).cast(pa.string())
        return _join('"', pc.replace_substring(texts, " ", "T"), '"')
    if pt.is_date(kind):
        return _join('"', _dated(values, values.cast(pa.timestamp("us"))).cast(pa.string()), '"')
    texts = values.cast(pa.string())
    if not pt.is_floating(kind):
        return texts
    texts = pc.replace_substring_regex(texts, r"^(-?\d+)$", r"\1.0")
    for word, quoted in _NON_FINITE.items():
        texts = pc.if_else(pc.equal(texts, pa.scalar(word)), quoted, texts)
    return texts


def _quoted(texts: Array) -> Array:
    plain = _join('"', texts, '"')
    special = pc.match_substring_regex(texts, _JSON_ESCAPED)
    if not pc.any(special).as_py():
        return plain
    escaped = [dumps(text).decode() for text in texts.filter(special).to_pylist()]
    mask: Array = pc.coalesce(special, pa.scalar(value=False))
    return pc.replace_with_mask(plain, mask, pa.array(escaped, plain.type))


def _dated(values: Array, moments: Array) -> Array:
    """The values whose year has four digits."""
    micros = moments.cast(pa.int64())
    fits = pc.and_(
        pc.greater_equal(micros, pa.scalar(_YEAR_1_US)),
        pc.less_equal(micros, pa.scalar(_YEAR_9999_US)),
    )
    return pc.if_else(fits, values, pa.scalar(None, values.type))
