"""Opening data of any supported type as a stream of Arrow batches.

This module defines the types of data that a write accepts. If possible, data is streamed, so that
it is never completely in memory. `enforce` matches the columns with the table.
"""

from __future__ import annotations

import itertools
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from enum import Enum
from inspect import GEN_CLOSED, getgeneratorstate
from io import IOBase
from pathlib import PurePath
from types import GeneratorType
from typing import TYPE_CHECKING, Any, Final, Protocol, TypeGuard
from weakref import WeakSet

import pyarrow as pa

from deltalog._util.argument_types import kind_of, shortened, with_article
from deltalog._util.lazy_names import higher
from deltalog.data.write.polars_frames import (
    frame_kind,
    native_frame,
    open_frame,
    open_lazy_frame,
)
from deltalog.data.write.python_rows import (
    as_mapping,
    check_moments,
    has_uuids,
    in_own_zone,
    table_of_columns,
    table_of_rows,
    too_large,
    with_nanoseconds,
    with_uuids_as_text,
)
from deltalog.errors import InvalidInputError, SchemaMismatchError
from deltalog.schema.codec import TOO_DEEP

if TYPE_CHECKING:
    import pandas as pd
    import polars as pl

_ACCEPTED = (
    "a pyarrow Table, RecordBatch, RecordBatchReader or Dataset, a pandas or Polars DataFrame, a "
    "Polars LazyFrame, a DuckDB relation, any object with __arrow_c_stream__ or "
    "__arrow_c_array__, a dict of columns, a list of dicts, dataclasses or pydantic models, or an "
    "iterable of record batches"
)


class Rereadable:
    """Base class of rows that can be read several times with the same result."""

    __slots__ = ()


class OpenableRows(ABC):
    """Base class of rows that are opened as a reader, at least once."""

    __slots__ = ()

    @abstractmethod
    def opened(self) -> pa.RecordBatchReader:
        """Return the rows as a reader that raises errors of the source unchanged."""


class RereadableRows(OpenableRows, Rereadable):
    """Base class of rows that can be opened several times in this process."""

    __slots__ = ()

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        """Return the rows as a stream of Arrow's C interface."""
        reader: Any = self.opened()
        stream: object = reader.__arrow_c_stream__(requested_schema)
        return stream


_REREADABLE = (pa.Table, pa.RecordBatch, list, tuple, dict, Rereadable)


def open_batches(data: object, *, is_new: bool = False) -> pa.RecordBatchReader:
    """Return a reader of the rows of `data`.

    Args:
        data: a pyarrow Table, RecordBatch, RecordBatchReader or Dataset, a pandas or Polars
            DataFrame, a Polars LazyFrame, a DuckDB relation, any object of Arrow's C interfaces, a
            dict of columns (lists or arrays), a list of dicts (a missing key is NULL), of
            dataclasses or of pydantic models, or an iterable of batches or tables of one schema.
            If there are neither rows nor a schema, the reader has no columns. The index of a pandas
            DataFrame becomes a column (without a name: `__index_level_0__`), unless it is a range
            without a name.
        is_new: whether `data` is a reader that nobody can have read before.

    Raises:
        InvalidInputError: the data is of another type, or values of a column have no common type.
        SchemaMismatchError: the batches have different schemas (raised on reading).

    Cost: reads the first batch of an iterable immediately; converts a list of dicts completely.
    """
    try:
        reader = _without_views(_opened(_native(data)))
    except RecursionError as error:
        raise InvalidInputError(f"cannot read the rows: {TOO_DEEP}") from error
    if is_new or not isinstance(data, pa.RecordBatchReader) or data in _UNREAD:
        _UNREAD.add(reader)
    return reader


def is_of_deltalake(data: object) -> bool:
    """Return whether an object is a table of the package deltalake."""
    kind = type(data)
    return kind.__name__ == "DeltaTable" and kind.__module__.partition(".")[0] == "deltalake"


