"""What the members of a deletion vector descriptor may be, for one and for a column of them.

Owns the rules, once as a check of values and once as kernels over a column. A descriptor that
breaks one must not be used: counts use `cardinality` alone, and reconciliation takes a file with an
unreadable vector for the file without one, so rows would be wrong without an error.

Protocol: Deletion Vector Descriptor Schema
"""

from __future__ import annotations

from functools import reduce
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa

from deltalog._json import JsonObject
from deltalog.actions.model import DeletionVectorDescriptor
from deltalog.errors import InternalError, UnsupportedFeatureError
from deltalog.kernels import compute, pc

if TYPE_CHECKING:
    from collections.abc import Iterable

    from deltalog.kernels import Array

STORAGE_TYPES: Final = ("u", "i", "p")
REQUIRED: Final = ("storageType", "pathOrInlineDv", "sizeInBytes", "cardinality")
_NUMBERS: Final = {"offset": 31, "sizeInBytes": 31, "cardinality": 63}
"""Members that are never negative, with the bits that they may have."""
_TYPES: Final = {
    **dict.fromkeys(REQUIRED[:2], (str,)),
    **dict.fromkeys(REQUIRED[2:], (int,)),
    **dict.fromkeys(("offset", "maxRowIndex"), (int, type(None))),
}


def descriptor_from_json(node: JsonObject) -> DeletionVectorDescriptor:
    """The descriptor of one JSON object, checked.

    Raises:
        MalformedLogError: a member is missing, has a wrong type, or a value that it cannot have;
            the message names it.
        UnsupportedFeatureError: the storage type belongs to an unsupported table feature.
    """
    kind = node.required("storageType", str)
    check_storage_type(kind)
    if kind not in STORAGE_TYPES:
        raise node.error(f"{node.where}.storageType: expected 'u', 'i' or 'p', found {kind!r}")
    text = node.required("pathOrInlineDv", str)
    if not text:
        raise node.error(f"{node.where}.pathOrInlineDv: expected a text, found an empty one")
    for name, bits in _NUMBERS.items():
        found = node.optional(name, int)
        if found is not None and not 0 <= found < 2**bits:
            raise node.error(f"{node.where}.{name}: expected 0 to 2^{bits} - 1, found {found}")
    return DeletionVectorDescriptor(
        storage_type=kind,
        path_or_inline_dv=text,
        offset=node.optional("offset", int),
        size_bytes=node.required("sizeInBytes", int),
        cardinality=node.required("cardinality", int),
        max_row_index=node.optional("maxRowIndex", int),
    )


def check_storage_type(storage_type: str) -> None:
    """Refuse by name a storage type that belongs to an unsupported table feature.

    Raises:
        UnsupportedFeatureError: it is `r`, which the adaptive metadata RFC proposes.
    """
    if storage_type == "r":
        raise UnsupportedFeatureError(
            table="a table with deletion vectors of storage type 'r'",
            version=None,
            operation="read",
            features=["adaptiveMetadata-preview"],
        )


def have_exact_types(objects: Iterable[dict[str, Any]]) -> bool:
    """Whether all members have their JSON type; Arrow would cut `3.5` to 3 without an error."""
    return all(
        type(value.get(name)) in types for value in objects for name, types in _TYPES.items()
    )


def are_sound(vectors: Array) -> bool:
    """Whether every descriptor of a column has values that it can have.

    Args:
        vectors: of `DELETION_VECTOR_TYPE`; null rows are files without a vector.

    Cost: a few kernels over the column; none if it has no vector.
    """
    if vectors.null_count == len(vectors):
        return True
    return pc.all(_which_are_sound(vectors)).as_py() is not False


def check_column(vectors: Array, where: str) -> None:
    """Refuse a column that holds a descriptor with a value that it cannot have.

    Args:
        vectors: of `DELETION_VECTOR_TYPE`; null rows are files without a vector.
        where: what holds the column, for the message.

    Raises:
        MalformedLogError, UnsupportedFeatureError: as `descriptor_from_json`.
    """
    if are_sound(vectors):
        return
    row = pc.index(_which_are_sound(vectors), pa.scalar(value=False)).as_py()
    at = f"{where}, row {row}: deletionVector"
    descriptor_from_json(JsonObject(vectors[row].as_py(), at))
    raise InternalError(f"{at} breaks a rule for columns, and none for values")


def _which_are_sound(vectors: Array) -> Array:
    kind, text = (compute.struct_field(vectors, name) for name in REQUIRED[:2])
    rules: list[Array] = [
        compute.is_in(kind, value_set=pa.array(STORAGE_TYPES)),
        compute.not_equal(text, ""),
    ]
    for name in _NUMBERS:
        number = compute.struct_field(vectors, name)
        # A required number that is null breaks the rule, an optional one does not.
        default = pa.scalar(value=name not in REQUIRED)
        rules.append(compute.fill_null(compute.greater_equal(number, 0), default))
    sound: Array = compute.fill_null(reduce(compute.and_, rules), pa.scalar(value=False))
    return compute.or_(compute.is_null(vectors), sound)
