"""Choosing the collation of each string comparison by Spark's rules, and resolving COLLATE.

Determines the collation of every string in a resolved tree, and its strength: an explicit COLLATE
is stronger than a column's collation, which is stronger than a constant's. Columns with different
collations cannot be compared. An operation for which deltalog has no collation rule is an error.

In the resulting trees, a comparison with a collation compares keys. Where strings with a collation
are compared by bytes, the tree contains COLLATE UTF8_BINARY, so resolving it again changes nothing.

Protocol: none; Spark's `CollationTypeCoercion`
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import Any, Final, NoReturn

from deltalog.errors import InvalidInputError
from deltalog.expressions import nodes
from deltalog.expressions.comparing import DOTTED_I, TESTS, keys_of
from deltalog.expressions.functions import OF_CHARACTERS, OF_LENGTH, OF_LOCALES, OF_PARTS, TRIMS
from deltalog.expressions.nodes import Call, Collate, Column, Expression, Literal
from deltalog.expressions.render import to_sql
from deltalog.expressions.trees import (
    LOGIC,
    children,
    columns,
    fold_up,
    rebuild,
    walk,
    with_children,
)
from deltalog.schema.collations import collation_at, collation_below, own_collation
from deltalog.schema.columns import find_field, walk_types
from deltalog.schema.types import BY_BYTES, RULES, STRING, ArrayType, DataType, MapType, StructType


class _Strength(IntEnum):
    """The strength of a string's collation; the stronger of two collations is used."""

    DEFAULT = 0
    IMPLICIT = 1
    INDETERMINATE = 2
    EXPLICIT = 3


@dataclass(frozen=True, slots=True)
class _Texts:
    """The strings in a value and their collation.

    Args:
        collation: the identifier of the collation.
        strength: the strength of the collation.
        source: the part of the tree that the strings come from.
        is_nested: whether the strings are inside a list, a map or a struct.
    """

    collation: str
    strength: _Strength
    source: Expression
    is_nested: bool = False


Found = tuple[Expression, _Texts | None]
TypeOf = Callable[[Expression], DataType]


def collated(
    resolved: Expression, schema: StructType, type_of: TypeOf, *, by_bytes: bool = False
) -> Expression:
    """Rewrite string comparisons to use the strings' collations.

    Args:
        resolved: a tree with resolved names, types and casts.
        schema: the schema of the rows.
        type_of: returns the type of a part of the tree.
        by_bytes: whether all strings are compared by bytes, even if their column has a collation.

    Raises:
        InvalidInputError: two strings have different collations, deltalog does not support a
            collation, or an operation other than a comparison uses strings with a collation.
    """
    return _Collator(schema, type_of, by_bytes=by_bytes).visit(resolved)[0]


def collated_value(resolved: Expression, schema: StructType, type_of: TypeOf) -> Expression:
    """Rewrite a value that another engine may compare by bytes; see `collated`.

    Raises:
        InvalidInputError: see `collated`; also if the value is a string with a collation.
    """
    found, texts = _Collator(schema, type_of, by_bytes=False).visit(resolved)
    if texts is not None and texts.collation != BY_BYTES:
        raise InvalidInputError(
            f"cannot compute {to_sql(resolved)}: a query returns no string with the collation "
            f"{texts.collation}, because DuckDB compares bytes; compare it in the same expression, "
            "or write CAST(… AS STRING) for the plain string"
        )
    return found


def check_uncollated(resolved: Expression, schema: StructType) -> None:
    """Refuse an expression whose result may depend on a collation, because engines may disagree.

    Raises:
        InvalidInputError: the expression uses strings with a collation in other ways than testing
            for NULL or taking the length.
    """
    known = _collations(resolved, schema)
    for node in walk(resolved):
        if isinstance(node, Collate):
            raise InvalidInputError(f"cannot compute {to_sql(node)} here: COLLATE is not supported")
        if isinstance(node, _HANDING_ON) or (
            isinstance(node, Call) and node.function in OF_LENGTH | OF_PARTS
        ):
            continue
        for path in sorted(_texts_in(node) & known.keys()):
            raise InvalidInputError(
                f"cannot compute {to_sql(node)} here: the strings of column {'.'.join(path)!r} "
                f"have the collation {known[path]}, whose rules differ between engines"
            )


