"""Converting pyarrow's filters of any size to expressions.

Owns AND, OR, NOT and tests for NULL, of which long filters are made, and comparisons of a column
with a constant of its type. What they hold otherwise is converted by way of Substrait, whose
messages double with each function that is inside of another; so that is asked for small parts only.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
import pyarrow.types as pt

from deltalog.errors import InvalidInputError
from deltalog.expressions import nodes
from deltalog.expressions.arrow_pickles import SAFE_DEPTH, FilterPart, Pickled, depth, shallow
from deltalog.expressions.nodes import Column, Expression, Literal
from deltalog.expressions.substrait import COMPARISONS, InexactPartError, comparison, converted
from deltalog.expressions.trees import conjunction, fold_tree

if TYPE_CHECKING:
    from collections.abc import Iterator

    from deltalog.kernels import pc

_MOST_NESTED: Final = 6
_MOST_SHOWN: Final = 1_000


def from_arrow_expression(expression: pc.Expression, schema: pa.Schema) -> Expression:
    """The condition as an expression, not resolved yet.

    Args:
        expression: a pyarrow filter.
        schema: of the columns that it names, by exact name.

    Raises:
        InvalidInputError: pyarrow cannot serialise it, or a part has no exact counterpart.
    """
    try:
        filter_ = _Filter(expression, schema)
        return filter_.found(filter_.root)
    except InexactPartError as error:
        raise InvalidInputError(
            f"cannot read the pyarrow expression {_shown(expression)}: {error} has no exact "
            'counterpart; write it as SQL or with deltalog.col("…")'
        ) from error


def weaker_than_arrow_expression(expression: pc.Expression, schema: pa.Schema) -> Expression | None:
    """A condition that is true wherever the filter is, and maybe elsewhere; None if there is none.

    Operands of an outer AND that have no exact counterpart are left out.

    Args:
        expression: a pyarrow filter.
        schema: of the columns that it names, by exact name.
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
    """The same filter, so that Arrow can follow it: it ends the process where one is too deep.

    Raises:
        InvalidInputError: it is too deep in another way than by a long chain of AND or OR.
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
            f"nested {deep:,} deep, and Arrow can follow {SAFE_DEPTH * 4:,}; write it as SQL or "
            'with deltalog.col("…")'
        )
    return pickled.expression(root)


def _shown(expression: pc.Expression) -> str:
    text = str(expression)
    return text if len(text) <= _MOST_SHOWN else f"{text[:_MOST_SHOWN]}…"


class _Filter:
    """A filter, and what its small parts are converted to."""

    def __init__(self, expression: pc.Expression, schema: pa.Schema) -> None:
        self._schema = schema
        self._leaves: dict[int, Expression | InexactPartError] = {}
        try:
            self._pickled = Pickled(expression)
        except InvalidInputError as error:
            self.root = FilterPart()
            if str(expression).count("(") > _MOST_NESTED:
                raise InexactPartError(f"{error};") from error
            self._leaves[id(self.root)] = converted([expression], schema)[0]
            return
        self.root = self._pickled.root
        self._convert_leaves()

    def conjuncts(self) -> list[FilterPart]:
        """The operands of the outer AND."""
        return self.root.operands() if self.root.function == "and_kleene" else [self.root]

    def found(self, root: FilterPart) -> Expression:
        """A part as an expression.

        Raises:
            InexactPartError: it has none.
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
        # Of a column Arrow says more: what of NaN, and that of a struct.
        is_of_call = len(part.parts) == 1 and part.parts[0].function is not None
        if part.function == "is_null" and is_of_call:
            options: Any = None if part.column is None else self._pickled.constant(part)
            return options is None or not options["nan_is_null"].as_py()
        return part.function == "is_valid" and is_of_call

    def _compared(self, part: FilterPart) -> Expression | None:
        """A column compared with a constant of its type; None if the part is something else."""
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
        """A column or constant of a plain type, and the type."""
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
        except (OverflowError, ValueError):  # a date outside of the years 1 to 9999
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
    """Whether equal values of the type are one Python value, which `Literal` takes for that."""
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
