"""The grammar of Spark SQL for sqlglot: one expression over one row, and nothing else.

Contains the precedence of operators in conditions, the maximum nesting depth, and the entry points.
ADR 4 explains why much of sqlglot's grammar is switched off. `sql` imports this module only when it
parses the first string, because importing sqlglot is slow.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, ClassVar, Final, NoReturn

from sqlglot import exp
from sqlglot.dialects.spark import Spark
from sqlglot.errors import SqlglotError
from sqlglot.parsers.spark import SparkParser
from sqlglot.tokenizer_core import Token, TokenType

from deltalog._util.escaping import name_key
from deltalog.expressions.spark_tokens import (
    NAME,
    NAMES,
    SparkTokenizer,
    advice_at,
    advice_on_clause,
    advice_on_thousands,
    error_at,
)
from deltalog.expressions.sql_constants import NO_UNIT, unit_of
from deltalog.schema.types import STRING

if TYPE_CHECKING:
    from collections.abc import Callable

    from sqlglot.expressions import Expr


# --- A grammar of sqlglot for values that is as strict as Spark's grammar


_MAX_SIGNS: Final = 100
_SIGNS: Final = frozenset({TokenType.PLUS, TokenType.DASH})
_AMOUNTS: Final = frozenset({TokenType.STRING, TokenType.NUMBER})
# The fields of intervals, and the keyword between the first and the last field of an interval.
_FIELDS: Final = ("YEAR", "MONTH", "DAY", "HOUR", "MINUTE", "SECOND")
_TO: Final = "TO"
_TRIMS: Final = {"BOTH": "btrim", "LEADING": "ltrim", "TRAILING": "rtrim"}
_TYPE_NAMES: Final = NAMES - {TokenType.IDENTIFIER}
# Tokens that cannot begin a value. Where a value is expected, they mean that the value is missing.
_JOINERS: Final = frozenset(
    {*SparkParser.EQUALITY, *SparkParser.COMPARISON, *SparkParser.RANGE_PARSERS,
     *SparkParser.BITWISE, TokenType.AND, TokenType.OR, TokenType.SLASH, TokenType.MOD,
     TokenType.DPIPE}
) - NAMES  # fmt: skip
_NOT_THE_END: Final = "expected the end, or an operator before this"
# sqlglot's message → deltalog's message, which users understand without knowing sqlglot.
_MESSAGES: Final = {
    "Expecting )": "expected )",
    "Expected AS after CAST": "expected AS",
    "Expected TYPE after CAST": "expected a type",
    "Expected type": "expected a type",
    "Expected ]": "expected ]",
    "Invalid expression / Unexpected token": _NOT_THE_END,
}


_METHODS: Final = {
    **dict.fromkeys(("isin", "is_in"), "write column IN (1, 2)"),
    **dict.fromkeys(("isnull", "is_null", "isna"), "write column IS NULL"),
    **dict.fromkeys(("isnotnull", "is_not_null", "notnull", "notna"), "write column IS NOT NULL"),
    "between": "write column BETWEEN 1 AND 2",
    "like": "write column LIKE 'a%'",
}
"""Methods of columns in Python → their SQL."""


_PREFIXED: Final = re.compile(r"""[A-Za-z_&]+(['"].*)""", re.DOTALL)
"""A string with a prefix, as in `N'text'` of SQL Server and `E'text'` of PostgreSQL."""


_STATEMENT: Final = re.compile(
    r"\s*(DELETE\s+FROM|INSERT\s+INTO|MERGE\s+INTO|UPDATE\s+\S+\s+SET)\b", re.IGNORECASE
)
"""A whole statement in the place of a condition."""


class SparkValues(SparkParser):
    """The grammar of one operand of a comparison."""

    STRICT_CAST: ClassVar[bool] = True  # parse CAST as CAST, not as TRY_CAST
    FUNCTIONS: ClassVar[dict[Any, Any]] = {}  # no call becomes a special node of sqlglot
    NO_PAREN_FUNCTIONS: ClassVar[dict[Any, Any]] = {}
    NO_PAREN_FUNCTION_PARSERS: ClassVar[dict[Any, Any]] = {"CASE": lambda self: self._parse_case()}
    FUNCTION_PARSERS: ClassVar[dict[Any, Any]] = {
        "CAST": lambda self: self._closed(self._parse_cast(strict=True)),
        "TRY_CAST": lambda self: self._closed(self._parse_cast(strict=False, safe=True)),
        "EXTRACT": lambda self: self._closed(self._parse_extract_call()),
        "TRIM": lambda self: self._closed(self._parse_trim_call()),
        "SUBSTRING": lambda self: self._closed(self._parse_substring_call()),
        "SUBSTR": lambda self: self._closed(self._parse_substring_call()),
        "POSITION": lambda self: self._closed(self._parse_position_call()),
        "STRUCT": lambda self: self._closed(self._parse_struct_call()),
    }
    ARRAY_CONSTRUCTORS: ClassVar[dict[Any, Any]] = {}
    RESERVED_TOKENS: ClassVar[set[TokenType]] = {*TokenType} - {
        TokenType.VAR,
        TokenType.IDENTIFIER,
    }
    SUBQUERY_PREDICATES: ClassVar[dict[Any, Any]] = {}
    # INTERVAL is a column name or begins a literal. It is never the name of a function.
    FUNC_TOKENS: ClassVar[set[TokenType]] = set(NAMES - {TokenType.INTERVAL})
    ID_VAR_TOKENS: ClassVar[set[TokenType]] = set(NAMES)
    COLON_PLACEHOLDER_TOKENS: ClassVar[set[TokenType]] = {TokenType.VAR, TokenType.IDENTIFIER}
    TERM: ClassVar[dict[Any, Any]] = {
        TokenType.PLUS: exp.Add,
        TokenType.DASH: exp.Sub,
        TokenType.DPIPE: exp.DPipe,
    }
    FACTOR: ClassVar[dict[Any, Any]] = {
        TokenType.STAR: exp.Mul,
        TokenType.SLASH: exp.Div,
        TokenType.MOD: exp.Mod,
        TokenType.DIV: exp.IntDiv,
    }
    UNARY_PARSERS: ClassVar[dict[Any, Any]] = {
        TokenType.PLUS: SparkParser.UNARY_PARSERS[TokenType.PLUS],
        TokenType.TILDE: SparkParser.UNARY_PARSERS[TokenType.TILDE],
        TokenType.DASH: lambda self: self._parse_negative(),
        TokenType.L_PAREN: lambda self: self._parse_column_ops(self._parse_brackets()),
    }
    PRIMARY_PARSERS: ClassVar[dict[Any, Any]] = {
        **{
            kind: SparkParser.PRIMARY_PARSERS[kind]
            for kind in (
                TokenType.STRING, TokenType.NUMBER, TokenType.HEX_STRING, TokenType.NULL,
                TokenType.TRUE, TokenType.FALSE,
            )
        },
        TokenType.INTRODUCER: lambda self, token: self._parse_column_ops(
            self._parse_introducer(token)
        ),
        TokenType.STAR: lambda self, token: self.raise_error(
            "* means all columns and cannot be part of an expression", token
        ),
    }  # fmt: skip
    PLACEHOLDER_PARSERS: ClassVar[dict[Any, Any]] = {
        TokenType.PLACEHOLDER: lambda self: self.expression(exp.Placeholder(), self._prev),
        TokenType.COLON: lambda self: self._parse_name_of_parameter(),
    }
    COLUMN_OPERATORS: ClassVar[dict[Any, Any]] = {
        kind: SparkParser.COLUMN_OPERATORS[kind] for kind in (TokenType.DOT, TokenType.DCOLON)
    }

    _signs: int = 0

    def raise_error(self, message: str, token: Token | None = None) -> NoReturn:
        """Raise each error of the parser as an InvalidInputError with its position.

        Raises:
            InvalidInputError: always.
        """
        token = token or self._curr
        start = token.start if token else len(self.sql)
        source = self.sql[start : token.end + 1] if token else ""
        problem = _MESSAGES.get(message, message)
        if prefixed := _PREFIXED.fullmatch(self._joined(token)):
            raise error_at(self.sql, start, "", f"a string has no prefix here; write {prefixed[1]}")
        if found := _STATEMENT.match(self.sql):
            problem = (
                "expected a condition or a value, found a statement: pass only what follows WHERE "
                "or SET; deltalog.sql runs statements"
            )
            raise error_at(self.sql, found.start(1), found[1], problem)
        if thousands := advice_on_thousands(self.sql, start):
            problem += f"; {thousands}"
        elif source.upper() == "FROM" and problem == _MESSAGES["Expecting )"]:
            pass  # a call such as EXTRACT, and not a query
        elif source == "," and problem == _NOT_THE_END:
            problem += "; conditions are joined by AND and OR"
        elif problem == _NOT_THE_END and (clause := advice_on_clause(self.sql, start)):
            problem += f"; {clause}"
        else:
            advice = advice_at(token, None if self._prev is token else self._prev)
            problem += "" if advice in problem else advice
        raise error_at(self.sql, start, source, problem)

    def _joined(self, token: Token | None) -> str:
        """Return the source of a token, and of the one before it if they touch."""
        before = self._prev
        if not token:
            return ""
        first = before if before and before.end + 1 == token.start else token
        return self.sql[first.start : token.end + 1]

    def validate_expression(self, expression: Any, args: Any = None) -> Any:
        """Raise an error if a node lacks a required part."""
        if expression.error_messages(args):
            self._expect_value()
        return expression

    def _expect_value(self) -> NoReturn:
        token = self._curr
        if token.token_type is TokenType.SELECT and not self._prev:
            problem = (
                "expected a condition or a value, found a query: pass only what follows WHERE; "
                "deltalog.sql runs queries"
            )
            raise error_at(self.sql, token.start, token.text, problem)
        if token.token_type is TokenType.SELECT:
            self.raise_error("expected a value, but a subquery cannot be part of an expression")
        if token.token_type is TokenType.AMP and self._prev.token_type is TokenType.AMP:
            self.raise_error("Spark SQL has no &&; write AND", self._prev)
        if token and NAME.fullmatch(token.text) and token.token_type is not TokenType.STRING:
            problem = "expected a value, found a keyword"
            self.raise_error(f"{problem}; put names that are keywords in backticks")
        self.raise_error("expected a value, a column or a function")

    def _expect(self, kind: TokenType, text: str) -> None:
        if not self._match(kind):
            self.raise_error(f"expected {text}")

    def _is_not(self) -> bool:
        # `!` is also a NOT token, but Spark accepts it only as a prefix: `x ! LIKE y` is invalid.
        return self._curr.token_type is TokenType.NOT and self._curr.text != "!"

    def _closed(self, found: Expr) -> Expr:
        # After this call, sqlglot skips the closing bracket, but it does not report a missing
        # bracket.
        if self._curr.token_type is not TokenType.R_PAREN:
            self.raise_error("expected )")
        return found

    def _parse_whole(self) -> Expr:
        """Parse a complete expression, or report that it is missing."""
        return self._parse_disjunction() or self._expect_value()

    def _parse_csv(
        self, parse_method: Callable[[], Any], sep: TokenType = TokenType.COMMA
    ) -> list[Any]:
        found = [parse_method()]
        while self._curr.token_type is sep:
            if found[-1] is None:
                self._expect_value()
            self._advance()
            found.append(parse_method())
        if found[-1] is None and len(found) > 1:
            self._expect_value()
        return [] if found[-1] is None else found

    def _parse_unary(self) -> Expr | None:
        self._signs += 1
        if self._signs > _MAX_SIGNS:
            self.raise_error("signs are nested too deep")
        start = self._index
        found = super()._parse_unary()
        if found is None and (self._index > start or self._curr.token_type in _JOINERS):
            self._expect_value()
        self._signs -= 1
        while found is not None and self._match_collate():
            name = exp.Literal.string(self._parse_name_of_collation())
            found = self.expression(exp.Collate(this=found, expression=name))
        return found

    def _match_collate(self) -> bool:
        # COLLATE is not a keyword, because a column may have this name.
        is_word = self._curr.token_type is TokenType.VAR and self._curr.text.upper() == "COLLATE"
        self._advance(int(is_word))
        return is_word

    def _parse_name_of_collation(self) -> str:
        parts: list[str] = []
        while not parts or self._match(TokenType.DOT):
            if not self._match_set(NAMES):
                self.raise_error("expected the name of a collation")
            parts.append(self._prev.text)
        return ".".join(parts)

    def _parse_negative(self) -> Expr | None:
        if not self._match(TokenType.NUMBER):
            return self.expression(exp.Neg(this=self._parse_unary()))
        # The sign is part of the literal: -9223372036854775808 is a long, but 9223372036854775808
        # is not.
        number = exp.Literal(this=f"-{self._prev.text}", is_string=False)
        return self._parse_column_ops(self.expression(number, self._prev))

    def _parse_paren(self) -> None:
        """Return None: `_parse_brackets` parses brackets, which cannot contain subqueries."""

    def _parse_brackets(self) -> exp.Paren | exp.Tuple:
        found = self.expression(exp.Paren(this=self._parse_disjunction()))
        if self._curr.token_type in {TokenType.COMMA, TokenType.ALIAS}:
            first = self._parse_name_of_field(found.this)
            self._expect(TokenType.COMMA, "a comma" if isinstance(first, exp.Alias) else ")")
            parts = [first, *self._parse_csv(self._parse_field_of_row)]
            if parts[-1] is first:
                self._expect_value()
            self._expect(TokenType.R_PAREN, ")")
            return self.expression(exp.Tuple(expressions=parts))
        self._expect(TokenType.R_PAREN, ")")
        return found

    def _parse_struct_call(self) -> exp.Anonymous:
        parts = [] if self._curr.token_type is TokenType.R_PAREN else (
            self._parse_csv(self._parse_field_of_row)
        )  # fmt: skip
        return self.expression(exp.Anonymous(this="struct", expressions=parts))

    def _parse_field_of_row(self) -> Expr | None:
        """Parse a field of a row `(a, b AS c)` or of `struct(…)`, optionally with a name."""
        found = self._parse_disjunction()
        return None if found is None else self._parse_name_of_field(found)

    def _parse_name_of_field(self, value: Expr) -> Expr:
        is_said = self._match(TokenType.ALIAS)
        if not self._match_set(NAMES):
            if is_said:
                self.raise_error("expected a name")
            return value
        name = exp.to_identifier(self._prev.text).update_positions(self._prev)
        return self.expression(exp.Alias(this=value, alias=name))

    def _parse_name_of_parameter(self) -> exp.Placeholder | None:
        if not self._match_set(self.COLON_PLACEHOLDER_TOKENS):
            return None
        return self.expression(exp.Placeholder(this=self._prev.text), self._prev)

    def _parse_case(self) -> exp.Case:
        subject = self._parse_disjunction()
        branches: list[exp.If] = []
        while self._match(TokenType.WHEN):
            condition = self._parse_whole()
            self._expect(TokenType.THEN, "THEN")
            branches.append(exp.If(this=condition, true=self._parse_whole()))
        if not branches:
            self.raise_error("expected WHEN")
        otherwise = self._parse_whole() if self._match(TokenType.ELSE) else None
        self._expect(TokenType.END, "END")
        return self.expression(exp.Case(this=subject, ifs=branches, default=otherwise))

    def _parse_lambda(self, *_: Any, **__: Any) -> Expr | None:
        # sqlglot calls this method for each argument of a call. Refuse DISTINCT, aliases and
        # orderings.
        if self._curr.token_type is TokenType.DISTINCT:
            self.raise_error("aggregates cannot be part of an expression on one row")
        parameters = self._parse_parameters()
        if parameters is None:
            return self._parse_disjunction()
        return self.expression(exp.Lambda(this=self._parse_whole(), expressions=parameters))

    def _parse_parameters(self) -> list[exp.Identifier] | None:
        """Parse the names before `->`, with or without brackets; consume nothing without `->`."""
        start = self._index
        is_open = self._match(TokenType.L_PAREN)
        found: list[exp.Identifier] = []
        while self._match_set(NAMES):
            found.append(exp.to_identifier(self._prev.text).update_positions(self._prev))
            if not is_open or not self._match(TokenType.COMMA):
                break
        is_whole = bool(found) and (not is_open or bool(self._match(TokenType.R_PAREN)))
        if is_whole and self._match(TokenType.ARROW):
            return found
        self._retreat(start)
        return None

    def _parse_window(self, this: Expr | None, *_: Any, **__: Any) -> Expr | None:
        if self._curr.text.upper() == "OVER":
            self.raise_error("window functions cannot be part of an expression on one row")
        return this

    def _parse_function(self, *args: Any, **kwargs: Any) -> Expr | None:
        if kwargs.get("anonymous") and self._next.token_type is TokenType.L_PAREN:
            name = self._curr.text
            self._advance()
            meant = _METHODS.get(
                name_key(name), f"a method of Python is a function, as in {name}(column)"
            )
            self.raise_error(f"functions of a schema or catalog cannot be used here; {meant}")
        return super()._parse_function(*args, **kwargs)

    def _parse_bracket_key_value(self, *_: Any, **__: Any) -> Expr | None:
        return self._parse_whole()

    def _parse_interval(self, *_: Any, **__: Any) -> exp.Interval | None:
        parts: list[Expr] = []
        start = self._index
        if not self._match(TokenType.INTERVAL):
            return None
        while self._curr.token_type in _AMOUNTS or (
            not parts and self._curr.token_type in _SIGNS and self._next.token_type in _AMOUNTS
        ):
            parts.append(self._parse_interval_part())
        if not parts:
            self._retreat(start)
            return None
        return self.expression(exp.Interval(this=exp.Tuple(expressions=parts)))

    def _parse_interval_part(self) -> Expr:
        is_negative = self._curr.token_type is TokenType.DASH
        if self._curr.token_type in _SIGNS:
            self._advance()
        token, unit = self._curr, None
        self._advance()
        is_text = token.token_type is TokenType.STRING
        amount = exp.Literal(this=token.text, is_string=is_text).update_positions(token)
        if is_text and self._is_between_fields():
            unit = self._parse_fields_of_interval()
        elif len(token.text.split()) == 1:
            unit = unit_of(self._curr.text)
            self._advance(int(unit is not None))
            if unit is None:
                self.raise_error(NO_UNIT, token)
        part = exp.Interval(this=amount, unit=exp.Var(this=unit) if unit else None)
        return exp.Neg(this=part) if is_negative else part

    def _is_between_fields(self) -> bool:
        words = (self._curr.text.upper(), self._next.text.upper() if self._next else "")
        return words[0] in _FIELDS and words[1] == _TO

    def _parse_fields_of_interval(self) -> str:
        """Parse the keyword of one interval field, or of two fields with TO between them."""
        first, last = self._curr.text.upper(), None
        if first not in _FIELDS:
            self.raise_error(f"expected a field of an interval: {', '.join(_FIELDS)}")
        self._advance()
        if self._curr.text.upper() == _TO:
            self._advance()
            last = self._curr.text.upper()
            if last not in _FIELDS:
                self.raise_error(f"expected a field of an interval: {', '.join(_FIELDS)}")
            self._advance()
        return first if last is None else f"{first} {_TO} {last}"

    def _parse_extract_call(self) -> exp.Anonymous:
        name, part = self._name_of_call(), self._curr
        if self._next.token_type is not TokenType.FROM or part.token_type not in self.FUNC_TOKENS:
            return self._rest_of_call(name, self._parse_disjunction())
        self._advance(2)
        words = [exp.Literal.string(part.text.lower()), self._parse_whole()]
        return exp.Anonymous(this="date_part", expressions=words)

    def _parse_trim_call(self) -> exp.Anonymous:
        name, side = self._name_of_call(), None
        if self._match_texts(_TRIMS):
            side = self._prev.text.upper()
        has_chars = side is None or self._curr.token_type is not TokenType.FROM
        chars = self._parse_disjunction() if has_chars else None
        if side is None and self._curr.token_type is not TokenType.FROM:
            return self._rest_of_call(name, chars)
        self._expect(TokenType.FROM, "FROM")
        side = side or "BOTH"
        words = [self._parse_whole()] + ([chars] if chars else [])
        if side != "BOTH":
            words.reverse()
        return exp.Anonymous(this=_TRIMS[side], expressions=words)

    def _parse_substring_call(self) -> exp.Anonymous:
        name, source = self._name_of_call(), self._parse_disjunction()
        if not source or not self._match(TokenType.FROM):
            return self._rest_of_call(name, source)
        words = [source, self._parse_whole()]
        if self._match_text_seq("FOR"):
            words.append(self._parse_whole())
        return exp.Anonymous(this=name, expressions=words)

    def _parse_position_call(self) -> exp.Anonymous:
        # Parse only an operand, because a condition would include the IN of POSITION(part IN text).
        name, part = self._name_of_call(), self._parse_bitwise()
        if not part or not self._match(TokenType.IN):
            return self._rest_of_call(name, part)
        return exp.Anonymous(this="instr", expressions=[self._parse_whole(), part])

    def _name_of_call(self) -> str:
        return self._tokens[self._index - 2].text

    def _rest_of_call(self, name: str, first: Expr | None) -> exp.Anonymous:
        words = [first] if first else []
        if first and self._match(TokenType.COMMA):
            words += self._parse_csv(self._parse_whole)
        return exp.Anonymous(this=name, expressions=words)

    def _parse_types(self, *_: Any, check_func: bool = False, **__: Any) -> exp.DataType | None:
        # Return the type's name and the content of its brackets, because sqlglot's own types omit
        # the length of char(n) and the names of struct fields. With `check_func`, sqlglot expects a
        # value and not a type.
        if check_func or self._curr.token_type not in _TYPE_NAMES:
            return None
        self._advance()
        token, parts, is_nested = self._prev, [], False
        name = token.text.lower()
        if name == "interval":
            name = f"{name} {self._parse_fields_of_interval().lower()}"
            return self.expression(exp.DataType(this=name, nested=False), token)
        part = self._parse_field_of_type if name == "struct" else self._parse_types
        if name == "struct" and self._match(TokenType.NEQ):
            is_nested = True
        elif self._match(TokenType.LT):
            is_nested = True
            parts = self._parse_csv(part)
            self._expect(TokenType.GT, ">")
        elif self._match(TokenType.L_PAREN):
            parts = self._parse_csv(self._parse_number)
            self._expect(TokenType.R_PAREN, ")")
        found = self.expression(exp.DataType(this=name, expressions=parts, nested=is_nested), token)
        if name == STRING.type and self._match_collate():
            found.set("collate", exp.Literal.string(self._parse_name_of_collation()))
        return found

    def _parse_field_of_type(self) -> exp.ColumnDef | None:
        token = self._curr
        if not token:
            return None
        is_name = NAME.fullmatch(token.text) and token.token_type is not TokenType.STRING
        if not is_name and token.token_type is not TokenType.IDENTIFIER:
            return None
        self._advance()
        self._match(TokenType.COLON)
        kind = self._parse_types()
        if kind is None:
            self.raise_error("expected a type")
        is_required = self._is_not()
        if is_required:
            self._advance()
            self._expect(TokenType.NULL, "NULL")
        constraints: list[Expr] = [exp.NotNullColumnConstraint()] if is_required else []
        if self._match_text_seq("COMMENT"):
            if self._curr.token_type is not TokenType.STRING:
                self.raise_error("expected a comment in quotes")
            comment = exp.Literal.string(self._curr.text)
            self._advance()
            constraints.append(exp.CommentColumnConstraint(this=comment))
        return exp.ColumnDef(this=token.text, kind=kind, constraints=constraints)


# --- The grammar of conditions, and the entry points


_MAX_DEPTH: Final = 50
# Operators with their precedence in Spark, from the lowest.
_BITS: Final[dict[TokenType, tuple[int, type[exp.Binary]]]] = {
    TokenType.PIPE: (1, exp.BitwiseOr),
    TokenType.CARET: (2, exp.BitwiseXor),
    TokenType.AMP: (3, exp.BitwiseAnd),
}
_SHIFTS: Final = {">>>": "shiftrightunsigned", ">>": "shiftright", "<<": "shiftleft"}
_MANY: Final[dict[TokenType, type[Expr]]] = {
    TokenType.ANY: exp.Any,
    TokenType.SOME: exp.Any,
    TokenType.ALL: exp.All,
}


def tokens_of(sql: str) -> list[Token]:
    """Split a string into tokens.

    Raises:
        InvalidInputError: a character cannot begin a token, or a quote is not closed.
    """
    try:
        return _DIALECT.tokenize(sql)
    except SqlglotError as error:
        raise error_at(sql, 0, "", str(error)) from error


def node_of(sql: str, tokens: list[Token], kind: type[Expr]) -> Expr:
    """Parse a string as an `exp.Condition` or an `exp.DataType`.

    Raises:
        InvalidInputError: the tokens do not form such a node.
    """
    try:
        found = _DIALECT.parser().parse_into(kind, tokens, sql)
    except SqlglotError as error:
        raise error_at(sql, 0, "", str(error)) from error
    if not found or found[0] is None:
        # If the string begins with ELSE, sqlglot returns an empty result.
        raise error_at(sql, 0, "", "expected a value, a column or a function")
    return found[0]


class SparkConditions(SparkValues):
    """The grammar of one expression, with sqlglot's rules where they are as strict as Spark's."""

    EXPRESSION_PARSERS: ClassVar[dict[Any, Any]] = {
        exp.Condition: lambda self: self._parse_whole(),
        exp.DataType: lambda self: self._parse_types() or self.raise_error("expected a type"),
    }
    # In Spark all comparisons have the same precedence. A predicate such as IS NULL applies to the
    # whole comparison on its left (see `_parse_equality`).
    EQUALITY: ClassVar[dict[Any, Any]] = {}
    COMPARISON: ClassVar[dict[Any, Any]] = {**SparkParser.EQUALITY, **SparkParser.COMPARISON}
    DISJUNCTION: ClassVar[dict[Any, Any]] = {TokenType.OR: exp.Or}
    CONJUNCTION: ClassVar[dict[Any, Any]] = {TokenType.AND: exp.And}
    RANGE_PARSERS: ClassVar[dict[Any, Any]] = {
        **{
            kind: SparkParser.RANGE_PARSERS[kind]
            for kind in (TokenType.IS, TokenType.IN, TokenType.BETWEEN)
        },
        TokenType.RLIKE: lambda self, this: self.expression(
            exp.RegexpLike(this=this, expression=self._parse_bitwise())
        ),
        TokenType.LIKE: lambda self, this: self._parse_like(exp.Like, this),
        TokenType.ILIKE: lambda self, this: self._parse_like(exp.ILike, this),
    }

    _depth: int = 0

    def _parse_disjunction(self) -> Expr | None:
        self._depth += 1
        if self._depth > _MAX_DEPTH:
            self.raise_error(f"brackets and calls are nested more than {_MAX_DEPTH} deep")
        found = super()._parse_disjunction()
        self._depth -= 1
        return found

    def _parse_equality(self, *_: Any, **__: Any) -> Expr | None:
        if self._match(TokenType.NOT):
            self._depth += 1
            if self._depth > _MAX_DEPTH:
                self.raise_error(f"NOT is repeated more than {_MAX_DEPTH} times")
            found = self.expression(exp.Not(this=self._parse_equality()))
            self._depth -= 1
            return found
        return self._parse_range(self._parse_comparison())

    def _parse_comparison(self, this: Expr | None = None) -> Expr | None:
        this = self._parse_bitwise()
        while self._match_set(self.COMPARISON):
            kind = self.COMPARISON[self._prev.token_type]
            this = self.expression(kind(this=this, expression=self._parse_bitwise()))
        return this

    def _parse_range(self, this: Expr | None = None, *_: Any, **__: Any) -> Expr | None:
        while this:
            is_negated = self._is_not()
            token = self._next if is_negated else self._curr
            if token.token_type not in self.RANGE_PARSERS or (
                is_negated and token.token_type is TokenType.IS
            ):
                break
            self._advance(2 if is_negated else 1)
            this = self.RANGE_PARSERS[token.token_type](self, this)
            this = self._negate_range(this) if is_negated else this
        return this

    def _parse_is(self, this: Expr | None) -> Expr:
        is_negated = self._is_not()
        self._advance(int(is_negated))
        found: Expr
        if self._match_text_seq("DISTINCT"):
            self._expect(TokenType.FROM, "FROM")
            is_negated = not is_negated
            found = exp.NullSafeEQ(this=this, expression=self._parse_bitwise())
        elif self._match_set({TokenType.NULL, TokenType.UNKNOWN}):
            found = exp.Is(this=this, expression=exp.Null())
        elif self._match_set({TokenType.TRUE, TokenType.FALSE}):
            is_true = self._prev.token_type is TokenType.TRUE
            found = exp.Is(this=this, expression=exp.Boolean(this=is_true))
        else:
            advice = (
                "leave out IS" if self._curr.token_type in _JOINERS else "= and <> compare values"
            )
            self.raise_error(f"expected NULL, TRUE, FALSE, UNKNOWN or DISTINCT FROM; {advice}")
        found = self.expression(found)
        return self.expression(exp.Not(this=found)) if is_negated else found

    def _parse_in(self, this: Expr | None, *_: Any, **__: Any) -> exp.In:
        # Clients such as psycopg write `IN :ids` for a parameter that is a list.
        parameter = self._parse_placeholder()
        if parameter is not None:
            return self.expression(exp.In(this=this, expressions=[parameter]))
        self._expect(TokenType.L_PAREN, "(")
        if self._curr.token_type is TokenType.R_PAREN:
            self.raise_error(
                "IN needs at least one value; a list that may be empty is a parameter, as in "
                "x IN (:ids) with {'ids': []}"
            )
        options = self._parse_csv(self._parse_whole)
        self._expect(TokenType.R_PAREN, ")")
        return self.expression(exp.In(this=this, expressions=options))

    def _parse_between(self, this: Expr | None) -> exp.Between:
        low = self._parse_bitwise() or self._expect_value()
        self._expect(TokenType.AND, "AND")
        return self.expression(exp.Between(this=this, low=low, high=self._parse_bitwise()))

    def _parse_like(self, kind: type[exp.Binary], this: Expr | None) -> Expr | None:
        many = _MANY.get(self._curr.token_type)
        if many is None or self._next.token_type is not TokenType.L_PAREN:
            like = self.expression(kind(this=this, expression=self._parse_bitwise()))
            return self._parse_escape(like)
        self._advance(2)
        patterns = exp.Tuple(expressions=self._parse_csv(self._parse_whole))
        self._expect(TokenType.R_PAREN, ")")
        return self.expression(kind(this=this, expression=many(this=patterns)))

    def _parse_escape(self, this: Expr | None) -> Expr | None:
        if not self._match(TokenType.ESCAPE):
            return this
        self._expect(TokenType.STRING, "a string in single quotes")
        return self.expression(
            exp.Escape(this=this, expression=exp.Literal.string(self._prev.text))
        )

    def _parse_bitwise(self, above: int = 0) -> Expr | None:
        this = self._parse_shift()
        while (found := _BITS.get(self._curr.token_type)) and found[0] > above:
            self._advance()
            this = self.expression(found[1](this=this, expression=self._parse_bitwise(found[0])))
        return this

    def _parse_shift(self) -> Expr | None:
        this = self._parse_term()
        while this and (found := self._match_shift()):
            words = [this, self._parse_term() or self._expect_value()]
            this = exp.Anonymous(this=found, expressions=words)
        return this

    def _match_shift(self) -> str | None:
        # `>>` is two tokens, because in ARRAY<ARRAY<INT>> each `>` closes a type.
        for signs, name in _SHIFTS.items():
            tokens = self._tokens[self._index : self._index + len(signs)]
            ends = [token.end + 1 for token in tokens[:-1]]
            is_whole = ends == [token.start for token in tokens[1:]]
            if is_whole and [token.text for token in tokens] == list(signs):
                self._advance(len(signs))
                return name
        return None


class SparkExpressions(Spark):
    """The sqlglot dialect that uses this grammar and these tokens."""

    Tokenizer: type[SparkTokenizer] = SparkTokenizer
    Parser: type[SparkConditions] = SparkConditions


_DIALECT: Final = SparkExpressions()
