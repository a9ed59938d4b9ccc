"""Conversions of rows to batches, tables, dataframes and Arrow streams.

Scans and change feeds use these conversions. Some methods have the names of methods of
`pyarrow.RecordBatchReader`. Data-frame libraries are imported only when they are used.

Protocol: none
"""

from __future__ import annotations

from contextlib import contextmanager
from importlib import import_module
from typing import TYPE_CHECKING, Any, ClassVar, Final, Literal, Self

import pyarrow as pa

from deltalog._util.argument_types import wrong_argument
from deltalog._util.cached import cached_property, name_methods_after
from deltalog._util.call_errors import called_first
from deltalog._util.similar_names import (
    NoSequence,
    SimilarNames,
    check_passed_on,
    suggests_arguments,
)
from deltalog.errors import InvalidInputError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    import pandas as pd
    import polars as pl


_MEANT: Final = {
    **dict.fromkeys(("to_dicts", "to_list", "rows"), "to_pylist()"),
    **dict.fromkeys(("to_df", "df", "toPandas"), "to_pandas()"),
    **dict.fromkeys(("to_pyarrow", "to_pyarrow_table", "collect"), "to_table()"),
    **dict.fromkeys(
        ("arrow", "fetch_arrow_table", "to_arrow_table", "toArrow", "collect_async", "compute"),
        "to_table()",
    ),
    **dict.fromkeys(("fetchall", "fetchmany"), "to_pylist()"),
    "to_pydict": "to_table().to_pydict()",
    **dict.fromkeys(("fetchdf", "fetch_df"), "to_pandas()"),
    **dict.fromkeys(
        ("to_arrow_batch_reader", "to_arrow_reader", "fetch_record_batch", "fetch_arrow_reader"),
        "to_reader()",
    ),
    **dict.fromkeys(("collect_batches", "scan_batches", "iter_batches"), "to_batches()"),
    "pl": "to_polars()",
    **dict.fromkeys(("show", "display", "print"), "print(… .to_polars())"),
    **dict.fromkeys(("columns", "column_names", "names", "field_names"), "schema.names"),
    **dict.fromkeys(("dtypes", "types", "fields", "printSchema"), "schema"),
    **dict.fromkeys(("num_rows", "shape", "len", "count_rows"), "to_table().num_rows"),
    **dict.fromkeys(("column", "col"), "to_table().column(name)"),
    **dict.fromkeys(("write_parquet", "to_parquet"), "to_polars().write_parquet(path)"),
    **dict.fromkeys(("write_csv", "to_csv"), "to_pandas().to_csv(path)"),
    **dict.fromkeys(
        ("write", "write_delta", "sink_delta", "write_deltalake", "save", "writeTo"),
        "deltalog.write_deltalake(location, rows)",
    ),
    **dict.fromkeys(
        ("sql", "sql_query", "createOrReplaceTempView", "create_view", "to_view"),
        "deltalog.sql(query, t=rows)",
    ),
    **dict.fromkeys(("cache", "persist", "collect_all", "materialize"), "to_table(), and keep it"),
}
"""What to use instead of names of other libraries."""


def with_names_of_rows(names: Mapping[str, str]) -> Mapping[str, str]:
    """Return names of other libraries for a subclass of `Rows`, with those of all rows."""
    return {**_MEANT, **names}


CALLED: Final = (
    *("to_reader", "to_table", "to_arrow", "to_pandas", "to_polars", "to_duckdb", "to_pylist"),
)
"""Methods that raise a clear error if they are used without a call."""


