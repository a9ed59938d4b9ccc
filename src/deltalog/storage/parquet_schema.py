"""What a Parquet schema says of stored values, in whichever way a writer has said it.

Two columns with equal elements store equal values alike.

Protocol: none; Apache Parquet's `parquet.thrift` (SchemaElement, LogicalType, ConvertedType)
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple

from deltalog.storage import thrift, thrift_fields
from deltalog.storage.thrift import Struct

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

_REPEATED: Final = 2
_FIXED: Final = 7
Annotation = tuple[Any, ...] | None
# Old annotations, as the newer ones.
_CONVERTED: Final[dict[int, Annotation]] = {
    0: (1, ()),
    1: (2, ()),
    2: None,
    3: (3, ()),
    4: (4, ()),
    5: (5,),
    6: (6, ()),
    9: (8, ((1, True), (2, ((1, ()),)))),
    10: (8, ((1, True), (2, ((2, ()),)))),
    17: None,
    18: None,
    19: (12, ()),
    20: (13, ()),
}
_PLAIN_INTEGERS: Final = {1: b"\x20", 2: b"\x40"}  # physical type → its width in bits


class SchemaElement(NamedTuple):
    """A column or a group of columns, as far as it says what stored values mean.

    Attributes:
        name: of the column.
        physical: number of the physical type; None is a group.
        length: of values of fixed length.
        repetition: whether it is required, optional or repeated.
        num_children: of a group.
        field_id: None is none.
        annotation: the logical type, in whichever way the writer has stored it.
    """

    name: bytes
    physical: int | None
    length: int | None
    repetition: int | None
    num_children: int
    field_id: int | None
    annotation: Annotation


def element_of(fields: Struct) -> SchemaElement:
    """Return what an element of a footer's schema says."""
    physical = thrift_fields.number(fields, 1)
    field_id = thrift_fields.number(fields, 9)
    return SchemaElement(
        name=thrift_fields.text(fields, 4),
        physical=physical,
        length=thrift_fields.number(fields, 2) if physical == _FIXED else None,
        repetition=thrift_fields.number(fields, 3),
        num_children=thrift_fields.number(fields, 5) or 0,
        field_id=None if field_id is None or field_id < 0 else field_id,
        annotation=_annotation(fields, physical),
    )


def _annotation(fields: Struct, physical: int | None) -> Annotation:
    logical = fields.get(10)
    converted = thrift_fields.number(fields, 6)
    if logical is not None:
        ((kind, value),) = _plain(logical.value)
        if kind == 5:
            return (
                5,
                *(
                    thrift_fields.number(thrift_fields.struct(logical.value, 5), n) or 0
                    for n in (1, 2)
                ),
            )
        if kind == 10 and value == ((1, _PLAIN_INTEGERS.get(physical or 0)), (2, True)):
            return None
        return (kind, value)
    if converted is None:
        return None
    if converted == 5:
        return (5, thrift_fields.number(fields, 7) or 0, thrift_fields.number(fields, 8) or 0)
    return _CONVERTED.get(converted, ("converted", converted))


def _plain(value: Any) -> Any:
    """A value of Thrift that can be compared, whatever integers it was stored as."""
    if isinstance(value, dict):
        return tuple((number, _plain(value[number].value)) for number in sorted(value))
    if isinstance(value, thrift.Elements):
        return tuple(map(_plain, value.values))
    return value


def flat_leaves(schema: Sequence[SchemaElement]) -> Iterator[bool]:
    """Yield for each leaf column whether it has one value for each row."""

    def below(position: int, *, is_flat: bool) -> tuple[list[bool], int]:
        element = schema[position]
        is_flat = is_flat and element.repetition != _REPEATED
        position += 1
        if not element.num_children:
            return [is_flat], position
        found: list[bool] = []
        for _ in range(element.num_children):
            inner, position = below(position, is_flat=is_flat)
            found += inner
        return found, position

    position = 0
    while position < len(schema):
        found, position = below(position, is_flat=True)
        yield from found
