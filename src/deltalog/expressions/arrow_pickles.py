"""pyarrow's expressions, taken apart and put together by way of their pickles.

pyarrow shows neither the function of an expression nor its arguments. But it pickles an expression
as a file of Arrow with one row: a column for each constant, and the expression as pairs in the
schema's metadata, in which an argument stands between a `call` and its `end`. Unlike Substrait,
whose messages double with every function that is inside of another, a pickle is as long as the
expression.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa

from deltalog.errors import InvalidInputError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from deltalog.kernels import pc

_CHAINS: Final = frozenset({"and_kleene", "or_kleene", "and", "or"})
_MOST_OPERANDS: Final = 64
SAFE_DEPTH: Final = 3 * _MOST_OPERANDS
"""How deep Arrow follows an expression on any thread: it takes about 1 KiB of stack for a level."""

_Pair = tuple[bytes, bytes]


@dataclass(slots=True, eq=False)
class FilterPart:
    """A call, a column or a constant.

    Args:
        function: the name of the function of a call.
        path: names of a column and of the fields inside it.
        column: of a constant the column that has it; of a call that of its options.
        parts: the arguments of a call.
    """

    function: str | None = None
    path: tuple[str, ...] = ()
    column: int | None = None
    parts: list[FilterPart] = field(default_factory=list)

    @property
    def is_column(self) -> bool:
        """Whether the part is a column."""
        return bool(self.path)

    @property
    def is_constant(self) -> bool:
        """Whether the part is a constant."""
        return self.function is None and not self.path

    def operands(self) -> list[FilterPart]:
        """The arguments; of AND and OR those of all that are nested in it, as Arrow takes them."""
        if self.function not in _CHAINS:
            return self.parts
        found: list[FilterPart] = []
        waiting = [self]
        while waiting:
            part = waiting.pop()
            if part.function == self.function:
                waiting += reversed(part.parts)
            else:
                found.append(part)
        return found


class Pickled:
    """An expression of pyarrow as a tree.

    Args:
        expression: any.

    Raises:
        InvalidInputError: pyarrow cannot pickle it, such as one that names columns by number.
    """

    def __init__(self, expression: pc.Expression) -> None:
        pickled: Any
        try:
            pickled = expression.__reduce__()
            self._make: Callable[[pa.Buffer], Any] = pickled[0]
            self._constants = pa.ipc.open_file(pickled[1][0]).read_all().combine_chunks()
            self.root: FilterPart = _tree(_pairs(self._constants.schema))
        except (pa.ArrowException, NotImplementedError, struct.error, IndexError) as error:
            raise InvalidInputError(
                f"cannot read the pyarrow expression {expression}: {error}"
            ) from error

    def constant(self, part: FilterPart) -> pa.Scalar[Any]:
        """The value of a constant, or the options of a call as a struct."""
        assert part.column is not None  # noqa: S101  # a constant has one, as has a call that is asked
        found: pa.Scalar[Any] = self._constants.column(part.column)[0]
        return found

    def expression(self, part: FilterPart) -> pc.Expression:
        """A part as an expression of pyarrow."""
        pairs: list[_Pair] = []
        columns: list[int] = []

        waiting: list[FilterPart | _Pair] = [part]
        while waiting:
            one = waiting.pop()
            if isinstance(one, tuple):
                pairs.append(one)
                continue
            number = str(len(columns)).encode()
            if one.column is not None:
                columns.append(one.column)
            if one.is_constant:
                pairs.append((b"literal", number))
            elif one.function is not None:
                name = one.function.encode()
                pairs.append((b"call", name))
                options = [] if one.column is None else [(b"options", number)]
                waiting += [(b"end", name), *options, *reversed(one.parts)]
            else:
                if len(one.path) > 1:
                    pairs.append((b"nested_field_ref", str(len(one.path)).encode()))
                pairs += [(b"field_ref", name.encode()) for name in one.path]
        fields = [self._constants.schema.field(place) for place in columns]
        metadata: Any = pa.KeyValueMetadata(pairs)  # type: ignore[arg-type]  # it takes pairs too
        schema = pa.schema(fields, metadata=metadata)
        arrays: Any = [self._constants.column(place).chunk(0) for place in columns]
        sink = pa.BufferOutputStream()
        with pa.ipc.new_file(sink, schema) as writer:
            writer.write_batch(_one_row(arrays, schema))
        found: pc.Expression = self._make(sink.getvalue())
        return found


def _one_row(arrays: Sequence[pa.Array[Any]], schema: pa.Schema) -> pa.RecordBatch:
    if arrays:
        return pa.RecordBatch.from_arrays(list(arrays), schema=schema)
    row: Any = pa.Array.from_buffers(pa.struct([]), 1, [None], children=[])
    return pa.RecordBatch.from_struct_array(row).replace_schema_metadata(schema.metadata)


def depth(root: FilterPart) -> int:
    """How deep Arrow follows the tree: it folds each chain of AND or OR from its first operand."""
    deepest, waiting = 0, [(root, 1)]
    while waiting:
        part, above = waiting.pop()
        inner = part.operands()
        level = above + (len(inner) if part.function in _CHAINS else 1)
        deepest = max(deepest, level)
        waiting += [(one, level) for one in inner]
    return deepest


def shallow(root: FilterPart) -> FilterPart:
    """The same condition, in which a long chain of AND or OR is one of shorter chains.

    Arrow folds what is nested in a chain into one chain again, unless something stands between:
    NOT twice, which changes nothing.
    """
    done: dict[int, FilterPart] = {}
    waiting = [(root, False)]
    while waiting:
        part, is_ready = waiting.pop()
        inner = part.operands()
        if not is_ready:
            waiting.append((part, True))
            waiting += [(one, False) for one in inner]
            continue
        parts = [done[id(one)] for one in inner]
        if part.function in _CHAINS:
            done[id(part)] = _in_groups(part.function, parts)
        elif part.function is not None:
            done[id(part)] = FilterPart(part.function, column=part.column, parts=parts)
        else:
            done[id(part)] = part
    return done[id(root)]


def _in_groups(function: str, parts: list[FilterPart]) -> FilterPart:
    while len(parts) > _MOST_OPERANDS:
        groups = [
            parts[start : start + _MOST_OPERANDS] for start in range(0, len(parts), _MOST_OPERANDS)
        ]
        parts = [
            FilterPart("invert", parts=[FilterPart("invert", parts=[_chain(function, group)])])
            for group in groups
        ]
    return _chain(function, parts)


def _chain(function: str, parts: list[FilterPart]) -> FilterPart:
    found = parts[0]
    for part in parts[1:]:
        found = FilterPart(function, parts=[found, part])
    return found


def _tree(pairs: Sequence[_Pair]) -> FilterPart:
    """The tree that pairs of metadata tell."""
    holder = FilterPart("")
    stack = [holder]
    names = 0
    for key, value in pairs:
        if key == b"call":
            call = FilterPart(value.decode())
            stack[-1].parts.append(call)
            stack.append(call)
        elif key == b"end":
            stack.pop()
        elif key == b"options":
            stack[-1].column = int(value)
        elif key == b"literal":
            stack[-1].parts.append(FilterPart(column=int(value)))
        elif key == b"nested_field_ref":
            stack[-1].parts.append(FilterPart())
            names = int(value)
        elif key == b"field_ref" and names:
            last = stack[-1].parts[-1]
            last.path = (*last.path, value.decode())
            names -= 1
        elif key == b"field_ref":
            stack[-1].parts.append(FilterPart(path=(value.decode(),)))
        else:
            raise NotImplementedError(f"it has a part of another kind, {key.decode()!r}")
    return holder.parts[0]


def _pairs(schema: pa.Schema) -> list[_Pair]:
    """A schema's metadata in order; pyarrow shows it as a dictionary, of which each key is once."""
    message = schema.serialize().to_pybytes()
    # Behind the length: the offset of the table `Message`, whose third field is the `Schema`.
    start = 8
    (offset,) = struct.unpack_from("<I", message, start)
    header = _followed(message, _field(message, start + offset, 2))
    place = _field(message, header, 2)
    if not place:
        return []
    pairs = _followed(message, place)
    (count,) = struct.unpack_from("<I", message, pairs)
    found = []
    for number in range(count):
        table = _followed(message, pairs + 4 + 4 * number)
        found.append(
            (_text(message, _field(message, table, 0)), _text(message, _field(message, table, 1)))
        )
    return found


def _field(message: bytes, table: int, number: int) -> int:
    """Where a table of FlatBuffers has a field; 0 if it does not."""
    (distance,) = struct.unpack_from("<i", message, table)
    virtual = table - distance
    (size,) = struct.unpack_from("<H", message, virtual)
    place = 4 + 2 * number
    if place >= size:
        return 0
    (offset,) = struct.unpack_from("<H", message, virtual + place)
    return table + int(offset) if offset else 0


def _followed(message: bytes, place: int) -> int:
    (offset,) = struct.unpack_from("<I", message, place)
    return place + int(offset)


def _text(message: bytes, place: int) -> bytes:
    if not place:
        return b""
    start = _followed(message, place)
    (size,) = struct.unpack_from("<I", message, start)
    return message[start + 4 : start + 4 + size]