@called_first(*CALLED)
@suggests_arguments
class Rows(SimilarNames, NoSequence):
    """Base class of results that can be read any number of times.

    `read_next_batch` and `close` work as in `pyarrow.RecordBatchReader`: the object has one current
    position.
    """

    _meant: ClassVar[Mapping[str, str]] = _MEANT
    _frames = "to_polars() or to_pandas()"

    def __init_subclass__(cls, **options: Any) -> None:
        """Show the subclass's name in errors about arguments."""
        super().__init_subclass__(**options)
        name_methods_after(cls, Rows)

    @property
    def schema(self) -> pa.Schema:
        """Return the Arrow schema of the rows."""
        raise InvalidInputError(f"{type(self).__name__} has no schema")

    def to_batches(self) -> Iterator[pa.RecordBatch]:
        """Yield the rows in batches; the required memory does not depend on the number of rows."""
        raise InvalidInputError(f"{type(self).__name__} has no rows")

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        """Yield the rows, batch by batch."""
        return self.to_batches()

    def to_reader(self) -> pa.RecordBatchReader:
        """Return the rows as an Arrow reader."""
        return pa.RecordBatchReader.from_batches(self.schema, self.to_batches())

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        """Export the rows through the Arrow C stream interface."""
        reader: Any = self.to_reader()
        return reader.__arrow_c_stream__(requested_schema)

    def to_table(self) -> pa.Table:
        """Return all rows in memory."""
        return pa.Table.from_batches(self.to_batches(), schema=self.schema)

    def to_pylist(self) -> list[dict[str, Any]]:
        """Return all rows as dictionaries, column name to value."""
        rows: list[dict[str, Any]] = self.to_table().to_pylist()
        return rows

    def to_arrow(self) -> pa.Table:
        """Return all rows as a pyarrow Table: see `to_table`."""
        return self.to_table()

    def to_pandas(self, dtype_backend: DtypeBackend | None = None, **options: Any) -> pd.DataFrame:
        """Return all rows as a pandas dataframe.

        Args:
            dtype_backend: see `DeltaTable.to_pandas`.
            options: options of `pyarrow.Table.to_pandas`.
        """
        require_library("pandas")
        check_frame_options(self, options)
        return to_frame(self.to_table(), dtype_backend, **options)

    def to_polars(self) -> pl.DataFrame:
        """Return all rows as a Polars dataframe."""
        frame: pl.DataFrame = require_library("polars").from_arrow(self.to_table())
        return frame

    def to_duckdb(self, connection: Any = None) -> Any:
        """Return all rows as a DuckDB relation, by default of a new in-memory connection."""
        connection = duckdb_connection(connection)
        if not self.schema.names:
            raise InvalidInputError("cannot make a DuckDB relation: the rows have no columns")
        return duckdb_relation(self.to_table(), connection)

    def read_all(self) -> pa.Table:
        """Return all rows in memory."""
        return self.to_table()

    def read_pandas(self, **options: Any) -> pd.DataFrame:
        """Return all rows as a pandas dataframe."""
        return self.to_pandas(**options)

    @cached_property
    def _position(self) -> pa.RecordBatchReader:
        return self.to_reader()

    def read_next_batch(self) -> pa.RecordBatch:
        """Return the next batch; raise StopIteration after the last."""
        return self._position.read_next_batch()

    def close(self) -> None:
        """Reset `read_next_batch` to the first batch, and release its resources."""
        held = self.__dict__.pop("_position", None)
        if held is not None:
            held.close()

    def __enter__(self) -> Self:
        """Return this object; `close` is called at the end of the `with` block."""
        return self

    def __exit__(self, *_: object) -> None:
        """Call `close`."""
        self.close()


def duckdb_relation(source: Any, connection: Any = None) -> Any:
    """Return a DuckDB relation over a dataset or a table.

    Args:
        source: the data for DuckDB to read.
        connection: a connection of DuckDB; None makes a new in-memory connection.
    """
    with naming_pending_results():
        return duckdb_connection(connection).from_arrow(source)


def duckdb_selection(chosen: Rows, rows: Any, connection: Any = None) -> Any:
    """Return a DuckDB relation over some columns of a dataset.

    Args:
        chosen: the same rows, with the chosen columns. If a column is not one of the dataset, such
            as a field of a struct, all these rows are read.
        rows: the dataset.
        connection: a connection of DuckDB; None makes a new in-memory connection.
    """
    known = dict(zip(rows.schema.names, rows.schema.types, strict=True))
    is_plain = all(known.get(part.name) == part.type for part in chosen.schema)
    if not is_plain or not chosen.schema.names:
        return chosen.to_duckdb(connection)
    names = ['"{}"'.format(name.replace('"', '""')) for name in chosen.schema.names]
    return duckdb_relation(rows, connection).project(", ".join(names))


def duckdb_connection(connection: Any) -> Any:
    """Return a connection of DuckDB; None makes a new in-memory connection.

    Raises:
        InvalidInputError: DuckDB is not installed, or the argument is no open connection.
    """
    if connection is None:
        return require_library("duckdb").connect()
    if not all(hasattr(type(connection), name) for name in ("cursor", "from_arrow")):
        expected = "a connection, such as duckdb.connect('file.duckdb')"
        raise wrong_argument("to_duckdb", "connection", connection, expected)
    try:
        connection.cursor()
    except Exception as error:
        if type(error).__name__ != "ConnectionException":  # of DuckDB
            raise
        raise InvalidInputError("cannot make a DuckDB relation: the connection is closed") from None
    return connection


@contextmanager
def naming_pending_results() -> Iterator[None]:
    """Raise a clear error if a connection has a result that nobody has fetched.

    Raises:
        InvalidInputError: DuckDB refuses other work on the connection.
    """
    try:
        yield
    except Exception as error:
        if type(error).__name__ != PENDING:
            raise
        raise InvalidInputError(f"cannot make a DuckDB relation: {error}") from error


