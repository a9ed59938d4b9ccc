"""Changing schemas: merging with the schema of data, widening types, altering columns.

Decides which columns are added, and which types are compatible or widened. The caller checks that
the table's features allow the change, and assigns ids and physical names to new columns.

Protocol: Schema Serialization Format, Type Widening
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final, Literal

from deltalog._util.escaping import name_key
from deltalog.errors import (
    InvalidInputError,
    InvalidMetadataError,
    SchemaMismatchError,
    UnsupportedTypeError,
)
from deltalog.schema.collations import renamed
from deltalog.schema.columns import Path, canonical_path_of, find_field, map_fields, walk
from deltalog.schema.primitives import Family
from deltalog.schema.types import (
    GENERATION_EXPRESSION_KEY,
    VOID,
    ArrayType,
    Field,
    MapType,
    PrimitiveType,
    StructType,
    named_type,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from deltalog.schema.types import DataType

# The prefixes of the metadata that is only valid in a column's own table. If a schema is copied to
# another table, this metadata is omitted.
_TABLE_BOUND: Final = ("delta.columnMapping.", "delta.typeChanges", "delta.identity.", "parquet.")


def can_promote(from_type: DataType, to_type: DataType) -> bool:
    """Return whether `to_type` has all values of `from_type`: if it is equal, void or narrower."""
    return from_type in (to_type, VOID) or is_widening(from_type, to_type)


def can_store(from_type: DataType, to_type: DataType) -> bool:
    """Return whether a column may store data of another type if every value fits exactly.

    `conform` checks the values.
    """
    match from_type, to_type:
        case PrimitiveType(), PrimitiveType():
            known = from_type.primitive.stored_in
            return from_type in (to_type, VOID) or to_type.primitive.name in known
        case ArrayType(), ArrayType():
            return can_store(from_type.element_type, to_type.element_type)
        case MapType(), MapType():
            return can_store(from_type.key_type, to_type.key_type) and can_store(
                from_type.value_type, to_type.value_type
            )
        case StructType(), StructType():
            fields = _by_folded_name(to_type)
            return all(
                name_key(field.name) in fields
                and can_store(field.type, fields[name_key(field.name)].type)
                for field in from_type.fields
            )
        case _:
            return from_type in (to_type, VOID)


def merge_schemas(
    current: StructType,
    incoming: StructType,
    *,
    allow_widening: bool = False,
    casts: bool = False,
) -> StructType:
    """Return the table's schema with the columns added that only the data has.

    Names are matched ignoring case; the spelling and the order of the table remain. New columns and
    nested fields are added at the end. They are nullable, because existing rows have no value for
    them.

    Args:
        current: the schema of the table.
        incoming: the schema of the data.
        allow_widening: whether a wider type in the data widens the column; if so, the field records
            the change.
        casts: whether the data will be cast, so that the types of primitive columns remain. The
            caller checks that the casts are possible.

    Raises:
        SchemaMismatchError: the data's type is incompatible with the column, or a new column is
            generated.

    Protocol: Type Widening
    """
    if casts:
        known = _by_folded_name(current)
        incoming = StructType(
            [
                field
                for field in incoming.fields
                if name_key(field.name) not in known
                or not _needs_cast(
                    field.type, known[name_key(field.name)].type, allow_widening=allow_widening
                )
            ]
        )
    return _merge_structs(current, incoming, (), allow_widening=allow_widening)


def new_field(field: Field) -> Field:
    """Return the field as a new column of a table with rows: nullable and without ids.

    Raises:
        InvalidInputError: its metadata is misspelled.
    """
    from deltalog.schema.new_metadata import check_new_metadata  # noqa: PLC0415  # new columns

    check_new_metadata([field])

    def fresh(found: Field) -> Field:
        metadata = {
            key: value for key, value in found.metadata.items() if not key.startswith(_TABLE_BOUND)
        }
        return Field(found.name, found.type, nullable=True, metadata=metadata)

    return map_fields(StructType([field]), fresh).fields[0]


def reorder(incoming: StructType, like: StructType) -> StructType:
    """Return the fields of `incoming` in the order and spelling of `like`, at every depth.

    Fields that `like` does not have are at the end.
    """
    fields = _by_folded_name(incoming)
    known = [
        replace(
            fields[name_key(field.name)],
            name=field.name,
            type=_reorder_type(fields[name_key(field.name)].type, field.type),
        )
        for field in like.fields
        if name_key(field.name) in fields
    ]
    names = {name_key(field.name) for field in like.fields}
    return StructType(
        [*known, *(new for new in incoming.fields if name_key(new.name) not in names)]
    )


def _by_folded_name(struct: StructType) -> dict[str, Field]:
    return {name_key(field.name): field for field in struct.fields}


def _needs_cast(from_type: DataType, to_type: DataType, *, allow_widening: bool) -> bool:
    return (
        isinstance(from_type, PrimitiveType)
        and isinstance(to_type, PrimitiveType)
        and to_type != VOID
        and not can_store(from_type, to_type)
        and not (allow_widening and _is_widening_of_kind(to_type, from_type))
    )


def _merge_structs(
    current: StructType, incoming: StructType, path: Path, *, allow_widening: bool
) -> StructType:
    fields = _by_folded_name(current)
    for field in incoming.fields:
        known = fields.get(name_key(field.name))
        fields[name_key(field.name)] = (
            _evolved_field(field)
            if known is None
            else _merge_field(known, field, path, allow_widening=allow_widening)
        )
    return StructType(list(fields.values()))


def _evolved_field(field: Field) -> Field:
    if GENERATION_EXPRESSION_KEY in field.metadata:
        raise SchemaMismatchError(
            f"cannot add the column {field.name!r} of the data: its metadata has "
            f"{GENERATION_EXPRESSION_KEY}, but existing rows have no value for it; remove "
            "that metadata, or create the table with the column"
        )
    return new_field(field)


def _merge_field(current: Field, incoming: Field, parent: Path, *, allow_widening: bool) -> Field:
    changes: list[TypeChange] = []
    path = (*parent, current.name)
    merged = _merge_types(current.type, incoming.type, path, changes if allow_widening else None)
    result = replace(current, type=merged)
    for change in changes:
        result = with_change(result, replace(change, path=change.path[len(path) :]))
    return result


def _merge_types(
    current: DataType, incoming: DataType, path: Path, changes: list[TypeChange] | None
) -> DataType:
    """Return the merged type; widenings inside the nearest struct field are added to `changes`.

    If `changes` is None, widening is an error.
    """
    if isinstance(current, StructType) and isinstance(incoming, StructType):
        return _merge_structs(current, incoming, path, allow_widening=changes is not None)

    def merge(one: DataType, other: DataType, segment: str) -> DataType:
        return _merge_types(one, other, (*path, segment), changes)

    return _with_parts(current, incoming, merge) or _merge_leaves(current, incoming, path, changes)


def _with_parts(
    one: DataType, other: DataType, change: Callable[[DataType, DataType, str], DataType]
) -> DataType | None:
    """Combine the parts of two lists or two maps; return None for other types."""
    match one, other:
        case ArrayType(), ArrayType():
            element = change(one.element_type, other.element_type, "element")
            return replace(one, element_type=element)
        case MapType(), MapType():
            key = change(one.key_type, other.key_type, "key")
            value = change(one.value_type, other.value_type, "value")
            return replace(one, key_type=key, value_type=value)
        case _:
            return None


def _merge_leaves(
    current: DataType, incoming: DataType, path: Path, changes: list[TypeChange] | None
) -> DataType:
    if current == VOID:
        return new_field(Field("", incoming)).type
    if changes is not None and _is_widening_of_kind(current, incoming):
        changes.append(TypeChange(current, incoming, path))
        return incoming
    if can_store(incoming, current):
        return current
    raise SchemaMismatchError(
        f"column {'.'.join(path)!r} is of type {current}, but the data has the type {incoming}"
    )


def _is_widening_of_kind(current: DataType, incoming: DataType) -> bool:
    # As in Delta Spark, a write never changes an integer column to a decimal or double.
    return is_widening(current, incoming) and (not _is_integral(current) or _is_integral(incoming))


def _is_integral(data_type: DataType) -> bool:
    return isinstance(data_type, PrimitiveType) and data_type.primitive.family is Family.INTEGRAL


def _reorder_type(incoming: DataType, like: DataType) -> DataType:
    if isinstance(incoming, StructType) and isinstance(like, StructType):
        return reorder(incoming, like)
    found = _with_parts(incoming, like, lambda part, other, _: _reorder_type(part, other))
    return found or incoming


# --- Type widening: the allowed changes, and how a field records changes


TYPE_CHANGES_KEY: Final = "delta.typeChanges"


@dataclass(frozen=True, slots=True)
class TypeChange:
    """A past change of a field's type; older files may still contain the earlier type.

    Args:
        from_type: the earlier type.
        to_type: the later type.
        path: the path to the type inside the field, such as `element`; empty for the field itself.

    Protocol: Type Change Metadata
    """

    from_type: DataType
    to_type: DataType
    path: tuple[str, ...] = ()


def is_widening(from_type: DataType, to_type: DataType, *, is_lenient: bool = False) -> bool:
    """Return whether a column's type may be widened to another type; False for equal types.

    Args:
        from_type: the current type.
        to_type: the new type.
        is_lenient: whether an integer may become the decimal with the fewest sufficient digits
            (byte to decimal(4,1)). Early writers did this, and such files can be read.

    Protocol: Type Widening
    """
    if not isinstance(from_type, PrimitiveType) or not isinstance(to_type, PrimitiveType):
        return False
    row = from_type.primitive
    if not to_type.is_decimal:
        return to_type.primitive.name in row.widens_to
    if row.family is Family.INTEGRAL:
        least, scale = row.digits if is_lenient else row.decimal_digits, 0
    elif from_type.is_decimal and from_type != to_type:
        least, scale = from_type.precision, from_type.scale
    else:
        return False
    more_scale = to_type.scale - scale
    return to_type.precision - least >= more_scale >= 0


def widening_changes(field: Field) -> tuple[TypeChange, ...]:
    """Return the type changes that a field records, oldest first.

    Raises:
        InvalidMetadataError: the metadata entry is malformed.

    Protocol: Type Change Metadata
    """
    entries = field.metadata.get(TYPE_CHANGES_KEY)
    if entries is None:
        return ()
    if not isinstance(entries, list):
        raise _malformed(field, entries)
    return tuple(_change(field, entry) for entry in entries)


def check_readable_changes(schema: StructType) -> None:
    """Raise if files may contain values of a type that cannot be read as the current type.

    Raises:
        UnsupportedTypeError: a field has a type change that deltalog does not support.
        InvalidMetadataError: a metadata entry is malformed.

    Protocol: Reader Requirements for Type Widening
    """
    for path, field in walk(schema):
        for change in widening_changes(field):
            if not is_widening(change.from_type, change.to_type, is_lenient=True):
                raise UnsupportedTypeError(
                    f"cannot read column {'.'.join((*path, *change.path))!r}: its type changed "
                    f"from {change.from_type} to {change.to_type}, which deltalog does not "
                    "support as a widening; use an engine that does"
                )


def with_change(field: Field, change: TypeChange) -> Field:
    """Return the field with an additional recorded type change; its type remains the same."""
    entry = {"toType": str(change.to_type), "fromType": str(change.from_type)}
    if change.path:
        entry["fieldPath"] = ".".join(change.path)
    known = list(field.metadata.get(TYPE_CHANGES_KEY) or [])
    return replace(field, metadata={**field.metadata, TYPE_CHANGES_KEY: [*known, entry]})


def _change(field: Field, entry: Any) -> TypeChange:
    if not isinstance(entry, dict):
        raise _malformed(field, entry)
    before, after, inner = entry.get("fromType"), entry.get("toType"), entry.get("fieldPath") or ""
    if not (isinstance(before, str) and isinstance(after, str) and isinstance(inner, str)):
        raise _malformed(field, entry)
    path = tuple(inner.split(".")) if inner else ()
    return TypeChange(_type(field, before), _type(field, after), path)


def _type(field: Field, name: str) -> DataType:
    try:
        return named_type(name)
    except InvalidInputError as error:
        raise UnsupportedTypeError(
            f"cannot read column {field.name!r}: its type changed from or to {name!r}, "
            "an unknown type"
        ) from error


def _malformed(field: Field, entry: Any) -> InvalidMetadataError:
    return InvalidMetadataError(
        f"column {field.name!r}: expected {TYPE_CHANGES_KEY} to be a list of objects with "
        f"fromType and toType, found {entry!r}"
    )


# --- Changes of single columns: adding, dropping, renaming, moving, and changing the type


Where = Literal["first", "last"] | tuple[Literal["after"], str]


def add_column(
    schema: StructType, field: Field, *, parent: str | Path = (), where: Where = "last"
) -> StructType:
    """Return the schema with a new column, or a new field in the struct at `parent`.

    Raises:
        InvalidInputError: the name exists already, the parent is not a struct, or the column to
            insert after does not exist.
    """

    def add(struct: StructType) -> StructType:
        if known := struct.fields_named(field.name):
            name = known[0].name
            problem = "it exists already"
            if name != field.name:
                problem = f"the column {name!r} exists already, and differs only in case"
            raise InvalidInputError(f"cannot add the column {field.name!r}: {problem}")
        return StructType(_insert(struct.fields, new_field(field), where))

    return _edit_struct(schema, parent, add)


def drop_column(schema: StructType, path: str | Path) -> StructType:
    """Return the schema without a column or nested field.

    Raises:
        InvalidInputError: the column does not exist, or is the only field of its struct.
    """
    *parent, name = canonical_path_of(schema, path)

    def drop(struct: StructType) -> StructType:
        if len(struct) == 1:
            raise InvalidInputError(f"cannot drop {name!r}: a struct needs at least one field")
        return StructType([field for field in struct.fields if field.name != name])

    return _edit_struct(schema, tuple(parent), drop)


def rename_column(schema: StructType, path: str | Path, new_name: str) -> StructType:
    """Return the schema with another logical name for a column or nested field.

    Raises:
        InvalidInputError: the column does not exist, or the new name exists already.
    """
    *parent, name = canonical_path_of(schema, path)

    def rename(struct: StructType) -> StructType:
        taken = {name_key(field.name) for field in struct.fields if field.name != name}
        if name_key(new_name) in taken:
            raise InvalidInputError(f"cannot rename {name!r} to {new_name!r}: the name is taken")
        return _replace_field(struct, name, lambda field: renamed(field, new_name))

    return _edit_struct(schema, tuple(parent), rename)


def move_column(schema: StructType, path: str | Path, where: Where) -> StructType:
    """Return the schema with a column or nested field moved to another position in its struct.

    Raises:
        InvalidInputError: a column does not exist.
    """
    *parent, name = canonical_path_of(schema, path)

    def move(struct: StructType) -> StructType:
        (moved,) = [field for field in struct.fields if field.name == name]
        others = tuple(field for field in struct.fields if field.name != name)
        return StructType(_insert(others, moved, where))

    return _edit_struct(schema, tuple(parent), move)


def change_field(
    schema: StructType, path: str | Path, change: Callable[[Field], Field]
) -> StructType:
    """Return the schema with one struct field replaced: its comment, default or nullability.

    Raises:
        InvalidInputError: the column does not exist, or the path ends inside a list or map.
    """
    *parent, name = canonical_path_of(schema, path)
    return _edit_struct(schema, tuple(parent), lambda struct: _replace_field(struct, name, change))


def change_type(schema: StructType, path: str | Path, to_type: DataType) -> StructType:
    """Return the schema with a wider type at a path, which may end in `element`, `key` or `value`.

    The nearest struct field records the change. A void column may become any type, and the change
    is not recorded.

    Raises:
        InvalidInputError: the column does not exist, or the new type is not wider.

    Protocol: Writer Requirements for Type Widening
    """
    canonical = canonical_path_of(schema, path)
    before = find_field(schema, canonical).type
    if before == to_type:
        return schema
    if before != VOID and not is_widening(before, to_type):
        raise InvalidInputError(
            f"cannot change the type of {'.'.join(canonical)!r} from {before} to {to_type}: "
            "it is not a wider type; write the data to a new column"
        )
    depth = _depth_of_field(schema, canonical)
    inner = canonical[depth:]

    def widen(field: Field) -> Field:
        widened = replace(field, type=_edit_type(field.type, inner, lambda _: to_type))
        if before == VOID:
            return widened
        return with_change(widened, TypeChange(before, to_type, inner))

    return change_field(schema, canonical[:depth], widen)


def _insert(fields: Sequence[Field], field: Field, where: Where) -> list[Field]:
    if where == "first":
        return [field, *fields]
    if where == "last":
        return [*fields, field]
    given: object = where
    if not (isinstance(given, tuple) and len(given) == 2 and given[0] == "after"):
        raise InvalidInputError(
            f"where: expected 'first', 'last' or ('after', name), found {where!r}"
        )
    _, name = where
    at = canonical_path_of(StructType(fields), (name,))[0]
    place = 1 + [other.name for other in fields].index(at)
    return [*fields[:place], field, *fields[place:]]


def _replace_field(struct: StructType, name: str, change: Callable[[Field], Field]) -> StructType:
    if name not in struct.names:
        raise InvalidInputError(f"there is no column {name!r}")
    return StructType([change(field) if field.name == name else field for field in struct.fields])


def _edit_struct(
    schema: StructType, parent: str | Path, change: Callable[[StructType], StructType]
) -> StructType:
    path = canonical_path_of(schema, parent) if parent else ()

    def edit(found: DataType) -> DataType:
        if not isinstance(found, StructType):
            raise InvalidInputError(f"{found} has no fields: expected a struct")
        return change(found)

    result = _edit_type(schema, path, edit)
    return result if isinstance(result, StructType) else schema


def _edit_type(data_type: DataType, path: Path, change: Callable[[DataType], DataType]) -> DataType:
    if not path:
        return change(data_type)
    return _set_child(data_type, path[0], lambda child: _edit_type(child, path[1:], change))


def _set_child(data_type: Any, name: str, change: Callable[[DataType], DataType]) -> DataType:
    match data_type:
        case StructType():
            return _replace_field(
                data_type, name, lambda field: replace(field, type=change(field.type))
            )
        case ArrayType():
            return replace(data_type, element_type=change(data_type.element_type))
        case MapType() if name == "key":
            return replace(data_type, key_type=change(data_type.key_type))
        case MapType():
            return replace(data_type, value_type=change(data_type.value_type))
        case _:
            raise InvalidInputError(f"{data_type} has no field {name!r}")


def _depth_of_field(schema: StructType, path: Path) -> int:
    """Return the number of path elements up to and including the last struct field."""
    current: DataType = schema
    depth = 0
    for at, segment in enumerate(path, start=1):
        if isinstance(current, StructType):
            depth = at
        current = find_field(StructType([Field("x", current)]), ("x", segment)).type
    return depth
