"""Converting schemas to the JSON of `schemaString`, and back.

Contains the stored form of types and fields. The names of unknown types are preserved, and so is
all field metadata in its order.

Protocol: Schema Serialization Format
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final

from deltalog._util.json import dumps, loads
from deltalog.errors import InvalidInputError, InvalidMetadataError, MalformedLogError
from deltalog.schema.interchange import FORMS, Form
from deltalog.schema.primitives import primitive_named
from deltalog.schema.types import (
    ArrayType,
    Field,
    MapType,
    PrimitiveType,
    StructType,
    UnknownType,
    VariantType,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from deltalog.schema.types import DataType


MAX_LEVELS: Final = 90
"""The maximum nesting depth. Parquet readers accept 100 levels, but statistics need a few more."""
TOO_DEEP: Final = (
    f"expected types of at most {MAX_LEVELS} levels, because Parquet readers accept no more (a "
    "struct counts as one, a list or map as two)"
)
_LEVELS: Final = {"struct": 1, "array": 2, "map": 2}
_MOST_TYPES: Final = 1000
_CHILDREN: Final = ("type", "fields", "elementType", "keyType", "valueType")


def parse_schema(text: str) -> StructType:
    """Parse a `schemaString`.

    Raises:
        InvalidMetadataError: the string is not the JSON of a struct; the message contains the path.

    Protocol: Schema Serialization Format
    """
    tree = _loads(text)
    schema = _type_from_tree(tree, "schemaString")
    if not isinstance(schema, StructType):
        raise InvalidMetadataError(f"schemaString: expected a struct, found {str(schema)!r}")
    return schema


def parse_type(text: str) -> DataType:
    """Parse the JSON of a type, such as `"long"` or `{"type":"array",…}`.

    Raises:
        InvalidMetadataError: the string is not the JSON of a type.
    """
    return _type_from_tree(_loads(text), "type")


def encode_schema(schema: StructType) -> str:
    """Return the schema as one line of JSON, with the same bytes as Spark writes.

    Raises:
        InvalidInputError: the types are nested too deeply for Parquet readers.

    Protocol: Schema Serialization Format
    """
    tree = _tree_of(schema)
    if _levels(tree) > MAX_LEVELS:
        raise InvalidInputError(f"cannot store the schema: {TOO_DEEP}")
    return _dumps(tree)


def encode_type(data_type: DataType) -> str:
    """Return a type as one line of JSON."""
    return _dumps(_tree_of(data_type))


def _loads(text: str) -> Any:
    try:
        return loads(text)
    except MalformedLogError as error:
        raise InvalidMetadataError(f"schemaString: expected JSON, found {text!r}") from error


def _levels(tree: Any) -> int:
    """Return the depth of a type's tree, without recursion, because the tree may be very deep."""
    deepest, left = 0, [(tree, 0)]
    while left:
        node, level = left.pop()
        deepest = max(deepest, level)
        if isinstance(node, list):
            left += [(child, level) for child in node]
        elif isinstance(node, dict):
            kind = node.get("type")
            inner = level + (_LEVELS.get(kind, 0) if isinstance(kind, str) else 0)
            left += [(node[key], inner) for key in _CHILDREN if key in node]
    return deepest


def _dumps(tree: Any) -> str:
    return dumps(tree).decode()


def _type_from_tree(tree: Any, where: str, level: int = 0) -> DataType:
    """Return the type that a parsed JSON tree describes.

    Args:
        tree: the parsed JSON.
        where: the position of the tree in the schema, for error messages.
        level: the number of types around the tree.
    """
    if isinstance(tree, str):
        return _named_type(tree, where)
    if isinstance(tree, dict):
        kind = tree.get("type")
        if isinstance(kind, str):
            parse = _NESTED.get(kind)
            if parse is not None:
                level += _LEVELS[kind]
                _check_level(level)
                return parse(tree, where, level)
            if len(tree) == 1:
                return _named_type(kind, where)
            _check_level(level + _levels(tree))
            return UnknownType(kind, _dumps(tree))
    raise InvalidMetadataError(
        f"{where}: expected a type, such as 'long' or {{'type': 'struct', 'fields': […]}}, found "
        f"{tree!r}"
    )


