"""Convert conditions for Spark, and find the parts of them that can prune files.

Spark evaluates SQL in the session's time zone, and has functions that deltalog lacks. So a part of
a condition may prune files only if it has the same meaning in Spark and in deltalog.

Protocol: none
"""

from __future__ import annotations

import re
from contextlib import suppress
from dataclasses import dataclass
from functools import partial, reduce
from operator import and_
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
import pyarrow.types as pt
from pyspark.sql import Column
from pyspark.sql import functions as F  # noqa: N812  # PySpark's convention

from deltalog._util.escaping import name_key
from deltalog._util.kernels import compute
from deltalog._util.paths import decode_path, store_kind
from deltalog.errors import InvalidInputError
from deltalog.expressions import (
    UTC_NAMES,
    TextRules,
    conjuncts,
    map_columns,
    parse_sql,
    to_sql,
    type_of,
)
from deltalog.expressions import Column as ColumnNode
from deltalog.expressions import columns as columns_of
from deltalog.expressions.analyze import WITHOUT_ZONE
from deltalog.expressions.nodes import Call, Cast, Expression
from deltalog.expressions.sql_session import SqlSession
from deltalog.expressions.trees import walk
from deltalog.operations.arguments import as_condition
from deltalog.protocol.column_mapping import field_id, physical_name
from deltalog.query.lexer import split
from deltalog.schema import ArrayType, DataType, MapType, PrimitiveType, StructType, find_field
from deltalog.schema.arrow import parquet_field_id
from deltalog.schema.columns import walk as walk_columns
from deltalog.schema.evolve import TypeChange, widening_changes
from deltalog.schema.metadata_columns import METADATA, has_own_metadata, with_metadata_columns
from deltalog.schema.primitives import Family
from deltalog.schema.types import TIMESTAMP, VOID
from deltalog.spark.session.spark_tables import has_file_system
from deltalog.storage.parquet.reader import open_parquet
from deltalog.storage.pool import map_in_pool

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from pyspark.sql import SparkSession

    from deltalog._util.paths import StringColumn
    from deltalog.data.scan import ReadSpec
    from deltalog.storage.store import Store

_ASKS_THE_CLOCK: Final = re.compile(r"(?i)current_|\bnow\b|localtimestamp|curdate")


@dataclass(frozen=True, slots=True, kw_only=True)
class RowCondition:
    """A condition on rows.

    Args:
        column: the condition for Spark.
        pruning: a predicate for pruning, which is true for every row for which the condition is
            true. None if deltalog can parse no part of the condition.
        used: the top-level columns that the condition reads; None if they cannot be determined.
        text: the condition as a string, for messages.
        is_known: whether `pruning` is equivalent to the whole condition.
    """

    column: Column
    pruning: Expression | None
    used: frozenset[str] | None
    text: str
    is_known: bool = False


def as_spark_condition(
    condition: Any,
    schema: StructType,
    session: SqlSession,
    *,
    alias: str | None = None,
    by_spark: bool = False,
) -> RowCondition:
    """Convert a condition of any supported form.

    If deltalog can parse the condition, each function of the current time is replaced by its value
    now. Otherwise deltalog and Spark would filter files and rows with different times.

    Args:
        condition: Spark SQL, a Spark column, an expression, or deltalake's filter tuples.
        schema: the schema of the table.
        session: the SQL settings, such as the time zone.
        alias: the table's alias in SQL strings.
        by_spark: whether an expression may use functions and names that only Spark supports.

    Raises:
        InvalidInputError: the condition has none of these forms. Spark reports errors in SQL
            strings later.
    """
    if isinstance(condition, Column):
        return RowCondition(column=condition, pruning=None, used=None, text=str(condition))
    if by_spark and isinstance(condition, Expression):
        try:
            _known(schema, condition, session)
        except InvalidInputError:
            return _of_spark(condition, schema, session)
    is_text = isinstance(condition, str)
    ours = (
        _of_text(condition, schema, alias, session)
        if is_text
        else _known(schema, condition, session)
    )
    time_zone = session.time_zone
    if ours is None:
        if not is_text:
            raise InvalidInputError(f"cannot use {condition!r} as a condition")
        return RowCondition(column=sql_column(condition), pruning=None, used=None, text=condition)
    parts = conjuncts(ours)
    kept = tuple(part for part in parts if knows_no_zone(part, schema, time_zone, is_text=is_text))
    asks = is_text and asks_the_clock(condition)
    if asks and time_zone not in UTC_NAMES:
        kept = ()
    text = to_sql(ours) if not is_text or (asks and kept) else condition
    return RowCondition(
        column=F.expr(text),
        pruning=reduce(and_, kept) if kept else None,
        used=_used(ours, schema),
        text=text,
        is_known=len(kept) == len(parts),
    )


