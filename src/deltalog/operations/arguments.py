"""Check and convert arguments of the public API: timestamps, columns, conditions, options.

This module defines the accepted forms of these arguments, and the errors for invalid values.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from functools import reduce
from math import inf, isfinite, isnan
from numbers import Number
from operator import and_, index
from os import PathLike
from typing import TYPE_CHECKING, Any, Final, SupportsIndex

import pyarrow as pa

from deltalog import expressions
from deltalog._util.argument_types import shortened, show_by
from deltalog._util.clock import Moment
from deltalog._util.decimals import num_decimals
from deltalog._util.escaping import name_key
from deltalog._util.readable import epoch_hint
from deltalog._util.similar_names import on_unused_parameter
from deltalog.errors import InvalidInputError, SchemaMismatchError
from deltalog.expressions.sql_session import SqlSession, TextRules
from deltalog.schema import (
    ArrayType,
    DataType,
    Field,
    MapType,
    StructType,
    canonical_path_of,
    find_field,
    from_arrow_type,
    project,
    to_arrow_schema,
)
from deltalog.schema.metadata_columns import CHANGE_COLUMNS, METADATA_COLUMNS, with_metadata_columns
from deltalog.schema.primitives import Family
from deltalog.schema.primitives.moments import is_missing
from deltalog.schema.types import (
    BOOLEAN,
    DATE,
    DOUBLE,
    FLOAT,
    STRING,
    TIMESTAMP,
    TIMESTAMP_NTZ,
    PrimitiveType,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from deltalog.expressions import Expression
    from deltalog.log.snapshot import Snapshot

_LARGEST_FLOAT: Final = 3.4028235677973366e38
"""From here on, a number is infinite as a float of 32 bits."""
_NUMBERS: Final = frozenset({Family.INTEGRAL, Family.FLOATING, Family.DECIMAL})
_FROM_STRINGS: Final = frozenset({Family.MOMENT, Family.FLOATING, Family.DECIMAL})
_MICROSECONDS: Final = frozenset({TIMESTAMP, TIMESTAMP_NTZ})
_EXACT_INTEGERS: Final = {FLOAT: 2**24, DOUBLE: 2**53}
"""Type → the largest integer up to which every integer is a value of it."""
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_LIBRARIES: Final = frozenset({"polars", "pyarrow", "pyspark", "datafusion", "daft"})
_NOT_SQL: Final = "values are SQL, in which a string has quotes; pass Python values as new_values"
_ON_DEMAND: Final = "it is ignored, because file columns are read on demand; do not pass it"
_DEPRECATED: Final = {
    **dict.fromkeys(("without_files", "log_buffer_size", "skip_stats"), _ON_DEMAND),
    "partitions": "use `filters` instead, or `file_pruning_predicate` of a dataset",
    "partition_filters": "use `file_pruning_predicate` instead",
}


def as_whole_number(value: object) -> int | None:
    """Return an int for an int or an integer of NumPy; None for anything else, such as a bool."""
    if isinstance(value, bool) or not isinstance(value, SupportsIndex):
        return None
    return index(value)


def as_timestamp_ms(moment: object) -> int:
    """Return an ISO 8601 string, a datetime or a date as milliseconds since 1970.

    UTC is the default zone. A date means its midnight, as the string of a date does.

    Raises:
        InvalidInputError: the string is not a timestamp.
    """
    if isinstance(moment, date) and not isinstance(moment, datetime):
        moment = moment.isoformat()
    if isinstance(moment, str):
        if (digits := moment.strip().lower().removeprefix("v")).isdecimal():
            raise InvalidInputError(
                f"{moment!r} is not a timestamp: expected ISO 8601, such as 2024-01-31"
                + (epoch_hint(int(digits)) or f"; a version is a number, {int(digits)}")
            )
        word = moment.lower()
        try:
            moment = datetime.fromisoformat(moment)
        except ValueError:
            raise InvalidInputError(
                f"{moment!r} is not a timestamp: expected ISO 8601, such as "
                f"2024-01-31T12:00:00Z or 2024-01-31{_meant_by_moment(word)}"
            ) from None
    if not isinstance(moment, datetime) or is_missing(moment):
        hint = epoch_hint(moment) if isinstance(moment, float) else ""
        if isinstance(moment, Mapping):
            hint = "; options of the store are passed as storage_options=…"
        raise InvalidInputError(
            f"{shortened(moment)} is not a version: expected a number, an ISO 8601 string, a "
            f"datetime or a date{hint}"
        )
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    return (moment - _EPOCH) // timedelta(milliseconds=1)


def _meant_by_moment(word: str) -> str:
    """Return what to write instead of a word that is not a timestamp."""
    match word:
        case "latest" | "newest" | "current" | "head" | "now":
            return "; for the latest version, leave the argument out"
        case "earliest" | "first" | "oldest":
            return "; the first version is 0"
        case "today" | "yesterday":
            return "; datetime.now(UTC) - timedelta(days=1) is a day ago"
        case "append" | "overwrite" | "error" | "ignore":
            return f"; write_deltalake(location, data, mode={word!r}) writes rows"
        case "r" | "w" | "rb" | "wb" | "r+" | "rw" | "read" | "write":
            return "; a table is not opened with a mode: leave it out"
    if not word.replace("-", "_").isidentifier():
        return ""
    return (
        "; a version is a number, and a branch is part of the location, as in "
        "DeltaTable('path@branch')"
    )


def as_bound(bound: int | str | datetime | date) -> int | Moment:
    """Return one bound of a version range: a version number or a timestamp."""
    number = as_whole_number(bound)
    return Moment(as_timestamp_ms(bound)) if number is None else number


def as_one_bound(**bounds: Any) -> int | Moment | None:
    """Return the version or timestamp that is given; None if neither is given.

    Raises:
        InvalidInputError: both are given.
    """
    refuse_both(**bounds)
    return next((as_bound(bound) for bound in bounds.values() if bound is not None), None)


def as_range(
    start: int | Moment | None, end: int | Moment | None, *, newest: int
) -> tuple[int | Moment, int | Moment | None]:
    """Return the bounds of a range of versions. By default it begins at 0 and has no end.

    Args:
        start: the first version, or a timestamp.
        end: the last version, or a timestamp. A version after the newest means the newest, unless
            the range starts after the newest.
        newest: the newest version.
    """
    start = 0 if start is None else start
    if isinstance(end, int) and not (isinstance(start, int) and start > newest):
        end = min(end, newest)
    return start, end


def check_location_first(table_uri: object, schema: object) -> None:
    """Raise if the location and the schema of a new table are in the wrong order.

    Raises:
        InvalidInputError: the location is a schema.
    """
    is_schema = isinstance(table_uri, list | tuple | Mapping)
    is_schema = is_schema or hasattr(table_uri, "__arrow_c_schema__")
    is_schema = is_schema or (isinstance(table_uri, str) and " " in table_uri.strip())
    if is_schema and isinstance(schema, str | PathLike) and " " not in str(schema):
        raise InvalidInputError(
            f"cannot create a table at {_shown(table_uri)}: the location comes before the schema: "
            f"DeltaTable.create({str(schema)!r}, schema)"
        )


def check_key(key: str | Sequence[str], schema: StructType) -> None:
    """Raise if the key of an upsert is a condition, as a merge takes.

    Raises:
        InvalidInputError: a name contains `=`, and is not a column.
    """
    for name in [key] if isinstance(key, str) else key:
        parts = [part.strip() for part in str(name).split(",")]
        if len(parts) > 1 and schema.fields_named(parts[0]) and not schema.fields_named(str(name)):
            raise InvalidInputError(
                f"cannot upsert with the key {name!r}: expected one name, or a list of names, "
                f"such as {parts!r}"
            )
        if "=" in str(name) and name not in schema.names:
            raise InvalidInputError(
                f"cannot upsert with the key {name!r}: expected columns, such as 'id'; "
                f"merge(source, {name!r}) takes a condition"
            )


def as_columns(columns: Sequence[str] | None) -> Sequence[str] | None:
    """Check column names, and return them as a list. A string is one name.

    Raises:
        InvalidInputError: the argument is neither a name nor a list of names.
    """
    if columns is None:
        return None
    if isinstance(columns, Mapping):
        raise InvalidInputError(
            f"cannot take columns={_shown(columns)}: expected a list of names; rename the "
            "columns of the result instead"
        )
    if isinstance(columns, expressions.Expression):
        raise InvalidInputError(
            f"cannot take columns={_shown(columns)}: expected a list of names; pass a condition "
            "on rows as predicate=…"
        )
    names = [columns] if isinstance(columns, str) else list(columns)
    if isinstance(columns, str) and any(sign in columns for sign in "<>="):
        raise InvalidInputError(
            f"cannot take columns={columns!r}: expected a list of names; pass a condition on rows "
            f"as predicate={columns!r}"
        )
    is_list = isinstance(columns, str) and "," in columns
    if is_list or not all(isinstance(name, str) for name in names):
        if any(as_whole_number(name) is not None for name in names):
            raise InvalidInputError(
                f"cannot take columns={_shown(columns)}: expected a list of names, not of "
                f"positions; [schema().names[at] for at in {_shown(names)}] has their names"
            )
        parts = columns.split(",") if isinstance(columns, str) else map(_name_of, names)
        raise InvalidInputError(
            f"cannot take columns={_shown(columns)}: expected a list of names, such as "
            f"{[part.strip() for part in parts]!r}"
        )
    return names


def _shown(columns: object) -> str:
    from deltalog.expressions.render import shown_sql  # noqa: PLC0415  # only for errors

    show_by(expressions.Expression, shown_sql)
    return shortened(columns)


def _name_of(item: object) -> str:
    """Return the name that an item of another type means; `id` as an example of a name."""
    if isinstance(item, str | expressions.Column):
        return item if isinstance(item, str) else item.name
    meta: Any = getattr(item, "meta", None)  # of expressions of Polars
    return str(meta.output_name()) if hasattr(meta, "output_name") else "id"


def as_named(parameters: Mapping[str, object] | None) -> Mapping[str, object]:
    """Check the parameters of a query that has only parameters with names, and return them.

    Raises:
        InvalidInputError: the argument is no mapping.
    """
    if parameters is not None and not isinstance(parameters, Mapping):
        raise InvalidInputError(
            f"parameters: expected a dictionary of values for :name, such as {{'x': 1}} for :x, "
            f"found {shortened(parameters)}; deltalog.sql(query, parameters, t=table) also "
            "takes a list of values for ?"
        )
    return parameters or {}


def as_limit(limit: object) -> int | None:
    """Check a maximum number of rows or files, and return it.

    Raises:
        InvalidInputError: the argument is not a whole number of 0 or more.
    """
    number = as_whole_number(limit)
    if limit is None or (number is not None and number >= 0):
        return number
    raise InvalidInputError(f"cannot take limit={limit!r}: expected a whole number of 0 or more")


def check_number(name: str, value: object, *, least: int = 0) -> None:
    """Raise InvalidInputError unless the value is None or a finite number of at least `least`."""
    if value is None:
        return
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    if not is_number or not isfinite(value) or value < least:  # type: ignore[arg-type, operator]  # `is_number` is true
        raise InvalidInputError(f"{name}: expected a number of {least} or more, found {value!r}")


def as_arrow_schema(
    schema: pa.Schema | None, table: StructType, *, as_large_types: bool
) -> pa.Schema | None:
    """Return the Arrow schema for results; None if the caller requested no types.

    Raises:
        InvalidInputError: `schema` is of another type, or a column does not exist.
    """
    if schema is None:
        return to_arrow_schema(table, as_large_types=True) if as_large_types else None
    if not isinstance(schema, pa.Schema):
        raise InvalidInputError(
            f"cannot take schema={schema!r}: expected a pyarrow.Schema; as_large_types=True "
            "returns large strings, binaries and lists"
        )
    project(table, [name for name in schema.names if name not in METADATA_COLUMNS])
    return schema


def with_dictionaries(schema: pa.Schema | None, table: StructType, options: Any) -> Any:
    """Return the schema with dictionary types for the columns that `options` requests.

    Args:
        schema: the requested types; None means the default types of the table.
        table: schema of the table.
        options: pyarrow's `ParquetReadOptions`.

    Raises:
        InvalidInputError: `options` is of another type, or requests something unsupported.
    """
    if options is None:
        return schema
    wanted = getattr(options, "dictionary_columns", None)
    other = [name for name in ("binary_type", "list_type") if _is_set(options, name)]
    if wanted is None or other:
        raise InvalidInputError(
            f"cannot take parquet_read_options={options!r}: expected pyarrow's ParquetReadOptions "
            "with dictionary_columns and coerce_int96_timestamp_unit only; schema= and "
            "as_large_types= choose other types"
        )
    shown = to_arrow_schema(table) if schema is None else schema
    places = {shown.get_field_index(canonical_path_of(table, (name,))[0]) for name in wanted}
    fields = [
        field.with_type(pa.dictionary(pa.int32(), field.type)) if place in places else field
        for place, field in enumerate(shown)
    ]
    return pa.schema(fields)


def _is_set(options: Any, name: str) -> bool:
    value, default = (getattr(one, name, None) for one in (options, type(options)()))
    return bool(value != default)


def warn_of_deprecated(**given: object) -> None:
    """Warn about arguments that exist only for compatibility with deltalake.

    Args:
        given: the arguments by name; None and False count as not given.
    """
    for name, value in given.items():
        if value is not None and value is not False:
            from deltalog._util.builders import warn_caller  # noqa: PLC0415  # only for warnings

            message = f"{name} is deprecated: {_DEPRECATED[name]}"
            warn_caller(message, DeprecationWarning)


def refuse_both(**options: Any) -> None:
    """Raise InvalidInputError if more than one of the options is given."""
    given = [name for name, value in options.items() if value is not None]
    if len(given) > 1:
        raise InvalidInputError(f"cannot take both {given[0]} and {given[1]}: give one of them")


# --- Conditions and new values for rows


def with_blanks_as_nulls(filters: Any, partition_columns: Sequence[str]) -> Any:
    """Replace `''` by None in filter tuples, because deltalake accepts `''` for a null partition.

    Protocol: Partition Value Serialization (the empty string is null)
    """
    if isinstance(filters, list):
        return [with_blanks_as_nulls(one, partition_columns) for one in filters]
    if isinstance(filters, tuple) and len(filters) == 3 and filters[0] in partition_columns:
        name, operator, value = filters
        return (name, operator, None if isinstance(value, str) and not value else value)
    return filters


def as_condition(
    schema: StructType,
    *conditions: Any,
    session: SqlSession,
    parameters: Sequence[object] | Mapping[str, object] | None = None,
    text_rules: TextRules = TextRules.COLLATIONS,
) -> Expression | None:
    """Return all conditions, joined by AND. They may use the columns of the table and `_metadata`.

    Args:
        schema: schema of the table.
        conditions: SQL strings, expressions, or deltalake's filters; None and an empty list are
            ignored.
        session: the current time and the time zone.
        parameters: values of parameters in SQL strings.
        text_rules: how strings are compared.

    Raises:
        InvalidInputError: parameters are given without a condition. The condition was probably
            forgotten, and the call would affect all rows.
    """
    given = [
        condition
        for condition in conditions
        if condition is not None and not (isinstance(condition, list) and not condition)
    ]
    if parameters and not given:
        raise InvalidInputError(
            f"cannot use parameters={shortened(parameters)}: there is no predicate for them"
        )
    _check_named(parameters, given)
    known = with_metadata_columns(schema)
    for condition in given:
        _check_strings(condition, schema)
    found = [
        expressions.as_expression(condition, known, parameters, session, text_rules=text_rules)
        for condition in given
    ]
    return reduce(and_, found) if found else None


def _check_named(parameters: object, conditions: Sequence[Any]) -> None:
    """Raise for a parameter with a name that no condition has.

    The condition probably lacks a part, or has the parameter in quotes.
    """
    if not isinstance(parameters, Mapping):
        return
    used = {name for one in conditions for name in _parameter_names(one)}
    for name in parameters:
        if name not in used:
            shown = " and ".join(repr(one) for one in conditions)
            advice = on_unused_parameter(name, used, parameters, map(str, conditions))
            raise InvalidInputError(
                f"cannot use the parameter {name!r}: there is no :{name} in {shown}{advice}"
            )


def _check_strings(filters: Any, schema: StructType) -> None:
    """Raise for filters that compare a string column with a list or another compound value."""
    if isinstance(filters, list):
        for one in filters:
            _check_strings(one, schema)
    if not isinstance(filters, tuple) or len(filters) != 3 or not isinstance(filters[0], str):
        return
    name, operator, value = filters
    types = {name_key(field.name): field.type for field in schema}
    if types.get(name_key(name)) != STRING:
        return
    is_list = isinstance(value, list | tuple | set | frozenset)
    takes_list = str(operator).lower().endswith("in")  # or `isin`, for which there is another error
    for one in value if is_list and takes_list else [value]:
        if isinstance(one, Mapping | list | tuple | set | frozenset | bytes | bytearray):
            raise InvalidInputError(
                f"cannot compare the string column {name!r} with {shortened(one)} in the filter "
                f"{shortened(filters)}: expected a string, or a list of strings for 'in'"
            )


_NO_COLUMNS: Final = StructType([])


def as_updates(
    updates: Mapping[str, Any] | None,
    new_values: Mapping[str, object] | None,
    parameters: Sequence[object] | Mapping[str, object] | None,
    schema: StructType = _NO_COLUMNS,
) -> dict[str | tuple[str, ...], object]:
    """Return the new values of an UPDATE: column → expression.

    Exactly one of `updates` and `new_values` must be given.

    Args:
        updates: column → SQL string, expression, number, date or None.
        new_values: column → Python value.
        parameters: values of parameters in SQL strings. The first values of a list are those of
            the `?` in the updates, in their order.
        schema: the table's columns, whose names SQL strings may use.

    Raises:
        InvalidInputError: both or none of `updates` and `new_values` are given, or one is invalid;
            or a number has a fraction that its column cannot store.
    """
    _check_updates(updates, new_values)
    if new_values is not None:
        for name, value in new_values.items():
            if _library_of(value):
                raise InvalidInputError(
                    f"new_values[{name!r}]: expected a Python value, found {_found(value)} as "
                    "updates"
                )
        check_constants(new_values, schema)
        return {name: expressions.lit(value) for name, value in new_values.items()}
    left = list(parameters) if isinstance(parameters, Sequence) else None
    found: dict[str | tuple[str, ...], object] = {}
    for name, value in (updates or {}).items():
        if not isinstance(value, str):
            found[name] = _as_new_value(name, value, schema)
        else:
            given = parameters
            if left is not None:
                count = _num_positional(value)
                given, left = left[:count], left[count:]
            try:
                found[name] = expressions.parse_sql(
                    value, parameters=given, columns=schema.names, quotes_names=True
                )
            except InvalidInputError as error:
                raise InvalidInputError(f"{error}; {_NOT_SQL}") from error
            _check_bare_name(name, found[name], schema)
    return found


def _check_bare_name(name: str, value: object, schema: StructType) -> None:
    """Raise if the SQL of a new value is only a name that no column has, such as `n1`."""
    if not isinstance(value, expressions.Column) or len(value.path) > 1 or not schema.fields:
        return
    from deltalog.expressions.mistakes import hint_for_missing  # noqa: PLC0415  # only for names

    word = value.path[0]
    if name_key(word) == "default" or hint_for_missing(word):
        return
    try:
        find_field(schema, value.path)
    except InvalidInputError as error:
        raise InvalidInputError(
            f"{error}; a string has quotes: {expressions.to_sql(expressions.lit(word))}, and "
            f"new_values={{{name!r}: {word!r}}} passes Python values"
        ) from None


def _as_new_value(name: str, value: object, schema: StructType) -> Expression:
    """Return the expression for a new value that is not a string, and so cannot be SQL.

    Raises:
        InvalidInputError: the value is neither an expression nor a number, date or None; or its
            column cannot store it as it is.
    """
    if isinstance(value, expressions.Expression):
        return value
    is_scalar = isinstance(value, Number | date) or getattr(value, "shape", None) == ()
    if value is None or is_scalar:
        check_constants({name: value}, schema)
        return expressions.lit(value)
    raise InvalidInputError(
        f"updates[{name!r}]: expected SQL such as 'upper(name)', an expression of deltalog, a "
        f"number, a date or None, found {_found(value)}"
    )


def _found(value: object) -> str:
    """Return a value that is no expression of deltalog, and how to pass it."""
    if library := _library_of(value):
        return (
            f"an expression of {library}: write SQL, such as {{'n': 'n + 1'}}, or "
            "{'n': deltalog.col('n') + 1}"
        )
    return f"{shortened(value)}; pass Python values as new_values"


def _library_of(value: object) -> str:
    """Return the library whose expression a value is; empty if it is none."""
    if type(value).__name__ not in {"Expr", "Expression", "Column"}:
        return ""
    library = type(value).__module__.partition(".")[0].lstrip("_")
    return library if library in _LIBRARIES else ""


def _check_updates(updates: object, new_values: object) -> None:
    """Raise unless exactly one argument is given, and it is a mapping."""
    if isinstance(updates, Mapping) and isinstance(new_values, str | expressions.Expression):
        raise InvalidInputError(
            f"cannot update with new_values={shortened(new_values)}: expected a dictionary of "
            "Python "
            "values; pass a condition as predicate=…"
        )
    if isinstance(updates, str):
        raise InvalidInputError(
            f"cannot update with {shortened(updates)}: expected a dictionary of SQL, such as "
            "{'name': \"upper(name)\"}; deltalog.sql takes an UPDATE statement"
        )
    if (updates is None) is (new_values is None):
        found = "neither" if updates is None else "both"
        raise InvalidInputError(
            "expected either updates, a dictionary of SQL, or new_values, a dictionary of Python "
            f"values, found {found}"
        )
    for given in (updates, new_values):
        if given is not None and not isinstance(given, Mapping):
            raise InvalidInputError(
                f"cannot update with {shortened(given)}: expected a dictionary, column name "
                "to value"
            )


def check_constants(values: Mapping[Any, object], schema: StructType) -> None:
    """Raise for a Python value that its column cannot store as it is.

    SQL casts such values, as in Spark; but a Python value is stored as it is, or refused.

    Args:
        values: column → new value. SQL of a merge, and expressions, are not checked.
        schema: the table's columns.

    Raises:
        InvalidInputError: one is such a value.
    """
    for name, value in values.items():
        kind = _type_at(schema, name)
        advice = next(filter(None, (_advice_for(*part) for part in _parts(value, kind))), None)
        if advice is None:
            continue
        if isinstance(value, int | float | Decimal) and isfinite(value):
            advice += f", or cast it with SQL: updates={{{name!r}: 'cast({value} as {kind})'}}"
        raise InvalidInputError(
            f"cannot update {name!r} with {shortened(value)}: the column is {kind}, which cannot "
            f"store it; {advice}"
        )


def _type_at(schema: StructType, name: Any) -> DataType | None:
    """Return the type of an assigned column or field; None if the name has to be resolved."""
    if isinstance(name, str) and (column := schema.fields_named(name)[:1]):
        return column[0].type
    try:
        path = name if isinstance(name, tuple) else expressions.col(name).path
        return find_field(schema, path).type
    except InvalidInputError:
        return None  # such as a name after an alias


def _parts(value: object, kind: DataType | None) -> Iterator[tuple[object, PrimitiveType]]:
    """Yield the values in a value, at any depth, with their types."""
    match value, kind:
        case (list() | tuple(), ArrayType()):
            for item in value:
                yield from _parts(item, kind.element_type)
        case (dict(), StructType()):
            for name, item in value.items():
                for field in kind.fields_named(str(name))[:1]:
                    yield from _parts(item, field.type)
        case (dict(), MapType()):
            for name, item in value.items():
                yield from _parts(name, kind.key_type)
                yield from _parts(item, kind.value_type)
        case (_, PrimitiveType()):
            yield value, kind


def _advice_for(value: object, kind: PrimitiveType) -> str | None:
    """Return what to pass instead of a value that a column cannot store; None if it can."""
    family = kind.primitive.family
    match value:
        case str():
            return _change_of_string(value, kind) if family in _FROM_STRINGS else None
        case datetime():
            return _advice_for_datetime(value, kind)
        case bool() if family in _NUMBERS:
            return f"pass {int(value)}"
        case bool() | None:
            return None
        case int() | float() | Decimal() if kind == BOOLEAN:
            return "pass True or False"
        case int() | float() | Decimal() if family is Family.MOMENT:
            return "pass a date or datetime"
        case int():
            most = _EXACT_INTEGERS.get(kind, inf)
            return (
                f"pass float({value}) to round it, as above {most} some integers are no {kind}"
                if abs(value) > most
                else None
            )
        case float() | Decimal():
            return _advice_for_fraction(value, kind)
    return None


def _advice_for_fraction(value: float | Decimal, kind: PrimitiveType) -> str | None:
    family = kind.primitive.family
    if family is Family.INTEGRAL:
        return None if isfinite(value) and value % 1 == 0 else "pass a whole number"
    if family is Family.DECIMAL:
        if not isfinite(value):
            return "pass None for a missing value"
        digits = num_decimals(Decimal(str(value)))
        return f"round it to {kind.scale} digits" if digits > kind.scale else None
    if isinstance(value, float) and kind == STRING and isnan(value):
        return "pass None for a missing value"
    if isinstance(value, float) and kind == FLOAT and _LARGEST_FLOAT < abs(value) < inf:
        return "pass a smaller number"
    return None


def _advice_for_datetime(value: datetime, kind: PrimitiveType) -> str | None:
    if kind == DATE:
        return None if value.time() == time() else "pass value.date()"
    if value.tzinfo is not None and kind.primitive.has_zone is False:
        return "pass a datetime without a time zone"
    if getattr(value, "nanosecond", 0) and kind in _MICROSECONDS:  # of pandas
        return "it has nanoseconds, so pass value.floor('us')"
    return None


def _change_of_string(value: str, kind: PrimitiveType) -> str | None:
    """Return what a cast of a string would change; None if nothing, or if it will fail."""
    # Importing casts is slow, and few strings are converted.
    from deltalog.data.write.fit import Fit  # noqa: PLC0415

    fit = Fit(
        pa.schema([("value", pa.string())]),
        StructType([Field("value", kind)]),
        time_zone="UTC",
        casts=True,
    )
    try:
        fit.apply(pa.record_batch({"value": [value]}))
    except SchemaMismatchError as error:
        _, found, problem = str(error).partition(" without changing them: ")
        return problem if found else None
    return None


def as_constraints(given: Any, columns: Sequence[str]) -> Any:
    """Return constraints (name → SQL) with column names in backticks instead of double quotes.

    In Spark SQL, double quotes enclose a string, not a name.

    Raises:
        InvalidInputError: a constraint tests strings alone, one of which is meant as a column.
    """
    if not isinstance(given, Mapping):
        return given  # the caller raises an error for other types
    from deltalog.expressions.filters import check_quoted_names  # noqa: PLC0415  # rarely needed
    from deltalog.expressions.sql import parse_sql, with_backticks  # noqa: PLC0415  # as above

    found = {name: with_backticks(text, columns) for name, text in given.items()}
    for text in found.values():
        try:
            parsed = parse_sql(text)
        except InvalidInputError:
            continue  # the caller raises it, and names the constraint
        check_quoted_names(parsed, text, columns)
    return found


def left_for_predicate(parameters: Any, predicate: object, updates: Any) -> Any:
    """Return the parameters for an update's predicate: those that the new values do not use.

    The predicate may have parameters with the same names.
    """
    if isinstance(parameters, Mapping):
        used = {name for one in (updates or {}).values() for name in _parameter_names(one)}
        used -= _parameter_names(predicate)
        return {name: value for name, value in parameters.items() if name not in used}
    given = [one for one in (updates or {}).values() if isinstance(one, str)]
    return parameters and parameters[sum(map(_num_positional, given)) :]


def _parameter_names(sql: object) -> set[str]:
    from deltalog.expressions.sql import parameter_names  # noqa: PLC0415  # few conditions need it

    return parameter_names(sql)


def _num_positional(sql: str) -> int:
    from deltalog.expressions.sql import num_positional  # noqa: PLC0415  # only updates need it

    return num_positional(sql)


def as_changes_condition(
    schema: StructType, predicate: Any, *, session: SqlSession
) -> Expression | None:
    """Return a condition over the columns of the table and of the change data feed."""
    if predicate is None:
        return None
    fields = [Field(name, from_arrow_type(kind)) for name, kind in CHANGE_COLUMNS.items()]
    return expressions.as_expression(predicate, StructType([*schema, *fields]), session=session)


def for_each_version(
    predicate: Any, *, changes: bool
) -> Callable[[Snapshot], Expression | None] | None:
    """Return a function that resolves a predicate for the schema of a given version.

    Args:
        predicate: the condition; if None, the result is None.
        changes: whether the condition may name columns of the change data feed.
    """
    if predicate is None:
        return None
    find = as_changes_condition if changes else as_condition

    def condition(snapshot: Snapshot) -> Expression | None:
        schema, session = snapshot.configuration.schema, snapshot.context.session
        return find(schema, predicate, session=session)

    return condition


def check_given(predicate: object) -> None:
    """Raise if the predicate of a DELETE or UPDATE is an empty list, which would match all rows."""
    if isinstance(predicate, list | tuple) and not predicate:
        raise InvalidInputError(
            f"cannot change rows with the predicate {predicate!r}: an empty list would match all "
            "rows; to change all rows, omit the predicate"
        )