def _native(data: Any) -> Any:
    """Return the object that has the rows of a wrapper, or of a table of deltalake."""
    return higher("from_deltalake")(data) if is_of_deltalake(data) else native_frame(data)


def _opened(data: Any) -> pa.RecordBatchReader:
    if (opened := _opened_frame(data)) is not None:
        return opened
    if isinstance(data, OpenableRows):
        return data.opened()
    if isinstance(data, pa.RecordBatchReader):
        # Use the reader itself, because Arrow's C interface would not preserve the type of an error
        # of the source.
        return _read_once(data)
    if hasattr(data, "__arrow_c_stream__"):
        return _stream_of(data)
    if hasattr(data, "__arrow_c_array__"):
        batch = _batch_of(data)
        return pa.RecordBatchReader.from_batches(batch.schema, [batch])
    for method, then in (("scanner", "to_reader"), ("to_reader", None)):
        # `data` is a Dataset or a Scanner of pyarrow. Do not use `isinstance`, because importing
        # pyarrow.dataset is slow.
        if hasattr(data, method) and hasattr(data, "to_batches"):
            found: Any = getattr(data, method)()
            reader: pa.RecordBatchReader = found if then is None else getattr(found, then)()
            return reader
    if isinstance(data, Mapping):
        return table_of_columns(data).to_reader()
    if isinstance(data, Iterable) and not isinstance(data, _NO_ROWS) and not _is_distributed(data):
        return _read_items(data)
    raise _unknown(data)


_NO_ROWS: Final = (str, bytes, bytearray, set, frozenset, range, IOBase)
"""Iterables whose items are no rows. Without items, they would look like no rows."""
_ENDED: Final[WeakSet[pa.RecordBatchReader]] = WeakSet()
"""The readers that were read to their end here."""
_UNREAD: Final[WeakSet[pa.RecordBatchReader]] = WeakSet()
"""The readers that were made here of other data, so that nobody else can have read them."""


def _read_once(reader: pa.RecordBatchReader) -> pa.RecordBatchReader:
    """Return a reader of the same rows; raise if an earlier call has read them.

    A reader that others have read looks like one without rows: see `warn_if_read_before`.
    """
    if reader in _ENDED:
        raise InvalidInputError(
            "cannot read the rows of the RecordBatchReader: an earlier call has read it, so it has "
            "no rows left; make a new reader, or a table of it by read_all()"
        )

    def batches() -> Iterator[pa.RecordBatch]:
        yield from reader
        _ENDED.add(reader)

    return pa.RecordBatchReader.from_batches(reader.schema, batches())


def _check_not_ended(data: object) -> None:
    """Raise for a generator that has ended, which looks like one without rows."""
    if isinstance(data, GeneratorType) and getgeneratorstate(data) == GEN_CLOSED:
        raise InvalidInputError(
            f"cannot read the rows of the generator {data.__name__}: it has ended, so it has no "
            "rows left; call its function again"
        )


def may_be_read_before(data: object) -> bool:
    """Whether data without rows may have had some: an iterator. Generators tell their state."""
    return isinstance(data, Iterator) and not isinstance(data, GeneratorType)


def warn_of_no_items(data: object) -> None:
    """Warn that an iterator had no items; see `may_be_read_before`."""
    from deltalog._util.builders import warn_caller  # noqa: PLC0415  # only for warnings

    warn_caller(
        f"the {type(data).__name__} has no items, so no rows are written; an iterator that was "
        "read before has none left: make a new one, or pass a list"
    )


def warn_if_read_before(data: object, num_rows: int) -> None:
    """Warn about a reader without rows that the caller may have read before.

    Args:
        data: the caller's rows, in any form.
        num_rows: the number of rows that were read now.
    """
    if num_rows or not isinstance(data, pa.RecordBatchReader) or data in _UNREAD:
        return
    from deltalog._util.builders import warn_caller  # noqa: PLC0415  # only for warnings

    warn_caller(
        "the RecordBatchReader has no rows; one that was read before has none left: make a new "
        "one, or pass a table, as returned by read_all()"
    )


