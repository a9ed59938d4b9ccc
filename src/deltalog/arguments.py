"""What callers hand to the facade: locations, moments, options.

Owns the forms that people write them in, and the errors for those that mean nothing here.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from difflib import get_close_matches
from functools import reduce
from math import isfinite
from operator import and_
from os import PathLike
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa

from deltalog.errors import DeltaError, InvalidInputError
from deltalog.expressions import Expression, as_expression, lit, parse_sql
from deltalog.log.names import LogFileKind, parse_log_name
from deltalog.paths import canonical_path, decode_location, is_absolute, parse_table_uri
from deltalog.scan.changes import CHANGE_COLUMNS, Moment
from deltalog.scan.task import METADATA_COLUMNS, with_metadata_columns
from deltalog.schema import Field, StructType, from_arrow_type, project, to_arrow_schema
from deltalog.schema.types import STRING
from deltalog.sql_session import SqlSession
from deltalog.storage import open_store

if TYPE_CHECKING:
    from pathlib import PurePath

    from deltalog.storage.fsspec_store import StorageOptions
    from deltalog.storage.store import Store

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_GONE: Final = {
    "files": "file_uris()",
    "load_version": "load_as_version()",
    "load_with_datetime": "load_as_version()",
    "pyarrow_schema": "schema().to_arrow()",
    "files_by_partitions": "file_uris(partition_filters)",
    "table_config": "properties; deltalog reads file columns on demand, there is nothing to set",
}
# What deltalake's tables have and these do not have yet: no other name is meant.
_WRITING: Final = {"create_write_transaction"}
_BEGINNINGS: Final = {
    LogFileKind.COMMIT,
    LogFileKind.CHECKPOINT,
    LogFileKind.CHECKPOINT_PART,
    LogFileKind.CHECKPOINT_V2,
}


def open_table_store(
    table_uri: str | PurePath | Store,
    storage_options: StorageOptions | None,
    filesystem: Any,
) -> tuple[Store, int | datetime | None]:
    """The store of a table, and the version or moment that its URI names.

    Escapes of a `file:` URL are decoded: `file:///a%20b` is the directory `/a b`.
    """
    if not (storage_options is None or isinstance(storage_options, Mapping)) and not callable(
        storage_options
    ):
        raise InvalidInputError(
            "cannot take storage_options: expected a mapping, or a callable that gives one, found "
            f"a {type(storage_options).__name__}"  # its value may be a secret
        )
    if not isinstance(table_uri, str):
        return open_store(table_uri, storage_options, filesystem=filesystem), None
    # Before the decoding: `%40v3` is part of a name, and `@v3` is a version.
    location = parse_table_uri(table_uri)
    whole, bare = (
        decode_location(text) if filesystem is None else text for text in (table_uri, location.uri)
    )
    store = open_store(whole, storage_options, filesystem=filesystem)
    if location.uri == table_uri or _has_log(store):
        return store, None
    store = open_store(bare, storage_options, filesystem=filesystem)
    if location.version is not None:
        return store, location.version
    return store, datetime.fromtimestamp((location.timestamp_ms or 0) / 1000, UTC)


def check_elsewhere(target: object, root: str, table_root: str) -> None:
    """Refuse a location that is a table's, or lies below it, where its vacuum comes."""
    is_location = isinstance(target, str | PathLike)  # roots of stores need not be unique
    if is_location and not is_absolute(canonical_path(f"{root.rstrip('/')}/_", table_root)):
        raise InvalidInputError(
            f"cannot clone {table_root} to {root}: expected a place outside of the table, whose "
            "vacuum would delete what it does not know"
        )


def has_table(store: Store) -> bool:
    """Whether a log begins here: a commit or a checkpoint, readable or not.

    Cost: one listing, which ends at the first such file.
    """
    found = map(parse_log_name, store.list_from("_delta_log", ""))
    return any(file is not None and file.kind in _BEGINNINGS for file in found)


def _has_log(store: Store) -> bool:
    return next(iter(store.list_from("_delta_log", "")), None) is not None


@contextmanager
def naming(table: str) -> Iterator[None]:
    """Errors of this block name the table, be it in a note."""
    try:
        yield
    except DeltaError as error:
        if table not in "".join([str(error), *getattr(error, "__notes__", ())]):
            error.add_note(f"while opening {table}")
        raise