def _check_level(level: int) -> None:
    if level > MAX_LEVELS:
        raise InvalidMetadataError(f"schemaString: {TOO_DEEP}")


def _named_type(name: str, where: str) -> DataType:
    if name == "variant":
        return VariantType()
    try:
        return _primitive_type(name)
    except InvalidInputError as error:
        known = primitive_named(name.partition("(")[0])
        # Invalid parameters of a known type are an error. An unknown type is not an error, because
        # a newer version of the protocol may define it.
        if known is not None and known.canonical is not None and not known.feature:
            raise InvalidMetadataError(f"{where}: {error}") from error
        return UnknownType(name)


@lru_cache(_MOST_TYPES)
def _primitive_type(name: str) -> PrimitiveType:
    return PrimitiveType(name)


def _struct(tree: dict[str, Any], where: str, level: int) -> StructType:
    fields = _required(tree, "fields", list, where)
    return StructType(
        [_field_from_tree(field, f"{where}.fields[{at}]", level) for at, field in enumerate(fields)]
    )


def _array(tree: dict[str, Any], where: str, level: int) -> ArrayType:
    return ArrayType(_child(tree, "elementType", where, level), _flag(tree, "containsNull", where))


def _map(tree: dict[str, Any], where: str, level: int) -> MapType:
    return MapType(
        _child(tree, "keyType", where, level),
        _child(tree, "valueType", where, level),
        _flag(tree, "valueContainsNull", where),
    )


_NESTED: Final[dict[str, Callable[[dict[str, Any], str, int], DataType]]] = {
    "struct": _struct,
    "array": _array,
    "map": _map,
}


def _field_from_tree(tree: Any, where: str, level: int = 0) -> Field:
    if not isinstance(tree, dict):
        raise InvalidMetadataError(f"{where}: expected an object, found {tree!r}")
    name = _required(tree, "name", str, where)
    metadata = tree.get("metadata")
    if metadata is not None and not isinstance(metadata, dict):
        raise InvalidMetadataError(f"{where}.metadata: expected an object, found {metadata!r}")
    return Field(
        name,
        _child(tree, "type", f"{where} ({name})", level),
        nullable=_flag(tree, "nullable", where),
        metadata=metadata or {},
    )


def _child(tree: dict[str, Any], key: str, where: str, level: int) -> DataType:
    if key not in tree:
        raise InvalidMetadataError(f"{where}.{key}: expected a type, found nothing")
    return _type_from_tree(tree[key], f"{where}.{key}", level)


def _required(tree: dict[str, Any], key: str, kind: type, where: str) -> Any:
    value = tree.get(key)
    if not isinstance(value, kind):
        raise InvalidMetadataError(f"{where}.{key}: expected {kind.__name__}, found {value!r}")
    return value


def _flag(tree: dict[str, Any], key: str, where: str) -> bool:
    # If the flag is missing, it is true: an example in the protocol has no `valueContainsNull`.
    value = tree.get(key)
    if value is not None and not isinstance(value, bool):
        raise InvalidMetadataError(f"{where}.{key}: expected bool, found {value!r}")
    return True if value is None else value


def _tree_of(value: DataType | Field) -> Any:
    match value:
        case Field():
            return {
                "name": value.name,
                "type": _tree_of(value.type),
                "nullable": value.nullable,
                "metadata": dict(value.metadata),
            }
        case StructType():
            return {"type": "struct", "fields": [_tree_of(field) for field in value.fields]}
        case ArrayType():
            return {
                "type": "array",
                "elementType": _tree_of(value.element_type),
                "containsNull": value.contains_null,
            }
        case MapType():
            return {
                "type": "map",
                "keyType": _tree_of(value.key_type),
                "valueType": _tree_of(value.value_type),
                "valueContainsNull": value.value_contains_null,
            }
        case UnknownType():
            return value.name if value.definition is None else loads(value.definition)
        case _:
            return value.type


def _to_json(value: Any) -> str:
    return _dumps(_tree_of(value))


def _from_json(text: str, kind: type[Any]) -> Any:
    tree = _loads(text)
    return _field_from_tree(tree, "field") if kind is Field else _type_from_tree(tree, "type")


FORMS["json"] = Form(_to_json, _from_json)
