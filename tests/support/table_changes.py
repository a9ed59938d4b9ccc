"""Tables before and after a change of metadata, made without a store."""

from __future__ import annotations

from typing import Any

from deltalog.protocol.actions import Protocol
from deltalog.protocol.configuration import TableConfiguration
from deltalog.protocol.table_change.change import changed_table, new_table
from deltalog.schema import ArrayType, Field, StructType

PLAIN = StructType([Field("id", "long"), Field("p", "string"), Field("n", "integer")])


NESTED = StructType(
    [
        Field("id", "long"),
        Field("s", StructType([Field("x", "integer"), Field("y", "string")])),
        Field("a", ArrayType(StructType([Field("z", "short")]))),
    ]
)


IDENTITY = {"delta.identity.start": 1, "delta.identity.step": 1}


MAPPED = {"delta.columnMapping.mode": "name"}


def table(schema: StructType = PLAIN, **options: Any) -> TableConfiguration:
    return new_table(schema, created_time_ms=1_700_000_000_000, **options)


def with_properties(before: TableConfiguration, **properties: str) -> TableConfiguration:
    texts = {f"delta.{key.replace('__', '.')}": text for key, text in properties.items()}
    return changed_table(before, configuration={**before.metadata.configuration, **texts})


def versions(protocol: Protocol) -> tuple[int, int]:
    return protocol.min_reader_version, protocol.min_writer_version


def columns(*fields: Field) -> StructType:
    return StructType([Field("id", "long"), *fields])
