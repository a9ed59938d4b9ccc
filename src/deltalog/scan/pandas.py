"""Rows as pandas data frames, under the dtypes that pandas' own readers give.

Protocol: none
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, Literal

import pyarrow as pa

from deltalog.errors import InvalidInputError

if TYPE_CHECKING:
    from collections.abc import Callable

    import pandas as pd

DtypeBackend = Literal["numpy_nullable", "pyarrow"]
"""Which dtypes a frame gets, as pandas' readers call them."""

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
"""pandas' dtypes with a mask for NA, by name."""


def to_frame(
    table: pa.Table, dtype_backend: DtypeBackend | None = None, **options: Any
) -> pd.DataFrame:
    """Return a table as a data frame.

    Args:
        table: the rows.
        dtype_backend: None has the dtypes of pyarrow.
        options: those of `pyarrow.Table.to_pandas`.

    Raises:
        InvalidInputError: an unknown backend, or both a backend and `types_mapper`; or pandas has
            no such value in the dtype, such as a year after 9999.
    """
    is_mapped = options.get("types_mapper") is not None
    if dtype_backend is not None:
        if is_mapped:
            raise InvalidInputError(
                "cannot take both dtype_backend and types_mapper: give one of them"
            )
        options["types_mapper"] = types_mapper(dtype_backend)
    try:
        return table.to_pandas(**options)
    except pa.ArrowMemoryError:
        raise
    except (ValueError, ArithmeticError, pa.ArrowException) as error:
        if is_mapped:  # by the caller, whose error it may be
            raise
        raise InvalidInputError(
            f"cannot make a data frame of {table.num_rows:,} rows with "
            f"{_culprit(table, options)}: {error}; take dtype_backend='pyarrow', or the rows as "
            "Arrow data"
        ) from error


def _culprit(table: pa.Table, options: dict[str, Any]) -> str:
    """The column that pandas cannot take, or all of them."""
    for place, name in enumerate(table.column_names):
        try:
            table.select([place]).to_pandas(**options)
        except (ValueError, ArithmeticError, pa.ArrowException):
            return f"the column {name!r}"
    return f"the columns {', '.join(map(repr, table.column_names))}"


def types_mapper(dtype_backend: DtypeBackend) -> Callable[[pa.DataType], Any]:
    """Return what gives each Arrow type a dtype that holds its values exactly, NULL among them.

    Args:
        dtype_backend: `pyarrow`: an Arrow dtype for every type. `numpy_nullable`: pandas' masked
            dtypes for numbers, booleans and texts; NumPy's for moments, and Python's values for
            the rest, as in pandas' readers; but Arrow's for nested types, whose numbers NumPy would
            make floating-point numbers beside a NULL.

    Raises:
        InvalidInputError: there is no such backend.
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