def sql_column(text: str) -> Column:
    """Return a SQL expression as a Spark column.

    Brackets make a name after the expression an error. Spark would ignore it: `id = 1 AND` would
    mean `id = 1 AS AND`. Text that would have another meaning in brackets gets none.
    """
    end = "\n" if "--" in text else ""  # a comment ends with its line
    return F.expr(f"({text}{end})" if _is_whole(text) else text)


def _is_whole(text: str) -> bool:
    """Whether brackets around a text contain it as one expression, without `AS` or a comma."""
    try:
        words = split(text)
    except InvalidInputError:
        return False
    depth = 0
    for word in words:
        depth += word.says("(") - word.says(")")
        if depth < 0 or (not depth and (word.says(",") or word.says("AS"))):
            return False
    return depth == 0


def _of_spark(condition: Expression, schema: StructType, session: SqlSession) -> RowCondition:
    """Convert a condition with parts that only Spark can evaluate; the other parts prune files."""
    kept: list[Expression] = []
    for part in conjuncts(condition):
        with suppress(InvalidInputError):
            ours = None if asks_the_clock(part) else _known(schema, part, session)
            if ours is not None and knows_no_zone(ours, schema, session.time_zone, is_text=True):
                kept.append(ours)
    text = to_sql(condition)
    pruning = reduce(and_, kept) if kept else None
    return RowCondition(column=F.expr(text), pruning=pruning, used=None, text=text)


def _of_text(
    text: str, schema: StructType, alias: str | None, session: SqlSession
) -> Expression | None:
    """Parse a condition on the rows of one table; None if only Spark can parse it."""
    try:
        if alias is None:
            return _known(schema, text, session)
        parsed = parse_sql(text)
        called = [path for path in columns_of(parsed) if name_key(path[0]) == name_key(alias)]
        if called and name_key(alias) in {name_key(name) for name in schema.names}:
            return None  # ambiguous, because a column has the same name as the alias
        return _known(schema, map_columns(parsed, partial(_without, alias)), session)
    except InvalidInputError:
        return None


def _known(schema: StructType, condition: Any, session: SqlSession) -> Expression | None:
    """Return the resolved condition if Spark evaluates it in the same way as deltalog, else None.

    Spark does not apply the collations of columns, so strings are compared without them.
    """
    return as_condition(schema, condition, session=session, text_rules=TextRules.NONE)


def _without(alias: str, column: ColumnNode) -> ColumnNode:
    is_alias = len(column.path) > 1 and name_key(column.path[0]) == name_key(alias)
    return ColumnNode(column.path[1:]) if is_alias else column


def check_zone(text: str, whole: Expression, schema: StructType, time_zone: str) -> None:
    """Refuse a condition that deltalog would evaluate differently from Spark.

    Args:
        text: the condition as the user wrote it.
        whole: the parsed and resolved condition, in which timestamps without a time zone are in
            UTC.
        schema: the schema of the table.
        time_zone: the time zone of the session.

    Raises:
        InvalidInputError: the result of the condition depends on the session's time zone.
    """
    if time_zone in UTC_NAMES:
        return
    about_moments = [part for part in conjuncts(whole) if _has_moments(part, schema)]
    computes = any(isinstance(node, Call | Cast) for part in about_moments for node in walk(part))
    names_none = bool(about_moments) and WITHOUT_ZONE.search(text) is not None
    if computes or names_none or asks_the_clock(text):
        raise InvalidInputError(
            f"cannot use the condition {text!r} in the session's time zone {time_zone}: deltalog "
            "would evaluate it in UTC; compare timestamps only with literals that have a time "
            "zone, such as TIMESTAMP'2024-01-01 09:00:00Z'"
        )


def _has_moments(part: Expression, schema: StructType) -> bool:
    return any(type_of(node, schema) == TIMESTAMP for node in walk(part))


def _used(expression: Expression, schema: StructType) -> frozenset[str]:
    """Return the top-level columns and the metadata columns that an expression reads."""
    is_own = has_own_metadata(schema)
    return frozenset(
        ".".join(path) if path[0] == METADATA and not is_own else path[0]
        for path in columns_of(expression)
    )


def asks_the_clock(condition: object) -> bool:
    """Return whether a condition contains a function of the current time."""
    text = to_sql(condition) if isinstance(condition, Expression) else str(condition)
    return _ASKS_THE_CLOCK.search(text) is not None


def knows_no_zone(part: Expression, schema: StructType, time_zone: str, *, is_text: bool) -> bool:
    """Return whether a part of a condition has the same result in a time zone as in UTC.

    Args:
        part: the part of the condition.
        schema: the schema of the table.
        time_zone: the time zone of the session.
        is_text: whether the part was a SQL string. Such a string may compare a timestamp column
            with a string, which Spark interprets in the session's time zone.
    """
    if time_zone in UTC_NAMES:
        return True
    if any(isinstance(node, Call | Cast) for node in walk(part)):
        return False
    known = with_metadata_columns(schema)
    return not is_text or not any(
        find_field(known, path).type == TIMESTAMP for path in columns_of(part)
    )


