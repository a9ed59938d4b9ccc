"""Converting pyarrow filters of any size to expressions.

Converts AND, OR, NOT, tests for NULL, and comparisons of a column with a constant of its type.
Other parts are converted through Substrait. A Substrait message doubles in size with each nested
function, so only small parts are converted through it.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
import pyarrow.types as pt

from deltalog._util.similar_names import similar_to
from deltalog.errors import InvalidInputError
from deltalog.expressions import nodes
from deltalog.expressions.nodes import Column, Expression, Literal
from deltalog.expressions.substrait import (
    COMPARISONS,
    InexactPartError,
    MissingColumnError,
    comparison,
    converted,
)
from deltalog.expressions.trees import conjunction, fold_tree
from deltalog.schema.metadata_columns import METADATA, METADATA_COLUMNS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from deltalog._util.kernels import pc

_MOST_NESTED: Final = 6
_MOST_SHOWN: Final = 1_000


def from_arrow_expression(expression: pc.Expression, schema: pa.Schema) -> Expression:
    """Convert a pyarrow filter to an unresolved expression.

    Args:
        expression: a pyarrow filter.
        schema: the schema of the columns; the filter names them exactly.

    Raises:
        InvalidInputError: pyarrow cannot serialise the filter, or a part has no exact counterpart.
    """
    try:
        filter_ = _Filter(expression, schema)
        return filter_.found(filter_.root)
    except MissingColumnError as error:
        names = [name for name in schema.names if name not in {METADATA, *METADATA_COLUMNS}]
        hint = similar_to(str(error), names) or f": the columns are {', '.join(map(repr, names))}"
        raise InvalidInputError(f"there is no column {str(error)!r}{hint}") from error
    except InexactPartError as error:
        raise InvalidInputError(
            f"cannot read the pyarrow expression {_shown(expression)}: {error} has no exact "
            'counterpart; write it as SQL or with deltalog.col("…")'
        ) from error


def weaker_than_arrow_expression(expression: pc.Expression, schema: pa.Schema) -> Expression | None:
    """Return a condition that is true for at least the rows that the filter selects, or None.

    Operands of the outermost AND that have no exact counterpart are left out.

    Args:
        expression: a pyarrow filter.
        schema: the schema of the columns; the filter names them exactly.
    """
    try:
        filter_ = _Filter(expression, schema)
    except InexactPartError:
        return None
    found = []
    for part in filter_.conjuncts():
        try:
            found.append(filter_.found(part))
        except InexactPartError:
            continue
    return conjunction(found) if found else None


def for_arrow(expression: pc.Expression) -> pc.Expression:
    """Return an equivalent filter that is nested less deeply; Arrow crashes on deep nesting.

    Raises:
        InvalidInputError: the filter is too deep for a reason other than long chains of AND or OR.
    """
    try:
        pickled = Pickled(expression)
    except InvalidInputError:
        return expression
    if depth(pickled.root) <= SAFE_DEPTH:
        return expression
    root = shallow(pickled.root)
    if (deep := depth(root)) > SAFE_DEPTH * 4:
        raise InvalidInputError(
            f"cannot filter by the pyarrow expression {_shown(expression)}: its functions are "
            f"nested {deep:,} deep, but Arrow supports {SAFE_DEPTH * 4:,} levels; write it as SQL "
            'or with deltalog.col("…")'
        )
    return pickled.expression(root)


def filter_text(expression: pc.Expression) -> str | None:
    """Return a pyarrow expression as a string; None if pyarrow cuts a long string in a character.

    pyarrow shortens lists of long strings without regard to the bytes of a character.
    """
    try:
        return str(expression)
    except UnicodeDecodeError:
        return None


def _shown(expression: pc.Expression) -> str:
    text = filter_text(expression)
    if text is None:
        return "with long strings"
    return text if len(text) <= _MOST_SHOWN else f"{text[:_MOST_SHOWN]}…"


class _Filter:
    """A filter together with the converted forms of its small parts."""

    def __init__(self, expression: pc.Expression, schema: pa.Schema) -> None:
        self._schema = schema
        self._leaves: dict[int, Expression | InexactPartError] = {}
        try:
            self._pickled = Pickled(expression)
        except InvalidInputError as error:
            self.root = FilterPart()
            text = filter_text(expression)
            if text is None or text.count("(") > _MOST_NESTED:
                raise InexactPartError(f"a filter that is nested so deeply ({error})") from error
            self._leaves[id(self.root)] = converted([expression], schema)[0]
            return
        self.root = self._pickled.root
        self._convert_leaves()

    def conjuncts(self) -> list[FilterPart]:
        """Return the operands of the outermost AND."""
        return self.root.operands() if self.root.function == "and_kleene" else [self.root]

    def found(self, root: FilterPart) -> Expression:
        """Convert a part to an expression.

        Raises:
            InexactPartError: the part has no exact counterpart.
        """
        return fold_tree(root, self._inner, self._combined)

    def _inner(self, part: FilterPart) -> list[FilterPart]:
        return [] if id(part) in self._leaves else part.operands()

    def _combined(self, part: FilterPart, found: list[Expression]) -> Expression:
        leaf = self._leaves.get(id(part))
        if isinstance(leaf, InexactPartError):
            raise leaf
        if leaf is not None:
            return leaf
        match part.function:
            case "and_kleene":
                return nodes.And(tuple(found))
            case "or_kleene":
                return nodes.Or(tuple(found))
            case "invert":
                return nodes.Not(found[0])
            case "is_null":
                return nodes.IsNull(found[0])
            case _:
                return nodes.Not(nodes.IsNull(found[0]))

    def _convert_leaves(self) -> None:
        waiting, others = [self.root], []
        while waiting:
            part = waiting.pop()
            if self._is_logic(part):
                waiting += part.operands()
            elif (found := self._compared(part)) is not None:
                self._leaves[id(part)] = found
            elif _is_small(part):
                others.append(part)
            else:
                self._leaves[id(part)] = InexactPartError("a function of functions")
        expressions = [self._pickled.expression(part) for part in others]
        for part, leaf in zip(others, converted(expressions, self._schema), strict=True):
            self._leaves[id(part)] = leaf

    def _is_logic(self, part: FilterPart) -> bool:
        if part.function in {"and_kleene", "or_kleene", "invert"}:
            return True
        # A test for NULL is logic only if it tests the result of a function. A test of a column is
        # a leaf, because Arrow has a special rule for fields of structs. A test that also accepts
        # NaN is a leaf, too.
        is_of_call = len(part.parts) == 1 and part.parts[0].function is not None
        if part.function == "is_null" and is_of_call:
            options: Any = None if part.column is None else self._pickled.constant(part)
            return options is None or not options["nan_is_null"].as_py()
        return part.function == "is_valid" and is_of_call

    def _compared(self, part: FilterPart) -> Expression | None:
        """Convert the comparison of a column with a constant of its type; otherwise return None."""
        operator = COMPARISONS.get(part.function or "")
        if operator is None or len(part.parts) != 2:
            return None
        sides = [self._side(one) for one in part.parts]
        if None in sides or len({side[1] for side in sides if side}) != 1:
            return None
        if part.parts[0].is_constant == part.parts[1].is_constant:
            return None
        return comparison(operator, [side[0] for side in sides if side], self._schema)

    def _side(self, part: FilterPart) -> tuple[Expression, pa.DataType] | None:
        """Convert a column or constant of a plain type to an expression; return it and its type."""
        if part.is_column:
            kind = self._type_of(part.path)
            return None if kind is None or not _is_plain(kind) else (Column(part.path), kind)
        if not part.is_constant:
            return None
        value = self._pickled.constant(part)
        if not value.is_valid or not _is_plain(value.type):
            return None
        try:
            return Literal(value.as_py()), value.type
        except (OverflowError, ValueError):  # a date or time outside of the years 1 to 9999
            return None

    def _type_of(self, path: tuple[str, ...]) -> pa.DataType | None:
        kind: Any = self._schema
        for name in path:
            if not isinstance(kind, pa.Schema | pa.StructType):
                return None
            place = kind.get_field_index(name)
            if place < 0:
                return None
            kind = kind.field(place).type
        found: pa.DataType = kind
        return found


def _is_plain(kind: pa.DataType) -> bool:
    """Whether equal values of the type are equal in Python, so that `Literal` supports them."""
    if pt.is_timestamp(kind):
        return kind.unit == "us" and kind.tz in {None, "UTC"}
    return (
        pt.is_boolean(kind) or pt.is_signed_integer(kind) or pt.is_float32(kind)
        or pt.is_float64(kind) or pt.is_string(kind) or pt.is_binary(kind) or pt.is_date32(kind)
        or pt.is_decimal128(kind)
    )  # fmt: skip


def _is_small(part: FilterPart) -> bool:
    return all(level <= _MOST_NESTED for level in _levels(part))


def _levels(root: FilterPart) -> Iterator[int]:
    waiting = [(root, 1)]
    while waiting:
        part, level = waiting.pop()
        yield level
        waiting += [(one, level + 1) for one in part.parts]


# --- Reading pyarrow's expressions from their pickles, and rebuilding them


_CHAINS: Final = frozenset({"and_kleene", "or_kleene", "and", "or"})
_MOST_OPERANDS: Final = 64
SAFE_DEPTH: Final = 3 * _MOST_OPERANDS
"""The maximum depth that Arrow can process in any thread. A level needs about 1 KiB of stack."""

_Pair = tuple[bytes, bytes]


@dataclass(slots=True, eq=False)
class FilterPart:
    """A node of a pyarrow expression: a call, a column or a constant.

    Args:
        function: the name of the function of a call.
        path: the names of a column and of the fields inside it.
        column: the index of the column that contains a constant or the options of a call.
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
        """Return the arguments; as in Arrow, directly nested ANDs or ORs are one chain."""
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
    """A pyarrow expression as a tree.

    Args:
        expression: any pyarrow expression.

    Raises:
        InvalidInputError: pyarrow cannot pickle the expression, for instance because it names
            columns by number.
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
                f"cannot read the pyarrow expression {_shown(expression)}: {error}"
            ) from error

    def constant(self, part: FilterPart) -> pa.Scalar[Any]:
        """Return the value of a constant, or the options of a call as a struct."""
        assert part.column is not None  # noqa: S101  # callers pass constants, or calls with options
        found: pa.Scalar[Any] = self._constants.column(part.column)[0]
        return found

    def expression(self, part: FilterPart) -> pc.Expression:
        """Convert a part back to a pyarrow expression."""
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
        metadata: Any = pa.KeyValueMetadata(pairs)  # type: ignore[arg-type]  # pyarrow accepts pairs, too
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
    """Return the depth of the tree in Arrow, which nests chains of AND or OR to the left."""
    deepest, waiting = 0, [(root, 1)]
    while waiting:
        part, above = waiting.pop()
        inner = part.operands()
        level = above + (len(inner) if part.function in _CHAINS else 1)
        deepest = max(deepest, level)
        waiting += [(one, level) for one in inner]
    return deepest


def shallow(root: FilterPart) -> FilterPart:
    """Return an equivalent condition whose long chains of AND or OR are split into shorter chains.

    Arrow merges directly nested chains. A double NOT between them prevents that, without changing
    the result.
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
    """Build the tree from the metadata pairs of the serialised expression."""
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
            raise NotImplementedError(f"it contains an unknown kind of part, {key.decode()!r}")
    return holder.parts[0]


def _pairs(schema: pa.Schema) -> list[_Pair]:
    """Return a schema's metadata pairs in order; pyarrow's dictionary would drop repeated keys."""
    message = schema.serialize().to_pybytes()
    # A prefix of 8 bytes precedes the offset of the table `Message`, whose third field is `Schema`.
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
    """Return the position of a field in a FlatBuffers table; 0 if the field is missing."""
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
