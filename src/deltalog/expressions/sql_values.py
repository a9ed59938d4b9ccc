"""Values in SQL text: arithmetic, columns, constants, calls and the forms that look like calls.

Owns precedence from `+` downwards. Conditions are above it in `sql`, and hand in how a whole
expression is read.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, ClassVar, Final

from deltalog.expressions import sql_constants
from deltalog.expressions.lexer import NAME, NUMBER, QUOTED_NAME, TEXT, Cursor
from deltalog.expressions.nodes import (
    Arithmetic,
    Call,
    Case,
    Cast,
    Column,
    Comparison,
    Expression,
    Literal,
    lit,
)
from deltalog.expressions.render import RESERVED
from deltalog.expressions.sql_types import read_type

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Sequence

    from deltalog.expressions.lexer import Token

_BARE_CALLS: Final = frozenset({"current_date", "current_timestamp", "localtimestamp"})
# From the one that binds least.
_BIT_OPERATORS: Final = "|^&"
_TRIMS: Final = {"both": "btrim", "leading": "ltrim", "trailing": "rtrim"}
# Words that `render` quotes to be safe, and that may still be bare names of columns.
_NEVER_COLUMNS: Final = RESERVED - {
    "date",
    "timestamp",
    "timestamp_ntz",
    "timestamp_ltz",
    "interval",
    "extract",
    "cast",
    "try_cast",
    "rlike",
    "regexp",
    "ilike",
    "escape",
    "end",
    "div",
    "distinct",
}


class ValueParser:
    """Reads values from a text.

    Args:
        sql: the text.
        parameters: values for `?` or `:name`.
        columns: the table's columns, to tell `"id"` from a text.
    """

    def __init__(
        self,
        sql: str,
        parameters: Sequence[object] | Mapping[str, object] | None,
        columns: Collection[str],
    ) -> None:
        self._cursor = Cursor(sql)
        self._positional = list(parameters) if isinstance(parameters, list | tuple) else None
        self._named = parameters if isinstance(parameters, Mapping) else None
        self._columns = {name.lower(): name for name in columns}
        self._used = 0

    def expression(self) -> Expression:
        """A whole expression, with its conditions."""
        raise NotImplementedError

    def value(self) -> Expression:
        """What stands on one side of a comparison."""
        return self._bits(_BIT_OPERATORS)

    def _bits(self, operators: str) -> Expression:
        if not operators:
            return self._sum()
        found = self._bits(operators[1:])
        while self._cursor.next.word == operators[0]:
            self._cursor.take()
            found = Call(operators[0], (found, self._bits(operators[1:])))
        return found

    def _sum(self) -> Expression:
        found = self._product()
        while self._cursor.next.word in {"+", "-", "||"}:
            operator = self._cursor.take().word
            right = self._product()
            if operator == "||":
                found = Call("concat", (found, right))
            else:
                found = Arithmetic(operator, found, right)
        return found

    def _product(self) -> Expression:
        found = self._unary()
        while self._cursor.next.word in {"*", "/", "%", "div"}:
            operator = self._cursor.take().word
            right = self._unary()
            if operator == "div":
                found = Call("div", (found, right))
            else:
                found = Arithmetic(operator, found, right)
        return found

    def _unary(self) -> Expression:
        cursor = self._cursor
        if cursor.next.word == "-" and cursor.ahead().kind == NUMBER:
            cursor.take()
            return self._postfix(sql_constants.number(cursor, cursor.take(), "-"))
        is_negative = False
        while cursor.next.word in {"+", "-"}:
            is_negative ^= cursor.take().word == "-"
        if cursor.accept("~"):
            found: Expression = Call("~", (self._unary(),))
        else:
            found = self._postfix(self._primary())
        return Call("negative", (found,)) if is_negative else found

    def _postfix(self, found: Expression) -> Expression:
        cursor = self._cursor
        while True:
            if cursor.accept("["):
                found = Call("[]", (found, self.expression()))
                cursor.expect("]")
            elif cursor.accept("::"):
                found = Cast(found, read_type(cursor))
            elif cursor.next.word == "." and not isinstance(found, Column):
                cursor.take()
                found = Call("[]", (found, Literal(cursor.name())))
            else:
                return found

    def _primary(self) -> Expression:
        token = self._cursor.take()
        match token.kind:
            case "number":
                return sql_constants.number(self._cursor, token)
            case "text":
                return self._text(token)
            case "bytes":
                return sql_constants.hexadecimal(self._cursor, token)
            case "quoted name":
                return self._column(token)
            case "name":
                return self._word(token)
            case _:
                return self._symbol(token)

    def _symbol(self, token: Token) -> Expression:
        cursor = self._cursor
        if token.word == "(":
            found = self.expression()
            cursor.expect(")")
            return found
        if token.word == "?":
            return self._positional_parameter(token)
        if token.word == ":" and cursor.next.kind in {NAME, QUOTED_NAME}:
            return self._named_parameter(cursor.take())
        if token.word == "*":
            raise cursor.error(
                "* stands for all columns and cannot be part of an expression", token
            )
        raise cursor.error("expected a value, a column or a function", token)

    def _word(self, token: Token) -> Expression:
        special = self._WORDS.get(token.word)
        found = special(self, token) if special else None
        if found is not None:
            return found
        if self._cursor.next.word == "(" and token.word not in _NEVER_COLUMNS - _BARE_CALLS:
            return self._call(token)
        if token.word in _BARE_CALLS:
            return Call(token.word)
        return self._column(token)

    def _column(self, token: Token) -> Expression:
        cursor = self._cursor
        if token.kind == NAME and token.word in _NEVER_COLUMNS:
            raise cursor.error(
                "a keyword stands where a value was expected; backticks quote names", token
            )
        path = [token.value]
        while cursor.next.word == "." and cursor.ahead().kind in {NAME, QUOTED_NAME}:
            cursor.take()
            path.append(cursor.take().value)
        if cursor.next.word == "(":
            if len(path) == 1:
                return self._call(token)
            raise cursor.error("functions of a schema or catalog cannot be used here")
        return Column(tuple(path))

    def _list(self) -> tuple[Expression, ...]:
        """What stands before the closing bracket, which is taken too."""
        found = [self.expression()]
        while self._cursor.accept(","):
            found.append(self.expression())
        self._cursor.expect(")")
        return tuple(found)

    def _call(self, token: Token) -> Expression:
        cursor = self._cursor
        cursor.expect("(")
        if cursor.next.word in {"distinct", "select"}:
            raise cursor.error("aggregates and subqueries cannot stand in an expression on one row")
        arguments = () if cursor.accept(")") else self._list()
        if cursor.next.word == "over":
            raise cursor.error("window functions cannot stand in an expression on one row")
        return Call(token.value.lower(), arguments)

    def _text(self, token: Token) -> Expression:
        parts = [self._checked(token)]
        while self._cursor.next.kind == TEXT:
            parts.append(self._checked(self._cursor.take()))
        return Literal("".join(parts))

    def _checked(self, token: Token) -> str:
        column = self._columns.get(token.value.lower())
        if token.source.startswith('"') and column is not None:
            raise self._cursor.error(
                f"double quotes make a text, and {column!r} is a column: write `{column}` for the "
                f"column, or '{token.value}' for the text",
                token,
            )
        return token.value

    def _positional_parameter(self, token: Token) -> Expression:
        if self._positional is None:
            raise self._cursor.error("a parameter ? needs a list of values as `parameters`", token)
        if self._used >= len(self._positional):
            raise self._cursor.error(f"only {len(self._positional)} parameters were given", token)
        self._used += 1
        return lit(self._positional[self._used - 1])

    def _named_parameter(self, token: Token) -> Expression:
        if self._named is None or token.value not in self._named:
            raise self._cursor.error(f"no value was given for the parameter :{token.value}", token)
        return lit(self._named[token.value])

    def _constant(self, token: Token) -> Expression | None:
        return Literal({"null": None, "true": True, "false": False}[token.word])

    def _moment(self, token: Token) -> Expression | None:
        return sql_constants.moment(self._cursor, token)

    def _interval(self, _token: Token) -> Expression | None:
        return sql_constants.interval(self._cursor)

    def _cast(self, token: Token) -> Expression | None:
        cursor = self._cursor
        if not cursor.accept("("):
            return None
        operand = self.expression()
        cursor.expect("as")
        to = read_type(cursor)
        cursor.expect(")")
        return Cast(operand, to, token.word == "try_cast")

    def _case(self, _token: Token) -> Expression | None:
        cursor = self._cursor
        subject = None if cursor.next.word == "when" else self.expression()
        branches: list[tuple[Expression, Expression]] = []
        while cursor.accept("when"):
            condition = self.expression()
            if subject is not None:
                condition = Comparison("=", subject, condition)
            cursor.expect("then")
            branches.append((condition, self.expression()))
        if not branches:
            raise cursor.error("expected WHEN")
        otherwise = self.expression() if cursor.accept("else") else None
        cursor.expect("end")
        return Case(tuple(branches), otherwise)

    def _extract(self, _token: Token) -> Expression | None:
        cursor = self._cursor
        if not (cursor.next.word == "(" and cursor.ahead(2).word == "from"):
            return None
        cursor.take()
        part = Literal(cursor.name().lower())
        cursor.expect("from")
        source = self.expression()
        cursor.expect(")")
        return Call("date_part", (part, source))

    def _trim(self, _token: Token) -> Expression | None:
        cursor = self._cursor
        side = cursor.ahead().word
        if cursor.next.word != "(":
            return None
        cursor.take()
        if side in _TRIMS:
            cursor.take()
            chars = None if cursor.next.word == "from" else self.expression()
            cursor.expect("from")
            return self._trimmed(side, chars)
        first = self.expression()
        if cursor.accept("from"):
            return self._trimmed("both", first)
        return Call("trim", self._rest(first))

    def _trimmed(self, side: str, chars: Expression | None) -> Expression:
        source = self.expression()
        self._cursor.expect(")")
        if chars is None:
            return Call(_TRIMS[side], (source,))
        return Call(_TRIMS[side], (source, chars) if side == "both" else (chars, source))

    def _rest(self, first: Expression) -> tuple[Expression, ...]:
        if self._cursor.accept(","):
            return (first, *self._list())
        self._cursor.expect(")")
        return (first,)

    def _substring(self, token: Token) -> Expression | None:
        cursor = self._cursor
        if not cursor.accept("("):
            return None
        source = self.expression()
        if not cursor.accept("from"):
            return Call(token.word, self._rest(source))
        start = self.expression()
        arguments = (source, start, self.expression()) if cursor.accept("for") else (source, start)
        cursor.expect(")")
        return Call(token.word, arguments)

    def _position(self, token: Token) -> Expression | None:
        # position(part IN text): the part ends before IN, so it is no whole condition.
        cursor = self._cursor
        if not cursor.accept("("):
            return None
        part = self.value()
        if cursor.accept("in"):
            source = self.expression()
            cursor.expect(")")
            return Call("instr", (source, part))
        return Call(token.word, self._rest(part))

    def _unit_first(self, token: Token) -> Expression | None:
        # timestampadd(HOUR, 1, ts): the unit is a bare word.
        cursor = self._cursor
        unit = sql_constants.unit_of(cursor.ahead().word)
        if cursor.next.word != "(" or unit is None or cursor.ahead(2).word != ",":
            return None
        for _ in range(3):
            cursor.take()
        return Call(token.word, (Literal(unit), *self._list()))

    _WORDS: ClassVar[dict[str, Callable[[ValueParser, Token], Expression | None]]] = {
        "null": _constant,
        "true": _constant,
        "false": _constant,
        "date": _moment,
        "timestamp": _moment,
        "timestamp_ntz": _moment,
        "timestamp_ltz": _moment,
        "interval": _interval,
        "cast": _cast,
        "try_cast": _cast,
        "case": _case,
        "extract": _extract,
        "trim": _trim,
        "substring": _substring,
        "substr": _substring,
        "position": _position,
        "timestampadd": _unit_first,
        "timestampdiff": _unit_first,
        "dateadd": _unit_first,
        "datediff": _unit_first,
        "date_diff": _unit_first,
    }
