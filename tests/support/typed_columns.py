"""A column of each type, and SQL over them with its types made explicit."""

from __future__ import annotations

from deltalog.expressions import parse_sql, parse_type, resolve, to_sql
from deltalog.schema import Field, StructType

_COLUMNS = {
    "Id": "bigint", "n": "int", "tiny": "tinyint", "small": "smallint", "f": "float", "x": "double",
    "price": "decimal(10,2)", "wide": "decimal(38,18)", "name": "string", "flag": "boolean",
    "bin": "binary", "d": "date", "ts": "timestamp", "wall": "timestamp_ntz",
    "s": "struct<Inner: struct<Leaf: int>, `b.c`: string>", "m": "map<string, int>",
    "arr": "array<int>", "maps": "map<string, struct<v: int>>", "a.b": "int",
}  # fmt: skip


SCHEMA = StructType([Field(name, parse_type(sql)) for name, sql in _COLUMNS.items()])


def resolved_sql(sql: str) -> str:
    return to_sql(resolve(parse_sql(sql), SCHEMA))