def _without_views(reader: pa.RecordBatchReader) -> pa.RecordBatchReader:
    """Convert string views, which Polars uses, because few of Arrow's functions support them."""
    fields = [field.with_type(_without_view(field.type)) for field in reader.schema]
    schema = pa.schema(fields).with_metadata(reader.schema.metadata)
    if schema.equals(reader.schema):
        return reader
    return pa.RecordBatchReader.from_batches(schema, (batch.cast(schema) for batch in reader))


_PLAIN: Final = {pa.string_view(): pa.large_string(), pa.binary_view(): pa.large_binary()}


def _without_view(kind: Any) -> Any:
    """Return a type with strings instead of string views, at any depth."""
    if kind in _PLAIN:
        return _PLAIN[kind]
    if isinstance(kind, pa.DictionaryType):
        return pa.dictionary(kind.index_type, _without_view(kind.value_type), kind.ordered)
    if isinstance(kind, pa.BaseExtensionType):
        return kind
    parts = [kind.field(number) for number in range(kind.num_fields)]
    plain = [part.with_type(_without_view(part.type)) for part in parts]
    match kind:
        case pa.StructType():
            return pa.struct(plain)
        case pa.MapType():
            key, item = plain[0].type.fields
            return pa.map_(key, item)
        case pa.FixedSizeListType():
            return pa.list_(plain[0], kind.list_size)
        case pa.ListType():
            return pa.list_(plain[0])
        case pa.LargeListType():
            return pa.large_list(plain[0])
        case _:
            return kind


def is_rereadable(data: object) -> bool:
    """Whether `open_batches` can be called again for the same rows.

    Returns False for unknown types.
    """
    data = _native(data)
    if isinstance(data, _REREADABLE) or _is_pandas(data):
        return True
    if isinstance(data, pa.RecordBatchReader | Iterator):
        return False
    kind = type(data)
    return (
        hasattr(data, "scanner")
        or hasattr(data, "__arrow_c_array__")
        or (kind.__module__.startswith(("polars.", "pyspark.")) and kind.__name__ == "DataFrame")
        or kind.__name__ == "DuckDBPyRelation"
    )


def may_lack_columns(data: object) -> bool:
    """Whether data without columns means no rows.

    An empty list means no rows, and engines such as Ray forget the columns of empty results. Other
    data may have been read before, or lost its columns.
    """
    return isinstance(data, list | tuple | Rereadable)


def _opened_frame(data: Any) -> pa.RecordBatchReader | None:
    if _is_pandas(data):
        return _table_of_pandas(data).to_reader()
    match frame_kind(data):
        case "DataFrame":
            return open_frame(data)
        case "LazyFrame":
            return open_lazy_frame(data)
    return None


def _one_column(data: object) -> InvalidInputError:
    return InvalidInputError(
        f"cannot write the data, {kind_of(data)}: it is one column, not a table; "
        "make a dataframe of it, which names the column"
    )


def _batch_of(data: Any) -> pa.RecordBatch:
    try:
        return pa.record_batch(data)
    except pa.ArrowInvalid as error:
        if "non-struct" not in str(error):
            raise
        raise _one_column(data) from None


def _stream_of(data: Any) -> pa.RecordBatchReader:
    try:
        if type(data).__name__ == "DuckDBPyRelation":
            _check_duckdb_types(data)
        return pa.RecordBatchReader.from_stream(data)
    except pa.ArrowInvalid as error:
        if "non-struct" not in str(error):
            raise
        raise _one_column(data) from None
    except Exception as error:
        advice = _OF_CONNECTIONS.get(type(error).__name__)
        if advice is None:
            raise
        raise InvalidInputError(
            f"cannot write the data, {kind_of(data)}: {error}{advice}"
        ) from error


