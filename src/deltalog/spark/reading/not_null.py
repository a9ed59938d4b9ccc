"""Which columns Spark may take for NOT NULL: those of the table whose values were looked at.

Files are not checked when they are read, so Spark must not rely on what a table says of columns: it
would compute nonsense from a NULL that some writer has let in. Partition values are in the log, and
are looked at. Values in files are only where the session asks for it, since conditions on such a
column are not handed to the Parquet reader.

Protocol: Column Invariants
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pyspark.sql import functions as F  # noqa: N812  # as everywhere in PySpark's world

from deltalog.expressions.render import quote_text
from deltalog.kernels import compute
from deltalog.partition_values import extract
from deltalog.schema.types import (
    BINARY,
    BOOLEAN,
    BYTE,
    DATE,
    DOUBLE,
    FLOAT,
    INTEGER,
    LONG,
    SHORT,
    STRING,
    TIMESTAMP,
    TIMESTAMP_NTZ,
)
from deltalog.spark.session.types import quoted

if TYPE_CHECKING:
    from collections.abc import Iterable

    import pyarrow as pa
    from pyspark.sql import Column, SparkSession

    from deltalog.scan import ReadSpec
    from deltalog.schema import DataType, Field, StructType

KEEP_NOT_NULL: Final = "spark.deltalog.keepNotNull"
"""Session setting: `true` keeps NOT NULL of all columns, and a NULL in a file ends the query."""

# A value that is never seen, by which Spark knows that there is no NULL.
_SOME: Final[dict[DataType, str]] = {
    BINARY: "X''",
    BOOLEAN: "false",
    BYTE: "0Y",
    DATE: "DATE'1970-01-01'",
    DOUBLE: "0D",
    FLOAT: "0F",
    INTEGER: "0",
    LONG: "0L",
    SHORT: "0S",
    STRING: "''",
    TIMESTAMP: "TIMESTAMP'1970-01-01 00:00:00Z'",
    TIMESTAMP_NTZ: "TIMESTAMP_NTZ'1970-01-01 00:00:00'",
}


def not_null_columns(
    spark: SparkSession, schema: StructType, spec: ReadSpec, files: Iterable[pa.Table]
) -> dict[str, Column]:
    """Return the columns that hold no NULL, in a form by which Spark knows it.

    Args:
        spark: the session.
        schema: of the table.
        spec: what is read.
        files: `partitionValues` of all files that are read.
    """
    strict = [field for field in schema if not field.nullable and field.type in _SOME]
    if not strict:
        return {}
    partitions = spec.partition_columns.names
    pieces = list(files)
    found = {
        field.name: F.coalesce(F.col(quoted(field.name)), F.expr(_SOME[field.type]))
        for field in strict
        if field.name in partitions and not _has_null(pieces, spec.physical_names[field.name])
    }
    rest = [
        field for field in strict if field.name in spec.output.names and field.name not in found
    ]
    if rest and (spark.conf.get(KEEP_NOT_NULL, None) or "").strip().lower() == "true":
        found |= {field.name: _checked(field, spec.table) for field in rest}
    return found


def _has_null(files: list[pa.Table], name: str) -> bool:
    texts = [extract(piece.column("partitionValues"), name) for piece in files]
    # An empty text is NULL for every type.
    return any(one.null_count or compute.any(compute.equal(one, "")).as_py() for one in texts)


def _checked(field: Field, table: str) -> Column:
    """Return a column that ends the query where it is NULL."""
    said = (
        f"cannot read the column {field.name} of {table}: it is NOT NULL, and a file holds NULL; "
        f"unset {KEEP_NOT_NULL} to read the rows as they are"
    )
    failing = F.expr(f"raise_error({quote_text(said)})")
    return F.coalesce(F.col(quoted(field.name)), failing, F.expr(_SOME[field.type]))
