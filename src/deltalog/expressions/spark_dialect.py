"""The grammar of Spark SQL for sqlglot: one expression over one row, and nothing else.

Owns the precedence of operators in conditions, the greatest depth, and the entry points. ADR 4 says
why so much of sqlglot's grammar is switched off. `sql` imports this module for the first text only,
because sqlglot is slow to import.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, Final

from sqlglot import exp
from sqlglot.dialects.spark import Spark
from sqlglot.errors import SqlglotError
from sqlglot.parsers.spark import SparkParser
from sqlglot.tokenizer_core import Token, TokenType

from deltalog.expressions.spark_tokens import SparkTokenizer, error_at
from deltalog.expressions.spark_values import SparkValues

if TYPE_CHECKING:
    from sqlglot.expressions import Expr

_MAX_DEPTH: Final = 50
# Precedence in Spark, from the lowest.
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
    """The tokens of a text.

    Raises:
        InvalidInputError: a character starts no token, or a quote is not closed.
    """
    try:
        return _DIALECT.tokenize(sql)
    except SqlglotError as error:
        raise error_at(sql, 0, "", str(error)) from error


def node_of(sql: str, tokens: list[Token], kind: type[Expr]) -> Expr:
    """The tree of a text: an `exp.Condition` or an `exp.DataType`.

    Raises:
        InvalidInputError: the tokens are not of that kind.
    """
    try:
        found = _DIALECT.parser().parse_into(kind, tokens, sql)
    except SqlglotError as error:
        raise error_at(sql, 0, "", str(error)) from error
    if not found or found[0] is None:
        # sqlglot takes a leading ELSE for the end of a statement, and returns nothing.
        raise error_at(sql, 0, "", "expected a value, a column or a function")
    return found[0]


class SparkConditions(SparkValues):
    """The grammar of one expression: sqlglot's, wherever it is as strict as Spark's."""

    EXPRESSION_PARSERS: ClassVar[dict[Any, Any]] = {
        exp.Condition: lambda self: self._parse_whole(),
        exp.DataType: lambda self: self._parse_types() or self.raise_error("expected a type"),
    }
    # In Spark all comparisons have one precedence, and a predicate such as IS NULL applies to the
    # whole comparison before it (`_parse_equality`).
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
                self.raise_error(f"NOT stands more than {_MAX_DEPTH} times")
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
            self.raise_error("expected NULL, TRUE, FALSE, UNKNOWN or DISTINCT FROM")
        found = self.expression(found)
        return self.expression(exp.Not(this=found)) if is_negated else found

    def _parse_in(self, this: Expr | None, *_: Any, **__: Any) -> exp.In:
        self._expect(TokenType.L_PAREN, "(")
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
        self._expect(TokenType.STRING, "a text in single quotes")
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
        # `>>` is no token: it would close two types at once in ARRAY<ARRAY<INT>>.
        for signs, name in _SHIFTS.items():
            tokens = self._tokens[self._index : self._index + len(signs)]
            ends = [token.end + 1 for token in tokens[:-1]]
            is_whole = ends == [token.start for token in tokens[1:]]
            if is_whole and [token.text for token in tokens] == list(signs):
                self._advance(len(signs))
                return name
        return None


class SparkExpressions(Spark):
    """The dialect with this grammar and these tokens."""

    Tokenizer: type[SparkTokenizer] = SparkTokenizer
    Parser: type[SparkConditions] = SparkConditions


_DIALECT: Final = SparkExpressions()