_OF_CONNECTIONS: Final = {
    "ConnectionException": "; keep the connection open until the rows are written",
    "ResourceInUseException": "",
}
"""Exception of DuckDB about a connection → the advice that its message lacks."""


def _check_duckdb_types(relation: Any) -> None:
    """Raise for a type of DuckDB whose bytes nothing but DuckDB can read, and Arrow calls binary.

    Raises:
        InvalidInputError: a column has such a type.
    """
    for name, kind in zip(relation.columns, relation.types, strict=True):
        if str(kind).rstrip("[]") in _DUCKDB_BYTES:
            raise InvalidInputError(
                f"cannot write the column {name!r}, a {kind} of DuckDB: only DuckDB can read its "
                f"bytes; cast it first, as in CAST({name} AS VARCHAR)"
            )


_DUCKDB_BYTES: Final = frozenset({"BIT", "BIGNUM", "VARINT"})


def _is_pandas(data: object) -> TypeGuard[Any]:
    kind = type(data)
    return kind.__module__.partition(".")[0] == "pandas" and kind.__name__ == "DataFrame"


def _has_keys(index: Any) -> bool:
    """Whether a pandas index contains more than row numbers.

    The keys of `groupby` and `pivot` exist only in the index. deltalake also writes them, but it
    does not write a range with a name.
    """
    return type(index).__name__ != "RangeIndex" or index.name is not None


def _is_column(frame: Any) -> bool:
    """Whether the index repeats a column, as after `set_index("a", drop=False)`."""
    index = frame.index
    return index.name in frame.columns and index.equals(frame.set_index(index.name).index)


def _read_items(items: Iterable[Any]) -> pa.RecordBatchReader:
    is_row = hasattr(type(items), "model_fields") or isinstance(items, pa.Schema)
    if is_row or hasattr(items, "ndim") or type(items).__name__.endswith("GroupBy"):
        raise _unknown(items)  # an error about its items would not name it
    _check_not_ended(items)
    iterator = iter(items)
    first = next(iterator, None)
    if first is None:
        return pa.RecordBatchReader.from_batches(pa.schema([]), [])
    rest = itertools.chain([first], iterator)
    if as_mapping(first) is not None:
        return table_of_rows(items if isinstance(items, Sequence) else list(rest)).to_reader()
    batches = _batches(rest)
    head = next(batches, None)
    if head is None:
        # A table without rows still has a schema.
        return pa.RecordBatchReader.from_batches(_schema_of(first), [])
    return pa.RecordBatchReader.from_batches(
        head.schema, _same_schema(itertools.chain([head], batches), head.schema)
    )


def _batches(items: Iterable[Any]) -> Iterator[pa.RecordBatch]:
    for item in items:
        if isinstance(item, pa.RecordBatch):
            yield item
        elif (
            isinstance(item, pa.Table)
            or hasattr(item, "__arrow_c_stream__")
            or _is_pandas(item)
            or frame_kind(item)
        ):
            yield from open_batches(item)
        elif hasattr(item, "__arrow_c_array__"):
            yield _batch_of(item)
        else:
            raise _unknown(item, "an item of the data")


def _schema_of(item: Any) -> pa.Schema:
    return item.schema if isinstance(item, pa.Table | pa.RecordBatch) else open_batches(item).schema