# --- files that Spark's own Parquet reader would skip or read incorrectly


_SCHEME: Final = r"^[A-Za-z][A-Za-z0-9+.-]*:/+"
# Matches names of files that Spark's own reader may not find. Spark silently skips files whose
# names start with a dot or an underscore, or end with `._COPYING_`. Spark treats names with
# brackets, `*` or `?` as glob patterns. Hadoop treats a colon as the end of a URI scheme.
_ODD_NAME: Final = r"(?:^|/)[_.][^/]*$|[^A-Za-z0-9._=/-][^/]*$|\._COPYING_$"
_ODD_DIRECTORY: Final = r"[{}\[\]*?\\:\x00-\x1f]"
MOST_FOOTERS: Final = 1000
"""The maximum number of files whose footers the driver reads to check that column names and column
ids select the same columns. If a scan has more files, deltalog's own reader reads all of them."""


def objection_to_place(spark: SparkSession, root: str) -> str | None:
    """Return the reason why Spark cannot read files of a table at `root`; None if Spark can.

    Cost: see `has_file_system`.
    """
    kind = store_kind(root)
    if kind.is_hadoop and has_file_system(spark, root):
        return None
    return f"Spark has no file system for {kind.name!r}"


def objection_to_columns(spec: ReadSpec) -> str | None:
    """Return the reason why Spark cannot read a scan's columns from files; None if Spark can."""
    for path, field in walk_columns(spec.data_columns):
        if field.type == VOID:
            return f"column {'.'.join(path)!r} is of type void, which files do not store"
        if isinstance(field.type, StructType) and not len(field.type):
            return f"column {'.'.join(path)!r} is a struct without fields"
        if any(_is_narrow(change) for change in widening_changes(field)):
            return f"Spark cannot read the integers of column {'.'.join(path)!r} as decimals"
    return None


def _is_narrow(change: TypeChange) -> bool:
    kind = change.to_type
    if not isinstance(kind, PrimitiveType) or not kind.is_decimal:
        return False
    before = change.from_type
    if not isinstance(before, PrimitiveType) or before.primitive.family is not Family.INTEGRAL:
        return False
    # Spark cannot read an integer type as a decimal type with fewer integral digits.
    return kind.precision - kind.scale < before.primitive.decimal_digits


def are_unfit_by_name(locations: StringColumn) -> pa.BooleanArray:
    """Mark files whose names Spark would skip or treat as patterns."""
    paths = compute.replace_substring_regex(locations, _SCHEME, "")
    odd: Any = compute.or_(
        compute.match_substring_regex(paths, _ODD_NAME),
        compute.match_substring_regex(paths, _ODD_DIRECTORY),
    )
    return odd.combine_chunks() if isinstance(odd, pa.ChunkedArray) else odd  # type: ignore[return-value]  # the values are booleans


def are_unfit_by_id(store: Store, spec: ReadSpec, files: pa.Table) -> pa.BooleanArray:
    """Mark files in which names and ids select different columns.

    Spark selects columns by name, unless a setting makes it use ids.

    Args:
        store: the store of the table.
        spec: the read specification of the scan.
        files: the files, with the columns `path` and `size`.

    Cost: reads the footer of every file.
    """
    if files.num_rows > MOST_FOOTERS:
        return pa.array([True] * files.num_rows, pa.bool_())

    def is_unfit(file: Mapping[str, Any]) -> bool:
        reader = open_parquet(
            store, decode_path(file["path"]), size_bytes=file["size"], footer_only=True
        )
        try:
            return not _names_agree(spec.data_columns, reader.arrow_schema)
        finally:
            reader.close()

    rows = files.select(["path", "size"]).to_pylist()
    return pa.array(map_in_pool(is_unfit, rows), pa.bool_())


def _names_agree(wanted: StructType, found: Iterable[pa.Field[Any]]) -> bool:
    """Return whether names and ids select the same columns of a file."""
    fields = list(found)
    by_id = {number: one for one in fields if (number := parquet_field_id(one)) is not None}
    names = [name_key(one.name) for one in fields]
    for field in wanted:
        name = physical_name(field)
        number = field_id(field)
        match = None if number is None else by_id.get(number)
        if match is None:
            agrees = name_key(name) not in names
        else:
            is_only = match.name == name and names.count(name_key(name)) == 1
            agrees = is_only and _types_agree(field.type, match.type)
        if not agrees:
            return False
    return True


def _types_agree(wanted: DataType, found: Any) -> bool:
    match wanted:
        case StructType():
            return not pt.is_struct(found) or _names_agree(wanted, found)
        case ArrayType():
            return not pt.is_list(found) or _types_agree(wanted.element_type, found.value_type)
        case MapType():
            return not pt.is_map(found) or (
                _types_agree(wanted.key_type, found.key_type)
                and _types_agree(wanted.value_type, found.item_type)
            )
        case _:
            return True