def as_timestamp_ms(moment: object) -> int:
    """Milliseconds since 1970 of an ISO 8601 text or a datetime; without a zone: UTC.

    Raises:
        InvalidInputError: the text is no moment.
    """
    if isinstance(moment, str):
        try:
            moment = datetime.fromisoformat(moment)
        except ValueError:
            raise InvalidInputError(
                f"cannot take {moment!r} for a moment: expected ISO 8601, such as "
                "2024-01-31T12:00:00Z or 2024-01-31"
            ) from None
    if not isinstance(moment, datetime):
        raise InvalidInputError(
            f"cannot take {moment!r} for a version: expected a number, an ISO 8601 text or a "
            "datetime"
        )
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    return (moment - _EPOCH) // timedelta(milliseconds=1)


def with_blanks_as_nulls(filters: Any, partition_columns: Sequence[str]) -> Any:
    """Filter tuples with None where deltalake's users write `''` for a null partition value.

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
) -> Expression | None:
    """All conditions that are given as one, over a table's columns and those of `_metadata`.

    Args:
        schema: of the table.
        conditions: SQL, expressions, or deltalake's filters; None and an empty list are none.
        session: the current time and the time zone.
        parameters: of SQL.

    Raises:
        InvalidInputError: parameters without a condition: it was forgotten, and all rows are meant
            without one.
    """
    given = [
        condition
        for condition in conditions
        if condition is not None and not (isinstance(condition, list) and not condition)
    ]
    if parameters and not given:
        raise InvalidInputError(
            f"cannot use parameters={parameters!r}: there is no predicate that they are for"
        )
    known = with_metadata_columns(schema)
    for condition in given:
        _check_texts(condition, schema)
    found = [as_expression(condition, known, parameters, session) for condition in given]
    return reduce(and_, found) if found else None


def _check_texts(filters: Any, schema: StructType) -> None:
    """Refuse filters of a text column by a value that is no single one: its `repr` is no text."""
    if isinstance(filters, list):
        for one in filters:
            _check_texts(one, schema)
    if not isinstance(filters, tuple) or len(filters) != 3 or not isinstance(filters[0], str):
        return
    name, operator, value = filters
    types = {field.name.lower(): field.type for field in schema}
    if types.get(name.lower()) != STRING:
        return
    is_list = isinstance(value, list | tuple | set | frozenset)
    for one in value if is_list and "in" in str(operator).lower().split() else [value]:
        if isinstance(one, Mapping | list | tuple | set | frozenset | bytes | bytearray):
            raise InvalidInputError(
                f"cannot compare the text column {name!r} with {one!r} in the filter {filters!r}: "
                "expected a text, or a list of texts for 'in'"
            )


def as_updates(
    updates: Mapping[str, str | Expression] | None,
    new_values: Mapping[str, object] | None,
    parameters: Sequence[object] | Mapping[str, object] | None,
) -> dict[str | tuple[str, ...], object]:
    """Column → expression, from either of the two arguments."""
    if (updates is None) is (new_values is None):
        raise InvalidInputError("an update takes either updates (SQL) or new_values (Python)")
    for given in (updates, new_values):
        if given is not None and not isinstance(given, Mapping):
            raise InvalidInputError(
                f"cannot update with {given!r}: expected a dictionary, column name to value"
            )
    if new_values is not None:
        return {name: lit(value) for name, value in new_values.items()}
    named = parameters if hasattr(parameters, "keys") else None
    found: dict[str | tuple[str, ...], object] = {}
    for name, value in (updates or {}).items():
        if not isinstance(value, str | Expression):
            raise InvalidInputError(
                f"updates[{name!r}]: expected SQL or an expression, found {value!r}; Python values "
                "go into new_values"
            )
        found[name] = parse_sql(value, parameters=named) if isinstance(value, str) else value
    return found


def left_for_predicate(parameters: Any, predicate: object, updates: object) -> Any:
    """Return the parameters that the predicate of an update takes; None if all are for values."""
    return None if predicate is None and updates and isinstance(parameters, Mapping) else parameters


def as_changes_condition(
    schema: StructType, predicate: Any, *, session: SqlSession
) -> Expression | None:
    """Return a condition over the columns of a table and those of its change data feed."""
    if predicate is None:
        return None
    fields = [Field(name, from_arrow_type(kind)) for name, kind in CHANGE_COLUMNS.items()]
    return as_expression(predicate, StructType([*schema, *fields]), session=session)


def check_given(predicate: object) -> None:
    """Refuse an empty list of filters where rows change: it would mean all of them."""
    if isinstance(predicate, list | tuple) and not predicate:
        raise InvalidInputError(
            f"cannot change the rows of {predicate!r}: an empty list would mean all of them; leave "
            "the predicate out if that is meant"
        )


def as_bound(bound: int | str | datetime) -> int | Moment:
    """A bound of a range of versions: a version, or a moment."""
    if isinstance(bound, int) and not isinstance(bound, bool):
        return bound
    return Moment(as_timestamp_ms(bound))


def as_one_bound(**bounds: Any) -> int | Moment | None:
    """Return the bound that is given of a version and a moment; InvalidInputError for both."""
    refuse_both(**bounds)
    return next((as_bound(bound) for bound in bounds.values() if bound is not None), None)


def explain_missing(name: str, names: Sequence[str]) -> str:
    """Why a table has no such attribute, and what to use instead."""
    if name in _GONE:
        return f"DeltaTable.{name} is gone: use {_GONE[name]}"
    if name in _WRITING:
        return f"DeltaTable has no {name!r} yet: it comes with a later version"
    close = [] if name.startswith("_") else get_close_matches(name, names, n=1)
    hint = f": did you mean {close[0]!r}?" if close else ""
    return f"DeltaTable has no attribute {name!r}{hint}"


def as_columns(columns: Sequence[str] | None) -> Sequence[str] | None:
    """The names of columns; InvalidInputError for a bare text, whose letters are not meant."""
    if columns is None:
        return None
    if isinstance(columns, Expression):
        raise InvalidInputError(
            f"cannot take columns={columns!r}: expected a list of names; a condition on rows is "
            "predicate=…"
        )
    names = [columns] if isinstance(columns, str) else list(columns)
    if isinstance(columns, str) or not all(isinstance(name, str) for name in names):
        raise InvalidInputError(
            f"cannot take columns={columns!r}: expected a list of names, such as "
            f"{[str(name) for name in names]!r}"
        )
    return names


def as_limit(limit: object) -> int | None:
    """How many at most; InvalidInputError for what is no number of things."""
    if limit is None or (isinstance(limit, int) and not isinstance(limit, bool) and limit >= 0):
        return limit
    raise InvalidInputError(f"cannot take limit={limit!r}: expected a whole number of 0 or more")


def check_number(name: str, value: object, *, least: int = 0) -> None:
    """Raise InvalidInputError for what is no finite number of at least that much; None is none."""
    if value is None:
        return
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    if not is_number or not isfinite(value) or value < least:  # type: ignore[arg-type, operator]  # a number by now
        raise InvalidInputError(f"{name}: expected a number of {least} or more, found {value!r}")


def as_arrow_schema(
    schema: pa.Schema | None, table: StructType, *, as_large_types: bool
) -> pa.Schema | None:
    """The Arrow types that are asked for; InvalidInputError for columns that are not there."""
    if schema is None:
        return to_arrow_schema(table, as_large_types=True) if as_large_types else None
    if not isinstance(schema, pa.Schema):
        raise InvalidInputError(
            f"cannot take schema={schema!r}: expected a pyarrow.Schema; as_large_types=True gives "
            "large strings, binaries and lists"
        )
    project(table, [name for name in schema.names if name not in METADATA_COLUMNS])
    return schema


def refuse(**options: Any) -> None:
    """Raise InvalidInputError for options that belong elsewhere, if one is given."""
    for name, value in options.items():
        if value is not None:
            raise InvalidInputError(
                f"cannot take {name}={value!r} here: a file system belongs to the DeltaTable "
                "(filesystem=, storage_options=), and files are read as the table's schema says"
            )


def refuse_both(**options: Any) -> None:
    """Raise InvalidInputError if more than one of these options is given."""
    given = [name for name, value in options.items() if value is not None]
    if len(given) > 1:
        raise InvalidInputError(f"cannot take both {given[0]} and {given[1]}: give one of them")