def _same_schema(batches: Iterator[pa.RecordBatch], schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    for number, batch in enumerate(batches):
        if not batch.schema.equals(schema):
            raise SchemaMismatchError(
                f"cannot write the data: batch {number + 1} has another schema than the first one: "
                f"expected {_shown(schema)}, found {_shown(batch.schema)}; cast the batches to one "
                "schema, or join tables by pyarrow.concat_tables(…, promote_options='permissive')"
            )
        yield batch


def _table_of_pandas(frame: Any) -> pa.Table:
    names = _names_in_pandas(frame)
    try:
        is_kept = _has_keys(frame.index) and not _is_column(frame)
        table = pa.Table.from_pandas(frame, preserve_index=is_kept)
    except OverflowError as error:
        raise InvalidInputError(f"cannot write the DataFrame: {_too_large_in(frame)}") from error
    except (pa.ArrowException, TypeError, ValueError) as error:
        problem = _mixed_types_in(frame) or "; ".join(str(one).rstrip(".") for one in error.args)
        advice = "cast the column to one type, as with .astype(str)"
        if "Sparse" in problem:
            advice = "make the column dense, as with .sparse.to_dense()"
        elif "complex" in problem:
            advice = "Delta tables have no complex numbers; write .real and .imag as two columns"
        elif any(isinstance(one, Enum) for name in names for one in _objects(frame, name)):
            advice = "write the values of an enum, as in .map(lambda one: one.value)"
        raise InvalidInputError(f"cannot write the DataFrame: {problem}; {advice}") from error
    for place, dtype in enumerate(frame.dtypes):
        if str(dtype) == "object":
            found = table.column(place)
            values = _column_of_objects(names[place], frame.iloc[:, place], found)
            if values is not found:
                table = table.set_column(place, names[place], values)
    return table


def _names_in_pandas(frame: Any) -> list[str]:
    """Return the names of the columns of a pandas frame, which must differ."""
    names = list(map(str, frame.columns))
    if type(frame.columns).__name__ == "MultiIndex":
        raise InvalidInputError(
            f"cannot write the DataFrame: its columns have names of {frame.columns.nlevels} "
            f"levels, such as {names[0]}; join them first, as in frame.columns = ['_'.join(map("
            "str, name)) for name in frame.columns]"
        )
    if len(set(names)) < len(names):
        twice = sorted({name for name in names if names.count(name) > 1})
        raise InvalidInputError(
            f"cannot write the DataFrame: several columns have the name {twice[0]!r}; rename them"
        )
    return names


def _mixed_types_in(frame: Any) -> str:
    """Return an error about the first column whose values are of several types; maybe empty."""
    for name in map(str, frame.columns):
        first: dict[type, tuple[int, object]] = {}
        for row, one in enumerate(_objects(frame, name)):
            if one is not None and one == one:  # noqa: PLR0124  # NaN is a missing value
                first.setdefault(type(one), (row, one))
        if len(first) > 1 and not {int, float}.issuperset(first):
            found = " and ".join(
                f"{shortened(one)} ({kind.__name__}, in row {row + 1})"
                for kind, (row, one) in first.items()
            )
            return f"column {name!r} has values of several types: {found}"
    return ""


def _column_of_objects(name: str, values: Any, found: Any) -> Any:
    """Check the Python objects of a column, and return them in the form of a write."""
    check_moments(name, values, found.type)
    if has_uuids(found.type):
        return pa.array(list(map(with_uuids_as_text, values)), from_pandas=True)
    return in_own_zone(with_nanoseconds(name, values, found), values)


def _objects(frame: Any, name: str) -> Iterator[Any]:
    """Yield the Python objects of a column of a pandas frame; none if it has another dtype."""
    column = frame.iloc[:, list(map(str, frame.columns)).index(name)]
    if str(column.dtype) == "object":
        yield from column


def _too_large_in(frame: Any) -> str:
    """Return an error about the first whole number of a frame that needs more than 64 bits."""
    for name in map(str, frame.columns):
        numbers = [one for one in _objects(frame, name) if isinstance(one, int)]
        if any(not -(2**63) <= one < 2**63 for one in numbers):
            return f"column {name!r}: {too_large(numbers)}"
    return too_large(())


def _shown(schema: pa.Schema) -> str:
    return ", ".join(f"{field.name}: {field.type}" for field in schema)


def _unknown(data: object, what: str = "the data") -> InvalidInputError:
    module, name = type(data).__module__, type(data).__qualname__
    shown = with_article(name if module == "builtins" else f"{module}.{name}")
    advice = advice_for(data)
    if _is_distributed(data):
        advice = f"; deltalog.{module.partition('.')[0]}.write(rows, table) writes them{advice}"
    return InvalidInputError(f"cannot write {what}, {shown}: expected {_ACCEPTED}{advice}")


def _is_distributed(data: object) -> bool:
    """Whether the data is a frame of Dask or a dataset of Ray; iterating over them raises."""
    module, name = type(data).__module__.partition(".")[0], type(data).__name__
    return module in {"dask", "ray"} and name.endswith(("DataFrame", "Dataset"))


def advice_for(data: Any) -> str:
    """Return how to make rows of an object that has rows, but is not accepted; maybe empty."""
    name = type(data).__qualname__
    if isinstance(data, str) and data.lstrip()[:1] in {"{", "["}:
        return "; parse JSON first, as with json.loads(text)"
    if isinstance(data, str | PurePath):
        return (
            "; read a file first, as with pyarrow.dataset.dataset(path), or a table with "
            "DeltaTable(path)"
        )
    if name.endswith("GroupBy"):
        return "; aggregate the groups first, as with .agg(…)"
    if name == "DuckDBPyConnection":
        return "; pass the relation that connection.sql(query) returns"
    if isinstance(data, pa.Schema):
        return "; DeltaTable.create(location, schema) creates an empty table"
    for method in ("compute", "toPandas", "to_frame", "to_pandas"):
        if callable(getattr(data, method, None)):
            return f"; pass its rows in memory, as returned by {method}()"
    if hasattr(data, "ndim"):
        return "; make a dataframe of it, which names the columns"
    return _advice_for_row(data)


def _advice_for_row(data: Any) -> str:
    """Return how to make a dict of an object that looks like one row or value; maybe empty."""
    if as_mapping(data) is not None:
        return "; it is one row: pass a list, [row]"
    for attribute, call in _AS_DICT.items():
        if hasattr(data, attribute):
            return f"; convert the rows to dicts, as in [{call} for row in rows]"
    if isinstance(data, tuple | list):  # a row of a cursor, or of csv.reader
        return "; name the values of a row, as in [dict(zip(names, row)) for row in rows]"
    if isinstance(data, bool | int | float):
        return "; name the column, as in {'id': values}"
    return ""


_AS_DICT: Final = {
    "_asdict": "row._asdict()",
    "__attrs_attrs__": "attrs.asdict(row)",
    "__struct_fields__": "msgspec.structs.asdict(row)",
    "keys": "dict(row)",
}
"""An attribute of rows of other libraries → the call that makes a dict of a row."""


# --- The types of data that writes accept, for type checkers


class ArrowStream(Protocol):
    """A table or stream of any library, such as a Polars dataframe or a DuckDB relation."""

    def __arrow_c_stream__(self, requested_schema: Any = None) -> object:
        """Return a stream of Arrow's C interface."""
        ...


class ArrowArray(Protocol):
    """A record batch of any library."""

    def __arrow_c_array__(self, requested_schema: Any = None) -> object:
        """Return schema and array of Arrow's C interface."""
        ...


class ArrowBatches(Protocol):
    """A dataset of pyarrow, or a scanner."""

    def to_batches(self, *args: Any, **options: Any) -> Iterable[Any]:
        """Return the rows as record batches."""
        ...


class DataclassRow(Protocol):
    """An instance of a dataclass."""

    __dataclass_fields__: dict[str, Any]


class ModelRow(Protocol):
    """An instance of a pydantic model."""

    def model_dump(self) -> dict[str, Any]:
        """Return the fields as a dictionary."""
        ...


if TYPE_CHECKING:
    Row = Mapping[str, object] | DataclassRow | ModelRow
    Rows = (
        ArrowStream
        | ArrowArray
        | ArrowBatches
        | pd.DataFrame
        | pl.LazyFrame
        | Mapping[str, Any]
        | Iterable[Row | ArrowStream | ArrowArray | pd.DataFrame]
    )
    """Any data that `write_deltalake` accepts."""
