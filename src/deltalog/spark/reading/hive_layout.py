"""Detect tables in Hive layout, whose partition values Spark may read from directory names.

By the protocol, directory names mean nothing, but Spark would trust them. So this applies only if
every directory name is exactly what the log's values give, in types that Spark parses as deltalog
does. Spark then prunes partitions itself, also dynamically by a join.

Protocol: Partition Value Serialization
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import pyarrow as pa

from deltalog.kernels import arrow, compute
from deltalog.partition_values import extract
from deltalog.partition_values.directories import NULL_DIRECTORY, hive_directory
from deltalog.schema import Field, StructType
from deltalog.schema.types import BOOLEAN, BYTE, DATE, INTEGER, LONG, SHORT, STRING

if TYPE_CHECKING:
    from deltalog.configuration import TableConfiguration
    from deltalog.schema import DataType

_TEXTS: Final[dict[DataType, str]] = {
    STRING: r"(?s)^.*$",
    **dict.fromkeys((BYTE, SHORT, INTEGER, LONG), r"^-?\d{1,18}$"),
    DATE: r"^\d{4}-\d\d-\d\d$",
    BOOLEAN: "^(?:true|false)$",
}


def hive_partitions(
    configuration: TableConfiguration, files: pa.Table, root: str
) -> StructType | None:
    """Return the partition columns as directories name them; None if Spark must not read them.

    Args:
        configuration: of the table.
        files: `location` and `partitionValues` of each.
        root: the table's location.

    Cost: one pass over the files, and Python for each partition.
    """
    names = configuration.physical_partition_columns
    types = [field.type for field in configuration.partition_schema]
    if not names or not _TEXTS.keys() >= set(types):
        return None
    prefix = f"{root.rstrip('/')}/"
    where = files.column("location")
    if not compute.all(compute.starts_with(where, prefix)).as_py():
        return None  # a shallow clone, with files of another table
    inner = compute.utf8_slice_codeunits(where, len(prefix))
    columns = {"": compute.replace_substring_regex(inner, "/[^/]*$", "")}
    for name, pattern in zip(names, map(_TEXTS.__getitem__, types), strict=True):
        texts = extract(files.column("partitionValues"), name)
        fits = compute.match_substring_regex(texts, pattern)
        says_null = compute.equal(texts, NULL_DIRECTORY)
        if compute.any(compute.or_(compute.invert(fits), says_null)).as_py():
            return None
        columns[name] = pa.chunked_array([texts])
    for row in (
        arrow.table(columns).group_by(list(columns), use_threads=False).aggregate([]).to_pylist()
    ):
        if row[""] != hive_directory(names, row):
            return None
    schema = configuration.partition_schema
    return StructType([Field(n, one.type) for n, one in zip(names, schema, strict=True)])