PENDING: Final = "ResourceInUseException"
"""The exception of DuckDB for work on a connection whose last result was not fetched."""


def require_library(name: str, *, extra: str | None = None) -> Any:
    """Import an optional library.

    Args:
        name: the module's name.
        extra: the extra of deltalog that installs the library; None means the extra `name`.

    Raises:
        InvalidInputError: the library is not installed; the message states how to install it.
    """
    try:
        return import_module(name)
    except ImportError as error:
        raise InvalidInputError(
            f"cannot use {name}: it is not installed; pip install 'deltalog[{extra or name}]'"
        ) from error


# --- Rows as pandas dataframes


DtypeBackend = Literal["numpy_nullable", "pyarrow"]
"""The kind of dtypes of a dataframe, named as in the readers of pandas."""

_NULLABLE: Final = {
    pa.bool_(): "BooleanDtype",
    pa.int8(): "Int8Dtype",
    pa.int16(): "Int16Dtype",
    pa.int32(): "Int32Dtype",
    pa.int64(): "Int64Dtype",
    pa.float32(): "Float32Dtype",
    pa.float64(): "Float64Dtype",
    pa.string(): "StringDtype",
    pa.large_string(): "StringDtype",
}
"""Arrow type → the masked (nullable) dtype of pandas."""


def check_frame_options(rows: Any, options: Mapping[str, Any]) -> None:
    """Raise for an option of `rows.to_pandas` that pyarrow does not have.

    Raises:
        WrongCallError: there is no such option; the message names what is meant.
    """
    if options:
        kind = type(rows)
        check_passed_on(kind, kind.to_pandas, options, pa.Table.to_pandas)


def to_frame(
    table: pa.Table, dtype_backend: DtypeBackend | None = None, **options: Any
) -> pd.DataFrame:
    """Return a table as a dataframe.

    Args:
        table: the rows.
        dtype_backend: the kind of dtypes; None uses pyarrow's default dtypes.
        options: options of `pyarrow.Table.to_pandas`.

    Raises:
        InvalidInputError: the backend is unknown, or both a backend and `types_mapper` are given;
            or the pandas dtype cannot represent a value, such as a year after 9999.
    """
    is_mapped = options.get("types_mapper") is not None
    if dtype_backend is not None:
        if is_mapped:
            raise InvalidInputError(
                "cannot use both dtype_backend and types_mapper: give one of them"
            )
        options["types_mapper"] = types_mapper(dtype_backend)
    try:
        return table.to_pandas(**options)
    except pa.ArrowMemoryError:
        raise
    except (ValueError, ArithmeticError, pa.ArrowException) as error:
        if is_mapped:  # the caller's mapper may have caused the error
            raise
        raise InvalidInputError(
            f"cannot make a dataframe of {table.num_rows:,} rows with "
            f"{_culprit(table, options)}: {error}; use dtype_backend='pyarrow', or read the "
            "rows as Arrow data"
        ) from error


def _culprit(table: pa.Table, options: dict[str, Any]) -> str:
    """Return the name of the first column that pandas cannot represent, or of all columns."""
    for place, name in enumerate(table.column_names):
        try:
            table.select([place]).to_pandas(**options)
        except (ValueError, ArithmeticError, pa.ArrowException):
            return f"the column {name!r}"
    return f"the columns {', '.join(map(repr, table.column_names))}"


def types_mapper(dtype_backend: DtypeBackend) -> Callable[[pa.DataType], Any]:
    """Return a function from Arrow types to dtypes that represent their values and NULL exactly.

    Args:
        dtype_backend: `pyarrow` returns an Arrow dtype for every type. `numpy_nullable` returns
            masked dtypes of pandas for numbers, booleans and strings, NumPy dtypes for timestamps,
            and Python objects for other types, as in pandas' readers. Nested types have Arrow
            dtypes, because NumPy would convert integers to floating-point numbers if there is a
            NULL.

    Raises:
        InvalidInputError: the backend is unknown.
    """
    import pandas as pd  # noqa: PLC0415  # optional

    if dtype_backend == "pyarrow":
        return pd.ArrowDtype
    if dtype_backend != "numpy_nullable":
        raise InvalidInputError(
            f"dtype_backend: expected 'numpy_nullable' or 'pyarrow', found {dtype_backend!r}"
        )

    def nullable(kind: pa.DataType) -> Any:
        if (name := _NULLABLE.get(kind)) is not None:
            return getattr(pd, name)()
        return pd.ArrowDtype(kind) if pa.types.is_nested(kind) else None

    return nullable