def _collations(resolved: Expression, schema: StructType) -> dict[tuple[str, ...], str]:
    """Return the collations of the columns in a tree, including the fields inside them."""
    return {
        path: collation
        for path in columns(resolved)
        if (collation := _collation_of(path, schema)) is not None
    }


def _collation_of(path: tuple[str, ...], schema: StructType) -> str | None:
    return collation_below(schema, path) if schema.fields_named(path[0]) else None


def _has_collate(node: Expression) -> bool:
    return any(isinstance(part, Collate) for part in walk(node))


def _texts_in(node: Expression) -> set[tuple[str, ...]]:
    """Return the columns that a node uses for more than a test for NULL or their length."""
    found: set[tuple[str, ...]] = set()
    waiting = [node]
    while waiting:
        one = waiting.pop()
        if isinstance(one, Column):
            found.add(one.path)
        elif not isinstance(one, nodes.IsNull) and not (
            isinstance(one, Call) and one.function in OF_LENGTH
        ):
            waiting += children(one)
    return found


class _Collator:
    def __init__(self, schema: StructType, type_of: TypeOf, *, by_bytes: bool) -> None:
        self._schema = schema
        self._type_of = type_of
        self._by_bytes = by_bytes

    def visit(self, node: Expression) -> Found:
        """Return a part of the tree without COLLATE, and the strings of its value or None."""
        return _RULES.get(type(node), _Collator.other)(self, node)

    def column(self, node: Column) -> Found:
        if node.path[0] not in self._schema.names:
            return node, None
        field = find_field(self._schema, node.path)
        if field.type == STRING:
            collation = BY_BYTES if self._by_bytes else own_collation(field)
            return node, _Texts(collation, _Strength.IMPLICIT, node)
        if self._by_bytes:
            return node, None
        below = collation_below(self._schema, node.path)
        if below is None and not _has_texts(field.type):
            return node, None
        return node, _Texts(below or BY_BYTES, _Strength.IMPLICIT, node, is_nested=True)

    def literal(self, node: Literal) -> Found:
        is_text = isinstance(node.value, str)
        return node, _Texts(BY_BYTES, _Strength.DEFAULT, node) if is_text else None

    def collate(self, node: Collate) -> Found:
        operand, _ = self.visit(node.operand)
        return operand, _Texts(node.collation, _Strength.EXPLICIT, node.operand)

    def other(self, node: Expression) -> Found:
        """Visit a node whose value is not a string; its parts may be strings."""
        if isinstance(node, LOGIC):
            return fold_up(node, self._combined, inside=LOGIC), None
        return rebuild(node, lambda part: self.visit(part)[0]), None

    def _combined(self, node: Expression, operands: list[Expression]) -> Expression:
        return with_children(node, operands) if isinstance(node, LOGIC) else self.visit(node)[0]

    def comparison(self, node: nodes.Comparison) -> Found:
        left, right = self._sides(node, (node.left, node.right))
        return nodes.Comparison(node.operator, left, right), None

    def membership(self, node: nodes.In) -> Found:
        operand, *options = self._sides(node, (node.operand, *node.options))
        return nodes.In(operand, tuple(options)), None

    def like(self, node: nodes.Like) -> Found:
        found = [self.visit(part) for part in (node.operand, node.pattern)]
        self._refuse_collated(node, [texts for _, texts in found])
        operand, pattern = map(self._plain, found)
        return nodes.Like(operand, pattern, node.escape, node.ignore_case), None

    def cast(self, node: nodes.Cast) -> Found:
        operand, _ = self.visit(node.operand)
        if node.to != STRING:
            return nodes.Cast(operand, node.to, node.is_try, node.time_zone), None
        if self._type_of(operand) == STRING:
            return operand, _Texts(BY_BYTES, _Strength.IMPLICIT, node)
        texts = _Texts(BY_BYTES, _Strength.DEFAULT, node)
        return nodes.Cast(operand, node.to, node.is_try, node.time_zone), texts

    def case(self, node: nodes.Case) -> Found:
        conditions = [self.visit(condition)[0] for condition, _ in node.branches]
        values = [self.visit(value) for _, value in node.branches]
        if node.otherwise is not None:
            values.append(self.visit(node.otherwise))
        texts = self._met(node, [texts for _, texts in values])
        found = [value for value, _ in values]
        otherwise = found.pop() if node.otherwise is not None else None
        return nodes.Case(tuple(zip(conditions, found, strict=True)), otherwise), texts

    def call(self, node: Call) -> Found:
        if any(isinstance(part, nodes.Lambda) for part in node.arguments):
            return self._with_lambda(node)
        found = [self.visit(argument) for argument in node.arguments]
        call = Call(node.function, tuple(argument for argument, _ in found))
        texts = [of_one for _, of_one in found]
        if node.function in OF_LENGTH:
            return call, None
        if node.function == "[]":
            return call, self._of_part(node, call, texts[0])
        if node.function == "named_struct":
            values = texts[1::2]
            collated_ones = [one for one in values if one and one.collation != BY_BYTES]
            met = collated_ones[0] if collated_ones else self._met(node, values)
            return call, None if met is None else _nested(met, node)
        is_with_characters = node.function in TRIMS and len(found) > 1
        if node.function in OF_CHARACTERS and not is_with_characters:
            met = self._met(node, texts)
            if node.function in OF_LOCALES and met and met.collation not in {BY_BYTES, *RULES}:
                self._refuse(node, met)
            return call, met
        if node.function in TESTS:
            return self._test(node, found), None
        self._refuse_collated(node, texts)
        plain = Call(node.function, tuple(map(self._plain, found)))
        met = self._met(node, texts)
        return plain, met if met and _has_texts(self._type_of(node)) else None

    def _with_lambda(self, node: Call) -> Found:
        known = {} if self._by_bytes else _collations(node, self._schema)
        for path in sorted(_texts_in(node) & known.keys()):
            self._refuse(node, _Texts(known[path], _Strength.IMPLICIT, Column(path)))
        if _has_collate(node):
            raise InvalidInputError(f"cannot compute {to_sql(node)}: a lambda has no COLLATE")
        if self._by_bytes or not columns(node) or not _has_texts(self._type_of(node)):
            return node, None
        return node, _Texts(BY_BYTES, _Strength.IMPLICIT, node)

    def _of_part(self, node: Call, call: Call, texts: _Texts | None) -> _Texts | None:
        """Return the strings of an array's element, a map's value or a struct's field."""
        holder = call.arguments[0]
        if texts is None or not _has_texts(self._type_of(node)):
            return None
        if not isinstance(holder, Column):
            return texts
        field = find_field(self._schema, holder.path)
        match field.type:
            case ArrayType() as kind if kind.element_type == STRING:
                return _Texts(collation_at(field, ("element",)), texts.strength, holder)
            case MapType() as kind:
                if (of_keys := collation_at(field, ("key",))) != BY_BYTES:
                    self._refuse(node, _Texts(of_keys, texts.strength, holder))
                if kind.value_type == STRING:
                    return _Texts(collation_at(field, ("value",)), texts.strength, holder)
            case _:
                pass
        return texts

    def _test(self, node: Call, found: Sequence[Found]) -> Expression:
        collation = self._common(node, [texts for _, texts in found])
        if collation == BY_BYTES:
            return Call(node.function, tuple(map(self._plain, found)))
        text, part = (argument for argument, _ in found)
        # `_keyed` replaces a constant by its key, which does not show whether it contained `İ`.
        if isinstance(text, Literal) and DOTTED_I in str(text.value):
            self._refuse(node, _Texts(collation, _Strength.IMPLICIT, text))
        return Call(node.function, tuple(_keyed((text, part), collation)))

    def _sides(self, node: Expression, sides: Sequence[Expression]) -> Sequence[Expression]:
        """Return the operands, or their collation keys if the collation is not the default."""
        found = [self.visit(side) for side in sides]
        collation = self._common(node, [texts for _, texts in found])
        if collation == BY_BYTES:
            return list(map(self._plain, found))
        return _keyed([side for side, _ in found], collation)

    def _plain(self, found: Found) -> Expression:
        """Return a value to compare by bytes, with COLLATE UTF8_BINARY if it has a collation."""
        value, texts = found
        is_said = texts is not None and bool(_collations(value, self._schema))
        return Collate(value, BY_BYTES) if is_said else value

    def _common(self, node: Expression, texts: Sequence[_Texts | None]) -> str:
        """Return the collation by which strings are compared.

        Raises:
            InvalidInputError: the strings have no common collation, or deltalog does not support
            it.
        """
        met = self._met(node, texts)
        if met is None:
            return BY_BYTES
        if met.strength is _Strength.INDETERMINATE:
            self._refuse_mixed(node, texts)
        if met.collation == BY_BYTES:
            return BY_BYTES
        if met.is_nested or met.collation not in RULES:
            self._refuse(node, met)
        return met.collation

    def _met(self, node: Expression, texts: Sequence[_Texts | None]) -> _Texts | None:
        """Combine the strings of several values, as Spark's least common string type does."""
        known = [one for one in texts if one is not None]
        if not known:
            return None
        strength = max(one.strength for one in known)
        strongest = [one for one in known if one.strength == strength]
        if len({one.collation for one in strongest}) == 1:
            # The result is nested if any of the values is nested.
            nested = [one for one in known if one.is_nested and one.collation != BY_BYTES]
            return nested[0] if nested else strongest[0]
        if strength is _Strength.EXPLICIT:
            self._refuse_mixed(node, texts)
        return _Texts(BY_BYTES, _Strength.INDETERMINATE, node)

    def _refuse_collated(self, node: Expression, texts: Sequence[_Texts | None]) -> None:
        for one in texts:
            if one is not None and (
                one.collation != BY_BYTES or one.strength is _Strength.INDETERMINATE
            ):
                self._refuse(node, one)

    def _refuse_mixed(self, node: Expression, texts: Sequence[_Texts | None]) -> NoReturn:
        known = [one for one in texts if one is not None and one.strength > _Strength.DEFAULT]
        names = list(dict.fromkeys(one.collation for one in known))
        raise InvalidInputError(
            f"cannot compute {to_sql(node)}: its strings have the collations {', '.join(names)}, "
            "which is ambiguous; write COLLATE after one of them, such as "
            f"{to_sql(Collate(known[-1].source, known[0].collation))}"
        )

    def _refuse(self, node: Expression, texts: _Texts) -> NoReturn:
        what, shown = to_sql(texts.source), texts.collation
        if texts.collation in RULES:
            why = "for which deltalog computes only comparisons"
            if texts.is_nested:
                why = "and strings inside of nested values cannot be compared by a collation"
        else:
            why = (
                "whose rules deltalog does not have; "
                f"{to_sql(Collate(texts.source, BY_BYTES))} is compared by its bytes"
            )
        raise InvalidInputError(
            f"cannot compute {to_sql(node)}: the strings of {what} have the collation {shown}, "
            f"{why}"
        )


def _has_texts(kind: DataType) -> bool:
    return any(part == STRING for _, part in walk_types(kind))


def _nested(texts: _Texts, node: Expression) -> _Texts:
    return _Texts(texts.collation, texts.strength, node, is_nested=True)


def _keyed(sides: Sequence[Expression], collation: str) -> list[Expression]:
    """Return the keys of the operands; the key of a constant is computed here."""
    constants = [side for side in sides if isinstance(side, Literal)]
    known = iter(keys_of([side.value for side in constants], collation))
    return [
        Literal(next(known), STRING) if isinstance(side, Literal) else Collate(side, collation)
        for side in sides
    ]


_HANDING_ON: Final = (Column, Literal, nodes.And, nodes.Or, nodes.Not, nodes.IsNull, nodes.Case)
_RULES: Final[dict[type[Expression], Callable[[Any, Any], Found]]] = {
    Column: _Collator.column,
    Literal: _Collator.literal,
    Collate: _Collator.collate,
    nodes.Comparison: _Collator.comparison,
    nodes.In: _Collator.membership,
    nodes.Like: _Collator.like,
    nodes.Cast: _Collator.cast,
    nodes.Case: _Collator.case,
    Call: _Collator.call,
}
