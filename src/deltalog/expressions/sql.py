"""Spark SQL text as expressions.

Owns the grammar of conditions and values: precedence as in Spark's own grammar, and nothing is
skipped: what is not understood is an error with its place in the text. The text of an expression
is `render.to_sql`; reading that back gives the same tree.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from deltalog.errors import InvalidInputError
from deltalog.expressions.nodes import (
    And,
    Call,
    Comparison,
    Expression,
    In,
    IsNull,
    Like,
    Literal,
    Not,
    Or,
)
from deltalog.expressions.render import to_sql
from deltalog.expressions.sql_types import parse_type
from deltalog.expressions.sql_values import ValueParser

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping, Sequence

__all__ = ["parse_sql", "parse_type", "to_sql"]

_COMPARISONS: Final = {
    "=": "=",
    "==": "=",
    "<>": "<>",
    "!=": "<>",
    "<": "<",
    "<=": "<=",
    ">": ">",
    ">=": ">=",
    "<=>": "<=>",
}
_TESTS: Final = frozenset({"in", "between", "like", "ilike", "rlike", "regexp"})
_MAX_DEPTH: Final = 50


def parse_sql(
    sql: str,
    *,
    parameters: Sequence[object] | Mapping[str, object] | None = None,
    columns: Collection[str] | None = None,
) -> Expression:
    """The expression that a text says; nothing is looked up yet.

    Args:
        sql: one expression in Spark's dialect.
        parameters: values for `?` (a list) or `:name` (a mapping).
        columns: the table's columns, so that "id" in double quotes, which Spark reads as a text,
            can be refused where a column is meant.

    Raises:
        InvalidInputError: the text is no such expression; the message says where.
    """
    if not isinstance(sql, str):
        raise InvalidInputError(f"expected SQL as a text, found {sql!r}")
    return _Parser(sql, parameters, columns or ()).whole()


class _Parser(ValueParser):
    _depth = 0

    def whole(self) -> Expression:
        found = self.expression()
        self._cursor.finish()
        if self._positional and self._used < len(self._positional):
            raise InvalidInputError(
                f"{len(self._positional)} parameters were given for {self._cursor.sql!r}, "
                f"which has {self._used}"
            )
        return found

    def expression(self) -> Expression:
        self._depth += 1
        if self._depth > _MAX_DEPTH:
            raise self._cursor.error(f"brackets and calls are nested more than {_MAX_DEPTH} deep")
        found = self._chain(self._conjunction, "or", Or)
        self._depth -= 1
        return found

    def _conjunction(self) -> Expression:
        return self._chain(self._negation, "and", And)

    def _chain(self, part: Callable[[], Expression], word: str, node: type[And | Or]) -> Expression:
        operands = [part()]
        while self._cursor.accept(word):
            operands.append(part())
        return operands[0] if len(operands) == 1 else node(tuple(operands))

    def _negation(self) -> Expression:
        count = 0
        while self._cursor.next.word in {"not", "!"}:
            self._cursor.take()
            count += 1
        found = self._predicate()
        for _ in range(count):
            found = Not(found)
        return found

    def _predicate(self) -> Expression:
        operand = self._comparison()
        while True:
            found = self._tested(operand)
            if found is None:
                return operand
            operand = found

    def _tested(self, operand: Expression) -> Expression | None:
        cursor = self._cursor
        if cursor.accept("is"):
            return self._is(operand)
        is_negated = cursor.next.word == "not"
        if cursor.ahead(int(is_negated)).word not in _TESTS:
            return None
        if is_negated:
            cursor.take()
        word = cursor.take().word
        is_many = cursor.next.word in {"any", "all", "some"} and cursor.ahead().word == "("
        if word in {"like", "ilike"} and is_many:
            return self._like_many(operand, is_negated=is_negated, ignore_case=word == "ilike")
        found = self._test(word, operand)
        return Not(found) if is_negated else found

    def _is(self, operand: Expression) -> Expression:
        is_negated = self._cursor.accept("not")
        token = self._cursor.take()
        found: Expression
        if token.word in {"null", "unknown"}:
            found = IsNull(operand)
        elif token.word in {"true", "false"}:
            found = Comparison("<=>", operand, Literal(token.word == "true"))
        elif token.word == "distinct":
            self._cursor.expect("from")
            is_negated = not is_negated
            found = Comparison("<=>", operand, self.value())
        else:
            raise self._cursor.error("expected NULL, TRUE, FALSE, UNKNOWN or DISTINCT FROM", token)
        return Not(found) if is_negated else found

    def _test(self, word: str, operand: Expression) -> Expression:
        cursor = self._cursor
        match word:
            case "in":
                cursor.expect("(")
                if cursor.next.word == "select":
                    raise cursor.error("a subquery cannot stand in an expression on one table")
                return In(operand, self._list())
            case "between":
                low = self.value()
                cursor.expect("and")
                return And(
                    (Comparison(">=", operand, low), Comparison("<=", operand, self.value()))
                )
            case "like" | "ilike":
                pattern = self.value()
                escape = cursor.text() if cursor.accept("escape") else "\\"
                return Like(operand, pattern, escape, word == "ilike")
            case _:
                return Call("rlike", (operand, self.value()))

    def _like_many(self, operand: Expression, *, is_negated: bool, ignore_case: bool) -> Expression:
        # NOT LIKE ANY is true if one of the patterns does not match: NOT stands inside.
        node = And if self._cursor.take().word == "all" else Or
        self._cursor.expect("(")
        likes: list[Expression] = []
        for pattern in self._list():
            like = Like(operand, pattern, ignore_case=ignore_case)
            likes.append(Not(like) if is_negated else like)
        return likes[0] if len(likes) == 1 else node(tuple(likes))

    def _comparison(self) -> Expression:
        found = self.value()
        while self._cursor.next.word in _COMPARISONS:
            operator = _COMPARISONS[self._cursor.take().word]
            found = Comparison(operator, found, self.value())
        return found
