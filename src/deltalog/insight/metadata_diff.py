"""The differences between schemas and settings of two versions.

Owns which columns are the same column, and which of them can be read in one schema.

Protocol: Change Metadata, Protocol Evolution, Column Mapping, Type Widening
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import pyarrow as pa

from deltalog._json import dumps
from deltalog.column_mapping import Mode, physical_name
from deltalog.names import name_key
from deltalog.schema import ArrayType, MapType, StructType
from deltalog.schema.arrow import PARQUET_FIELD_ID
from deltalog.schema.columns import walk
from deltalog.schema.widening import is_widening

if TYPE_CHECKING:
    from collections.abc import Sequence

    from deltalog.configuration import TableConfiguration
    from deltalog.schema import DataType, Field
    from deltalog.snapshot import Snapshot

Row = tuple[str, str, str | None, str | None]
_PRIVATE: Final = ("delta.columnMapping.", "delta.typeChanges", PARQUET_FIELD_ID)


@dataclass(frozen=True, slots=True, kw_only=True)
class SharedColumns:
    """The columns of a later schema that can be compared with an earlier one.

    Args:
        names: top-level columns of the later schema.
        reads_alike: whether files of the earlier version can be read in the later schema, with
            NULL for columns added since. Otherwise each version is read in its own schema.
    """

    names: frozenset[str]
    reads_alike: bool


def shared_columns(before: TableConfiguration, after: TableConfiguration) -> SharedColumns:
    """Find the columns of `after` that can be compared with those of `before`."""
    mode = after.column_mapping_mode
    by_identity = {_identity(field, mode): field for field in before.schema}
    by_name = {name_key(field.name): field for field in before.schema}
    # Enabling column mapping keeps the names in use as physical names, so old files still match.
    then_mode = before.column_mapping_mode
    alike = then_mode in {mode, Mode.NONE} and before.partition_columns == after.partition_columns
    for field in after.schema:
        same = by_identity.get(_identity(field, mode))
        # After a table was replaced, a column of the same name is another column.
        alike = alike and (same is not None or name_key(field.name) not in by_name)
    names = set()
    for field in after.schema:
        if alike:
            then = by_identity.get(_identity(field, mode))
            if then is None or _can_show(then.type, field.type, mode):
                names.add(field.name)
        else:
            then = by_name.get(name_key(field.name))
            if then is not None and then.name == field.name and then.type == field.type:
                names.add(field.name)
    return SharedColumns(names=frozenset(names), reads_alike=alike)


def _can_show(then: DataType, now: DataType, mode: Mode) -> bool:
    match then, now:
        case StructType(), StructType():
            known = {_identity(field, mode): field for field in now}
            pairs = [(field, known.get(_identity(field, mode))) for field in then]
            return all(
                match is None or _can_show(field.type, match.type, mode) for field, match in pairs
            )
        case ArrayType(), ArrayType():
            return _can_show(then.element_type, now.element_type, mode)
        case MapType(), MapType():
            return _can_show(then.key_type, now.key_type, mode) and _can_show(
                then.value_type, now.value_type, mode
            )
        case _:
            return then == now or is_widening(then, now)


def _identity(field: Field, mode: Mode) -> str:
    return name_key(field.name) if mode is Mode.NONE else physical_name(field, mode)


def schema_changes(before: TableConfiguration, after: TableConfiguration) -> pa.Table:
    """Columns, at every depth, that were added, removed, renamed or changed."""
    mode = after.column_mapping_mode
    then, now = _fields(before.schema, mode), _fields(after.schema, mode)
    gone = [found for key, found in then.items() if key not in now]
    rows: list[Row] = [(".".join(path), "removed", _described(field), None) for path, field in gone]
    for key, (path, field) in now.items():
        if key in then:
            rows += _field_changes(".".join(path), then[key][1], field)
        else:
            rows.append((".".join(path), "added", None, _described(field)))
    rows += _order_changes(before.schema.names, after.schema.names)
    return _table(("column", "change", "before", "after"), rows)


def _field_changes(name: str, then: Field, now: Field) -> list[Row]:
    facts = {
        "renamed": (then.name, now.name),
        "type": (_kind(then), _kind(now)),
        "nullable": (_truth(then.nullable), _truth(now.nullable)),
        "metadata": (_remarks(then), _remarks(now)),
    }
    return [(name, change, *pair) for change, pair in facts.items() if pair[0] != pair[1]]


def _order_changes(then: Sequence[str], now: Sequence[str]) -> list[Row]:
    common = set(then) & set(now)
    if [name for name in then if name in common] == [name for name in now if name in common]:
        return []
    return [("*", "order", ", ".join(then), ", ".join(now))]


def setting_changes(before: Snapshot, after: Snapshot) -> pa.Table:
    """Differences in everything but the schema: properties, features, other settings."""
    then, now = _settings(before), _settings(after)
    rows: list[Row] = [
        (kind, name, then.get((kind, name)), now.get((kind, name)))
        for kind, name in sorted(then.keys() | now.keys())
        if then.get((kind, name)) != now.get((kind, name))
    ]
    return _table(("kind", "name", "before", "after"), rows)


def _settings(snapshot: Snapshot) -> dict[tuple[str, str], str]:
    metadata, protocol = snapshot.metadata, snapshot.protocol
    found: dict[tuple[str, str], str | None] = {
        ("table", "id"): metadata.id,
        ("table", "name"): metadata.name,
        ("table", "description"): metadata.description,
        ("table", "partition columns"): ", ".join(metadata.partition_columns) or None,
        ("protocol", "minReaderVersion"): str(protocol.min_reader_version),
        ("protocol", "minWriterVersion"): str(protocol.min_writer_version),
    }
    for name, text in metadata.configuration.items():
        found["property", name] = text
    for name in snapshot.configuration.features.values():
        found["feature", name] = "supported"
    for name, domain in snapshot.domain_metadata.items():
        found["domain", name] = domain.text
    return {key: text for key, text in found.items() if text is not None}


def _fields(schema: StructType, mode: Mode) -> dict[tuple[str, ...], tuple[tuple[str, ...], Field]]:
    """Every field by its path of identities (names, or physical names); parents first."""
    found = {}
    identities: dict[tuple[str, ...], str] = {}
    for path, field in walk(schema):
        identities[path] = _identity(field, mode)
        key = tuple(
            identities.get(path[:length], path[length - 1]) for length in range(1, len(path) + 1)
        )
        found[key] = (path, field)
    return found


def _kind(field: Field) -> str:
    """The type as text; fields of a struct have rows of their own."""
    return "struct" if isinstance(field.type, StructType) else str(field.type)


def _described(field: Field) -> str:
    return str(field.type) if field.nullable else f"{field.type} not null"


def _remarks(field: Field) -> str | None:
    shown = {
        name: value
        for name, value in sorted(field.metadata.items())
        if not name.startswith(_PRIVATE)
    }
    return dumps(shown).decode() if shown else None


def _truth(value: bool) -> str:  # noqa: FBT001  # what is shown
    return "true" if value else "false"


def _table(names: tuple[str, ...], rows: Sequence[Row]) -> pa.Table:
    schema = pa.schema([(name, pa.string()) for name in names])
    return pa.Table.from_pylist([dict(zip(names, row, strict=True)) for row in rows], schema=schema)
